"""Small metrics folders for the tests: one good session with its gates, from which each test changes one thing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from meta_eval.lanes.sessions.ledger import Ledger, read_ledger
from meta_eval.lanes.sessions.record import Provenance
from meta_eval.lanes.sessions.rubric import VERSIONS, Rubric
from meta_eval.lanes.sessions.scoring import Scored, score_one

DAY = "2026-08-01"
RUBRICS = {name: Rubric(version, "ab" * 32) for name, version in VERSIONS.items()}
SHARED = Path(__file__).parents[4] / "shared"
MADE = Provenance(
    timestamp="2026-08-20T12:00:00.000Z",
    rubric_version="rubric-v1",
    rubric_sha256="ab" * 32,
    engine_commit="meta-eval-test",
)


def at(clock: str) -> str:
    """An instant of the day on which every test session runs."""
    return f"{DAY}T{clock}:00.000Z"


def session(session_id: Any = "s1", start: str = "10:00", end: str = "11:00", **fields: Any) -> dict[str, Any]:
    """A completed session that worked; a field given as ... is left out."""
    record = {
        "session_id": session_id,
        "started_at": at(start),
        "completed_at": at(end),
        "status": "completed",
        "total_files_changed": 4,
        "total_waves": 2,
        "total_agents": 4,
        "total_token_input": 1000,
        "total_token_output": 200,
        "waves": [{"wave": 1, "role": "Impl-Core"}, {"wave": 2, "role": "Quality"}],
        "agent_summary": {"complete": 4, "spiral": 0},
        "effectiveness": {"planned_issues": 5, "carryover": 0, "carryover_ratio": 0, "completion_rate": 1},
    } | fields
    return {name: value for name, value in record.items() if value is not ...}


def gate(clock: str, exit_code: Any = 0, *, full: bool = False, **fields: Any) -> dict[str, Any]:
    """A quality gate; an exit code given as ... is left out."""
    name = "passed" if exit_code == 0 else "failed"
    event = {
        "timestamp": at(clock),
        "event": f"orchestrator.quality_gate.{name}",
        "variant": "full-gate" if full else "baseline",
        "exit_code": exit_code,
    } | fields
    return {name: value for name, value in event.items() if value is not ...}


def event(clock: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": at(clock), "event": f"orchestrator.{name}"} | fields


QUIET = event("10:30", "wave.started")


def lines(values: Iterable[Mapping[str, Any] | str]) -> str:
    return "".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values)


def folder(
    path: Path, sessions: Iterable[Mapping[str, Any] | str], events: Iterable[Mapping[str, Any] | str] | None
) -> Path:
    """A metrics folder. Without events there is no event stream at all."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "sessions.jsonl").write_text(lines(sessions), encoding="utf-8", newline="")
    if events is not None:
        (path / "events.jsonl").write_text(lines(events), encoding="utf-8", newline="")
    return path


def ledger_of(path: Path, rubric: str = "v1") -> Ledger:
    version = VERSIONS[rubric]
    return read_ledger(path, rotated=version.reads_rotated, drop_stubs=version.drops_stubs)


def scored(path: Path, session_id: str | None = None, rubric: str = "v1") -> Scored:
    return score_one(ledger_of(path, rubric), RUBRICS[rubric], session_id)


def statuses(found: Scored) -> dict[str, str]:
    return {each["id"]: each["status"] for each in found.dimensions}


def evidence(found: Scored, dimension: str) -> str:
    return next(each["evidence"] for each in found.dimensions if each["id"] == dimension)
