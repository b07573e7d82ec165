"""The people of a round: each function puts into the inbox what a person would, made from the worksheets at hand.

Everything is invented. `CANARIES` are texts that must never leave the inbox and the private folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval_tests.valid_world import HOSTS, MINUTE, START, sha

CANARIES = ("canaryquestion", "canaryid")


@dataclass
class People:
    """The people of one round. `begin` is when the log is attested; all else follows it."""

    home: Path
    round: str
    environment: str = "production"
    cases: int = 60
    answerable: int = 40
    begin: int = START

    @property
    def folder(self) -> Path:
        return self.home / "rounds" / self.round

    @property
    def host(self) -> str:
        return HOSTS[self.environment]

    def at(self, **after: int) -> str:
        """An instant so many minutes or days after the round began."""
        return written_instant(self.begin + after.get("minutes", 0) * MINUTE + after.get("days", 0) * DAY_MS)

    def put(self, name: str, value: Any) -> Path:
        path = self.folder / "inbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def worksheet(self, name: str) -> Any:
        """The newest worksheet of a name."""
        files = sorted((self.folder / "worksheets").glob(f"{name}.*.json"), key=lambda path: path.stat().st_mtime_ns)
        return json.loads(files[-1].read_bytes())

    def query_log(self, rows: int | None = None) -> Path:
        asked = written_instant(self.begin - DAY_MS)
        consent = {"contract": "research-ai-evaluation-v1", "granted": True, "recordedAt": asked}
        return self.put(
            "ai-query-log.json",
            [
                {
                    "queryId": f"canaryid-{n}",
                    "question": f"What is the canaryquestion of invented picture {n}?",
                    "askedAt": asked,
                    "outcome": "answered",
                    "consent": consent,
                }
                for n in range(self.cases if rows is None else rows)
            ],
        )

    def attestation(self) -> Path:
        return self.put(
            "attestation.json",
            self.worksheet("attestation-template")
            | {
                "environment": self.environment,
                "source": f"{self.host}/log",
                "exportedAt": self.at(),
                "operatorCode": "OPR-5T",
                "questionCollectionApproved": True,
            },
        )

    def labels(self) -> Path:
        document = self.worksheet("labels-worksheet")
        for n, case in enumerate(document["cases"]):
            case["shouldRefuse"] = n >= self.answerable
            case["relevantClaimIds"] = [] if n >= self.answerable else [f"claim-{n}"]
        approval = {
            "approverCode": "APP-1A",
            "approvedAt": self.at(minutes=2),
            "evidenceUrl": f"{self.host}/approval",
            "receiptSha256": sha("approval"),
            "independentOfRunOperator": True,
        }
        return self.put("labels.json", document | {"frozenAt": self.at(minutes=1), "approval": approval})

    def run_operator(self) -> Path:
        return self.put("run-operator.json", {"version": 1, "operatorCode": "OPS-7Q", "overlap": 0})

    def observations(self, wrong: int = 0) -> Path:
        """What production answered; `wrong` answerable cases get a claim that nobody expects."""
        document = self.worksheet("observation-worksheet")
        claims = {case["caseId"]: case["relevantClaimIds"] for case in self._inbox("labels.json")["cases"]}
        for n, row in enumerate(document["observations"]):
            expected = claims[row["caseId"]]
            told = ["claim-wrong"] if expected and n < wrong else expected
            row |= {
                "traceSha256": sha(f"trace-{n}"),
                "observedAt": self.at(minutes=3 + n),
                "modelVersion": "assist-4.1",
                "promptVersion": "p-12",
                "refused": not expected,
                "claims": [{"claimId": claim, "citations": [f"{self.host}/objects/{n}"]} for claim in told],
                "latencyMs": 100 + n,
                "cost": {"amount": "0.002", "currency": "EUR", "basis": "production-instrumentation"},
            }
        return self.put("observations.json", document)

    def reviews(self) -> Path:
        emitted = {row["caseId"]: row["claims"] for row in self._inbox("observations.json")["observations"]}
        sheets = {code: self.worksheet(f"review-worksheet-{lane}") for lane, code in (("a", "REV-A1"), ("b", "REV-B2"))}
        entries = [
            entry
            | {
                "reviewerCode": code,
                "reviewedAt": self.at(days=1),
                "evidenceUrl": f"{self.host}/reviews",
                "receiptSha256": sha(f"review-{code}-{entry['caseId']}"),
                "decisions": [
                    {"claimId": claim["claimId"], "citation": citation, "supported": True}
                    for claim in emitted[entry["caseId"]]
                    for citation in claim["citations"]
                ],
            }
            for code, sheet in sheets.items()
            for entry in sheet["reviews"]
        ]
        return self.put("reviews.json", sheets["REV-A1"] | {"reviews": entries})

    def evidence_reference(self) -> Path:
        document = {"version": 1, "evidenceUrl": f"{self.host}/run", "receiptSha256": sha("run")}
        return self.put("evidence-reference.json", document)

    def release_manifest(self) -> Path:
        files = [{"path": path, "sha256": sha(path)} for path in ("app/answer.py", "app/index.json")]
        return self.put("release-manifest.json", {"version": 1, "files": files})

    def _inbox(self, name: str) -> Any:
        return json.loads((self.folder / "inbox" / name).read_bytes())


Runner = Callable[[str, str], Any]


def play(people: People, run: Runner, *, wrong: int = 0) -> None:
    """A whole round: people and stages in turn. `run` is called with stages, space between, and their clock."""
    people.query_log()
    run("log_attestation", people.at())
    people.attestation()
    run("question_export prepared_manifest", people.at())
    people.labels()
    people.run_operator()
    run("frozen_labels run_kit", people.at(minutes=2))
    people.observations(wrong=wrong)
    people.reviews()
    people.evidence_reference()
    people.release_manifest()
    run("assembled_bundle production_metrics", people.at(days=1))


def artifacts(people: People) -> Mapping[str, list[dict[str, Any]]]:
    """By kind, what the line wrote, oldest first."""
    return {
        kind.name: [json.loads(path.read_bytes()) for path in sorted(kind.glob("*.json"))]
        for kind in sorted((people.folder / "artifacts").glob("*"))
    }
