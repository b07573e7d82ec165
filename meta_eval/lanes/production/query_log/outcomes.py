"""The outcomes of a query-log row, and the run-length text that holds one letter a row.

Source: the production evaluation document, the query log. The order of `OUTCOMES` is the order in which the
rules are asked; a row's outcome is the first that fits.
"""

from __future__ import annotations

import numpy as np

OUTCOMES: tuple[str, ...] = (
    "malformed",
    "missing-consent",
    "wrong-consent-contract",
    "unsuccessful",
    "future",
    "stale",
    "contact-bearing",
    "empty-question",
    "over-length",
    "duplicate",
    "eligible",
)
(
    MALFORMED,
    MISSING_CONSENT,
    WRONG_CONTRACT,
    UNSUCCESSFUL,
    FUTURE,
    STALE,
    CONTACT_BEARING,
    EMPTY_QUESTION,
    OVER_LENGTH,
    DUPLICATE,
    ELIGIBLE,
) = range(len(OUTCOMES))

OUTCOME_LETTERS = "mnwufscblde"
"""One letter an outcome, in the order of `OUTCOMES`; fixed, as artifacts hold them. n: no consent, b: blank."""
MOST_ROWS = 10**9

_PIECE = 1 << 20
"""Rows, or characters, worked on at once: what bounds memory beside one byte a row."""
_MOST_DIGITS = 10
_LETTER_AT = np.frombuffer(OUTCOME_LETTERS.encode(), dtype=np.uint8)
_NONE = 255
_VALUE_OF = np.full(256, _NONE, dtype=np.uint8)
_VALUE_OF[_LETTER_AT] = np.arange(len(OUTCOMES))
_MORE_DIGITS = np.array([2, *(10**power for power in range(1, _MOST_DIGITS))], dtype=np.int64)
"""A count below the first of these is written with no digit, below the second with one, and so on."""


def counts_of(outcomes: np.ndarray) -> dict[str, int]:
    """How many rows have each outcome, by name and in the contract's order."""
    found = np.zeros(len(OUTCOMES), dtype=np.int64)
    for start in range(0, outcomes.size, _PIECE):
        found += np.bincount(outcomes[start : start + _PIECE], minlength=len(OUTCOMES))
    return dict(zip(OUTCOMES, found.tolist(), strict=True))


def runs_of(outcomes: np.ndarray) -> str:
    """Run-length text of outcome indices: a letter, then the count where it is above 1 (`m3ed2`).

    Raises:
        ValueError: an index that names no outcome.
    """
    if outcomes.size and (int(outcomes.min()) < 0 or int(outcomes.max()) >= len(OUTCOMES)):
        raise ValueError("an index that names no outcome")
    pieces: list[bytes] = []
    start = 0
    while start < outcomes.size:
        end = _run_end(outcomes, min(start + _PIECE, outcomes.size))
        piece = outcomes[start:end]
        edges = np.concatenate(([0], np.flatnonzero(piece[1:] != piece[:-1]) + 1, [piece.size]))
        pieces.append(_written(piece[edges[:-1]], np.diff(edges)))
        start = end
    return b"".join(pieces).decode()


def _run_end(outcomes: np.ndarray, end: int) -> int:
    """The end of the run in which the row before `end` is."""
    while end < outcomes.size:
        others = np.flatnonzero(outcomes[end : end + _PIECE] != outcomes[end - 1])
        if others.size:
            return end + int(others[0])
        end = min(end + _PIECE, outcomes.size)
    return end


def _written(values: np.ndarray, lengths: np.ndarray) -> bytes:
    digits = np.searchsorted(_MORE_DIGITS, lengths, side="right")
    ends = np.cumsum(digits + 1)
    text = np.empty(int(ends[-1]), dtype=np.uint8)
    text[ends - 1 - digits] = _LETTER_AT[values]
    for place in range(int(digits.max())):
        long = digits > place
        text[ends[long] - 1 - place] = ord("0") + lengths[long] // 10**place % 10
    return text.tobytes()


def outcomes_of(runs: str) -> np.ndarray:
    """The outcome indices (uint8) of a run-length text; accepts exactly what `runs_of` writes.

    Raises:
        ValueError: any other text, or one of more than `MOST_ROWS` rows.
    """
    if not runs.isascii():
        raise ValueError("not a run of a known outcome")
    text = np.frombuffer(runs.encode(), dtype=np.uint8)
    pieces = [np.empty(0, dtype=np.uint8)]
    start = total = 0
    last = _NONE
    while start < text.size:
        end = min(start + _PIECE, text.size)
        # A piece ends before a letter; what no letter follows in time is too long a count, and refused as one.
        ahead = np.flatnonzero(_VALUE_OF[text[end : end + _MOST_DIGITS + 1]] != _NONE)
        end += int(ahead[0]) if ahead.size else min(_MOST_DIGITS + 1, text.size - end)
        values, lengths = _read(text[start:end])
        total += int(lengths.sum())
        if values[0] == last or total > MOST_ROWS:
            raise ValueError("not a run as it is written: a split run, or too many rows")
        pieces.append(np.repeat(values, lengths))
        start, last = end, values[-1]
    return np.concatenate(pieces)


def _read(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values and the lengths of the runs in a text that begins with a run."""
    found = _VALUE_OF[text]
    places = np.flatnonzero(found != _NONE)
    counts = text[found == _NONE] - np.uint8(ord("0"))
    if found[0] == _NONE or (counts.size and counts.max() > 9):
        raise ValueError("not a run of a known outcome")
    values = found[places]
    digits = np.diff(np.concatenate((places, [text.size]))) - 1
    if int(digits.max()) > _MOST_DIGITS or (values[1:] == values[:-1]).any():
        raise ValueError("not a run as it is written: too long a count, or a split run")
    ends = np.cumsum(digits)
    counted = digits > 0
    lengths = np.where(counted, 0, 1).astype(np.int64)
    for place in range(int(digits.max())):
        long = digits > place
        lengths[long] += counts[ends[long] - 1 - place].astype(np.int64) * 10**place
    if counted.any() and (lengths[counted].min() < 2 or (counts[(ends - digits)[counted]] == 0).any()):
        raise ValueError("not a run as it is written: a count of 1, or one that begins with 0")
    return values, lengths
