"""A file of lines in byte ranges: the rows and faults of one reading, wherever it is cut."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production.query_log import lines as lines_module
from meta_eval.lanes.production.query_log import read_rows
from meta_eval.lanes.production.query_log.framing import FramingError
from meta_eval.lanes.production.query_log.ranges import Piece, lines_of

Found = list[bytes | None] | tuple[str, int | None]
"""The rows of a file, or the rule that it breaks and where."""

_PARTS = [
    b'{"a":1}', b'{"b":"\xc3\xa9\xf0\x9f\x96\xbc"}', b"\n", b"\n", b"\r\n", b" ", b"\t", b"\xef\xbb\xbf", b"{}",
    b"x" * 40, b"not JSON", b"\xff", b"\xe2\x82", b"\x00", b'{"cut',
]  # fmt: skip


def whole(path: Path) -> Found:
    """The file as one reading finds it."""
    try:
        return [row for batch in read_rows(path) for row in batch.column("row").to_pylist()]
    except InputError as error:
        return error.rule, error.offset


def pieces(path: Path, length: int, chunk: int) -> tuple[list[Piece], tuple[str, int | None] | None]:
    """What the ranges give one after the other, and the fault that ends them."""
    lines = lines_of(path)
    assert lines is not None
    found: list[Piece] = []
    try:
        for number in range(lines.ranges(length)):
            found += lines.read(path, number, length, batch_bytes=chunk * 3, chunk_bytes=chunk)
    except FramingError as error:
        return found, (error.rule, error.offset)
    return found, None


def in_ranges(path: Path, length: int, chunk: int) -> Found:
    found, fault = pieces(path, length, chunk)
    return fault or [row for piece in found for row in piece.rows.column("row").to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@settings(max_examples=400, deadline=None)
@given(
    parts=st.lists(st.sampled_from(_PARTS), max_size=25),
    begin=st.sampled_from([b"", b"\xef\xbb\xbf", b" \n\r\n ", b"\xef\xbb\xbf\n "]),
    length=st.integers(1, 60),
    chunk=st.sampled_from([1, 2, 7, 1000]),
    limit=st.sampled_from([20, 1 << 20]),
)
@example(parts=[b"x" * 40] * 5 + [b"\n{}\n"], begin=b"", length=7, chunk=2, limit=1 << 20)
@example(parts=[b"\n", b"\xe2\x82", b"\n", b"\xff"], begin=b"", length=3, chunk=1000, limit=1 << 20)
@example(parts=[b"\n" * 9, b'{"cut'], begin=b"\n", length=3, chunk=1, limit=1 << 20)
def test_ranges_have_the_rows_and_faults_of_one_reading(
    parts: list[bytes], begin: bytes, length: int, chunk: int, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "ROW_LIMIT", limit)
        path = Path(folder) / "log"
        path.write_bytes(begin + b'{"first":0}' + b"".join(parts))
        assert in_ranges(path, length, chunk) == whole(path)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.integers(0, 30), min_size=1, max_size=20), length=st.integers(1, 100), end=st.booleans())
def test_pieces_lie_end_to_end_and_name_the_bytes_that_they_read(rows: list[int], length: int, end: bool) -> None:
    text = b"\n".join(b'{"a":"' + b"x" * row + b'"}' for row in rows) + b"\n" * end
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(b"\xef\xbb\xbf\n" + text)
        found, fault = pieces(path, length, 5)
    assert fault is None
    edges = [(piece.start, piece.stop) for piece in found]
    assert (edges[0][0], edges[-1][1]) == (4, 4 + len(text))
    assert all(one[1] == other[0] for one, other in pairwise(edges))
    assert [piece.sha256 for piece in found] == [hashlib.sha256(text[a - 4 : b - 4]).digest() for a, b in edges]
    assert sum(piece.rows.num_rows for piece in found) == len(rows)


def test_line_longer_than_several_ranges_belongs_to_the_one_it_begins_in(log: Path) -> None:
    log.write_bytes(b'{"a":1}\n{"b":"' + b"x" * 100 + b'"}\n{"c":3}\n')
    lines = lines_of(log)
    assert lines is not None
    # Lines begin at bytes 0, 8 and 117.
    rows = [[row for piece in lines.read(log, n, 20) for row in piece.rows.column("row").to_pylist()] for n in range(7)]
    assert rows == [[b'{"a":1}', b'{"b":"' + b"x" * 100 + b'"}'], [], [], [], [], [b'{"c":3}'], []]


def test_fault_of_the_lowest_byte_is_that_of_its_own_range(log: Path) -> None:
    log.write_bytes(b'{"a":1}\n{"b":"\xff"}\n{"c":"\xfe"}\n{"cut')
    assert in_ranges(log, 1000, 1000) == in_ranges(log, 5, 3) == ("not UTF-8", 14)
    log.write_bytes(b'\xef\xbb\xbf\n {"a":1}\n\n{"cut')
    assert in_ranges(log, 5, 3) == ("truncated: the last line is not JSON and no line feed ends it", 14)
    log.write_bytes(b'\xef\xbb\xbf\n {"cut')
    assert in_ranges(log, 2, 3) == ("truncated: the last line is not JSON and no line feed ends it", 4)


@pytest.mark.parametrize(
    "data",
    [
        b"", b" \n", b'[{"a":1}]', b'\xef\xbb\xbf[{"a":1}]', b'"text"\n', b'{\x00"\x00', b'\x00{"a', b"\xff\xfe{\x00",
        gzip.compress(b'{"a":1}\n'), b" " * 70_000 + b'{"a":1}\n',
    ],
)  # fmt: skip
def test_what_is_no_plain_file_of_lines_is_not_cut(log: Path, data: bytes) -> None:
    log.write_bytes(data)
    assert lines_of(log) is None


def test_file_that_grew_is_read_to_its_end(log: Path) -> None:
    log.write_bytes(b'{"a":1}\n{"b":2}\n')
    lines = lines_of(log)
    assert lines is not None
    with log.open("ab") as file:
        file.write(b'{"c":3}\n{"d":4}\n')
    assert [piece.stop for piece in lines.read(log, lines.ranges(10) - 1, 10)] == [32]
