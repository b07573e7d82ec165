"""A whole good production round in memory, which each test breaks in one named way.

Everything here is invented. Case `n` is answerable when `n` is below `answerable`, and must be refused otherwise.
Answerable cases are answered rightly with one expected claim and one supported citation, refusals are refused.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import canonical_bytes, receipt
from meta_eval.evidence.chronology import DAY_MS, instant_ms, written_instant
from meta_eval.lanes.production import bundle, labels, manifest, metrics, run_kit
from meta_eval.lanes.production.policy import CURRENT_POLICY, Policy

MINUTE = 60_000
START = instant_ms("2026-11-01T09:00:00.000Z") or 0
PREPARED_AT = START
FROZEN_AT = START + 60 * MINUTE
APPROVED_AT = START + 120 * MINUTE
OBSERVED_AT = START + DAY_MS
REVIEWED_AT = START + 2 * DAY_MS
ASSEMBLED_AT = START + 3 * DAY_MS
HOSTS = {"production": "https://evidence.metmuseum.org", "rehearsal": "https://evidence.museum.example"}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class World:
    """The documents of a round, each made valid from the stage before it, each open to being broken."""

    cases: int = 60
    answerable: int = 40
    environment: str = "production"
    overlap: int = 0
    policy: Policy = CURRENT_POLICY
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return HOSTS[self.environment]

    def case_id(self, n: int) -> str:
        return f"case-{sha(str(n))[:20]}"

    def export(self) -> dict[str, Any]:
        return {
            "version": 1,
            "environment": self.environment,
            "source": f"{self.host}/log",
            "cases": [
                {"caseId": self.case_id(n), "question": f"What is the story of object number {n}?"}
                for n in range(self.cases)
            ],
        }

    def prepared(self, export: Any = None, *, made_at: int = PREPARED_AT) -> Artifact:
        document = self.export() if export is None else export
        return manifest.prepare(
            document, export_receipt=receipt(canonical_bytes(document)), made_at=made_at, policy=self.policy
        )

    def labels(self) -> dict[str, Any]:
        document = copy.deepcopy(manifest.labels_worksheet(self.prepared()))
        index = {self.case_id(n): n for n in range(self.cases)}
        for case in document["cases"]:
            n = index[case["caseId"]]
            case["shouldRefuse"] = n >= self.answerable
            case["relevantClaimIds"] = [] if n >= self.answerable else [f"claim-{n}"]
        document["frozenAt"] = written_instant(FROZEN_AT)
        document["approval"] = {
            "approverCode": "APP-1A",
            "approvedAt": written_instant(APPROVED_AT),
            "evidenceUrl": f"{self.host}/approval",
            "receiptSha256": sha("approval"),
            "independentOfRunOperator": True,
        }
        return document

    def frozen(self, document: Any = None, *, made_at: int = APPROVED_AT) -> Artifact:
        document = self.labels() if document is None else document
        return labels.freeze(
            document, self.prepared(), labels_receipt=sha("labels"), made_at=made_at, policy=self.policy
        )

    def operator(self) -> dict[str, Any]:
        return {"version": 1, "operatorCode": "OPS-7Q", "overlap": self.overlap}

    def kit(self, operator: Any = None, frozen: Artifact | None = None, *, made_at: int = APPROVED_AT) -> Artifact:
        return run_kit.prepare_run(
            frozen or self.frozen(),
            self.operator() if operator is None else operator,
            made_at=made_at,
            policy=self.policy,
        )

    def observations(self) -> dict[str, Any]:
        document = run_kit.observation_worksheet(self.kit())
        index = {self.case_id(n): n for n in range(self.cases)}
        for row in document["observations"]:
            n = index[row["caseId"]]
            refused = n >= self.answerable
            row |= {
                "traceSha256": sha(f"trace-{n}"),
                "observedAt": written_instant(OBSERVED_AT + n),
                "modelVersion": "assist-4.1",
                "promptVersion": "p-12",
                "refused": refused,
                "claims": [] if refused else [{"claimId": f"claim-{n}", "citations": [f"{self.host}/objects/{n}"]}],
                "latencyMs": 100 + n,
                "cost": {"amount": "0.002", "currency": "EUR", "basis": "production-instrumentation"},
            }
        return document

    def reviews(self, observations: Any = None) -> dict[str, Any]:
        kit = self.kit()
        emitted = {row["caseId"]: row["claims"] for row in (observations or self.observations())["observations"]}
        entries = []
        for lane, reviewer in (("A", "REV-A1"), ("B", "REV-B2")):
            for entry in run_kit.review_worksheet(kit, lane)["reviews"]:
                case_id = entry["caseId"]
                entries.append(
                    entry
                    | {
                        "reviewerCode": reviewer,
                        "reviewedAt": written_instant(REVIEWED_AT),
                        "evidenceUrl": f"{self.host}/reviews",
                        "receiptSha256": sha(f"review-{lane}-{case_id}"),
                        "decisions": [
                            {"claimId": claim["claimId"], "citation": citation, "supported": True}
                            for claim in emitted[case_id]
                            for citation in claim["citations"]
                        ],
                    }
                )
        return {"version": 1, "datasetDigest": kit["result"]["datasetDigest"], "reviews": entries}

    def evidence_reference(self) -> dict[str, Any]:
        return {"version": 1, "evidenceUrl": f"{self.host}/run", "receiptSha256": sha("run")}

    def release(self) -> dict[str, Any]:
        return {
            "version": 1,
            "files": [{"path": path, "sha256": sha(path)} for path in ("app/answer.py", "app/index.json")],
        }

    def assembled(self, *, made_at: int = ASSEMBLED_AT, frozen: Artifact | None = None, **given: Any) -> Artifact:
        """The bundle; `observations=`, `reviews=` and so on replace a valid document, `kit=None` leaves it out."""
        observations = given.get("observations") or self.observations()
        return bundle.assemble(
            frozen or self.frozen(),
            observations=observations,
            reviews=given.get("reviews") or self.reviews(),
            evidence_reference=given.get("evidence_reference") or self.evidence_reference(),
            release_manifest=given.get("release") or self.release(),
            operator_code=given.get("operator_code", "OPS-7Q"),
            receipts={name: sha(name) for name in ("observations", "reviews", "evidenceReference", "releaseManifest")},
            made_at=made_at,
            policy=given.get("policy", self.policy),
            kit=given["kit"] if "kit" in given else self.kit(),
        )

    def evaluated(self, assembled: Artifact | None = None, *, made_at: int = ASSEMBLED_AT, **given: Any) -> Artifact:
        return metrics.evaluate(
            given.get("frozen") or self.frozen(),
            assembled or self.assembled(),
            made_at=made_at,
            policy=given.get("policy", self.policy),
        )


def blockers(artifact: Artifact) -> set[tuple[str, str, int]]:
    """An artifact's blockers as a set, for comparing with what a test expects."""
    return {(entry["code"], entry["subject"], entry["count"]) for entry in artifact["blockers"]}


def deep(value: Any) -> Any:
    """A copy that shares nothing, through JSON, so that only JSON values survive."""
    return json.loads(json.dumps(value))
