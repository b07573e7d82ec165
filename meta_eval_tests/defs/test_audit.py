"""The jobs over all evidence, on rounds that are honest and on one that was edited."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dagster as dg

from meta_eval.defs.audit import rebuild_store_job, verify_all_job
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.store import EvidenceStore
from meta_eval_tests.defs.people import CANARIES, People
from meta_eval_tests.defs.stagehand import Stagehand, table

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run(job: dg.JobDefinition, home: Path) -> tuple[Any, dict[str, Any]]:
    """The result of a job, and the metadata of the step that failed, or that it left."""
    result = job.execute_in_process(
        resources={"home": MetaEvalHome(home=str(home))}, run_config=QUIET, raise_on_error=False
    )
    shown: dict[str, Any] = {}
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.user_failure_data:
            shown |= event.step_failure_data.user_failure_data.metadata
        elif event.is_successful_output:
            shown |= event.step_output_data.metadata
    assert str(home) not in str(shown)
    assert not [canary for canary in CANARIES if canary in str(shown)]
    return result, shown


def copied(good: People, tmp_path: Path) -> Path:
    shutil.copytree(good.folder, tmp_path / "rounds" / "good")
    return tmp_path


def test_an_honest_round_is_verified_and_its_store_is_made_anew(
    stagehand: Stagehand, good: People, tmp_path: Path
) -> None:
    home = copied(good, tmp_path)
    result, shown = run(verify_all_job, home)
    assert (result.success, shown["verified"].value, shown["refused"].value) == (True, 7, 0)
    result, shown = run(rebuild_store_job, home)
    assert (result.success, shown["loaded"].value) == (True, 7)
    assert EvidenceStore(home / "evidence", []).rows("SELECT count(*) FROM artifacts") == [(7,)]


def test_an_edited_artifact_fails_both_jobs_and_is_named(stagehand: Stagehand, good: People, tmp_path: Path) -> None:
    home = copied(good, tmp_path)
    (path,) = (home / "rounds" / "good" / "artifacts" / "frozen-labels").glob("*.json")
    path.chmod(0o600)
    path.write_text(path.read_text(encoding="utf-8").replace('"ready"', '"blocked"', 1), encoding="utf-8")
    result, shown = run(verify_all_job, home)
    assert not result.success
    assert path.relative_to(home).as_posix() in {row["file"] for row in table(shown["refused artifacts"])}
    result, shown = run(rebuild_store_job, home)
    assert not result.success
    assert "frozen-labels" in table(shown["left out"])[0]["left out"]


def test_no_evidence_at_all_is_no_success(tmp_path: Path) -> None:
    result, shown = run(verify_all_job, tmp_path)
    assert not result.success
    assert "no artifact to verify" in shown["it said"].value
