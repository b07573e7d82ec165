"""The strict reader: whole, idempotent over its projections, and keeping nothing that it refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.documents import (
    CODE,
    INSTANT,
    SHA256,
    TRUE_OR_FALSE,
    Keyed,
    Listed,
    exactly,
    kept_part,
    matching,
    none_or,
    one_of,
    public_url,
    read,
    read_projection,
    whole_number,
)
from meta_eval.evidence.errors import VerificationError

SHAPE = Keyed(
    {
        "version": exactly(1, rule="not-version-1"),
        "code": CODE,
        "at": INSTANT,
        "url": public_url("production"),
        "rows": Listed(
            Keyed(
                {
                    "id": matching(r"[a-z0-9-]{1,40}", rule="not-an-id"),
                    "count": whole_number(least=0, most=9, rule="no"),
                },
                optional=frozenset({"count"}),
                ignored=frozenset({"total"}),
            )
        ),
    },
    ignored=frozenset({"total"}),
)
VALID = {
    "version": 1,
    "code": "REV-7Q2K",
    "at": "2026-11-30T19:00:00.000Z",
    "url": "https://evidence.metmuseum.org/a",
    "rows": [{"id": "a", "count": 3}, {"id": "b"}],
}


def found(reading: Any) -> set[tuple[str, str, int]]:
    return {(blocker.code, blocker.subject, blocker.count) for blocker in reading.blockers}


def test_a_valid_document_is_its_own_projection() -> None:
    reading = read(VALID, SHAPE, subject="doc")
    assert (reading.value, reading.projection, reading.blockers, reading.ignored) == (VALID, VALID, [], 0)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": True}, {("not-version-1", "doc.version", 1)}),
        ({"version": 1.0}, {("not-version-1", "doc.version", 1)}),
        ({"code": "jan jansen"}, {("not-a-code", "doc.code", 1)}),
        ({"at": 5}, {("not-an-instant", "doc.at", 1)}),
        ({"url": None}, {("url-not-a-string", "doc.url", 1)}),
        ({"rows": None}, {("not-a-list", "doc.rows", 1)}),
        ({"rows": [1, "x", {"id": "A B"}]}, {("not-an-object", "doc.rows[]", 2), ("not-an-id", "doc.rows[].id", 1)}),
        ({"rows": [{"id": "202-555-0123"}]}, {("contact-detail", "doc.rows[].id", 1)}),
        ({"rows": [{"id": "a", "count": True}]}, {("no", "doc.rows[].count", 1)}),
        ({"rows": [{}]}, {("missing-key", "doc.rows[].id", 1)}),
        ({"note": 1, "other": 2}, {("unknown-key", "doc", 2)}),
        ({"answer": 1, "ipAddress": 2}, {("content-field", "doc", 1), ("identifying-field", "doc", 1)}),
    ],
)
def test_each_refusal_is_named_by_rule_and_place_and_counted(changes: dict[str, Any], expected: set[Any]) -> None:
    assert found(read(VALID | changes, SHAPE, subject="doc")) == expected


def test_an_ignored_key_is_counted_and_dropped() -> None:
    document = VALID | {"total": 5, "rows": [{"id": "a", "total": {"deep": 1}}]}
    reading = read(document, SHAPE, subject="doc")
    assert (reading.blockers, reading.ignored) == ([], 2)
    assert "total" not in reading.value
    assert "deep" not in json.dumps(reading.projection)


CANARY = "canary-7f3a"
ANYTHING = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 7, 1.5, "REV-7Q2K", "a", VALID["at"], VALID["url"], CANARY, f"{CANARY} x"]
    )
    | st.sampled_from(
        [{"refused": CANARY}, {"refused": "not-a-code"}, {"refusedKeys": {CANARY: 1}}, {"ignoredKeys": 3}]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*VALID, "id", "count", "total", "refused", "refusedKeys", "ignoredKeys", "email", CANARY]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)
NEARLY = st.fixed_dictionaries({}, optional={key: ANYTHING | st.just(value) for key, value in VALID.items()})


@given(ANYTHING | NEARLY)
@settings(max_examples=300, deadline=None)
def test_a_projection_read_again_gives_the_same_projection_and_blockers(document: Any) -> None:
    first = read(document, SHAPE, subject="doc")
    again = read_projection(json.loads(json.dumps(first.projection)), SHAPE, subject="doc")
    assert again.projection == first.projection
    assert again.blockers == first.blockers
    assert again.ignored == first.ignored
    assert again.value == first.value


@given(ANYTHING | NEARLY)
@settings(max_examples=300, deadline=None)
def test_no_refused_value_or_key_survives_in_a_projection_or_a_blocker(document: Any) -> None:
    # `id` would rightly accept the canary, so a shape without it is used: every canary is to be refused.
    shape = Keyed({**SHAPE.keys, "rows": Listed(CODE)}, ignored=SHAPE.ignored)
    reading = read(document, shape, subject="doc")
    assert CANARY not in json.dumps(reading.projection)
    assert CANARY not in str(reading.blockers)
    assert CANARY not in json.dumps(reading.value)


def test_a_document_that_plays_a_projection_is_read_as_a_document() -> None:
    reading = read(VALID | {"code": {"refused": CANARY}, "refusedKeys": {CANARY: 2}}, SHAPE, subject="doc")
    assert found(reading) == {("not-a-code", "doc.code", 1), ("unknown-key", "doc", 1)}


def test_a_projection_cannot_carry_a_raw_value_back() -> None:
    projection = VALID | {"code": "Jan Jansen", "note": CANARY}
    again = read_projection(projection, SHAPE, subject="doc")
    assert again.projection == VALID | {"code": {"refused": "not-a-code"}, "refusedKeys": {"unknown-key": 1}}


@pytest.mark.parametrize(
    ("leaf", "good", "bad"),
    [
        (SHA256, ["0" * 64], ["0" * 63, "A" * 64, "0" * 64 + "\n", 0, None]),
        (TRUE_OR_FALSE, [True, False], [0, 1, "true", None]),
        (exactly(True, rule="r"), [True], [1, "true", False, None]),
        (one_of(("a", "b"), rule="r"), ["a", "b"], ["c", "", None, ["a"]]),
        (none_or(CODE), [None, "REV-1A"], ["", "rev", 0]),
        (whole_number(least=1, most=3, rule="r"), [1, 2, 3], [0, 4, 1.0, True, "1", None]),
        (CODE, ["REV-7Q2K", "ABC"], ["AB", "123", "A" * 41, "rev-1", "REV 1", "NN-202-555-0123", None]),
    ],
)
def test_leaves_take_what_they_say_and_nothing_else(leaf: Any, good: list[Any], bad: list[Any]) -> None:
    assert [leaf.rule_broken(value) for value in good] == [None] * len(good)
    assert all(isinstance(leaf.rule_broken(value), str) for value in bad)


def test_a_part_that_a_stage_keeps_must_fit_whole() -> None:
    assert kept_part(VALID, SHAPE, pointer="/replay/x") == VALID
    for part in (VALID | {"note": 1}, VALID | {"total": 1}, VALID | {"code": {"refused": "not-a-code"}}, None):
        with pytest.raises(VerificationError, match="no stage keeps at /replay/x"):
            kept_part(part, SHAPE, pointer="/replay/x")
