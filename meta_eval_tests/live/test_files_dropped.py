"""Files that people drop while `dagster dev` runs: nobody clicks, and each is handled once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from meta_eval_tests.live import rounds
from meta_eval_tests.live.workbench import Workbench, until

_OBSERVED = """query O($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
    assetObservations(limit: 1000) { partition } } } }"""


def verdicts(home: Path) -> list[dict[str, Any]]:
    folder = home / "rounds" / "scored" / "artifacts" / "production-metrics"
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


def observed(bench: Workbench, name: str) -> list[str]:
    answer = bench.ask(_OBSERVED, key={"path": ["production", "inbox", name]})
    return [one["partition"] for one in answer["assetOrError"]["assetObservations"] if "burst" in one["partition"]]


def test_changed_reviews_lead_to_a_new_verdict_without_a_click(bench: Workbench) -> None:
    until(lambda: len(verdicts(bench.home)) == 2, seconds=240, what="the round is scored again")
    before, after = verdicts(bench.home)
    # 40 answerable cases of one citation each; one citation is no longer supported.
    assert before["result"]["metrics"]["citationAccuracy"]["numerator"] == 40
    assert after["result"]["metrics"]["citationAccuracy"]["numerator"] == 39

    def done() -> bool:
        runs = bench.runs(round="scored")
        judged = [run for run in runs if {"path": ["production", "readiness"]} in run["assetSelection"]]
        return len(runs) - len(judged) == 2 and bool(judged) and {run["status"] for run in runs} == {"SUCCESS"}

    until(done, seconds=120, what="one run made the bundle, one the verdict, and the release was judged")


def test_each_file_of_a_burst_is_handled_once_and_the_unreadable_one_is_named(bench: Workbench) -> None:
    waiting = [f"burst-{n:03}" for n in range(rounds.BURST)]
    waiting = [name for name in waiting if name not in (*rounds.LOGS, rounds.UNREADABLE)]
    until(lambda: len(observed(bench, "run_operator")) >= len(waiting), seconds=120, what="the burst is seen")
    until(
        lambda: all([run["status"] for run in bench.runs(round=name)] == ["SUCCESS"] for name in rounds.LOGS),
        seconds=240,
        what="each log has one run",
    )
    handled = len(bench.ticks("inbox_sensor"))
    until(lambda: len(bench.ticks("inbox_sensor")) > handled, seconds=60, what="inbox_sensor looks again")
    assert sorted(observed(bench, "run_operator")) == waiting
    assert [len(bench.runs(round=name)) for name in rounds.LOGS] == [1] * len(rounds.LOGS)
    reasons = [tick["skipReason"] or "" for tick in bench.ticks("inbox_sensor")]
    assert any(f"{rounds.UNREADABLE}: run-operator.json cannot be read" in reason for reason in reasons)
    assert not [tick["error"] for tick in bench.ticks("inbox_sensor") if tick["error"]]


def test_nothing_private_was_logged(bench: Workbench) -> None:
    files = [bench.log, *(file for file in (bench.home.parent / "dagster").rglob("*") if file.is_file())]
    for file in files:
        assert b"canary" not in file.read_bytes(), file.name
