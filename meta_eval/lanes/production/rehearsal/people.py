"""The people's parts of a rehearsal, by stated rules, so that nobody has to be made up as they go.

- The operator attests that the invented log is a rehearsal's.
- The labeller reads the exported questions. A question that holds one of `REFUSED_TOPICS` must be refused; every
  other one expects one claim, named after what it asks for. With questions from a file, the file's intent decides.
- Production answers: nearly every case rightly, a few wrongly, as `SLIPS` says.
- Two reviewers judge every citation of their lane, and find a few unsupported.

All choices hang on the case id alone, so the same round is played the same way everywhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.chronology import DAY_MS, written_instant

Document = dict[str, Any]

HOST = "https://evidence.museum.example"
LABELLER, OPERATOR, ATTESTER = "LAB-4K9", "OPS-7Q2K", "ATT-1M3"
REVIEWERS = {"A": "REV-A77", "B": "REV-B12"}
REFUSED_TOPICS = ("auction", "insurance", "medicine", "legal advice")
OVERLAP = 60
"""Cases that both lanes review, so that agreement can be measured."""

# In a thousand: how often production or a reviewer slips, and in which way.
SLIPS: Mapping[str, int] = {
    "extra-claim": 30,
    "no-claim": 25,
    "refusal-answered": 20,
    "unsupported-citation": 20,
    "slow": 20,
}


@dataclass(frozen=True)
class Timeline:
    """When each part of a rehearsal is played, in milliseconds since the epoch, back from its verdict."""

    verdict: int

    @property
    def log_read(self) -> int:
        return self.verdict - 4 * DAY_MS

    def after_log(self, hours: int) -> int:
        """An instant this many hours after the log was read."""
        return self.log_read + hours * 3_600_000

    @property
    def observed(self) -> int:
        return self.verdict - 2 * DAY_MS

    @property
    def reviewed(self) -> int:
        return self.verdict - DAY_MS


def draw(case_id: str, purpose: str, options: int = 1000) -> int:
    """A number below `options` that hangs on the case and purpose alone."""
    return int.from_bytes(hashlib.sha256(f"{case_id}:{purpose}".encode()).digest()[:8], "big") % options


def attestation(template: Document, times: Timeline) -> Document:
    """The operator's completed attestation."""
    return {
        **template,
        "environment": "rehearsal",
        "source": f"{HOST}/invented-query-log",
        "exportedAt": written_instant(times.log_read),
        "operatorCode": ATTESTER,
        "questionCollectionApproved": True,
    }


def labels(worksheet: Document, export: Document, intents: Mapping[str, str], times: Timeline) -> Document:
    """The labeller's completed manifest, with its approval.

    Args:
        intents: by question, an intent from a questions file; `oos` must be refused. Empty for an invented log.
    """
    questions = {case["caseId"]: case["question"] for case in export["cases"]}
    cases = []
    for case in worksheet["cases"]:
        claim = _expected_claim(questions[case["caseId"]], intents)
        cases.append({**case, "shouldRefuse": claim is None, "relevantClaimIds": [] if claim is None else [claim]})
    return {
        **worksheet,
        "cases": cases,
        "frozenAt": written_instant(times.after_log(3)),
        "approval": {
            "approverCode": LABELLER,
            "approvedAt": written_instant(times.after_log(4)),
            "evidenceUrl": f"{HOST}/approvals/1",
            "receiptSha256": _sha("approval"),
            "independentOfRunOperator": True,
        },
    }


def _expected_claim(question: str, intents: Mapping[str, str]) -> str | None:
    """The claim that a right answer makes, or None where a right answer is a refusal."""
    if intents:
        intent = intents[question]
        return None if intent == "oos" else _claim_id(intent)
    folded = question.casefold()
    if any(topic in folded for topic in REFUSED_TOPICS):
        return None
    return _claim_id(folded)


def _claim_id(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:80]


def pseudonym_key(seed: int) -> bytes:
    """A round's pseudonym key that is no secret, so that a rehearsal can be played again to the byte."""
    return hashlib.sha256(f"rehearsal:key:{seed}".encode()).digest()


def run_operator() -> Document:
    """Who runs the model, and how many cases both lanes review."""
    return {"version": 1, "operatorCode": OPERATOR, "overlap": OVERLAP}


def observations(worksheet: Document, frozen_labels: Document, times: Timeline, slips: Mapping[str, int]) -> Document:
    """The completed observation worksheet: what production did with each case."""
    expected = {case["caseId"]: case for case in frozen_labels["cases"]}
    rows = [_observed(row["caseId"], expected[row["caseId"]], times, slips) for row in worksheet["observations"]]
    return {**worksheet, "observations": rows}


def _observed(case_id: str, label: Document, times: Timeline, slips: Mapping[str, int]) -> Document:
    def slip(kind: str) -> bool:
        return draw(case_id, kind) < slips[kind]

    refused = label["shouldRefuse"] and not slip("refusal-answered")
    claims = [] if slip("no-claim") else list(label["relevantClaimIds"])
    if claims and slip("extra-claim"):
        claims.append("claim-that-nobody-expected")
    latency = 300 + draw(case_id, "latency", 4000)
    return {
        "caseId": case_id,
        "traceSha256": _sha(f"trace:{case_id}"),
        "observedAt": written_instant(times.observed + draw(case_id, "observed", 3_600_000)),
        "modelVersion": "invented-model-4.1",
        "promptVersion": "invented-prompt-12",
        "refused": refused,
        "claims": [
            {
                "claimId": claim,
                "citations": [f"{HOST}/records/{_sha(claim)[:12]}", f"{HOST}/catalogue/{_sha(claim)[:8]}"],
            }
            for claim in claims
        ],
        "latencyMs": latency + 12_000 if slip("slow") else latency,
        "cost": {
            "amount": f"0.00{100 + draw(case_id, 'cost', 900)}",
            "currency": "EUR",
            "basis": "production-instrumentation",
        },
    }


def reviews(
    worksheets: Mapping[str, Document], observed: Document, times: Timeline, slips: Mapping[str, int]
) -> Document:
    """Both lanes' completed reviews in one document."""
    emitted = {row["caseId"]: row["claims"] for row in observed["observations"]}
    entries = [
        _reviewed(entry["caseId"], lane, emitted[entry["caseId"]], times, slips)
        for lane, worksheet in sorted(worksheets.items())
        for entry in worksheet["reviews"]
    ]
    return {"version": 1, "datasetDigest": observed["datasetDigest"], "reviews": entries}


def _reviewed(case_id: str, lane: str, claims: list[Document], times: Timeline, slips: Mapping[str, int]) -> Document:
    decisions = []
    for claim in claims:
        for place, citation in enumerate(claim["citations"]):
            # Only a claim's second citation is ever found wanting, so the claim itself stays accepted.
            doubted = place > 0 and draw(case_id, f"citation:{claim['claimId']}") < slips["unsupported-citation"]
            # Of what both lanes review, lane B sees a little more than lane A, so that they can differ.
            spotted = not doubted and place > 0 and lane == "B" and draw(case_id, "second-look") < 60
            decisions.append({"claimId": claim["claimId"], "citation": citation, "supported": not (doubted or spotted)})
    return {
        "caseId": case_id,
        "reviewerCode": REVIEWERS[lane],
        "reviewedAt": written_instant(times.reviewed + draw(case_id, lane, 3_600_000)),
        "evidenceUrl": f"{HOST}/reviews/{lane.lower()}",
        "receiptSha256": _sha(f"review:{lane}:{case_id}"),
        "decisions": decisions,
    }


def evidence_reference() -> Document:
    """Where the run's own evidence is said to be kept."""
    return {"version": 1, "evidenceUrl": f"{HOST}/runs/1", "receiptSha256": _sha("run")}


def release_manifest() -> Document:
    """The invented release that was measured."""
    files = ("app/answer.py", "app/prompt.txt", "data/records.json")
    return {"version": 1, "files": [{"path": path, "sha256": _sha(path)} for path in files]}


def _sha(text: str) -> str:
    return hashlib.sha256(f"rehearsal:{text}".encode()).hexdigest()
