"""The Pandera contracts of the two ledgers, as tables of what the rubric reads.

The orchestration contract. Telemetry is untrusted, so a bad line is counted where it is read and never reaches these
tables; what does reach them must have exactly this form, or the ledger is refused as a whole. A check's name is the
blocker that a breach earns.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.typing import Series

from meta_eval.evidence.artifacts import Blocker
from meta_eval.evidence.gates import gate, table
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.signals import GUARDS

Flags = Any  # a boolean Series; Pandera reads the return annotation of a check, which must stay plain


class Contract(pa.DataFrameModel):
    """No column beyond the model's, nothing coerced."""

    class Config:
        strict = True
        coerce = False


class SessionRecords(Contract):
    """`sessions.jsonl`: one row a record."""

    line: Series[pd.Int64Dtype] = pa.Field(ge=1, unique=True)
    session_id: Series[str] = pa.Field(nullable=True)  # a record without a usable id is reported, not refused
    status: Series[str] = pa.Field(nullable=True, isin=["completed", "abandoned", "other"])
    started_ms: Series[pd.Int64Dtype] = pa.Field(nullable=True)
    ended_ms: Series[pd.Int64Dtype] = pa.Field(nullable=True)
    wave_count: Series[pd.Int64Dtype] = pa.Field(nullable=True, ge=0)
    all_housekeeping: Series[pd.BooleanDtype]

    @pa.dataframe_check(name="housekeeping-without-waves")
    def housekeeping_waves_are_listed(cls, frame: pd.DataFrame) -> Flags:
        return ~frame["all_housekeeping"] | (frame["wave_count"].fillna(0) > 0)


class EventSignals(Contract):
    """`events.jsonl`: one row a gate, guard or loop warning."""

    kind: Series[str] = pa.Field(isin=["gate", "full_gate", *GUARDS])
    outcome: Series[str] = pa.Field(nullable=True, isin=["green", "red", "odd"])
    at_ms: Series[pd.Int64Dtype] = pa.Field(nullable=True)

    @pa.dataframe_check(name="outcome-does-not-fit-kind")
    def gates_and_only_gates_have_an_outcome(cls, frame: pd.DataFrame) -> Flags:
        return frame["kind"].isin(["gate", "full_gate"]) == frame["outcome"].notna()


def contract_blockers(ledger: Ledger) -> list[Blocker]:
    """What the two contracts refuse in a ledger; an empty event stream is a fair state."""
    rows = [{name: getattr(line, name) for name in SessionRecords.to_schema().columns} for line in ledger.lines]
    signals = [{"kind": each.kind, "outcome": each.outcome, "at_ms": each.at_ms} for each in ledger.events.signals]
    least = 1 if ledger.sessions.state == "present" else 0
    blockers = gate(SessionRecords, table(SessionRecords, rows), subject="session_records", least_rows=least)
    return blockers + gate(EventSignals, table(EventSignals, signals), subject="event_signals", least_rows=0)
