"""The export on disk: the bytes that one canonical document would have, and nothing left by a run that is killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import MetaEvalError, OverwriteError
from meta_eval.lanes.production import export_file
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.pseudonyms import case_id, case_ids
from meta_eval.lanes.production.query_log import ScannedLog, cases, scan_log, spill
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE
from meta_eval.lanes.production.query_log.spill import PREFIX
from meta_eval.lanes.production.question_export import Judged
from meta_eval_tests.lanes.production.query_log_world import KEY, NAMED, as_of_ms, good_row, lines

JUDGED = Judged({}, {}, [], "production", 'the "live" söurce')


@contextmanager
def scanned(folder: Path, questions: list[str]) -> Iterator[ScannedLog]:
    log = folder / "log.json"
    log.write_text(lines(*(good_row(n, question=text) for n, text in enumerate(questions))) or "[]")
    with scan_log(log, as_of_ms=as_of_ms(), policy=CURRENT_POLICY, pseudonyms=NAMED, work_dir=folder) as result:
        yield result


def in_one_piece(scan: ScannedLog, questions: list[str]) -> bytes:
    """The export of a log of `good_row`s with these questions."""
    rows = [good_row(n, question=text) for n, text in enumerate(questions)]
    eligible = np.flatnonzero(scan.log.outcomes == ELIGIBLE)
    found = sorted((case_id(rows[at]["queryId"], KEY), rows[at]["question"]) for at in eligible)
    document = {"version": 1, "environment": JUDGED.environment, "source": JUDGED.source}
    return canonical_bytes(document | {"cases": [{"caseId": name, "question": text} for name, text in found]})


@pytest.mark.parametrize("held", [0, 10**6])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    questions=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
        | st.sampled_from(['say "a"', "back\\slash", "tab\there", "two\nlines", "\u2028", "é\ttab", "🙂", "\x7f"]),
        max_size=60,
    )
)
def test_the_export_is_what_one_canonical_document_would_be(
    held: int, questions: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "HELD_BYTES", held)
    with scanned(tmp_path, questions) as scan:
        expected = in_one_piece(scan, questions)
        receipt = export_file.write_export(JUDGED, scan, lambda receipt: tmp_path / f"{receipt}.json")
        assert not list(scan.folder.glob("cases-*"))
    written = tmp_path / f"{receipt}.json"
    assert written.read_bytes() == expected
    assert receipt == hashlib.sha256(expected).hexdigest()
    written.unlink()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.binary(min_size=32, max_size=32))
def test_many_case_ids_are_those_of_each(query_ids: list[str], key: bytes) -> None:
    found = case_ids(pa.array(query_ids, pa.string()), key)
    found.validate(full=True)
    assert found.to_pylist() == [case_id(query_id, key) for query_id in query_ids]


def test_many_case_ids_want_a_whole_key() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        case_ids(pa.array([], pa.string()), KEY[:31])


def test_the_export_is_private_and_its_receipt_is_in_its_name(tmp_path: Path) -> None:
    with scanned(tmp_path, ["one", "two"]) as scan:
        receipt = export_file.write_export(JUDGED, scan, lambda receipt: tmp_path / "private" / receipt)
    target = tmp_path / "private" / receipt
    assert target.stat().st_mode & 0o777 == 0o600
    assert [case["question"] for case in json.loads(target.read_bytes())["cases"]] in (["one", "two"], ["two", "one"])


def test_an_export_that_is_there_is_kept_and_another_is_never_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "export.json"
    with scanned(tmp_path, ["one", "two"]) as scan:
        export_file.write_export(JUDGED, scan, lambda _: target)
        kept = target.stat()
    with scanned(tmp_path, ["one", "two"]) as scan:
        export_file.write_export(JUDGED, scan, lambda _: target)
    assert target.stat().st_mtime_ns == kept.st_mtime_ns
    with scanned(tmp_path, ["one", "three"]) as scan, pytest.raises(OverwriteError):
        export_file.write_export(JUDGED, scan, lambda _: target)
    assert target.stat().st_mtime_ns == kept.st_mtime_ns
    assert not list(tmp_path.glob(".*.partial"))


def test_a_full_disk_ends_in_our_own_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "HELD_BYTES", 0)

    def full(*_: object) -> None:
        raise OSError(28, "zebrafish-canary")

    with scanned(tmp_path, ["one", "two"]) as scan:
        monkeypatch.setattr(spill.os, "fdopen", full)
        with pytest.raises(MetaEvalError, match="private folder") as caught:
            export_file.write_export(JUDGED, scan, lambda _: tmp_path / "export.json")
        monkeypatch.undo()
    assert "zebrafish" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.json"]


# --- killed at any instant ---------------------------------------------------------------------------------

EXPORTER = """
    import sys
    from pathlib import Path
    from meta_eval.lanes.production import export_file
    from meta_eval.lanes.production.query_log import cases, scan_log
    from meta_eval_tests.lanes.production.test_export_file import CURRENT_POLICY, JUDGED, NAMED, as_of_ms

    cases.HELD_BYTES = 0
    if __name__ == "__main__":
        folder = Path(sys.argv[1])
        print("begun", flush=True)
        options = {"as_of_ms": as_of_ms(), "policy": CURRENT_POLICY, "pseudonyms": NAMED}
        with scan_log(folder / "log.json", **options, processes=2) as scan:
            export_file.write_export(JUDGED, scan, lambda receipt: folder / "private" / "export.json")
"""


def test_an_export_killed_at_any_instant_leaves_only_what_the_next_run_removes(tmp_path: Path) -> None:
    script, temporary = tmp_path / "exporter.py", tmp_path / "temporary"
    script.write_text(textwrap.dedent(EXPORTER))
    temporary.mkdir()
    (tmp_path / "log.json").write_text(lines(*(good_row(n) for n in range(20_000))))
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def begun() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, script, tmp_path], env=environment, stdout=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        return process

    start = time.monotonic()
    assert begun().wait() == 0
    takes = time.monotonic() - start
    target = tmp_path / "private" / "export.json"
    expected = target.read_bytes()
    target.unlink()
    chance = np.random.default_rng(8)
    for _ in range(8):
        process = begun()
        time.sleep(chance.uniform(0, takes))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert_no_process_is_left(process.pid)
        for path in (tmp_path / "private").iterdir():
            assert path.name.endswith(".partial") or path.read_bytes() == expected
        assert all(path.name.startswith(PREFIX) for path in temporary.iterdir())
        assert len(list(temporary.iterdir())) <= 1, "each run sweeps what the one before left"
    assert begun().wait() == 0
    assert [path.name for path in (tmp_path / "private").iterdir()] == ["export.json"]
    assert target.read_bytes() == expected
    assert list(temporary.iterdir()) == []


def assert_no_process_is_left(group: int) -> None:
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a worker outlives the process that started it")
