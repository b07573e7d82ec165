"""The eligible questions as an export's cases, in ascending order of their pseudonyms, in bounded memory.

Source: the production evaluation document, the question export. The cases of a large log are dealt into files of
the scan's private folder by the first two digits of their pseudonym, which a keyed hash spreads evenly; then one
file after the other is sorted in memory. Every case is written as canonical JSON, where no line feed stands in a
text, so a line of such a file is a case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.lanes.production.query_log.spill import as_our_own

MOST_AT_ONCE = 50_000
"""Cases of a log that needs no files. A question has at most 1,000 characters, so they are at most 200 MB."""
Pseudonyms = Callable[[list[str]], list[str]]
"""Names for query ids: `case-` and the same number of hexadecimal digits for each."""

_BEFORE_NAME, _BEFORE_QUESTION, _END, _NOTHING = (
    pa.scalar(text, pa.large_string()) for text in ('{"caseId":"', '","question":"', '"}\n', "")
)
_PREFIX = len("case-")
_DIGITS_AT = len(_BEFORE_NAME.as_py()) + _PREFIX
_SHARES = 256


def sorted_cases(
    eligible: Iterable[pa.RecordBatch], pseudonyms: Pseudonyms, folder: Path, count: int
) -> Iterator[bytes]:
    """The canonical JSON of all cases in order, in pieces, with a comma between every two cases.

    Args:
        eligible: batches with the columns "query_id" and "question".
        folder: a private folder; files made in it are removed as they are used up.
        count: how many cases there are, about; decides whether files are needed.

    Raises:
        MetaEvalError: the private folder has no room or cannot be written.
    """
    if count <= MOST_AT_ONCE:
        shares = iter([b"".join(_lines(_written(batch, pseudonyms)) for batch in eligible)])
    else:
        shares = _dealt(eligible, pseudonyms, folder)
    comma = b""
    for share in filter(None, shares):
        yield comma + _in_order(share)[:-1].replace(b"\n", b",")
        comma = b","


def _written(batch: pa.RecordBatch, pseudonyms: Pseudonyms) -> pa.Array:
    """Each case's line."""
    questions = batch.column("question").cast(pa.large_string())
    escaped = pc.match_substring_regex(questions, r'["\\\x00-\x1f]')
    if pc.any(escaped).as_py():
        texts = [canonical_bytes(text)[1:-1].decode() for text in questions.filter(escaped).to_pylist()]
        questions = pc.replace_with_mask(questions, escaped, pa.array(texts, pa.large_string()))
    names = pa.array(pseudonyms(batch.column("query_id").to_pylist()), pa.large_string())
    return pc.binary_join_element_wise(_BEFORE_NAME, names, _BEFORE_QUESTION, questions, _END, _NOTHING)


def _lines(cases: pa.Array) -> bytes:
    offsets = np.frombuffer(cases.buffers()[1], dtype=np.int64)[cases.offset : cases.offset + len(cases) + 1]
    return memoryview(cases.buffers()[2])[int(offsets[0]) : int(offsets[-1])].tobytes()


def _dealt(eligible: Iterable[pa.RecordBatch], pseudonyms: Pseudonyms, folder: Path) -> Iterator[bytes]:
    paths = [folder / f"cases-{number:02x}" for number in range(_SHARES)]
    with ExitStack() as stack:
        # Left last, so that it sees what goes wrong as the files are closed too.
        stack.enter_context(as_our_own())
        files = [stack.enter_context(_private(path)) for path in paths]
        for batch in eligible:
            cases = _written(batch, pseudonyms)
            shares = _shares(cases)
            order = np.argsort(shares, kind="stable")
            dealt = cases.take(pa.array(order))
            ends = np.cumsum(np.bincount(shares, minlength=_SHARES)).tolist()
            for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
                if end > begin:
                    files[number].write(_lines(dealt.slice(begin, end - begin)))
    for path in paths:
        with as_our_own():
            data = path.read_bytes()
            path.unlink()
        yield data


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
    bounds = np.concatenate(([0], np.flatnonzero(data == 0x0A) + 1))
    width = lines.index(b'"', _DIGITS_AT) - _DIGITS_AT
    seen = np.ndarray((data.size - width + 1,), dtype=f"S{width}", buffer=lines, strides=(1,))
    order = np.argsort(seen[bounds[:-1] + _DIGITS_AT], kind="stable")
    cases = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(lines)]
    )
    return _lines(cases.take(pa.array(order)))


def _private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=1 << 16)
