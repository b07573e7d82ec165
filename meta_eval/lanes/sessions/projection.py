"""A ledger as a replay keeps it: what the rubric reads, and nothing that it does not.

The evidence contract. Signals that nobody can be named by are kept as bare instants a kind; raw ids stay only where
they tie a signal to a session. `ledger_of` gives back a ledger with the same facts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from meta_eval.lanes.sessions import lines, signals
from meta_eval.lanes.sessions.jsonl import Reading
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.signals import Signal, Stream

_COUNTS = ("state", "fault", "objects", "malformed", "torn", "duplicates", "gaps", "orphans", "strays")


def document_of(ledger: Ledger) -> dict[str, Any]:
    """The ledger as a JSON value."""
    stream = ledger.events
    known = ledger.last_by_id.keys()
    ties = {
        raw_id: tied for raw_id, named in stream.ties.items() if (tied := [each for each in named if each in known])
    }
    timed: dict[str, list[int]] = {}
    others = []
    for signal in stream.signals:
        raw_id = signal.raw_id if signal.raw_id in ties else None
        if signal.at_ms is not None and raw_id is None:
            timed.setdefault(f"{signal.kind}/{signal.outcome or ''}", []).append(signal.at_ms)
        else:
            others.append(signals.row_of(dataclasses.replace(signal, raw_id=raw_id, line=0, file=0)))
    return {
        "sessions": dataclasses.asdict(ledger.sessions),
        "lines": [lines.row_of(dataclasses.replace(line, raw_id=None)) for line in ledger.lines],
        "droppedStubs": ledger.dropped_stubs,
        "stream": {name: getattr(stream, name) for name in _COUNTS},
        "ties": ties,
        "timed": {name: sorted(instants) for name, instants in sorted(timed.items())},
        "others": sorted(others, key=repr),
    }


def ledger_of(document: Mapping[str, Any]) -> Ledger:
    """The ledger that a document keeps. Raises KeyError, TypeError or ValueError where it is no such document."""
    found = [signals.signal_from(row) for row in document["others"]]
    for name, instants in document["timed"].items():
        kind, _, outcome = name.partition("/")
        if kind not in signals.KINDS:
            raise ValueError("a kind of signal that no dimension counts")
        found += [Signal(at_ms, kind, outcome or None, None, None, 0, 0) for at_ms in instants]
    stream = Stream(**document["stream"], signals=found, ties=dict(document["ties"]))
    kept = [lines.line_of(row) for row in document["lines"]]
    return Ledger(Reading(**document["sessions"]), kept, stream, dropped_stubs=document["droppedStubs"])
