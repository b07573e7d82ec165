"""One log, one answer: in every framing, for every size of batch and chunk, any number of processes and either reading.

Each engine that judges a whole log is held against what the rows were made to be (`query_log_generated`), so that one
more engine is one more entry of `ENGINES`.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.errors import InputError
from meta_eval.lanes.production import export_file
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import (
    OUTCOMES,
    ScannedLog,
    again,
    classify,
    columns,
    read_rows,
    scan_again,
    scan_log,
    workers,
)
from meta_eval.lanes.production.query_log import scan as scan_module
from meta_eval.lanes.production.question_export import Judged
from meta_eval_tests.lanes.production.query_log_generated import (
    KINDS,
    LARGE_KINDS,
    PLAIN,
    STYLES,
    Base,
    Row,
    every_kind,
    expected,
    framings,
    logs,
)
from meta_eval_tests.lanes.production.query_log_world import KEY, NAMED, as_of_ms, good_row, lines

JUDGED = Judged({}, {}, [], "production", "https://logs.example/ai")
DEFAULT = 1 << 20
CHUNKS = (1, 2, 7, 61, 1021, DEFAULT)
BATCHES = (1, 333, 4 * DEFAULT)
_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


class Way(NamedTuple):
    """How a log is read; what is found must not depend on it."""

    chunk_bytes: int = DEFAULT
    batch_bytes: int = 4 * DEFAULT
    processes: int = 1
    layouts: str = "none"
    """What is known of layouts as the reading begins: see `layouts_known`."""


class Found(NamedTuple):
    """What an engine finds: outcome names in row order, counts, the newest instant and the export's bytes."""

    outcomes: list[str]
    counts: dict[str, int]
    newest_asked_at_ms: int | None
    export: bytes


Engine = Callable[[Path, Way], Found]


def _found(scanned: ScannedLog) -> Found:
    log = scanned.log
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "export.json"
        export_file.write_export(JUDGED, scanned, lambda _: target)
        export = target.read_bytes()
    return Found([OUTCOMES[code] for code in log.outcomes], log.counts, log.newest_asked_at_ms, export)


def _options(way: Way, path: Path) -> dict[str, Any]:
    options = {"as_of_ms": as_of_ms(), "policy": CURRENT_POLICY, "work_dir": path.parent}
    return options | {"processes": way.processes, "pseudonyms": NAMED}


def one_reading(path: Path, way: Way) -> Found:
    with scan_log(path, **_options(way, path)) as scanned:
        return _found(scanned)


def reading_and_reading_again(path: Path, way: Way) -> Found:
    record = path.parent / "private" / "record"
    with scan_log(path, **(_options(way, path) | {"pseudonyms": None}), record=record):
        pass
    with scan_again(path, record, **_options(way, path)) as scanned:
        assert scanned is not None, "the record of this very log does not fit it"
        return _found(scanned)


ENGINES: dict[str, Engine] = {"one reading": one_reading, "two readings": reading_and_reading_again}


# --- what layouts are known ----------------------------------------------------------------------------------


def judged_by_itself(texts: list[bytes]) -> list[tuple[Any, ...]]:
    """What is found of each row of one batch."""
    batch = pa.RecordBatch.from_arrays([pa.array(texts, pa.binary())], ["row"])
    found = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    return [tuple(row.values()) for row in found.to_pylist()]


def _learnt(texts: list[str]) -> list[Any]:
    """The layouts of some rows, as a batch of each by itself teaches them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_known", [])
        for text in texts:
            judged_by_itself([text.encode()])
        return list(columns._known)


@cache
def layouts_known(state: str) -> list[Any]:
    """None; as many as are kept and not one of a generated row; or those of every style of generated rows."""
    texts = {
        "none": [],
        "others": [Base(0, 0).text(**{f"other{'s' * number}": "x"}) for number in range(20)],
        "these": [Base(0, 0, style=style).text() for style in STYLES],
    }
    return _learnt(texts[state])


LAYOUTS = ("none", "others", "these")


# --- the comparison ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Engine, bytes, Way], Found]]:
    """Have an engine read some bytes in some way."""
    path = tmp_path_factory.mktemp("invariance") / "log"

    def run(engine: Engine, data: bytes, way: Way) -> Found:
        path.write_bytes(data)
        # A mebibyte read byte by byte would show nothing that a few thousand pieces do not.
        chunk = max(way.chunk_bytes, len(data) // 2000)
        with pytest.MonkeyPatch.context() as patch:
            sizes = {"chunk_bytes": chunk, "batch_bytes": way.batch_bytes}
            for module in (scan_module, again):
                patch.setattr(module, "read_rows", lambda log: read_rows(log, **sizes))
            # Thousands of small files, none of which has to outlive a power cut.
            patch.setattr(os, "fsync", lambda _: None)
            patch.setattr(again, "BATCH_BYTES", way.batch_bytes)
            patch.setattr(columns, "_known", list(layouts_known(way.layouts)))
            return engine(path, way)

    yield run
    assert sorted(entry.name for entry in path.parent.iterdir()) in (["log"], ["log", "private"])


def members(data: bytes, cuts: list[int]) -> bytes:
    """Gzip in members that end at some places of the text, wherever in a row or a character those are."""
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return b"".join(gzip.compress(data[start:end], 1) for start, end in pairwise(edges))


def assert_found(found: Found, rows: list[Row], name: str) -> None:
    due = expected(rows)
    assert found.outcomes == due.outcomes, f"{name}: {[row.kind for row in rows]}"
    assert found.counts == due.counts, name
    assert found.newest_asked_at_ms == due.newest_asked_at_ms, name
    assert found.export == due.export(KEY, environment=JUDGED.environment, source=JUDGED.source), name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("style", [PLAIN, *STYLES[3:5], STYLES[8]], ids=["plain", "pretty", "escaped", "spaced"])
def test_every_kind_of_row_in_every_framing(read: Any, engine: str, style: Any) -> None:
    rows = every_kind(style)
    for number, (name, carried, data) in enumerate(framings(rows)):
        way = Way(CHUNKS[2:][number % 4], BATCHES[number % 3], layouts=LAYOUTS[number % 3])
        assert_found(read(ENGINES[engine], data, way), carried, name)
        if number % 3 == 0:
            assert_found(read(ENGINES[engine], members(data, [3, 1000, len(data) // 2]), way), carried, f"{name}, gzip")


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW)
@given(
    rows=logs(),
    way=st.builds(Way, st.sampled_from(CHUNKS), st.sampled_from(BATCHES), st.just(1), st.sampled_from(LAYOUTS)),
    cuts=st.lists(st.integers(0, 10**6), max_size=4),
)
def test_no_outcome_and_no_byte_depends_on_how_a_log_is_read(
    read: Any, engine: str, rows: list[Row], way: Way, cuts: list[int]
) -> None:
    for name, carried, data in framings(rows):
        assert_found(read(ENGINES[engine], data, way), carried, name)
        assert_found(read(ENGINES[engine], members(data, cuts), way), carried, f"{name}, gzip")


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=6, deadline=None, suppress_health_check=_SLOW)
@given(rows=logs(most=4, large=True), chunk=st.sampled_from((4099, DEFAULT)), batch=st.sampled_from(BATCHES))
def test_nor_beside_rows_of_a_mebibyte(read: Any, engine: str, rows: list[Row], chunk: int, batch: int) -> None:
    for name, carried, data in framings(rows):
        assert_found(read(ENGINES[engine], data, Way(chunk, batch)), carried, name)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("framing", ["array, pretty", "lines, CRLF"])
def test_nor_on_the_number_of_processes(read: Any, engine: str, framing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given_away = []
    takes = workers.Worker.takes
    monkeypatch.setattr(workers.Worker, "takes", lambda *words: given_away.append(takes(*words)) or given_away[-1])
    # Each kind five times, so that questions and ids are repeated in batches that different processes judge.
    rows = [row for _ in range(5) for row in every_kind()]
    (carried, data), *_ = [(carried, data) for name, carried, data in framings(rows) if name == framing]
    for batch in (5_000, 100_000):
        found = read(ENGINES[engine], data, Way(batch_bytes=batch, processes=2))
        assert_found(found, carried, f"two processes, batches of {batch} bytes")
    assert any(given_away), "no batch was judged by the second process"


@pytest.mark.parametrize("engine", ENGINES)
def test_nor_where_there_is_no_row_or_one(read: Any, engine: str) -> None:
    for number, kind in enumerate((*KINDS, *LARGE_KINDS[:1])):
        rows = [kind.made(Base(number, number, style=STYLES[number % len(STYLES)]))]
        for name, carried, data in framings(rows):
            if name in ("array, pretty", "lines"):
                assert_found(read(ENGINES[engine], data, Way(61)), carried, name)
    for name, carried, data in framings([]):
        assert carried == []
        assert_found(read(ENGINES[engine], data, Way(1)), [], name)
        assert_found(read(ENGINES[engine], gzip.compress(data), Way(1)), [], name)


# --- a row and its neighbours --------------------------------------------------------------------------------


@pytest.mark.parametrize("layouts", LAYOUTS)
def test_a_row_has_its_own_outcome_whatever_its_neighbours_and_the_layouts_known(
    layouts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_known", list(layouts_known(layouts)))
    rows = [row for style in STYLES[::2] for row in every_kind(style)]
    texts = [row.text.encode() for row in rows]
    chance = np.random.default_rng(5)
    alone: dict[int, tuple[Any, ...]] = {}
    for size in (1, 7, len(rows)):
        order = chance.permutation(len(rows)).tolist()
        for start in range(0, len(rows), size):
            part = order[start : start + size]
            for at, found in zip(part, judged_by_itself([texts[at] for at in part]), strict=True):
                assert OUTCOMES[found[0]] == rows[at].outcome, rows[at].kind
                assert alone.setdefault(at, found) == found


# --- files that are refused as a whole -----------------------------------------------------------------------

_FAULTS = (b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe2\x82")
"""No UTF-8 at the first of their bytes: a stray byte, a cut sequence, a surrogate, beyond Unicode, over-long, cut."""


@settings(max_examples=60, deadline=None, suppress_health_check=_SLOW)
@given(
    rows=logs(most=4),
    fault=st.sampled_from(_FAULTS),
    part=st.floats(0, 1),
    chunk=st.sampled_from(CHUNKS),
    cuts=st.lists(st.integers(0, 10**6), max_size=2),
)
def test_a_byte_that_is_no_utf8_is_named_by_its_place_however_the_file_is_read(
    rows: list[Row], fault: bytes, part: float, chunk: int, cuts: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    for name, _, whole in framings(rows):
        # Between two characters, behind the first one, which says what framing it is.
        text = whole.decode()
        at = len(text[: 1 + int(part * (len(text) - 1))].encode())
        data = whole[:at] + fault + whole[at:]
        for stored in (data, members(data, cuts)):
            path.write_bytes(stored)
            with pytest.raises(InputError) as caught:
                list(read_rows(path, chunk_bytes=max(chunk, len(stored) // 2000)))
            assert "not UTF-8" in str(caught.value), name
            assert caught.value.offset == at, name


def test_what_is_no_json_in_an_array_is_named_by_its_place_however_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    before = lines(*(good_row(number) for number in range(9))).rstrip().replace("\n", ",")
    # Two values with a comma between them are no one's fault in an array: there they are two rows.
    broken = [row for row in every_kind() if not row.in_array and "},{" not in row.text]
    for number, row in enumerate(broken):
        data = f"[{before},{row.text},{lines(good_row(1))}]".encode()
        path.write_bytes(data)
        told = set()
        for chunk in CHUNKS[number % 2 :: 2]:
            with pytest.raises(InputError) as caught:
                list(read_rows(path, chunk_bytes=chunk))
            told.add((str(caught.value), caught.value.offset))
        assert len(told) == 1, row.kind
