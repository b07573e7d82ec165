"""Which candidates are eligible: the rules of the query log that compare rows with one another.

Source: the production evaluation document, the duplicate rule. Works on keys of fixed width (see `keys`), so that the
questions themselves need not be at hand. A large log's keys are dealt into files of the scan's private folder by their
own first bits, so that equal ones meet in one file, and a file at a time is sorted: memory grows by two bytes a
candidate, and the result depends on no thread count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from meta_eval.lanes.production.query_log.outcomes import DUPLICATE, ELIGIBLE, MALFORMED
from meta_eval.lanes.production.query_log.spill import Shares

_HELD = 1 << 20
"""Candidates held in memory before they are dealt into files."""
_SHARES = 64
_KEY, _OTHER, _ROW = slice(0, 2), slice(2, 4), 4
"""Columns of a table: the key by which it is dealt, what is compared within it, and the candidate's number."""
_ASKED = 2


class Candidates:
    """The rows that reached the duplicate stage, added in row order.

    Args:
        folder: gives the private folder for the keys of a log that is too large to hold.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self.count = 0
        self._ids, self._questions = _Table(folder, "ids"), _Table(folder, "questions")

    def add(self, questions: np.ndarray, ids: np.ndarray, asked_at_ms: np.ndarray) -> None:
        """Add rows by the keys of their normalised question and of their query id, two uint64 each.

        Raises:
            MetaEvalError: the private folder has no room or cannot be written.
        """
        rows = np.arange(self.count, self.count + asked_at_ms.size, dtype=np.uint64)
        self.count += asked_at_ms.size
        asked = asked_at_ms.astype(np.int64).view(np.uint64)
        self._ids.add(np.column_stack((ids, questions, rows)))
        self._questions.add(np.column_stack((questions, asked, np.zeros_like(rows), rows)))

    def final_outcomes(self) -> tuple[np.ndarray, int | None]:
        """Each candidate's outcome (uint8), in the order added, and the newest instant of those not malformed."""
        outcomes = np.full(self.count, DUPLICATE, dtype=np.uint8)
        conflicting = self._conflicting()
        newest: list[int] = []
        for share in self._questions.shares():
            kept = share[~conflicting[share[:, _ROW]]]
            if kept.shape[0]:
                newest.append(int(kept[:, _ASKED].view(np.int64).max()))
            met = _met_again(kept)
            outcomes[kept[~met, _ROW]] = ELIGIBLE
            kept = kept[met]
            keys, asked = kept[:, _KEY], kept[:, _ASKED].view(np.int64)
            # lexsort is stable, so of two rows asked at one instant the lower row number comes first.
            order = np.lexsort((asked, keys[:, 1], keys[:, 0]))
            outcomes[kept[order[_starts(keys[order])], _ROW]] = ELIGIBLE
        outcomes[conflicting] = MALFORMED
        return outcomes, max(newest, default=None)

    def _conflicting(self) -> np.ndarray:
        """True for every row whose query id names two different questions: such an id identifies nothing."""
        conflicting = np.zeros(self.count, dtype=bool)
        for rows in self._ids.shares():
            share = rows[_met_again(rows)]
            order = np.lexsort((share[:, 1], share[:, 0]))
            share = share[order]
            begins = _starts(share[:, _KEY])
            # Within one id any two questions that differ also differ somewhere between neighbours.
            differs = _starts(share[:, _OTHER]) & ~begins
            group = np.cumsum(begins) - 1
            split = np.bincount(group, weights=differs) > 0
            conflicting[share[:, _ROW]] = split[group]
        return conflicting


class _Table:
    """Rows of five 64-bit numbers, in memory while they are few and then in files by the first of them."""

    def __init__(self, folder: Callable[[], Path], name: str) -> None:
        self._held: list[np.ndarray] = []
        self._count = 0
        self._dealt = Shares(folder, name, _SHARES)

    def add(self, rows: np.ndarray) -> None:
        self._held.append(rows)
        self._count += rows.shape[0]
        if self._count >= _HELD:
            self._deal()

    def _deal(self) -> None:
        if not self._count:
            return
        rows, self._held, self._count = self._in_memory(), [], 0
        share_of = rows[:, 0].astype(np.uint8) & np.uint8(_SHARES - 1)
        rows = rows[np.argsort(share_of, kind="stable")]
        ends = np.cumsum(np.bincount(share_of, minlength=_SHARES)) * (rows.itemsize * rows.shape[1])
        self._dealt.deal(rows.data.cast("B"), ends.tolist())

    def _in_memory(self) -> np.ndarray:
        return np.concatenate(self._held) if self._held else np.empty((0, _ROW + 1), dtype=np.uint64)

    def shares(self) -> Iterator[np.ndarray]:
        """All rows, those of equal key together and within a key in the order added."""
        if self._dealt.are_empty:
            yield self._in_memory()
            return
        self._deal()
        for share in self._dealt:
            yield np.frombuffer(share, dtype=np.uint64).reshape(-1, _ROW + 1)


def _met_again(rows: np.ndarray) -> np.ndarray:
    """True of every row whose key may stand in another row too: the few that need to be sorted with care."""
    order = np.argsort(rows[:, 0])
    firsts = rows[order, 0]
    same = firsts[1:] == firsts[:-1]
    met = np.zeros(rows.shape[0], dtype=bool)
    met[order[1:][same]] = True
    met[order[:-1][same]] = True
    return met


def _starts(keys: np.ndarray) -> np.ndarray:
    """True where a key differs from the one before it."""
    starts = np.ones(keys.shape[0], dtype=bool)
    starts[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return starts
