"""SQL, the batch and the single entry point find the same verdicts for every session, of small ledgers and a large."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from meta_eval.lanes.sessions.facts import FactFinder
from meta_eval.lanes.sessions.scoring import score_all, score_one
from meta_eval_tests.lanes.sessions.ledgers import RUBRICS, SHARED, ledger_of
from meta_eval_tests.lanes.sessions.test_scored_sessions import artifact_of, mixed_world, stored

GENERATOR = SHARED / "oracle" / "gen_large.py"


def disagreeing(path: Path, store: Path, rubric: str) -> tuple[int, list[object]]:
    """How many sessions were compared, and everything in which the three ways differ."""
    ledger, artifact = ledger_of(path, rubric), artifact_of(path, rubric)
    batch = {each.session_id: each.dimensions for each in score_all(ledger, RUBRICS[rubric])}
    finder = FactFinder(ledger)
    found: list[object] = [
        name for name, said in batch.items() if score_one(finder, RUBRICS[rubric], name).dimensions != said
    ]
    kept = stored(store, artifact)
    written = kept.rows("SELECT session_id, dimension, status, evidence FROM session_dimensions ORDER BY ALL")
    due = [(name, each["id"], each["status"], each["evidence"]) for name, said in batch.items() for each in said]
    found += sorted({*written} ^ {*due})
    recomputed = kept.rows("SELECT session_id, dimension, status FROM recomputed_session_verdicts ORDER BY ALL")
    found += sorted({*recomputed} ^ {row[:3] for row in due})
    found += [] if len(written) == len(recomputed) == len(due) else [(len(written), len(recomputed), len(due))]
    return len(batch), found + kept.rows("SELECT * FROM session_verdict_disagreements")


@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_three_ways_agree_on_every_session_of_a_troubled_ledger(tmp_path: Path, rubric: str) -> None:
    compared, found = disagreeing(mixed_world(tmp_path / "m", 11, 300, 4_000), tmp_path / "store", rubric)
    assert compared > 80
    assert found == []


def test_a_single_call_finds_the_same_with_indexes_of_its_own(tmp_path: Path) -> None:
    ledger = ledger_of(mixed_world(tmp_path, 12, 60, 600), "v2")
    finder = FactFinder(ledger)
    names = [None, *(each.session_id for each in score_all(ledger, RUBRICS["v2"]))]
    for name in names:
        assert score_one(ledger, RUBRICS["v2"], name) == score_one(finder, RUBRICS["v2"], name)


@pytest.mark.skipif(not GENERATOR.exists(), reason="the reference's ledgers are not beside this project")
@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_three_ways_agree_on_every_session_of_the_large_ledger(tmp_path: Path, rubric: str) -> None:
    command = [sys.executable, str(GENERATOR), str(tmp_path / "m"), "--sessions", "5000", "--events", "500000"]
    subprocess.run(command, check=True)
    compared, found = disagreeing(tmp_path / "m", tmp_path / "store", rubric)
    assert compared > 4_000
    assert found == []
