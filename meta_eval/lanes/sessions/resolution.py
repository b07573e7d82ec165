"""Which session is scored: the one that is named, or the newest one that shows finished work.

The session process rubric, resolution cascade. Abandoned sessions are never scored. A record without a usable id
cannot be: the cascade passes it over and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.sessions.fields import shown
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.lines import SessionLine


class SessionResolutionError(MetaEvalError):
    """No session can be scored as asked; `reason` is one of the codes below."""

    exit_code = 1

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class Resolved:
    """The record that is scored and how it was found."""

    line: SessionLine
    via: str  # "explicit", "cascade-completed" or "cascade-fallback"
    passed_over: int = 0  # qualifying records without a usable id


def resolve(ledger: Ledger, session_id: str | None) -> Resolved:
    """The session to score. An empty id is no id.

    Raises:
        SessionResolutionError: `no-records`, `not-found`, `abandoned` or `none-eligible`.
    """
    if not ledger.lines:
        found = "there is no sessions.jsonl" if ledger.sessions.state == "absent" else "sessions.jsonl holds no record"
        raise SessionResolutionError("no-records", f"{found}; check --metrics-dir or --ledger")
    return _named(ledger, session_id) if session_id else _newest(ledger.lines)


def _named(ledger: Ledger, session_id: str) -> Resolved:
    line = ledger.last_by_id.get(session_id)
    if line is None:
        raise SessionResolutionError(
            "not-found", f"no record of session {shown(session_id)!r}; ids are compared character by character"
        )
    if line.status == "abandoned" and not _is_stub_beside_a_record(ledger.lines, line):
        raise SessionResolutionError(
            "abandoned", f"session {shown(session_id)!r} was abandoned, and abandoned sessions are never scored"
        )
    return Resolved(line, "explicit")


def _is_stub_beside_a_record(lines: Sequence[SessionLine], stub: SessionLine) -> bool:
    """A stub that was filled in afterwards does not abandon a session that has a record of its own."""
    return stub.is_stub and any(line.session_id == stub.session_id and not line.is_stub for line in lines)


def _newest(lines: Sequence[SessionLine]) -> Resolved:
    """One scan from the newest record to the oldest; the first that qualifies is taken."""
    passed_over = 0
    for line in reversed(lines):
        via = line.qualifies
        if via is None:
            continue
        if line.session_id is None:
            passed_over += 1
            continue
        return Resolved(line, via, passed_over)
    rule = "no session is completed, or has ended with signs of work"
    if passed_over:
        rule += f"; {passed_over} that would qualify have no usable id"
    raise SessionResolutionError("none-eligible", rule)


def eligible(ledger: Ledger) -> list[SessionLine]:
    """Every session that may be scored, by its last record, in the ledger's order."""
    return sorted((line for line in ledger.last_by_id.values() if line.qualifies), key=lambda line: line.line)


def unusable_ids(ledger: Ledger) -> int:
    """How many records would qualify and have no usable id."""
    return sum(line.session_id is None and line.qualifies is not None for line in ledger.lines)
