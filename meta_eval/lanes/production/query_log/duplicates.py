"""Which candidates are eligible: the rules of the query log that compare rows with one another.

Source: the production evaluation document, the duplicate rule. Works on fixed-width digests held in memory, 40
bytes a candidate, and sorts them a share at a time, so the questions themselves need not be at hand and the
result depends on no thread count. Digests are cut to 128 bits: a collision by chance is beyond any log, and one
by design costs 2^64 hashes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meta_eval.lanes.production.query_log.outcomes import DUPLICATE, ELIGIBLE, MALFORMED

_SHARE = 1 << 20
"""Rows sorted at once, about."""


class Candidates:
    """The rows that reached the duplicate stage, added in row order."""

    def __init__(self) -> None:
        self.count = 0
        self._questions = np.empty((1024, 2), dtype=np.uint64)
        self._ids = np.empty((1024, 2), dtype=np.uint64)
        self._asked = np.empty(1024, dtype=np.int64)

    def add(self, questions: bytes, ids: bytes, asked_at_ms: np.ndarray) -> None:
        """Add rows by the SHA-256 of their normalised question and of their query id, each end to end."""
        start, stop = self.count, self.count + asked_at_ms.size
        if stop > self._asked.size:
            room = max(stop, 2 * self._asked.size)
            self._questions = _grown(self._questions, room)
            self._ids = _grown(self._ids, room)
            self._asked = _grown(self._asked, room)
        self._questions[start:stop] = _cut(questions)
        self._ids[start:stop] = _cut(ids)
        self._asked[start:stop] = asked_at_ms
        self.count = stop

    def final_outcomes(self) -> tuple[np.ndarray, int | None]:
        """Each candidate's outcome (uint8), in the order added, and the newest instant of those not malformed."""
        outcomes = np.full(self.count, DUPLICATE, dtype=np.uint8)
        conflicting = self._conflicting()
        newest: list[int] = []
        for share in _shares(self._questions[: self.count]):
            kept = share[~conflicting[share]]
            keys, asked = self._questions[kept], self._asked[kept]
            # lexsort is stable, so of two rows asked at one instant the lower row number comes first.
            order = np.lexsort((asked, keys[:, 1], keys[:, 0]))
            outcomes[kept[order[_starts(keys[order])]]] = ELIGIBLE
            if asked.size:
                newest.append(int(asked.max()))
        outcomes[conflicting] = MALFORMED
        return outcomes, max(newest, default=None)

    def _conflicting(self) -> np.ndarray:
        """True for every row whose query id names two different questions: such an id identifies nothing."""
        conflicting = np.zeros(self.count, dtype=bool)
        for share in _shares(self._ids[: self.count]):
            keys = self._ids[share]
            order = np.lexsort((keys[:, 1], keys[:, 0]))
            begins = _starts(keys[order])
            # Within one id any two questions that differ also differ somewhere between neighbours.
            differs = _starts(self._questions[share[order]]) & ~begins
            group = np.cumsum(begins) - 1
            split = np.bincount(group, weights=differs) > 0
            conflicting[share[order]] = split[group]
        return conflicting


def _grown(column: np.ndarray, room: int) -> np.ndarray:
    grown = np.empty((room, *column.shape[1:]), dtype=column.dtype)
    grown[: column.shape[0]] = column
    return grown


def _cut(digests: bytes) -> np.ndarray:
    return np.frombuffer(digests, dtype=np.uint64).reshape(-1, 4)[:, :2]


def _shares(keys: np.ndarray) -> Iterator[np.ndarray]:
    """The rows' numbers in ascending order, those of equal key always in one share."""
    shares = 1
    while shares < 256 and shares * _SHARE < keys.shape[0]:
        shares *= 2
    share_of = keys[:, 0].astype(np.uint8) & np.uint8(shares - 1)
    for share in range(shares):
        yield np.flatnonzero(share_of == share)


def _starts(keys: np.ndarray) -> np.ndarray:
    """True where a key differs from the one before it."""
    starts = np.ones(keys.shape[0], dtype=bool)
    starts[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return starts
