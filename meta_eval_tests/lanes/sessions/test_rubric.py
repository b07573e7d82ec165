"""The rubrics are frozen: the digests below are written once, and a changed byte is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from meta_eval.lanes.sessions.rubric import VERSIONS, RubricError, frozen_rubric, version_named
from meta_eval.lanes.sessions.steps import RUBRICS, Metrics

FROZEN = {
    "v1": "91e5e34853cb45c1d4e915d55ae9d0260c4ad85858584368b574ad3d04a4b473",
    "v2": "b64b1b6d73eda8ac3462d4e90f797a68b4d841e171e07883268796764494dd94",
}


@pytest.mark.parametrize("name", VERSIONS)
def test_the_file_is_the_frozen_one(name: str) -> None:
    rubric = Metrics.of(Path(), rubrics=RUBRICS).rubric(name)
    assert rubric.sha256 == FROZEN[name]


@pytest.mark.parametrize("name", VERSIONS)
def test_one_changed_byte_is_refused(name: str, tmp_path: Path) -> None:
    version = VERSIONS[name]
    text = (RUBRICS / version.file).read_bytes()
    lock = (RUBRICS / "rubrics.lock").read_text(encoding="utf-8")
    with pytest.raises(RubricError, match="not the frozen bytes"):
        frozen_rubric(version, text + b"\n", lock)
    with pytest.raises(RubricError, match="does not name"):
        frozen_rubric(version, text, lock.replace(version.file, "another.md"))


def test_a_version_that_nobody_registered_is_refused() -> None:
    with pytest.raises(RubricError):
        version_named("rubric-v99")


def test_v1_has_five_dimensions_and_v2_six_in_their_order() -> None:
    names = {name: [scorer.__name__ for scorer in version.scorers] for name, version in VERSIONS.items()}
    assert len(names["v1"]) == 5
    assert names["v2"][4] == "guard_friction"
