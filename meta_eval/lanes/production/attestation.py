"""Stage 2: the log attestation, what a query log amounts to, told without a word of what is in it.

Source: the production evaluation document. The artifact keeps one outcome code a row, run-length coded, and no
question, id, instant or contact value. From those codes alone verification rebuilds every count, blocker, the
readiness, the blank attestation and the authority statement.
"""

from __future__ import annotations

from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, at_least, named_inputs, sealed
from meta_eval.lanes.production.policy import Policy, replayed
from meta_eval.lanes.production.query_log import LogScan, counts_of, outcomes_of, runs_of

KIND = "query-log-attestation"
AUTHORITY = {
    "provesProductionTraffic": False,
    "permitsExport": False,
    "statement": "Counts of one file. They prove nothing about where it came from; a person must attest to that.",
}


def attest(scan: LogScan, *, made_at: int, policy: Policy, round_name: str | None = None) -> Artifact:
    """The attestation of a scanned log.

    Args:
        scan: the log's outcomes as judged at `made_at`.
        made_at: milliseconds since the epoch; also the instant against which freshness was judged.
    """
    replay = {"byteCount": scan.byte_count, "outcomeRuns": runs_of(scan.outcomes)}
    inputs = {"queryLog": {"receipt": scan.receipt}}
    return _build(replay, inputs, made_at=made_at, policy=policy, round_name=round_name)


def _build(
    replay: dict[str, Any], inputs: dict[str, dict[str, str]], *, made_at: int, policy: Policy, round_name: str | None
) -> Artifact:
    counts = counts_of(outcomes_of(replay["outcomeRuns"]))
    rows = sum(counts.values())
    blockers = [] if rows else [Blocker("no-rows", "queryLog", 0)]
    blockers += at_least(counts["eligible"], policy.least_cases, code="too-few-eligible-questions", subject="queryLog")
    return sealed(
        kind=KIND,
        environment=None,  # nothing in a log can tell; the person who attests does
        round_name=round_name,
        status="blocked" if blockers else "ready",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(inputs, {"queryLog": "receipt"}),
        result={
            "byteCount": replay["byteCount"],
            "rowCount": rows,
            "outcomes": counts,
            "attestationTemplate": {
                "version": 1,
                "environment": None,
                "source": None,
                "logSha256": inputs["queryLog"]["receipt"],
                "exportedAt": None,
                "operatorCode": None,
                "questionCollectionApproved": None,
            },
        },
        replay={key: replay[key] for key in ("byteCount", "outcomeRuns")},
        authority=AUTHORITY,
    )


rebuild = replayed(_build)
