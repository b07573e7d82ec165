"""The rows that the lane's artifacts add to the evidence store.

Source: the evidence contract, store. One row a packet, attempt, judgment, decision, label, figure and register entry;
never a text. `recomputed_acceptance` counts the verdict again in SQL, from the rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.store import arrow_rows
from meta_eval.lanes.usefulness import acceptance, adjudication, packets, runs, scoring, unblinding
from meta_eval.lanes.usefulness.policy import policy_of
from meta_eval.lanes.usefulness.stage import Row
from meta_eval.lanes.usefulness.study import arm_of, set_ids

SCHEMA = Path(__file__).with_name("store.sql")
DISAGREEMENTS = "SELECT count(*) FROM acceptance_disagreements WHERE artifact_digest = ?"
_TEXT, _COUNT, _FLAG, _SMALL = pa.string(), pa.int64(), pa.bool_(), pa.int32()
_MONEY, _INSTANT = pa.decimal128(21, 9), pa.timestamp("ms")
_PLACE = {"set_id": _TEXT, "question_id": _TEXT}


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """The rows that an artifact adds to the store, by table; a blocked one adds none."""
    flatten = _FLATTEN.get(artifact["artifact"])
    return {} if flatten is None or artifact["status"] == "blocked" else flatten(artifact)


def _place(row: Mapping[str, Any]) -> Row:
    return {"set_id": row["setId"], "question_id": row["questionId"]}


def _money(value: str | None) -> Decimal | None:
    return None if value is None else Decimal(value).quantize(Decimal("1e-9"))


def _packets(artifact: Artifact) -> dict[str, pa.Table]:
    result = artifact["result"]
    row = {
        "set_id": result["setId"],
        "receipt": result["receipt"],
        "question_count": result["questionCount"],
        "clause_count": sum(int(count) * times for count, times in result["clauseCounts"].items()),
        "publication_permitted": result["publicationPermitted"],
    }
    columns = {
        "set_id": _TEXT,
        "receipt": _TEXT,
        "question_count": _COUNT,
        "clause_count": _COUNT,
        "publication_permitted": _FLAG,
    }
    return {"packets": arrow_rows([row], columns)}


def _role_of(artifact: Artifact) -> dict[str, str]:
    return {arm["armId"]: arm["role"] for arm in artifact["replay"]["study"]["arms"]}


def _runs(artifact: Artifact) -> dict[str, pa.Table]:
    role_of = _role_of(artifact)
    rows = [
        {
            **_place(row),
            "arm": role_of[row["arm"]],
            "attempt": row["attempt"],
            "status": row["status"],
            "latency_ms": None if row["latencyMs"] is None else Decimal(runs.latency_us(row["latencyMs"])).scaleb(-3),
            "cost": _money(row["cost"]),
            "reservation_id": row["reservationId"],
        }
        for row in artifact["replay"]["runs"]["runs"]
    ]
    booked = [
        {
            **_entry(entry),
            "reservation_id": entry["body"].get("reservationId"),
            "amount": _money(entry["body"].get("amount", entry["body"].get("budget"))),
        }
        for entry in artifact["replay"]["ledger"]
    ]
    columns = {"arm": _TEXT, "attempt": _SMALL, "status": _TEXT, "latency_ms": pa.decimal128(18, 3), "cost": _MONEY}
    entry_columns = {"seq": _COUNT, "recorded_at": _INSTANT, "event": _TEXT, "reservation_id": _TEXT, "amount": _MONEY}
    return {
        "runs": arrow_rows(rows, {**_PLACE, **columns, "reservation_id": _TEXT}),
        "budget_entries": arrow_rows(booked, entry_columns),
    }


def _entry(entry: Mapping[str, Any]) -> Row:
    return {"seq": entry["seq"], "recorded_at": instant_ms(entry["at"]), "event": entry["event"]}


def _scores(artifact: Artifact) -> dict[str, pa.Table]:
    rows = [
        {
            "scorer_code": artifact["result"]["scorerCode"],
            **_place(row),
            "label": row["label"],
            "useful": row["useful"],
            "criteria_met": sum(row["criteria"].values()),
            "clause_coverage": row["clauseCoverage"],
            "source_support": row["sourceSupport"],
            "essential_limits": row["essentialLimits"],
            "first_source_relevant": row["firstSourceRelevant"],
            "first_source_decisive": row["firstSourceDecisive"],
            "defects": " ".join(row["defects"]),
        }
        for row in artifact["replay"]["scores"]["scores"]
    ]
    columns = {
        "scorer_code": _TEXT,
        **_PLACE,
        "label": _TEXT,
        "useful": _FLAG,
        "criteria_met": _SMALL,
        "clause_coverage": _SMALL,
        "source_support": _TEXT,
        "essential_limits": _TEXT,
        "first_source_relevant": _FLAG,
        "first_source_decisive": _FLAG,
        "defects": _TEXT,
    }
    return {"scores": arrow_rows(rows, columns)}


def _adjudications(artifact: Artifact) -> dict[str, pa.Table]:
    rows = [
        {
            **_place(row),
            "label": row["label"],
            "useful": row["disposition"] == "useful",
            "cause": row["cause"],
        }
        for row in artifact["replay"]["adjudication"]["decisions"]
    ]
    return {"adjudications": arrow_rows(rows, {**_PLACE, "label": _TEXT, "useful": _FLAG, "cause": _TEXT})}


def _labels(artifact: Artifact) -> dict[str, pa.Table]:
    role_of = _role_of(artifact)
    rows = [
        {"set_id": set_id, "question_id": question_id, "label": label, "arm": role_of[arm]}
        for set_id, questions in unblinding.arm_of_label(artifact).items()
        for question_id, labels in questions.items()
        for label, arm in labels.items()
    ]
    return {"unblinded_labels": arrow_rows(rows, {**_PLACE, "label": _TEXT, "arm": _TEXT})}


def _acceptance(artifact: Artifact) -> dict[str, pa.Table]:
    result, study = artifact["result"], artifact["replay"]["study"]
    tables = [*((set_id, result["sets"][set_id]) for set_id in set_ids(study)), (None, result["combined"])]
    rows = [row for set_id, table in tables for row in _figures(artifact, set_id, table)]
    events = [
        {
            **_entry(entry),
            "subject": entry["body"].get("setId", entry["body"].get("scorerCode")),
            "entry_digest": entry["digest"],
        }
        for entry in artifact["replay"]["entries"]
    ]
    columns = {"set_id": _TEXT, "figure": _TEXT, "value": _COUNT, "threshold": _COUNT, "met": _FLAG}
    event_columns = {"seq": _COUNT, "recorded_at": _INSTANT, "event": _TEXT, "subject": _TEXT, "entry_digest": _TEXT}
    return {"acceptance": arrow_rows(rows, columns), "custody_events": arrow_rows(events, event_columns)}


def _figures(artifact: Artifact, set_id: str | None, table: Row) -> list[Row]:
    met, policy = artifact["result"]["met"], policy_of(artifact)
    gain_due = arm_of(artifact["replay"]["study"], "candidate")["kind"] != "deterministic"
    thresholds: dict[str, tuple[int, bool]] = {}
    if set_id is not None:
        thresholds["candidateUseful"] = (policy.least_useful_per_set, met[f"leastUseful:{set_id}"])
    if gain_due:
        least, name = -policy.most_loss_per_set, f"noLowerSet:{set_id}"
        if set_id is None:
            least, name = policy.least_combined_gain, "combinedGain"
        thresholds["gain"] = (least, met[name])
    values = {
        "questions": table["questions"],
        "baselineUseful": table["useful"]["baseline"],
        "candidateUseful": table["useful"]["candidate"],
        **{name: table[name] for name in ("both", "recoveries", "losses", "neither", "gain")},
    }
    return [
        {
            "set_id": set_id,
            "figure": figure,
            "value": value,
            "threshold": thresholds[figure][0] if figure in thresholds else None,
            "met": thresholds[figure][1] if figure in thresholds else None,
        }
        for figure, value in values.items()
    ]


_FLATTEN: Mapping[str, Callable[[Artifact], dict[str, pa.Table]]] = {
    packets.KIND: _packets,
    runs.KIND: _runs,
    scoring.KIND: _scores,
    adjudication.KIND: _adjudications,
    unblinding.KIND: _labels,
    acceptance.KIND: _acceptance,
}
