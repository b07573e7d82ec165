"""One row's JSON text under the strict reading, as the contract's fields or nothing.

Source: the production evaluation document, the query log's contract. Two readers of one contract: `strict_fields`
states every rule on any text; `quick_fields` answers for the ordinary row, a few times faster, and leaves every
other text to the strict one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from meta_eval.evidence.canonical import MAX_DEPTH, MAX_SAFE_INTEGER
from meta_eval.evidence.identifiers import identifying_key
from meta_eval.lanes.production.query_log.instants import quick_instant_ms

LONGEST_QUERY_ID = 200
"""Code points."""

_ROW_KEYS = frozenset({"queryId", "question", "askedAt", "outcome", "consent"})
_CONSENT_KEYS = frozenset({"contract", "granted", "recordedAt"})
_CONTRACT_KEYS = _ROW_KEYS | _CONSENT_KEYS
_FOLDED_KEYS = frozenset(key.casefold() for key in _CONTRACT_KEYS)
_RESULTS = frozenset({"answered", "refused", "failed"})

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class Fields(NamedTuple):
    """A row that keeps to the contract. `consent` is its contract's name, or None where nothing is granted."""

    query_id: str
    question: str
    asked_at_ms: int
    failed: bool
    consent: str | None


class _RefusedError(ValueError):
    """What JSON allows and the strict reading does not."""


def strict_fields(text: str) -> Fields | None:
    """The fields of a row, or None where it is malformed by any rule."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(text):
        return None
    try:
        row = _DECODER.decode(text)
    except ValueError:
        return None
    if not isinstance(row, dict) or (_SURROGATE_ESCAPE.search(text) and _holds_surrogate(row)):
        return None
    consent = row.get("consent")
    if not (consent is None or isinstance(consent, dict)) or any(map(_refused_key, _extra_keys(row))):
        return None
    granted = None
    if consent is not None:
        granted = consent.get("granted")
        if not isinstance(granted, bool):
            return None
    return _fields(
        row.get("queryId"),
        row.get("question"),
        row.get("askedAt"),
        row.get("outcome"),
        None if consent is None else (consent.get("contract"), granted, consent.get("recordedAt")),
    )


def _fields(
    query_id: object,
    question: object,
    asked_at: object,
    result: object,
    consent: tuple[object, object, object] | None,
) -> Fields | None:
    """The rules on values, shared by both readers."""
    if not isinstance(query_id, str) or len(query_id) > LONGEST_QUERY_ID or not query_id.strip():
        return None
    if not isinstance(question, str) or _CONTROL.search(question):
        return None
    if not isinstance(result, str) or result not in _RESULTS:
        return None
    asked_at_ms = quick_instant_ms(asked_at)
    if asked_at_ms is None:
        return None
    given: str | None = None
    if consent is not None:
        contract, granted, recorded_at = consent
        recorded_at_ms = quick_instant_ms(recorded_at)
        if not isinstance(contract, str) or recorded_at_ms is None or recorded_at_ms > asked_at_ms:
            return None
        given = contract if granted else None
    return Fields(query_id, question, asked_at_ms, result == "failed", given)


# --- the strict reader -------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _RefusedError
    return result


def _no_constant(_: str) -> None:
    raise _RefusedError


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _RefusedError
    return value


def _safe_integer(text: str) -> int:
    # The length is looked at first: int() itself refuses thousands of digits, and quadratic time is not spent.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER:
        raise _RefusedError
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_safe_integer
)


def _too_deep(text: str) -> bool:
    """Asked before the decoder, which recurses and would fail on depth in its own way."""
    depth = 0
    for token in _BRACKET.finditer(text):
        char = token.group()
        if char in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif char in ("]", "}"):
            depth -= 1
    return False


def _children(node: object) -> Iterator[object]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node


def _holds_surrogate(row: dict[str, Any]) -> bool:
    stack: list[object] = [row]
    while stack:
        node = stack.pop()
        texts = list(node) if isinstance(node, dict) else [node] if isinstance(node, str) else []
        if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
            return True
        stack.extend(_children(node))
    return False


def _extra_keys(row: dict[str, Any]) -> Iterator[str]:
    """Every key of a row, at any depth, that is not one of the contract's in its place."""
    stack: list[tuple[object, frozenset[str]]] = [(row, _ROW_KEYS)]
    while stack:
        node, known = stack.pop()
        if isinstance(node, dict):
            yield from (key for key in node if key not in known)
            for key, child in node.items():
                own = node is row and key == "consent"
                stack.append((child, _CONSENT_KEYS if own else frozenset()))
        else:
            stack.extend((child, frozenset()) for child in _children(node))


def _refused_key(key: str) -> bool:
    return _judged_key(key) if len(key) <= 100 else _judged_key.__wrapped__(key)


@lru_cache(maxsize=4096)
def _judged_key(key: str) -> bool:
    """Identifying, or one of the contract's but for letter case: a second reader could take it for that one."""
    return (key not in _CONTRACT_KEYS and key.casefold() in _FOLDED_KEYS) or identifying_key(key)


# --- the quick reader --------------------------------------------------------------------------------------


class _Consent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    contract: str
    granted: bool
    recordedAt: str  # noqa: N815 - the file's name for it


class _Row(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    queryId: str  # noqa: N815
    question: str
    askedAt: str  # noqa: N815
    outcome: Literal["answered", "refused", "failed"]
    consent: _Consent | None = None


_decode_row = msgspec.json.Decoder(_Row).decode
# Quotation marks of a row whose every text is written without escapes: two a key and two a text value.
_QUOTES = 2 * (8 + 6)
_QUOTES_NULL_CONSENT = 2 * (5 + 4)
_QUOTES_NO_CONSENT = 2 * (4 + 4)


def quick_fields(text: str) -> tuple[bool, Fields | None]:
    """Whether this reader may answer for the text, and its answer.

    The decoder is strict but of a repeated key takes the last. With no escape in the text every quotation mark
    bounds a key or a text value; where there are as many as the contract's own keys and values need, no key
    stands twice.
    """
    if "\\" in text:
        return False, None
    try:
        row = _decode_row(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False, None
    consent = row.consent
    quotes = text.count('"')
    if consent is not None:
        if quotes != _QUOTES:
            return False, None
        given = (consent.contract, consent.granted, consent.recordedAt)
        return True, _fields(row.queryId, row.question, row.askedAt, row.outcome, given)
    if quotes not in (_QUOTES_NULL_CONSENT, _QUOTES_NO_CONSENT):
        return False, None
    return True, _fields(row.queryId, row.question, row.askedAt, row.outcome, None)
