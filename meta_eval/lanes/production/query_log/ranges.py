"""A plain file of JSON Lines in byte ranges: each row is read by the range in which its line begins.

Source: the production evaluation document, the query log. Ranges that lie side by side give the rows of the whole file,
in its order, with the faults that one reading would find, wherever they are cut. An array has no such places, nor has
gzip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from meta_eval.lanes.production.query_log.framing import FramingError
from meta_eval.lanes.production.query_log.lines import LineFramer
from meta_eval.lanes.production.query_log.reading import BATCH_BYTES, CHUNK_BYTES, batch_of, checked, sniffed

_HEAD = 1 << 16


class Piece(NamedTuple):
    """Rows, and the bytes of the file that were read for them: from `start` to before `stop`, with their SHA-256."""

    rows: pa.RecordBatch
    start: int
    stop: int
    sha256: bytes


@dataclass(frozen=True)
class Lines:
    """A file of lines: where its first row begins, and the beginning of that line, which blanks may precede."""

    first: int
    line_at: int
    size: int

    def ranges(self, length: int) -> int:
        """Into how many ranges of `length` bytes it is cut."""
        return -(-(self.size - self.first) // length)

    def read(
        self,
        path: Path,
        number: int,
        length: int,
        *,
        batch_bytes: int = BATCH_BYTES,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Iterator[Piece]:
        """The rows of range `number`, in batches; the pieces of all ranges lie end to end.

        Raises:
            FramingError: not UTF-8, or the last line was cut.
            OSError: the file cannot be read.
        """
        start = self.first + number * length
        # The last range ends with the file, also where that has grown meanwhile.
        stop = start + length if number + 1 < self.ranges(length) else None
        with path.open("rb") as file:
            at = _line_begin(file, start, stop, chunk_bytes) if number else start
            if at is not None:
                file.seek(at)
                framer = LineFramer(at, at if number else self.line_at)
                yield from _pieces(_Bytes(file, at, stop, chunk_bytes), framer, batch_bytes)


def lines_of(path: Path) -> Lines | None:
    """The file as lines, or None where it is anything else, or where only a whole reading can tell.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        head, size = file.read(_HEAD), file.seek(0, 2)
    try:
        framer, first, line_at, _ = sniffed(head, 0, 0)
    except FramingError:
        return None
    return Lines(first, line_at, size) if isinstance(framer, LineFramer) else None


def _line_begin(file: BinaryIO, start: int, stop: int | None, chunk_bytes: int) -> int | None:
    """Where the first line that begins within a range does, or None where none does."""
    at = start - 1
    file.seek(at)
    while (stop is None or at < stop - 1) and (chunk := file.read(chunk_bytes)):
        feed = chunk.find(b"\n")
        if feed >= 0:
            found = at + feed + 1
            return found if stop is None or found < stop else None
        at += len(chunk)
    return None


class _Bytes:
    """The bytes of a range, from its first line to the end of the last line that begins in it."""

    def __init__(self, file: BinaryIO, at: int, stop: int | None, chunk_bytes: int) -> None:
        self.at = self._told = at
        self._file, self._stop, self._chunk_bytes = file, stop, chunk_bytes
        self._sha = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        last = -1
        while last < 0 and (chunk := self._file.read(self._chunk_bytes)):
            if self._stop is not None and self.at + len(chunk) >= self._stop:
                # The line feed in the range's last byte, or the next one, ends the last line that begins in it.
                last = chunk.find(b"\n", max(self._stop - 1 - self.at, 0))
                chunk = chunk[: last + 1] if last >= 0 else chunk
            self._sha.update(chunk)
            self.at += len(chunk)
            yield chunk

    def piece(self, rows: list[pa.Array]) -> Piece:
        """The rows, and what was read since the piece before."""
        made = Piece(batch_of(rows), self._told, self.at, self._sha.digest())
        self._told, self._sha = self.at, hashlib.sha256()
        return made


def _pieces(text: _Bytes, framer: LineFramer, batch_bytes: int) -> Iterator[Piece]:
    held: list[pa.Array] = []
    size = 0
    for chunk in checked(iter(text), text.at):
        held.append(framer.feed(chunk))
        size += held[-1].nbytes
        if size >= batch_bytes:
            yield text.piece(held)
            held, size = [], 0
    yield text.piece([*held, framer.close()])
