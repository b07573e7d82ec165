"""One log, many spellings: the outcomes are those that its rows were made to have."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.lanes.production.query_log import rows as rows_module
from meta_eval.lanes.production.query_log import scan as scan_module
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval_tests.lanes.production.query_log_world import MISSING, good_consent, good_row, outcomes, scanned


def _changed(key: str, value: object, row: dict[str, Any]) -> dict[str, Any]:
    return {name: kept for name, kept in (row | {key: value}).items() if kept is not MISSING}


# Every way to be malformed that leaves the grammar of an array whole: a changed row, or a changed text.
SHAPES: list[Callable[[dict[str, Any]], object]] = [
    lambda row: None,
    lambda row: 42,
    lambda row: "text",
    lambda row: [row],
    lambda row: {},
    *[
        partial(_changed, key, value)
        for key in ("queryId", "question", "askedAt", "outcome")
        for value in (MISSING, None, 5, True, ["Who?"], "")
        if not (key == "question" and value == "")
    ],
    lambda row: row | {"question": "a\x00b"},
    lambda row: row | {"queryId": "x" * 201},
    lambda row: row | {"askedAt": "2026-11-20T10:00:00"},
    lambda row: row | {"consent": "yes"},
    lambda row: row | {"consent": good_consent(granted=1)},
    lambda row: row | {"consent": good_consent(contract=None)},
    lambda row: row | {"consent": good_consent(recordedAt="2026-11-29T23:59:59Z")},
    lambda row: row | {"email": 1},
    lambda row: row | {"meta": [{"phoneNumber": 1}]},
    lambda row: row | {"consent": good_consent(Granted=True)},
    lambda row: row | {"QueryId": "x"},
    lambda row: row | {"n": 2**53},
    lambda row: row | {"n": float("nan")},
    lambda row: row | {"n": [float("-inf")]},
    lambda row: row | {"s": "half \ud83d"},
    lambda row: row | {"deep": json.loads("[" * 70 + "]" * 70)},
]
TEXTS: list[Callable[[str], str]] = [
    lambda text: text[: text.rindex("}")] + ',"outcome":"answered"}',
    lambda text: text[: text.rindex("}")] + ',"n":1e400}',
    lambda text: text[: text.rindex("}")] + ',"m":{"a":1,"\\u0061":2}}',
    lambda text: text[: text.rindex("}")] + ',"n":' + "9" * 5000 + "}",
]
_BEGINNINGS = ["Who", "Wer malte", "誰が", "ｗｉｄｅ", 'tab\t"quoted" \\']


@st.composite
def row_and_outcome(draw: st.DrawFn) -> tuple[object, Callable[[str], str] | None, str]:
    """A row, what to do to its text, and the outcome due to it if no other row bears on it."""
    number = draw(st.integers(0, 10**9))
    asked = f"2026-11-{draw(st.integers(5, 25)):02d}T10:00:00.{draw(st.integers(0, 999)):03d}Z"
    row = good_row(
        askedAt=asked,
        queryId=f"id-{number}",
        question=f"{draw(st.sampled_from(_BEGINNINGS))} {number}?",
        consent=good_consent(recordedAt="2026-10-01T00:00:00Z"),
    )
    if draw(st.booleans()):
        row |= {"latencyMs": draw(st.integers(-5, 10**6)), "meta": {"},{": ["]", '"']}}
    if draw(st.booleans()):
        row = dict(draw(st.permutations(list(row.items()))))
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "missing-consent": lambda: {
            "consent": draw(st.sampled_from([None, good_consent(granted=False, recordedAt="2026-10-01T00:00:00Z")]))
        },
        "wrong-consent-contract": lambda: {"consent": good_consent(contract="v0", recordedAt="2026-10-01T00:00:00Z")},
        "unsuccessful": lambda: {"outcome": "failed"},
        "future": lambda: {"askedAt": "2026-11-30T00:00:00.001Z"},
        "stale": lambda: {"askedAt": "2026-10-25T23:59:59.999Z"},
        "contact-bearing": lambda: {"question": "write to visitor@example.org"},
        "empty-question": lambda: {"question": " ?？"},
        "over-length": lambda: {"question": "x" * 1001},
        "eligible": dict,
    }
    kind = draw(st.sampled_from(["malformed", "malformed", "text", *kinds]))
    if kind == "malformed":
        return draw(st.sampled_from(SHAPES))(row), None, "malformed"
    if kind == "text":
        return row, draw(st.sampled_from(TEXTS)), "malformed"
    return row | kinds[kind](), None, kind


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[tuple[object, Callable[[str], str] | None]], list[str]]:
    """A log and its outcomes: unlike questions and ids, then exact repeats of eligible rows shuffled in."""
    drawn = draw(st.lists(row_and_outcome(), max_size=8, unique_by=lambda item: json.dumps(item[0], default=str)))
    eligible = [item for item in drawn if item[2] == "eligible"]
    questions = {item[0]["queryId"] for item in eligible if isinstance(item[0], dict)}
    if len(questions) < len(eligible):
        drawn = [item for item in drawn if item[2] != "eligible"]
        eligible = []
    repeats = draw(st.lists(st.sampled_from(eligible), max_size=3)) if eligible else []
    items = draw(st.permutations([*drawn, *repeats]))
    expected: list[str] = []
    seen: list[object] = []
    for row, _, outcome in items:
        expected.append("duplicate" if outcome == "eligible" and row in seen else outcome)
        seen += [row] if outcome == "eligible" else []
    return [(row, change) for row, change, _ in items], expected


def spellings(items: list[tuple[object, Callable[[str], str] | None]], escaped: bool) -> dict[str, bytes]:
    """The same rows as files that should not differ in outcome."""

    def texts(**style: Any) -> list[bytes]:
        written = [json.dumps(row, ensure_ascii=escaped, **style) for row, _ in items]
        # A lone surrogate can only be written as an escape.
        written = [text.replace("\ud83d", "\\ud83d") for text in written]
        return [(change(text) if change else text).encode() for text, (_, change) in zip(written, items, strict=True)]

    tight, loose, pretty = texts(separators=(",", ":")), texts(), texts(indent=2)
    files = {
        "array": b"[" + b",".join(tight) + b"]",
        "array, spaced": b" [ " + b" , ".join(loose) + b" ]\n",
        "array, pretty": b"[\n" + b",\n".join(pretty) + b"\n]\n",
        "array, CRLF": (b"[\n" + b",\n".join(pretty) + b"\n]\n").replace(b"\n", b"\r\n"),
    }
    # Without an object first a file of lines is no log.
    if items and isinstance(items[0][0], dict):
        files |= {
            "lines": b"".join(text + b"\n" for text in tight),
            "lines, no last line feed": b"\n".join(loose),
            "lines, CRLF and blank": b"\r\n \r\n".join(loose) + b"\r\n",
            "lines, marks": b"\xef\xbb\xbf" + b"\n\xef\xbb\xbf".join(tight) + b"\n",
        }
    files |= {f"{name}, gzip": gzip.compress(data) for name, data in files.items()}
    return files


@pytest.mark.parametrize("strict_only", [False, True])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), escaped=st.booleans(), chunk=st.sampled_from([1, 7, 100, 4096]))
def test_every_spelling_of_a_log_has_the_outcomes_it_was_made_with(
    strict_only: bool,
    log: tuple[list[tuple[object, Callable[[str], str] | None]], list[str]],
    escaped: bool,
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items, expected = log
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(scan_module, "read_rows", lambda path: read_rows(path, chunk_bytes=chunk, batch_bytes=chunk * 20))
        if strict_only:
            patch.setattr(rows_module, "quick_fields", lambda text: (False, None))
        for name, data in spellings(items, escaped).items():
            assert outcomes(scanned(Path(folder) / "log", data)) == expected, name
