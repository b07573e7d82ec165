"""The whole query log in one pass: a final outcome for every row, and the eligible questions on request.

Source: the production evaluation document, the query log. Memory is bounded by the batches under way and by 40
bytes a candidate row; no question outlives its batch but in the private folder.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, sorted_cases
from meta_eval.lanes.production.query_log.duplicates import Candidates
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE, MALFORMED, counts_of
from meta_eval.lanes.production.query_log.reading import RowReader, read_rows
from meta_eval.lanes.production.query_log.rows import classify
from meta_eval.lanes.production.query_log.spill import SPILL_SCHEMA, SpillWriter, private_folder, spilled
from meta_eval.lanes.production.query_log.workers import judged_in_order

LARGE_LOG = 64 << 20
"""Bytes from which a log is best read by more than one process."""


@dataclass(frozen=True)
class LogScan:
    """What a query log holds, without a question, an id or an instant of a single row."""

    receipt: str
    byte_count: int
    row_count: int
    outcomes: np.ndarray
    """uint8: the final outcome of each row, in order, as an index in OUTCOMES."""
    counts: dict[str, int]
    newest_asked_at_ms: int | None
    """Of the rows that are not malformed and were not asked after the scan's clock."""


class ScannedLog:
    """A scanned log whose eligible questions can still be read; valid inside `scan_log`'s `with`."""

    def __init__(self, log: LogScan, spill: Path | None, eligible: np.ndarray) -> None:
        self.log = log
        self._spill, self._eligible = spill, eligible

    def eligible(self) -> Iterator[pa.RecordBatch]:
        """The eligible rows in row order: query_id, question.

        Raises:
            MetaEvalError: the scan was asked not to keep questions, or its `with` has ended.
        """
        return spilled(self._kept(), self._eligible)

    def cases(self, pseudonyms: Pseudonyms) -> Iterator[bytes]:
        """The eligible questions as an export's cases under their pseudonyms: see `cases.sorted_cases`."""
        return sorted_cases(self.eligible(), pseudonyms, self.folder, self.log.counts["eligible"])

    @property
    def folder(self) -> Path:
        """The scan's private folder, which goes with it. Raises MetaEvalError as `eligible` does."""
        return self._kept().parent

    def _kept(self) -> Path:
        if self._spill is None or not self._spill.exists():
            raise MetaEvalError("the eligible questions are only at hand while a scan that keeps them is open")
        return self._spill


def processes_for(path: Path) -> int:
    """Two for a log that takes longer to read than they take to start, where processes may be started at all."""
    try:
        large = path.stat().st_size >= LARGE_LOG
    except OSError:
        return 1  # the scan says what is wrong with the file
    # A process of a program that is no file (one read from standard input) cannot be started.
    program = getattr(sys.modules["__main__"], "__file__", None)
    startable = program is None or Path(program).exists()
    return 2 if large and startable and not current_process().daemon else 1


@contextmanager
def scan_log(
    path: Path,
    *,
    as_of_ms: int,
    policy: Policy,
    work_dir: Path | None = None,
    on_rows: Callable[[int, int], None] | None = None,
    processes: int = 1,
    keep_questions: bool = True,
) -> Iterator[ScannedLog]:
    """Scan the log at `path`; `on_rows` is told the rows and the stored bytes read so far.

    With `keep_questions=False` nothing is written anywhere and `eligible` is refused. The result is the same
    for any number of processes.

    Raises:
        InputError: the file is not a query log; names the byte offset.
    """
    reader = read_rows(path)
    with ExitStack() as stack:
        folder = cache(lambda: stack.enter_context(private_folder(work_dir)))
        candidates = Candidates(folder)
        spill = folder() / "candidates.arrow" if keep_questions else None
        outcomes, newest = _first_pass(
            reader, candidates, spill, _Job(as_of_ms, policy, keep_questions), processes, on_rows
        )
        eligible, log = _log_scan(reader, candidates, outcomes, newest)
        yield ScannedLog(log, spill, eligible)


def _log_scan(
    reader: RowReader, candidates: Candidates, outcomes: np.ndarray, newest: int | None
) -> tuple[np.ndarray, LogScan]:
    final, newest_candidate = candidates.final_outcomes()
    # Candidates were added in row order, so they fill their rows' places one after the other.
    outcomes[outcomes == ELIGIBLE] = final
    outcomes.flags.writeable = False
    counts = counts_of(outcomes)
    log = LogScan(
        receipt=reader.receipt,
        byte_count=reader.byte_count,
        row_count=outcomes.size,
        outcomes=outcomes,
        counts=counts,
        newest_asked_at_ms=max((ms for ms in (newest, newest_candidate) if ms is not None), default=None),
    )
    return final == ELIGIBLE, log


class _Job(NamedTuple):
    as_of_ms: int
    policy: Policy
    keep_questions: bool


class _Judged(NamedTuple):
    """One batch's part of the result, small enough to send between processes."""

    outcomes: bytes
    newest_asked_at_ms: int | None
    asked_at_ms: np.ndarray
    id_digests: bytes
    question_digests: bytes
    candidates: pa.RecordBatch | None


def _judged(job: _Job, batch: pa.RecordBatch) -> _Judged:
    classified = classify(batch, as_of_ms=job.as_of_ms, policy=job.policy)
    codes = classified.column("outcome").to_numpy()
    asked = classified.column("asked_at_ms")
    chosen = classified.filter(pa.array(codes == ELIGIBLE))
    # A malformed row has no instant here. Candidates are left out: two of them may yet turn out malformed.
    others = asked.filter(pa.array((codes != MALFORMED) & (codes != ELIGIBLE)))
    newest = pc.max(others.filter(pc.less_equal(others, job.as_of_ms))).as_py()
    ids = chosen.column("query_id").cast(pa.binary()).to_pylist()
    return _Judged(
        outcomes=codes.astype(np.uint8).tobytes(),
        newest_asked_at_ms=newest,
        asked_at_ms=chosen.column("asked_at_ms").to_numpy(),
        id_digests=b"".join([hashlib.sha256(value).digest() for value in ids]),
        question_digests=b"".join(chosen.column("question_sha256").to_pylist()),
        candidates=chosen.select(SPILL_SCHEMA.names) if job.keep_questions and ids else None,
    )


def _first_pass(
    reader: RowReader,
    candidates: Candidates,
    spill: Path | None,
    job: _Job,
    processes: int,
    on_rows: Callable[[int, int], None] | None,
) -> tuple[np.ndarray, int | None]:
    """Every row's outcome as far as the row alone decides it, and the newest instant of the non-candidates."""
    outcomes = bytearray()
    newest: list[int] = []
    with ExitStack() as stack:
        writer = SpillWriter(spill) if spill else None
        if writer:
            stack.callback(writer.close)
        judging = stack.enter_context(closing(judged_in_order(partial(_judged, job), reader, processes)))
        for judged in judging:
            outcomes += judged.outcomes
            if judged.newest_asked_at_ms is not None:
                newest.append(judged.newest_asked_at_ms)
            candidates.add(judged.question_digests, judged.id_digests, judged.asked_at_ms)
            if writer and judged.candidates:
                writer.write(judged.candidates)
            if on_rows:
                on_rows(len(outcomes), reader.byte_count)
    return np.frombuffer(outcomes, dtype=np.uint8), max(newest, default=None)
