"""Rows that differ in nothing but their text values: what such rows have in common, learnt from one of them.

Source: the production evaluation document, the query log's contract. A log's rows are written by one program, so
almost all share their keys, order, spacing and literals. `learnt` takes one row apart and asks the strict reader,
with known values in the values' places, what a row so written means; `columns` then looks at the values alone.
Nothing is learnt from a row with a backslash, since without one every quotation mark bounds a key or a value.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from meta_eval.lanes.production.query_log.parsing import strict_fields

_BLANK = " \t\n\r"
_GOOD = {
    "queryId": "id",
    "question": "Who?",
    "askedAt": "2026-11-20T10:00:00.000Z",
    "outcome": "answered",
    "contract": "contract",
    "recordedAt": "2026-11-20T10:00:00.000Z",
}


class Layout(NamedTuple):
    """A way to write a row. `fields` gives the place of each field among the text values; consent's may be absent."""

    quotes: int
    controls: int
    """Bytes below 0x20, which can only be white space between the values."""
    opening: tuple[int, ...]
    """Which of the row's quotation marks opens each text value; the next one closes it."""
    fixed: tuple[bytes, ...]
    """What stands before, between and after the values, quotation marks included."""
    fields: dict[str, int]
    granted: bool


def learnt(text: str) -> Layout | None:
    """The layout of a row, or None where the strict reader would refuse every row so written, or none is found."""
    if "\\" in text or len(text) > 1 << 16:
        return None
    parts = text.split('"')
    outside, quoted = parts[0::2], parts[1::2]
    if len(outside) == len(quoted):
        return None
    values = [place for place, after in enumerate(outside[1:]) if not after.lstrip(_BLANK).startswith(":")]
    found = _places(_written(parts, {place: str(order) for order, place in enumerate(values)}))
    if found is None:
        return None
    fields, granted = found
    good = {values[order]: _GOOD[name] for name, order in fields.items()}
    read = strict_fields(_written(parts, dict.fromkeys(values, "") | good))
    if read is None or read.consent != (_GOOD["contract"] if granted else None):
        return None
    edges = [-1, *(edge for place in values for edge in (2 * place, 2 * place + 1)), len(parts) - 1]
    return Layout(
        quotes=len(parts) - 1,
        controls=sum(char < " " for part in outside for char in part),
        opening=tuple(2 * place for place in values),
        fixed=tuple(_between(parts, edges[at], edges[at + 1]).encode() for at in range(0, len(edges), 2)),
        fields=fields,
        granted=granted,
    )


def _written(parts: list[str], values: dict[int, str]) -> str:
    """The row with its text values replaced."""
    changed = list(parts)
    for place, value in values.items():
        changed[2 * place + 1] = value
    return '"'.join(changed)


def _between(parts: list[str], first: int, last: int) -> str:
    """The text from quotation mark `first` to quotation mark `last`, both included where they are marks."""
    inner = '"'.join(parts[first + 1 : last + 1])
    return ('"' if first >= 0 else "") + inner + ('"' if last < len(parts) - 1 else "")


def _places(probe: str) -> tuple[dict[str, int], bool] | None:
    """Where the contract's fields stand, in a row whose text values say their own place."""
    try:
        row = json.loads(probe)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    consent, granted = row.get("consent"), False
    held = {name: row.get(name) for name in ("queryId", "question", "askedAt", "outcome")}
    if isinstance(consent, dict):
        held |= {name: consent.get(name) for name in ("contract", "recordedAt")}
        granted = consent.get("granted") is True
    places = {name: int(value) for name, value in held.items() if isinstance(value, str)}
    return (places, granted) if len(places) == len(held) else None
