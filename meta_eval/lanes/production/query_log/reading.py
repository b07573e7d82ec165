"""A query-log file read once: its receipt, its byte count and its rows, in batches of bounded size.

Source: the production evaluation document, the query log. Plain or gzip (members joined end to end included), a
JSON array or JSON Lines, UTF-8 throughout. The receipt is of the bytes as stored; offsets in errors are of the
text, decompressed where it was gzip.
"""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from meta_eval.evidence.canonical import unreadable
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production.query_log.framing import (
    BLANK,
    BOM,
    ArrayFramer,
    FramingError,
    joined,
)
from meta_eval.lanes.production.query_log.lines import LineFramer

ROW_SCHEMA = pa.schema([pa.field("row", pa.binary())])
"""A null row is one longer than ROW_LIMIT: its text is not kept."""
BATCH_BYTES = 4 << 20
CHUNK_BYTES = BATCH_BYTES
"""Read at once; the rows of one such piece need not be joined to a batch."""

_GZIP = b"\x1f\x8b"
NEXT_STEP = "export the log again and run the command again"


class RowReader:
    """Iterates a log's rows as record batches; `receipt` and `byte_count` hold once it has ended."""

    def __init__(
        self,
        path: Path,
        *,
        on_bytes: Callable[[int], None] | None = None,
        batch_bytes: int = BATCH_BYTES,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self.receipt = ""
        self.byte_count = 0
        self._path, self._on_bytes = path, on_bytes
        self._batch_bytes, self._chunk_bytes = batch_bytes, chunk_bytes
        self._gzip = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows in order.

        Raises:
            InputError: not readable, not UTF-8, not JSON, empty or cut; names the byte offset.
        """
        yield from in_batches(self._rows(), self._batch_bytes)

    def _rows(self) -> Iterator[pa.Array]:
        try:
            with self._path.open("rb") as file:
                yield from self._framed(self._text(file))
        except FramingError as error:
            rule = f"{error.rule} (offset in the decompressed text)" if self._gzip else error.rule
            raise InputError(str(self._path), rule, offset=error.offset, next_step=NEXT_STEP) from None
        except OSError as error:
            raise unreadable(self._path, error) from error

    def _text(self, file: BinaryIO) -> Iterator[bytes]:
        sha = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            while chunk := file.read(self._chunk_bytes):
                sha.update(chunk)
                self.byte_count += len(chunk)
                if self._on_bytes:
                    self._on_bytes(self.byte_count)
                yield chunk

        self.byte_count = 0
        self._gzip = file.read(2) == _GZIP
        file.seek(0)
        stored = chunks()
        yield from checked(_decompressed(stored, self._chunk_bytes) if self._gzip else stored)
        self.receipt = sha.hexdigest()

    @staticmethod
    def _framed(text: Iterator[bytes]) -> Iterator[pa.Array]:
        framer: ArrayFramer | LineFramer | None = None
        head, at, line_at = b"", 0, 0
        for piece in text:
            if framer is None:
                head += piece
                if at == 0 and len(head) < 4:
                    continue
                framer, at, line_at, head = sniffed(head, at, line_at)
                piece = head
            if framer is not None:
                yield framer.feed(piece)
        if framer is None:
            framer, at, line_at, head = sniffed(head, at, line_at)
            if framer is None:
                raise FramingError("empty, where a query log is due", 0)
            yield framer.feed(head)
        yield framer.close()


def read_rows(
    path: Path,
    *,
    on_bytes: Callable[[int], None] | None = None,
    batch_bytes: int = BATCH_BYTES,
    chunk_bytes: int = CHUNK_BYTES,
) -> RowReader:
    """A reader of the log at `path`; `on_bytes` is told the stored bytes read so far."""
    return RowReader(path, on_bytes=on_bytes, batch_bytes=batch_bytes, chunk_bytes=chunk_bytes)


def in_batches(parts: Iterable[pa.Array], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows that come in parts as batches of about `batch_bytes`; none is without rows."""
    held: list[pa.Array] = []
    size = 0
    for rows in parts:
        held.append(rows)
        size += rows.nbytes
        if size >= batch_bytes:
            yield batch_of(held)
            held, size = [], 0
    if any(map(len, held)):
        yield batch_of(held)


def batch_of(rows: list[pa.Array]) -> pa.RecordBatch:
    """Rows as one batch."""
    return pa.RecordBatch.from_arrays([joined([part for part in rows if len(part)])], schema=ROW_SCHEMA)


def sniffed(head: bytes, at: int, line_at: int) -> tuple[ArrayFramer | LineFramer | None, int, int, bytes]:
    """The framer that the first byte of substance asks for, or none yet; offsets; the text from there on.

    Raises:
        FramingError: not UTF-8, or not JSON.
    """
    if at == 0:
        # UTF-16 and UTF-32 show in a NUL among the first four bytes, which no log has.
        if b"\x00" in head[:4]:
            raise FramingError("not UTF-8", head.index(b"\x00"))
        at = len(BOM) if head.startswith(BOM) else 0
        head = head[at:]
    solid = head.lstrip(BLANK)
    blank = head[: len(head) - len(solid)]
    if b"\n" in blank:
        line_at = at + blank.rindex(b"\n") + 1
    at += len(blank)
    if not solid:
        return None, at, line_at, b""
    if solid.startswith(b"["):
        return ArrayFramer(at), at, line_at, solid
    if solid.startswith(b"{"):
        return LineFramer(at, line_at), at, line_at, solid
    raise FramingError("not JSON", at)


def checked(text: Iterator[bytes], at: int = 0) -> Iterator[bytes]:
    """The text from byte `at` on, once it is known to be UTF-8; a sequence cut by a chunk waits for the next.

    Raises:
        FramingError: it is not UTF-8.
    """
    held = b""
    for chunk in text:
        piece = held + chunk if held else chunk
        if _is_utf8(piece):
            at, held = at + len(piece), b""
            yield piece
            continue
        try:
            _, used = codecs.utf_8_decode(piece, "strict", False)
        except UnicodeDecodeError as error:
            # What stands before it may hold an earlier fault, which is then the one to name.
            if error.start:
                yield piece[: error.start]
            raise FramingError("not UTF-8", at + error.start) from None
        held = piece[used:]
        at += used
        if used:
            yield piece[:used] if held else piece
    if held:
        raise FramingError("not UTF-8", at)


def _is_utf8(piece: bytes) -> bool:
    """Whether a piece is UTF-8 from end to end; decoding it tells where it is not, and takes ten times as long."""
    edges = np.array([0, len(piece)], dtype=np.int32)
    try:
        pa.StringArray.from_buffers(1, pa.py_buffer(edges), pa.py_buffer(piece)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decompressed(stored: Iterator[bytes], most: int) -> Iterator[bytes]:
    """The text of gzip members joined end to end, in pieces of at most `most` bytes."""
    member, begun, at = zlib.decompressobj(wbits=31), False, 0
    try:
        for chunk in stored:
            rest = chunk
            while rest:
                # Zero bytes after a member are padding, as tape blocks leave it; the file does not begin with one.
                if not begun and not (rest := rest.lstrip(b"\x00")):
                    break
                begun = True
                if text := member.decompress(rest, most):
                    at += len(text)
                    yield text
                rest = member.unconsumed_tail
                if member.eof:
                    rest, begun = member.unused_data, False
                    member = zlib.decompressobj(wbits=31)
        while begun and (text := member.decompress(b"", most)):
            at += len(text)
            yield text
    except zlib.error:
        raise FramingError("damaged gzip", at) from None
    if begun and not member.eof:
        raise FramingError("truncated: the gzip data ends too early", at)
