"""Text to rows in JSON Lines: where one row ends and the next begins, as `framing` does it for an array.

Source: the production evaluation document, the query log. Lines that are ordinary are found many at a time; what
is over-long, or begins with a byte order mark or white space, one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.query_log.framing import BLANK, BOM, ROW_LIMIT, FramingError, Rows, joined
from meta_eval.lanes.production.query_log.grammar import GrammarError, ValueScanner, is_one_value
from meta_eval.lanes.production.query_log.places import places_of


class LineFramer:
    """Rows of JSON Lines. Only LF ends a line; a line of white space is no row.

    Begins at `offset`, within the line that began at `line_at`.
    """

    def __init__(self, offset: int, line_at: int) -> None:
        self._line_at = line_at
        self._at = offset
        self._line = b""
        self._long: _LongLine | None = None

    def feed(self, piece: bytes) -> pa.Array:
        """The rows whose line ends in this piece."""
        last = piece.rfind(b"\n") + 1
        parts = []
        if last:
            first = 0
            if self._long:
                first = piece.find(b"\n") + 1
                self._extend(piece[:first])
                parts.append(pa.array(self._taken(), pa.binary()))
            # What came of a line before is read with the lines that end here.
            parts.append(_whole_lines(b"".join((self._line, memoryview(piece)[first:last]))))
            self._line, self._line_at = b"", self._at + last
        self._at += len(piece)
        self._extend(piece[last:])
        return joined(parts)

    def close(self) -> pa.Array:
        """The row of a last line that no LF ends.

        Raises:
            FramingError: that line is not JSON, so the file was cut.
        """
        text = b"" if self._long else _bare(self._line)
        whole = self._long.is_one_value() if self._long else not text or is_one_value(text)
        if not whole:
            raise FramingError("truncated: the last line is not JSON and no line feed ends it", self._line_at)
        return pa.array(self._taken(), pa.binary())

    def _extend(self, piece: bytes) -> None:
        if self._long:
            self._long.feed(piece)
            return
        self._line += piece
        if len(self._line) > ROW_LIMIT:
            text = self._line.removeprefix(BOM).lstrip(BLANK)
            if len(text) > ROW_LIMIT:
                self._long, self._line = _LongLine(), b""
                self._long.feed(text)
            elif not text:
                # The blank start of a line; a byte is kept, as a mark at its start is no longer one after it.
                self._line = b" "

    def _taken(self) -> Rows:
        if self._long:
            rows: Rows = [self._long.text]
        else:
            text = _bare(self._line)
            rows = [text if len(text) <= ROW_LIMIT else None] if text else []
        self._line, self._long = b"", None
        return rows


def _whole_lines(text: bytes) -> pa.Array:
    """The rows of whole lines, found together where none has more white space about it than a CR."""
    data = np.frombuffer(text, dtype=np.uint8)
    feeds = places_of(data == 0x0A)
    starts = np.concatenate(([0], feeds + 1))[:-1]
    ends = feeds - ((data[feeds - 1] == 0x0D) & (feeds > starts))
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    first = data[starts]
    # 0xEF may begin a byte order mark.
    bare = ((first > 0x20) & (first != BOM[0])).all() and (data[ends - 1] > 0x20).all()
    if not bare or (ends - starts > ROW_LIMIT).any():
        lines = [_bare(line) for line in text.split(b"\n")]
        return pa.array([line if len(line) <= ROW_LIMIT else None for line in lines if line], pa.binary())
    if starts.size == 0:
        return pa.array([], pa.binary())
    edges = np.stack((starts, ends), axis=1).astype(np.int32).ravel()
    # Every row and what is between two of them, of which the rows are taken.
    parts = pa.BinaryArray.from_buffers(pa.binary(), edges.size - 1, [None, pa.py_buffer(edges), pa.py_buffer(text)])
    return parts.take(pa.array(np.arange(0, edges.size, 2)))


def _bare(line: bytes) -> bytes:
    # Files joined end to end leave a byte order mark at the start of a later line.
    return line.removeprefix(BOM).strip(BLANK)


class _LongLine:
    """A line whose text reaches beyond ROW_LIMIT, unless white space alone takes it there."""

    def __init__(self) -> None:
        self.text: bytes | None = None
        self._scanner: ValueScanner | None = ValueScanner()
        self._begun = False

    def feed(self, piece: bytes) -> None:
        solid = piece.strip(BLANK)
        if not self._begun:
            self.text = solid if len(solid) <= ROW_LIMIT else None
            self._begun = True
        elif solid:
            self.text = None
        try:
            if self._scanner and not self._scanner.done:
                piece = piece[self._scanner.feed(piece) :]
            if self._scanner and self._scanner.done and piece.strip(BLANK):
                self._scanner = None
        except GrammarError:
            self._scanner = None

    def is_one_value(self) -> bool:
        return self._scanner is not None and self._scanner.finish()
