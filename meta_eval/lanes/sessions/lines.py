"""What the rubric keeps of one line of `sessions.jsonl`, and nothing else of it: no notes, no names, no free text.

The session process rubric. A `SessionLine` is all that resolution, windows and dimensions read, and it is what a
replay keeps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meta_eval.lanes.sessions.fields import Measure, given, is_text, measure, member
from meta_eval.lanes.sessions.instants import instant_ms

UNKNOWN_ID = "(unknown)"


@dataclass(frozen=True)
class SessionLine:
    """One record of the session ledger. A session may have many: it is written anew as it goes."""

    line: int
    session_id: str | None  # None: not usable as an id
    status: str | None  # "completed", "abandoned", "other" or None
    started_ms: int | None
    ended_ms: int | None
    end_given: bool
    complete: Measure
    completion_rate: Measure
    planned_issues: Measure
    carryover: Measure
    carryover_ratio: Measure
    spiral: Measure
    files_changed: Measure
    duration_seconds: Measure
    total_waves: Measure
    total_agents: Measure
    token_input: Measure
    token_output: Measure
    wave_count: int | None  # None: `waves` is missing or no list
    all_housekeeping: bool
    is_stub: bool
    raw_id: str | None
    host_class: str | None = None

    @property
    def owner(self) -> str:
        return UNKNOWN_ID if self.session_id is None else self.session_id

    @property
    def window(self) -> tuple[int, int] | None:
        """Start and end, or None where either is missing or unreadable, or the end precedes the start."""
        if self.started_ms is None or self.ended_ms is None or self.ended_ms < self.started_ms:
            return None
        return self.started_ms, self.ended_ms

    @property
    def has_worked(self) -> bool:
        """Signs of work: an agent that completed, or any completion rate at all."""
        complete = self.complete
        agents = isinstance(complete, (int, float)) and complete > 0
        return agents or complete == "infinite" or self.completion_rate is not None

    @property
    def qualifies(self) -> str | None:
        """How the cascade takes this record, or None where it passes it over."""
        if self.status == "completed":
            return "cascade-completed"
        if self.status != "abandoned" and self.end_given and self.has_worked:
            return "cascade-fallback"
        return None


def session_line(number: int, record: Mapping[str, Any]) -> SessionLine:
    """The projection of one record."""
    effectiveness, summary, waves = record.get("effectiveness"), record.get("agent_summary"), record.get("waves")
    status, session_id, raw_id = record.get("status"), record.get("session_id"), record.get("raw_session_id")
    return SessionLine(
        line=number,
        session_id=session_id if is_text(session_id) else None,
        status=status if status in ("completed", "abandoned") else None if status is None else "other",
        started_ms=instant_ms(record.get("started_at")),
        ended_ms=instant_ms(record.get("completed_at")),
        end_given=given(record.get("completed_at")),
        complete=measure(member(summary, "complete")),
        completion_rate=measure(member(effectiveness, "completion_rate")),
        planned_issues=measure(member(effectiveness, "planned_issues")),
        carryover=measure(member(effectiveness, "carryover")),
        carryover_ratio=measure(member(effectiveness, "carryover_ratio")),
        spiral=measure(member(summary, "spiral")),
        files_changed=measure(record.get("total_files_changed")),
        duration_seconds=measure(record.get("duration_seconds")),
        total_waves=measure(record.get("total_waves")),
        total_agents=measure(record.get("total_agents")),
        token_input=measure(record.get("total_token_input")),
        token_output=measure(record.get("total_token_output")),
        wave_count=len(waves) if isinstance(waves, list) else None,
        all_housekeeping=isinstance(waves, list) and bool(waves) and all(map(_is_housekeeping, waves)),
        is_stub=is_text(record.get("_backfill_source")),
        raw_id=raw_id if is_text(raw_id) else None,
    )


def _is_housekeeping(wave: object) -> bool:
    # Only the coordinator's own housekeeping waves count as no waves; the session's type has no say.
    return member(wave, "role") == "Housekeeping" and member(wave, "coordinator_direct") is True


COLUMNS = tuple(field.name for field in dataclasses.fields(SessionLine))


def row_of(line: SessionLine) -> list[Any]:
    """A session line as a row of `COLUMNS`, for a replay."""
    return [getattr(line, name) for name in COLUMNS]


def line_of(row: list[Any]) -> SessionLine:
    """The session line that a row is. Raises TypeError where it has other columns."""
    return SessionLine(**dict(zip(COLUMNS, row, strict=True)))
