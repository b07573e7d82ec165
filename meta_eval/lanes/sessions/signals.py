"""What the rubric keeps of `events.jsonl`: quality gates, guards and loop warnings, and which raw id is whose.

The session process rubric. Gates carry no session id, so only their instant says whose they are. Guards may carry a
raw id; another event that names both the raw id and a session ties the two together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from meta_eval.lanes.sessions.fields import is_text
from meta_eval.lanes.sessions.instants import instant_ms, zoneless_span

GATES = ("orchestrator.quality_gate.passed", "orchestrator.quality_gate.failed")
_GUARDS = {
    "orchestrator.destructive_guard.blocked": "blocked",
    "orchestrator.destructive_guard.warned": "warned",
    "orchestrator.loop.warning": "loop_warning",
}
GUARDS = tuple(_GUARDS.values())
KINDS = ("gate", "full_gate", *GUARDS)


@dataclass(frozen=True, slots=True)  # there are as many as gates and guards in the whole stream
class Signal:
    """One event that a dimension counts."""

    at_ms: int | None
    kind: str  # one of KINDS
    outcome: str | None  # a gate's: "green", "red" or "odd"
    raw_id: str | None
    span: tuple[int, int] | None  # where only the zone is missing: the instants that it may mean
    line: int
    file: int  # 0: events.jsonl; archives and rings are numbered from 1


@dataclass
class Stream:
    """All of the event stream that a rubric may use."""

    state: str = "present"  # or "absent", "empty", "unreadable"
    fault: str = ""
    objects: int = 0
    malformed: int = 0
    torn: bool = False
    duplicates: int = 0
    gaps: int = 0
    orphans: int = 0  # events that name a session which the ledger does not hold
    strays: int = 0  # events that name a session and lie outside its window
    signals: list[Signal] = field(default_factory=list)
    ties: dict[str, list[str]] = field(default_factory=dict)  # raw id -> the sessions it is tied to

    @property
    def is_measurable(self) -> bool:
        return self.state == "present"


def signal_of(event: Mapping[str, Any], line: int, file: int) -> Signal | None:
    """The signal that an event is, or None where no dimension counts it."""
    name = event.get("event")
    if not isinstance(name, str) or (name not in GATES and name not in _GUARDS):
        return None
    written = event.get("timestamp")
    at_ms = instant_ms(written)
    span = zoneless_span(written) if at_ms is None else None
    if name in GATES:
        kind = "full_gate" if event.get("variant") == "full-gate" else "gate"
        # A gate's own session id is not believed: the source says that gates carry none.
        return Signal(at_ms, kind, outcome(event.get("exit_code")), None, span, line, file)
    raw_id = event.get("session_id")
    return Signal(at_ms, _GUARDS[name], None, raw_id if is_text(raw_id) else None, span, line, file)


def outcome(exit_code: object) -> str:
    """Green is the number zero alone; a list or an object says nothing that could be read as an exit code."""
    if isinstance(exit_code, (list, dict)):
        return "odd"
    is_zero = isinstance(exit_code, (int, float)) and not isinstance(exit_code, bool) and exit_code == 0
    return "green" if is_zero else "red"


COLUMNS = tuple(each.name for each in dataclasses.fields(Signal))


def row_of(signal: Signal) -> list[Any]:
    """A signal as a row of `COLUMNS`, for a replay."""
    values = dataclasses.asdict(signal)
    return [list(value) if isinstance(value, tuple) else value for value in values.values()]


def signal_from(row: list[Any]) -> Signal:
    """The signal that a row is. Raises TypeError where it has other columns."""
    values = dict(zip(COLUMNS, row, strict=True))
    return Signal(**{**values, "span": None if values["span"] is None else tuple(values["span"])})
