"""What news unlocks, how fast a quiet look is, and the sensor of Dagster around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from meta_eval.definitions import defs
from meta_eval.defs.production import listing
from meta_eval.defs.production.inbox import unlocked
from meta_eval.defs.production.sensors import RUN_KEY_TAG, inbox_sensor
from meta_eval.defs.resources import MetaEvalHome
from meta_eval_tests.defs.desk import Desk

BUNDLE = {"observations", "reviews", "evidence_reference", "release_manifest"}


@pytest.mark.parametrize(
    ("news", "present", "ready", "stages"),
    [
        ({"attestation"}, {"query_log"}, {"log_attestation"}, "question_export prepared_manifest"),
        ({"attestation"}, set(), set(), ""),
        ({"query_log"}, {"attestation"}, set(), "log_attestation question_export prepared_manifest"),
        ({"run_operator"}, set(), set(), ""),
        ({"labels"}, set(), {"prepared_manifest"}, "frozen_labels"),
        ({"labels"}, {"run_operator"}, {"prepared_manifest"}, "frozen_labels run_kit"),
        ({"labels"}, {"run_operator"}, set(), ""),
        ({"reviews"}, BUNDLE - {"observations"}, {"frozen_labels", "run_kit"}, ""),
        ({"reviews"}, BUNDLE, {"frozen_labels", "run_kit"}, "assembled_bundle"),
        (BUNDLE, BUNDLE, {"frozen_labels"}, ""),
    ],
)
def test_news_unlocks_just_what_it_completes(news: set[str], present: set[str], ready: set[str], stages: str) -> None:
    assert unlocked(news, news | present, ready) == tuple(stages.split())


def test_an_input_that_waits_is_read_with_the_one_that_unlocks_it(desk: Desk) -> None:
    desk.ready = {"prepared_manifest"}
    desk.put("r1", "run-operator.json", "{}")
    assert desk.tick().messages == ["r1: run_operator arrived and unlocks no stage yet"]
    desk.put("r1", "labels.json", "{}")
    (request,) = desk.tick().requests
    assert request.stages == ("frozen_labels", "run_kit")
    assert set(request.read) == {"labels", "run_operator"}


def test_a_thousand_quiet_rounds_take_under_a_second(desk: Desk) -> None:
    for number in range(1000):
        for name in ("ai-query-log.json", "attestation.json", "labels.json"):
            desk.put(f"r{number}", name, "{}")
    desk.tick()
    desk.hashed.clear()
    started = time.perf_counter()
    assert desk.tick().requests == []
    assert time.perf_counter() - started < 1.0
    assert desk.hashed == []


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def evaluated(instance: dg.DagsterInstance, home: Path, cursor: str | None) -> Any:
    with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
        return inbox_sensor(context, home=MetaEvalHome(home=str(home)))


def test_the_sensor_itself_asks_once_by_partition_and_observes(instance: dg.DagsterInstance, desk: Desk) -> None:
    desk.put("r1", "ai-query-log.json")
    desk.put("a,b", "ai-query-log.json")
    result = evaluated(instance, desk.home, None)
    (request,) = result.run_requests
    (added,) = result.dynamic_partitions_requests
    (observed,) = result.asset_events
    sha = listing.file_receipt(desk.home / "rounds/r1/inbox/ai-query-log.json")
    assert (request.partition_key, request.run_key) == ("r1", f"r1:query_log:{sha}")
    assert [key.path[-1] for key in request.asset_selection] == ["log_attestation"]
    assert (added.partitions_def_name, list(added.partition_keys)) == ("rounds", ["r1"])
    assert (observed.partition, observed.tags["dagster/data_version"]) == ("r1", sha)

    job = defs.resolve_job_def("score_round_job")
    instance.create_run_for_job(job, tags=dict(request.tags) | {RUN_KEY_TAG: request.run_key})
    again = evaluated(instance, desk.home, None)
    assert again.run_requests == []
    assert "ingested already" in again.skip_reason.skip_message
    assert "no round's" in again.skip_reason.skip_message
    quiet = evaluated(instance, desk.home, result.cursor)
    assert quiet.run_requests == []
