"""A second reading of a log with a record of the first: only the rows that will be handed on are judged anew.

Source: the production evaluation document, the question export, and the house's rule that a stage trusts nothing that
was recorded. A row is handed on only if the log at hand has the record's receipt and the row, judged anew from its own
text at this reading's clock, passes every rule on a row alone. So a record that was tampered with can leave a row out
or let a question through twice, which the prepared manifest refuses; it can let nothing private out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, SortedCases
from meta_eval.lanes.production.query_log.judging import Job, judged_here
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE, FUTURE, OUTCOMES, STALE, UNSUCCESSFUL
from meta_eval.lanes.production.query_log.reading import BATCH_BYTES, RowReader, in_batches, read_rows
from meta_eval.lanes.production.query_log.record import Record, Rows, fitting
from meta_eval.lanes.production.query_log.scan import LogScan, Progress, ScannedLog, Tally
from meta_eval.lanes.production.query_log.spill import private_folder


@contextmanager
def scan_again(
    path: Path,
    record_file: Path,
    *,
    as_of_ms: int,
    policy: Policy,
    pseudonyms: Pseudonyms,
    work_dir: Path | None = None,
    on_rows: Progress | None = None,
    processes: int = 1,
) -> Iterator[ScannedLog | None]:
    """What `scan_log` would give, or None where no record fits or it does not hold, so that a whole scan is due.

    Raises:
        InputError: the file is not a query log; names the byte offset.
    """
    with ExitStack() as stack:
        folder = cache(lambda: stack.enter_context(private_folder(work_dir)))
        size = path.stat().st_size if path.exists() else 0
        record = fitting(record_file, byte_count=size, as_of_ms=as_of_ms, policy=policy)
        if record is None:
            yield None
            return
        reader = read_rows(path)
        chosen = _Chosen(reader, partial(_told, record, as_of_ms, policy, folder), on_rows)
        handed_on = np.zeros(len(OUTCOMES), dtype=np.int64)
        cases = SortedCases(folder)
        job = Job(as_of_ms, policy, None, hand_back=True)
        with closing(judged_here(chosen, job, pseudonyms, processes)) as judging:
            for rows, written in judging:
                np.add.at(handed_on, rows.outcomes, 1)
                if written is not None:
                    cases.add(written)
        log = chosen.log
        holds = (
            log is not None
            and (reader.receipt, chosen.row_count) == (log.receipt, log.row_count)
            and handed_on.sum() == handed_on[ELIGIBLE] == log.counts["eligible"]
        )
        yield ScannedLog(log, folder(), cases) if log and holds else None


def _told(record: Record, as_of_ms: int, policy: Policy, folder: Callable[[], Path]) -> LogScan | None:
    """The whole log as the record tells it, judged by this reading's clock; None where it tells no whole log."""
    tally = Tally(as_of_ms, folder)
    with suppress(ValueError, pa.ArrowException):  # sealed, but by nobody of ours
        for rows in record:
            now = _at(rows, as_of_ms, policy)
            if now is None:
                return None
            tally.add(now)
        log, _ = tally.log(record.binding.receipt, record.binding.byte_count)
        return log if log.row_count == record.binding.row_count else None
    return None


def _at(rows: Rows, as_of_ms: int, policy: Policy) -> Rows | None:
    """The rows at a later clock; None where one is no longer of the future, as its question was never looked at."""
    age = as_of_ms - rows.asked_at_ms
    if ((rows.outcomes == FUTURE) & (age >= 0)).any():
        return None
    outcomes = rows.outcomes.copy()
    outcomes[(outcomes > UNSUCCESSFUL) & (age > policy.freshness_ms)] = STALE
    left = outcomes[rows.outcomes == ELIGIBLE] == ELIGIBLE
    return Rows(outcomes, rows.asked_at_ms, rows.id_keys[left], rows.question_keys[left])


class _Chosen:
    """The rows of a log that will be handed on, in batches about as large as its own; none where `told` says nothing.

    The record is read only as the first row is asked for: what judges the rows takes time to start.
    """

    def __init__(self, reader: RowReader, told: Callable[[], LogScan | None], on_rows: Progress | None) -> None:
        self.row_count = 0
        self.log: LogScan | None = None
        self._reader, self._told, self._on_rows = reader, told, on_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.log = self._told()
        return iter(()) if self.log is None else in_batches(self._wanted(self.log.outcomes == ELIGIBLE), BATCH_BYTES)

    def _wanted(self, eligible: np.ndarray) -> Iterator[pa.Array]:
        for batch in self._reader:
            wanted = eligible[self.row_count : self.row_count + batch.num_rows]
            self.row_count += batch.num_rows
            if wanted.size < batch.num_rows:
                continue  # more rows than the record has: another log, which the receipt will tell
            yield batch.column("row").filter(pa.array(wanted))
            if self._on_rows:
                self._on_rows(self.row_count, self._reader.byte_count)
