"""When a release is judged: for each new production verdict, and daily while it depends on the day."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from meta_eval.definitions import defs
from meta_eval.defs.production import scoring
from meta_eval.defs.production.sensors import daily_readiness
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.production import metrics
from meta_eval.lanes.production.stages import READINESS
from meta_eval_tests.cli.test_readiness import round_of
from meta_eval_tests.defs.test_scoring import DAY, bundle_tick, instance, keep  # noqa: F401 - a fixture
from meta_eval_tests.lanes.production.test_readiness import LAST_FRESH, case


def judge(instance: dg.DagsterInstance, home: Path, name: str, as_of: int) -> dg.ExecuteInProcessResult:  # noqa: F811
    instance.add_dynamic_partitions("rounds", [name])
    resources = dg.Definitions(resources={"home": MetaEvalHome(home=str(home), as_of=written_instant(as_of))})
    from meta_eval.defs.production import production_lane

    job = dg.Definitions.merge(production_lane, resources).resolve_job_def("release_readiness_job")
    return job.execute_in_process(instance=instance, partition_key=name, raise_on_error=False)


def test_a_ready_release_materializes_with_every_requirement_shown(
    instance: dg.DagsterInstance,  # noqa: F811
    tmp_path: Path,
) -> None:
    round_of(tmp_path, "ready")
    result = judge(instance, tmp_path, "ready", LAST_FRESH)
    assert result.success
    [made] = result.asset_materializations_for_node("production__readiness")
    assert made.metadata["status"].value == "ready"
    shown = made.metadata["requirements"].records
    assert [row.data["state"] for row in shown] == ["met"] * 7
    again = judge(instance, tmp_path, "ready", LAST_FRESH + 1)
    assert not again.success
    assert len(list((tmp_path / "rounds" / "ready" / "artifacts" / READINESS.kind).glob("*.json"))) == 2


def test_a_rehearsal_is_refused_by_name_when_a_person_asks(
    instance: dg.DagsterInstance,  # noqa: F811
    tmp_path: Path,
) -> None:
    round_of(tmp_path, "rehearsed", environment="rehearsal")
    result = judge(instance, tmp_path, "rehearsed", LAST_FRESH)
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert not checks["every_gate_passed"].passed
    assert checks["artifact_rebuilds_from_its_replay"].passed
    assert "rehearsal-refused" in (checks["every_gate_passed"].description or "")


def test_the_round_s_own_job_leaves_readiness_out() -> None:
    asked = defs.resolve_job_def("score_round_job").asset_layer.executable_asset_keys
    assert dg.AssetKey(["production", "production_metrics"]) in asked
    assert dg.AssetKey(["production", "readiness"]) not in asked


def test_a_new_production_verdict_has_its_release_judged_once_and_a_rehearsal_never(
    instance: dg.DagsterInstance,  # noqa: F811
    tmp_path: Path,
) -> None:
    round_of(tmp_path, "real")
    round_of(tmp_path, "rehearsed", environment="rehearsal")
    first = bundle_tick(instance, tmp_path)
    [request] = first.run_requests
    assert (request.partition_key, request.job_name) == ("real", "release_readiness_job")
    assert [key.path[-1] for key in request.asset_selection] == ["readiness"]
    assert bundle_tick(instance, tmp_path, first.cursor).run_requests == []


def test_a_verdict_that_was_judged_already_is_no_news() -> None:
    def never(_: str) -> Any:
        raise AssertionError("opened")

    verdict = {"r": "20261104T090000000Z-0a.json"}
    judged = {"r": "20261104T090000000Z-0b.json"}
    scores = scoring.due_readiness(verdict, judged, None, verdict_of=never)
    assert scores.run_keys == {}
    later = {"r": "20261105T090000000Z-0c.json"}
    due = scoring.due_readiness(later, judged, scores.cursor, verdict_of=lambda _: {"environment": "production"})
    assert due.run_keys == {"r": f"r:readiness:{later['r']}"}


def test_each_readiness_that_depends_on_the_day_is_judged_again(
    instance: dg.DagsterInstance,  # noqa: F811
    tmp_path: Path,
) -> None:
    ready, stale = case().judged(), case()
    stale.made_at = LAST_FRESH + 1
    keep(tmp_path, "ready", ready)
    keep(tmp_path, "stale", stale.judged())
    keep(tmp_path, "broken", ready).write_text("[]", encoding="utf-8")
    instance.add_dynamic_partitions("rounds", ["ready", "stale", "broken"])
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=DAY) as context:
        requests = daily_readiness(context, home=MetaEvalHome(home=str(tmp_path)))
    assert isinstance(requests, list)
    assert [one.run_key for one in requests] == ["broken:readiness:2026-11-30", "ready:readiness:2026-11-30"]


@pytest.mark.parametrize("text", [None, "nonsense", "[]", json.dumps({"r": "x.json"})])
def test_a_cursor_of_any_kind_is_read(text: str | None) -> None:
    assert scoring.readiness_cursor(text) == "{}"
    assert metrics.KIND == "production-metrics"
