"""Rehearsals that go wrong on purpose: one missed threshold (`--fail`) or one broken rule (`--break`).

Tests and documents use both. A break changes one thing in one person's document, and the gate named after it must
stop the line there; a miss changes how often production or a reviewer slips, and the verdict must be `failed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.lanes.production.rehearsal.people import LABELLER, OPERATOR, SLIPS, Timeline

Document = dict[str, Any]

MISSES: Mapping[str, Mapping[str, int]] = {
    "precision": {**SLIPS, "extra-claim": 200},
    "recall": {**SLIPS, "no-claim": 200},
    "citationAccuracy": {**SLIPS, "unsupported-citation": 200},
    "refusalAccuracy": {**SLIPS, "refusal-answered": 400},
    "p95LatencyMs": {**SLIPS, "slow": 120},
}


@dataclass(frozen=True)
class Break:
    """One rule broken: in which document, how, and the stage that must stop."""

    document: str
    stage: str
    change: Callable[[Document, Timeline], None]


def broken(document: Document, name: str, rule: str | None, times: Timeline) -> Document:
    """A played document, with the rule broken where this is its document. The document itself is changed."""
    if rule is not None and BREAKS[rule].document == name:
        BREAKS[rule].change(document, times)
    return document


def _set(*path: str | int, to: Any) -> Callable[[Document, Timeline], None]:
    def change(document: Document, times: Timeline) -> None:
        node: Any = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = to(document, times) if callable(to) else to

    return change


def _first_answered(observations: Document) -> Document:
    row: Document = next(row for row in observations["observations"] if row["claims"])
    return row


def _on_first_answered(change: Callable[[Document], Any]) -> Callable[[Document, Timeline], None]:
    def apply(document: Document, times: Timeline) -> None:
        change(_first_answered(document))

    return apply


def _on_first_decided(change: Callable[[Document], Any]) -> Callable[[Document, Timeline], None]:
    def apply(document: Document, times: Timeline) -> None:
        change(next(review for review in document["reviews"] if review["decisions"]))

    return apply


def _approved_at(document: Document, times: Timeline) -> str:
    return written_instant(times.after_log(4))


BREAKS: Mapping[str, Break] = {
    "log-receipt-mismatch": Break("attestation", "question_export", _set("logSha256", to="0" * 64)),
    "question-collection-not-approved": Break(
        "attestation", "question_export", _set("questionCollectionApproved", to=False)
    ),
    "attestation-stale": Break(
        "attestation",
        "question_export",
        _set("exportedAt", to=lambda _, times: written_instant(times.log_read - 8 * DAY_MS)),
    ),
    "url-ip-literal": Break("attestation", "question_export", _set("source", to="https://0x7f.1/log")),
    "not-a-code": Break("attestation", "question_export", _set("operatorCode", to="Somebody by Name")),
    "approval-not-after-freeze": Break(
        "labels", "frozen_labels", _set("approval", "approvedAt", to=lambda document, _: document["frozenAt"])
    ),
    "refusal-label-with-claims": Break(
        "labels",
        "frozen_labels",
        lambda document, _: next(c for c in document["cases"] if c["shouldRefuse"])["relevantClaimIds"].append("late"),
    ),
    "prepared-case-not-labelled": Break("labels", "frozen_labels", lambda document, _: document["cases"].pop()),
    "question-digest-changed": Break("labels", "frozen_labels", _set("cases", 0, "questionSha256", to="0" * 64)),
    "run-operator-is-label-approver": Break("run_operator", "run_kit", _set("operatorCode", to=LABELLER)),
    "trace-not-after-approval": Break(
        "observations", "assembled_bundle", _set("observations", 0, "observedAt", to=_approved_at)
    ),
    "trace-in-the-future": Break(
        "observations",
        "assembled_bundle",
        _set("observations", 0, "observedAt", to=lambda _, times: written_instant(times.verdict + DAY_MS)),
    ),
    "frozen-case-not-observed": Break(
        "observations", "assembled_bundle", lambda document, _: document["observations"].pop()
    ),
    "more-than-one-model": Break(
        "observations", "assembled_bundle", _set("observations", 0, "modelVersion", to="invented-model-5")
    ),
    "more-than-one-currency": Break(
        "observations", "assembled_bundle", _set("observations", 0, "cost", "currency", to="USD")
    ),
    "content-field": Break(
        "observations", "assembled_bundle", _set("observations", 0, "answerText", to="an invented answer")
    ),
    "refusal-with-claims": Break(
        "observations", "assembled_bundle", _on_first_answered(lambda row: row.update(refused=True))
    ),
    "claim-without-citation": Break(
        "observations", "assembled_bundle", _on_first_answered(lambda row: row["claims"][0]["citations"].clear())
    ),
    "citation-not-decided": Break(
        "reviews", "assembled_bundle", _on_first_decided(lambda review: review["decisions"].pop())
    ),
    "reviewer-is-run-operator": Break(
        "reviews", "assembled_bundle", _on_first_decided(lambda review: review.update(reviewerCode=OPERATOR))
    ),
    "release-without-files": Break(
        "release_manifest", "assembled_bundle", lambda document, _: document["files"].clear()
    ),
}
