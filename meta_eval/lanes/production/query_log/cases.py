"""The eligible questions as an export's cases, in ascending order of their pseudonyms, in bounded memory.

Source: the production evaluation document, the question export. The cases of a large log are dealt into files of
the scan's private folder by the first two digits of their pseudonym, which a keyed hash spreads evenly; then one
file after the other is sorted in memory. Every case is written as canonical JSON, where no line feed stands in a
text, so a line of such a file is a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.lanes.production.pseudonyms import PREFIX
from meta_eval.lanes.production.query_log.ahead import called_ahead
from meta_eval.lanes.production.query_log.places import places_of
from meta_eval.lanes.production.query_log.spill import Shares

HELD_BYTES = 8 << 20
"""Of cases in memory before they are dealt into files; a log with fewer needs none."""
Pseudonyms = Callable[[pa.Array], pa.Array]
"""Names for query ids: `case-` and the same number of hexadecimal digits for each. Other processes are given it."""

_BEFORE_NAME, _BEFORE_QUESTION, _END, _NOTHING = (
    pa.scalar(text, pa.large_string()) for text in ('{"caseId":"', '","question":"', '"}\n', "")
)
_DIGITS_AT = len(_BEFORE_NAME.as_py()) + len(PREFIX)
_SHARES = 256
_AHEAD = 2


class SortedCases:
    """Takes cases in any order and gives them back in the order of their pseudonyms.

    Args:
        folder: gives a private folder for the cases of a large log.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._held: list[pa.Array] = []
        self._size = 0
        self._dealt = Shares(folder, "cases", _SHARES)

    def add(self, cases: pa.Array) -> None:
        """Add cases as `written` gives them.

        Raises:
            MetaEvalError: the private folder has no room or cannot be written.
        """
        self._held.append(cases)
        self._size += cases.nbytes
        if self._size > HELD_BYTES:
            self._deal()

    def _deal(self) -> None:
        if not self._held:
            return
        cases, self._held, self._size = pa.concat_arrays(self._held), [], 0
        shares = _shares(cases)
        dealt = cases.take(pa.array(np.argsort(shares, kind="stable")))
        edges = np.frombuffer(dealt.buffers()[1], dtype=np.int64)[: len(dealt) + 1]
        ends = edges[np.cumsum(np.bincount(shares, minlength=_SHARES))]
        self._dealt.deal(memoryview(dealt.buffers()[2]), ends.tolist())

    def __iter__(self) -> Iterator[bytes]:
        """The canonical JSON of all cases, in pieces, with a comma between every two cases. They are then used up.

        Raises:
            MetaEvalError: as `add` does.
        """
        if self._dealt.are_empty:
            shares = iter([_lines(pa.concat_arrays(self._held))] if self._held else [])
        else:
            self._deal()
            shares = iter(self._dealt)
        comma = b""
        # The next shares are put in order while one is used.
        for share in called_ahead((partial(_in_order, share) for share in shares if share), _AHEAD):
            yield comma + share[:-1].replace(b"\n", b",")
            comma = b","


def written(query_ids: pa.Array, questions: pa.Array, pseudonyms: Pseudonyms) -> pa.Array:
    """Each case as a line of canonical JSON (large strings), from strings of which none is null."""
    questions = questions.cast(pa.large_string())
    escaped = pc.match_substring_regex(questions, r'["\\\x00-\x1f]')
    if pc.any(escaped).as_py():
        texts = [canonical_bytes(text)[1:-1].decode() for text in questions.filter(escaped).to_pylist()]
        questions = pc.replace_with_mask(questions, escaped, pa.array(texts, pa.large_string()))
    return pc.binary_join_element_wise(_BEFORE_NAME, pseudonyms(query_ids), _BEFORE_QUESTION, questions, _END, _NOTHING)


def _lines(cases: pa.Array) -> bytes:
    offsets = np.frombuffer(cases.buffers()[1], dtype=np.int64)[cases.offset : cases.offset + len(cases) + 1]
    return memoryview(cases.buffers()[2])[int(offsets[0]) : int(offsets[-1])].tobytes()


def _shares(cases: pa.Array) -> np.ndarray:
    """Which share each case is dealt to: the value of the first two digits of its pseudonym."""
    starts = np.frombuffer(cases.buffers()[1], dtype=np.int64)[cases.offset : cases.offset + len(cases)]
    data = np.frombuffer(cases.buffers()[2], dtype=np.uint8)
    digits = data[starts[:, None] + np.array([_DIGITS_AT, _DIGITS_AT + 1])].astype(np.int64)
    values = np.where(digits < ord("a"), digits - ord("0"), digits - ord("a") + 10)
    return np.asarray(values[:, 0] * 16 + values[:, 1])


def _in_order(lines: bytes) -> bytes:
    """The lines in order of their pseudonyms, which are unlike."""
    data = np.frombuffer(lines, dtype=np.uint8)
    bounds = np.concatenate(([0], places_of(data == 0x0A) + 1))
    width = lines.index(b'"', _DIGITS_AT) - _DIGITS_AT
    seen = np.ndarray((data.size - width + 1,), dtype=f"S{width}", buffer=lines, strides=(1,))
    order = np.argsort(seen[bounds[:-1] + _DIGITS_AT], kind="stable")
    cases = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(lines)]
    )
    return _lines(cases.take(pa.array(order)))
