"""A ledger file line by line: what is an object is yielded, what is not is counted, and nothing is fatal.

The session process rubric: telemetry is untrusted. Stated behaviour, so that it never depends on luck:

- only LF ends a line; a CR before it is white space, a CR alone is not the end of a line;
- a byte-order mark at the very start is passed over; anywhere else it spoils its line;
- a line is malformed where it is not UTF-8, not JSON (NaN and Infinity are not), not an object, or has a repeated
  key, a lone surrogate, more than `MAX_DEPTH` levels or more than `MAX_LINE` bytes;
- a last line without its LF is kept where it is whole, and is torn where it is not;
- gzip is read, all its members; a cut one makes the whole file unreadable, for half a stream is no stream;
- UTF-16, a folder, or a file that the operating system withholds: unreadable. No such file: absent.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from meta_eval.lanes.sessions.fields import blank

MAX_LINE = 16 * 1024 * 1024
MAX_DEPTH = 200
_CHUNK = 4 * 1024 * 1024
_SHOWN = 20
_BOM = b"\xef\xbb\xbf"
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


@dataclass
class Reading:
    """What became of one file: its state, and a number for everything that was passed over."""

    state: str = "present"  # or "absent" or "unreadable"
    fault: str = ""
    objects: int = 0
    malformed: int = 0
    malformed_lines: list[int] = field(default_factory=list)
    torn: bool = False
    byte_order_mark: bool = False

    def refuse(self, line: int, *, last: bool) -> None:
        self.malformed += 1
        self.torn = self.torn or last
        if len(self.malformed_lines) < _SHOWN:
            self.malformed_lines.append(line)


class _MalformedError(Exception):
    """A line that is not one JSON object."""


def read_objects(path: Path, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers from 1; `reading` is filled in as it goes.

    Where `reading.state` ends as "unreadable", what was yielded before must be forgotten.
    """
    try:
        with path.open("rb") as raw:
            head = raw.peek(3)[:3]
            if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
                reading.state, reading.fault = "unreadable", "not UTF-8"
                return
            source: IO[bytes] = gzip.GzipFile(fileobj=raw) if head[:2] == b"\x1f\x8b" else raw  # type: ignore[assignment]
            for number, line, last in _lines(source, reading):
                value = _object(line, number, reading, last=last)
                if value is not None:
                    reading.objects += 1
                    yield number, value
    except FileNotFoundError:
        reading.state = "absent"
    except (EOFError, zlib.error, gzip.BadGzipFile):
        reading.state, reading.fault = "unreadable", "gzip that is cut or damaged"
    except OSError:
        reading.state, reading.fault = "unreadable", "a folder, or a file that may not be read"


def _object(line: bytes | None, number: int, reading: Reading, *, last: bool) -> dict[str, Any] | None:
    if line is not None and not line.strip():
        return None
    try:
        if line is None:
            raise _MalformedError
        return parsed_object(line)
    except _MalformedError:
        if line is None or not _is_blank(line):
            reading.refuse(number, last=last)
        return None


def _lines(source: IO[bytes], reading: Reading) -> Iterator[tuple[int, bytes | None, bool]]:
    """Number, bytes (None where too long) and whether it is a last line without its LF."""
    number, held, too_long, first = 0, b"", False, True
    while chunk := source.read(_CHUNK):
        if first and chunk.startswith(_BOM):
            reading.byte_order_mark, chunk = True, chunk[len(_BOM) :]
        first = False
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            number += 1
            line = held + piece
            yield number, None if too_long or len(line) > MAX_LINE else line, False
            held, too_long = b"", False
        # A line beyond the limit is let go at once, so that it never fills the memory.
        too_long = too_long or len(held) + len(rest) > MAX_LINE
        held = b"" if too_long else held + rest
    if held or too_long:
        yield number + 1, None if too_long else held, True


def _is_blank(line: bytes) -> bool:
    try:
        return blank(line.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _MalformedError
    return value


def _no_constant(_: str) -> Any:
    raise _MalformedError


def _integer(text: str) -> int | float:
    # Python refuses to read more than 4,300 digits; JSON does not, and no double holds them.
    return int(text) if len(text) < 400 else math.copysign(math.inf, -1 if text[0] == "-" else 1)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)


def parsed_object(line: bytes) -> dict[str, Any]:
    """The object that a line is, or `_MalformedError`."""
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise _MalformedError
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _MalformedError from None
    if not isinstance(value, dict) or (b"\\ud" in line.lower() and _has_surrogate(value)):
        raise _MalformedError
    return value


def _depth(line: bytes) -> int:
    deepest = depth = 0
    for token in _BRACKETS.finditer(line):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token.group(), 0)
        deepest = max(deepest, depth)
    return deepest


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
