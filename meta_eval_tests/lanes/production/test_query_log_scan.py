"""The whole log: duplicates, ids that name two questions, counts, the private folder, and what never leaks."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.errors import InputError, MetaEvalError
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.pseudonyms import case_id
from meta_eval.lanes.production.query_log import OUTCOMES, LogScan, ScannedLog, runs_of, scan_log
from meta_eval.lanes.production.query_log import duplicates as duplicates_module
from meta_eval.lanes.production.query_log import scan as scan_module
from meta_eval.lanes.production.query_log import workers as workers_module
from meta_eval.lanes.production.query_log.duplicates import Candidates
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval.lanes.production.query_log.spill import PREFIX, private_folder
from meta_eval_tests.lanes.production.query_log_world import (
    KEY,
    NAMED,
    as_of_ms,
    cases_of,
    compact,
    good_consent,
    good_row,
    lines,
    outcomes,
    scanned,
)

CANARY = "zebrafish-canary"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "ai-query-log.json"


@contextmanager
def opened(log: Path, data: str, **options: Any) -> Iterator[ScannedLog]:
    log.write_text(data)
    options = {"work_dir": log.parent, "pseudonyms": NAMED} | options
    with scan_log(log, as_of_ms=as_of_ms(), policy=CURRENT_POLICY, **options) as result:
        yield result


def asked(day: int) -> dict[str, Any]:
    return {"askedAt": f"2026-11-{day:02d}T10:00:00Z", "consent": good_consent(recordedAt="2026-11-01T00:00:00Z")}


def left_over(folder: Path) -> list[Path]:
    return list(folder.glob(f"{PREFIX}*"))


# --- what a scan says --------------------------------------------------------------------------------------


def test_scan_of_a_small_log_says_what_it_holds(log: Path) -> None:
    data = lines(
        good_row(1), good_row(2, outcome="failed"), "not JSON", good_row(3, question="WHO painted invented picture 1")
    )
    found = scanned(log, data)
    assert found.receipt == hashlib.sha256(data.encode()).hexdigest()
    assert found.byte_count == len(data.encode())
    assert found.row_count == 4
    assert outcomes(found) == ["eligible", "unsuccessful", "malformed", "duplicate"]
    assert found.outcomes.dtype == np.uint8
    assert list(found.counts) == list(OUTCOMES)
    assert {name: count for name, count in found.counts.items() if count} == {
        "malformed": 1, "unsuccessful": 1, "duplicate": 1, "eligible": 1,
    }  # fmt: skip
    assert runs_of(found.outcomes) == "eumd"
    assert found.newest_asked_at_ms == instant_ms("2026-11-20T10:00:00Z")


def test_empty_array_is_a_log_without_rows(log: Path) -> None:
    found = scanned(log, "[]")
    assert (found.row_count, found.outcomes.size, found.newest_asked_at_ms) == (0, 0, None)
    assert set(found.counts.values()) == {0}
    with opened(log, "[]") as result:
        assert list(result.cases()) == []


def test_newest_row_is_neither_malformed_nor_of_the_future(log: Path) -> None:
    rows = [
        good_row(1, **asked(10)),
        good_row(2, **asked(12), outcome="failed"),
        good_row(3, askedAt="2026-12-05T00:00:00Z"),
        good_row(4, askedAt="2026-12-05T00:00:00Z", consent=None),
        good_row(5, askedAt="2026-11-29T10:00:00Z", question=None),
        good_row(6, **asked(28), question="one"),
        good_row(6, **asked(28), question="two"),
    ]
    found = scanned(log, lines(*rows))
    assert outcomes(found) == [
        "eligible",
        "unsuccessful",
        "future",
        "missing-consent",
        "malformed",
        "malformed",
        "malformed",
    ]
    assert found.newest_asked_at_ms == instant_ms("2026-11-12T10:00:00Z")


# --- rows among rows ---------------------------------------------------------------------------------------


def test_earliest_instant_of_a_group_is_eligible_then_the_lowest_row(log: Path) -> None:
    rows = [
        good_row(1, question="Who?", **asked(12)),
        good_row(2, question="who", **asked(10)),
        good_row(3, question="WHO ?", **asked(10)),
        good_row(4, question="What?", **asked(20)),
        good_row(5, question="what", **asked(20)),
    ]
    assert outcomes(scanned(log, lines(*rows))) == ["duplicate", "eligible", "duplicate", "eligible", "duplicate"]


def test_only_rows_that_pass_every_earlier_rule_make_duplicates(log: Path) -> None:
    rows = [
        good_row(1, question="Who?", **asked(9), outcome="failed"),
        good_row(2, question="Who?", **(asked(10) | {"consent": None})),
        good_row(3, question="Who?", **asked(12)),
    ]
    assert outcomes(scanned(log, lines(*rows))) == ["unsuccessful", "missing-consent", "eligible"]


@pytest.mark.parametrize("reverse", [False, True])
def test_id_of_two_questions_identifies_nothing(log: Path, reverse: bool) -> None:
    rows = [
        good_row(1, question="Who painted it?", **asked(10)),
        good_row(2, question="Who painted it?", **asked(12)),
        good_row(1, question="Who carved it?", **asked(11)),
        good_row(1, question="who painted it", **asked(13)),
    ]
    expected = ["malformed", "eligible", "malformed", "malformed"]
    assert outcomes(scanned(log, lines(*(rows[::-1] if reverse else rows)))) == (
        expected[::-1] if reverse else expected
    )


def test_id_repeated_with_the_same_question_is_a_duplicate(log: Path) -> None:
    assert outcomes(scanned(log, lines(good_row(1), good_row(1)))) == ["eligible", "duplicate"]
    changed = good_row(1, question="WHO PAINTED INVENTED PICTURE 1")
    assert outcomes(scanned(log, lines(good_row(1), changed))) == ["eligible", "duplicate"]


def test_id_in_an_excluded_row_conflicts_with_nothing(log: Path) -> None:
    rows = [
        good_row(1),
        good_row(1, question="Another?", outcome="failed"),
        good_row(1, question="A third?", consent=None),
    ]
    assert outcomes(scanned(log, lines(*rows))) == ["eligible", "unsuccessful", "missing-consent"]


def test_log_delivered_twice_gives_the_same_eligible_rows(log: Path) -> None:
    rows = [good_row(number) for number in range(20)]
    once, twice = scanned(log, lines(*rows)), scanned(log, lines(*rows, *rows))
    assert once.counts["eligible"] == twice.counts["eligible"] == 20
    assert runs_of(twice.outcomes) == "e20d20"


@pytest.mark.parametrize("held", [3, 1 << 20])
def test_candidates_in_shares_agree_with_plain_dictionaries(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates_module, "_HELD", held)
    chance = np.random.default_rng(5)
    for size in (0, 1, 2, 3, 500, 3000):
        questions, ids, instants = (chance.integers(0, top, size) for top in (max(size // 3, 1), max(size, 1), 5))
        ids = np.where(chance.random(size) < 0.9, ids * 10_000 + questions, ids)
        (folder := tmp_path / str(size)).mkdir()
        candidates = Candidates(lambda folder=folder: folder)  # type: ignore[misc]
        for part in np.array_split(np.arange(size), 7):
            sha = [
                np.frombuffer(
                    b"".join(hashlib.sha256(str(value).encode()).digest()[:16] for value in column[part]),
                    dtype=np.uint64,
                ).reshape(-1, 2)
                for column in (questions, ids)
            ]
            candidates.add(sha[0], sha[1], instants[part])
        named: dict[int, set[int]] = {}
        for query_id, question in zip(ids, questions, strict=True):
            named.setdefault(query_id, set()).add(question)
        best: dict[int, tuple[int, int]] = {}
        for row in range(size):
            if len(named[ids[row]]) == 1:
                best[questions[row]] = min(best.get(questions[row], (99, 0)), (instants[row], row))
        expected = [
            "malformed" if len(named[ids[row]]) > 1 else "eligible" if best[questions[row]][1] == row else "duplicate"
            for row in range(size)
        ]
        final, newest = candidates.final_outcomes()
        assert [OUTCOMES[index] for index in final] == expected
        assert newest == max((int(instants[row]) for row in range(size) if expected[row] != "malformed"), default=None)


# --- the eligible questions --------------------------------------------------------------------------------


def test_the_eligible_questions_are_handed_on_under_their_pseudonyms(log: Path) -> None:
    rows = [
        good_row(1, **asked(20)),
        good_row(2, question="“Ünïcode” ？"),
        good_row(3, outcome="failed"),
        good_row(4),
        good_row(5, **asked(3), question="who painted invented picture 1"),
    ]
    with opened(log, lines(*rows)) as result:
        found = cases_of(result)
    expected = {case_id(f"query-{number}", KEY): rows[number - 1]["question"] for number in (2, 4, 5)}
    assert found == [{"caseId": name, "question": expected[name]} for name in sorted(expected)]


def test_questions_are_not_at_hand_when_not_kept_or_after_the_scan(log: Path) -> None:
    with opened(log, lines(good_row(1)), pseudonyms=None) as result:
        assert result.log.counts["eligible"] == 1
        assert left_over(log.parent) == []
        with pytest.raises(MetaEvalError):
            result.cases()
    with opened(log, lines(good_row(1))) as result:
        pass
    with pytest.raises(MetaEvalError):
        result.cases()


# --- one answer for every way to write and to read the log --------------------------------------------------


def test_any_number_of_processes_gives_the_same_scan(log: Path) -> None:
    rows = [good_row(number, question=f"question {number % 4000}") for number in range(9000)]
    rows[100]["outcome"] = "failed"
    data = lines(*rows)
    alone, several = scanned(log, data), scanned(log, data, processes=2)
    assert (alone.outcomes == several.outcomes).all()
    assert (alone.receipt, alone.counts, alone.newest_asked_at_ms) == (
        several.receipt,
        several.counts,
        several.newest_asked_at_ms,
    )
    assert alone.counts["eligible"] == 4000


def test_time_zone_of_the_machine_does_not_matter(log: Path) -> None:
    log.write_text(lines(*(good_row(number, question=f"q {number % 7}") for number in range(30))))
    code = f"""
        from pathlib import Path
        from meta_eval_tests.lanes.production.query_log_world import *
        print(scanned(Path({str(log)!r}), Path({str(log)!r}).read_bytes()))
    """
    said = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | {"TZ": zone, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for zone, seed in (("UTC", "1"), ("America/New_York", "2"))
    }
    assert len(said) == 1


def test_progress_is_told_in_rows_and_bytes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "read_rows", partial(read_rows, batch_bytes=1 << 20, chunk_bytes=1 << 20))
    told: list[tuple[int, int]] = []
    data = lines(*(good_row(number) for number in range(20_000)))
    found = scanned(log, data, on_rows=lambda rows, read: told.append((rows, read)))
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1] == (20_000, len(data))
    assert found.row_count == 20_000


# --- the private folder ------------------------------------------------------------------------------------


def test_private_folder_is_private_and_goes_with_the_scan(log: Path) -> None:
    with opened(log, lines(good_row(1))):
        (folder,) = left_over(log.parent)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert left_over(log.parent) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_private_folder_goes_when_the_scan_is_broken_off(log: Path, error: type[BaseException]) -> None:
    def stop(rows: int, read: int) -> None:
        raise error

    with pytest.raises(error):
        scanned(log, lines(good_row(1)), on_rows=stop)
    assert left_over(log.parent) == []
    with pytest.raises(InputError):
        scanned(log, lines(good_row(1)) + '{"cut')
    assert left_over(log.parent) == []
    with pytest.raises(error), opened(log, lines(good_row(1))):
        raise error
    assert left_over(log.parent) == []


def test_folder_left_by_a_killed_scan_is_removed_by_the_next(log: Path) -> None:
    code = f"""
        import os, signal
        from pathlib import Path
        from meta_eval_tests.lanes.production.query_log_world import *
        path = Path({str(log)!r})
        path.write_text(lines(good_row(1)))
        with scan_log(path, as_of_ms=as_of_ms(), policy=CURRENT_POLICY, pseudonyms=NAMED, work_dir=path.parent):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False).returncode < 0
    assert len(left_over(log.parent)) == 1
    with opened(log, lines(good_row(1))):
        assert len(left_over(log.parent)) == 1
    assert left_over(log.parent) == []


def test_folder_in_use_and_what_only_looks_like_one_are_left_alone(log: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep").touch()
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(elsewhere)
    with private_folder(tmp_path) as first, private_folder(tmp_path) as second:
        assert first != second
        assert first.is_dir()
        handle = os.open(first, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)
    assert (elsewhere / "keep").exists()
    assert link.is_symlink()


def test_work_dir_that_is_not_there_is_an_input_error(log: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        scanned(log, lines(good_row(1)), work_dir=tmp_path / "absent")


# --- nothing leaks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        '[{"question":"%s",}]',
        '[{"question":"%s"} {"a":1}]',
        '[{"question":"%s"}',
        '[{"question":"%s\\x"}]',
        '{"question":"%s"}\n{"question":"%s',
        '"%s"',
        '%s',
        '[{"%s":NaN}, %s]',
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_no_error_quotes_the_log(log: Path, data: str, packed: bool) -> None:
    content = data.replace("%s", CANARY).encode()
    with pytest.raises(MetaEvalError) as caught:
        scanned(log, gzip.compress(content) if packed else content)
    assert CANARY not in told(caught.value)


@pytest.mark.parametrize("tail", [b"\xff", b"\xe2\x82"])
def test_no_error_quotes_the_log_that_is_not_utf8(log: Path, tail: bytes) -> None:
    with pytest.raises(InputError) as caught:
        scanned(log, b'{"question":"' + CANARY.encode() + tail)
    assert CANARY not in told(caught.value)


def told(error: BaseException | None) -> str:
    """All that an error and those it came from say, as a log that prints them would show it."""
    text = ""
    while error is not None:
        text += f"{error!r} {error.args} {getattr(error, '__dict__', '')}"
        error = error.__cause__
    return text


def _die(*_: object) -> None:
    os.abort()


def test_worker_that_dies_ends_in_our_own_error(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "work", _die)
    with pytest.raises(MetaEvalError, match="worker process"):
        scanned(log, lines(good_row(1)), processes=2)
    assert left_over(log.parent) == []


def test_scan_shows_no_question_id_or_instant(log: Path) -> None:
    row = good_row(1, question=f"Who is {CANARY}?", queryId=f"id-{CANARY}")
    with opened(log, lines(row)) as result:
        assert CANARY not in repr(result) + repr(result.log)
        assert isinstance(result.log, LogScan)
    assert CANARY in json.dumps(row)
    assert compact(row)


def test_full_disk_ends_in_our_own_error(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk:
        def write_batch(self, batch: object) -> None:
            raise OSError(28, CANARY)

        def close(self) -> None:
            pass

    monkeypatch.setattr(pa.ipc, "new_stream", lambda *args, **options: FullDisk())
    with pytest.raises(MetaEvalError, match="private folder") as caught:
        scanned(log, lines(good_row(1)))
    assert CANARY not in told(caught.value)
    assert left_over(log.parent) == []
