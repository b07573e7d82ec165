"""A round that the terminal carried to its verdict: opening Dagster on it runs nothing anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from meta_eval.defs.production.sensors import inbox_sensor
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.lanes.production import stages
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import Setting

VERDICT = 1_796_000_000_000


def _look(home: Path, instance: dg.DagsterInstance, cursor: str | None) -> dg.SensorResult:
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"home": MetaEvalHome(home=str(home))}
    )
    result = inbox_sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result


def test_files_that_the_terminal_has_taken_in_are_no_news_to_the_sensor(tmp_path: Path) -> None:
    round_ = Round(tmp_path / "rounds", "r-1")

    def run(names: Sequence[str], at: int) -> bool:
        for name in names:
            stages.advance(round_, stages.stage_named(name), Setting(at, "r-1"))
        return True

    assert play(round_, Script(VERDICT, rows=600), run)
    with dg.instance_for_test() as instance:
        first = _look(tmp_path, instance, None)
        second = _look(tmp_path, instance, first.cursor)
        assert not first.run_requests
        assert not second.run_requests
        [added] = first.dynamic_partitions_requests or second.dynamic_partitions_requests or []
        assert added.partition_keys == ["r-1"]
        # A changed file is news all the same.
        reviews = round_.inbox / "reviews.json"
        reviews.write_text(reviews.read_text() + " ")
        third = _look(tmp_path, instance, second.cursor)
        requests = third.run_requests or _look(tmp_path, instance, third.cursor).run_requests or []
        assert [list(request.asset_selection or []) for request in requests] == [
            [dg.AssetKey(["production", "assembled_bundle"])]
        ]


def test_a_ready_stage_is_not_judged_again_at_another_time_while_its_inputs_stand(tmp_path: Path) -> None:
    round_ = Round(tmp_path / "rounds", "r-1")
    made: dict[str, str] = {}

    def run(names: Sequence[str], at: int) -> bool:
        for name in names:
            made[name] = stages.advance(round_, stages.stage_named(name), Setting(at, "r-1")).artifact["digest"]
        return True

    assert play(round_, Script(VERDICT, rows=600), run)
    days_later = Setting(VERDICT + 20 * 86_400_000, "r-1")
    for stage in stages.STAGES:
        kept = stages.advance(round_, stage, days_later)
        assert (kept.reused, kept.artifact["digest"]) == (True, made[stage.name]), stage.name
