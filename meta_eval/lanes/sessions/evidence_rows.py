"""The rows that a `scored-sessions` artifact adds to the evidence store, as Arrow tables.

The evidence contract. A blocked artifact adds none beyond its blockers. `sessions` and the tables beside it hold what
the SQL views recompute every deterministic verdict from; `session_dimensions` holds what Python found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.store import arrow_rows
from meta_eval.lanes.sessions.fields import number_of, wrong_type
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.scored_sessions import KIND, scored_of
from meta_eval.lanes.sessions.scoring import Scored
from meta_eval.lanes.sessions.signals import GUARDS, KINDS, Signal
from meta_eval.lanes.sessions.windows import SignalIndex

SCHEMA = Path(__file__).with_name("store.sql")
_TEXT, _FLAG, _COUNT, _REAL, _INSTANT = pa.string(), pa.bool_(), pa.int64(), pa.float64(), pa.timestamp("ms")


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """By table name, the rows of an artifact; its kind decides which."""
    if artifact["artifact"] != KIND or artifact["status"] == "blocked":
        return {}
    ledger, scored = scored_of(artifact)
    rubric = artifact["replay"]["rubric"]
    return {
        "sessions": arrow_rows([_session(each, ledger, rubric) for each in scored], _SESSION_COLUMNS),
        "session_windows": arrow_rows(_windows(ledger, scored), _WINDOW_COLUMNS),
        "session_events_attributed": arrow_rows(list(_attributed(ledger, scored)), _EVENT_COLUMNS),
        "session_dimensions": arrow_rows(list(_dimensions(scored)), _DIMENSION_COLUMNS),
        "session_kpis": arrow_rows(
            [
                {"session_id": each.session_id, "kpi": name, "value": value}
                for each in scored
                for name, value in each.facts.kpis.items()
            ],
            {"session_id": _TEXT, "kpi": _TEXT, "value": _REAL},
        ),
    }


_SESSION_COLUMNS = {
    "session_id": _TEXT,
    "line": _COUNT,
    "rubric": _TEXT,
    "started_at": _INSTANT,
    "files_changed": _REAL,
    "completion_rate": _REAL,
    "planned_issues": _REAL,
    "planned_is_unreadable": _FLAG,
    "spiral": _REAL,
    "spiral_is_unreadable": _FLAG,
    "total_waves": _REAL,
    "wave_count": _COUNT,
    "all_housekeeping": _FLAG,
    "stream_state": _TEXT,
    "stream_kinds": pa.list_(_TEXT),
}


def _session(scored: Scored, ledger: Ledger, rubric: str) -> dict[str, Any]:
    line = scored.facts.line
    return {
        "session_id": scored.session_id,
        "line": line.line,
        "rubric": rubric,
        "started_at": line.started_ms,
        "files_changed": number_of(line.files_changed),
        "completion_rate": None if isinstance(line.completion_rate, str) else line.completion_rate,
        "planned_issues": number_of(line.planned_issues),
        "planned_is_unreadable": wrong_type(line.planned_issues) in ("string", "object"),
        "spiral": number_of(line.spiral),
        "spiral_is_unreadable": wrong_type(line.spiral) is not None,
        "total_waves": number_of(line.total_waves),
        "wave_count": line.wave_count,
        "all_housekeeping": line.all_housekeeping,
        "stream_state": ledger.events.state,
        "stream_kinds": list(scored.facts.stream_kinds),
    }


_WINDOW_COLUMNS = {
    "session_id": _TEXT,
    "line": _COUNT,
    "started_at": _INSTANT,
    "ended_at": _INSTANT,
    "is_scored": _FLAG,
}


def _windows(ledger: Ledger, scored: Sequence[Scored]) -> list[dict[str, Any]]:
    chosen = {each.facts.line.line for each in scored}
    return [
        {
            "session_id": line.session_id,
            "line": line.line,
            "started_at": line.started_ms,
            "ended_at": line.ended_ms,
            "is_scored": line.line in chosen,
        }
        for line in ledger.lines
        if line.started_ms is not None and line.ended_ms is not None
    ]


_EVENT_COLUMNS = {"session_id": _TEXT, "kind": _TEXT, "outcome": _TEXT, "at": _INSTANT, "attribution": _TEXT}


def _attributed(ledger: Ledger, scored: Sequence[Scored]) -> Iterator[dict[str, Any]]:
    """The signals that verdicts and counts rest on, never more than about two rows a signal and eight a session.

    In a shared window no gate is anybody's, so none is listed, and of guards the first of each kind is enough.
    """
    index, tied = SignalIndex(ledger.events.signals), _tied(ledger)
    for each in scored:
        if (window := each.facts.window) is not None:
            if each.facts.is_contaminated:
                for kind, at_ms in index.first_guards(window):
                    yield _event(each.session_id, kind, None, at_ms, "time-window")
            else:
                for signal in index.inside(window):
                    yield _event(each.session_id, signal.kind, signal.outcome, signal.at_ms, "time-window")
            for kind in GUARDS if each.facts.is_contaminated else KINDS:
                if index.unplaced(window, kind):
                    yield _event(each.session_id, kind, None, None, "no-offset")
        for signal in tied.get(each.session_id, ()):
            yield _event(each.session_id, signal.kind, None, signal.at_ms, "session-id")


def _tied(ledger: Ledger) -> dict[str, list[Signal]]:
    """By session, the signals whose raw id another event ties to it; where several are tied to one, by the first."""
    found: dict[str, list[Signal]] = {}
    for signal in ledger.events.signals:
        for session_id in ledger.events.ties.get(signal.raw_id or "", ())[:1]:
            found.setdefault(session_id, []).append(signal)
    return found


def _event(session_id: str, kind: str, outcome: str | None, at_ms: int | None, attribution: str) -> dict[str, Any]:
    return {"session_id": session_id, "kind": kind, "outcome": outcome, "at": at_ms, "attribution": attribution}


_DIMENSION_COLUMNS = {
    "session_id": _TEXT,
    "position": pa.int32(),
    "dimension": _TEXT,
    "status": _TEXT,
    "score": _REAL,
    "evidence": _TEXT,
}


def _dimensions(scored: Sequence[Scored]) -> Iterator[dict[str, Any]]:
    for each in scored:
        for position, dimension in enumerate(each.dimensions, start=1):
            yield {
                "session_id": each.session_id,
                "position": position,
                "dimension": dimension["id"],
                "status": dimension["status"],
                "score": dimension.get("score"),
                "evidence": dimension["evidence"],
            }
