"""Good rounds through Dagster: what is recorded, and what a person sees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from meta_eval.defs.production import checks
from meta_eval.defs.production.assets import inbox_key
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.canonical import file_receipt
from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.production.rounds import INBOX, Kept
from meta_eval.lanes.production.stages import STAGES, stage_named
from meta_eval_tests.defs.people import People, artifacts
from meta_eval_tests.defs.stagehand import Stagehand, table
from meta_eval_tests.valid_world import World


def test_a_good_round_passes_every_check_of_every_stage(stagehand: Stagehand, good: People) -> None:
    reports = stagehand.reports["good"]
    assert [(one["stage"], one["state"]) for one in reports] == [(stage.name, "done") for stage in STAGES]
    for stage, report in zip(STAGES, reports, strict=True):
        assert report["checks"] == dict.fromkeys(checks.check_names(stage), True)
    assert [one["status"] for one in reports] == ["ready"] * 6 + ["passed"]


def test_what_dagster_recorded_is_what_lies_on_disk(stagehand: Stagehand, good: People) -> None:
    written = artifacts(good)
    for stage in STAGES:
        (artifact,) = written[stage.kind]
        shown = stagehand.metadata(stage.name, "good")
        assert shown["tags"]["dagster/data_version"] == artifact["digest"] == shown["digest"].value
        assert table(shown["blockers"]) == []
        assert json.loads((stagehand.home / shown["file"].value).read_bytes()) == artifact
        assert str(stagehand.folder) not in str(shown)


def test_each_input_was_observed_with_the_bytes_that_were_read(stagehand: Stagehand, good: People) -> None:
    for name, files in INBOX.items():
        records = stagehand.instance.fetch_observations(
            dg.AssetRecordsFilter(asset_key=inbox_key(name), asset_partitions=["good"]), limit=1
        ).records
        sha = file_receipt(good.folder / "inbox" / files[0])
        observed = records[0].event_log_entry.asset_observation
        assert observed is not None
        assert observed.tags["dagster/data_version"] == sha, name


def test_a_person_sees_the_verdict_and_the_next_step(stagehand: Stagehand, good: People) -> None:
    shown = stagehand.metadata("production_metrics", "good")
    rows = {row["metric"]: row for row in table(shown["verdict"])}
    assert rows["precision"] | {"interval": ""} == {
        "metric": "precision",
        "from": "40/40",
        "value": "1.0",
        "threshold": "at least 9/10",
        "met": "yes",
        "interval": "",
    }
    assert shown["precision"].value == 1.0
    assert "citationAccuracy ██" in shown["chart"].value
    assert "readiness" in shown["next step"].value
    assert stagehand.metadata("prepared_manifest", "good")["worksheets"].value[0].startswith("rounds/good/worksheets/")


def test_a_second_run_at_the_same_evidence_keeps_the_artifact(stagehand: Stagehand, good: People) -> None:
    (report,) = stagehand.run("good", "production_metrics", good.at(days=2))
    assert report["state"] == "done"
    assert stagehand.metadata("production_metrics", "good")["reused"].value is True
    assert len(artifacts(good)["production-metrics"]) == 1


def test_a_clock_that_is_no_instant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        MetaEvalHome(home=str(tmp_path), as_of="yesterday").setting("r1")


@dataclass
class Answers:
    """A store that gives the same answers to every question, in turn."""

    given: list[list[tuple[Any, ...]]]

    def rows(self, *_: object) -> list[tuple[Any, ...]]:
        return self.given.pop(0)


@pytest.mark.parametrize(
    ("answers", "passed"),
    [
        ([[], [(7,)]], True),
        ([[("precision",)], [(7,)]], False),
        ([[], [(6,)]], False),
        ([[], [(0,)]], False),
    ],
)
def test_python_and_sql_agree_only_on_every_figure(tmp_path: Path, answers: Any, passed: bool) -> None:
    kept = Kept(World().evaluated(), tmp_path / "none.json", (), reused=False)
    results = checks.check_results(stage_named("production_metrics"), kept, Answers(answers))  # type: ignore[arg-type]
    assert [one.passed for one in results if one.check_name == "sql_agrees_with_python"] == [passed]


def test_blocked_metrics_meet_no_threshold_and_agree_on_nothing(tmp_path: Path) -> None:
    world = World()
    kept = Kept(world.evaluated(made_at=0), tmp_path / "none.json", (), reused=False)
    assert kept.artifact["status"] == "blocked"
    results = checks.check_results(stage_named("production_metrics"), kept, Answers([[], [(0,)]]))  # type: ignore[arg-type]
    assert {one.check_name: one.passed for one in results} == dict.fromkeys((one.check_name for one in results), False)
