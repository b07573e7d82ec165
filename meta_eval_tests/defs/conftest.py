"""The rounds that several tests look at, each run once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from meta_eval_tests.defs.desk import Desk
from meta_eval_tests.defs.people import People
from meta_eval_tests.defs.stagehand import Stagehand


@pytest.fixture(scope="package")
def stagehand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stagehand]:
    folder = tmp_path_factory.mktemp("line")
    (folder / "dagster").mkdir()
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        yield Stagehand(folder, instance)


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
