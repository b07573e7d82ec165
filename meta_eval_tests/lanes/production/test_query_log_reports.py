"""Public bug reports about reading logs, rewritten as rows of our contract; the letter is the report's number."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production.query_log import runs_of
from meta_eval_tests.lanes.production.query_log_world import compact, good_row, lines, outcomes, scanned

R1, R2, R3 = (compact(good_row(number)) for number in (1, 2, 3))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "ai-query-log.json"


def with_extra(text: str, extra: str) -> str:
    return text[:-1] + "," + extra + "}"


def either_way(log: Path, *rows: str) -> list[str]:
    """The outcomes of rows, which must be the same in an array and in lines."""
    found = outcomes(scanned(log, "[" + ",".join(rows) + "]"))
    assert outcomes(scanned(log, "".join(row + "\n" for row in rows))) == found
    return found


def repeated(log: Path, first: dict[str, Any], late: list[dict[str, Any]]) -> str:
    rows = [good_row(number, **first) for number in range(20_480)]
    return runs_of(scanned(log, lines(*rows, *late)).outcomes)


# --- B2: a value of another type beyond the sampled rows -----------------------------------------------------


def test_b2_late_value_of_another_type_is_never_coerced(log: Path) -> None:
    # A latency is no key of the contract, so whatever it holds is ignored; the contract's keys are typed.
    assert repeated(log, {"latencyMs": 7}, [good_row(-1, latencyMs=True), good_row(-2, latencyMs=1.5)]) == "e20482"


@pytest.mark.parametrize("value", [7, 1, "true", None])
def test_b2_late_consent_that_is_no_boolean_is_malformed(log: Path, value: object) -> None:
    late = good_row(-1)
    late["consent"]["granted"] = value
    assert repeated(log, {}, [late]) == "e20480m"


@pytest.mark.parametrize("latency", ["12", True, None, -5])
def test_b2_b8_value_of_an_extra_key_does_not_matter(log: Path, latency: object) -> None:
    assert either_way(log, compact(good_row(1, latencyMs=latency))) == ["eligible"]


# --- B5: repeated keys ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        R1.replace('"outcome":', '"outcome":"failed","outcome":'),
        R1.replace('"question":', '"question":"mail me at visitor@example.org","question":'),
        R1.replace('"queryId":', '"QueryId":"r2","queryId":'),
        R1.replace('"question":', '"quest\\u0069on":"a","question":'),
    ],
    ids=["a", "b", "c", "d"],
)
def test_b5_repeated_key_is_malformed_either_way(log: Path, text: str) -> None:
    assert either_way(log, R2, text, R3) == ["eligible", "malformed", "eligible"]


# --- B6: text that is no Unicode -----------------------------------------------------------------------------


def test_b6_half_an_emoji_costs_its_own_row_only(log: Path) -> None:
    half = R2.replace("picture", "\\ud83d emoji")
    assert either_way(log, R1, half, R3) == ["eligible", "malformed", "eligible"]


def test_b6_nul_is_malformed_and_no_duplicate(log: Path) -> None:
    rows = [compact(good_row(1, question="a\x00b")), compact(good_row(2, question="a"))]
    assert either_way(log, *rows) == ["malformed", "eligible"]


@pytest.mark.parametrize("shape", ["%s\n%s\n", "[%s,%s]"])
def test_b6_bytes_that_are_not_utf8_refuse_the_file(log: Path, shape: str) -> None:
    data = (shape % (R1, R2)).encode().replace(b"picture", b"\xff\xfe", 1)
    with pytest.raises(InputError, match="not UTF-8") as caught:
        scanned(log, data)
    assert caught.value.offset == data.index(b"\xff")


def test_b6_escaped_pair_is_one_emoji_and_so_a_duplicate_of_it(log: Path) -> None:
    rows = [R1.replace("picture", "\\ud83d\\ude00"), compact(good_row(2, question="Who painted invented 😀 1?"))]
    assert either_way(log, *rows) == ["eligible", "duplicate"]


# --- B8, D4: numbers and depth -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
def test_b8_d4_number_beyond_json_or_doubles_costs_its_own_row_only(log: Path, number: str) -> None:
    assert either_way(log, R1, with_extra(R2, f'"latencyMs":{number}'), R3) == ["eligible", "malformed", "eligible"]


def test_d4_line_of_100_000_brackets_costs_its_own_row_only(log: Path) -> None:
    start = time.perf_counter()
    assert outcomes(scanned(log, lines(R1, "[" * 100_000, R2))) == ["eligible", "malformed", "eligible"]
    with pytest.raises(InputError, match="not JSON"):
        scanned(log, f"[{R1},{'[' * 100_000},{R2}]")
    assert either_way(log, R1, "[" * 100_000 + "]" * 100_000, R2) == ["eligible", "malformed", "eligible"]
    assert time.perf_counter() - start < 5


def test_d4_row_of_17_megabytes_costs_its_own_row_only(log: Path) -> None:
    long = compact(good_row(2, question="x" * 17_000_000))
    assert either_way(log, R1, long, R3) == ["eligible", "malformed", "eligible"]


# --- C1: nothing to evaluate ---------------------------------------------------------------------------------


def test_c1_no_rows_an_empty_file_and_all_rows_refused_are_told_apart(log: Path) -> None:
    assert scanned(log, "[]").row_count == 0
    for text in ("", "\n\n"):
        with pytest.raises(InputError, match="empty") as caught:
            scanned(log, text)
        assert caught.value.exit_code == 2
    found = scanned(log, "[" + compact(good_row(1, question="write to visitor@example.org")) + "]")
    assert (found.row_count, found.counts["contact-bearing"], found.counts["eligible"]) == (1, 1, 0)


# --- C3, C5: nothing is coerced ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"question": {"text": "Who?"}},
        {
            "consent": {
                "contract": "research-ai-evaluation-v1",
                "granted": "false",
                "recordedAt": "2026-11-01T00:00:00Z",
            }
        },
        {"outcome": True},
        {"question": ["Who?"]},
        {"queryId": 9007199254740993},
        {"queryId": 7},
        {"question": None},
        {"askedAt": "2026-11-20T10:00:00"},
        {"askedAt": 1710064800},
        {"askedAt": "01/11/2026"},
    ],
)
def test_c3_c5_value_of_wrong_type_costs_its_own_row_only(log: Path, change: dict[str, Any]) -> None:
    assert either_way(log, R1, compact(good_row(2, **change)), R3) == ["eligible", "malformed", "eligible"]


# --- D5: duplicates in different spellings -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Who painted the caf\u00e9?", "Who painted the cafe\u0301?", "ed"),
        ("Who painted this?", "Who  painted\u00a0this ?", "ed"),
        ("WHO PAINTED THIS?", "Who painted this?", "ed"),
        ("żubr", "Zubr", "e2"),
        ("resume", "résumé", "e2"),
        ("\u0130stanbul", "istanbul", "e2"),
        ("s\u015b", "\u00df\u0301", "ed"),
    ],
)
def test_d5_spellings_of_one_question_are_duplicates_in_either_order(
    log: Path, one: str, other: str, expected: str
) -> None:
    for first, second in ((one, other), (other, one)):
        data = lines(good_row(1, question=first), good_row(2, question=second))
        assert runs_of(scanned(log, data).outcomes) == expected


# --- H4: sent again ------------------------------------------------------------------------------------------


def test_h4_row_sent_again_counts_once_and_an_id_of_two_questions_not_at_all(log: Path) -> None:
    assert either_way(log, R1, R1) == ["eligible", "duplicate"]
    other = compact(good_row(1, question="Who carved it?"))
    assert either_way(log, R1, other) == either_way(log, other, R1) == ["malformed", "malformed"]
    assert either_way(log, R1, R1.replace("query-1", "query-2")) == ["eligible", "duplicate"]


def test_h4_scan_twice_is_the_same_twice(log: Path) -> None:
    one, two = (scanned(log, lines(R1, R2, R1)) for _ in range(2))
    assert (one.receipt, one.counts, runs_of(one.outcomes)) == (two.receipt, two.counts, runs_of(two.outcomes))


# --- I2, I3: framing -----------------------------------------------------------------------------------------


def test_i2_two_objects_on_a_line_are_one_bad_row(log: Path) -> None:
    assert outcomes(scanned(log, f"{R1}{R2}\n\n{R3}\n")) == ["malformed", "eligible"]
    torn = '{"queryId":"e1","question":"aa{"queryId":"e2","question":"bb"}\naa"}\n'
    assert outcomes(scanned(log, torn + R3 + "\n")) == ["malformed", "malformed", "eligible"]


@pytest.mark.parametrize("text", [f"[{R1}]\n[{R2}]", f"[{R1},{R2}"])
def test_i2_joined_and_unterminated_arrays_are_refused(log: Path, text: str) -> None:
    with pytest.raises(InputError):
        scanned(log, text)


@pytest.mark.parametrize(
    "data",
    [
        f"\ufeff{R1}\n{R2}\n",
        f"\ufeff[{R1},{R2}]",
        f"{R1}\n\ufeff{R2}\n",
        f"{R1}\r\n{R2}\r\n",
        f"   \n\t\n{R1}\n{R2}\n",
        f"{R1}\n{R2}",
        gzip.compress(f"{R1}\n".encode()) + gzip.compress(f"{R2}\n".encode()),
    ],
)
def test_i3_marks_line_ends_and_joined_gzip_lose_no_row(log: Path, data: str | bytes) -> None:
    assert outcomes(scanned(log, data)) == ["eligible", "eligible"]


@pytest.mark.parametrize(
    "data",
    [f"{R1}\n{R2}\n".encode("utf-16"), f"{R1}\r{R2}\r".encode(), gzip.compress(f"{R1}\n{R2}\n".encode())[:-4]],
    ids=["utf-16", "bare CR", "cut gzip"],
)
def test_i3_other_encodings_and_cut_files_are_refused_whole(log: Path, data: bytes) -> None:
    with pytest.raises(InputError):
        scanned(log, data)


def test_i1_torn_last_line_is_refused_and_a_whole_one_without_line_feed_is_read(log: Path) -> None:
    assert outcomes(scanned(log, f"{R1}\n{R2}")) == ["eligible", "eligible"]
    with pytest.raises(InputError, match="truncated") as caught:
        scanned(log, f"{R1}\n{R2[:-1]}")
    assert caught.value.offset == len(R1) + 1
    assert outcomes(scanned(log, f'{R1}\n42\n[]\nnull\n"x"\n{R2}\n')) == ["eligible", *["malformed"] * 4, "eligible"]
