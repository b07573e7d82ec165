"""A private folder for one scan, and what a scan keeps in it: the candidates' cases, and bytes dealt into shares.

Source: the house's rule that questions stay in private folders. The folder is 0700, is removed however the scan
ends, and where the process was killed the next scan in the same place removes it: a lock on the folder tells
one that is in use from one that was left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from meta_eval.evidence.canonical import unreadable
from meta_eval.evidence.errors import MetaEvalError

PREFIX = "meta-eval-query-log-"
_SPILL_SCHEMA = pa.schema([pa.field("case", pa.large_string())])


@contextmanager
def private_folder(work_dir: Path | None) -> Iterator[Path]:
    """A new 0700 folder below `work_dir` (the system's place for temporary files by default).

    Raises:
        InputError: `work_dir` is not there or cannot be written.
    """
    parent = Path(tempfile.gettempdir()) if work_dir is None else work_dir
    try:
        # Held while folders are made and swept, so that a folder just made and not yet locked is not swept.
        with _locked(parent):
            _sweep(parent)
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            handle = os.open(folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise unreadable(parent, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # Another user's folder, one in use, or one that went meanwhile: left alone.
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


class SpillWriter:
    """Writes candidates' cases, in row order, to one file of the private folder."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._file, _SPILL_SCHEMA, options=options)

    def write(self, cases: pa.Array) -> None:
        """Add cases (large strings).

        Raises:
            MetaEvalError: the private folder has no room or cannot be written.
        """
        with as_our_own():
            self._writer.write_batch(pa.RecordBatch.from_arrays([cases], schema=_SPILL_SCHEMA))

    def close(self) -> None:
        """Finish the file; raises as `write` does."""
        with as_our_own():
            self._writer.close()
            self._file.close()


class Shares:
    """Bytes dealt into files of the private folder, and read back a file at a time.

    Args:
        folder: gives the private folder; called once there is something to deal.
    """

    def __init__(self, folder: Callable[[], Path], name: str, count: int) -> None:
        self._folder, self._name, self._count = folder, name, count
        self._paths: list[Path] = []

    @property
    def are_empty(self) -> bool:
        """Whether nothing was dealt yet."""
        return not self._paths

    def deal(self, data: memoryview, ends: Iterable[int]) -> None:
        """Add to each share in its turn: the bytes of `data` up to its end and behind the one before.

        Raises:
            MetaEvalError: the private folder has no room or cannot be written.
        """
        self._paths = self._paths or [self._folder() / f"{self._name}-{number:02x}" for number in range(self._count)]
        start = 0
        with as_our_own():
            for path, end in zip(self._paths, ends, strict=True):
                if end > start:
                    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                        file.write(data[start:end])
                start = end

    def __iter__(self) -> Iterator[bytes]:
        """What each share holds, in order; a share's file goes as it is read."""
        for path in self._paths:
            with as_our_own():
                data = path.read_bytes() if path.exists() else b""
                path.unlink(missing_ok=True)
            yield data


@contextmanager
def as_our_own() -> Iterator[None]:
    """Turn what goes wrong with a file of the private folder into an error that quotes nothing of it."""
    try:
        yield
    except (OSError, pa.ArrowException):
        raise MetaEvalError("the private folder of the scan cannot be written; make room or name another") from None


def spilled(path: Path, wanted: np.ndarray) -> Iterator[pa.Array]:
    """The cases of the candidates for which `wanted` is true, in row order."""
    first = 0
    with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield batch.column("case").filter(pa.array(wanted[first : first + batch.num_rows]))
            first += batch.num_rows
