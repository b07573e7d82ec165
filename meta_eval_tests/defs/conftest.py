"""The rounds that several tests look at, each run once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from meta_eval_tests.defs.desk import Desk
from meta_eval_tests.defs.people import People
from meta_eval_tests.defs.stagehand import Stagehand


@pytest.fixture(autouse=True)
def _contexts_end_with_their_test() -> Iterator[None]:
    """A sensor's context leaves its instance when it is collected, and then puts back what was current before it.

    In the middle of a later test that would be the storage of an instance that is gone.
    """
    yield
    gc.collect()


@pytest.fixture(scope="package")
def stagehand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stagehand]:
    folder = tmp_path_factory.mktemp("line")
    (folder / "dagster").mkdir()
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    # Not entered: on leaving, an instance puts back the storage that was current when it was entered, and this fixture
    # outlives the modules whose instances were; theirs would be put back after they are gone.
    instance = dg.DagsterInstance.from_config(str(folder / "dagster"))
    yield Stagehand(folder, instance)
    instance.dispose()


@pytest.fixture(scope="package")
def good(stagehand: Stagehand) -> People:
    return stagehand.play(stagehand.people("good"))


@pytest.fixture(scope="package")
def blocked(stagehand: Stagehand) -> People:
    """Too few eligible rows: stage 1 is blocked, and both it and stage 3 are asked for."""
    people = stagehand.people("blocked")
    people.query_log(rows=10)
    stagehand.run("blocked", "log_attestation", people.at())
    people.attestation()
    stagehand.run("blocked", "log_attestation question_export prepared_manifest", people.at(minutes=1))
    stagehand.run("blocked", "question_export", people.at(minutes=2))
    return people


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
