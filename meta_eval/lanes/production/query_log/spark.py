"""Spark as a second engine: the rows of a log judged by the machines of a cluster, and handed back in their order.

Source: the house's rule that a result depends on no engine, and decision 0042. A file of lines is read by the tasks,
each in a byte range of its own; the file's receipt is made here, from bytes that a task's own digest shows to be those
that it judged. An array or gzip is read here, and its rows are sent out. PySpark is imported when a log is read.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from meta_eval.evidence.canonical import unreadable
from meta_eval.evidence.errors import InputError, MetaEvalError
from meta_eval.lanes.production.query_log.ahead import called_ahead
from meta_eval.lanes.production.query_log.framing import FramingError
from meta_eval.lanes.production.query_log.judging import Found, Job, judged
from meta_eval.lanes.production.query_log.ranges import Lines, Piece, lines_of
from meta_eval.lanes.production.query_log.reading import CHUNK_BYTES, NEXT_STEP, read_rows
from meta_eval.lanes.production.query_log.record import rules_digest
from meta_eval.lanes.production.query_log.spark_session import started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RANGE_BYTES = 16 << 20
SENT_BYTES = 4 << 20
"""About how much of an array's text is sent to one task."""
_MOST_SENT = 8
_ANSWER = "start long, stop long, sha256 binary, told binary, fault string, fault_at long"
"""What a task says of a piece: the bytes that it read and `judged` of them, or the fault that ended it."""
_UNREADABLE, _UNLIKE, _ENDED = "unreadable", "unlike", "ended"
_WHY = {
    _UNREADABLE: "a Spark task cannot read the log; it must lie under the same path on every machine of the cluster",
    _UNLIKE: "a machine of the cluster has other rules; install the same meta_eval, libraries and Python on each",
    _ENDED: "a Spark task ended before its work was done; see that every machine has meta_eval and enough memory, and "
    "run the command again",
}
_CHANGED = "not the bytes that the tasks read: it changed meanwhile, or is another file on another machine"

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Spark:
    """How to reach Spark, and how a log is cut.

    Args:
        master: Spark's master, such as `local[*]` or `spark://HOST:7077`.
        session: one that runs already, whose owner has configured it. By default each scan starts one and ends it.
    """

    master: str = "local[*]"
    range_bytes: int = RANGE_BYTES
    sent_bytes: int = SENT_BYTES
    session: SparkSession | None = None

    def __call__(self, path: Path) -> SparkReading:
        """A reading of the log at `path`."""
        return SparkReading(path, self)

    def opened(self, folder: Callable[[], Path]) -> AbstractContextManager[SparkSession]:
        """The session to use; Spark's own files go to the private folder."""
        return nullcontext(self.session) if self.session else started(self.master, folder())


class SparkReading:
    """One reading of a log; `receipt` and `byte_count` hold once `judged` has ended."""

    def __init__(self, path: Path, spark: Spark) -> None:
        self.receipt = ""
        self.byte_count = 0
        self._path, self._spark = path, spark

    def judged(self, job: Job, folder: Callable[[], Path]) -> Generator[Found, None, None]:
        """What `judging.judged` gives for each batch, in order.

        Raises:
            InputError: the file is not a query log; names the byte offset. Or it changed while it was read.
            MetaEvalError: Spark is not there or did not start, or a task ended before its work was done.
        """
        try:
            lines = lines_of(self._path)
        except OSError as error:
            raise unreadable(self._path, error) from error
        return self._sent(job, folder) if lines is None else self._in_ranges(lines, job, folder)

    def _in_ranges(self, lines: Lines, job: Job, folder: Callable[[], Path]) -> Generator[Found, None, None]:
        length = self._spark.range_bytes
        task = _range_task(self._path.absolute(), lines, length, job, rules_digest())
        with ExitStack() as stack:
            session = stack.enter_context(self._spark.opened(folder))
            calls = (
                partial(_answers, partial(session.range, number, number + 1, 1, 1), task)
                for number in range(lines.ranges(length))
            )
            file = stack.enter_context(self._path.open("rb"))
            receipt = hashlib.sha256(file.read(lines.first))
            hashing = stack.enter_context(ThreadPoolExecutor(1))
            same: list[Future[bool]] = []
            ahead = session.sparkContext.defaultParallelism + 2
            for answer in chain.from_iterable(stack.enter_context(closing(called_ahead(calls, ahead)))):
                result = self._result(answer)
                same.append(hashing.submit(_is_same, file, answer, receipt))
                self.byte_count = answer["stop"]
                yield result
            if not all(future.result() for future in same) or file.read(1):
                raise InputError(str(self._path), _CHANGED, next_step="run the command again")
        self.receipt = receipt.hexdigest()

    def _sent(self, job: Job, folder: Callable[[], Path]) -> Generator[Found, None, None]:
        most = self._spark.sent_bytes
        reader = read_rows(self._path, batch_bytes=most, chunk_bytes=min(most, CHUNK_BYTES))
        batches = iter(reader)
        # What is no log is told at once, and not after Spark has started.
        for first in batches:
            task = _batch_task(job, rules_digest())
            with ExitStack() as stack:
                session = stack.enter_context(self._spark.opened(folder))
                calls = (partial(_answers, partial(_frame, session, batch), task) for batch in chain([first], batches))
                ahead = min(session.sparkContext.defaultParallelism + 2, _MOST_SENT)
                for answer in chain.from_iterable(stack.enter_context(closing(called_ahead(calls, ahead)))):
                    self.byte_count = reader.byte_count
                    yield self._result(answer)
        self.receipt, self.byte_count = reader.receipt, reader.byte_count

    def _result(self, answer: dict[str, Any]) -> Found:
        if answer["fault"] is None:
            result: Found = pickle.loads(answer["told"])  # noqa: S301 - our own task's
            return result
        if answer["fault_at"] is None:
            raise MetaEvalError(_WHY[answer["fault"]])
        raise InputError(str(self._path), answer["fault"], offset=answer["fault_at"], next_step=NEXT_STEP)


# --- this side --------------------------------------------------------------------------------------------------


def _answers(frame: Callable[[], DataFrame], task: Callable[..., Any]) -> Answers:
    """Run one task. What Spark says of one that failed may hold anything, and is not passed on."""
    try:
        answers: Answers = frame().mapInArrow(task, _ANSWER).toArrow().to_pylist()
    except Exception:  # Py4J, Spark and the socket between have exceptions of their own
        raise MetaEvalError(_WHY[_ENDED]) from None
    return answers


def _frame(session: SparkSession, batch: pa.RecordBatch) -> DataFrame:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return session.createDataFrame(pa.table({"rows": pa.array([sink.getvalue().to_pybytes()], pa.binary())}))


def _is_same(file: Any, answer: dict[str, Any], receipt: Any) -> bool:
    """Read a piece and add it to the receipt; whether it is what the task read."""
    if file.tell() != answer["start"]:
        return False
    sha, left = hashlib.sha256(), answer["stop"] - answer["start"]
    while left and (chunk := file.read(min(left, 1 << 20))):
        receipt.update(chunk)
        sha.update(chunk)
        left -= len(chunk)
    return not left and sha.digest() == answer["sha256"]


# --- the tasks' side --------------------------------------------------------------------------------------------


def _range_task(path: Path, lines: Lines, length: int, job: Job, rules: str) -> Callable[..., Any]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from _told(lines.read(path, number, length), job, rules)

    return task


def _batch_task(job: Job, rules: str) -> Callable[..., Any]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("rows"):
                with pa.ipc.open_stream(text.as_buffer()) as stream:
                    yield from _told((Piece(rows, 0, 0, b"") for rows in stream), job, rules)

    return task


def _told(pieces: Iterator[Piece], job: Job, rules: str) -> Iterator[pa.RecordBatch]:
    """Judge the pieces. No exception leaves a task, since Spark would write down what it says."""
    try:
        if rules != rules_digest():
            yield _answer(fault=_UNLIKE)
            return
        for piece in pieces:
            told = pickle.dumps(judged(job, piece.rows), protocol=5)
            yield _answer(start=piece.start, stop=piece.stop, sha256=piece.sha256, told=told)
    except FramingError as error:
        yield _answer(fault=error.rule, fault_at=error.offset)
    except OSError:
        yield _answer(fault=_UNREADABLE)
    except Exception:  # whatever it is, it may quote the log
        yield _answer(fault=_ENDED)


_TYPES = {"long": pa.int64(), "binary": pa.binary(), "string": pa.string()}


def _answer(**values: Any) -> pa.RecordBatch:
    fields = (field.split() for field in _ANSWER.split(", "))
    return pa.RecordBatch.from_pydict({name: pa.array([values.get(name)], _TYPES[kind]) for name, kind in fields})
