"""Stage 6: the run kit, blank worksheets for the operator who runs the model and for the people who review.

Source: the production evaluation document. The kit prepares and runs nothing. Cases are shuffled by the dataset
digest and dealt to two lanes, so that neither the operator nor a reviewer chooses who reviews what. Worksheets
carry no question digest, approval reference or approver code.
"""

from __future__ import annotations

import hashlib
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import kept_part, read, read_projection
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.labels import kept_manifest, manifest_of
from meta_eval.lanes.production.policy import Policy, replayed, unchanged_policy

KIND = "run-kit"
LANES = ("A", "B")
AUTHORITY = {
    "executesModel": False,
    "statement": "Blank worksheets only. No model was run, and no reviewer or decision was made up.",
}


def prepare_run(
    frozen: Artifact,
    operator: object,
    *,
    made_at: int,
    policy: Policy,
    operator_receipt: str | None = None,
    round_name: str | None = None,
) -> Artifact:
    """The run kit of frozen labels.

    Args:
        frozen: the verified frozen labels.
        operator: `{version: 1, operatorCode, overlap?}`, the run operator's document.
        made_at: preparation time, milliseconds since the epoch.
        operator_receipt: SHA-256 of the document's file, where it came in one.
    """
    reading = read(operator, documents.RUN_OPERATOR, subject="runOperator")
    replay = {
        "manifest": manifest_of(frozen),
        "frozen": {key: frozen[key] for key in documents.UPSTREAM.keys},
        "runOperator": reading.projection,
    }
    inputs = {"frozenLabels": {"digest": frozen["digest"]}}
    if operator_receipt is not None:
        inputs["runOperator"] = {"receipt": operator_receipt}
    return _build(replay, inputs, made_at=made_at, policy=policy, round_name=round_name)


def dealt_lanes(cases: list[dict[str, Any]], dataset_digest: str, overlap: int) -> dict[str, list[str]]:
    """The case ids of each lane, ascending.

    The first `overlap` cases of the shuffle go to both lanes. The others are dealt in turn, class by class, so
    that lane sizes differ by at most one, overall and within each class.
    """
    order = sorted(cases, key=lambda case: hashlib.sha256(f"{dataset_digest}:{case['caseId']}".encode()).digest())
    shared, dealt = order[:overlap], sorted(order[overlap:], key=lambda case: case["shouldRefuse"])
    return {lane: sorted(case["caseId"] for case in [*shared, *dealt[start::2]]) for start, lane in enumerate(LANES)}


def observation_worksheet(kit: Artifact) -> dict[str, Any]:
    """The operator's blank form, one observation a case."""
    blank = dict.fromkeys(
        ("traceSha256", "observedAt", "modelVersion", "promptVersion", "refused", "claims", "latencyMs", "cost")
    )
    case_ids = sorted({case_id for lane in LANES for case_id in kit["result"]["lanes"][lane]})
    return {
        "version": 1,
        "datasetDigest": kit["result"]["datasetDigest"],
        "environment": kit["environment"],
        "runOperatorCode": kit["result"]["operatorCode"],
        "observations": [{"caseId": case_id, **blank} for case_id in case_ids],
    }


def review_worksheet(kit: Artifact, lane: str) -> dict[str, Any]:
    """One lane's blank review form."""
    blank = dict.fromkeys(("reviewerCode", "reviewedAt", "evidenceUrl", "receiptSha256", "decisions"))
    return {
        "version": 1,
        "datasetDigest": kit["result"]["datasetDigest"],
        "reviews": [{"caseId": case_id, **blank} for case_id in kit["result"]["lanes"][lane]],
    }


def _build(
    replay: dict[str, Any], inputs: dict[str, dict[str, str]], *, made_at: int, policy: Policy, round_name: str | None
) -> Artifact:
    operator = read_projection(replay["runOperator"], documents.RUN_OPERATOR, subject="runOperator")
    code = (operator.value or {}).get("operatorCode")
    overlap = (operator.value or {}).get("overlap") or 0
    frozen = kept_part(replay["frozen"], documents.UPSTREAM, pointer="/replay/frozen")
    manifest = kept_manifest(replay)
    ready_labels = frozen["status"] == "ready"
    blockers = operator.blockers + unchanged_policy(frozen["policyDigest"], policy, subject="frozenLabels")
    if not ready_labels:
        blockers.append(Blocker("frozen-labels-not-ready", "frozenLabels"))
    else:
        blockers += _separation_blockers(manifest, code, overlap, made_at)
    ready = not blockers
    dataset_digest = digest(manifest) if ready else None
    lanes = dealt_lanes(manifest["cases"], dataset_digest, overlap) if dataset_digest else {}
    return sealed(
        kind=KIND,
        environment=documents.claimed_environment(manifest),
        round_name=round_name,
        status="ready" if ready else "blocked",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(
            inputs, {"frozenLabels": "digest", "runOperator": "receipt"}, optional=frozenset({"runOperator"})
        ),
        result={
            "datasetDigest": dataset_digest,
            "operatorCode": code,
            "overlap": overlap,
            "caseCount": len(manifest["cases"]) if ready else 0,
            "lanes": lanes,
        },
        replay={"manifest": manifest, "frozen": frozen, "runOperator": operator.projection},
        authority=AUTHORITY,
    )


rebuild = replayed(_build)


def _separation_blockers(
    manifest: dict[str, Any], operator_code: str | None, overlap: int, made_at: int
) -> list[Blocker]:
    approval = manifest["approval"]
    blockers = []
    if operator_code == approval["approverCode"]:
        blockers.append(Blocker("run-operator-is-label-approver", "runOperator.operatorCode"))
    if overlap > len(manifest["cases"]):
        blockers.append(Blocker("overlap-exceeds-cases", "runOperator.overlap", overlap))
    approved = instant_ms(approval["approvedAt"])
    if approved is None or approved > made_at:
        blockers.append(Blocker("approval-in-the-future", "labels.approval.approvedAt"))
    return blockers
