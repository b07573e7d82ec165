"""Rounds that are refused: what stops, what is left behind, and what never shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dagster as dg
import pytest

from meta_eval.definitions import defs
from meta_eval.defs import failures
from meta_eval.defs.line import run_line
from meta_eval.defs.production import assets
from meta_eval.defs.production.assets import stage_key
from meta_eval.defs.refusals import refusals
from meta_eval.evidence.errors import StoreBusyError, UsageError
from meta_eval.lanes.catalogue import evidence_store
from meta_eval.lanes.production.rounds import Kept
from meta_eval_tests.defs.people import CANARIES, People, artifacts, play
from meta_eval_tests.defs.stagehand import Stagehand, table


def test_a_blocked_stage_leaves_its_artifact_fails_its_run_and_stops_the_next(
    stagehand: Stagehand, blocked: People
) -> None:
    first, again, export, manifest, _ = stagehand.reports["blocked"]
    (artifact,) = artifacts(blocked)["query-log-attestation"]
    assert artifact["status"] == "blocked"
    for report in (first, again):
        assert (report["state"], report["status"], report["blockers"]) == ("refused", "blocked", artifact["blockers"])
        assert report["checks"] == {"every_gate_passed": False, "artifact_rebuilds_from_its_replay": True}
    assert [export["state"], manifest["state"]] == ["not-run", "not-run"]
    run = stagehand.instance.get_run_by_id(first["run"])
    assert run is not None
    assert run.is_failure
    shown = stagehand.metadata("log_attestation", "blocked")
    assert table(shown["blockers"]) == artifact["blockers"]
    assert shown["next step"].value.startswith("collect more consented questions, or mend the log")


def test_a_stage_asked_for_alone_is_refused_after_a_blocked_one(stagehand: Stagehand, blocked: People) -> None:
    """Dagster would run it: in a later run the failed check stops nothing."""
    alone = stagehand.reports["blocked"][-1]
    assert (alone["stage"], alone["state"], alone["checks"]) == ("question_export", "refused", {})
    assert alone["reason"] == {"waiting for": "a log_attestation of round blocked that is not blocked"}
    assert "question-export" not in artifacts(blocked)
    export = dg.AssetRecordsFilter(asset_key=stage_key("question_export"), asset_partitions=["blocked"])
    assert not stagehand.instance.fetch_materializations(export, limit=1).records


def test_every_failed_check_is_an_error(stagehand: Stagehand, blocked: People) -> None:
    events = stagehand.instance.all_logs(stagehand.reports["blocked"][0]["run"])
    evaluations = [
        entry.dagster_event.asset_check_evaluation_data
        for entry in events
        if entry.dagster_event and entry.dagster_event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    assert evaluations
    assert {(one.severity, one.blocking) for one in evaluations} == {(dg.AssetCheckSeverity.ERROR, True)}


def test_a_missed_threshold_fails_the_run_and_keeps_the_verdict(stagehand: Stagehand) -> None:
    """Its first stages ran without Dagster, so their rows reach the store with the stage that reads them."""
    people = stagehand.people("missed")

    def run(stages: str, as_of: str) -> None:
        last = "production_metrics" in stages
        (stagehand.run if last else stagehand.advance)("missed", stages, as_of)

    play(people, run, wrong=9)
    report = stagehand.reports["missed"][-1]
    assert (report["state"], report["status"]) == ("refused", "failed")
    assert [name for name, passed in report["checks"].items() if not passed] == ["every_threshold_is_met"]
    assert artifacts(people)["production-metrics"][0]["status"] == "failed"
    assert "MISSED" in stagehand.metadata("production_metrics", "missed")["chart"].value


def test_an_input_that_is_not_there_is_waited_for_by_name(
    stagehand: Stagehand, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Through `run_line` itself, on the instance that DAGSTER_HOME names; the console stays the caller's."""
    monkeypatch.setenv("DAGSTER_HOME", str(stagehand.folder / "dagster"))
    capfd.readouterr()
    (report,) = run_line(stagehand.home, "empty", ["log_attestation"], as_of=None)
    assert capfd.readouterr() == ("", "")
    assert report["reason"] == {"waiting for": "query log in rounds/empty/inbox/ai-query-log.json"}


def test_a_broken_file_is_named_by_rule_and_place(stagehand: Stagehand) -> None:
    people = stagehand.people("broken")
    people.query_log()
    stagehand.advance("broken", "log_attestation", people.at())
    (people.folder / "inbox" / "attestation.json").write_text('{"a": "canaryquestion" canaryid', encoding="utf-8")
    (report,) = stagehand.run("broken", "question_export", people.at())
    assert report["reason"]["file"] == "rounds/broken/inbox/attestation.json"
    assert report["reason"]["at byte"] == 23


def test_a_forged_artifact_is_refused_by_the_stage_that_reads_it(stagehand: Stagehand) -> None:
    people = stagehand.people("forged")
    people.query_log()
    stagehand.advance("forged", "log_attestation", people.at())
    people.attestation()
    (path,) = (people.folder / "artifacts" / "query-log-attestation").glob("*.json")
    path.write_text(path.read_text("utf-8").replace('"eligible":60', '"eligible":61'), encoding="utf-8")
    (report,) = stagehand.run("forged", "question_export", people.at())
    assert (report["reason"]["at"], report["checks"]) == ("/digest", {})
    assert "question-export" not in artifacts(people)


@pytest.mark.parametrize("part", ["advance", "check_results"])
def test_a_foreign_exception_shows_its_type_and_place_only(
    stagehand: Stagehand, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """A1.c: a check that breaks stops the line as a check that fails does."""

    def broken(*_: object) -> Kept:
        raise RuntimeError("canaryquestion")

    monkeypatch.setattr(assets, part, broken)
    people = stagehand.people("bug")
    people.query_log()
    report, following = stagehand.run("bug", "log_attestation question_export", people.at())
    assert (report["state"], following["state"]) == ("refused", "not-run")
    assert report["reason"]["rule"] == "unexpected RuntimeError"
    assert report["reason"]["where"].startswith("meta_eval/defs/production/assets.py:")


def test_the_rows_of_a_log_that_does_not_pass_are_kept_as_evidence(stagehand: Stagehand) -> None:
    """A1.d: which rows were refused, and why, is on record although the gate stopped the line."""
    people = stagehand.people("short")
    people.query_log(rows=12)
    report, following = stagehand.run("short", "log_attestation question_export", people.at())
    assert (report["status"], following["state"]) == ("blocked", "not-run")
    rows = evidence_store(stagehand.home / "evidence").rows(
        "SELECT outcome, rows FROM outcome_history WHERE round = 'short'"
    )
    assert rows == [("eligible", 12)]


def test_a_killed_run_holds_nobody_up(stagehand: Stagehand, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    stuck = stagehand.instance.create_run_for_job(
        defs.resolve_job_def("score_round_job"),
        status=dg.DagsterRunStatus.STARTED,
        tags={"meta_eval/process": str(dead.pid)},
    )
    storage = stagehand.instance.event_log_storage
    storage.set_concurrency_slots("duckdb", 1)
    assert storage.claim_concurrency_slot("duckdb", stuck.run_id, "a_step").is_claimed
    people = stagehand.people("after-a-kill")
    people.query_log()
    (report,) = stagehand.run("after-a-kill", "log_attestation", people.at())
    assert report["state"] == "done"
    run = stagehand.instance.get_run_by_id(stuck.run_id)
    assert run is not None
    assert run.is_failure


def test_a_failed_run_is_summed_up_without_a_message(stagehand: Stagehand, blocked: People) -> None:
    refused, alone = (stagehand.reports["blocked"][place]["run"] for place in (0, -1))
    for run_id in (refused, alone):
        run = stagehand.instance.get_run_by_id(run_id)
        assert run is not None
        entries = stagehand.instance.all_logs(run_id)
        document = failures.summary(run_id, run.job_name, run.tags, entries)
        assert (document["round"], document["job"]) == ("blocked", "score_round_job")
        assert document["failedAt"]
        if run_id == refused:
            (check,) = document["failedChecks"]
            assert check["blockers"] == stagehand.reports["blocked"][0]["blockers"]
        else:
            (step,) = document["failedSteps"]
            assert step["reason"] == {"waiting for": "a log_attestation of round blocked that is not blocked"}


def test_nothing_private_is_in_dagster_or_in_the_store(stagehand: Stagehand, good: People, blocked: People) -> None:
    """Every file that Dagster wrote, byte for byte, after good, blocked, broken and crashing rounds."""
    folders = [stagehand.folder / "dagster", stagehand.home / "evidence"]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 10
    for canary in CANARIES:
        assert canary in (good.folder / "inbox" / "ai-query-log.json").read_text(encoding="utf-8")
        assert [file.name for file in files if canary.encode() in file.read_bytes()] == []


def test_only_a_busy_store_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(dg.RetryRequested), refusals(tmp_path, "a_stage"):
        raise StoreBusyError("held")
    with pytest.raises(dg.Failure) as caught, refusals(tmp_path, "a_stage"):
        raise UsageError(f"{tmp_path}/rounds/r1: no")
    assert (caught.value.allow_retries, caught.value.description) == (False, "a_stage: rounds/r1: no")
