"""The artifact rebuilds from its replay, survives no change, and SQL finds every verdict that Python found."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.sessions import evidence_rows
from meta_eval.lanes.sessions.contracts import contract_blockers
from meta_eval.lanes.sessions.journal import append, read_journal
from meta_eval.lanes.sessions.projection import document_of, ledger_of
from meta_eval.lanes.sessions.record import RecordError
from meta_eval.lanes.sessions.rubric import VERSIONS
from meta_eval.lanes.sessions.scored_sessions import scored_sessions
from meta_eval.lanes.sessions.scoring import score_all, score_one
from meta_eval.lanes.sessions.steps import REBUILDS, Metrics, scored_artifact
from meta_eval_tests.lanes.sessions.ledgers import MADE, RUBRICS, SHARED, event, folder, gate, session
from meta_eval_tests.lanes.sessions.ledgers import ledger_of as read

NOW = 1_787_000_000_000
INPUTS = {"rubric": {"receipt": "ab" * 32}}


def mixed_world(path: Path, seed: int = 1, sessions: int = 120, events: int = 900) -> Path:
    """Every kind of trouble at once: overlaps, no ends, reversed windows, wrong types, ties, zoneless instants."""
    chance = random.Random(seed)  # noqa: S311 - a seeded world, not a secret

    def instant(minute: int, zone: str = "Z") -> str:
        return f"2026-08-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00{zone}"

    records = []
    for number in range(sessions):
        start = number * 60 + chance.randrange(30)
        end = start + chance.choice([20, 25, 60, 90, -5])
        records.append(
            session(
                chance.choice([f"s{number}", f"s{number}", f"s{number - 1}", "", 5]),
                started_at=instant(start, chance.choice(["Z", "Z", "Z", ""])),
                completed_at=chance.choice([instant(end), instant(end), instant(end), None, "soon"]),
                status=chance.choice(["completed", "completed", ..., "abandoned"]),
                total_files_changed=chance.choice([0, 3, ..., "3"]),
                total_waves=chance.choice([0, 2, ..., "2", -1]),
                waves=chance.choice([[], [{"role": "Housekeeping", "coordinator_direct": True}], [1], ..., "x"]),
                agent_summary={"complete": 1, "spiral": chance.choice([0, 0, 0, 2, None, "2", [], 1e999])},
                effectiveness=chance.choice(
                    [
                        ...,
                        {"completion_rate": 0.8},
                        {"completion_rate": 0.79},
                        {"planned_issues": 2},
                        {"planned_issues": "2"},
                    ]
                ),
            )
        )
    stream = []
    for _ in range(events):
        minute = chance.randrange(sessions * 60)
        made = chance.choice(
            [
                gate("10:00", chance.choice([0, 0, 0, 1, None, []]), full=chance.random() < 0.5),
                event("10:00", "destructive_guard.blocked", session_id=chance.choice(["u1", "u2"])),
                event("10:00", "loop.warning"),
                event("10:00", "wave.started", session_id="u1", semantic_session_id=f"s{chance.randrange(sessions)}"),
            ]
        )
        stream.append(made | {"timestamp": instant(minute, "" if chance.random() < 0.01 else "Z")})
    return folder(path, records, stream)


def artifact_of(path: Path, rubric: str) -> Artifact:
    return scored_sessions(read(path, rubric), RUBRICS[rubric], made_at=NOW, inputs=INPUTS, name="demo")


def stored(path: Path, artifact: Artifact) -> EvidenceStore:
    store = EvidenceStore(path, [evidence_rows.SCHEMA])
    assert store.load(artifact, evidence_rows.tables_of(artifact))
    return store


@pytest.mark.parametrize("rubric", ["v1", "v2"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sql_batch_and_single_agree_on_every_session(tmp_path: Path, rubric: str, seed: int) -> None:
    path = mixed_world(tmp_path / "metrics", seed)
    ledger, artifact = read(path, rubric), artifact_of(path, rubric)
    batch = {each.session_id: each.dimensions for each in score_all(ledger, RUBRICS[rubric])}
    assert len(batch) > 30
    assert batch == {name: score_one(ledger, RUBRICS[rubric], name).dimensions for name in batch}
    assert {each["sessionId"]: each["statuses"] for each in artifact["result"]["verdicts"]} == {
        name: {each["id"]: each["status"] for each in dimensions} for name, dimensions in batch.items()
    }
    store = stored(tmp_path / "store", artifact)
    assert store.rows("SELECT * FROM session_verdict_disagreements") == []
    ((recomputed,),) = store.rows("SELECT count(*) FROM recomputed_session_verdicts")
    assert recomputed == sum(map(len, batch.values()))
    seen = {status for (status,) in store.rows("SELECT DISTINCT status FROM session_dimensions")}
    assert seen == {"pass", "fail", "not-applicable", "cannot-determine"}


def test_every_scored_session_has_its_dimensions_kpis_and_window(tmp_path: Path) -> None:
    store = stored(tmp_path / "store", artifact_of(mixed_world(tmp_path / "metrics"), "v2"))
    ((sessions, dimensions, kpis),) = store.rows(
        "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM session_dimensions), "
        "(SELECT count(*) FROM session_kpis)"
    )
    assert (dimensions, kpis) == (6 * sessions, 6 * sessions)
    assert store.rows("SELECT count(*) > 0 FROM session_events_attributed WHERE attribution = 'session-id'") == [
        (True,)
    ]
    uncommented = store.rows(
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL UNION ALL "
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL"
    )
    assert uncommented == []
    assert (
        store.rows(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL "
            "AND table_name IN (SELECT table_name FROM duckdb_tables())"
        )
        == []
    )


def test_a_verdict_changed_in_the_store_is_a_disagreement(tmp_path: Path) -> None:
    artifact = artifact_of(mixed_world(tmp_path / "metrics"), "v1")
    tables = dict(evidence_rows.tables_of(artifact))
    rows = tables["session_dimensions"].to_pylist()
    rows[0]["status"] = "pass" if rows[0]["status"] != "pass" else "fail"
    tables["session_dimensions"] = tables["session_dimensions"].from_pylist(
        rows, schema=tables["session_dimensions"].schema
    )
    store = EvidenceStore(tmp_path / "store", [evidence_rows.SCHEMA])
    store.load(artifact, tables)
    ((session_id, dimension),) = store.rows("SELECT session_id, dimension FROM session_verdict_disagreements")
    assert (session_id, dimension) == (rows[0]["session_id"], rows[0]["dimension"])


@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_a_replay_has_the_facts_of_its_ledger(tmp_path: Path, rubric: str) -> None:
    ledger = read(mixed_world(tmp_path), rubric)
    document = json.loads(json.dumps(document_of(ledger)))
    again = ledger_of(document)
    assert [each.dimensions for each in score_all(again, RUBRICS[rubric])] == [
        each.dimensions for each in score_all(ledger, RUBRICS[rubric])
    ]
    assert document_of(again) == document


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield value, key
        yield from leaves(child)


def test_no_changed_leaf_outside_the_replay_survives_a_recomputed_digest(tmp_path: Path) -> None:
    path = folder(
        tmp_path, [session("a"), session("b", "12:00", "13:00")], [gate("10:10"), gate("12:10", 1, full=True)]
    )
    artifact = artifact_of(path, "v1")
    assert verified(artifact, REBUILDS) == artifact
    places = [key for key in artifact if key not in ("replay", "inputs", "digest", "round", "madeAt")]
    tried = 0
    for place in places:
        for number in range(sum(1 for _ in leaves({place: artifact[place]}))):
            for change in ("other", 7, None, True):
                changed = copy.deepcopy(artifact)
                holder, key = list(leaves({place: changed[place]}))[number]
                if holder[key] == change and type(holder[key]) is type(change):
                    continue
                holder[key] = change
                if place in holder:
                    changed[place] = change
                changed["digest"] = digest_of(changed)
                tried += 1
                with pytest.raises(VerificationError):
                    verified(changed, REBUILDS)
    assert tried > 150


def test_a_replay_that_was_changed_gives_other_verdicts_and_is_refused(tmp_path: Path) -> None:
    artifact = artifact_of(folder(tmp_path, [session("a")], [gate("10:10", 1)]), "v1")
    changed = copy.deepcopy(artifact)
    changed["replay"]["ledger"]["timed"] = {"gate/green": changed["replay"]["ledger"]["timed"]["gate/red"]}
    changed["digest"] = digest_of(changed)
    with pytest.raises(VerificationError):
        verified(changed, REBUILDS)


@pytest.mark.parametrize(
    ("ledgers", "code"), [(None, "session-ledger-absent"), ([session(status="abandoned")], "no-eligible-session")]
)
def test_a_ledger_with_nothing_to_score_is_blocked_and_says_why(tmp_path: Path, ledgers: Any, code: str) -> None:
    path = folder(tmp_path / "metrics", ledgers or [], [])
    if ledgers is None:
        (path / "sessions.jsonl").unlink()
    artifact = scored_artifact(Metrics.of(path), "v1", made_at=NOW, name=None)
    assert (artifact["status"], [each["code"] for each in artifact["blockers"]]) == ("blocked", [code])
    assert evidence_rows.tables_of(artifact) == {}
    assert verified(artifact, REBUILDS) == artifact


def test_the_contracts_take_a_ledger_and_refuse_what_cannot_be_one(tmp_path: Path) -> None:
    ledger = read(mixed_world(tmp_path))
    assert contract_blockers(ledger) == []
    ledger.lines = [*ledger.lines, ledger.lines[0]]
    assert [(each.code, each.subject) for each in contract_blockers(ledger)] == [("repeated", "session_records.line")]


def test_nothing_of_a_session_but_what_the_rubric_reads_is_in_the_artifact(tmp_path: Path) -> None:
    private = {"notes": "canary-note", "branch": "canary-branch", "prompt": "canary-prompt"}
    events = [
        gate("10:10", detail="canary-detail", session_id="canary-raw"),
        event("10:11", "loop.warning", session_id="canary-raw"),
    ]
    artifact = artifact_of(folder(tmp_path, [session(**private)], events), "v2")
    assert "canary" not in json.dumps(artifact)


@pytest.mark.skipif(not SHARED.exists(), reason="the reference's ledgers are not beside this project")
@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_sql_agrees_on_the_ledgers_of_the_oracle(tmp_path: Path, rubric: str) -> None:
    """All plain ledgers at once would overlap, so each keeps its own days: one artifact for many rows of the oracle."""
    from meta_eval_tests.lanes.sessions.test_oracle import lay_out, rows

    store = EvidenceStore(tmp_path / "store", [evidence_rows.SCHEMA])
    loaded = 0
    for number, row in enumerate(row for row in rows("engine")[::30]):
        artifact = artifact_of(lay_out(row["files"], tmp_path / str(number)), rubric)
        if artifact["status"] == "ready":
            loaded += store.load(artifact, evidence_rows.tables_of(artifact))
    assert loaded > 15
    assert store.rows("SELECT * FROM session_verdict_disagreements") == []


def test_v1_and_v2_live_in_one_journal(tmp_path: Path) -> None:
    path = mixed_world(tmp_path)
    journal = tmp_path / "eval.jsonl"
    for name, version in VERSIONS.items():
        made = replace(MADE, rubric_version=version.name)
        found = [each.record(made) for each in score_all(read(path, name), RUBRICS[name])]
        # A negative count of waves is refused by the record contract, in the reference as here.
        append(journal, [each for each in found if each["kpis"]["total_waves"] != -1])
    assert {each["rubric_version"] for each in read_journal(journal).records} == {"rubric-v1", "rubric-v2"}
    with pytest.raises(RecordError, match=r"kpis\.total_waves"):
        append(journal, found)
