"""What every dimension's verdict is made of: four statuses and an evidence text in the project's own words.

The session process rubric. A status is never a grade of the whole session, and no verdict adds up with another.
"""

from __future__ import annotations

import json
from typing import Any

from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.sessions.facts import Facts
from meta_eval.lanes.sessions.fields import Measure, shown, wrong_type

Dimension = dict[str, Any]
STATUSES = ("pass", "fail", "not-applicable", "cannot-determine")


def verdict(dimension: str, status: str, evidence: str) -> Dimension:
    """A deterministic verdict without a score."""
    return {"id": dimension, "method": "deterministic", "status": status, "evidence": evidence}


def written(value: Measure, *, instant: bool = False) -> str:
    """A measure in words."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return f"no number ({value})" if wrong_type(value) else value
    if instant:
        try:
            return written_instant(int(value))
        except ValueError:
            return f"{value} ms"
    return json.dumps(value)


def window_text(facts: Facts) -> str:
    """The window, or why there is none."""
    if facts.window is not None:
        start, end = (written(bound, instant=True) for bound in facts.window)
        return f"Window {start} to {end}, bounds included."
    line = facts.line
    if line.started_ms is not None and line.ended_ms is not None:
        return "completed_at precedes started_at, so the window is unmeasurable."
    ends = [name for name, ms in (("started_at", line.started_ms), ("completed_at", line.ended_ms)) if ms is None]
    return f"{' and '.join(ends)} missing or no instant with an offset, so the window is unmeasurable."


def peers_text(facts: Facts) -> str:
    """Which sessions overlap."""
    names = ", ".join(json.dumps(shown(name), ensure_ascii=False) for name in facts.peers)
    more = ", and more" if facts.more_peers else ""
    return f"Overlapped by {names}{more}."


def stream_text(facts: Facts) -> str:
    """The state of the event stream, where it is not simply there.

    How many events it holds is no part of the evidence: a stream grows, and a verdict must replay when it has grown.
    """
    stream = facts.stream
    if stream.state == "unreadable":
        return f"The event stream is unreadable ({shown(stream.fault)}). "
    return {"absent": "There is no event stream. ", "empty": "The event stream holds no event. "}.get(stream.state, "")
