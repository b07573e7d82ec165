"""A batch of rows to a batch of outcomes: every rule of the query log that looks at one row alone.

Source: the production evaluation document, the query log. Pure: the clock and the policy are arguments. What
needs the other rows (duplicates, an id that names two questions) is decided in `duplicates`.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

from meta_eval.evidence.identifiers import contact_rule, may_hold_contact
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.normalise import normalised_question
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


def classify(batch: pa.RecordBatch, *, as_of_ms: int, policy: Policy) -> pa.RecordBatch:
    """The outcome of each row of `batch` (column "row": one row's JSON text, null where it is over-long).

    A row that only other rows could still exclude is a candidate and carries the index of "eligible".
    """
    outcomes: list[int] = []
    asked: list[int | None] = []
    ids: list[str | None] = []
    questions: list[str | None] = []
    digests: list[bytes | None] = []
    for text in _texts(batch.column("row")):
        fields = None if text is None else _fields_of(text)
        if fields is None:
            outcome, normal = MALFORMED, ""
        else:
            outcome, normal = _judged(fields, as_of_ms, policy)
        candidate = fields if outcome == ELIGIBLE else None
        outcomes.append(outcome)
        asked.append(fields.asked_at_ms if fields else None)
        ids.append(candidate.query_id if candidate else None)
        questions.append(candidate.question if candidate else None)
        digests.append(hashlib.sha256(normal.encode()).digest() if candidate else None)
    columns = [outcomes, asked, ids, questions, digests]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CLASSIFIED_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=CLASSIFIED_SCHEMA)


def _fields_of(text: str) -> Fields | None:
    answered, fields = quick_fields(text)
    return fields if answered else strict_fields(text)


def _texts(rows: pa.Array) -> list[str | None]:
    """The rows as text; None for one that is over-long or not UTF-8."""
    try:
        texts: list[str | None] = rows.cast(pa.string()).to_pylist()
    except pa.ArrowInvalid:
        texts = [_text(row) for row in rows.to_pylist()]
    if rows.nbytes > ROW_LIMIT:
        return [
            None if text is None or (len(text) > ROW_LIMIT // 4 and len(text.encode()) > ROW_LIMIT) else text
            for text in texts
        ]
    return texts


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
    question = fields.question
    # Looked for before the length, so that a long question cannot carry an address past the scan.
    if may_hold_contact(question) and contact_rule(question) is not None:
        return CONTACT_BEARING, ""
    if len(question) > policy.longest_question:
        return (EMPTY_QUESTION if _is_blank(question) else OVER_LENGTH), ""
    normal = normalised_question(question)
    return (ELIGIBLE if normal else EMPTY_QUESTION), normal


def _is_blank(question: str) -> bool:
    """Whether the normal form is empty, asked character by character.

    NFKC takes quadratic time over a long run of combining marks, so a text of any length is not put through it.
    No character whose own normal form is not empty can be normalised away by its neighbours.
    """
    return not any(map(normalised_question, set(question)))
