"""Rows judged together: the same answers as rows judged one by one, whatever their layout."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.identifiers import ASCII_SIGN, may_hold_contact
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import columns, questions, rows
from meta_eval.lanes.production.query_log.layouts import learnt
from meta_eval.lanes.production.query_log.places import places_of
from meta_eval.lanes.production.query_log.rows import CLASSIFIED_SCHEMA, classify
from meta_eval_tests.lanes.production.query_log_world import (
    MISSING,
    as_of_ms,
    compact,
    good_consent,
    good_row,
    judged_singly,
)


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_known", [])


def together(texts: list[str | None]) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_arrays([pa.array([text and text.encode() for text in texts], pa.binary())], ["row"])
    found = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    assert found.schema == CLASSIFIED_SCHEMA
    found.validate(full=True)
    return found.to_pylist()


def one_by_one(texts: list[str | None]) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "judged", lambda *_: columns._in_order([]))
        patch.setattr(rows, "judged_questions", judged_singly)
        return together(texts)


def fitted(texts: list[str]) -> int:
    """How many rows are judged together."""
    return columns.judged(pa.array(texts, pa.string()), "research-ai-evaluation-v1").rows.size


# --- layouts -----------------------------------------------------------------------------------------------


def test_a_row_is_taken_apart_at_its_values() -> None:
    layout = learnt(compact(good_row(1)))
    assert layout is not None
    assert layout.quotes == 28
    assert layout.controls == 0
    assert layout.granted
    assert layout.fixed[0] == b'{"queryId":"'
    assert layout.fixed[1] == b'","question":"'
    assert layout.fixed[-1] == b'"}}'
    assert layout.fields == {
        "queryId": 0, "question": 1, "askedAt": 2, "outcome": 3, "contract": 4, "recordedAt": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "null", "", "[]", "{}", "not JSON", '{"queryId":"a"}', '"', '{"a":"b', "{" * 100 + '"a":"b"' + "}" * 100,
        compact(good_row(1, question=5)),
        compact(good_row(1, consent="yes")),
        compact(good_row(1, consent=good_consent(granted=1))),
        compact(good_row(1, email="a")),
        compact(good_row(1, meta={"Phone": "a"})),
        compact(good_row(1, QueryId="a")),
        compact(good_row(1, question="a \\ b")),
        compact(good_row(1))[:-1] + ',"outcome":"answered"}',
        compact(good_row(1))[:-1] + ',"n":NaN}',
        compact(good_row(1))[:-1] + ',"n":9007199254740993}',
        compact(good_row(1)) + compact(good_row(2)),
    ],
)  # fmt: skip
def test_nothing_is_learnt_from_what_is_refused_whatever_its_values(text: str) -> None:
    assert learnt(text) is None


def test_rows_of_one_writer_are_judged_together() -> None:
    texts = [compact(good_row(number, outcome="failed" if number % 3 else "answered")) for number in range(50)]
    assert fitted(texts) == 50
    assert fitted([json.dumps(good_row(number, consent=None), indent=1) for number in range(50)]) == 50
    mixed = [compact(good_row(n, consent=[None, MISSING, good_consent(granted=False)][n % 3])) for n in range(51)]
    assert fitted(mixed) == 51


def test_a_layout_vouches_for_no_row_that_differs_outside_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_LESSONS", 1)
    text = compact(good_row(1))
    others = [text.replace('"granted":true', '"granted":1 '), text.replace(",", " ,", 1), text[:-1] + " }", text + "}"]
    others += [
        text.replace("queryId", "queryid"),
        text.replace('true,"', 'true,\u00a0"'),
        text.replace("granted", "grante"),
    ]
    assert fitted([text, *others]) == 1


def test_more_layouts_than_are_kept_change_no_answer() -> None:
    texts: list[str | None] = [compact(good_row(n) | {f"x{'y' * (n % 40)}": "z"}) for n in range(200)]
    for start in range(0, 200, 50):
        assert together(texts[start : start + 50]) == one_by_one(texts[start : start + 50])
    assert len(columns._known) <= columns._MOST_LAYOUTS


# --- the same answers --------------------------------------------------------------------------------------

_QUESTIONS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "Who?", "  two  spaces ", "WHO made it. ", "?!. ", "", " ", "x" * 1000, "x" * 1001, " " * 1001, "é" * 1001,
            "Straße？", "in 1885?", "at guest@example.org", "10 Downing Street", "tab\tinside", "a\u0085b", "İSTANBUL",
            "ǆ", "\u3000wide", "dot", "Is 1985.20.23-24 on view?", "\x7f", "Insta", "a\u2028b", "”quoted”", "{}[],:",
        ]
    ),
)  # fmt: skip
_INSTANTS = st.sampled_from(
    [
        "2026-11-20T10:00:00.000Z", "2026-11-29T23:59:59.999Z", "2026-11-30T00:00:00.000Z", "2026-11-30T00:00:00.001Z",
        "2026-10-26T00:00:00.000Z", "2026-10-25T23:59:59.999Z", "2026-02-29T00:00:00.000Z", "2024-02-29T00:00:00.000Z",
        "2026-11-31T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-11-20T24:00:00.000Z",
        "2026-11-20T10:60:00.000Z", "2026-11-20T10:00:60.000Z", "1969-12-31T23:59:59.999Z", "2100-01-01T00:00:00.000Z",
        "0001-01-01T00:00:00.000Z", "2026-11-20T10:00:00Z", "2026-11-20T10:00:00.000z", "2026-11-20 10:00:00.000Z",
        "2026-11-20T10:00:00,000Z", "2026-11-20T10:00:00.00éZ", "٢026-11-20T10:00:00.00Z", "+026-11-20T10:00:00.000Z",
        "",
    ]
)  # fmt: skip
_IDS = st.one_of(
    st.text(max_size=4), st.sampled_from(["a", " a", "x" * 200, "x" * 201, "é" * 150, "\u3000", "\x7f", "🙂" * 60])
)


@st.composite
def _rows(draw: st.DrawFn) -> str | None:
    consent = draw(
        st.sampled_from([None, MISSING, "object", "object", "object"]).flatmap(
            lambda kind: (
                st.just(kind)
                if kind != "object"
                else st.fixed_dictionaries(
                    {
                        "contract": st.sampled_from(
                            ["research-ai-evaluation-v1", "research-ai-evaluation-v0", "", "é"]
                        ),
                        "granted": st.sampled_from([True, True, False, 1]),
                        "recordedAt": _INSTANTS,
                    }
                )
            )
        )
    )
    row = good_row(
        1,
        queryId=draw(_IDS),
        question=draw(_QUESTIONS),
        askedAt=draw(_INSTANTS),
        outcome=draw(st.sampled_from(["answered", "refused", "failed", "faile", "failedx", ""])),
        consent=consent,
    )
    extra = draw(st.sampled_from([{}, {}, {"lang": "é"}, {"n": 5}, {"email": "x"}, {"meta": {"a": ["b", {"c": "d"}]}}]))
    style = draw(st.sampled_from([{"separators": (",", ":")}, {}, {"indent": 1}]))
    text = json.dumps(row | extra, ensure_ascii=draw(st.integers(0, 5)) == 0, **style)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    damage = draw(st.integers(0, 12))
    if damage == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(['"', "\\", "\x01", " ", ",", "}", '"a":"b",'])) + text[at:]
    return None if damage == 1 else text


@pytest.mark.parametrize("worth", [1, 128])
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(_rows(), max_size=8))
def test_rows_judged_together_are_judged_as_they_are_one_by_one(
    worth: int, texts: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "_WORTH_LOOKING_AGAIN", worth)
    columns._known.clear()
    expected = one_by_one(texts)
    assert together(texts) == expected
    # With every layout known from the start, and in another order.
    assert together(texts[::-1]) == expected[::-1]


def test_a_part_of_a_larger_batch_is_judged_by_its_own_rows() -> None:
    texts = [compact(good_row(number)) for number in range(9)]
    batch = pa.RecordBatch.from_arrays([pa.array([text.encode() for text in texts], pa.binary())], ["row"])
    part = classify(batch.slice(3, 4), as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    assert part.column("query_id").to_pylist() == [f"query-{number}" for number in range(3, 7)]
    empty = classify(batch.slice(3, 0), as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    assert empty.num_rows == 0


def test_what_is_not_utf8_is_malformed_and_its_neighbours_are_not() -> None:
    good = compact(good_row(1)).encode()
    batch = pa.RecordBatch.from_arrays([pa.array([good, good.replace(b"Who", b"\xff"), good], pa.binary())], ["row"])
    found = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    assert found.column("query_id").to_pylist() == ["query-1", None, "query-1"]


@settings(max_examples=500)
@given(st.text(st.characters(max_codepoint=127)) | st.sampled_from(["InStA", "DOT", "sKype", "a_b"]))
def test_the_sign_of_contact_is_the_prefilters_for_ascii(text: str) -> None:
    assert pc.match_substring_regex(pa.array([text]), ASCII_SIGN)[0].as_py() is may_hold_contact(text)


def test_the_contracts_row_is_judged_in_bulk_not_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> None:
        raise AssertionError("judged one by one")

    together([compact(good_row(1))])
    monkeypatch.setattr(rows, "quick_fields", refuse)
    assert [row["query_id"] for row in together([compact(good_row(number)) for number in (1, 2)])] == [
        "query-1",
        "query-2",
    ]


@given(st.lists(st.integers(0, 300), max_size=20), st.integers(0, 300))
def test_rare_places_are_where_a_mask_is_true(true: list[int], size: int) -> None:
    mask = np.zeros(size, dtype=bool)
    mask[[place for place in true if place < size]] = True
    assert places_of(mask).tolist() == sorted({place for place in true if place < size})
