"""Asking the evidence: SQL that can do nothing else, what there is, where a verdict came from, why a case counted."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from meta_eval.evidence.files import write_document
from meta_eval.lanes import catalogue
from meta_eval.lanes.production import stages
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import Setting
from meta_eval_tests.cli.test_production import VERDICT, call


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round that ended rehearsed, with its rows in the store."""
    home = tmp_path_factory.mktemp("home")
    round_, store = Round(home / "rounds", "r-1"), catalogue.evidence_store(home / "evidence")

    def run(names: Sequence[str], at: int) -> bool:
        for stage in names:
            kept = stages.advance(round_, stages.stage_named(stage), Setting(at, "r-1"))
            store.load(kept.artifact, catalogue.tables_of(kept.artifact))
        return True

    assert play(round_, Script(VERDICT, rows=600), run)
    return home


def asked(home: Path, sql: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(call("query", "--json", sql, home=home).stdout)
    return answer


def test_an_answer_comes_as_table_csv_json_or_parquet(home: Path, tmp_path: Path) -> None:
    sql = "SELECT metric, denominator FROM metrics ORDER BY metric"
    rows = asked(home, sql)
    assert [row["metric"] for row in rows] == sorted(row["metric"] for row in rows)
    assert len(rows) == 7
    printed = call("query", "--csv", sql, home=home).stdout
    assert [row["metric"] for row in csv.DictReader(io.StringIO(printed))] == [row["metric"] for row in rows]
    call("query", "--parquet", tmp_path / "m.parquet", sql, home=home)
    assert pyarrow.parquet.read_table(tmp_path / "m.parquet").to_pylist() == rows
    assert call("query", sql, home=home).stdout.splitlines()[0].split() == ["metric", "denominator"]


def test_sql_and_python_agree_on_the_round(home: Path) -> None:
    assert asked(home, "SELECT * FROM metric_disagreements") == []
    assert asked(home, "SELECT count(*) AS n FROM recomputed_metrics") == [{"n": 7}]


ATTACKS = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "COPY artifacts TO '{out}'",
    "COPY (SELECT 1) TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}'",
    "ATTACH ':memory:' AS elsewhere; CREATE TABLE elsewhere.t AS SELECT 1; COPY elsewhere.t TO '{out}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSERT INTO artifacts SELECT * FROM artifacts",
    "UPDATE metrics SET met = true",
    "DELETE FROM blockers",
    "DROP TABLE metrics",
    "CREATE TABLE notes AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "PRAGMA enable_external_access",
    "SELECT * FROM rows",
    "SELECT * FROM relation",
    "FROM '{csv}'",
    "FROM '{csv}' -- a comment behind it",
    "SELECT/**/*/**/FROM/**/'{csv}'",
    "FROM 'file://{csv}'",
    "FROM 'https://evidence.example/rows.parquet'",
    "SELECT * FROM read_csv_auto('{csv}')",
    "SELECT * FROM sniff_csv('{csv}')",
    "SELECT * FROM read_blob('{csv}')",
    "SELECT * FROM read_json('{csv}')",
    "SELECT * FROM read_ndjson_objects('{csv}')",
    "SELECT * FROM read_parquet('{csv}')",
    "SELECT * FROM parquet_metadata('{csv}')",
    "SELECT * FROM read_duckdb('{store}')",
    "SELECT (SELECT content FROM read_text('{csv}'))",
    "WITH stolen AS (FROM read_text('{csv}')) FROM stolen",
    "SELECT 1; SELECT * FROM read_text('{csv}')",
    "SELECT 1; COPY artifacts TO '{out}'",
    "COPY artifacts FROM '{csv}'",
    "COPY artifacts TO '{out}' (FORMAT parquet)",
    "EXPORT DATABASE '{out}' (FORMAT csv)",
    "IMPORT DATABASE '{out}'",
    "ATTACH '{store}' AS again",
    "ATTACH '{store}' AS again (READ_WRITE)",
    "PREPARE p AS COPY artifacts TO '{out}'; EXECUTE p",
    "EXECUTE nothing",
    "EXPLAIN ANALYZE COPY artifacts TO '{out}'",
    "FROM query('COPY artifacts TO ''{out}''')",
    "FROM query('FROM read_text(''{csv}'')')",
    "FROM query_table('{csv}')",
    "INSTALL spatial FROM community",
    "LOAD '{out}'",
    "UPDATE EXTENSIONS",
    "CREATE SECRET s (TYPE http)",
    "CREATE MACRO m() AS 1",
    "CREATE SCHEMA s",
    "CREATE SEQUENCE s",
    "CREATE OR REPLACE VIEW metric_disagreements AS SELECT 1",
    "ALTER TABLE metrics ADD COLUMN note VARCHAR",
    "TRUNCATE metrics",
    "COMMENT ON TABLE metrics IS 'mine'",
    "SET GLOBAL enable_external_access = true",
    "RESET lock_configuration",
    "SET secret_directory = '{out}'",
    "SET temp_directory = '{out}'",
    "SET log_query_path = '{out}'",
    "SET autoload_known_extensions = true",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA profiling_output = '{out}'",
    "SELECT getenv('HOME')",
    "CALL pragma_database_size(); COPY artifacts TO '{out}'",
    "FROM duckdb_secrets()",
    "ATTACH ''",
    "FROM nowhere",
    "not SQL at all",
)


@pytest.mark.parametrize("sql", ATTACKS)
def test_a_question_can_read_no_file_write_nothing_and_open_no_door(home: Path, tmp_path: Path, sql: str) -> None:
    store = home / "evidence" / "analyst.duckdb"
    before = store.read_bytes()
    (tmp_path / "secret.csv").write_text("a,b\ncanary,2\n")
    places = {"out": tmp_path / "out", "csv": tmp_path / "secret.csv", "store": store.with_name("evidence.duckdb")}
    done = call("query", sql.format(**places), home=home, expect=2)
    assert "the question was refused" in done.stderr
    assert "canary" not in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()
    assert store.read_bytes() == before


@pytest.mark.parametrize("sql", ["CREATE TEMP TABLE mine AS SELECT 1 AS n; FROM mine", "CHECKPOINT", "VACUUM"])
def test_what_a_question_may_do_for_itself_leaves_nothing(home: Path, sql: str) -> None:
    folder = home / "evidence"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    call("query", sql, home=home)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_answer_is_never_written_over_a_file_or_through_a_link(home: Path, tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "link.parquet"
    mine.write_text("mine")
    link.symlink_to(mine)
    dangling = tmp_path / "dangling.parquet"
    dangling.symlink_to(tmp_path / "elsewhere")
    for target in (mine, link, dangling, home / "evidence" / "analyst.duckdb"):
        before = target.read_bytes() if target.exists() else None
        assert "holds other contents" in call("query", "--parquet", target, "SELECT 1", home=home, expect=2).stderr
        assert (target.read_bytes() if target.exists() else None) == before
    assert not (tmp_path / "elsewhere").exists()


def test_every_table_view_and_column_is_described(home: Path) -> None:
    found = json.loads(call("tables", "--json", home=home).stdout)
    assert {entry["kind"] for entry in found} == {"table", "view"}
    for entry in found:
        assert entry["comment"], entry["name"]
        if entry["kind"] == "table":
            assert all(column["comment"] for column in entry["columns"]), entry["name"]
    assert "case_id" in call("tables", "traces", home=home).stdout
    call("tables", "no-such-table", home=home, expect=2)


def test_nothing_published_is_a_clear_refusal(tmp_path: Path) -> None:
    done = call("query", "SELECT 1", home=tmp_path, expect=1)
    assert "nothing has been published" in done.stderr


def test_lineage_links_each_artifact_to_those_it_was_made_from(home: Path) -> None:
    chain = json.loads(call("lineage", "--round", "r-1", "--json", home=home).stdout)
    assert [entry["stage"] for entry in chain] == [stage.name for stage in stages.STAGES]
    digests = {entry["digest"] for entry in chain}
    named = {
        v
        for entry in chain
        for name, i in entry["inputs"].items()
        if name != "pseudonymKey"
        for k, v in i.items()
        if k == "digest"
    }
    assert named
    assert named < digests
    call("lineage", "--round", "r-9", home=home, expect=2)


def test_explain_tells_what_a_case_adds_to_each_figure(home: Path) -> None:
    [row] = asked(
        home, "SELECT case_id, claim_id FROM failing_cases WHERE why = 'claim-not-expected' ORDER BY 1 LIMIT 1"
    )
    told = json.loads(call("explain", "--round", "r-1", "--case", row["case_id"], "--json", home=home).stdout)
    extra = next(claim for claim in told["claims"] if claim["claimId"] == row["claim_id"])
    assert (extra["expected"], extra["accepted"]) == (False, True)
    # One expected claim, answered, and one that nobody expected: one of two emitted claims is right.
    assert told["counts"]["precision"] == [1, 2]
    assert told["counts"]["recall"] == [1, 1]
    assert "NOT expected" in call("explain", "--round", "r-1", "--case", row["case_id"], home=home).stdout
    [row] = asked(home, "SELECT case_id FROM failing_cases WHERE why = 'refusal-differs-from-label' LIMIT 1")
    told = json.loads(call("explain", "--round", "r-1", "--case", row["case_id"], "--json", home=home).stdout)
    assert told["counts"]["refusalAccuracy"] == [0, 1]
    call("explain", "--round", "r-1", "--case", "case-00000000000000000000", home=home, expect=2)


def test_what_every_case_adds_sums_to_the_verdict(home: Path) -> None:
    cases = [row["case_id"] for row in asked(home, "SELECT case_id FROM traces")]
    from meta_eval.cli.explain import explained

    [path] = (home / "rounds" / "r-1" / "artifacts" / "production-metrics").glob("*.json")
    verdict = json.loads(path.read_text())
    told = [explained(verdict, case) for case in cases]
    for name in ("precision", "recall", "citationAccuracy", "refusalAccuracy"):
        figure = verdict["result"]["metrics"][name]
        assert sum(entry["counts"][name][0] for entry in told) == figure["numerator"]
        assert sum(entry["counts"][name][1] for entry in told) == figure["denominator"]


def test_a_verdict_is_attested_signed_and_verified(home: Path, tmp_path: Path) -> None:
    call("keygen", tmp_path / "key")
    signed = tmp_path / "verdict.dsse.json"
    call("attest-verdict", "--round", "r-1", "--key", tmp_path / "key", "--output", signed, home=home)
    key = ("--key", tmp_path / "key.pub.pem", "--round", "r-1")
    done = call("verify-verdict", signed, *key, "--json", home=home)
    # A rehearsal is never PASSED, whatever its figures.
    assert json.loads(done.stdout) == {"result": "WARNED", "signed": True, "statement": str(signed)}
    assert "give the verifying key" in call("verify-verdict", signed, "--round", "r-1", home=home, expect=2).stderr
    call("keygen", tmp_path / "other")
    other = ("--key", tmp_path / "other.pub.pem", "--round", "r-1")
    assert "no signature of this key" in call("verify-verdict", signed, *other, home=home, expect=1).stderr


def test_a_statement_names_bundle_release_policy_and_each_threshold(home: Path, tmp_path: Path) -> None:
    plain = tmp_path / "verdict.json"
    call("attest-verdict", "--round", "r-1", "--output", plain, home=home)
    statement = json.loads(plain.read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert [subject["name"] for subject in statement["subject"]] == ["evidence-bundle", "release-manifest"]
    predicate = statement["predicate"]
    assert [entry["name"] for entry in predicate["configuration"]] == ["policy", "frozen-labels", "production-metrics"]
    assert (predicate["result"], predicate["passedTests"], predicate["failedTests"]) == ("WARNED", [], [])
    assert predicate["warnedTests"][0] == "precision at least 9/10"
    assert len(predicate["warnedTests"]) == 5
    call("verify-verdict", plain, "--round", "r-1", home=home)
    statement["predicate"]["result"] = "PASSED"
    forged = write_document(tmp_path / "forged.json", statement)
    assert "/predicate/result" in call("verify-verdict", forged, "--round", "r-1", home=home, expect=1).stderr
