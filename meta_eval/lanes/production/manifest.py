"""Stage 4: the prepared manifest, which turns exported questions into blank labels without a word of them.

Source: the production evaluation document. The replay projection keeps the export's receipt, each question's
digest and normalised length, and case ids only where they are valid pseudonyms.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, at_least, made_at_ms, sealed
from meta_eval.evidence.documents import (
    SHA256,
    Keyed,
    Leaf,
    Listed,
    Reading,
    public_url,
    read,
    read_projection,
    whole_number,
)
from meta_eval.evidence.identifiers import contact_rule
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.gated_tables import gated
from meta_eval.lanes.production.policy import Policy, policy_of
from meta_eval.lanes.production.query_log import normalised_question

KIND = "prepared-manifest"
AUTHORITY = {
    "approvesLabels": False,
    "permitsModelRun": False,
    "statement": "Blank labels only. Preparing a manifest approves nothing; an independent person must label it.",
}


def prepare(
    export: object, *, export_receipt: str, made_at: int, policy: Policy, round_name: str | None = None
) -> Artifact:
    """The prepared manifest of a question export.

    Args:
        export: the parsed export document.
        export_receipt: SHA-256 of the export file's bytes.
        made_at: preparation time, milliseconds since the epoch.
    """
    return _build(_projected(export, policy), export_receipt, made_at=made_at, policy=policy, round_name=round_name)


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact again, from its own replay."""
    return _build(
        artifact["replay"]["export"],
        artifact["inputs"]["questionExport"]["receipt"],
        made_at=made_at_ms(artifact),
        policy=policy_of(artifact),
        round_name=artifact["round"],
    )


def labels_worksheet(prepared: Artifact) -> dict[str, Any]:
    """The labeller's blank form: every key that the frozen labels need, every judgement null."""
    return {
        "version": 1,
        "environment": prepared["environment"],
        "source": prepared["result"]["source"],
        "exportSha256": prepared["inputs"]["questionExport"]["receipt"],
        "preparedManifestDigest": prepared["digest"],
        "frozenAt": None,
        "cases": prepared["result"]["cases"],
        "approval": {
            "approverCode": None,
            "approvedAt": None,
            "evidenceUrl": None,
            "receiptSha256": None,
            "independentOfRunOperator": None,
        },
    }


def _question_rule(value: object, policy: Policy) -> str | None:
    if not isinstance(value, str):
        return "not-text"
    if contact_rule(value) is not None:
        return "contact-bearing-question"
    if not normalised_question(value):
        return "empty-question"
    return "over-length-question" if len(value) > policy.longest_question else None


def _export_shape(environment: str, policy: Policy) -> Keyed:
    case = Keyed({"caseId": documents.CASE_ID, "question": Leaf(functools.partial(_question_rule, policy=policy))})
    return _document_shape(environment, case)


def _projected_shape(environment: str) -> Keyed:
    """As the export, each accepted question replaced by its digest and length."""
    hashed = {
        "caseId": documents.CASE_ID,
        "questionSha256": SHA256,
        "normalizedLength": whole_number(least=1, most=1_000_000, rule="not-a-length"),
        "question": Leaf(lambda _: "content-field"),
    }
    return _document_shape(environment, Keyed(hashed, optional=frozenset(hashed) - {"caseId"}))


def _document_shape(environment: str, case: Keyed) -> Keyed:
    return Keyed(
        {
            "version": documents.VERSION_1,
            "environment": documents.ENVIRONMENT,
            "source": public_url(environment),
            "cases": Listed(case),
        }
    )


def _projected(export: object, policy: Policy) -> Any:
    reading = read(export, _export_shape(documents.environment_of(export), policy), subject="export")
    cases = reading.projection.get("cases") if isinstance(reading.projection, dict) else None
    if not isinstance(cases, list):
        return reading.projection
    return {**reading.projection, "cases": [_hashed(case) for case in cases]}


def _hashed(case: dict[str, Any]) -> dict[str, Any]:
    """A case with its question, where it was accepted, replaced by its digest and length."""
    question = case.get("question")
    if not isinstance(question, str):
        return case
    normalised = normalised_question(question)
    kept = {key: value for key, value in case.items() if key != "question"}
    sha = hashlib.sha256(normalised.encode()).hexdigest()
    return {**kept, "questionSha256": sha, "normalizedLength": len(normalised)}


def _build(projection: Any, export_receipt: str, *, made_at: int, policy: Policy, round_name: str | None) -> Artifact:
    reading = read_projection(projection, _projected_shape(documents.environment_of(projection)), subject="export")
    document = reading.value or {}
    cases = [case for case in document.get("cases") or [] if case is not None]
    blockers = reading.blockers + _case_blockers(cases, reading, policy)
    ready = not blockers
    blank = (
        [
            {**{key: case[key] for key in ("caseId", "questionSha256")}, "shouldRefuse": None, "relevantClaimIds": None}
            for case in sorted(cases, key=lambda case: case["caseId"])
        ]
        if ready
        else []
    )
    return sealed(
        kind=KIND,
        environment=document.get("environment"),
        round_name=round_name,
        status="ready" if ready else "blocked",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs={"questionExport": {"receipt": export_receipt}},
        result={"source": document.get("source"), "caseCount": len(cases), "cases": blank},
        replay={"export": reading.projection},
        authority=AUTHORITY,
    )


def _case_blockers(cases: list[dict[str, Any]], reading: Reading, policy: Policy) -> list[Blocker]:
    rows = [
        {
            "case_id": case.get("caseId"),
            "question_sha256": case.get("questionSha256"),
            "normalized_length": case.get("normalizedLength"),
        }
        for case in cases
    ]
    questions_refused = reading.refused_at("export.cases[].question")
    return [
        *gated(
            "ExportedCases",
            rows,
            subject="exported_cases",
            least_rows=1,
            excused={
                "case_id": reading.refused_at("export.cases[].caseId"),
                "question_sha256": questions_refused,
                "normalized_length": questions_refused,
            },
        ),
        *at_least(len(cases), policy.least_cases, code="too-few-cases", subject="export.cases"),
    ]
