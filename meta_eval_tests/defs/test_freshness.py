"""What is out of date and what failed, as the web page tells it: by round, by value, and never by a file's time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from meta_eval.definitions import defs
from meta_eval.defs.production.assets import inbox_key, stage_key
from meta_eval.defs.production.sensors import inbox_sensor
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.lanes.production.stages import STAGES
from meta_eval_tests.defs.people import People
from meta_eval_tests.defs.stagehand import Stagehand


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stagehand]:
    """An instance of its own: two rounds, the first of them blocked, the second good and observed by its runs alone."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "dagster").mkdir()
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        made = Stagehand(folder, instance)
        blocked = made.people("first")
        blocked.query_log(rows=10)
        made.run("first", "log_attestation", blocked.at())
        made.play(made.people("second"))
        yield made


@pytest.fixture(scope="module")
def second(hand: Stagehand) -> People:
    return hand.people("second")


def stale(hand: Stagehand, round_name: str) -> set[str]:
    """The stages of a round that Dagster calls out of date, as its page does."""
    resolver = CachingStaleStatusResolver(
        hand.instance, defs.resolve_asset_graph(), LoadingContextForTest(hand.instance)
    )
    return {
        stage.name for stage in STAGES if resolver.get_status(stage_key(stage.name), round_name) is StaleStatus.STALE
    }


def looked(hand: Stagehand, cursor: str | None) -> dg.SensorResult:
    """One look at the inboxes, its observations recorded as the daemon records them."""
    home = MetaEvalHome(home=str(hand.home))
    with dg.build_sensor_context(instance=hand.instance, cursor=cursor) as context:
        result = inbox_sensor(context, home=home)
    assert isinstance(result, dg.SensorResult)
    for event in result.asset_events:
        hand.instance.report_runless_asset_event(event)
    return result


def aged(path: Path) -> Path:
    """The file, as if it had been there for a minute: it has stopped growing."""
    then = time.time() - 60
    os.utime(path, (then, then))
    return path


def test_a_round_is_up_to_date_once_it_ran_also_after_another_round(hand: Stagehand, second: People) -> None:
    """Each stage observes the files it reads; Dagster must count that among what the stage was made from."""
    assert stale(hand, "second") == set()


def test_a_resaved_identical_file_makes_nothing_stale_and_one_changed_value_does(
    hand: Stagehand, second: People
) -> None:
    path = aged(second.folder / "inbox" / "observations.json")
    cursor = looked(hand, None).cursor
    same = path.read_bytes()
    path.unlink()
    path.write_bytes(same)
    aged(path)
    resaved = looked(hand, cursor)
    assert (list(resaved.asset_events), list(resaved.run_requests or [])) == ([], [])
    assert stale(hand, "second") == set()

    assert same.count(b'"latencyMs": 100,') == 1
    path.write_bytes(same.replace(b'"latencyMs": 100,', b'"latencyMs": 101,'))
    then = time.time() - 50
    os.utime(path, (then, then))
    changed = looked(hand, resaved.cursor)
    (event,) = changed.asset_events
    assert (event.asset_key, event.partition) == (inbox_key("observations"), "second")
    assert [request.partition_key for request in changed.run_requests or []] == ["second"]
    assert stale(hand, "second") - {"production_metrics"} == {"assembled_bundle"}
    assert stale(hand, "first") == set()


def test_the_success_of_a_second_round_does_not_hide_the_failure_of_the_first(hand: Stagehand, second: People) -> None:
    key = dg.AssetCheckKey(stage_key("log_attestation"), "every_gate_passed")
    records = hand.instance.event_log_storage.get_asset_check_partition_info([key])
    assert {one.partition_key: one.latest_execution_status for one in records} == {
        "first": AssetCheckExecutionRecordStatus.FAILED,
        "second": AssetCheckExecutionRecordStatus.SUCCEEDED,
    }


def test_automation_asks_for_nothing_and_what_is_asked_for_past_a_failed_check_is_refused(
    hand: Stagehand, second: People
) -> None:
    """An operator may add conditions of their own: `eager` that minds checks does not ask either."""
    assert dg.evaluate_automation_conditions(defs, hand.instance).total_requested == 0
    minding = dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()
    automated = defs.map_resolved_asset_specs(func=lambda spec: spec.replace_attributes(automation_condition=minding))
    asked = dg.evaluate_automation_conditions(automated, hand.instance)
    assert "first" not in asked.get_requested_partitions(stage_key("question_export"))
    (report,) = hand.run("first", "question_export", hand.people("first").at(minutes=5))
    assert (report["state"], report["status"]) == ("refused", None)
    assert not (hand.home / "rounds" / "first" / "artifacts" / "question-export").exists()
