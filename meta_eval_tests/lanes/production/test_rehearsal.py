"""Rehearsals: a good one ends rehearsed, a missed threshold is the one asked for, a broken rule stops its stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import stages
from meta_eval.lanes.production.query_log import OUTCOMES
from meta_eval.lanes.production.rehearsal import invented_log, people
from meta_eval.lanes.production.rehearsal.faults import BREAKS, MISSES
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import Setting

VERDICT = 1_796_000_000_000
ROWS = 900


def played(folder: Path, **script: object) -> tuple[bool, list[tuple[str, Artifact]]]:
    """A rehearsal played without Dagster, and what each stage made."""
    round_ = Round(folder, "rehearsal")
    made: list[tuple[str, Artifact]] = []

    def run(names: Sequence[str], at: int) -> bool:
        for stage in names:
            kept = stages.advance(round_, stages.stage_named(stage), Setting(at, round_.name))
            made.append((stage, kept.artifact))
            if kept.artifact["status"] not in ("ready", "rehearsed"):
                return False
        return True

    return play(round_, Script(VERDICT, rows=ROWS, **script), run), made  # type: ignore[arg-type]


def test_a_rehearsal_ends_rehearsed_with_rows_of_every_outcome(tmp_path: Path) -> None:
    good, made = played(tmp_path)
    assert good
    assert [stage for stage, _ in made] == [stage.name for stage in stages.STAGES]
    assert made[-1][1]["status"] == "rehearsed"
    counts = made[0][1]["result"]["outcomes"]
    assert set(counts) == set(OUTCOMES)
    assert min(counts.values()) > 0
    assert sum(counts.values()) == ROWS
    agreement = made[-1][1]["result"]["metrics"]["agreement"]
    assert agreement["pairs"] > 0


def test_the_same_seed_and_clock_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    played(first)
    played(second)
    one = {path.relative_to(first): path.read_bytes() for path in first.rglob("*") if path.is_file()}
    other = {path.relative_to(second): path.read_bytes() for path in second.rglob("*") if path.is_file()}
    assert one == other
    assert len(one) > 15


@pytest.mark.parametrize("metric", MISSES)
def test_a_missed_threshold_is_the_one_asked_for_and_no_other(tmp_path: Path, metric: str) -> None:
    good, made = played(tmp_path, miss=metric)
    assert not good
    stage, verdict = made[-1]
    assert (stage, verdict["status"], verdict["result"]["missed"]) == ("production_metrics", "failed", [metric])


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_rule_stops_the_line_at_its_stage_and_nothing_is_written_beyond(tmp_path: Path, rule: str) -> None:
    good, made = played(tmp_path, break_rule=rule)
    assert not good
    stage, artifact = made[-1]
    assert (stage, artifact["status"]) == (BREAKS[rule].stage, "blocked")
    assert rule in {blocker["code"] for blocker in artifact["blockers"]}
    round_ = Round(tmp_path, "rehearsal")
    exported = list(round_.private.glob("question-export-*.json"))
    worksheets = [path.name for path in round_.worksheets.glob("*worksheet*")]
    assert bool(exported) == (stage != "question_export")
    assert any(name.startswith("observation") for name in worksheets) == (stage == "assembled_bundle")
    assert not round_.artifact_files("production-metrics")


def test_questions_from_a_file_are_labelled_by_their_intent(tmp_path: Path) -> None:
    lines = [
        f'{{"query": "invented request number {n}", "intent": "{"oos" if n % 3 else "opening hours"}"}}'
        for n in range(90)
    ]
    queries = tmp_path / "queries.jsonl"
    queries.write_text("\n".join(lines))
    asked, intents = invented_log.read_queries(queries)
    good, made = played(tmp_path / "rounds", queries=asked, intents=intents)
    labels = dict(made)["frozen_labels"]
    assert (labels["result"]["answerableCount"], labels["result"]["refusalCount"]) == (30, 60)
    claims = {claim for case in labels["replay"]["labels"]["cases"] for claim in case["relevantClaimIds"]}
    assert claims == {"opening-hours"}
    assert good or made[-1][1]["status"] == "failed"


def test_the_labeller_refuses_exactly_the_topics_that_are_stated() -> None:
    assert people._expected_claim("Who made object 12?", {}) == "who-made-object-12"
    for topic in people.REFUSED_TOPICS:
        assert people._expected_claim(f"Tell me about {topic.upper()} of object 12", {}) is None


CLINC = Path(__file__).resolve().parents[4] / "shared" / "data" / "clinc150-queries.jsonl"


@pytest.mark.skipif(not CLINC.exists(), reason="the shared data folder is absent")
def test_real_requests_go_through_every_stage(tmp_path: Path) -> None:
    """The first 3,000 of 23,700 crowd-written requests: out-of-scope ones first, then those with an intent."""
    asked, intents = invented_log.read_queries(CLINC)
    assert len(asked) == 23_700
    some = asked[:1000] + asked[-2000:]
    good, made = played(tmp_path, queries=some, intents=intents)
    assert good, made[-1][1]["blockers"]
    counts = made[0][1]["result"]["outcomes"]
    assert counts["eligible"] + counts["duplicate"] == len(some), "none is taken for a contact detail"
    labels = dict(made)["frozen_labels"]["result"]
    assert labels["refusalCount"] > 900
    assert labels["answerableCount"] > 1500
