"""The journal under many writers and after a crash; and records against the contract."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from meta_eval.evidence.errors import InputError, OverwriteError
from meta_eval.lanes.sessions.journal import append, read_journal
from meta_eval.lanes.sessions.record import FORBIDDEN, Record, RecordError, checked, made_record
from meta_eval_tests.lanes.sessions.ledgers import MADE

VERDICT = {"id": "gate-health", "method": "deterministic", "status": "pass", "evidence": "e"}
KPIS = dict.fromkeys(("duration_seconds", "total_waves", "total_agents", "token_input", "token_output", "carryover"))


def record(session_id: str = "s1", evidence: str = "e") -> Record:
    return made_record(session_id, KPIS, [VERDICT | {"evidence": evidence}], None, MADE)


def _write_many(path: Path, writer: int, count: int) -> None:
    for number in range(count):
        append(path, [record(f"w{writer}-{number}", "x" * (number % 4000))])


def test_eight_processes_append_a_thousand_records_each_and_every_line_is_whole(tmp_path: Path) -> None:
    path, context = tmp_path / "eval.jsonl", multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(path, writer, 1000)) for writer in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == 8000
    found = {json.loads(line)["session_id"] for line in lines}
    assert found == {f"w{writer}-{number}" for writer in range(8) for number in range(1000)}


def test_a_torn_last_line_is_reported_and_the_next_append_starts_on_a_fresh_line(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    append(path, [record("a")])
    with path.open("ab") as file:
        file.write(b'{"record_kind":"session-eval","run_')
    torn = read_journal(path)
    assert ([each["session_id"] for each in torn.records], torn.torn, torn.malformed) == (["a"], True, 1)
    append(path, [record("b")])
    after = read_journal(path)
    assert ([each["session_id"] for each in after.records], after.torn, after.malformed) == (["a", "b"], False, 1)


def test_a_refused_record_keeps_all_of_its_call_out(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    with pytest.raises(RecordError, match="overall"):
        append(path, [record("a"), record("b") | {"overall": 1}])
    assert read_journal(path).records == []


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_figure_over_all_dimensions_is_refused_even_as_null(name: str) -> None:
    with pytest.raises(RecordError, match=name):
        checked(record() | {name: None})


def test_the_same_record_again_is_no_news_and_another_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    assert append(path, [record()], refuse_other=True) == 1
    assert append(path, [record()], refuse_other=True) == 0
    with pytest.raises(OverwriteError, match="another record"):
        append(path, [record(evidence="other")], refuse_other=True)
    second = record() | {"rubric_version": "rubric-v2"}
    assert append(path, [second], refuse_other=True) == 1
    assert len(read_journal(path).runs(record()["run_id"])) == 2


def test_what_is_no_record_is_counted_and_a_journal_that_is_a_folder_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    append(path, [record()])
    with path.open("ab") as file:
        file.write(b'{"record_kind":"something-else"}\nnot json\n')
    journal = read_journal(path)
    assert (len(journal.records), journal.refused, journal.malformed) == (1, 1, 1)
    with pytest.raises(InputError):
        read_journal(tmp_path)
    assert read_journal(tmp_path / "none.jsonl").records == []


def test_the_journal_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    append(path, [record()])
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_append_is_on_the_disk_before_it_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sizes = tmp_path / "eval.jsonl", []
    monkeypatch.setattr("os.fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
    append(path, [record("a"), record("b")])
    assert path.stat().st_size in sizes
