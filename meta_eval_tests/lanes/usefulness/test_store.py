"""The store counts the verdict again in SQL, and finds any figure that Python did not count so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.usefulness import evidence_rows
from meta_eval_tests.lanes.usefulness.world import World, found, whole
from meta_eval_tests.valid_world import deep


def loaded(folder: Path, w: World, *, accepted: Artifact | None = None) -> EvidenceStore:
    store = EvidenceStore(folder, (evidence_rows.SCHEMA,))
    made = {**w.made, "accept": accepted or w.made["accept"]}
    for name in ("seal set-a", "record-runs", "score 1", "score 2", "adjudicate", "unblind", "accept"):
        store.load(made[name], evidence_rows.tables_of(made[name]))
    return store


def test_every_table_has_its_rows(tmp_path: Path) -> None:
    w = whole()
    store = loaded(tmp_path, w)
    counts = {
        name: store.rows(f"SELECT count(*) FROM {name}")[0][0]  # noqa: S608 - a table name of ours
        for name in ("packets", "runs", "scores", "adjudications", "acceptance", "custody_events", "budget_entries")
    }
    assert counts == {
        "packets": 1,
        "runs": len(w.documents["runs"]["runs"]),
        "scores": 480,
        "adjudications": 10,
        "acceptance": 24,
        "custody_events": w.before["accept"],
        "budget_entries": len(w.ledger),
    }


@pytest.mark.parametrize("name", ["accepted", "lower-in-one-set"])
def test_sql_and_python_agree(name: str, tmp_path: Path) -> None:
    w = whole(name)
    store = loaded(tmp_path, w)
    assert store.rows("SELECT * FROM acceptance_disagreements") == []
    recomputed = dict(store.rows("SELECT coalesce(set_id, 'both') || '/' || figure, value FROM recomputed_acceptance"))
    result = w.made["accept"]["result"]
    assert len(recomputed) == 24
    assert recomputed["set-a/candidateUseful"] == result["sets"]["set-a"]["useful"]["candidate"]
    assert recomputed["both/gain"] == result["combined"]["gain"]


def forged(edit: Any) -> Artifact:
    """The acceptance with one figure changed and its digest redone: what a store alone would have to believe."""
    artifact = deep(whole().made["accept"])
    edit(artifact)
    return artifact | {"digest": digest_of(artifact)}


@pytest.mark.parametrize(
    "edit",
    [
        lambda a: a["result"]["sets"]["set-a"].update(recoveries=10),
        lambda a: a["result"]["combined"]["useful"].update(candidate=92),
        lambda a: a["result"]["met"].update({"leastUseful:set-a": False}),
        lambda a: a.update(status="failed"),
    ],
)
def test_sql_finds_a_figure_that_python_did_not_count(edit: Any, tmp_path: Path) -> None:
    store = loaded(tmp_path, whole(), accepted=forged(edit))
    assert store.rows("SELECT count(*) FROM acceptance_disagreements")[0][0] >= 1


def test_a_blocked_artifact_adds_no_rows() -> None:
    blocked = whole().accepted(entries=whole().entries("unblind"))
    assert found(blocked)
    assert evidence_rows.tables_of(blocked) == {}


def test_every_table_and_column_is_described(tmp_path: Path) -> None:
    store = loaded(tmp_path, whole())
    tables = "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL"
    columns = (
        "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND table_name IN "
        "(SELECT table_name FROM duckdb_tables())"
    )
    assert store.rows(tables) == []
    assert store.rows(columns) == []
