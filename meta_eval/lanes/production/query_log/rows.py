"""A batch of rows to a batch of outcomes: every rule of the query log that looks at one row alone.

Source: the production evaluation document, the query log. Pure: the clock and the policy are arguments. What
needs the other rows (duplicates, an id that names two questions) is decided in `duplicates`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log import columns
from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.outcomes import (
    ELIGIBLE,
    FUTURE,
    MALFORMED,
    MISSING_CONSENT,
    STALE,
    UNSUCCESSFUL,
    WRONG_CONTRACT,
)
from meta_eval.lanes.production.query_log.parsing import Fields, quick_fields, strict_fields
from meta_eval.lanes.production.query_log.questions import judged_questions

CLASSIFIED_SCHEMA = pa.schema(
    [
        pa.field("outcome", pa.int8(), nullable=False),
        pa.field("asked_at_ms", pa.int64()),
        pa.field("query_id", pa.string()),
        pa.field("question", pa.string()),
        pa.field("normal_question", pa.string()),
    ]
)
"""`asked_at_ms` is null of a malformed row; the last three are null of all but candidates."""


class _Asked(NamedTuple):
    """Rows of which only the question is left to judge, in their order."""

    rows: np.ndarray
    query_id: pa.Array
    question: pa.Array


def classify(
    batch: pa.RecordBatch, *, as_of_ms: int, policy: Policy, compared: bool = True, questions: bool = True
) -> pa.RecordBatch:
    """The outcome of each row of `batch` (column "row": one row's JSON text, null where it is over-long).

    A row that only other rows could still exclude is a candidate and carries the index of "eligible".

    Args:
        compared: whether to give the normal forms by which rows are compared; without them that column is null.
        questions: whether to give the questions; likewise.
    """
    rows = batch.column("row")
    outcomes = np.full(len(rows), MALFORMED, dtype=np.int8)
    asked_at_ms = np.zeros(len(rows), dtype=np.int64)
    try:
        texts = rows.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([_text(row) for row in rows.to_pylist()], pa.string())
    judged = columns.judged(texts, policy.consent_contract)
    outcomes[judged.rows] = _before_the_question(judged.asked_at_ms, judged.failed, judged.consent, as_of_ms, policy)
    asked_at_ms[judged.rows] = judged.asked_at_ms
    asks = np.flatnonzero(outcomes[judged.rows] == ELIGIBLE)
    together = _Asked(judged.rows[asks], _cut(texts, judged.query_id, asks), _cut(texts, judged.question, asks))
    left = np.ones(len(rows), dtype=bool)
    left[judged.rows] = False
    singly = _one_by_one(np.flatnonzero(left), texts, outcomes, asked_at_ms, as_of_ms, policy)
    asked = _in_order(together, singly)
    answers = judged_questions(asked.question, policy.longest_question, normal=compared)
    outcomes[asked.rows] = answers.outcomes
    chosen = pa.array(answers.outcomes == ELIGIBLE)
    candidate = outcomes == ELIGIBLE
    nothing = pa.nulls(len(rows), pa.string())
    arrays = [
        pa.array(outcomes),
        pa.array(asked_at_ms, mask=outcomes == MALFORMED),
        _spread(asked.query_id.filter(chosen), candidate),
        _spread(asked.question.filter(chosen), candidate) if questions else nothing,
        nothing if answers.normal is None else _spread(answers.normal, candidate),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CLASSIFIED_SCHEMA)


def _before_the_question(
    asked_at_ms: np.ndarray, failed: np.ndarray, consent: np.ndarray, as_of_ms: int, policy: Policy
) -> np.ndarray:
    """The first rule that fits each row; "eligible" where the question is still to be looked at."""
    age = as_of_ms - asked_at_ms
    return np.select(
        [consent == 0, consent == 1, failed, age < 0, age > policy.freshness_ms],
        [MISSING_CONSENT, WRONG_CONTRACT, UNSUCCESSFUL, FUTURE, STALE],
        ELIGIBLE,
    )


def _cut(texts: pa.Array, bounds: np.ndarray, chosen: np.ndarray) -> pa.Array:
    """Parts of the batch's text, in its order, as strings."""
    if chosen.size == 0:
        return pa.array([], pa.string())
    edges = np.empty(2 * chosen.size, dtype=np.int32)
    edges[0::2], edges[1::2] = bounds[0][chosen], bounds[1][chosen]
    # Every part and every gap between two of them, of which the parts are taken.
    whole = pa.StringArray.from_buffers(edges.size - 1, pa.py_buffer(edges), texts.buffers()[2])
    return whole.take(pa.array(np.arange(0, edges.size, 2)))


def _one_by_one(
    rows: np.ndarray,
    texts: pa.Array,
    outcomes: np.ndarray,
    asked_at_ms: np.ndarray,
    as_of_ms: int,
    policy: Policy,
) -> _Asked:
    """Judge the rows that no layout fits, in place, up to the question."""
    found = [
        None if text is None or _is_over_long(text) else _fields_of(text)
        for text in texts.take(pa.array(rows)).to_pylist()
    ]
    fields = [each for each in found if each is not None]
    read = rows[np.array([each is not None for each in found], dtype=bool)]
    asked_at_ms[read] = [each.asked_at_ms for each in fields]
    consent = [0 if each.consent is None else 1 + (each.consent == policy.consent_contract) for each in fields]
    failed = np.array([each.failed for each in fields], dtype=bool)
    outcomes[read] = _before_the_question(asked_at_ms[read], failed, np.array(consent), as_of_ms, policy)
    asks = np.flatnonzero(outcomes[read] == ELIGIBLE)
    return _Asked(
        read[asks],
        pa.array([fields[at].query_id for at in asks], pa.string()),
        pa.array([fields[at].question for at in asks], pa.string()),
    )


def _in_order(one: _Asked, other: _Asked) -> _Asked:
    if other.rows.size == 0:
        return one
    rows = np.concatenate((one.rows, other.rows))
    order = np.argsort(rows)
    query_id, question = (
        pa.concat_arrays(pair) for pair in ((one.query_id, other.query_id), (one.question, other.question))
    )
    place = pa.array(order)
    return _Asked(rows[order], query_id.take(place), question.take(place))


def _spread(values: pa.Array, places: np.ndarray) -> pa.Array:
    """Strings, one for each true place in order, with nulls in the other places."""
    _, edges, data = values.buffers()
    ends = np.frombuffer(edges, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    begin = np.concatenate(([0], np.cumsum(places)))
    bits = np.packbits(places, bitorder="little")
    return pa.StringArray.from_buffers(places.size, pa.py_buffer(ends[begin]), data, pa.py_buffer(bits))


def _is_over_long(text: str) -> bool:
    return len(text) > ROW_LIMIT // 4 and len(text.encode()) > ROW_LIMIT


def _fields_of(text: str) -> Fields | None:
    answered, fields = quick_fields(text)
    return fields if answered else strict_fields(text)


def _text(row: bytes | None) -> str | None:
    try:
        return None if row is None else row.decode()
    except UnicodeDecodeError:
        return None
