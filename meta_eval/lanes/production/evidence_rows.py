"""The rows that each artifact of the production lane adds to the evidence store, as Arrow tables.

A blocked artifact adds none beyond its blockers: rows that did not pass a gate are no evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.store import arrow_rows
from meta_eval.lanes.production import attestation, bundle, figures, joined, labels, metrics, readiness
from meta_eval.lanes.production.query_log import OUTCOMES, outcomes_of

SCHEMA = Path(__file__).with_name("store.sql")
_TEXT, _FLAG, _COUNT = pa.string(), pa.bool_(), pa.int64()


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """By table name, the rows of an artifact; its kind decides which."""
    if artifact["artifact"] == attestation.KIND:
        return _query_outcomes(artifact)
    if artifact["artifact"] == readiness.KIND:
        return _requirements(artifact)
    if artifact["status"] == "blocked":
        return {}
    flatten = _FLATTEN.get(artifact["artifact"])
    return {} if flatten is None else flatten(artifact)


def _query_outcomes(artifact: Artifact) -> dict[str, pa.Table]:
    codes = outcomes_of(artifact["replay"]["outcomeRuns"])
    names = pa.DictionaryArray.from_arrays(pa.array(codes, pa.uint8()), pa.array(OUTCOMES, _TEXT))
    numbers = pa.array(np.arange(1, len(codes) + 1, dtype=np.int64))
    return {"query_outcomes": pa.table({"row_number": numbers, "outcome": names})}


def _requirements(artifact: Artifact) -> dict[str, pa.Table]:
    """A blocked readiness is told too: what it misses is what it is for."""
    rows = [{key: entry[key] for key in ("requirement", "state")} for entry in artifact["result"]["requirements"]]
    return {"release_requirements": arrow_rows(rows, {"requirement": _TEXT, "state": _TEXT})}


def _labels(artifact: Artifact) -> dict[str, pa.Table]:
    cases = labels.manifest_of(artifact)["cases"]
    claims = (
        {"case_id": case["caseId"], "position": position, "claim_id": claim_id}
        for case in cases
        for position, claim_id in enumerate(case["relevantClaimIds"], start=1)
    )
    rows = (
        {"case_id": c["caseId"], "question_sha256": c["questionSha256"], "should_refuse": c["shouldRefuse"]}
        for c in cases
    )
    return {
        "label_cases": arrow_rows(rows, {"case_id": _TEXT, "question_sha256": _TEXT, "should_refuse": _FLAG}),
        "label_claims": arrow_rows(claims, {"case_id": _TEXT, "position": pa.int32(), "claim_id": _TEXT}),
    }


def _bundle(artifact: Artifact) -> dict[str, pa.Table]:
    whole = joined.normalised_bundle(artifact["replay"])
    cases = whole["cases"]
    traces = (
        {
            "case_id": case["caseId"],
            "trace_sha256": case["traceSha256"],
            "observed_at": instant_ms(case["observedAt"]),
            "model_version": whole["modelVersion"],
            "prompt_version": whole["promptVersion"],
            "refused": case["refused"],
            "latency_ms": Decimal(figures.latency_us(case)).scaleb(-3),
            "cost_amount": Decimal(case["cost"]["amount"]).quantize(Decimal("1e-9")),
            "cost_currency": case["cost"]["currency"],
            "cost_basis": case["cost"]["basis"],
        }
        for case in cases
    )
    claims = ({"case_id": case["caseId"], "claim_id": claim["claimId"]} for case in cases for claim in case["claims"])
    decisions = (
        {
            "case_id": case["caseId"],
            "claim_id": claim["claimId"],
            "citation": citation["url"],
            "reviewer_code": decision["reviewerCode"],
            "supported": decision["supported"],
        }
        for case in cases
        for claim in case["claims"]
        for citation in claim["citations"]
        for decision in citation["decisions"]
    )
    return {
        "traces": arrow_rows(traces, _TRACE_COLUMNS),
        "emitted_claims": arrow_rows(claims, {"case_id": _TEXT, "claim_id": _TEXT}),
        "citation_decisions": arrow_rows(decisions, _DECISION_COLUMNS),
    }


_TRACE_COLUMNS = {
    "case_id": _TEXT,
    "trace_sha256": _TEXT,
    "observed_at": pa.timestamp("ms"),
    "model_version": _TEXT,
    "prompt_version": _TEXT,
    "refused": _FLAG,
    "latency_ms": pa.decimal128(18, 3),
    "cost_amount": pa.decimal128(21, 9),
    "cost_currency": _TEXT,
    "cost_basis": _TEXT,
}
_DECISION_COLUMNS = {
    "case_id": _TEXT,
    "claim_id": _TEXT,
    "citation": _TEXT,
    "reviewer_code": _TEXT,
    "supported": _FLAG,
}


def _metrics(artifact: Artifact) -> dict[str, pa.Table]:
    rows = [_metric_row(name, figure) for name, figure in artifact["result"]["metrics"].items()]
    columns = {
        "metric": _TEXT,
        "numerator": pa.decimal128(38, 9),
        "denominator": _COUNT,
        "threshold": _TEXT,
        "met": _FLAG,
    }
    return {"metrics": arrow_rows(rows, columns)}


def _metric_row(name: str, figure: Mapping[str, Any]) -> dict[str, Any]:
    if name == "p95LatencyMs":
        top, bottom = Decimal(str(figure["value"])), figure["rows"]
    elif name == "meanCost":
        top, bottom = Decimal(figure["total"]), figure["rows"]
    elif name == "agreement":
        top, bottom = Decimal(figure["agreed"]), figure["pairs"]
    else:
        top, bottom = Decimal(figure["numerator"]), figure["denominator"]
    threshold = figure.get("threshold")
    return {
        "metric": name,
        "numerator": top.quantize(Decimal("1e-9")),
        "denominator": bottom,
        "threshold": None if threshold is None else str(threshold),
        "met": figure.get("met"),
    }


_FLATTEN: Mapping[str, Callable[[Artifact], dict[str, pa.Table]]] = {
    labels.KIND: _labels,
    bundle.KIND: _bundle,
    metrics.KIND: _metrics,
}
