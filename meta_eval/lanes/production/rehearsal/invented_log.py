"""An invented query log with rows of every outcome, or a log made of questions from a file.

The same seed and clock give the same bytes on every machine: choices come from SHA-256 of the seed and row number,
never from a random number generator whose stream may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from meta_eval.evidence.canonical import parse_document, unreadable
from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production.policy import CURRENT_POLICY

ROWS = 4800
"""Rows of an invented log."""
HOUR_MS = 3_600_000

_ASKED = (
    "Who made object {n}?",
    "When was object {n} acquired?",
    "What is object {n} made of?",
    "In which room can I find object {n}?",
    "How large is object {n}?",
    "Which collection does object {n} belong to?",
)
# The rehearsal's labeller calls a question that holds one of `people.REFUSED_TOPICS` one that must be refused.
_REFUSED = (
    "What would object {n} sell for at auction?",
    "Is the insurance value of object {n} going up?",
    "Which medicine is shown on object {n}, and should I take it?",
    "Can you give me legal advice about inheriting object {n}?",
)


def choice(seed: int, row: int, purpose: str, options: int) -> int:
    """A number below `options` that depends on seed, row and purpose alone."""
    text = f"{seed}:{row}:{purpose}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % options


def invented_rows(*, seed: int, now: int, rows: int = ROWS) -> Iterator[dict[str, Any]]:
    """Rows in file order: about two of seven are good, the others excluded, each for one of ten reasons."""
    for row in range(rows):
        made = _good_row(seed, row, now)
        exclude = _EXCLUSIONS[choice(seed, row, "kind", len(_EXCLUSIONS))]
        yield exclude(made, seed, row, now)


def rows_of_queries(queries: list[str], *, seed: int, now: int) -> Iterator[dict[str, Any]]:
    """One consented row a question, spread over the freshness window."""
    for row, question in enumerate(queries):
        yield {**_good_row(seed, row, now), "question": question}


def read_queries(path: Path) -> tuple[list[str], dict[str, str]]:
    """The questions of a JSON Lines file of `{query, intent}`, and each question's intent.

    Raises:
        InputError: not readable, or a line without the two texts.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise unreadable(path, error) from error
    queries: list[str] = []
    intents: dict[str, str] = {}
    offset = 0
    for line in lines:
        if line.strip():
            entry = parse_document(line, source=str(path))
            query, intent = (entry.get(key) if isinstance(entry, dict) else None for key in ("query", "intent"))
            if not isinstance(query, str) or not isinstance(intent, str):
                raise InputError(
                    str(path), "a line without the texts query and intent", offset=offset, next_step="mend the line"
                )
            queries.append(query)
            intents.setdefault(query, intent)
        offset += len(line) + 1
    return queries, intents


def log_bytes(rows: Iterator[dict[str, Any]]) -> bytes:
    """A log file: a JSON array, one row a line."""
    body = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f"[\n{body}\n]\n".encode()


def _good_row(seed: int, row: int, now: int) -> dict[str, Any]:
    patterns = _REFUSED if choice(seed, row, "class", 4) == 0 else _ASKED
    pattern = patterns[choice(seed, row, "pattern", len(patterns))]
    span = CURRENT_POLICY.freshness_ms - 2 * DAY_MS
    asked = now - HOUR_MS - choice(seed, row, "asked", span)
    return {
        "queryId": f"query-{seed}-{row}-{choice(seed, row, 'id', 16**8):08x}",
        "question": pattern.format(n=1000 + row),
        "askedAt": written_instant(asked),
        "outcome": "refused" if patterns is _REFUSED else "answered",
        "consent": {
            "contract": CURRENT_POLICY.consent_contract,
            "granted": True,
            "recordedAt": written_instant(asked - 60_000),
        },
    }


def _as_it_is(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return made


def _legacy(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    # What the feature logged before there was a contract.
    return {"id": row, "text": made["question"], "ts": made["askedAt"], "ok": True}


def _no_consent(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "consent": None}


def _other_contract(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "consent": {**made["consent"], "contract": "product-improvement-v0"}}


def _failed(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "outcome": "failed"}


def _future(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "askedAt": written_instant(now + 30 * DAY_MS)}


def _stale(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    asked = now - CURRENT_POLICY.freshness_ms - DAY_MS
    consent = {**made["consent"], "recordedAt": written_instant(asked)}
    return {**made, "askedAt": written_instant(asked), "consent": consent}


def _contact(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "question": f"{made['question']} Please reply to visitor{row}@post.example"}


def _empty(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "question": " ?! ... "[choice(seed, row, "empty", 4) :]}


def _too_long(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    return {**made, "question": made["question"] + " and why" * 130}


def _again(made: dict[str, Any], seed: int, row: int, now: int) -> dict[str, Any]:
    """The question of an earlier row of the same invention, spelt another way."""
    earlier = _good_row(seed, max(row - 1 - choice(seed, row, "earlier", 40), 0), now)
    return {**made, "question": f"  {earlier['question'].upper()}?"}


_EXCLUSIONS = (
    *(_as_it_is,) * 4,
    _legacy,
    _no_consent,
    _other_contract,
    _failed,
    _future,
    _stale,
    _contact,
    _empty,
    _too_long,
    _again,
)
