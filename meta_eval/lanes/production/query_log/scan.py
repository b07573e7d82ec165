"""The whole query log in one pass: a final outcome for every row, and the eligible questions on request.

Source: the production evaluation document, the query log. Memory is bounded by the batches under way and by a
few bytes a row; no question outlives its batch but in the private folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, SortedCases, written
from meta_eval.lanes.production.query_log.duplicates import Candidates
from meta_eval.lanes.production.query_log.keys import NO_KEYS, Secrets, keys_of
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE, MALFORMED, counts_of
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval.lanes.production.query_log.record import Binding, Rows, recording, rules_digest
from meta_eval.lanes.production.query_log.rows import classify
from meta_eval.lanes.production.query_log.spill import SpillWriter, private_folder, spilled
from meta_eval.lanes.production.query_log.workers import judged_in_order

Progress = Callable[[int, int], None]
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
    """A scanned log whose eligible questions can still be read; valid inside the `with` of the scan."""

    def __init__(self, log: LogScan, folder: Path | None, cases: Iterable[bytes]) -> None:
        self.log = log
        self._folder, self._cases = folder, cases

    def cases(self) -> Iterator[bytes]:
        """The eligible questions under their pseudonyms, once: see `cases.SortedCases`.

        Raises:
            MetaEvalError: the scan was given no pseudonyms, so that it kept no question, or its `with` has ended.
        """
        _ = self.folder
        return iter(self._cases)

    @property
    def folder(self) -> Path:
        """The scan's private folder, which goes with it. Raises MetaEvalError as `cases` does."""
        if self._folder is None or not self._folder.exists():
            raise MetaEvalError("the eligible questions are only at hand while a scan that keeps them is open")
        return self._folder


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
    pseudonyms: Pseudonyms | None = None,
    work_dir: Path | None = None,
    on_rows: Progress | None = None,
    processes: int = 1,
    record: Path | None = None,
) -> Iterator[ScannedLog]:
    """Scan the log at `path`; `on_rows` is told the rows and the stored bytes read so far.

    The result is the same for any number of processes.

    Args:
        pseudonyms: names for the query ids of the cases that are asked for afterwards. Without them no question is
            written anywhere, and `cases` is refused.
        record: where to keep what was found of each row, for `again.scan_again`; by default nowhere.

    Raises:
        InputError: the file is not a query log; names the byte offset.
    """
    reader = read_rows(path)
    with ExitStack() as stack:
        folder = cache(lambda: stack.enter_context(private_folder(work_dir)))
        tally = Tally(as_of_ms, folder)
        spill = folder() / "candidates.arrow" if pseudonyms else None
        with ExitStack() as written:
            writer = written.enter_context(recording(record)) if record else None
            kept = written.enter_context(closing(SpillWriter(spill))) if spill else None

            def take(rows: Rows, cases: pa.Array | None) -> None:
                tally.add(rows)
                if writer:
                    writer.add(rows)
                if kept and cases is not None:
                    kept.write(cases)
                if on_rows:
                    on_rows(tally.row_count, reader.byte_count)

            read_through(reader, Job(as_of_ms, policy, Secrets.drawn(), pseudonyms), processes, take)
            log, eligible = tally.log(reader.receipt, reader.byte_count)
            if writer:
                writer.finish(
                    Binding(log.receipt, log.byte_count, log.row_count, as_of_ms, policy.digest, rules_digest())
                )
        cases = SortedCases(folder)
        for part in spilled(spill, eligible) if spill else ():
            cases.add(part)
        yield ScannedLog(log, folder() if spill else None, cases)


class Job(NamedTuple):
    """How a batch is judged."""

    as_of_ms: int
    policy: Policy
    secrets: Secrets | None
    """Under which rows are compared with one another; None where they are not."""
    pseudonyms: Pseudonyms | None
    """By which the candidates' cases are written; None where no question is kept."""


def judged(job: Job, batch: pa.RecordBatch) -> tuple[Rows, pa.Array | None]:
    """What was found of each row, small enough to send between processes, and the candidates' cases where kept."""
    classified = classify(batch, as_of_ms=job.as_of_ms, policy=job.policy, compared=job.secrets is not None)
    query_ids = classified.column("query_id").drop_null()
    rows = Rows(
        outcomes=classified.column("outcome").to_numpy().astype(np.uint8),
        asked_at_ms=classified.column("asked_at_ms").fill_null(0).to_numpy(),
        id_keys=keys_of(query_ids, job.secrets) if job.secrets else NO_KEYS,
        question_keys=keys_of(classified.column("normal_question").drop_null(), job.secrets)
        if job.secrets
        else NO_KEYS,
    )
    if job.pseudonyms is None or not len(query_ids):
        return rows, None
    return rows, written(query_ids, classified.column("question").drop_null(), job.pseudonyms)


def read_through(
    batches: Iterable[pa.RecordBatch], job: Job, processes: int, take: Callable[[Rows, pa.Array | None], None]
) -> None:
    """Judge every batch and hand on what was found, in the order of the rows."""
    with closing(judged_in_order(partial(judged, job), batches, processes)) as judging:
        for rows, cases in judging:
            take(rows, cases)


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
