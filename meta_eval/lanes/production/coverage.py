"""The joins behind stage 7: what was frozen, observed, reviewed and decided, laid side by side as tables.

Every table keeps both sides of its join, so that a case or decision that only one side knows is a row to be
refused and never a row that silently falls out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from meta_eval.evidence.artifacts import Blocker
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import Reading
from meta_eval.lanes.production.gated_tables import gated
from meta_eval.lanes.production.policy import Policy

Row = dict[str, Any]


def present(entries: object) -> list[Row]:
    """The entries of a list that are objects; the others have been refused and counted by the reader."""
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def gap(later: int | None, earlier: int | None) -> int | None:
    """Milliseconds between two instants, or None where one was refused."""
    return None if later is None or earlier is None else later - earlier


def coverage_blockers(
    frozen_cases: Mapping[str, bool], observed: list[Row], reviewed: list[Row], reviews_due: Mapping[str, int] | None
) -> list[Blocker]:
    """Every frozen case observed exactly once and reviewed as its lanes ask; no other case at all."""
    observations = Counter(row["caseId"] for row in observed if row.get("caseId"))
    reviews = Counter(row["caseId"] for row in reviewed if row.get("caseId"))
    reviewers: dict[str, set[str | None]] = {}
    for row in reviewed:
        if row.get("caseId"):
            reviewers.setdefault(row["caseId"], set()).add(row.get("reviewerCode") or f"refused-{id(row)}")
    rows = [
        {
            "case_id": case_id,
            "frozen": case_id in frozen_cases,
            "observations": observations[case_id],
            "reviews": reviews[case_id],
            "reviewers": len(reviewers.get(case_id, ())),
            "reviews_due": _due(case_id, reviews[case_id], reviews_due),
        }
        for case_id in sorted(frozen_cases.keys() | observations.keys() | reviews.keys())
    ]
    return gated("CaseCoverage", rows, subject="case_coverage", least_rows=1)


def _due(case_id: str, found: int, reviews_due: Mapping[str, int] | None) -> int:
    """How many reviews a case must have; without a run kit, one or two of them is what lanes can ask for."""
    return min(max(found, 1), 2) if reviews_due is None else reviews_due.get(case_id, 0)


def trace_blockers(
    observed: list[Row], reading: Reading, *, frozen_at: int | None, approved_at: int | None, now: int, policy: Policy
) -> list[Blocker]:
    """Chronology, freshness, refusals and costs of each observation."""
    place = "observations.observations[]"
    rows = []
    for row in observed:
        at = instant_ms(row.get("observedAt"))
        age = gap(now, at)
        cost = row.get("cost") or {}
        latency = row.get("latencyMs")
        claims = row.get("claims")
        named = [claim.get("claimId") for claim in present(claims)]
        basis = cost.get("basis")
        rows.append(
            {
                "case_id": row.get("caseId"),
                "trace_sha256": row.get("traceSha256"),
                "since_freeze_ms": gap(at, frozen_at),
                "since_approval_ms": gap(at, approved_at),
                "age_ms": age,
                "stale": None if age is None else age > policy.freshness_ms,
                "refused": row.get("refused"),
                "claim_count": None if claims is None else len(claims),
                "distinct_claims": None if claims is None else len(claims) - _repeats(named),
                "latency_us": None if latency is None else round(latency * 1000),
                "cost_amount": cost.get("amount"),
                "currency": cost.get("currency"),
                "receipt_is_missing": None if basis is None else _lacks_receipt(cost),
            }
        )
    instants = reading.refused_at(f"{place}.observedAt")
    whole_cost = reading.refused_at(f"{place}.cost")
    lists = reading.refused_at(f"{place}.claims")
    excused = {
        "case_id": reading.refused_at(f"{place}.caseId"),
        "trace_sha256": reading.refused_at(f"{place}.traceSha256"),
        "since_freeze_ms": instants if frozen_at is not None else len(rows),
        "since_approval_ms": instants if approved_at is not None else len(rows),
        "age_ms": instants,
        "stale": instants,
        "refused": reading.refused_at(f"{place}.refused"),
        "claim_count": lists,
        "distinct_claims": lists,
        "latency_us": reading.refused_at(f"{place}.latencyMs"),
        "cost_amount": reading.refused_at(f"{place}.cost.amount") + whole_cost,
        "currency": reading.refused_at(f"{place}.cost.currency") + whole_cost,
        "receipt_is_missing": reading.refused_at(f"{place}.cost.basis") + whole_cost,
    }
    return gated("Traces", rows, subject="traces", least_rows=1, excused=excused)


def _lacks_receipt(cost: Row) -> bool:
    # A receipt that was written but refused has its own blocker.
    return cost["basis"] == "provider-receipt" and "receiptSha256" not in cost


def _repeats(names: list[str | None]) -> int:
    return sum(count - 1 for name, count in Counter(names).items() if name is not None)


def claim_blockers(observed: list[Row], reading: Reading) -> list[Blocker]:
    """Every emitted claim cited, no citation twice."""
    place = "observations.observations[].claims[]"
    rows = []
    for row, claim in emitted_claims(observed):
        citations = claim.get("citations")
        rows.append(
            {
                "case_id": row.get("caseId"),
                "claim_id": claim.get("claimId"),
                "citation_count": None if citations is None else len(citations),
                "distinct_citations": None if citations is None else len(citations) - _repeats(citations),
            }
        )
    lists = reading.refused_at(f"{place}.citations")
    excused = {
        "case_id": sum(1 for row in rows if row["case_id"] is None),
        "claim_id": reading.refused_at(f"{place}.claimId"),
        "citation_count": lists,
        "distinct_citations": lists,
    }
    return gated("EmittedClaims", rows, subject="emitted_claims", least_rows=0, excused=excused)


def emitted_claims(observed: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Each observation with each of its claims."""
    for row in observed:
        for claim in present(row.get("claims")):
            yield row, claim


def decision_blockers(observed: list[Row], reviewed: list[Row]) -> list[Blocker]:
    """Every emitted citation decided once by each reviewer of its case, and none invented."""
    emitted: dict[str, set[tuple[str, str]]] = {}
    for row, claim in emitted_claims(observed):
        for citation in claim.get("citations") or []:
            if row.get("caseId") and claim.get("claimId") and citation:
                emitted.setdefault(row["caseId"], set()).add((claim["claimId"], citation))
    rows = []
    for review in reviewed:
        if not review.get("caseId") or review.get("decisions") is None:
            continue
        decided = Counter(
            (entry["claimId"], entry["citation"])
            for entry in present(review["decisions"])
            if entry.get("claimId") and entry.get("citation")
        )
        due = emitted.get(review["caseId"], set())
        rows += [
            {
                "case_id": review["caseId"],
                "claim_id": claim_id,
                "citation": citation,
                "emitted": (claim_id, citation) in due,
                "decisions": decided[claim_id, citation],
            }
            for claim_id, citation in sorted(due | decided.keys())
        ]
    return gated("CitationDecisions", rows, subject="citation_decisions", least_rows=0)


def review_blockers(
    reviewed: list[Row], observed: list[Row], reading: Reading, *, operator: str | None, approver: str | None, now: int
) -> list[Blocker]:
    """Chronology and independence of each review."""
    traced = {row["caseId"]: instant_ms(row.get("observedAt")) for row in observed if row.get("caseId")}
    rows = []
    for row in reviewed:
        at, code = instant_ms(row.get("reviewedAt")), row.get("reviewerCode")
        rows.append(
            {
                "case_id": row.get("caseId"),
                "reviewer_code": code,
                "receipt_sha256": row.get("receiptSha256"),
                "since_trace_ms": gap(at, traced.get(row.get("caseId") or "")),
                "age_ms": gap(now, at),
                "is_operator": None if code is None else code == operator,
                "is_approver": None if code is None else code == approver,
            }
        )
    codes = reading.refused_at("reviews.reviews[].reviewerCode")
    excused = {
        "case_id": reading.refused_at("reviews.reviews[].caseId"),
        "reviewer_code": codes,
        "receipt_sha256": reading.refused_at("reviews.reviews[].receiptSha256"),
        "age_ms": reading.refused_at("reviews.reviews[].reviewedAt"),
        "is_operator": codes,
        "is_approver": codes,
    }
    return gated("Reviews", rows, subject="reviews", least_rows=1, excused=excused)
