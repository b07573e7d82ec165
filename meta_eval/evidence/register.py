"""An append-only register: JSON Lines in which every entry holds the digest of the one before it.

Source: the usefulness contract, custody and budget. It knows no lane: an entry is a sequence number, an instant, the
name of an event and a body. Three things hold it together:

- the chain: an entry that is edited, removed from the middle, repeated or moved breaks it, and the first broken
  entry is named;
- the head, a small file beside the register with the last number and digest, so that entries cut off the end are
  named as well. It may lag behind by what a killed writer had no time to note, and never runs ahead;
- the turn: a writer holds a lock while it reads, decides and appends, so two writers at once keep one chain, and a
  decision is always made on everything that came before it.

A line without its line end was never acknowledged to anybody: the next writer sets it aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from meta_eval.evidence.canonical import canonical_bytes, digest, parse_document
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.errors import InputError, MetaEvalError, VerificationError
from meta_eval.evidence.files import private_folder

Entry = dict[str, Any]
Events = Sequence[tuple[str, Mapping[str, Any]]]
Decide = Callable[[Sequence[Entry]], Events]
KEYS = frozenset({"seq", "at", "event", "body", "previous", "digest"})


def genesis(name: str) -> str:
    """What the first entry follows: the register's name, so that no chain can be passed off as another's."""
    return digest({"register": name})


def sealed_entry(*, seq: int, at_ms: int, event: str, body: Mapping[str, Any], previous: str) -> Entry:
    """One entry with its digest."""
    entry: Entry = {
        "seq": seq,
        "at": written_instant(at_ms),
        "event": event,
        "body": dict(body),
        "previous": previous,
    }
    return {**entry, "digest": digest(entry)}


def checked(entries: Sequence[object], name: str, *, source: str = "register") -> list[Entry]:
    """The entries of a register, after the whole chain has been checked.

    Raises:
        VerificationError: names the first broken entry and what is wrong with it.
    """
    previous, known = genesis(name), set[str]()
    result: list[Entry] = []
    for number, entry in enumerate(entries, start=1):
        rule = _rule_broken(entry, number, previous, known)
        if rule is not None or not isinstance(entry, dict):
            raise VerificationError(source, rule or "not an entry", f"/{number}")
        previous = entry["digest"]
        known.add(previous)
        result.append(entry)
    return result


def _rule_broken(entry: object, number: int, previous: str, known: set[str]) -> str | None:
    if not isinstance(entry, dict) or entry.keys() != KEYS:
        return "not an entry of a register"
    at = instant_ms(entry["at"])
    if at is None or written_instant(at) != entry["at"] or not isinstance(entry["event"], str):
        return "not an entry of a register"
    if not isinstance(entry["body"], dict) or type(entry["seq"]) is not int:
        return "not an entry of a register"
    try:
        actual = digest({key: value for key, value in entry.items() if key != "digest"})
    except ValueError:
        return "not a value of canonical JSON"
    if actual != entry["digest"]:
        return "an edited entry: its digest is not that of its contents"
    if entry["digest"] in known:
        return "a duplicated entry"
    if entry["seq"] > number:
        return "an entry before this one was removed or moved"
    if entry["seq"] < number:
        return "an entry was inserted or moved before this one"
    if entry["previous"] != previous:
        return "does not follow the entry before it"
    return None


class Register:
    """One register in one file.

    Args:
        path: the JSON Lines file; the lock and the head lie beside it.
        name: what the register is of; it is bound into the first entry.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._head = path.with_name(f"{path.name}.head")

    def entries(self) -> list[Entry]:
        """Every entry, verified; none where nothing was ever written.

        Raises:
            VerificationError: the chain or its end is broken.
            InputError: the file cannot be read.
        """
        if not self.path.parent.exists():
            return []  # looking makes nothing
        with self._turn(shared=True):
            return self._read()[0]

    def append(self, event: str, body: Mapping[str, Any], *, at_ms: int) -> Entry:
        """Append one entry and return it once it is on the disk."""
        return self.transact(lambda _: [(event, body)], at_ms=at_ms)[0]

    def transact(self, decide: Decide, *, at_ms: int) -> list[Entry]:
        """Append what `decide` answers to the verified entries so far, with nobody writing in between.

        Whatever `decide` raises leaves the register as it was.
        """
        with self._turn(shared=False):
            before, whole_bytes = self._read()
            made: list[Entry] = []
            for event, body in decide(before):
                last = (made or before)[-1:]
                entry = sealed_entry(
                    seq=len(before) + len(made) + 1,
                    at_ms=at_ms,
                    event=event,
                    body=body,
                    previous=last[0]["digest"] if last else genesis(self.name),
                )
                made.append(entry)
            if made:
                self._write(made, whole_bytes)
            return made

    def _read(self) -> tuple[list[Entry], int]:
        """The verified entries and the number of bytes that they take."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise InputError(str(self.path), "a register that cannot be read") from error
        whole_bytes = data.rfind(b"\n") + 1
        lines = data[:whole_bytes].splitlines()
        entries = checked([_parsed(line) for line in lines], self.name, source=str(self.path))
        self._check_end(entries)
        return entries, whole_bytes

    def _check_end(self, entries: Sequence[Entry]) -> None:
        if not self._head.exists():
            if entries:  # the head is there before the first entry is
                raise VerificationError(str(self.path), "the register's head is missing", f"/{len(entries)}")
            return
        head = _parsed(self._head.read_bytes())
        if not isinstance(head, dict) or type(head.get("seq")) is not int or head["seq"] < 0:
            raise VerificationError(str(self._head), "not the head of a register")
        if head["seq"] > len(entries):
            raise VerificationError(str(self.path), "an entry was removed from the end", f"/{len(entries) + 1}")
        named = entries[head["seq"] - 1]["digest"] if head["seq"] else genesis(self.name)
        if named != head.get("digest"):
            raise VerificationError(str(self.path), "not the entry that the head names", f"/{head['seq']}")

    def _write(self, made: Sequence[Entry], whole_bytes: int) -> None:
        try:
            if not self._head.exists():
                self._note_head(0, genesis(self.name))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.truncate(whole_bytes)  # what a killed writer left behind without a line end
                file.seek(whole_bytes)
                file.write(b"".join(canonical_bytes(entry) + b"\n" for entry in made))
                file.flush()
                os.fsync(file.fileno())
            self._note_head(made[-1]["seq"], made[-1]["digest"])
        except OSError as error:
            raise InputError(str(self.path), "a register that cannot be written") from error

    def _note_head(self, seq: int, entry_digest: str) -> None:
        partial = self._head.with_name(f".{self._head.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(canonical_bytes({"seq": seq, "digest": entry_digest}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._head)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _turn(self, *, shared: bool) -> Iterator[None]:
        private_folder(self.path.parent)
        descriptor = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _parsed(line: bytes) -> object:
    try:
        return parse_document(line, source="register")
    except MetaEvalError:
        return None  # the chain's check names the entry
