"""A batch of rows to a batch of outcomes: every rule of the query log that looks at one row alone.

Source: the production evaluation document, the query log. Pure: the clock and the policy are arguments. What
needs the other rows (duplicates, an id that names two questions) is decided in `duplicates`.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.contact_prefilters import ASCII_MAY_HOLD
from meta_eval.evidence.identifiers import ASCII_SIGN, contact_rule
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log import columns
from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.normalise import ASCII_TRAILING, normalised_question
from meta_eval.lanes.production.query_log.outcomes import (
    CONTACT_BEARING,
    ELIGIBLE,
    EMPTY_QUESTION,
    FUTURE,
    MALFORMED,
    MISSING_CONSENT,
    OVER_LENGTH,
    STALE,
    UNSUCCESSFUL,
    WRONG_CONTRACT,
)
from meta_eval.lanes.production.query_log.parsing import Fields, quick_fields, strict_fields

CLASSIFIED_SCHEMA = pa.schema(
    [
        pa.field("outcome", pa.int8(), nullable=False),
        pa.field("asked_at_ms", pa.int64()),
        pa.field("query_id", pa.string()),
        pa.field("question", pa.string()),
        pa.field("question_sha256", pa.binary(32)),
    ]
)
"""`asked_at_ms` is null of a malformed row; the last three are null of all but candidates."""

_WORTH_LOOKING_AGAIN = 128
_LETTER = re.compile(r"[0-9A-Za-z]")
_SPACED = r"^ |  |[\t-\r\x1c-\x1f]"
"""White space that the normal form changes, but at the end, in ASCII."""


class _Found(NamedTuple):
    """Rows judged together. The last three have an element a candidate, of those rows in their order."""

    rows: np.ndarray
    outcomes: np.ndarray
    asked_at_ms: np.ndarray
    query_id: pa.Array
    question: pa.Array
    digests: list[bytes | None]


def classify(batch: pa.RecordBatch, *, as_of_ms: int, policy: Policy, keyed: bool = True) -> pa.RecordBatch:
    """The outcome of each row of `batch` (column "row": one row's JSON text, null where it is over-long).

    A row that only other rows could still exclude is a candidate and carries the index of "eligible".

    Args:
        keyed: whether to give the digests by which rows are compared; without them "question_sha256" is null.
    """
    rows = batch.column("row")
    parts: list[_Found] = []
    left = np.arange(len(rows))
    try:
        texts = rows.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([_text(row) for row in rows.to_pylist()], pa.string())
    if len(rows):
        text = columns.Text(texts)
        for judged in columns.judged(text, texts, policy.consent_contract):
            parts.append(_together(text, judged, texts, as_of_ms, policy, keyed))
            left = left[~np.isin(left, judged.rows, assume_unique=True)]
    parts.append(_one_by_one(left, texts.take(pa.array(left)).to_pylist(), as_of_ms, policy, keyed))
    return _joined(parts, len(rows))


def _joined(parts: list[_Found], count: int) -> pa.RecordBatch:
    outcomes = np.zeros(count, dtype=np.int8)
    asked = np.zeros(count, dtype=np.int64)
    candidate = np.full(count, -1, dtype=np.int64)
    so_far = 0
    for part in parts:
        outcomes[part.rows], asked[part.rows] = part.outcomes, part.asked_at_ms
        chosen = part.rows[part.outcomes == ELIGIBLE]
        candidate[chosen] = np.arange(so_far, so_far + chosen.size)
        so_far += chosen.size
    place = pa.array(candidate, mask=candidate < 0)
    digests = pa.array([digest for part in parts for digest in part.digests], pa.binary(32))
    arrays = [
        pa.array(outcomes),
        pa.array(asked, mask=outcomes == MALFORMED),
        pa.concat_arrays([part.query_id for part in parts]).take(place),
        pa.concat_arrays([part.question for part in parts]).take(place),
        digests.take(place),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CLASSIFIED_SCHEMA)


# --- rows of a known layout, judged together ------------------------------------------------------------------


def _together(
    text: columns.Text, judged: columns.Judged, texts: pa.Array, as_of_ms: int, policy: Policy, keyed: bool
) -> _Found:
    age = as_of_ms - judged.asked_at_ms
    outcomes = np.full(judged.rows.size, ELIGIBLE, dtype=np.int8)
    # The first rule that fits decides, so they are asked from the last to the first.
    for fits, outcome in (
        (age > policy.freshness_ms, STALE),
        (age < 0, FUTURE),
        (judged.failed, UNSUCCESSFUL),
        (judged.consent == 1, WRONG_CONTRACT),
        (judged.consent == 0, MISSING_CONSENT),
    ):
        outcomes[fits] = outcome
    asks = np.flatnonzero(outcomes == ELIGIBLE)
    questions = _cut(texts, judged.question, asks)
    outcomes[asks], normals = _questions_judged(questions, policy, keyed)
    kept = np.flatnonzero(outcomes[asks] == ELIGIBLE)
    return _Found(
        rows=judged.rows,
        outcomes=outcomes,
        asked_at_ms=judged.asked_at_ms,
        query_id=_cut(texts, judged.query_id, asks[kept]),
        question=questions.take(pa.array(kept)),
        digests=[hashlib.sha256(normal).digest() for normal in normals] if keyed else [None] * kept.size,
    )


def _cut(texts: pa.Array, bounds: tuple[np.ndarray, np.ndarray], chosen: np.ndarray) -> pa.Array:
    """Parts of the batch's text, in its order, as strings."""
    if chosen.size == 0:
        return pa.array([], pa.string())
    edges = np.empty(2 * chosen.size, dtype=np.int32)
    edges[0::2], edges[1::2] = bounds[0][chosen], bounds[1][chosen]
    # Every part and every gap between two of them, of which the parts are taken.
    whole = pa.StringArray.from_buffers(edges.size - 1, pa.py_buffer(edges), texts.buffers()[2])
    return whole.take(pa.array(np.arange(0, edges.size, 2)))


def _questions_judged(questions: pa.Array, policy: Policy, keyed: bool) -> tuple[np.ndarray, list[bytes]]:
    """Each question's outcome, and, where rows are to be compared, the candidates' normal forms."""
    if len(questions) == 0:
        return np.empty(0, dtype=np.int8), []
    # What is plain ASCII without a sign of contact, at most one space at a time and not over-long has few ways
    # to be normalised and one outcome, unless nothing is left of it.
    plain = _is_plain(questions)
    plain = pc.and_(plain, pc.less_equal(pc.binary_length(questions), policy.longest_question))
    forms = pc.ascii_rtrim(pc.ascii_lower(questions), ASCII_TRAILING)
    plain = pc.and_(plain, pc.greater(pc.binary_length(forms), 0))
    outcomes = np.full(len(questions), ELIGIBLE, dtype=np.int8)
    normals: list[bytes] = forms.cast(pa.binary()).to_pylist() if keyed else [b""] * len(questions)
    others = np.flatnonzero(~plain.to_numpy(False).astype(bool))
    for at, question in zip(others.tolist(), questions.take(pa.array(others)).to_pylist(), strict=True):
        outcomes[at], normal = _question_judged(question, policy, keyed)
        normals[at] = normal.encode()
    return outcomes, [normals[at] for at in np.flatnonzero(outcomes == ELIGIBLE)]


def _is_plain(questions: pa.Array) -> pa.Array:
    """True only of ASCII in which the contact screen would find nothing and the normal form moves no white space."""
    # Asked in one pass over every question; of the few that hold anything it is asked again what they hold.
    special = pc.or_(
        pc.invert(pc.string_is_ascii(questions)), pc.match_substring_regex(questions, rf"{_SPACED}|{ASCII_SIGN}")
    )
    held = questions.filter(special)
    plain = pc.and_(pc.string_is_ascii(held), pc.invert(pc.match_substring_regex(held, _SPACED)))
    signed = pc.and_(plain, pc.match_substring_regex(held, ASCII_SIGN))
    # Most signs are years. The longer pattern tells them from the rest, once a call has enough of them to pay for it.
    if (pc.sum(signed).as_py() or 0) >= _WORTH_LOOKING_AGAIN:
        signed = pc.replace_with_mask(signed, signed, pc.match_substring_regex(held.filter(signed), ASCII_MAY_HOLD))
    return pc.replace_with_mask(pc.invert(special), special, pc.and_not(plain, signed))


# --- rows judged one by one -----------------------------------------------------------------------------------


def _one_by_one(rows: np.ndarray, texts: list[str | None], as_of_ms: int, policy: Policy, keyed: bool) -> _Found:
    outcomes: list[int] = []
    asked: list[int] = []
    candidates: list[Fields] = []
    digests: list[bytes | None] = []
    for text in texts:
        fields = None if text is None or _is_over_long(text) else _fields_of(text)
        outcome, normal = (MALFORMED, "") if fields is None else _judged(fields, as_of_ms, policy)
        outcomes.append(outcome)
        asked.append(0 if fields is None else fields.asked_at_ms)
        if fields is not None and outcome == ELIGIBLE:
            candidates.append(fields)
            digests.append(hashlib.sha256(normal.encode()).digest() if keyed else None)
    return _Found(
        rows=rows,
        outcomes=np.array(outcomes, dtype=np.int8),
        asked_at_ms=np.array(asked, dtype=np.int64),
        query_id=pa.array([fields.query_id for fields in candidates], pa.string()),
        question=pa.array([fields.question for fields in candidates], pa.string()),
        digests=digests,
    )


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


def _judged(fields: Fields, as_of_ms: int, policy: Policy) -> tuple[int, str]:
    """The first rule that fits a row of the right shape, and a candidate's normal form."""
    if fields.consent is None:
        return MISSING_CONSENT, ""
    if fields.consent != policy.consent_contract:
        return WRONG_CONTRACT, ""
    if fields.failed:
        return UNSUCCESSFUL, ""
    age = as_of_ms - fields.asked_at_ms
    if age < 0:
        return FUTURE, ""
    if age > policy.freshness_ms:
        return STALE, ""
    return _question_judged(fields.question, policy)


def _question_judged(question: str, policy: Policy, keyed: bool = True) -> tuple[int, str]:
    # Looked for before the length, so that a long question cannot carry an address past the scan.
    if contact_rule(question) is not None:
        return CONTACT_BEARING, ""
    if len(question) > policy.longest_question:
        return (EMPTY_QUESTION if _is_blank(question) else OVER_LENGTH), ""
    if not keyed and _LETTER.search(question):
        return ELIGIBLE, ""  # a letter of ASCII is left in every normal form
    normal = normalised_question(question)
    return (ELIGIBLE if normal else EMPTY_QUESTION), normal


def _is_blank(question: str) -> bool:
    """Whether the normal form is empty, asked character by character.

    NFKC takes quadratic time over a long run of combining marks, so a text of any length is not put through it.
    No character whose own normal form is not empty can be normalised away by its neighbours.
    """
    return not any(map(normalised_question, set(question)))
