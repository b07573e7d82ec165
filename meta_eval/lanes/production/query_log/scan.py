"""The whole query log in one pass: a final outcome for every row, and the eligible questions on request.

Source: the production evaluation document, the query log. Memory is bounded by the batches under way and by a
few bytes a row; no question outlives its batch but in the private folder.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, sorted_cases
from meta_eval.lanes.production.query_log.duplicates import Candidates
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE, MALFORMED, counts_of
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval.lanes.production.query_log.record import Binding, Rows, recording, rules_digest
from meta_eval.lanes.production.query_log.rows import classify
from meta_eval.lanes.production.query_log.spill import SPILL_SCHEMA, SpillWriter, private_folder, spilled
from meta_eval.lanes.production.query_log.workers import judged_in_order

Progress = Callable[[int, int], None]
Judging = Generator[tuple[Rows, pa.RecordBatch | None], None, None]
_NEVER = np.iinfo(np.int64).min
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
    on_rows: Progress | None = None,
    processes: int = 1,
    keep_questions: bool = True,
    record: Path | None = None,
    engine: Engine | None = None,
) -> Iterator[ScannedLog]:
    """Scan the log at `path`; `on_rows` is told the rows and the stored bytes read so far.

    With `keep_questions=False` no question is written anywhere and `eligible` is refused. The result is the same
    for any number of processes.

    Args:
        record: where to keep what was found of each row, for `again.scan_again`; by default nowhere.
        engine: who reads and judges in the place of this machine's processes.

    Raises:
        InputError: the file is not a query log; names the byte offset.
    """
    here, elsewhere = read_rows(path), engine(path) if engine else None
    reader = elsewhere or here
    job = Job(as_of_ms, policy, keep_questions)
    with ExitStack() as stack:
        folder = cache(lambda: stack.enter_context(private_folder(work_dir)))
        tally = Tally(as_of_ms, folder)
        with recording(record) if record else nullcontext() as writer:

            def take(rows: Rows) -> None:
                tally.add(rows)
                if writer:
                    writer.add(rows)
                if on_rows:
                    on_rows(tally.row_count, reader.byte_count)

            judging = elsewhere.judged(job, folder) if elsewhere else judged_here(here, job, processes)
            spill = read_through(judging, job, folder, take)
            log, eligible = tally.log(reader.receipt, reader.byte_count)
            if writer:
                writer.finish(
                    Binding(log.receipt, log.byte_count, log.row_count, as_of_ms, policy.digest, rules_digest())
                )
        yield ScannedLog(log, spill, eligible)


class Job(NamedTuple):
    """How a batch is judged."""

    as_of_ms: int
    policy: Policy
    keep_questions: bool
    keyed: bool = True
    """Whether rows are to be compared with one another."""


def judged(job: Job, batch: pa.RecordBatch) -> tuple[Rows, pa.RecordBatch | None]:
    """What was found of each row, small enough to send between processes, and the candidates where they are kept."""
    classified = classify(batch, as_of_ms=job.as_of_ms, policy=job.policy, keyed=job.keyed)
    codes = classified.column("outcome").to_numpy().astype(np.uint8)
    chosen = classified.filter(pa.array(codes == ELIGIBLE))
    ids = chosen.column("query_id").cast(pa.binary()).to_pylist() if job.keyed else []
    rows = Rows(
        outcomes=codes,
        asked_at_ms=classified.column("asked_at_ms").fill_null(0).to_numpy(),
        id_keys=_cut([hashlib.sha256(value).digest() for value in ids]),
        question_keys=_cut(chosen.column("question_sha256").drop_null().to_pylist()),
    )
    return rows, chosen.select(SPILL_SCHEMA.names) if job.keep_questions and chosen.num_rows else None


def _cut(digests: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 4)[:, :2].copy()


class Reading(Protocol):
    """One reading of a log by an engine. `receipt` and `byte_count` hold once `judged` has ended."""

    receipt: str
    byte_count: int

    def judged(self, job: Job, folder: Callable[[], Path]) -> Judging:
        """What `judged` finds of every batch, in order; `folder` gives the scan's private folder."""


Engine = Callable[[Path], Reading]


def judged_here(batches: Iterable[pa.RecordBatch], job: Job, processes: int) -> Judging:
    """What `judged` finds of every batch, in order, by processes of this machine."""
    return judged_in_order(partial(judged, job), batches, processes)


def read_through(judging: Judging, job: Job, folder: Callable[[], Path], take: Callable[[Rows], None]) -> Path | None:
    """Hand on what was found of every batch; where the candidates' questions are, if they are kept."""
    with ExitStack() as stack:
        spill = folder() / "candidates.arrow" if job.keep_questions else None
        if spill:
            writer = SpillWriter(spill)
            stack.callback(writer.close)
        for rows, candidates in stack.enter_context(closing(judging)):
            take(rows)
            if candidates:
                writer.write(candidates)
    return spill


class Tally:
    """What the rows read so far amount to."""

    def __init__(self, as_of_ms: int, folder: Callable[[], Path]) -> None:
        self._as_of_ms = as_of_ms
        self._outcomes = bytearray()
        self._newest: int | None = None
        self._candidates = Candidates(folder)

    @property
    def row_count(self) -> int:
        return len(self._outcomes)

    def add(self, rows: Rows) -> None:
        """Add rows, in their order."""
        self._outcomes += rows.outcomes.tobytes()
        candidates = rows.outcomes == ELIGIBLE
        # A malformed row has no instant here. Candidates are left out: two of them may yet turn out malformed.
        others = rows.asked_at_ms[~candidates & (rows.outcomes != MALFORMED)]
        self._newest = _latest(self._newest, others[others <= self._as_of_ms].max(initial=_NEVER))
        self._candidates.add(rows.question_keys, rows.id_keys, rows.asked_at_ms[candidates])

    def log(self, receipt: str, byte_count: int) -> tuple[LogScan, np.ndarray]:
        """The whole log, and which candidates are eligible."""
        outcomes = np.frombuffer(self._outcomes, dtype=np.uint8)
        final, newest = self._candidates.final_outcomes()
        # Candidates were added in row order, so they fill their rows' places one after the other.
        outcomes[outcomes == ELIGIBLE] = final
        outcomes.flags.writeable = False
        log = LogScan(
            receipt=receipt,
            byte_count=byte_count,
            row_count=outcomes.size,
            outcomes=outcomes,
            counts=counts_of(outcomes),
            newest_asked_at_ms=_latest(self._newest, _NEVER if newest is None else newest),
        )
        return log, final == ELIGIBLE


def _latest(one: int | None, other: int) -> int | None:
    other = int(other)
    return one if other == _NEVER else other if one is None else max(one, other)
