"""The whole query log in one pass: a final outcome for every row, and the eligible questions on request.

Source: the production evaluation document, the query log. Memory is bounded by the batches under way and by a
few bytes a row; no question outlives its batch but in the private folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import current_process
from pathlib import Path

import numpy as np

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, SortedCases
from meta_eval.lanes.production.query_log.duplicates import Candidates
from meta_eval.lanes.production.query_log.judging import Engine, Job, judged_by, judged_here
from meta_eval.lanes.production.query_log.keys import Secrets
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE, MALFORMED, counts_of
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval.lanes.production.query_log.record import Binding, Rows, recording, rules_digest
from meta_eval.lanes.production.query_log.spill import SpillWriter, private_folder, spilled

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
    engine: Engine | None = None,
) -> Iterator[ScannedLog]:
    """Scan the log at `path`; `on_rows` is told the rows and the stored bytes read so far.

    The result is the same for any number of processes.

    Args:
        pseudonyms: names for the query ids of the cases that are asked for afterwards. Without them no question is
            written anywhere, and `cases` is refused.
        record: where to keep what was found of each row, for `again.scan_again`; by default nowhere.
        engine: who reads and judges in the place of this machine's processes.

    Raises:
        InputError: the file is not a query log; names the byte offset.
    """
    here, elsewhere = read_rows(path), engine(path) if engine else None
    reader = elsewhere or here
    job = Job(as_of_ms, policy, Secrets.drawn(), hand_back=pseudonyms is not None)
    with ExitStack() as stack:
        folder = cache(lambda: stack.enter_context(private_folder(work_dir)))
        tally = Tally(as_of_ms, folder)
        spill = folder() / "candidates.arrow" if pseudonyms else None
        with ExitStack() as writing:
            writer = writing.enter_context(recording(record)) if record else None
            kept = writing.enter_context(closing(SpillWriter(spill))) if spill else None
            judging = (
                judged_by(elsewhere, job, pseudonyms, folder)
                if elsewhere
                else judged_here(here, job, pseudonyms, processes)
            )
            for rows, candidates in writing.enter_context(closing(judging)):
                tally.add(rows)
                if writer:
                    writer.add(rows)
                if kept and candidates is not None:
                    kept.write(candidates)
                if on_rows:
                    on_rows(tally.row_count, reader.byte_count)
            log, eligible = tally.log(reader.receipt, reader.byte_count)
            if writer:
                writer.finish(
                    Binding(log.receipt, log.byte_count, log.row_count, as_of_ms, policy.digest, rules_digest())
                )
        cases = SortedCases(folder)
        for part in spilled(spill, eligible) if spill else ():
            cases.add(part)
        yield ScannedLog(log, folder() if spill else None, cases)


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
