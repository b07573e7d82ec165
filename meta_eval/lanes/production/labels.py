"""Stage 5: frozen labels, the person's completed manifest, checked against what was prepared.

Source: the production evaluation document. Labels are frozen and approved before any trace exists, by somebody who
will not run the model. The dataset digest is of the canonical parsed manifest, so white space never breaks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from meta_eval.evidence.artifacts import ENVIRONMENTS, Artifact, Blocker, at_least, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import (
    SHA256,
    WRITTEN_INSTANT,
    Keyed,
    Leaf,
    Reading,
    kept_part,
    none_or,
    one_of,
    public_url,
    read,
    read_projection,
)
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.gated_tables import gated
from meta_eval.lanes.production.policy import Policy, replayed, unchanged_policy

KIND = "frozen-labels"
AUTHORITY = {
    "permitsModelRun": False,
    "permitsRelabelling": False,
    "statement": "Frozen means frozen: a changed label is another dataset digest, and no trace may predate approval.",
}


def freeze(
    labels: object,
    prepared: Artifact,
    *,
    labels_receipt: str,
    made_at: int,
    policy: Policy,
    round_name: str | None = None,
) -> Artifact:
    """The frozen labels of a round.

    Args:
        labels: the parsed completed manifest.
        prepared: the verified prepared manifest.
        labels_receipt: SHA-256 of the manifest file's bytes.
        made_at: when the freeze is checked, milliseconds since the epoch.
    """
    reading = read(labels, documents.labels(documents.environment_of(labels)), subject="labels")
    replay = {"labels": reading.projection, "prepared": extract_of(prepared)}
    return _build(
        replay,
        {"labels": {"receipt": labels_receipt}, "preparedManifest": {"digest": prepared["digest"]}},
        made_at=made_at,
        policy=policy,
        round_name=round_name,
    )


def manifest_of(frozen: Artifact) -> dict[str, Any]:
    """The exact manifest that frozen labels hold; its digest is the dataset digest."""
    manifest: dict[str, Any] = frozen["replay"]["labels"]
    return manifest


def kept_manifest(replay: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest in a later stage's replay, read again: whole where its labels are ready, else its projection.

    Raises:
        VerificationError: no ready labels could hold this manifest.
    """
    shape = documents.labels(documents.environment_of(replay["manifest"]))
    reading = read_projection(replay["manifest"], shape, subject="manifest")
    if replay["frozen"]["status"] == "ready" and reading.blockers:
        raise VerificationError("replay", "a manifest that no ready labels hold", "/replay/manifest")
    projection: dict[str, Any] = reading.projection
    return projection


def _question_digests_rule(value: object) -> str | None:
    fits = isinstance(value, dict) and all(
        documents.CASE_ID.rule_broken(case_id) is None and SHA256.rule_broken(sha256) is None
        for case_id, sha256 in value.items()
    )
    return None if fits else "not-question-digests"


def _extract_shape(environment: str) -> Keyed:
    return Keyed(
        {
            **documents.UPSTREAM.keys,
            "madeAt": WRITTEN_INSTANT,
            "environment": none_or(one_of(ENVIRONMENTS, rule="not-an-environment")),
            "source": none_or(public_url(environment)),
            "exportSha256": SHA256,
            "cases": Leaf(_question_digests_rule),
        }
    )


def extract_of(prepared: Artifact) -> dict[str, Any]:
    """What the freeze is checked against."""
    return {
        "status": prepared["status"],
        "policyDigest": prepared["policyDigest"],
        "madeAt": prepared["madeAt"],
        "environment": prepared["environment"],
        "source": prepared["result"]["source"],
        "exportSha256": prepared["inputs"]["questionExport"]["receipt"],
        "cases": {case["caseId"]: case["questionSha256"] for case in prepared["result"]["cases"]},
    }


def _build(
    replay: dict[str, Any], inputs: dict[str, dict[str, str]], *, made_at: int, policy: Policy, round_name: str | None
) -> Artifact:
    environment = documents.environment_of(replay["labels"])
    reading = read_projection(replay["labels"], documents.labels(environment), subject="labels")
    manifest = reading.value or {}
    extract_shape = _extract_shape(documents.environment_of(replay["prepared"]))
    prepared = kept_part(replay["prepared"], extract_shape, pointer="/replay/prepared")
    cases = [case for case in manifest.get("cases") or [] if case is not None]
    refusing = sum(case.get("shouldRefuse") is True for case in cases)
    answering = sum(case.get("shouldRefuse") is False for case in cases)
    least = policy.least_cases_per_class
    blockers = [
        *reading.blockers,
        *_binding_blockers(manifest, prepared, inputs["preparedManifest"]["digest"], policy),
        *_chronology_blockers(manifest, prepared, made_at),
        *_case_blockers(cases, prepared["cases"], reading),
        *at_least(len(cases), policy.least_cases, code="too-few-cases", subject="labels.cases"),
        *at_least(answering, least, code="too-few-answerable-cases", subject="labels.cases"),
        *at_least(refusing, least, code="too-few-refusal-cases", subject="labels.cases"),
    ]
    ready = not blockers
    return sealed(
        kind=KIND,
        environment=manifest.get("environment"),
        round_name=round_name,
        status="ready" if ready else "blocked",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(inputs, {"labels": "receipt", "preparedManifest": "digest"}),
        result={
            "datasetDigest": digest(manifest) if ready else None,
            "caseCount": len(cases),
            "answerableCount": answering,
            "refusalCount": refusing,
            "expectedClaimCount": sum(len(case.get("relevantClaimIds") or []) for case in cases),
        },
        replay={"labels": reading.projection, "prepared": prepared},
        authority=AUTHORITY,
    )


rebuild = replayed(_build)


def _binding_blockers(
    manifest: dict[str, Any], prepared: dict[str, Any], prepared_digest: str, policy: Policy
) -> list[Blocker]:
    """The manifest must be the prepared one, filled in: same digest, export, environment and source."""
    due = {
        "environment": (prepared["environment"], "environment-changed"),
        "source": (prepared["source"], "source-changed"),
        "exportSha256": (prepared["exportSha256"], "export-receipt-mismatch"),
        "preparedManifestDigest": (prepared_digest, "prepared-manifest-mismatch"),
    }
    blockers = [
        Blocker(code, f"labels.{key}")
        for key, (value, code) in due.items()
        if manifest.get(key) is not None and manifest[key] != value
    ]
    if prepared["status"] != "ready":
        blockers.append(Blocker("prepared-manifest-not-ready", "preparedManifest"))
    return blockers + unchanged_policy(prepared["policyDigest"], policy, subject="preparedManifest")


def _chronology_blockers(manifest: dict[str, Any], prepared: dict[str, Any], made_at: int) -> list[Blocker]:
    """Prepared, then frozen, then approved, and none of it in the future."""
    frozen = instant_ms(manifest.get("frozenAt"))
    approved = instant_ms((manifest.get("approval") or {}).get("approvedAt"))
    prepared_at = instant_ms(prepared["madeAt"])
    blockers = []
    if frozen is not None and prepared_at is not None and frozen < prepared_at:
        blockers.append(Blocker("frozen-before-preparation", "labels.frozenAt"))
    if frozen is not None and approved is not None and approved <= frozen:
        blockers.append(Blocker("approval-not-after-freeze", "labels.approval.approvedAt"))
    if frozen is not None and frozen > made_at:
        blockers.append(Blocker("freeze-in-the-future", "labels.frozenAt"))
    if approved is not None and approved > made_at:
        blockers.append(Blocker("approval-in-the-future", "labels.approval.approvedAt"))
    return blockers


def _case_blockers(cases: list[dict[str, Any]], prepared: dict[str, str], reading: Reading) -> list[Blocker]:
    rows: list[dict[str, Any]] = [
        {
            "case_id": case.get("caseId"),
            "question_sha256": case.get("questionSha256"),
            "should_refuse": case.get("shouldRefuse"),
            "claim_count": None if (claims := case.get("relevantClaimIds")) is None else len(claims),
            "distinct_claims": None if claims is None else len(set(claims)) + claims.count(None) - (None in claims),
        }
        for case in cases
    ]
    labelled = Counter(row["case_id"] for row in rows if row["case_id"] is not None)
    digests: dict[str, set[str]] = {}
    for row in rows:
        if row["case_id"] is not None and row["question_sha256"] is not None:
            digests.setdefault(row["case_id"], set()).add(row["question_sha256"])
    coverage = [
        {
            "case_id": case_id,
            "times_labelled": labelled[case_id],
            "prepared": case_id in prepared,
            "question_matches": case_id not in prepared or digests.get(case_id, set()) <= {prepared[case_id]},
        }
        for case_id in sorted(labelled.keys() | prepared.keys())
    ]
    place = "labels.cases[]"
    excused = {
        "case_id": reading.refused_at(f"{place}.caseId"),
        "question_sha256": reading.refused_at(f"{place}.questionSha256"),
        "should_refuse": reading.refused_at(f"{place}.shouldRefuse"),
        "claim_count": (lists_refused := reading.refused_at(f"{place}.relevantClaimIds")),
        "distinct_claims": lists_refused,
    }
    return [
        *gated("Labels", rows, subject="labels", least_rows=1, excused=excused),
        *gated("LabelledCases", coverage, subject="labelled_cases", least_rows=1),
    ]
