"""The journal `eval.jsonl`: append-only, and the only source of truth; everything else is a view of it.

The record contract. Writers take turns by a lock on the file itself, write whole lines at once and flush them to the
disk. A last line that a killed writer left torn is reported and passed over; the next append starts on a fresh line.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import InputError, OverwriteError
from meta_eval.evidence.files import private_folder
from meta_eval.lanes.sessions.fields import shown
from meta_eval.lanes.sessions.jsonl import Reading, read_objects
from meta_eval.lanes.sessions.record import Record, RecordError, checked, normalised

NAME = "eval.jsonl"


@dataclass
class Journal:
    """What a journal holds."""

    records: list[Record] = field(default_factory=list)
    malformed: int = 0
    refused: int = 0  # objects that the record contract does not take
    torn: bool = False

    def runs(self, run_id: str) -> list[Record]:
        """Every record of a run id; scored under two versions of the rubric, one id has two."""
        return [record for record in self.records if record["run_id"] == run_id]


def append(path: Path, records: Iterable[Record], *, refuse_other: bool = False) -> int:
    """Append records, all or none of them, and return how many were written.

    Args:
        refuse_other: look for each record's run id and rubric first: the same record again is no news and is not
            written, and another one is refused.

    Raises:
        RecordError: the contract refuses one of them.
        OverwriteError: `refuse_other`, and the journal holds another record of a run id and rubric.
        InputError: the journal cannot be written.
    """
    given = [checked(record) for record in records]
    private_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise InputError(str(path), "cannot be written", next_step="check the file and its folder") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        fresh = _news(path, given) if refuse_other else given
        _write(descriptor, fresh)
    except OSError as error:
        raise InputError(str(path), "cannot be written", next_step="check the disk") from error
    finally:
        os.close(descriptor)
    return len(fresh)


def _news(path: Path, records: Sequence[Record]) -> list[Record]:
    wanted = {record["run_id"] for record in records}
    known = {
        (each["run_id"], each["rubric_version"]): _canonical(each)
        for each in read_journal(path).records
        if each["run_id"] in wanted
    }
    fresh = []
    for record in records:
        held = known.get((record["run_id"], record["rubric_version"]))
        if held is None:
            fresh.append(record)
        elif held != canonical_bytes(record):
            raise OverwriteError(
                f"{path}: holds another record of {shown(record['run_id'])!r} under {record['rubric_version']}; "
                "records are never replaced, so choose another --timestamp"
            )
    return fresh


def _canonical(record: Record) -> bytes:
    try:
        return canonical_bytes(record)
    except ValueError:  # another writer's, with a number that canonical JSON cannot hold: equal to none of ours
        return b""


def _write(descriptor: int, records: Sequence[Record]) -> None:
    if not records:
        return
    data = b"".join(canonical_bytes(record) + b"\n" for record in records)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def read_journal(path: Path) -> Journal:
    """Every record of a journal, in the order of writing. A journal that is not there holds none.

    Raises:
        InputError: it is there and cannot be read.
    """
    journal, reading = Journal(), Reading()
    for _, value in read_objects(path, reading):
        try:
            journal.records.append(checked(normalised(value)))
        except RecordError:
            journal.refused += 1
    if reading.state == "unreadable":
        raise InputError(str(path), reading.fault, next_step="restore the journal from where it is kept")
    journal.malformed, journal.torn = reading.malformed, reading.torn
    return journal
