"""When a round is scored: once for each new ready bundle, and each day while its verdict depends on the day."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from meta_eval.definitions import defs
from meta_eval.defs.production import listing, scoring
from meta_eval.defs.production.sensors import RUN_KEY_TAG, bundle_sensor, daily_rescore
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.artifact_roots import FolderRoot
from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import bundle, metrics
from meta_eval_tests.valid_world import ASSEMBLED_AT, World

DAY = dt.datetime(2026, 11, 30, 4, 30, tzinfo=dt.UTC)


def keep(home: Path, round_name: str, artifact: Artifact, stamp: str = "20261104T090000000Z") -> Path:
    path = home / "rounds" / round_name / "artifacts" / artifact["artifact"] / f"{stamp}-{artifact['digest'][:12]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(artifact), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as made:
        yield made


def bundle_tick(instance: dg.DagsterInstance, home: Path, cursor: str | None = None) -> Any:
    with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
        return bundle_sensor(context, home=MetaEvalHome(home=str(home)))


def day_tick(instance: dg.DagsterInstance, home: Path) -> Any:
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=DAY) as context:
        return daily_rescore(context, home=MetaEvalHome(home=str(home)))


def test_a_new_ready_bundle_is_scored_once(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    world = World()
    artifact = world.assembled()
    keep(tmp_path, "r1", artifact)
    first = bundle_tick(instance, tmp_path)
    (request,) = first.run_requests
    assert (request.partition_key, request.run_key) == ("r1", f"r1:assembled_bundle:{artifact['digest']}")
    assert [key.path[-1] for key in request.asset_selection] == ["production_metrics"]
    assert first.dynamic_partitions_requests[0].partition_keys == ["r1"]
    assert bundle_tick(instance, tmp_path, first.cursor).run_requests == []
    later = world.assembled(made_at=ASSEMBLED_AT + 1)
    keep(tmp_path, "r1", later, stamp="20261104T090000001Z")
    (again,) = bundle_tick(instance, tmp_path, first.cursor).run_requests
    assert again.run_key == f"r1:assembled_bundle:{later['digest']}"


def test_a_lost_cursor_scores_nothing_twice_and_says_so(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    keep(tmp_path, "scored-before", World().assembled())
    (request,) = bundle_tick(instance, tmp_path).run_requests
    instance.create_run_for_job(defs.resolve_job_def("score_round_job"), tags={RUN_KEY_TAG: request.run_key})
    again = bundle_tick(instance, tmp_path, "nonsense")
    assert again.run_requests == []
    assert "scored already" in again.skip_reason.skip_message


def test_a_blocked_bundle_and_a_broken_one_are_named_and_stop_no_other(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    world = World()
    keep(tmp_path, "r1", world.assembled(made_at=0))
    keep(tmp_path, "r2", world.assembled()).write_text('{"status": ', encoding="utf-8")
    keep(tmp_path, "r3", world.assembled())
    scores = scoring.new_bundles(
        listing.newest_artifacts(FolderRoot(tmp_path / "rounds"), "assembled_bundle"),
        None,
        artifact_of=lambda name: listing.newest_artifact(FolderRoot(tmp_path / "rounds"), name, "assembled_bundle"),
        asked=lambda _name, _digest: False,
    )
    assert list(scores.run_keys) == ["r3"]
    assert [message.split(":")[0] for message in scores.messages] == ["r1", "r2"]
    assert set(json.loads(scores.cursor)) == {"r1", "r3"}, "the broken one is looked at again"


def test_each_verdict_that_depends_on_the_day_is_judged_again(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    world = World()
    keep(tmp_path, "passed", world.evaluated())
    keep(tmp_path, "never-scored", world.assembled())
    keep(tmp_path, "too-old", world.evaluated(made_at=1_900_000_000_000))
    broken = keep(tmp_path, "broken", world.evaluated())
    broken.write_text("[]", encoding="utf-8")
    instance.add_dynamic_partitions("rounds", ["passed", "never-scored", "too-old", "broken"])
    requests = day_tick(instance, tmp_path)
    assert [(one.partition_key, one.run_key) for one in requests] == [
        ("broken", "broken:2026-11-30"),
        ("passed", "passed:2026-11-30"),
    ]
    assert all([key.path[-1] for key in one.asset_selection] == ["production_metrics"] for one in requests)


def test_a_day_without_verdicts_says_so(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    assert isinstance(day_tick(instance, tmp_path), dg.SkipReason)


@pytest.mark.parametrize(
    ("status", "codes", "again"),
    [
        ("passed", [], True),
        ("rehearsed", [], True),
        ("failed", [], True),
        ("blocked", ["trace-stale"], False),
        ("blocked", ["trace-in-the-future", "trace-stale"], True),
    ],
)
def test_time_alone_can_change_some_verdicts(status: str, codes: list[str], again: bool) -> None:
    verdict = {"status": status, "blockers": [{"code": code, "subject": "bundle", "count": 1} for code in codes]}
    assert scoring.depends_on_the_day(verdict) is again


def test_the_stages_that_are_listed_are_those_of_the_line() -> None:
    assert listing.stage_named("assembled_bundle").kind == bundle.KIND
    assert listing.stage_named("production_metrics").kind == metrics.KIND


def test_a_bundle_that_the_terminal_scored_is_not_scored_again(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    world = World()
    bundle = world.assembled()
    keep(tmp_path, "r1", bundle)
    keep(tmp_path, "r2", bundle)
    keep(tmp_path, "r1", world.evaluated(bundle))
    assert listing.is_scored(FolderRoot(tmp_path / "rounds"), "r1", bundle["digest"])
    scores = scoring.new_bundles(
        listing.newest_artifacts(FolderRoot(tmp_path / "rounds"), "assembled_bundle"),
        None,
        artifact_of=lambda name: listing.newest_artifact(FolderRoot(tmp_path / "rounds"), name, "assembled_bundle"),
        asked=lambda name, digest: listing.is_scored(FolderRoot(tmp_path / "rounds"), name, digest),
    )
    assert list(scores.run_keys) == ["r2"]
