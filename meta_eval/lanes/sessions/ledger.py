"""The two ledgers of a metrics folder, read once and reduced to what a rubric may use.

The session process rubric. `sessions.jsonl` holds the records, `events.jsonl` the telemetry. A rubric that reads
rotated telemetry also takes `_archive/events-FROM_TO.jsonl` and the older ring `events.jsonl.1`, `.2` and so on. Events
are taken in the order archives, ring from the oldest, current file; an event whose own `id` was seen is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from meta_eval.lanes.sessions.fields import is_text
from meta_eval.lanes.sessions.instants import instant_ms
from meta_eval.lanes.sessions.jsonl import Reading, read_objects
from meta_eval.lanes.sessions.lines import SessionLine, session_line
from meta_eval.lanes.sessions.signals import Stream, signal_of

SESSIONS, EVENTS, ARCHIVE = "sessions.jsonl", "events.jsonl", "_archive"
_ARCHIVED = re.compile(r"events-[0-9]{8}T[0-9]{6}Z_[0-9]{8}T[0-9]{6}Z\.jsonl")
_RING = re.compile(r"events\.jsonl\.([1-9][0-9]{0,5})")
_STARTED, _ROTATED = "orchestrator.session.started", "orchestrator.events.rotated"


@dataclass
class Ledger:
    """Both ledgers, as one rubric sees them."""

    sessions: Reading
    lines: list[SessionLine]
    events: Stream
    dropped_stubs: int = 0
    last_by_id: dict[str, SessionLine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.last_by_id = {line.session_id: line for line in self.lines if line.session_id is not None}


def read_ledger(folder: Path, *, rotated: bool, drop_stubs: bool) -> Ledger:
    """Read a metrics folder.

    Args:
        rotated: whether archives and ring files belong to the stream.
        drop_stubs: whether a backfilled stub gives way to a session's own record.
    """
    reading = Reading()
    records = list(_records(folder / SESSIONS, reading))
    if reading.state != "present":
        records = []
    starts = {text for _, text in records if text is not None}
    windows = {line.session_id: line.window for line, _ in records if line.session_id is not None}
    events, hosts = _read_events(folder, _Collector(starts, windows), rotated=rotated)
    lines = [
        replace(line, host_class=hosts[text]) if text in hosts and text is not None else line for line, text in records
    ]
    kept = _without_stubs(lines) if drop_stubs else lines
    return Ledger(reading, kept, events, dropped_stubs=len(lines) - len(kept))


def _records(path: Path, reading: Reading) -> Iterator[tuple[SessionLine, str | None]]:
    for number, record in read_objects(path, reading):
        started = record.get("started_at")
        yield session_line(number, record), started if is_text(started) else None


def _without_stubs(lines: list[SessionLine]) -> list[SessionLine]:
    """A stub that a closing program filled in gives way where its session has a record of its own."""
    ids = {line.session_id for line in lines if not line.is_stub and line.session_id is not None}
    raw_ids = {line.raw_id for line in lines if not line.is_stub and line.raw_id is not None}
    return [line for line in lines if not line.is_stub or (line.session_id not in ids and line.raw_id not in raw_ids)]


@dataclass
class _Collector:
    """What one pass over the events gathers."""

    starts: set[str]
    windows: dict[str, tuple[int, int] | None]
    stream: Stream = field(default_factory=Stream)
    hosts: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    tied: set[tuple[str, str]] = field(default_factory=set)
    archives_named: set[str] = field(default_factory=set)

    def take(self, event: Mapping[str, Any], line: int, file: int) -> None:
        event_id = event.get("id")
        if isinstance(event_id, str):
            if event_id in self.seen:
                self.stream.duplicates += 1
                return
            self.seen.add(event_id)
        if (signal := signal_of(event, line, file)) is not None:
            self.stream.signals.append(signal)
        if "semantic_session_id" in event:
            self._tie(event)
        if event.get("event") == _STARTED:
            self._note_host(event)
        elif event.get("event") == _ROTATED and is_text(event.get("archived_as")):
            self.archives_named.add(event["archived_as"].replace("\\", "/").rsplit("/", 1)[-1])

    def _tie(self, event: Mapping[str, Any]) -> None:
        raw_id, session_id = event.get("session_id"), event["semantic_session_id"]
        self._place(session_id, instant_ms(event.get("timestamp")))
        if is_text(raw_id) and is_text(session_id) and (raw_id, session_id) not in self.tied:
            self.tied.add((raw_id, session_id))
            self.stream.ties.setdefault(raw_id, []).append(session_id)

    def _place(self, session_id: object, at_ms: int | None) -> None:
        """Count an event that names a session we do not have, or an instant outside that session's window."""
        if not isinstance(session_id, str) or session_id not in self.windows:
            self.stream.orphans += 1
        elif (window := self.windows[session_id]) is not None and at_ms is not None:
            self.stream.strays += not window[0] <= at_ms <= window[1]

    def _note_host(self, event: Mapping[str, Any]) -> None:
        started: object = event.get("timestamp")
        host_class: object = event.get("host_class")
        if isinstance(started, str) and started in self.starts and isinstance(host_class, str) and host_class:
            self.hosts.setdefault(started, host_class)


def _read_events(folder: Path, collector: _Collector, *, rotated: bool) -> tuple[Stream, dict[str, str]]:
    files, holes = event_files(folder) if rotated else ([], 0)
    stream = collector.stream
    readings = []
    for file, path in [*enumerate(files, start=1), (0, folder / EVENTS)]:
        reading, before = Reading(), len(stream.signals)
        for number, event in read_objects(path, reading):
            collector.take(event, number, file)
        if reading.state == "unreadable":
            del stream.signals[before:]
            stream.fault = reading.fault
        readings.append(reading)
    present = {path.name for path in files}
    stream.gaps = holes + len(collector.archives_named - present) if rotated else 0
    stream.objects = sum(reading.objects for reading in readings if reading.state == "present")
    stream.malformed = sum(reading.malformed for reading in readings)
    stream.torn = any(reading.torn for reading in readings)
    stream.state = _state([reading.state for reading in readings], stream.objects)
    if not stream.is_measurable:
        stream.signals, stream.ties = [], {}
    for place, signal in enumerate(stream.signals):
        # A raw id that no event ties to a session names nobody, and may be as long as its line.
        if signal.raw_id is not None and signal.raw_id not in stream.ties:
            stream.signals[place] = replace(signal, raw_id=None)
    return stream, collector.hosts


def _state(states: list[str], objects: int) -> str:
    # Half a stream is no stream: one unreadable file leaves every count of zero in doubt.
    if "unreadable" in states:
        return "unreadable"
    if objects:
        return "present"
    return "empty" if "present" in states else "absent"


def event_files(folder: Path) -> tuple[list[Path], int]:
    """Archives by name, then the ring from its oldest file, and how many files the ring lacks."""
    archive = folder / ARCHIVE
    archived = sorted(path for path in archive.glob("events-*.jsonl") if _ARCHIVED.fullmatch(path.name))
    ring = {
        int(match.group(1)): path
        for path in folder.glob(f"{EVENTS}.*")
        if (match := _RING.fullmatch(path.name)) is not None
    }
    newest_first = sorted(ring)
    holes = max(ring) - len(ring) if ring else 0
    return [*archived, *(ring[number] for number in reversed(newest_first))], holes
