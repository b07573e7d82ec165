"""The rows that a golden verdict adds to the evidence store, as Arrow tables. A blocked one adds none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.store import arrow_rows
from meta_eval.lanes.golden import gate

SCHEMA = Path(__file__).with_name("store.sql")
_COLUMNS: Mapping[str, pa.DataType] = {
    "prompt_id": pa.string(),
    "kind": pa.string(),
    "expected_claims": pa.list_(pa.string()),
    "outcome": pa.string(),
    "fault": pa.string(),
    "claims": pa.list_(pa.string()),
    "uncited": pa.bool_(),
    "latency_ms": pa.float64(),
    "baseline_outcome": pa.string(),
    "baseline_fault": pa.string(),
    "baseline_claims": pa.list_(pa.string()),
    "baseline_uncited": pa.bool_(),
    "met": pa.bool_(),
    "verdict": pa.string(),
}


def tables_of(artifact: Artifact) -> Mapping[str, pa.Table]:
    """By table name, the rows of an artifact of this lane; of any other, none."""
    if artifact["artifact"] != gate.KIND or artifact["status"] == gate.BLOCKED:
        return {}
    replay = artifact["replay"]
    before = {row["promptId"]: row for row in replay["baseline"]["answers"]} if replay["baseline"] else {}
    rows = zip(replay["prompts"], replay["answers"], artifact["result"]["verdicts"], strict=True)
    return {
        "golden_results": arrow_rows(
            (_row(prompt, answer, verdict, before.get(prompt["promptId"])) for prompt, answer, verdict in rows),
            _COLUMNS,
        )
    }


def _row(prompt: Any, answer: Any, verdict: Any, before: Any) -> dict[str, Any]:
    return {
        "prompt_id": prompt["promptId"],
        "kind": prompt["kind"],
        "expected_claims": sorted(prompt["claimIds"]),
        "outcome": answer["outcome"],
        "fault": answer["fault"],
        "claims": sorted(answer["claimIds"]),
        "uncited": answer["uncited"],
        "latency_ms": answer["latencyMs"],
        "baseline_outcome": before["outcome"] if before else None,
        "baseline_fault": before["fault"] if before else None,
        "baseline_claims": sorted(before["claimIds"]) if before else None,
        "baseline_uncited": before["uncited"] if before else None,
        "met": verdict["met"],
        "verdict": verdict["verdict"],
    }
