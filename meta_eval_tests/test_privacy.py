"""After a whole round through Dagster, no question, raw id or contact detail is anywhere but in private folders.

Canary strings go in by every door that people have: questions (of every outcome), query ids, unknown keys and
names in places where a code is due. Then every byte that was written outside `private/` and `inbox/` is searched:
artifacts, worksheets, DuckDB files, Dagster's event log and compute logs, and what the command printed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.production.rehearsal import invented_log
from meta_eval.lanes.production.rehearsal.people import Timeline
from meta_eval.lanes.production.rounds import Round

pytest.importorskip("dagster")
PROJECT = Path(__file__).resolve().parents[1]
VERDICT = 1_796_000_000_000
CANARY = "zyxcanary"


def command(words: list[str], home: Path, dagster_home: Path) -> subprocess.CompletedProcess[bytes]:
    env = os.environ | {"META_EVAL_HOME": str(home), "DAGSTER_HOME": str(dagster_home)}
    return subprocess.run([str(Path(sys.executable).with_name("meta-eval")), *words], capture_output=True, env=env)


@pytest.fixture(scope="module")
def after_a_round(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """Home, Dagster's home and everything that was printed, after a good round and two that were refused."""
    home, dagster_home = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("dagster")
    shutil.copy(PROJECT / ".dagster_home" / "dagster.yaml", dagster_home)
    queries = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    lines = [{"query": f"{CANARY} question {n}?", "intent": "oos" if n % 4 == 0 else "hours"} for n in range(130)]
    queries.write_text("\n".join(map(json.dumps, lines)))
    printed = b""
    for words in (["--round", "good"], ["--round", "broken", "--break", "not-a-code"]):
        clock = ["--as-of", written_instant(VERDICT)]
        done = command(["rehearse", "--queries", str(queries), *words, *clock], home, dagster_home)
        printed += done.stdout + done.stderr
    printed += _refused_log(home, dagster_home)
    return home, dagster_home, printed


def _refused_log(home: Path, dagster_home: Path) -> bytes:
    """A log of rows that are excluded for every reason, and then one that is no JSON at all, in rounds of their own."""
    now = Timeline(VERDICT).log_read
    rows = []
    for row in invented_log.invented_rows(seed=5, now=now, rows=300):
        for key in ("question", "text"):
            if key in row:
                row[key] = f"{row[key]} {CANARY}"
        row |= {"queryId": f"{CANARY}-{len(rows)}", f"{CANARY}Key": CANARY}
        rows.append(row)
    printed = b""
    for name, data in (("excluded", json.dumps(rows).encode()), ("torn", json.dumps(rows).encode()[:-20])):
        round_ = Round(home / "rounds", name).make()
        (round_.inbox / "ai-query-log.json").write_bytes(data)
        done = command(["production", "attest", "--round", name, "--as-of", written_instant(now)], home, dagster_home)
        printed += done.stdout + done.stderr
    return printed


def test_the_rounds_went_as_far_as_they_should(after_a_round: tuple[Path, Path, bytes]) -> None:
    home, _, printed = after_a_round
    assert list((home / "rounds" / "good" / "artifacts" / "production-metrics").glob("*.json"))
    assert b"not-a-code" in printed
    assert b"truncated" in printed


def test_nothing_private_is_in_any_file_outside_the_private_folders(after_a_round: tuple[Path, Path, bytes]) -> None:
    home, dagster_home, printed = after_a_round
    public = [path for path in home.rglob("*") if path.is_file() and not {"private", "inbox"} & set(path.parts)]
    files = [*public, *(path for path in dagster_home.rglob("*") if path.is_file())]
    assert len(files) > 20
    needles = [CANARY.encode(), b"query-1-", b"@post.example", b"Somebody by Name"]
    found = {(str(path), needle) for path in files for needle in needles if needle in path.read_bytes()}
    assert found == set()
    assert [needle for needle in needles if needle in printed] == []


def test_nothing_private_is_in_any_column_of_the_store(after_a_round: tuple[Path, Path, bytes]) -> None:
    # DuckDB compresses text, so its file is searched by value too.
    home, _, _ = after_a_round
    with duckdb.connect(home / "evidence" / "analyst.duckdb", read_only=True) as connection:
        tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        assert "traces" in tables
        text = "\n".join(str(row) for name in tables for row in connection.execute(f"FROM {name}").fetchall())
    assert CANARY not in text
    assert "query-1-" not in text
    assert "case-" in text


def test_the_private_folder_holds_the_questions(after_a_round: tuple[Path, Path, bytes]) -> None:
    home, _, _ = after_a_round
    exports = list((home / "rounds" / "good" / "private").glob("question-export-*.json"))
    assert CANARY in exports[0].read_text()
