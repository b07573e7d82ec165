"""Ledger files that broke others: each fault has a stated outcome, and nothing is passed over without a count."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from meta_eval.lanes.sessions import jsonl
from meta_eval.lanes.sessions.jsonl import MAX_DEPTH, Reading, read_objects
from meta_eval.lanes.sessions.scored_sessions import readings
from meta_eval_tests.lanes.sessions.ledgers import QUIET, event, folder, ledger_of, scored, session, statuses


def read(path: Path, data: bytes) -> tuple[list[Any], Reading]:
    file = path / "events.jsonl"
    file.write_bytes(data)
    reading = Reading()
    return [value.get("id") for _, value in read_objects(file, reading)], reading


@pytest.mark.parametrize(
    ("data", "ids", "malformed", "torn"),
    [
        (b'{"id":"a"}\n{"id":"b"', ["a"], [2], True),  # a writer was killed inside an object
        (b'{"id":"a"}\n{"id":"b"}', ["a", "b"], [], False),  # whole, only its line end is missing
        (b'{"id":"a"}\n{"id":"b","t":"caf\xc3', ["a"], [2], True),  # killed inside a character
        (b'{"id":"a"}\n{"id":"b"\n\n', ["a"], [2], False),
        (b'{"id":"a"}\n42\n[]\nnull\n"x"\n{"id":"b"}\n', ["a", "b"], [2, 3, 4, 5], False),
        (b'{"id":"a"}{"id":"b"}\n\n{"id":"c"}\n', ["c"], [1], False),  # two writers on one line
        (b'{"id":"a","n":"aa{"id":"b","n":"bb"}\naa"}\n{"id":"c"}\n', ["c"], [1, 2], False),
        (b'{"id":"a"}\r\n{"id":"b"}\r\n', ["a", "b"], [], False),
        (b'{"id":"a"}\r{"id":"b"}\r', [], [1], True),  # a CR alone ends no line
        (b'   \n\t\n{"id":"a"}\n', ["a"], [], False),
        ("\u00a0\u3000\n".encode() + b'{"id":"a"}\n', ["a"], [], False),  # white space, though not JSON's
        (b'{"id":"a\x00b"}\n{"id":"c"}\n', ["c"], [1], False),  # a raw NUL in a text
        (b'\x00\x00\x00\n{"id":"c"}\n', ["c"], [1], False),
        (b'{"id":"a","v":NaN}\n{"id":"b","v":-Infinity}\n{"id":"c"}\n', ["c"], [1, 2], False),
        (b'{"id":"a","id":"b"}\n{"id":"c"}\n', ["c"], [1], False),  # two readers take two ids
        (b'{"id":"a","v":"\\ud800"}\n{"id":"c"}\n', ["c"], [1], False),
        (b'{"id":"a","v":"\\ud83d\\ude80"}\n', ["a"], [], False),
        (b'{"id":"\xff"}\n{"id":"c"}\n', ["c"], [1], False),
        (b'{"id":"a","v":' + b"9" * 5000 + b"}\n", ["a"], [], False),
        (b'{"id":"a","v":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b'}\n{"id":"c"}\n', ["c"], [1], False),
        ("\u0085".join(['{"id":"a","v":"', '"}\n']).encode(), ["a"], [], False),
        ("\u2028".join(['{"id":"a","v":"', '"}\n']).encode(), ["a"], [], False),
    ],
)
def test_a_line_is_an_object_or_is_counted(
    tmp_path: Path, data: bytes, ids: list[str], malformed: list[int], torn: bool
) -> None:
    found, reading = read(tmp_path, data)
    assert (found, reading.malformed_lines, reading.malformed, reading.torn) == (ids, malformed, len(malformed), torn)


def test_a_byte_order_mark_is_passed_over_at_the_start_and_nowhere_else(tmp_path: Path) -> None:
    found, reading = read(tmp_path, b'\xef\xbb\xbf{"id":"a"}\n{"id":"b"}\n')
    assert (found, reading.byte_order_mark, reading.malformed) == (["a", "b"], True, 0)
    found, reading = read(tmp_path, b'{"id":"a"}\n\xef\xbb\xbf{"id":"b"}\n')
    assert (found, reading.malformed_lines) == (["a"], [2])


def test_what_is_not_utf8_as_a_whole_is_unreadable(tmp_path: Path) -> None:
    found, reading = read(tmp_path, '{"id":"a"}\n'.encode("utf-16"))
    assert (found, reading.state, reading.fault) == ([], "unreadable", "not UTF-8")


def test_gzip_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"id":"a"}\n') + gzip.compress(b'{"id":"b"}\n')
    assert read(tmp_path, whole)[0] == ["a", "b"]
    many = gzip.compress(b"".join(b'{"id":"%d"}\n' % n for n in range(200_000)))
    assert read(tmp_path, many[:-4])[1].state == "unreadable"
    assert read(tmp_path, many[: len(many) // 2])[1].state == "unreadable"


def test_a_folder_a_missing_file_and_a_withheld_one_have_names(tmp_path: Path) -> None:
    reading = Reading()
    assert list(read_objects(tmp_path / "none.jsonl", reading)) == []
    assert reading.state == "absent"
    reading = Reading()
    assert list(read_objects(tmp_path, reading)) == []
    assert reading.state == "unreadable"
    if os.geteuid() != 0:
        (tmp_path / "held.jsonl").write_text("{}\n", encoding="utf-8")
        (tmp_path / "held.jsonl").chmod(0)
        reading = Reading()
        assert list(read_objects(tmp_path / "held.jsonl", reading)) == []
        assert reading.state == "unreadable"


def test_a_line_beyond_the_limit_is_let_go_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 1000)
    monkeypatch.setattr(jsonl, "_CHUNK", 64)
    long = b'{"id":"a","v":"' + b"x" * 5000 + b'"}\n'
    found, reading = read(tmp_path, long + b'{"id":"b"}\n' + long.rstrip(b"\n"))
    assert (found, reading.malformed_lines, reading.torn) == (["b"], [1, 3], True)


def test_a_line_of_100_megabytes_costs_no_memory_of_its_size(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with file.open("wb") as out:
        out.write(b'{"id":"a"}\n{"id":"huge","v":"')
        for _ in range(100):
            out.write(b"x" * 1_000_000)
        out.write(b'"}\n{"id":"b"}\n')
    reading = Reading()
    assert [value["id"] for _, value in read_objects(file, reading)] == ["a", "b"]
    assert reading.malformed_lines == [2]


def test_an_unreadable_event_stream_abstains_and_fails_nobody(tmp_path: Path) -> None:
    path = folder(tmp_path, [session()], None)
    (path / "events.jsonl").mkdir()
    for rubric in ("v1", "v2"):
        found = statuses(scored(path, rubric=rubric))
        assert {found[name] for name in ("verification-evidence", "gate-health", "process-safety")} == {
            "cannot-determine"
        }


def test_the_same_event_id_twice_counts_once_and_is_reported(tmp_path: Path) -> None:
    twice = event("10:20", "destructive_guard.blocked", id="e1")
    path = folder(tmp_path, [session()], [twice, twice, event("10:21", "destructive_guard.blocked", id="e2")])
    found = scored(path, rubric="v2")
    assert found.facts.friction["blocked"] == 2
    assert ledger_of(path).events.duplicates == 1


def test_an_event_whose_instant_is_of_another_type_counts_nowhere_and_is_reported(tmp_path: Path) -> None:
    path = folder(tmp_path, [session()], [QUIET, event("10:20", "destructive_guard.blocked", timestamp=5)])
    assert statuses(scored(path))["process-safety"] == "pass"
    assert readings(ledger_of(path))["events"]["withoutInstant"] == 1


def test_the_order_of_lines_does_not_change_a_verdict(tmp_path: Path) -> None:
    events = [
        event("10:40", "quality_gate.failed", variant="full-gate", exit_code=1),
        event("10:20", "quality_gate.passed", variant="full-gate", exit_code=0),
        QUIET,
    ]
    first = scored(folder(tmp_path / "a", [session()], events))
    other = scored(folder(tmp_path / "b", [session()], events[::-1]))
    assert first.dimensions == other.dimensions


def test_orphans_strays_and_rewrites_are_reported_and_score_nothing(tmp_path: Path) -> None:
    events = [
        event("10:10", "wave.started", session_id="u1", semantic_session_id="s1"),
        event("11:30", "wave.started", session_id="u1", semantic_session_id="s1"),  # after its end
        event("10:10", "wave.started", session_id="u9", semantic_session_id="s9"),  # nobody's
    ]
    ledger = ledger_of(folder(tmp_path, [session(), session(start="12:00", end="12:05")], events))
    assert (ledger.events.orphans, ledger.events.strays) == (1, 2)
    assert len(ledger.lines) - len(ledger.last_by_id) == 1


def test_a_session_without_events_is_scored_without_a_division_by_zero(tmp_path: Path) -> None:
    found = scored(folder(tmp_path, [session()], []))
    assert statuses(found)["process-safety"] == "cannot-determine"
    assert found.facts.kpis["duration_seconds"] == 3600
