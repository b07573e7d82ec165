"""Writing evidence to disk: private, atomic, and never over something else.

Source: the commands section of the production contract. Files are 0600 in folders that are 0700. A write goes to
a temporary file beside its target, is flushed to the disk, and takes its name only when it is whole; the folder is
flushed after it. A file of the same name with other contents is never overwritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import InputError, OverwriteError

PARTIAL_SUFFIX = ".partial"
_LOCKED = "locked"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter, with its parents, and return it."""
    try:
        for folder in [*reversed(path.parents), path]:
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError
    except OSError as error:
        raise InputError(str(path), "cannot be made as a folder", next_step="choose another --output") from error
    return path


def write_document(path: Path, value: Any) -> Path:
    """Write a JSON value in canonical form, with a line end. Raises OverwriteError, InputError."""
    return write_bytes(path, canonical_bytes(value) + b"\n")


def write_bytes(path: Path, data: bytes) -> Path:
    """Write bytes under a name that is free or already holds the same bytes.

    Raises:
        OverwriteError: the name holds other contents.
        InputError: the folder cannot be written.
    """
    with replacing(path) as file:
        file.write(data)
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path` when the block ends well, and vanishes when it does not.

    What a killed writer of that name left goes first.
    """
    private_folder(path.parent)
    partial = path.with_name(f".{path.name}.{_LOCKED}-{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        _remove_dead(path.parent.glob(f".{glob.escape(path.name)}.*{PARTIAL_SUFFIX}"))
        with os.fdopen(_locked(partial), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _take_name(partial, path)
    except OSError as error:
        raise InputError(str(path), "cannot be written", next_step="check the folder and the disk") from error
    finally:
        partial.unlink(missing_ok=True)


def _locked(partial: Path) -> int:
    """A new file that is locked for as long as it is open, by which a living writer is told from a killed one.

    A process id would not do: in a container that is started again the next process has the killed one's.
    """
    while True:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with contextlib.suppress(OSError):  # where nothing can be locked, nothing is taken for dead either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # somebody cleaned up before it was locked


def _take_name(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)  # unlike rename, fails where the name is taken, even by a rival that came first
    except FileExistsError:
        if path.is_symlink() or partial.read_bytes() != path.read_bytes():
            raise OverwriteError(
                f"{path}: holds other contents, and evidence is never overwritten; "
                "choose another --output or move the old file away"
            ) from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_partials(folder: Path) -> int:
    """Remove what killed writers left in a folder; returns how many files. A living writer's are left alone."""
    return _remove_dead(folder.glob(f".*{PARTIAL_SUFFIX}"))


def _remove_dead(partials: Iterable[Path]) -> int:
    removed = 0
    for partial in partials:
        writer = partial.name.rsplit(".", 2)[1].split("-")[0]
        if writer == _LOCKED:
            removed += _removed_unless_locked(partial)
        elif not writer.isdigit() or not _alive(int(writer)):
            partial.unlink(missing_ok=True)
            removed += 1
    return removed


def _removed_unless_locked(partial: Path) -> bool:
    with contextlib.suppress(OSError):  # a living writer holds it, or it went meanwhile
        descriptor = os.open(partial, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()
        finally:
            os.close(descriptor)
        return True
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no such process, or a number that no process can have
        return False
    except PermissionError:
        return True
    return True
