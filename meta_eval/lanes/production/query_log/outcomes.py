"""The outcomes of a query-log row, and the run-length text that holds one letter a row.

Source: the production evaluation document, the query log. The order of `OUTCOMES` is the order in which the
rules are asked; a row's outcome is the first that fits.
"""

from __future__ import annotations

import re

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

_RUN = re.compile(r"([a-z])([1-9][0-9]*)?")
_LETTER_AT = np.frombuffer(OUTCOME_LETTERS.encode(), dtype=np.uint8)


def runs_of(outcomes: np.ndarray) -> str:
    """Run-length text of outcome indices: a letter, then the count where it is above 1 (`m3ed2`).

    Raises:
        ValueError: an index that names no outcome.
    """
    if outcomes.size == 0:
        return ""
    if int(outcomes.min()) < 0 or int(outcomes.max()) >= len(OUTCOMES):
        raise ValueError("an index that names no outcome")
    starts = np.concatenate(([0], np.flatnonzero(outcomes[1:] != outcomes[:-1]) + 1))
    lengths = np.diff(np.concatenate((starts, [outcomes.size])))
    letters = _LETTER_AT[outcomes[starts]].tobytes().decode()
    return "".join(
        letter if length == 1 else f"{letter}{length}" for letter, length in zip(letters, lengths.tolist(), strict=True)
    )


def outcomes_of(runs: str) -> np.ndarray:
    """The outcome indices (uint8) of a run-length text; accepts exactly what `runs_of` writes.

    Raises:
        ValueError: any other text, or one of more than `MOST_ROWS` rows.
    """
    values: list[int] = []
    lengths: list[int] = []
    total = position = 0
    while position < len(runs):
        run = _RUN.match(runs, position)
        value = OUTCOME_LETTERS.find(run[1]) if run else -1
        if run is None or value < 0:
            raise ValueError("not a run of a known outcome")
        # Ten digits hold MOST_ROWS; a longer count is refused before int() reads it.
        length = 1 if run[2] is None else int(run[2][:11])
        total += length
        if run[2] == "1" or (values and values[-1] == value) or total > MOST_ROWS:
            raise ValueError("not a run as it is written: a count of 1, a split run, or too many rows")
        values.append(value)
        lengths.append(length)
        position = run.end()
    return np.repeat(np.array(values, dtype=np.uint8), np.array(lengths, dtype=np.int64))
