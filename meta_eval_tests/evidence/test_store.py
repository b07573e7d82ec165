"""The store: whole bundles only, once each, one writer at a time, and SQL that agrees with Python."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.artifacts import digest_of
from meta_eval.evidence.errors import StoreBusyError, StoreError
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.catalogue import SCHEMAS, evidence_store, tables_of
from meta_eval_tests.lanes.production.broken import SMALL_POLICY, papers, scored, whole
from meta_eval_tests.valid_world import World

SMALL = {"cases": 6, "answerable": 4, "policy": SMALL_POLICY}


def load(store: EvidenceStore, *artifacts: Any) -> list[bool]:
    return [store.load(artifact, tables_of(artifact)) for artifact in artifacts]


def loaded(folder: Path, made: Any) -> EvidenceStore:
    store = evidence_store(folder)
    load(store, made.frozen, made.bundle, made.verdict)
    return store


def count(store: EvidenceStore, table: str) -> int:
    return int(store.rows(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608


def test_a_digest_is_loaded_once_whole_and_again_changes_nothing(tmp_path: Path) -> None:
    store, made = evidence_store(tmp_path), whole(**SMALL)
    assert load(store, made.frozen, made.bundle, made.verdict) == [True, True, True]
    tables = ("artifacts", "artifact_inputs", "label_cases", "label_claims", "traces", "emitted_claims")
    before = [count(store, table) for table in (*tables, "citation_decisions", "metrics")]
    assert before == [3, 2 + 6 + 2, 6, 4, 6, 4, 4, 7]
    assert load(store, made.frozen, made.bundle, made.verdict) == [False, False, False]
    assert [count(store, table) for table in (*tables, "citation_decisions", "metrics")] == before


def test_a_blocked_artifact_loads_its_blockers_and_no_rows(tmp_path: Path) -> None:
    broken = papers(**SMALL)
    broken.policy = SMALL_POLICY
    broken.observed(0)["latencyMs"] = -1
    blocked = broken.assembled()
    store = evidence_store(tmp_path)
    load(store, blocked)
    assert store.rows("SELECT code, subject, count FROM blockers") == [
        ("not-a-latency", "observations.observations[].latencyMs", 1)
    ]
    assert [count(store, table) for table in ("traces", "emitted_claims", "citation_decisions")] == [0, 0, 0]


def test_rows_that_do_not_fit_leave_nothing_behind_and_quote_nothing(tmp_path: Path) -> None:
    store, made = evidence_store(tmp_path), whole(**SMALL)
    bad = pa.table({"case_id": ["canary"], "question_sha256": [None], "should_refuse": [True]})
    with pytest.raises(StoreError) as caught:
        store.load(made.frozen, {"label_cases": bad})
    assert "canary" not in str(caught.value)
    assert load(store, made.frozen) == [True], "the digest is not taken for loaded"
    assert count(store, "label_cases") == 6


def test_everything_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    loaded(folder, whole(**SMALL))
    assert folder.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert set(modes) == {"evidence.duckdb", "analyst.duckdb", "evidence.duckdb.lock"}


def test_every_table_column_and_view_has_a_comment(tmp_path: Path) -> None:
    store = loaded(tmp_path, whole(**SMALL))
    assert store.rows("SELECT table_name FROM duckdb_tables() WHERE comment IS NULL") == []
    bare = store.rows(
        "SELECT t.table_name, c.column_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_name)"
        " WHERE c.comment IS NULL"
    )
    assert bare == []
    assert store.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL") == []
    assert count(store, "duckdb_tables()") >= 9


def test_nothing_published_is_said_and_not_shown_as_empty(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing has been published"):
        evidence_store(tmp_path).rows("SELECT 1")


def test_readers_use_a_copy_that_no_writer_blocks(tmp_path: Path) -> None:
    store, made, other = evidence_store(tmp_path), whole(**SMALL), whole(**SMALL, overlap=6)
    load(store, made.frozen)
    with duckdb.connect(store.analyst_path, read_only=True) as reader:
        # An analyst who holds a connection for as long as whole rounds take to load.
        for artifact in (made.bundle, made.verdict, other.frozen, other.bundle, other.verdict):
            load(store, artifact)
            assert reader.execute("SELECT count(*) FROM artifacts").fetchall() == [(1,)], "the copy that was opened"
            assert reader.execute("SELECT count(*) FROM label_cases").fetchall() == [(6,)]
    assert count(store, "artifacts") == 5


# --- one writer at a time ---------------------------------------------------------------------------------------

HOLDER = textwrap.dedent(
    """
    import sys, time, duckdb
    connection = duckdb.connect(sys.argv[1])
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    """
)


def holder(path: Path, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_store_that_stays_locked_is_a_clear_error_after_our_patience(tmp_path: Path) -> None:
    made = whole(**SMALL)
    load(evidence_store(tmp_path), made.frozen)
    hasty = EvidenceStore(tmp_path, SCHEMAS, patience_s=0.4)
    process = holder(hasty.path, 30)
    try:
        started = time.monotonic()
        with pytest.raises(StoreBusyError, match=r"another process held .* for 0\.4 s"):
            load(hasty, made.bundle)
        assert 0.3 < time.monotonic() - started < 5
        assert count(hasty, "artifacts") == 1, "readers are not blocked"
    finally:
        process.kill()
        process.wait()
    assert load(hasty, made.bundle) == [True], "and all is well when it frees"


def test_a_store_that_frees_in_time_is_written(tmp_path: Path) -> None:
    made = whole(**SMALL)
    load(evidence_store(tmp_path), made.frozen)
    patient = EvidenceStore(tmp_path, SCHEMAS, patience_s=20)
    process = holder(patient.path, 0.5)
    assert load(patient, made.bundle) == [True]
    process.wait()


def test_eight_processes_load_eight_rounds_at_once_and_lose_nothing(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from meta_eval.lanes.catalogue import evidence_store, tables_of
        from meta_eval_tests.lanes.production.broken import SMALL_POLICY, whole
        made = whole(cases=6 + int(sys.argv[2]), answerable=4, policy=SMALL_POLICY)
        print("ready", flush=True)
        sys.stdin.readline()
        for artifact in (made.frozen, made.bundle, made.verdict):
            evidence_store(Path(sys.argv[1])).load(artifact, tables_of(artifact))
        """
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # none begins before all are ready
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait() for process in processes] == [0] * 8
    store = evidence_store(tmp_path)
    rows = store.rows("SELECT artifact_digest, count(*) FROM traces GROUP BY ALL ORDER BY 2")
    assert [cases for _, cases in rows] == [6, 7, 8, 9, 10, 11, 12, 13]
    assert count(store, "artifacts") == 24
    assert store.rows("SELECT count(DISTINCT artifact_digest) FROM recomputed_metrics") == [(8,)]
    assert store.rows("SELECT * FROM metric_disagreements") == []


@pytest.mark.parametrize("after", range(0, 12, 3))
def test_a_writer_killed_at_any_statement_leaves_a_store_with_whole_bundles_only(tmp_path: Path, after: int) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from meta_eval.evidence import store as module
        from meta_eval.lanes.catalogue import evidence_store, tables_of
        from meta_eval_tests.lanes.production.broken import SMALL_POLICY, whole
        made, left = whole(cases=6, answerable=4, policy=SMALL_POLICY), [int(sys.argv[2])]
        store = evidence_store(Path(sys.argv[1]))
        store.load(made.frozen, tables_of(made.frozen))
        class Doomed:
            def __init__(self, inner): self.inner = inner
            def __getattr__(self, name):
                if left[0] == 0: os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return getattr(self.inner, name)
        connected = store._connected
        store._connected = lambda deadline: Doomed(connected(deadline))
        store.load(made.bundle, tables_of(made.bundle))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(after)], check=False)
    assert run.returncode == -9
    made, store = whole(**SMALL), evidence_store(tmp_path)
    with duckdb.connect(store.path) as connection:
        kept = connection.execute(
            "SELECT (SELECT count(*) FROM artifacts), (SELECT count(*) FROM traces),"
            " (SELECT count(*) FROM emitted_claims), (SELECT count(*) FROM citation_decisions)"
        ).fetchall()
    assert kept[0] in ((1, 0, 0, 0), (2, 6, 4, 4))
    load(store, made.frozen, made.bundle, made.verdict)
    assert count(store, "artifacts") == 3
    assert count(store, "traces") == 6
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]


def test_a_writer_killed_before_its_publication_is_published_by_the_next(tmp_path: Path) -> None:
    store, made = evidence_store(tmp_path), whole(**SMALL)
    load(store, made.frozen)
    before = store.analyst_path.read_bytes()
    load(store, made.bundle)
    store.analyst_path.write_bytes(before)  # as if the last load had ended between its commit and its copy
    assert load(store, made.bundle) == [False]
    assert count(store, "artifacts") == 2


# --- two implementations of the figures ---------------------------------------------------------------------------

FIGURES = ("precision", "recall", "citationAccuracy", "refusalAccuracy")


def recomputed(store: EvidenceStore) -> dict[str, tuple[Decimal, int]]:
    return {
        name: (top, bottom)
        for name, top, bottom in store.rows("SELECT metric, numerator, denominator FROM recomputed_metrics")
    }


@st.composite
def rounds(draw: st.DrawFn) -> Any:
    """A small round with drawn refusals, claims, citations, latencies, costs and decisions, and classes of one case."""
    overlap = draw(st.sampled_from([0, 2, 6]))
    lenient = replace(SMALL_POLICY, version=96, least_cases_per_class=1, least_reviewed_citations=0)
    policy_world = World(cases=6, answerable=draw(st.integers(1, 5)), overlap=overlap, policy=lenient)
    pick = draw(st.randoms(use_true_random=False))
    silent = draw(st.integers(0, 4)) == 0

    def observe(document: Any) -> None:
        if silent:  # nothing is claimed at all, so that three denominators are empty
            for row in document["observations"]:
                row |= {"refused": True, "claims": []}
        for row in document["observations"]:
            row["latencyMs"] = pick.choice([1, 5, 5, 250.125, 10_000, 10_001])
            row["cost"]["amount"] = pick.choice(["0", "0.000000001", "12.5"])
            if row["claims"]:
                host = row["claims"][0]["citations"][0]
                row["claims"][0]["citations"] += [f"{host}/{n}" for n in range(pick.randrange(3))]
                row["claims"] += [{"claimId": f"more-{n}", "citations": [host]} for n in range(pick.randrange(3))]
        first = document["observations"][pick.randrange(6)]
        if pick.random() < 0.5 and sum(bool(row["claims"]) for row in document["observations"]) > 3:
            first |= {"refused": True, "claims": []}

    def label(document: Any) -> None:
        for case in document["cases"]:
            if case["relevantClaimIds"] and pick.random() < 0.3:
                case["relevantClaimIds"].append("more-0")

    return scored(policy_world, labels=label, observations=observe, decide=lambda *_: pick.random() < 0.7)


@given(rounds())
@settings(max_examples=25, deadline=None)
def test_sql_recomputes_what_python_computed(made: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = loaded(Path(folder), made)
        assert store.rows("SELECT * FROM metric_disagreements") == []
        if made.verdict["status"] == "blocked":
            assert recomputed(store) == {}
            return
        found, metrics = recomputed(store), made.verdict["result"]["metrics"]
        for name in FIGURES:
            assert found[name] == (metrics[name]["numerator"], metrics[name]["denominator"])
        assert found["p95LatencyMs"] == (Decimal(str(metrics["p95LatencyMs"]["value"])), 6)
        assert found["meanCost"] == (Decimal(metrics["meanCost"]["total"]), 6)
        assert found["agreement"] == (metrics["agreement"]["agreed"], metrics["agreement"]["pairs"])


def scans(node: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """By table, the rows that each scan of a query plan handed on."""
    if "Table" in node.get("extra_info", {}):
        yield node["extra_info"]["Table"].rpartition(".")[2], node["intermediate_rows"]
    for child in node.get("children", []):
        yield from scans(child)


@pytest.mark.parametrize(
    "view", ["recomputed_metrics", "metric_disagreements", "failing_cases", "judged_claims", "reviewer_agreement"]
)
def test_a_question_about_one_verdict_reads_its_rows_alone(tmp_path: Path, view: str) -> None:
    store, one, other = evidence_store(tmp_path), whole(**SMALL), whole(**SMALL, overlap=6)
    for made in (one, other):
        load(store, made.frozen, made.bundle, made.verdict)
    query = f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {view} WHERE artifact_digest = ?"  # noqa: S608
    ((_, plan),) = store.rows(query, [one.verdict["digest"]])
    read = [(table, rows) for part in json.loads(plan)["operator"] for table, rows in scans(part)]
    # By hand: six cases, four of them with one claim of one citation, each decided once; twice with the overlap.
    most = {"traces": 6, "label_cases": 6, "label_claims": 4, "emitted_claims": 4, "citation_decisions": 4}
    found = {table: rows for table, rows in read if table in most}
    assert found, "the plan names the tables"
    assert all(rows <= most[table] for table, rows in read if table in most), read


def test_sql_agrees_where_nothing_was_claimed_at_all(tmp_path: Path) -> None:
    lenient = replace(SMALL_POLICY, version=97, least_reviewed_citations=0)

    def refuse(document: Any) -> None:
        for row in document["observations"]:
            row |= {"refused": True, "claims": []}

    made = scored(World(cases=6, answerable=4, policy=lenient), observations=refuse)
    assert made.verdict["status"] == "failed"
    store = loaded(tmp_path, made)
    assert recomputed(store)["precision"] == (0, 0)
    assert recomputed(store)["recall"] == (0, 4)
    assert store.rows("SELECT * FROM metric_disagreements") == []


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE metrics SET numerator = numerator + 1 WHERE metric = 'precision'",
        "UPDATE metrics SET denominator = denominator - 1 WHERE metric = 'recall'",
        "UPDATE metrics SET met = NOT met WHERE metric = 'citationAccuracy'",
        "UPDATE metrics SET numerator = numerator - 0.001 WHERE metric = 'p95LatencyMs'",
        "UPDATE metrics SET numerator = numerator * 2 WHERE metric = 'meanCost'",
        "DELETE FROM metrics WHERE metric = 'refusalAccuracy'",
        "UPDATE citation_decisions SET supported = false WHERE case_id = (SELECT min(case_id) FROM citation_decisions)",
        "UPDATE traces SET refused = NOT refused WHERE case_id = (SELECT min(case_id) FROM traces)",
        "DELETE FROM emitted_claims WHERE case_id = (SELECT min(case_id) FROM emitted_claims)",
    ],
)
def test_an_edited_row_is_a_disagreement(tmp_path: Path, edit: str) -> None:
    store = loaded(tmp_path, whole(**SMALL))
    with duckdb.connect(store.path) as connection:
        assert connection.execute("SELECT * FROM metric_disagreements").fetchall() == []
        connection.execute(edit)
        assert connection.execute("SELECT metric FROM metric_disagreements").fetchall() != []


def test_failing_cases_names_the_case_and_why(tmp_path: Path) -> None:
    world = World(**SMALL)

    def spoil(document: Any) -> None:
        rows = {row["caseId"]: row for row in document["observations"]}
        rows[world.case_id(0)]["claims"][0]["claimId"] = "claim-wrong"
        rows[world.case_id(4)]["refused"] = False

    made = scored(world, observations=spoil, decide=lambda *entry: entry[1] != world.case_id(1))
    store = loaded(tmp_path, made)
    found = set(store.rows("SELECT case_id, why, claim_id FROM failing_cases"))
    assert found == {
        (world.case_id(0), "claim-not-expected", "claim-wrong"),
        (world.case_id(0), "expected-claim-missing", "claim-0"),
        (world.case_id(1), "claim-not-supported", "claim-1"),
        (world.case_id(4), "refusal-differs-from-label", None),
    }


def test_a_full_round_has_no_failing_case(tmp_path: Path) -> None:
    assert loaded(tmp_path, whole()).rows("SELECT * FROM failing_cases") == []


def test_inputs_chain_a_verdict_to_its_labels(tmp_path: Path) -> None:
    made = whole(**SMALL)
    store = loaded(tmp_path, made)
    rows = store.rows(
        "SELECT name, kind, sha256 FROM artifact_inputs WHERE artifact_digest = ?", [made.verdict["digest"]]
    )
    assert set(rows) == {
        ("frozenLabels", "digest", made.frozen["digest"]),
        ("assembledBundle", "digest", made.bundle["digest"]),
    }
    assert made.verdict["digest"] == digest_of(made.verdict)


def test_a_store_that_holds_fewer_rows_than_its_artifacts_brought_says_so_and_is_made_anew(tmp_path: Path) -> None:
    made = whole(**SMALL)
    store = loaded(tmp_path, made)
    with duckdb.connect(tmp_path / "evidence.duckdb") as connection:
        connection.execute("DELETE FROM traces WHERE case_id = (SELECT min(case_id) FROM traces)")
    with pytest.raises(StoreError, match=r"traces does not hold the rows .* run meta-eval rebuild-store"):
        load(store, made.kit)
    artifacts = [(artifact, tables_of(artifact)) for artifact in (made.frozen, made.bundle, made.verdict)]
    assert store.rebuild(artifacts) == 3
    assert count(store, "traces") == 6
    assert store.rows("SELECT * FROM metric_disagreements") == []
    assert load(store, made.verdict, made.kit) == [False, True]


def test_a_damaged_store_is_a_clear_error_and_is_made_anew(tmp_path: Path) -> None:
    made = whole(**SMALL)
    store = loaded(tmp_path, made)
    (tmp_path / "evidence.duckdb").write_bytes(b"\0" * 8192)
    with pytest.raises(StoreError, match="rebuild-store"):
        load(store, made.kit)
    assert store.rebuild([(made.frozen, tables_of(made.frozen))]) == 1
    assert count(store, "label_cases") == 6


def test_a_rebuild_that_fails_leaves_the_old_store_in_place(tmp_path: Path) -> None:
    made = whole(**SMALL)
    store = loaded(tmp_path, made)
    bad = pa.table({"case_id": ["canary"], "question_sha256": [None], "should_refuse": [True]})
    with pytest.raises(StoreError) as caught:
        store.rebuild([(made.frozen, {"label_cases": bad})])
    assert "canary" not in str(caught.value)
    assert count(store, "traces") == 6
    assert not list(tmp_path.glob(".*partial*"))


@pytest.mark.parametrize("torn_off", [7, 200, 20_000])
def test_a_torn_write_ahead_log_is_never_silently_short(tmp_path: Path, torn_off: int) -> None:
    made = whole(**SMALL)
    store = loaded(tmp_path, made)
    script = (
        "import duckdb, os, sys\n"
        "c = duckdb.connect(sys.argv[1], config={'checkpoint_threshold': '1TB'})\n"
        "c.execute('BEGIN')\n"
        "c.execute(\"INSERT INTO blockers SELECT 'x', 'code', 'subject' || range, 1 FROM range(5000)\")\n"
        "c.execute(\"INSERT INTO loads VALUES ('x', 'blockers', 5000)\")\n"
        "c.execute('COMMIT')\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "evidence.duckdb")], check=False)
    log = tmp_path / "evidence.duckdb.wal"
    kept = log.read_bytes()[:-torn_off]
    assert kept
    log.write_bytes(kept)
    try:
        load(store, made.kit)
    except StoreError as error:
        assert "rebuild-store" in str(error)  # noqa: PT017
    else:
        # What came before the tear is there in full or not at all.
        assert store.rows("SELECT count(*) FROM blockers WHERE artifact_digest = 'x'") in ([(0,)], [(5000,)])
        assert count(store, "traces") == 6
