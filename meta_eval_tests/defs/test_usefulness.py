"""The usefulness lane in Dagster: a study from its declaration to its export, what stops it, what it waits for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.defs.usefulness import usefulness_lane
from meta_eval.defs.usefulness.assets import stage_key
from meta_eval.defs.usefulness.jobs import score_study_job
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.files import write_document
from meta_eval.lanes.usefulness import steps
from meta_eval.lanes.usefulness.line import STAGES
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.rehearsal.invented import own_objects
from meta_eval.lanes.usefulness.rehearsal.scenarios import SCENARIOS, SETS
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
START = 1_796_000_000_000


class Line:
    """A home folder with one study, and a Dagster instance; each run is an hour after the one before it."""

    def __init__(self, home: Path, instance: Any) -> None:
        self.home, self.instance, self.hour = home, instance, 0
        self.place = Study(home / "studies", "spring").make()
        instance.add_dynamic_partitions("studies", ["spring"])
        home_ = MetaEvalHome(home=str(home))
        self.checks: dict[str, dict[str, bool]] = {}
        assert home_.folder == home

    def setting(self) -> Setting:
        self.hour += 1
        return Setting(START + self.hour * 3_600_000, "spring")

    def run(self, *stages: str) -> bool:
        as_of = written_instant(self.setting().made_at)
        bound = dg.Definitions(resources={"home": MetaEvalHome(home=str(self.home), as_of=as_of)})
        job = dg.Definitions.merge(usefulness_lane, bound).resolve_job_def(score_study_job.name)
        result = job.execute_in_process(
            instance=self.instance,
            partition_key="spring",
            asset_selection=[stage_key(stage) for stage in stages],
            run_config=QUIET,
            raise_on_error=False,
        )
        for one in result.get_asset_check_evaluations():
            self.checks.setdefault(one.asset_key.path[-1], {})[one.check_name] = one.passed
        return bool(result.success)

    def put(self, name: str, document: Any) -> None:
        write_document(self.place.inbox / f"{name}.json", document)

    def to_the_preflight(self, *, enough: bool = True) -> bool:
        self.put("study", people.study())
        for set_id in SETS:
            write_document(self.place.packet_file(set_id), people.packet(set_id, own_objects(1), START))
        terms = people.budget(enough=enough)
        self.put("budget", terms)
        self.put("freeze", people.freeze(terms))
        return self.run("declared_study", "sealed_packets", "study_freeze", "budget_preflight")

    def to_the_verdict(self, scenario: str) -> bool:
        assert self.to_the_preflight()
        assert not self.run("opened_packets")  # nobody has opened anything yet
        for set_id in SETS:
            steps.open_packet(self.place, self.setting(), set_id, people.RUNNER)
        frozen = steps.frozen_study(self.place)["digest"]
        document, booked = people.runs(SCENARIOS[scenario], own_objects(1), frozen)
        steps.book(self.place, self.setting(), *booked)
        self.put("runs", document)
        assert self.run("opened_packets", "recorded_runs", "blinded_sheets")
        assert not self.run("blind_scores")
        for number, code in enumerate(people.SCORERS):
            sheet = json.loads((self.place.scorers / code / "sheet.json").read_bytes())
            write_document(self.place.scorers / code / "scores.json", people.scores(sheet, strict=number == 1))
        assert self.run("blind_scores")
        sheet = json.loads((self.place.adjudicator / "sheet.json").read_bytes())
        self.put("adjudication", people.adjudication(sheet))
        return self.run("adjudication", "unblinding", "acceptance", "public_export")


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Line(tmp_path / "home", instance)


def test_a_study_goes_from_its_declaration_to_its_export(line: Line) -> None:
    assert line.to_the_verdict("accepted")
    assert line.checks["acceptance"] == {
        "every_gate_passed": True,
        "artifact_rebuilds_from_its_replay": True,
        "every_condition_is_met": True,
        "sql_agrees_with_python": True,
    }
    assert len(list(line.place.export.glob("usefulness-export-*.json"))) == 1
    # Asked again, every stage takes what is on record and makes nothing.
    before = sorted(path.name for path in line.place.artifacts.rglob("*.json"))
    assert line.run(*(stage.name for stage in STAGES))
    assert sorted(path.name for path in line.place.artifacts.rglob("*.json")) == before
    told = str([entry.to_json() for run in line.instance.get_runs() for entry in line.instance.all_logs(run.run_id)])
    for words in ("invented amber", "It was made by", "By rule:", "Who made", str(line.home)):
        assert words not in told


def test_a_missed_condition_stops_the_run_before_the_export(line: Line) -> None:
    assert not line.to_the_verdict("no-gain")
    assert line.checks["acceptance"]["every_condition_is_met"] is False
    assert line.checks["acceptance"]["sql_agrees_with_python"] is True
    assert "public_export" not in line.checks


def test_a_blocked_preflight_leaves_its_artifact_and_stops_the_run(line: Line) -> None:
    assert not line.to_the_preflight(enough=False)
    assert line.checks["budget_preflight"]["every_gate_passed"] is False
    assert list((line.place.artifacts / "budget-preflight").glob("*.json"))
    assert not line.run("opened_packets")


def test_every_check_is_blocking() -> None:
    specs = [spec for asset in usefulness_lane.assets or [] for spec in getattr(asset, "check_specs", [])]
    assert len(specs) == 2 * len(STAGES) + 2
    assert all(spec.blocking for spec in specs)
