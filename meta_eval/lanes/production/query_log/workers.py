"""Batches judged by several processes, and handed back in their order.

Source: the house's rule that a result depends on no number of processes. This process reads, and judges what the
others have no room for. The text of a batch goes to a worker through a nameless file that both have mapped, since a
pipe would copy it three times; nothing of it is left behind, however either process ends.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, reduction, resource_tracker
from multiprocessing.connection import Connection
from typing import IO, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from meta_eval.evidence.errors import MetaEvalError

Result = TypeVar("Result")
_SLOT = 8 << 20
"""Bytes of the shared file for one batch. A larger one is judged here."""
_SLOTS = 3
"""Batches that one worker has: the one under way, and as many as it can judge while this process judges one."""
_MOST_WAITING = 16


def judged_in_order(
    judge: Callable[[pa.RecordBatch], Result], batches: Iterable[pa.RecordBatch], processes: int
) -> Generator[Result, None, None]:
    """Each batch (one column of binary rows) judged; with several processes a few batches ahead.

    Raises:
        MetaEvalError: a worker process ended before its work was done.
    """
    with ExitStack() as stack:
        workers = [Worker(judge) for _ in range(processes - 1)]
        for worker in workers:
            stack.callback(worker.close)
        # In the order of the batches: a result, or the worker that has it.
        waiting: deque[tuple[Worker[Result] | None, Any]] = deque()
        for batch in batches:
            idle = next((worker for worker in workers if worker.takes(batch)), None)
            waiting.append((idle, None if idle else judge(batch)))
            while waiting and (_is_done(waiting[0][0]) or len(waiting) > _MOST_WAITING):
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())


def _is_done(worker: Worker[Result] | None) -> bool:
    return worker is None or worker.is_done()


def _result(worker: Worker[Result] | None, result: Any) -> Any:
    return result if worker is None else worker.result()


class Worker(Generic[Result]):
    """A process of its own that judges batches one after the other."""

    def __init__(self, judge: Callable[[pa.RecordBatch], Result]) -> None:
        self._given = self._got = 0
        with _nameless_file() as file:
            file.truncate(_SLOT * _SLOTS)
            self._memory = mmap.mmap(file.fileno(), _SLOT * _SLOTS)
            context = get_context("spawn")
            self._end, other = context.Pipe()
            shared = _Shared(file.fileno())
            self._process = context.Process(target=work, args=(judge, shared, other), daemon=True)
            with _deaf_to_ctrl_c():
                self._process.start()
            other.close()

    def takes(self, batch: pa.RecordBatch) -> bool:
        """Give the worker a batch, unless it has enough or the batch does not fit."""
        rows = batch.column(0)
        if self._given - self._got == _SLOTS or rows.null_count or rows.nbytes > _SLOT or rows.offset:
            return False
        _, offsets, text = rows.buffers()
        slot = (self._given % _SLOTS) * _SLOT
        edges = np.frombuffer(offsets, dtype=np.int32)[: len(rows) + 1]
        at = slot + edges.nbytes
        self._memory[slot:at] = edges.tobytes()
        end = int(edges[-1])
        if text is not None and end:
            self._memory[at : at + end] = memoryview(text)[:end]
        try:
            self._end.send((slot, len(rows), end))
        except OSError:
            raise _ended() from None
        self._given += 1
        return True

    def is_done(self) -> bool:
        """Whether the oldest batch given is judged, or never will be."""
        return self._end.poll()

    def result(self) -> Result:
        """Of the oldest batch given, waited for."""
        try:
            length, told = self._end.recv()
        except (EOFError, OSError):
            raise _ended() from None
        slot = (self._got % _SLOTS) * _SLOT
        self._got += 1
        result: Result = pickle.loads(told or self._memory[slot : slot + length])  # noqa: S301 - our own worker's
        return result

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._end.close()
        self._process.terminate()
        self._process.join()
        self._memory.close()


def _nameless_file() -> IO[bytes]:
    """A file in memory where the system has such, as one on a disk is written there again and again."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("meta-eval"), "w+b")
    return tempfile.TemporaryFile()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started meanwhile never hear Ctrl-C, from their first instruction on.

    It reaches every process of the group, and the one that started a worker ends it. This one hears it afterwards.
    """
    resource_tracker.ensure_running()  # where starting a process starts it too, the signal is let through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Shared:
    """An open file that is handed to a process as it starts."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __reduce__(self) -> Any:
        return _mapped, (reduction.DupFd(self.handle),)


def _mapped(handle: Any) -> mmap.mmap:
    return mmap.mmap(handle.detach(), _SLOT * _SLOTS)


def work(judge: Callable[[pa.RecordBatch], Result], memory: mmap.mmap, end: Connection) -> None:
    """What a worker does until the process that started it closes its end, or is no more."""
    try:
        while True:
            slot, rows, length = end.recv()
            told = pickle.dumps(judge(_batch(memory, slot, rows, length)), protocol=5)
            if len(told) <= _SLOT:
                memory[slot : slot + len(told)] = told
                end.send((len(told), None))
            else:
                end.send((0, told))
    except (EOFError, OSError):
        return


def _batch(memory: mmap.mmap, slot: int, rows: int, length: int) -> pa.RecordBatch:
    whole, at = pa.py_buffer(memory), slot + 4 * (rows + 1)
    buffers = [None, whole.slice(slot, 4 * (rows + 1)), whole.slice(at, length)]
    return pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), rows, buffers)], ["row"])


def _ended() -> MetaEvalError:
    return MetaEvalError("a worker process ended before its work was done; run the command again")
