"""What is found of each batch of rows, and who finds it: this machine's processes, or another engine.

Source: the house's rule that a result depends on no engine and no number of processes. Whoever judges hands back the
same, in the order of the rows. The round's key stays on this machine: an engine elsewhere hands back questions under
their query ids, and they get their pseudonyms here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.cases import Pseudonyms, written
from meta_eval.lanes.production.query_log.keys import NO_KEYS, Secrets, keys_of
from meta_eval.lanes.production.query_log.record import Rows
from meta_eval.lanes.production.query_log.rows import classify
from meta_eval.lanes.production.query_log.workers import judged_in_order


class Job(NamedTuple):
    """How a batch is judged."""

    as_of_ms: int
    policy: Policy
    secrets: Secrets | None
    """Under which rows are compared with one another; None where they are not."""
    hand_back: bool
    """Whether the candidates themselves are asked for, beside what was found of them."""


Found = tuple[Rows, pa.RecordBatch | None]
"""What was found of each row of a batch, and the candidates among them (query_id, question) if they are asked for."""
Judging = Generator[tuple[Rows, pa.Array | None], None, None]
"""What was found batch by batch, and the candidates' cases as `cases.written` gives them."""


class Reading(Protocol):
    """One reading of a log by an engine. `receipt` and `byte_count` hold once `judged` has ended."""

    receipt: str
    byte_count: int

    def judged(self, job: Job, folder: Callable[[], Path]) -> Generator[Found, None, None]:
        """What `judged` finds of every batch, in order; `folder` gives the scan's private folder."""


Engine = Callable[[Path], Reading]


def judged(job: Job, batch: pa.RecordBatch) -> Found:
    """Judge the rows of a batch; small enough to send between processes."""
    classified = classify(
        batch,
        as_of_ms=job.as_of_ms,
        policy=job.policy,
        compared=job.secrets is not None,
        questions=job.hand_back,
    )
    query_ids = classified.column("query_id").drop_null()
    id_keys = question_keys = NO_KEYS
    if job.secrets:
        id_keys = keys_of(query_ids, job.secrets)
        question_keys = keys_of(classified.column("normal_question").drop_null(), job.secrets)
    rows = Rows(
        outcomes=classified.column("outcome").to_numpy().astype(np.uint8),
        asked_at_ms=classified.column("asked_at_ms").fill_null(0).to_numpy(),
        id_keys=id_keys,
        question_keys=question_keys,
    )
    if not job.hand_back or not len(query_ids):
        return rows, None
    questions = classified.column("question").drop_null()
    return rows, pa.RecordBatch.from_arrays([query_ids, questions], ["query_id", "question"])


def judged_here(batches: Iterable[pa.RecordBatch], job: Job, pseudonyms: Pseudonyms | None, processes: int) -> Judging:
    """Batches judged by processes of this machine, which write the cases too."""
    return judged_in_order(partial(_judged_and_written, job, pseudonyms), batches, processes)


def judged_by(reading: Reading, job: Job, pseudonyms: Pseudonyms | None, folder: Callable[[], Path]) -> Judging:
    """A log read and judged by another engine."""
    with closing(reading.judged(job, folder)) as judging:
        for found in judging:
            yield _cases_of(found, pseudonyms)


def _judged_and_written(job: Job, pseudonyms: Pseudonyms | None, batch: pa.RecordBatch) -> tuple[Rows, pa.Array | None]:
    return _cases_of(judged(job, batch), pseudonyms)


def _cases_of(found: Found, pseudonyms: Pseudonyms | None) -> tuple[Rows, pa.Array | None]:
    rows, candidates = found
    if candidates is None or pseudonyms is None:
        return rows, None
    return rows, written(candidates.column("query_id"), candidates.column("question"), pseudonyms)
