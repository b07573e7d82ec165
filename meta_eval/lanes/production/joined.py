"""The rows of a ready assembly joined into one bundle: each case once, in one fixed order.

Source: the production evaluation document. Nothing is checked here: `bundle` joins only what has passed every rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meta_eval.evidence.canonical import digest
from meta_eval.lanes.production import coverage


def reviewed_citations(reviewed: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """Each citation that somebody decided, once however many decided it."""
    return {
        (row["caseId"], entry["claimId"], entry["citation"])
        for row in reviewed
        if row.get("caseId")
        for entry in coverage.present(row.get("decisions"))
        if entry.get("claimId") and entry.get("citation") and entry.get("supported") is not None
    }


def normalised_bundle(replay: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle of a ready assembly: each case once, its claims, citations and decisions in one fixed order."""
    observations, reference = replay["observations"], replay["evidenceReference"]
    by_case: dict[str, list[dict[str, Any]]] = {}
    for review in replay["reviews"]["reviews"]:
        by_case.setdefault(review["caseId"], []).append(review)
    rows = sorted(observations["observations"], key=lambda row: row["caseId"])
    return {
        "version": 1,
        "environment": observations["environment"],
        "datasetDigest": observations["datasetDigest"],
        "releaseDigest": digest(replay["releaseManifest"]),
        "runOperatorCode": observations["runOperatorCode"],
        "modelVersion": rows[0]["modelVersion"],
        "promptVersion": rows[0]["promptVersion"],
        "evidence": {"url": reference["evidenceUrl"], "receiptSha256": reference["receiptSha256"]},
        "cases": [_normalised_case(row, by_case[row["caseId"]]) for row in rows],
    }


def _normalised_case(row: dict[str, Any], reviews: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(reviews, key=lambda review: review["reviewerCode"])
    decisions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for review in ordered:
        for entry in review["decisions"]:
            decided = {"reviewerCode": review["reviewerCode"], "supported": entry["supported"]}
            decisions.setdefault((entry["claimId"], entry["citation"]), []).append(decided)
    kept = ("caseId", "traceSha256", "observedAt", "refused", "latencyMs", "cost")
    return {
        **{key: row[key] for key in kept},
        "claims": [
            {
                "claimId": claim["claimId"],
                "citations": [
                    {"url": url, "decisions": decisions[claim["claimId"], url]} for url in sorted(claim["citations"])
                ],
            }
            for claim in sorted(row["claims"], key=lambda claim: claim["claimId"])
        ],
        "reviews": [
            {key: review[key] for key in ("reviewerCode", "reviewedAt", "evidenceUrl", "receiptSha256")}
            for review in ordered
        ],
    }
