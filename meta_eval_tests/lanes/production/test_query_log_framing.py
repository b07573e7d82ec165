"""Bytes to rows: arrays and lines, plain and gzip, whole and broken, in pieces of any size."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production.query_log import ROW_LIMIT, read_rows
from meta_eval.lanes.production.query_log.framing import ArrayFramer, FramingError
from meta_eval.lanes.production.query_log.grammar import GrammarError, ValueScanner, is_one_value
from meta_eval.lanes.production.query_log.lines import LineFramer
from meta_eval.lanes.production.query_log.reading import CHUNK_BYTES

BOM = b"\xef\xbb\xbf"
CHUNKS = [1, 3, 64, 1 << 20]


def rows_in(path: Path, data: bytes, chunk_bytes: int = 1 << 20) -> list[bytes | None]:
    path.write_bytes(data)
    reader = read_rows(path, chunk_bytes=chunk_bytes)
    rows = [row for batch in reader for row in batch.column("row").to_pylist()]
    assert reader.receipt == hashlib.sha256(data).hexdigest()
    assert reader.byte_count == len(data)
    return rows


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "ai-query-log.json"


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"[]", []),
        (b" \r\n[ \t]\n ", []),
        (b'[{"a":1},{"b":[2,{}]}]', [b'{"a":1}', b'{"b":[2,{}]}']),
        (b'[\n  {"a": 1},\n  {"b": "},{"}\n]\n', [b'{"a": 1}', b'{"b": "},{"}']),
        (b'[1, -0.5e+3 ,"x",null,true,false,[],{}]',
         [b"1", b"-0.5e+3", b'"x"', b"null", b"true", b"false", b"[]", b"{}"]),
        (b'[{"a":NaN},{"b":-Infinity},{"c":Infinity},NaN,{"d":1}]',
         [b'{"a":NaN}', b'{"b":-Infinity}', b'{"c":Infinity}', b"NaN", b'{"d":1}']),
        (b'[{"a":"\\ud800"},{"a":1,"a":2},{"c":1e400}]', [b'{"a":"\\ud800"}', b'{"a":1,"a":2}', b'{"c":1e400}']),
        (b'[{"a":"\\u00e9\\"\\\\"},{"b":"\xc3\xa9"}]', [b'{"a":"\\u00e9\\"\\\\"}', b'{"b":"\xc3\xa9"}']),
        (BOM + b'[{"a":1}]', [b'{"a":1}']),
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n\r\n \t\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'   \n\t\n{"a":1}\n', [b'{"a":1}']),
        (BOM + b'{"a":1}\n' + BOM + b'{"b":2}\n' + BOM + b"\n", [b'{"a":1}', b'{"b":2}']),
        # A mark within a line is text of that line, which is then no JSON.
        (b'{"a":1}\n ' + BOM + b'{"b":2}\n', [b'{"a":1}', BOM + b'{"b":2}']),
        (b'{"e":1}{"e":2}\n\n{"e":3}\n', [b'{"e":1}{"e":2}', b'{"e":3}']),
        (b'{"e":1\n42\n[]\nnot JSON\n{"e":2}', [b'{"e":1', b"42", b"[]", b"not JSON", b'{"e":2}']),
        (b'{"e":1}\n{"e":NaN}', [b'{"e":1}', b'{"e":NaN}']),
        (b'{"e":1}\r{"e":2}\r\n', [b'{"e":1}\r{"e":2}']),
        (b'{"a":1}\n12', [b'{"a":1}', b"12"]),
    ],
)  # fmt: skip
def test_rows_are_found(log: Path, data: bytes, rows: list[bytes], chunk: int) -> None:
    assert rows_in(log, data, chunk) == rows
    assert rows_in(log, gzip.compress(data), chunk) == rows
    half = len(data) // 2
    members = gzip.compress(data[:half]) + gzip.compress(data[half:]) + b"\0" * 512
    assert rows_in(log, members, chunk) == rows


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    ("data", "offset", "rule"),
    [
        (b"", 0, "empty"),
        (b"\n\n", 0, "empty"),
        (BOM + b" \r\n", 0, "empty"),
        (b"hello", 0, "not JSON"),
        (b'  "text"', 2, "not JSON"),
        (b"42", 0, "not JSON"),
        (b"[1,]", 3, "not JSON"),
        (b'[{"a":1,}]', 8, "not JSON"),
        (b'[{"a":1},{"b":2}', 16, "truncated: the array is not closed"),
        (b'[{"a":1},', 9, "truncated"),
        (b'[{"a":"x', 8, "truncated"),
        (b"[", 1, "truncated"),
        (b'[{"q":"a"}]\n[{"q":"b"}]', 12, "something after the array"),
        (b"[]]", 2, "something after the array"),
        (b"[] null", 3, "something after the array"),
        (b'[{"a":1} {"b":2}]', 9, "not JSON"),
        (b"[,1]", 1, "not JSON"),
        (b"[1,,2]", 3, "not JSON"),
        (b"[{]", 2, "not JSON"),
        (b"[[}", 2, "not JSON"),
        (b'[{"a" 1}]', 6, "not JSON"),
        (b'[{a:1}]', 2, "not JSON"),
        (b'[{"a":1:2}]', 7, "not JSON"),
        (b'[{"a":01}]', 6, "not JSON"),
        (b'[{"a":tru}]', 6, "not JSON"),
        (b"[1.]", 1, "not JSON"),
        (b'["\\x"]', 2, "not JSON"),
        (b'["\\u12g4"]', 2, "not JSON"),
        (b'["a\nb"]', 3, "not JSON"),
        (b"['a']", 1, "not JSON"),
        (b"[1 /* one */]", 3, "not JSON"),
        (b"[-" + b"1" * 500 + b"x]", 1, "not JSON"),
        (b'{"a":1}\n{"b', 8, "truncated: the last line"),
        (b'{"a":1}\n{"b":1}{"c":2}', 8, "truncated: the last line"),
        (b'\n\n{"a":1', 2, "truncated: the last line"),
        (b'{"a":1}\r{"b":2}\r', 0, "truncated: the last line"),
        (b'{"a":1}\n{"b":"\xff"}\n', 14, "not UTF-8"),
        (b'[{"b":"\xc3"}]', 7, "not UTF-8"),
        (b'[{"b":"\xed\xa0\x80"}]', 7, "not UTF-8"),
        (b'{"e":1}\n{"t":"caf\xc3', 17, "not UTF-8"),
        (b'[1]\xff', 3, "not UTF-8"),
        ("\ufeff{}\n".encode("utf-16-le"), 0, "not UTF-8"),
        ("\ufeff[]".encode("utf-16-be"), 0, "not UTF-8"),
        ("{}\n".encode("utf-16-le"), 1, "not UTF-8"),
        ("[]\n".encode("utf-16-be"), 0, "not UTF-8"),
        ("[1]".encode("utf-32-le"), 1, "not UTF-8"),
    ],
)  # fmt: skip
def test_broken_file_is_refused_at_its_byte(log: Path, data: bytes, offset: int, rule: str, chunk: int) -> None:
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        rows_in(log, data, chunk)
    assert caught.value.offset == offset
    if not data:
        return
    with pytest.raises(InputError, match=re.escape(rule) + ".*decompressed") as caught:
        rows_in(log, gzip.compress(data), chunk)
    assert caught.value.offset == offset


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("cut", [1, 4, 8, 12])
def test_cut_gzip_is_refused_whole(log: Path, cut: int, chunk: int) -> None:
    whole = gzip.compress(b'{"a":1}\n' * 50)
    with pytest.raises(InputError, match="gzip"):
        rows_in(log, whole[:-cut], chunk)
    with pytest.raises(InputError, match="gzip"):
        rows_in(log, whole + whole[:-cut], chunk)


def test_damaged_gzip_and_what_follows_it_are_refused(log: Path) -> None:
    whole = gzip.compress(b'{"a":1}\n')
    for data in (whole[:-5] + b"\x00" + whole[-4:], whole + b"junk", whole + b"\0\0junk", b"\x1f\x8b"):
        with pytest.raises(InputError, match="gzip"):
            rows_in(log, data)


def test_missing_file_and_folder_are_input_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InputError):
            list(read_rows(path))


@pytest.mark.parametrize("chunk", [1 << 16, 1 << 20])
def test_row_of_the_limit_is_kept_and_a_longer_one_is_only_counted(log: Path, chunk: int) -> None:
    exact = b'{"a":"' + b"x" * (ROW_LIMIT - 8) + b'"}'
    longer = exact.replace(b"x", b"xx", 1)
    for data in (
        b"[" + exact + b" ," + longer + b",{}]",
        exact + b"\r\n" + longer + b"\n{}\n",
        b"{}\n" + exact + b"\n" + longer,
    ):
        rows = rows_in(log, data, chunk)
        assert sorted([b"" if row is None else row for row in rows], key=len) == [b"", b"{}", exact]
        assert rows.index(None) == rows.index(exact) + 1


def test_white_space_round_a_row_is_not_of_its_length(log: Path) -> None:
    pad = b" " * (ROW_LIMIT + 5)
    assert rows_in(log, b'{"a":1}\n' + pad + b'{"b":2}' + pad + b"\n" + pad + b"\n{}", 1 << 16) == [
        b'{"a":1}',
        b'{"b":2}',
        b"{}",
    ]
    assert rows_in(log, b'{"a":1' + pad + b"}\n{}\n", 1 << 16) == [None, b"{}"]
    assert rows_in(log, b"[" + pad + b'{"a":1}' + pad + b',{"b":2' + pad + b"}]", 1 << 16) == [b'{"a":1}', None]


@pytest.mark.parametrize("data", [b'{"a":1}\n{"b":"%s', b'{"a":1}\n{"b":"%s"}}', b'{"a":1}\n%s'])
def test_over_long_last_line_that_is_not_json_is_a_cut_file(log: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="truncated") as caught:
        rows_in(log, data.replace(b"%s", b"x" * (2 * ROW_LIMIT)), 1 << 16)
    assert caught.value.offset == 8


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_followed_without_recursion(log: Path, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = opening * 100_000 + b"1" + closing * 100_000
    assert rows_in(log, b"[{}," + deep + b",{}]") == [b"{}", deep, b"{}"]
    with pytest.raises(InputError, match="not closed"):
        rows_in(log, b"[{}," + opening * 100_000)
    with pytest.raises(InputError, match="not JSON"):
        rows_in(log, b"[" * 2_000_000)
    assert rows_in(log, b"{}\n" + opening * 100_000 + b"\n{}\n") == [b"{}", opening * 100_000, b"{}"]


def test_row_of_many_megabytes_costs_no_memory(log: Path) -> None:
    with log.open("wb") as file:
        file.write(b'[{"a":"')
        for _ in range(60):
            file.write(b"x" * (1 << 20))
        file.write(b'","n":' + b"9" * (1 << 21) + b'},{"b":1}]')
    tracemalloc.start()
    try:
        rows = [row for batch in read_rows(log) for row in batch.column("row").to_pylist()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == [None, b'{"b":1}']
    assert peak < 4 * CHUNK_BYTES < 60 << 20


def test_gzip_that_expands_a_thousandfold_costs_no_memory(log: Path) -> None:
    log.write_bytes(gzip.compress(b'{"a":1}\n' + b" " * (64 << 20) + b"\n{}"))
    tracemalloc.start()
    try:
        rows = [row for batch in read_rows(log) for row in batch.column("row").to_pylist()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == [b'{"a":1}', b"{}"]
    assert peak < 6 * CHUNK_BYTES < 60 << 20


def test_batches_are_bounded_and_progress_is_told(log: Path) -> None:
    data = b'{"a":1}\n' * 10_000
    log.write_bytes(data)
    told: list[int] = []
    sizes = [batch.num_rows for batch in read_rows(log, on_bytes=told.append, batch_bytes=8_000, chunk_bytes=1_000)]
    assert sum(sizes) == 10_000
    assert max(sizes) < 1_000
    assert told == sorted(told)
    assert told[-1] == len(data)


# --- the grammar and its shortcut --------------------------------------------------------------------------

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["},{", "]", "\\", '"']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """JSON texts, and such texts with a few bytes gone, changed or added."""
    text = bytearray(
        json.dumps(draw(_JSON), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))).encode()
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 1))] = draw(
            st.sampled_from([b"", b",", b"]", b"{", b'"', b":", b"0", b"\\", b" ", b"\x01", b"e", b"-"])
        )
    return bytes(text)


def is_json(data: bytes) -> bool:
    try:
        # UTF-8 is checked before the grammar, so here each byte may stand for a character.
        json.loads(data.decode("latin-1"))
    except ValueError:
        return False
    return True


@settings(max_examples=400)
@given(json_texts())
def test_scanner_accepts_what_the_standard_library_does(data: bytes) -> None:
    assert is_one_value(data) is is_json(data)


@settings(max_examples=200)
@given(json_texts(), st.integers(1, 5))
def test_scanner_answers_the_same_in_pieces_of_any_size(data: bytes, size: int) -> None:
    def answer(step: int) -> tuple[str, int]:
        scanner = ValueScanner()
        used = 0
        try:
            for start in range(0, len(data), step):
                used = start + scanner.feed(data[start : start + step])
                if scanner.done:
                    break
        except GrammarError as error:
            return "broken", error.offset
        return ("whole" if scanner.finish() else "open"), used

    assert answer(size) == answer(max(1, len(data)))


@settings(max_examples=200)
@given(st.lists(json_texts(), max_size=6), st.sampled_from([b",", b" , ", b",\n  "]), st.integers(1, 40))
def test_array_in_bulk_and_byte_by_byte_give_the_same_rows(texts: list[bytes], comma: bytes, size: int) -> None:
    data = b"[" + comma.join(texts) + b"]"

    def answer(step: int) -> object:
        framer = ArrayFramer(0)
        try:
            rows = [
                row
                for start in range(0, len(data), step)
                for row in framer.feed(data[start : start + step]).to_pylist()
            ]
            return rows + framer.close().to_pylist()
        except FramingError as error:
            return error.rule, error.offset

    assert answer(1) == answer(size) == answer(len(data))
    if all(map(is_json, texts)):
        assert answer(1) == [text.strip(b" \t\n\r") for text in texts]


def test_bulk_decoder_takes_no_text_that_the_scanner_refuses() -> None:
    """The decoder in C is trusted for rows; here it is asked about every byte after every short beginning."""
    decoder = msgspec.json.Decoder(msgspec.Raw)
    for beginning in (
        b"",
        b"-",
        b"0",
        b"1.",
        b"1e",
        b'"',
        b'"\\',
        b'"\\u00e',
        b"[",
        b"[1,",
        b"{",
        b'{"a":',
        b"tru",
        b"nul",
    ):
        for byte in range(256):
            for ending in (b"", b'"', b"]", b"}", b"e", b"1"):
                text = beginning + bytes([byte]) + ending
                try:
                    decoder.decode(text)
                except msgspec.DecodeError:
                    continue
                assert is_one_value(text), text


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([b'{"a":1}', b"{", b"\n", b"\r", b" ", BOM, b"x", b'"\n"', b"42"]), max_size=12),
    st.integers(1, 7),
)
def test_lines_in_pieces_of_any_size_give_the_same_rows(parts: list[bytes], size: int) -> None:
    data = b"{" + b"".join(parts)

    def answer(step: int) -> object:
        framer = LineFramer(0, 0)
        try:
            rows = [
                row
                for start in range(0, len(data), step)
                for row in framer.feed(data[start : start + step]).to_pylist()
            ]
            return rows + framer.close().to_pylist()
        except FramingError as error:
            return error.rule, error.offset

    assert answer(size) == answer(len(data))


def test_reading_holds_no_file_open_after_an_error(log: Path) -> None:
    handles = Path("/proc/self/fd")
    if not handles.exists():
        pytest.skip("no list of open files on this system")
    before = len(list(handles.iterdir()))
    for _ in range(20):
        with pytest.raises(InputError):
            rows_in(log, b"[1,]")
    assert len(list(handles.iterdir())) <= before + 1
