"""Stage 7: the assembled bundle, in which labels, observations, reviews and the release are joined and checked.

Source: the production evaluation document. Every rule that is broken is reported, not the first only. The artifact
keeps the sanitised documents, so that verification reruns every join and check at the recorded time; the bundle
itself is derived from them (`normalised_bundle`) and exists only where the assembly is ready.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, at_least, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import (
    CODE,
    SHA256,
    Keyed,
    Reading,
    kept_part,
    none_or,
    read,
    read_projection,
    whole_number,
)
from meta_eval.lanes.production import coverage, documents
from meta_eval.lanes.production.joined import normalised_bundle, reviewed_citations
from meta_eval.lanes.production.labels import kept_manifest, manifest_of
from meta_eval.lanes.production.policy import Policy, replayed, unchanged_policy
from meta_eval.lanes.production.run_kit import dealt_lanes

KIND = "assembled-bundle"
AUTHORITY = {
    "permitsPublication": False,
    "statement": "Joined evidence, not a verdict. Nothing here was measured, judged or labelled by this command.",
}


def assemble(
    frozen: Artifact,
    *,
    observations: object,
    reviews: object,
    evidence_reference: object,
    release_manifest: object,
    operator_code: str,
    receipts: Mapping[str, str],
    made_at: int,
    policy: Policy,
    kit: Artifact | None = None,
    round_name: str | None = None,
) -> Artifact:
    """The bundle of a round, ready or blocked.

    Args:
        frozen: the verified frozen labels.
        observations, reviews, evidence_reference, release_manifest: the parsed documents.
        operator_code: the pseudonym of whoever ran the model, as the caller states it.
        receipts: SHA-256 of each document's file, by input name.
        made_at: assembly time, milliseconds since the epoch.
        kit: the verified run kit; its lanes then say how many reviews each case must have.
    """
    environment = documents.environment_of(manifest_of(frozen))
    given = {
        "observations": (observations, documents.observations(environment)),
        "reviews": (reviews, documents.reviews(environment)),
        "evidenceReference": (evidence_reference, documents.evidence_reference(environment)),
        "releaseManifest": (release_manifest, documents.RELEASE_MANIFEST),
        "runOperator": ({"version": 1, "operatorCode": operator_code}, documents.RUN_OPERATOR),
    }
    replay: dict[str, Any] = {
        name: read(document, shape, subject=name).projection for name, (document, shape) in given.items()
    }
    replay["manifest"] = manifest_of(frozen)
    replay["frozen"] = {key: frozen[key] for key in documents.UPSTREAM.keys}
    replay["kit"] = None if kit is None else kit_extract(kit)
    inputs = {name: {"receipt": value} for name, value in receipts.items()}
    inputs["frozenLabels"] = {"digest": frozen["digest"]}
    if kit is not None:
        inputs["runKit"] = {"digest": kit["digest"]}
    return _build(replay, inputs, made_at=made_at, policy=policy, round_name=round_name)


def kit_extract(kit: Artifact) -> dict[str, Any]:
    """What a bundle needs of a run kit. Lanes follow from the labels and the overlap, so they are dealt again."""
    return {
        "status": kit["status"],
        "policyDigest": kit["policyDigest"],
        "datasetDigest": kit["result"]["datasetDigest"],
        "operatorCode": kit["result"]["operatorCode"],
        "overlap": kit["result"]["overlap"],
    }


_KIT_EXTRACT = Keyed(
    {
        **documents.UPSTREAM.keys,
        "datasetDigest": none_or(SHA256),
        "operatorCode": none_or(CODE),
        "overlap": whole_number(least=0, most=1_000_000, rule="not-a-number-of-cases"),
    }
)
_INPUTS = {
    "observations": "receipt",
    "reviews": "receipt",
    "evidenceReference": "receipt",
    "releaseManifest": "receipt",
    "frozenLabels": "digest",
    "runKit": "digest",
}


def _kept(replay: dict[str, Any], readings: dict[str, Reading]) -> dict[str, Any]:
    """The replay as this stage writes it, from a replay that somebody hands in. Raises VerificationError."""
    frozen = kept_part(replay["frozen"], documents.UPSTREAM, pointer="/replay/frozen")
    kit = None if replay["kit"] is None else kept_part(replay["kit"], _KIT_EXTRACT, pointer="/replay/kit")
    documents_kept = {name: reading.projection for name, reading in readings.items()}
    return {**documents_kept, "manifest": kept_manifest(replay), "frozen": frozen, "kit": kit}


def _build(
    replay: dict[str, Any], inputs: dict[str, dict[str, str]], *, made_at: int, policy: Policy, round_name: str | None
) -> Artifact:
    readings = _readings(replay)
    replay = _kept(replay, readings)
    blockers = [blocker for reading in readings.values() for blocker in reading.blockers]
    labels_ready = replay["frozen"]["status"] == "ready"
    if labels_ready:
        blockers += _binding_blockers(replay, readings, policy)
        blockers += _row_blockers(replay, readings, made_at, policy)
    else:
        blockers.append(Blocker("frozen-labels-not-ready", "frozenLabels"))
    ready = not blockers
    bundle = normalised_bundle(replay) if ready else None
    observed = coverage.present((readings["observations"].value or {}).get("observations"))
    reviewed = coverage.present((readings["reviews"].value or {}).get("reviews"))
    return sealed(
        kind=KIND,
        environment=documents.claimed_environment(replay["manifest"]),
        round_name=round_name,
        status="ready" if ready else "blocked",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(
            inputs,
            {name: kind for name, kind in _INPUTS.items() if name != "runKit" or replay["kit"] is not None},
            optional=frozenset({"evidenceReference"}),
        ),
        result={
            "datasetDigest": digest(replay["manifest"]) if labels_ready else None,
            "releaseDigest": bundle["releaseDigest"] if bundle else None,
            "bundleDigest": digest(bundle) if bundle else None,
            "caseCount": len(observed),
            "reviewCount": len(reviewed),
            "reviewedCitationCount": len(reviewed_citations(reviewed)),
            "reviewerCount": len({row["reviewerCode"] for row in reviewed if row.get("reviewerCode")}),
            "ignoredAggregates": sum(reading.ignored for reading in readings.values()),
        },
        replay=replay,
        authority=AUTHORITY,
    )


rebuild = replayed(_build)


def _readings(replay: dict[str, Any]) -> dict[str, Reading]:
    environment = documents.environment_of(replay["manifest"])
    shapes = {
        "observations": documents.observations(environment),
        "reviews": documents.reviews(environment),
        "evidenceReference": documents.evidence_reference(environment),
        "releaseManifest": documents.RELEASE_MANIFEST,
        "runOperator": documents.RUN_OPERATOR,
    }
    return {name: read_projection(replay[name], shape, subject=name) for name, shape in shapes.items()}


def _binding_blockers(replay: dict[str, Any], readings: dict[str, Reading], policy: Policy) -> list[Blocker]:
    """One dataset, one environment, one operator, one model and prompt, one currency, one policy, one release."""
    observations = readings["observations"].value or {}
    reviews = readings["reviews"].value or {}
    operator = (readings["runOperator"].value or {}).get("operatorCode")
    dataset = digest(replay["manifest"])
    due = [
        ("observations.datasetDigest", observations.get("datasetDigest"), dataset, "dataset-digest-mismatch"),
        ("reviews.datasetDigest", reviews.get("datasetDigest"), dataset, "dataset-digest-mismatch"),
        (
            "observations.environment",
            observations.get("environment"),
            documents.claimed_environment(replay["manifest"]),
            "environment-changed",
        ),
        ("observations.runOperatorCode", observations.get("runOperatorCode"), operator, "run-operator-mismatch"),
    ]
    blockers = [Blocker(code, place) for place, found, expected, code in due if found is not None and found != expected]
    if operator is not None and operator == replay["manifest"]["approval"]["approverCode"]:
        blockers.append(Blocker("run-operator-is-label-approver", "runOperator.operatorCode"))
    rows = coverage.present(observations.get("observations"))
    for key, code in (("modelVersion", "more-than-one-model"), ("promptVersion", "more-than-one-prompt")):
        if len(versions := {row[key] for row in rows if row.get(key)}) > 1:
            blockers.append(Blocker(code, f"observations.observations[].{key}", len(versions)))
    currencies = {cost["currency"] for row in rows if (cost := row.get("cost")) and cost.get("currency")}
    if len(currencies) > 1:
        blockers.append(Blocker("more-than-one-currency", "observations.observations[].cost", len(currencies)))
    blockers += unchanged_policy(replay["frozen"]["policyDigest"], policy, subject="frozenLabels")
    return blockers + _kit_blockers(replay["kit"], dataset, operator, policy) + _release_blockers(readings)


def _kit_blockers(kit: dict[str, Any] | None, dataset: str, operator: str | None, policy: Policy) -> list[Blocker]:
    if kit is None:
        return []
    blockers = unchanged_policy(kit["policyDigest"], policy, subject="runKit")
    if kit["status"] != "ready":
        return [*blockers, Blocker("run-kit-not-ready", "runKit")]
    if kit["datasetDigest"] != dataset:
        blockers.append(Blocker("dataset-digest-mismatch", "runKit"))
    if operator is not None and kit["operatorCode"] != operator:
        blockers.append(Blocker("run-operator-mismatch", "runKit"))
    return blockers


def _release_blockers(readings: dict[str, Reading]) -> list[Blocker]:
    """A release manifest names at least one file, in ascending order of path, each once."""
    files = coverage.present((readings["releaseManifest"].value or {}).get("files"))
    paths = [entry["path"] for entry in files if entry.get("path")]
    blockers = [] if files else [Blocker("release-without-files", "releaseManifest.files", 0)]
    if any(later <= earlier for earlier, later in itertools.pairwise(paths)):
        blockers.append(Blocker("release-paths-not-ascending", "releaseManifest.files"))
    return blockers


def _row_blockers(replay: dict[str, Any], readings: dict[str, Reading], made_at: int, policy: Policy) -> list[Blocker]:
    manifest = replay["manifest"]
    approval = manifest["approval"]
    observations, reviews = readings["observations"], readings["reviews"]
    observed = coverage.present((observations.value or {}).get("observations"))
    reviewed = coverage.present((reviews.value or {}).get("reviews"))
    operator = (readings["runOperator"].value or {}).get("operatorCode")
    reviewers = {row["reviewerCode"] for row in reviewed if row.get("reviewerCode")}
    return [
        *coverage.coverage_blockers(
            {case["caseId"]: case["shouldRefuse"] for case in manifest["cases"]},
            observed,
            reviewed,
            _reviews_due(replay["kit"], manifest["cases"]),
        ),
        *coverage.trace_blockers(
            observed,
            observations,
            frozen_at=instant_ms(manifest["frozenAt"]),
            approved_at=instant_ms(approval["approvedAt"]),
            now=made_at,
            policy=policy,
        ),
        *coverage.claim_blockers(observed, observations),
        *coverage.decision_blockers(observed, reviewed),
        *coverage.review_blockers(
            reviewed, observed, reviews, operator=operator, approver=approval["approverCode"], now=made_at
        ),
        *at_least(
            len(reviewed_citations(reviewed)),
            policy.least_reviewed_citations,
            code="too-few-reviewed-citations",
            subject="reviews",
        ),
        *at_least(len(reviewers), policy.least_reviewers, code="too-few-reviewers", subject="reviews"),
    ]


def _reviews_due(kit: dict[str, Any] | None, cases: list[dict[str, Any]]) -> dict[str, int] | None:
    if kit is None or kit["status"] != "ready":
        return None
    lanes = dealt_lanes(cases, kit["datasetDigest"], kit["overlap"])
    return Counter(case_id for lane in lanes.values() for case_id in lane)
