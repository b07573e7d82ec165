"""A bundle of many cases into the evidence store, its figures in SQL, and the same figures in plain pandas.

    python benchmarks/store.py [--cases 1000000]

Each part runs in a process of its own, in one run, with wall time, CPU time and peak memory. Rows are drawn here by a
seeded generator (invented: three claims a case, one citation a claim) as the Arrow tables that a loader would get.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.artifacts import Artifact, sealed
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.catalogue import evidence_store
from meta_eval.lanes.production.policy import CURRENT_POLICY

CLAIMS = 3
MADE_AT = 1_796_000_000_000


def drawn(cases: int) -> dict[str, pa.Table]:
    """The tables of one invented bundle and its labels; a tenth of the claims is wrong, a twentieth unsupported."""
    draw = np.random.default_rng(7)
    case_ids = pa.array([f"case-{n:020x}" for n in range(cases)])
    refusing = draw.random(cases) < 0.25
    claim_cases = case_ids.take(pa.array(np.repeat(np.arange(cases), CLAIMS)))
    numbers = np.tile(np.arange(CLAIMS), cases)
    wrong = draw.random(cases * CLAIMS) < 0.1
    claim_ids = pa.array(np.where(wrong, 9, numbers)).cast(pa.string())
    latencies = pc.cast(pc.cast(pa.array(draw.integers(100, 9000, cases)), pa.decimal128(22, 3)), pa.decimal128(18, 3))
    return {
        "label_cases": pa.table(
            {"case_id": case_ids, "question_sha256": case_ids, "should_refuse": pa.array(refusing)}
        ),
        "label_claims": pa.table(
            {
                "case_id": claim_cases,
                "position": pa.array(numbers + 1, pa.int32()),
                "claim_id": pa.array(numbers).cast(pa.string()),
            }
        ),
        "traces": pa.table(
            {
                "case_id": case_ids,
                "trace_sha256": case_ids,
                "observed_at": pa.array(np.full(cases, MADE_AT), pa.timestamp("ms")),
                "model_version": pa.array(["m"] * cases),
                "prompt_version": pa.array(["p"] * cases),
                "refused": pa.array(refusing ^ (draw.random(cases) < 0.02)),
                "latency_ms": latencies,
                "cost_amount": pa.array([Decimal("0.002000000")] * cases, pa.decimal128(21, 9)),
                "cost_currency": pa.array(["EUR"] * cases),
                "cost_basis": pa.array(["production-instrumentation"] * cases),
            }
        ),
        "emitted_claims": pa.table({"case_id": claim_cases, "claim_id": claim_ids}),
        "citation_decisions": pa.table(
            {
                "case_id": claim_cases,
                "claim_id": claim_ids,
                "citation": claim_ids,
                "reviewer_code": pa.array(["REV-A"] * len(claim_cases)),
                "supported": pa.array(draw.random(len(claim_cases)) < 0.95),
            }
        ),
    }


def artifact(kind: str, status: str, inputs: dict[str, dict[str, str]], round_name: str = "benchmark") -> Artifact:
    """A stand-in for the artifact that the rows would come from; the store only reads its envelope."""
    return sealed(
        kind=kind,
        environment="rehearsal",
        round_name=round_name,
        status=status,
        blockers=[],
        policy_digest=CURRENT_POLICY.digest,
        made_at_ms=MADE_AT,
        inputs=inputs,
        result={},
        replay={},
        authority={},
    )


def load_round(store: EvidenceStore, tables: dict[str, pa.Table], round_name: str = "benchmark") -> None:
    """Labels, bundle and verdict of one round."""
    labels = artifact("frozen-labels", "ready", {}, round_name)
    bundle = artifact("assembled-bundle", "ready", {"frozenLabels": {"digest": labels["digest"]}}, round_name)
    inputs = {"frozenLabels": {"digest": labels["digest"]}, "assembledBundle": {"digest": bundle["digest"]}}
    verdict = artifact("production-metrics", "rehearsed", inputs, round_name)
    store.load(labels, {name: tables[name] for name in ("label_cases", "label_claims")})
    store.load(bundle, {name: tables[name] for name in ("traces", "emitted_claims", "citation_decisions")})
    store.load(verdict, {})


def in_store(cases: int, folder: Path) -> dict[str, Any]:
    """Load through Arrow and recompute in SQL."""
    tables = drawn(cases)
    store = evidence_store(folder)
    started = time.perf_counter()
    load_round(store, tables)
    loaded = time.perf_counter()
    rows = store.rows("SELECT metric, numerator, denominator FROM recomputed_metrics")
    figures = {name: [float(top), bottom] for name, top, bottom in rows}
    asked = time.perf_counter()
    copied = _copied(store.path, folder / "copy.duckdb")
    return {
        "figures": figures,
        "load and publish s": loaded - started,
        "recompute in SQL s": asked - loaded,
        "one copy of the file s": copied,
    }


def _copied(source: Path, target: Path) -> float:
    import shutil

    started = time.perf_counter()
    shutil.copyfile(source, target)
    return time.perf_counter() - started


def in_pandas(cases: int, _: Path) -> dict[str, Any]:
    """The same figures from the same rows with pandas alone."""
    tables = {name: table.to_pandas() for name, table in drawn(cases).items()}
    started = time.perf_counter()
    citations = tables["citation_decisions"].groupby(["case_id", "claim_id", "citation"], sort=False)["supported"].all()
    accepted = citations.groupby(level=["case_id", "claim_id"], sort=False).any().rename("accepted").reset_index()
    emitted = tables["emitted_claims"].drop_duplicates()
    claims = emitted.merge(accepted, on=["case_id", "claim_id"], how="left")
    claims = claims.merge(
        tables["label_claims"].assign(expected=True), on=["case_id", "claim_id"], how="left", validate="m:1"
    )
    expected = claims["expected"].eq(True)
    traces = tables["traces"].merge(tables["label_cases"], on="case_id")
    latencies = np.sort(tables["traces"]["latency_ms"].astype(float).to_numpy())
    figures = {
        "precision": [int((expected & claims["accepted"]).sum()), len(claims)],
        "recall": [int(expected.sum()), len(tables["label_claims"])],
        "citationAccuracy": [int(citations.sum()), len(citations)],
        "refusalAccuracy": [int((traces["refused"] == traces["should_refuse"]).sum()), len(traces)],
        "p95LatencyMs": [float(latencies[-(-95 * cases // 100) - 1]), cases],
    }
    return {"figures": figures, "compute s": time.perf_counter() - started}


PARTS: dict[str, Callable[[int, Path], dict[str, Any]]] = {"store": in_store, "pandas": in_pandas}


def main() -> int:
    """Measure each part in its own process, and see that both found the same figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        with tempfile.TemporaryDirectory() as folder:
            told = PARTS[options.part](options.cases, Path(folder))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        told |= {"cpu s": usage.ru_utime + usage.ru_stime, "peak MB": usage.ru_maxrss / 1024}
        print(json.dumps(told))
        return 0
    found = {}
    for part in PARTS:
        words = [sys.executable, __file__, "--part", part, "--cases", str(options.cases)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found[part] = json.loads(done.stdout)
    both = found["pandas"].pop("figures")
    agree = all(found["store"]["figures"][name] == figure for name, figure in both.items())
    found["store"].pop("figures")
    print(pd.DataFrame(found).round(2).to_string(na_rep=""))
    recompute, compute = found["store"]["recompute in SQL s"], found["pandas"]["compute s"]
    print(f"{options.cases:,} cases: SQL takes {recompute / compute:.2f} of pandas; figures agree: {agree}")
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
