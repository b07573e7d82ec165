"""The ordinary rows of a batch judged together, by what stands at the same place in each.

Source: the production evaluation document, the query log's contract. A second way to the answers of `parsing` and
of `rows`, for rows whose layout is known: it answers where it can vouch for a row byte for byte (the layout's own
bytes between the values, instants in the usual spelling and of a day that exists, no escape, no control character)
and leaves every other row to them. So it never decides that a row is malformed.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.layouts import Layout, learnt
from meta_eval.lanes.production.query_log.parsing import LONGEST_QUERY_ID
from meta_eval.lanes.production.query_log.places import places_of

_MOST_LAYOUTS = 16
_LESSONS = 4
"""Rows that a batch may be asked to learn from; a log that no layout fits costs no more than this."""
_PAD = 64
_INSTANT = 24
_RESULTS = (b"answered", b"refused", b"failed")
_FIRST_YEAR, _LAST_YEAR = 1970, 2099
_MONTHS = [date(year, month, 1) for year in range(_FIRST_YEAR, _LAST_YEAR + 2) for month in range(1, 13)]
_MONTH_STARTS = np.array([day.toordinal() - date(1970, 1, 1).toordinal() for day in _MONTHS], dtype=np.int64)
_MONTH_DAYS = np.diff(_MONTH_STARTS)
_DIGIT_PLACES = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 22]
_SIGN_PLACES = [4, 7, 10, 13, 16, 19, 23]
_SIGNS = np.frombuffer(b"--T::.Z", dtype=np.uint8)

# Layouts met so far, the one that fitted most rows last. They change how fast an answer is found and never which.
_known: list[Layout] = []


class Judged(NamedTuple):
    """Rows that one layout fits, and what their fields hold; each array has an element a row."""

    rows: np.ndarray
    asked_at_ms: np.ndarray
    failed: np.ndarray
    consent: np.ndarray
    """int8: 0 none granted, 1 granted under another contract, 2 granted under the policy's."""
    query_id: np.ndarray
    question: np.ndarray
    """Two rows: the first byte and the byte after the last, in the batch's text."""


class Text:
    """A batch's text, with the quotation marks and the bytes that no ordinary value holds already found."""

    def __init__(self, rows: pa.Array) -> None:
        offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset : rows.offset + len(rows) + 1]
        self.starts, self.ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
        data = np.frombuffer(rows.buffers()[2] or b"", dtype=np.uint8)[: int(offsets[-1])]
        # Room behind the last row, so that a value can be looked at before its length is.
        self.data = np.concatenate((data, np.zeros(_PAD, dtype=np.uint8)))
        self.marks = np.flatnonzero(data == 0x22)
        self.first_mark, self.mark_counts = self._counted(self.marks)
        self.controls = self._counted(places_of(data < 0x20))[1]
        escaped = self._counted(places_of(data == 0x5C))[1] > 0
        self.open = ~escaped & (self.ends - self.starts <= ROW_LIMIT) & rows.is_valid().to_numpy(False)

    def _counted(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row the first of some ascending places that lies in it, and how many do."""
        if places.size == 0:
            return np.zeros(self.starts.size, dtype=np.int64), np.zeros(self.starts.size, dtype=np.int64)
        # A row begins where the one before it ends.
        edges = np.searchsorted(places, np.append(self.starts, self.ends[-1:]))
        return edges[:-1], np.diff(edges)

    def equal(self, starts: np.ndarray, expected: bytes) -> np.ndarray:
        """Whether the text at each start is `expected`; false where it would reach beyond the text."""
        # Eight bytes at a time, of which the last eight are looked at in part. No expected byte is NUL, as the room
        # behind the text is.
        words = -(-len(expected) // 8)
        if 8 * words > self.data.size:
            return np.zeros(starts.size, dtype=bool)
        seen = np.ndarray((self.data.size - 8 * words + 1,), dtype=f"V{8 * words}", buffer=self.data, strides=(1,))
        found = seen[np.minimum(starts, seen.size - 1)].view(np.uint64).reshape(-1, words)
        masks, due = (
            np.frombuffer(text.ljust(8 * words, b"\0"), dtype=np.uint64) for text in (b"\xff" * len(expected), expected)
        )
        good = np.ones(starts.size, dtype=bool)
        for place in range(words):
            good &= (found[:, place] & masks[place]) == due[place]
        return good

    def instants(self, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Milliseconds since the epoch, and whether the text is an instant in the usual spelling."""
        seen = np.ndarray((self.data.size - _INSTANT + 1,), dtype=f"V{_INSTANT}", buffer=self.data, strides=(1,))
        chars = np.ascontiguousarray(seen[starts]).view(np.uint8).reshape(-1, _INSTANT)
        digits = (chars[:, _DIGIT_PLACES] - np.uint8(48)).T.astype(np.int32)
        year = digits[0] * 1000 + digits[1] * 100 + digits[2] * 10 + digits[3]
        month, day = digits[4] * 10 + digits[5], digits[6] * 10 + digits[7]
        hour, minute, second = (digits[at] * 10 + digits[at + 1] for at in (8, 10, 12))
        good = (stops - starts == _INSTANT) & (digits.max(axis=0) <= 9)
        good &= (chars[:, _SIGN_PLACES] == _SIGNS).all(axis=1)
        good &= (year >= _FIRST_YEAR) & (year <= _LAST_YEAR) & (month >= 1) & (month <= 12)
        at = np.where(good, (year - _FIRST_YEAR) * 12 + month - 1, 0)
        good &= (day >= 1) & (day <= _MONTH_DAYS[at]) & (hour <= 23) & (minute <= 59) & (second <= 59)
        seconds = (_MONTH_STARTS[at] + (day - 1)) * 86_400 + hour * 3600 + minute * 60 + second
        return seconds * 1000 + digits[14] * 100 + digits[15] * 10 + digits[16], good


def judged(rows: pa.Array, contract: str) -> Judged:
    """The rows (strings) that a layout fits, in their order."""
    text = Text(rows)
    asked = ((layout, _fitting(text, layout, contract)) for layout in reversed(list(_known)))
    found = [(layout, part) for layout, part in asked if part is not None]
    for _ in range(_LESSONS):
        left = np.flatnonzero(text.open & (text.mark_counts > 0))
        if left.size == 0:
            break
        new = learnt(rows[int(left[0])].as_py())
        if new is not None and new not in _known:
            _known.append(new)
            del _known[:-_MOST_LAYOUTS]
            if (part := _fitting(text, new, contract)) is not None:
                found.append((new, part))
        text.open[left[0]] = False
    # The one that fitted most rows is asked first next time, so that the others are asked of few.
    fitted = [layout for layout, _ in sorted(found, key=lambda each: each[1].rows.size)]
    _known[:] = [layout for layout in _known if layout not in fitted] + fitted
    return _in_order([part for _, part in found])


def _in_order(parts: list[Judged]) -> Judged:
    """Parts of unlike rows as one, in the order of the rows."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return Judged(none, none, none.astype(bool), none.astype(np.int8), none.reshape(2, 0), none.reshape(2, 0))
    order = np.argsort(np.concatenate([part.rows for part in parts]))
    return Judged(*(np.concatenate(each, axis=-1)[..., order] for each in zip(*parts, strict=True)))


def _fitting(text: Text, layout: Layout, contract: str) -> Judged | None:
    rows = np.flatnonzero(text.open & (text.mark_counts == layout.quotes) & (text.controls == layout.controls))
    if rows.size == 0:
        return None
    opens, closes = _values(text, layout, rows)
    good = _is_written_as(text, layout, rows, opens, closes)
    if not good.all():
        rows, opens, closes = rows[good], opens[:, good], closes[:, good]
    places = layout.fields

    def value(name: str) -> tuple[np.ndarray, np.ndarray]:
        return opens[places[name]] + 1, closes[places[name]]

    asked, good = text.instants(*value("askedAt"))
    failed, known = _failed(text, *value("outcome"))
    query_id, question = value("queryId"), value("question")
    length, first = query_id[1] - query_id[0], text.data[query_id[0]]
    # An id that begins with an ASCII character that is no white space is not blank; others are looked at singly.
    good &= known & (length > 0) & (length <= LONGEST_QUERY_ID) & (first > 0x20) & (first < 0x7F)
    consent = np.zeros(rows.size, dtype=np.int8)
    if "contract" in places:
        recorded, usual = text.instants(*value("recordedAt"))
        good &= usual & (recorded <= asked)
        if layout.granted:
            start, stop = value("contract")
            named = contract.encode()
            consent = 1 + (text.equal(start, named) & (stop - start == len(named))).astype(np.int8)
    # Not copied where all are good, as they are in most batches.
    kept = slice(None) if good.all() else good
    text.open[rows[kept]] = False
    return Judged(
        rows=rows[kept],
        asked_at_ms=asked[kept],
        failed=failed[kept],
        consent=consent[kept],
        query_id=np.stack(query_id)[:, kept],
        question=np.stack(question)[:, kept],
    )


def _values(text: Text, layout: Layout, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the quotation marks before and after each text value are: a row of the result a value."""
    first = text.first_mark[rows]
    opening = np.array(layout.opening)[:, None] + first
    return text.marks[opening], text.marks[opening + 1]


def _is_written_as(text: Text, layout: Layout, rows: np.ndarray, opens: np.ndarray, closes: np.ndarray) -> np.ndarray:
    """Whether the bytes between the values are the layout's."""
    good = np.ones(rows.size, dtype=bool)
    begin = np.concatenate((text.starts[rows][None, :], closes))
    end = np.concatenate((opens + 1, text.ends[rows][None, :]))
    for fixed, start, stop in zip(layout.fixed, begin, end, strict=True):
        # A value's closing mark begins what is fixed behind it; the first stretch begins with the row.
        good &= (stop - start == len(fixed)) & text.equal(start, fixed)
    return good


def _failed(text: Text, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the outcome is "failed", and whether it is one of the three there are."""
    answered, refused, failed = (text.equal(start, name) & (stop - start == len(name)) for name in _RESULTS)
    return failed, answered | refused | failed
