"""The rounds of the live tests: what lies there before `dagster dev` starts, and what people drop afterwards.

`broken` ran in Dagster and is blocked at its bundle. `ready` came through in the terminal, so Dagster has seen nothing
of it. `scored` has a verdict, and gets changed reviews.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import dagster as dg

from meta_eval.evidence.chronology import DAY_MS
from meta_eval_tests.defs.people import People, play
from meta_eval_tests.defs.stagehand import Stagehand
from meta_eval_tests.live.workbench import environment

BURST, UNREADABLE = 200, "burst-077"
LOGS = ("burst-011", "burst-050", "burst-123", "burst-199")


def prepare(folder: Path) -> None:
    """Three rounds that began three days ago, so that their traces are fresh on the day of the test."""
    begin = time.time_ns() // 1_000_000 - 3 * DAY_MS
    with dg.DagsterInstance.from_config(environment(folder)["DAGSTER_HOME"]) as instance:
        hand = Stagehand(folder, instance)
        for name in ("ready", "scored"):
            play(hand.people(name, begin=begin), lambda stages, at, name=name: hand.advance(name, stages, at))
        play(hand.people("broken", begin=begin), lambda stages, at: _broken(hand, stages, at))


def _broken(hand: Stagehand, stages: str, at: str) -> None:
    if "assembled_bundle" in stages:
        _change_reviews(hand.home, "broken", lambda document: document["reviews"][0]["decisions"].clear())
    hand.run("broken", stages, at)


def _change_reviews(home: Path, round_name: str, change: Any) -> None:
    path = home / "rounds" / round_name / "inbox" / "reviews.json"
    document = json.loads(path.read_bytes())
    change(document)
    aside = path.with_name(".reviews.json.part")
    aside.write_text(json.dumps(document), encoding="utf-8")
    aside.replace(path)  # as a careful sync tool does


def drop_reviews(home: Path) -> None:
    """A reviewer changed their mind about one citation."""

    def change(document: Any) -> None:
        document["reviews"][0]["decisions"][0]["supported"] = False

    _change_reviews(home, "scored", change)


def drop_burst(home: Path) -> None:
    """A file in each of 200 inboxes: four logs, one file that no process can read, and the rest wait for more."""
    for number in range(BURST):
        people = People(home, f"burst-{number:03}", begin=time.time_ns() // 1_000_000)
        if people.round == UNREADABLE:
            people.put("run-operator.json", {}).unlink()
            # Root reads no such thing either.
            (people.folder / "inbox" / "run-operator.json").symlink_to("/proc/self/mem")
        elif people.round in LOGS:
            people.query_log()
        else:
            people.run_operator()
