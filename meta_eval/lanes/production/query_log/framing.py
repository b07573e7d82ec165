"""Text to rows: where one row of a query log ends and the next begins, in a JSON array (lines are in `lines`).

Source: the production evaluation document, the query log, and RFC 8259. A framer is fed pieces of any size and
gives back the text of every row that is whole, in order, without surrounding white space; a row longer than
`ROW_LIMIT` is given as None and its text is never held. What is in a row is judged elsewhere.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.query_log.grammar import GrammarError, ValueScanner

ROW_LIMIT = 1 << 20
"""Bytes of a row, from its first to its last, both not white space."""
BOM = b"\xef\xbb\xbf"
BLANK = b" \t\n\r"

Rows = list[bytes | None]
"""None stands for a row whose text is not kept."""

_PIECE = 64 * 1024
"""Bytes of an array decoded in one go. Below ROW_LIMIT, so that rows found in bulk need no length check."""
_SOLID = re.compile(rb"[^ \t\n\r]")
_ROW_END = re.compile(rb"\}(?=[ \t\n\r]*+,[ \t\n\r]*+\{)")
_STOPPED_AT = re.compile(r"\(byte ([0-9]+)\)")
_RAW_ROWS = msgspec.json.Decoder(list[msgspec.Raw])


class FramingError(Exception):
    """The text is not what a query log can be: the rule it breaks and the byte where it does."""

    def __init__(self, rule: str, offset: int) -> None:
        super().__init__(rule)
        self.rule, self.offset = rule, offset


class ArrayFramer:
    """Rows of a JSON array. Begins at the opening bracket, whose offset is `offset`."""

    def __init__(self, offset: int) -> None:
        self._at = offset
        self._phase = "open"
        self._scanner: ValueScanner | None = None
        self._row_at = 0
        self._row = bytearray()
        self._singly_until = 0

    def feed(self, piece: bytes) -> pa.Array:
        """The rows that end in this piece.

        Raises:
            FramingError: the structure of the array, or the grammar of a row in it, is broken.
        """
        rows = _Found()
        position = 0
        while position < len(piece):
            if self._scanner is not None:
                position = self._scan(self._scanner, piece, position, rows)
                continue
            solid = _SOLID.search(piece, position)
            if solid is None:
                break
            position = self._step(piece, solid.start(), rows)
        self._at += len(piece)
        self._singly_until = 0
        return rows.joined()

    def close(self) -> pa.Array:
        """No rows are left at the end of a whole array.

        Raises:
            FramingError: the array is not closed.
        """
        if self._phase != "closed":
            raise FramingError("truncated: the array is not closed", self._at)
        return pa.array([], pa.binary())

    def _step(self, piece: bytes, position: int, rows: _Found) -> int:
        char = piece[position]
        if self._phase == "open" and char == 0x5B:
            self._phase = "first"
        elif self._phase == "first" and char == 0x5D:
            self._phase = "closed"
        elif self._phase in ("first", "value"):
            return self._begin(piece, position, rows)
        elif self._phase == "after" and char in b",]":
            self._phase = "value" if char == 0x2C else "closed"
        else:
            rule = "something after the array" if self._phase == "closed" else "not JSON"
            raise FramingError(rule, self._at + position)
        return position + 1

    def _begin(self, piece: bytes, position: int, rows: _Found) -> int:
        end = self._in_bulk(piece, position, rows)
        if end == position:
            self._scanner, self._row_at = ValueScanner(), self._at + position
        else:
            self._phase = "after"
        return end

    def _in_bulk(self, piece: bytes, position: int, rows: _Found) -> int:
        """Rows found by a decoder in C; where they end, or `position` where it found none.

        What a left-to-right parser takes as whole values up to a comma are whole rows, so a guessed end that
        was wrong (inside a string, inside a row) can only fail, never mislead.
        """
        if position >= self._singly_until:
            end = _last_row_end(piece, position, min(position + _PIECE, len(piece)))
            sound = _decoded(piece[position:end], rows)
            if sound == end - position > 0:
                return end
            # Up to the row that holds what it stopped at, everything is as it should be.
            self._singly_until = position + sound + 1
            end = _last_row_end(piece, position, position + sound)
            if end > position and _decoded(piece[position:end], rows) == end - position:
                return end
        # Something in the stretch is beyond the decoder (NaN, a lone surrogate, a broken row): one at a time.
        found = _ROW_END.search(piece, position, min(position + _PIECE, len(piece)))
        if found and _decoded(piece[position : found.end()], rows) == found.end() - position:
            return found.end()
        return position

    def _scan(self, scanner: ValueScanner, piece: bytes, position: int, rows: _Found) -> int:
        try:
            end = scanner.feed(piece, position)
        except GrammarError as error:
            raise FramingError("not JSON", self._row_at + error.offset) from None
        room = ROW_LIMIT + 1 - len(self._row)
        self._row += piece[position : min(end, position + room)]
        if scanner.done:
            text = bytes(self._row)
            rows.append(None if len(text) > ROW_LIMIT else text)
            self._row, self._scanner, self._phase = bytearray(), None, "after"
        return end


def joined(parts: list[pa.Array]) -> pa.Array:
    """Rows that follow one another; not copied where nothing is to be joined."""
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())


class _Found:
    """The rows of a piece, in order: one by one, or many at a time."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []
        self._singly: Rows = []

    def append(self, row: bytes | None) -> None:
        """Add a row."""
        self._singly.append(row)

    def extend(self, text: bytes, rows: list[msgspec.Raw]) -> None:
        """Add the rows that a decoder found in a text: all that is in it but commas and white space."""
        lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
        if int(lengths.sum()) + len(rows) - 1 != len(text):
            self._singly.extend(map(bytes, rows))
            return
        # Nothing but one comma is between two rows, so that their lengths tell where they are.
        ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
        edges = np.column_stack((ends - lengths, ends)).ravel()
        whole = pa.Array.from_buffers(pa.binary(), edges.size - 1, [None, pa.py_buffer(edges), pa.py_buffer(text)])
        self._end_singly()
        self._parts.append(whole.take(pa.array(np.arange(0, edges.size, 2))))

    def joined(self) -> pa.Array:
        """All rows."""
        self._end_singly()
        return joined(self._parts)

    def _end_singly(self) -> None:
        if self._singly:
            self._parts.append(pa.array(self._singly, pa.binary()))
            self._singly = []


def _decoded(text: bytes, rows: _Found) -> int:
    """Add the rows of a text, if it is whole rows. How many bytes of it the decoder takes: all of them if it is."""
    try:
        found = _RAW_ROWS.decode(b"[" + text + b"]")
    except msgspec.DecodeError as error:
        stopped = _STOPPED_AT.search(str(error))
        return min(max(int(stopped[1]) - 1, 0), len(text) - 1) if stopped and text else 0
    except RecursionError:
        return 0
    rows.extend(text, found)
    return len(text)


def _last_row_end(piece: bytes, start: int, stop: int) -> int:
    """Just after the last `}` that a comma and a `{` follow; `start` where the last few braces show none."""
    brace = stop
    for _ in range(8):
        brace = piece.rfind(b"{", start, brace)
        if brace < 0:
            break
        before = piece[max(start, brace - 256) : brace].rstrip(BLANK)
        if before.endswith(b",") and (head := before[:-1].rstrip(BLANK)).endswith(b"}"):
            return max(start, brace - 256) + len(head)
    return start
