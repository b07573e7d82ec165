"""What one reading of a log found of each row, kept so that the next reading need judge only the rows it hands on.

Source: the house's rule that questions stay in private folders. A record holds no question, id or contact: of each row
the outcome that the row alone decides and its instant, and of each candidate two keys (see `keys`). It is bound to the
log's receipt, the policy, the rules' own source text and the libraries that they stand on. It decides which rows an
export looks at and never what may leave: `again` judges each of those rows anew from the log itself.
"""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from meta_eval.evidence import canonical
from meta_eval.evidence.files import private_folder, remove_partials, replacing
from meta_eval.lanes.production.policy import Policy
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE

NAME = "query-log.record"
_TYPES = {"outcomes": np.uint8, "asked_at_ms": np.int64, "id_keys": np.uint64, "question_keys": np.uint64}
_SCHEMA = pa.schema([pa.field(name, pa.binary(), nullable=False) for name in _TYPES])
"""A batch of the record has one row: the bytes of each array of some `Rows`."""
_DIGEST = 32
_LENGTH = 8
_LIBRARIES = ("email-validator", "idna", "msgspec", "phonenumbers", "pyarrow", "numpy")


@dataclass(frozen=True)
class Binding:
    """What a record is a record of."""

    receipt: str
    byte_count: int
    row_count: int
    as_of_ms: int
    policy: str
    rules: str


@dataclass(frozen=True)
class Rows:
    """Some rows in order. The keys are those of the candidates among them, two uint64 each."""

    outcomes: np.ndarray
    asked_at_ms: np.ndarray
    """0 of a malformed row."""
    id_keys: np.ndarray
    question_keys: np.ndarray


@cache
def rules_digest() -> str:
    """SHA-256 of all that a row's outcome depends on besides the row, the clock and the policy."""
    package = Path(__file__).parent
    sources = [*package.glob("*.py"), *(package.parents[2] / "evidence").glob("*.py")]
    sha = hashlib.sha256(f"{sys.version} {unicodedata.unidata_version}".encode())
    for name in _LIBRARIES:
        sha.update(f" {name} {version(name)}".encode())
    for source in sorted(sources):
        sha.update(source.read_bytes())
    return sha.hexdigest()


class RecordWriter:
    """Writes a record as the log is read; it takes its name only when it is whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sha, self.closed = file, hashlib.sha256(), False
        self._writer = pa.ipc.new_stream(pa.PythonFile(self, mode="w"), _SCHEMA)

    def write(self, data: Any) -> int:
        """Take bytes: what the stream writes goes through here, to be hashed."""
        self._sha.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def add(self, rows: Rows) -> None:
        """Add rows, in their order."""
        columns = [_bytes_of(getattr(rows, name), kind) for name, kind in _TYPES.items()]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))

    def finish(self, binding: Binding) -> None:
        """Say what the record is of, and seal it against damage."""
        self._writer.close()
        told = canonical.canonical_bytes(asdict(binding))
        self.write(told + len(told).to_bytes(_LENGTH, "big"))
        self._file.write(self._sha.digest())


@contextmanager
def recording(path: Path) -> Iterator[RecordWriter]:
    """A writer of the record at `path`, in place of an older one. Raises InputError where it cannot be written."""
    remove_partials(private_folder(path.parent))
    with replacing(path) as file:
        yield RecordWriter(file)
        path.unlink(missing_ok=True)


class Record:
    """A record that fits. Iterates its rows."""

    def __init__(self, path: Path, binding: Binding) -> None:
        self.binding = binding
        self._path = path

    def __iter__(self) -> Iterator[Rows]:
        """The rows as they were added.

        Raises:
            ValueError: they are not what a writer of ours would have written.
        """
        with self._path.open("rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                parts = zip(batch.columns, _TYPES.values(), strict=True)
                outcomes, asked, *keys = (np.frombuffer(column[0].as_buffer(), kind) for column, kind in parts)
                candidates = np.count_nonzero(outcomes == ELIGIBLE)
                if asked.size != outcomes.size or any(key.size != 2 * candidates for key in keys):
                    raise ValueError("a record whose columns do not fit together")
                yield Rows(outcomes, asked, keys[0].reshape(-1, 2), keys[1].reshape(-1, 2))


def fitting(path: Path, *, byte_count: int, as_of_ms: int, policy: Policy) -> Record | None:
    """The record at `path`, where it is whole, ours, made by these very rules and at no later clock; else None."""
    with suppress(OSError, ValueError, TypeError):
        status = path.stat()
        if status.st_mode & 0o077 == 0 and (told := _told(path, status.st_size)) is not None:
            binding = Binding(**json.loads(told))
            fits = (binding.byte_count, binding.policy, binding.rules) == (byte_count, policy.digest, rules_digest())
            if fits and binding.as_of_ms <= as_of_ms:
                return Record(path, binding)
    return None


def _told(path: Path, size: int) -> bytes | None:
    """What a record says it is of, or None where the file is damaged."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        left = size - _DIGEST
        while left > 0 and (chunk := file.read(min(left, 1 << 20))):
            sha.update(chunk)
            left -= len(chunk)
        if left or file.read() != sha.digest():
            return None
        file.seek(size - _DIGEST - _LENGTH)
        length = int.from_bytes(file.read(_LENGTH), "big")
        file.seek(max(0, size - _DIGEST - _LENGTH - length))
        return file.read(length)


def _bytes_of(values: np.ndarray, kind: type) -> pa.Array:
    data: np.ndarray = np.ascontiguousarray(values, dtype=kind)
    edges = np.array([0, data.nbytes], dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
