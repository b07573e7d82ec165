"""Stage 8: the metrics, recomputed from the rows of frozen labels and a ready bundle, and from nothing else.

Source: the production evaluation document, metrics section. Each metric is a pure step over the same rows. A ratio
with an empty denominator is null and misses its threshold. Intervals and agreement are for the reader, never a gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, at_least, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import SHA256, Keyed, kept_part, none_or, whole_number
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.figures import figures_of
from meta_eval.lanes.production.joined import normalised_bundle
from meta_eval.lanes.production.labels import kept_manifest, manifest_of
from meta_eval.lanes.production.policy import Policy, replayed, unchanged_policy

KIND = "production-metrics"
AUTHORITY = {
    "establishesNovelty": False,
    "approvesFinding": False,
    "permitsPublication": False,
    "permitsOutreach": False,
    "permitsPayment": False,
    "permitsModelRun": False,
    "statement": "Figures about one round. They approve no finding and permit no publication, contact, payment or run.",
}
Row = dict[str, Any]


def evaluate(
    frozen: Artifact, assembled: Artifact, *, made_at: int, policy: Policy, round_name: str | None = None
) -> Artifact:
    """The metrics of a round.

    Args:
        frozen: the verified frozen labels.
        assembled: the verified assembled bundle; a blocked one blocks the metrics.
        made_at: evaluation time, milliseconds since the epoch.
    """
    bundle = normalised_bundle(assembled["replay"]) if assembled["status"] == "ready" else None
    replay = {
        "manifest": manifest_of(frozen),
        "bundle": bundle,
        "frozen": {key: frozen[key] for key in documents.UPSTREAM.keys},
        "assembled": assembled_extract(assembled),
    }
    inputs = {"frozenLabels": {"digest": frozen["digest"]}, "assembledBundle": {"digest": assembled["digest"]}}
    return _build(replay, inputs, made_at=made_at, policy=policy, round_name=round_name)


def assembled_extract(assembled: Artifact) -> Row:
    """What metrics need of an assembled bundle besides its cases."""
    return {
        **{key: assembled[key] for key in documents.UPSTREAM.keys},
        "bundleDigest": assembled["result"]["bundleDigest"],
        "frozenDigest": assembled["inputs"]["frozenLabels"]["digest"],
        "ignoredAggregates": assembled["result"]["ignoredAggregates"],
    }


_ASSEMBLED = Keyed(
    {
        **documents.UPSTREAM.keys,
        "bundleDigest": none_or(SHA256),
        "frozenDigest": SHA256,
        "ignoredAggregates": whole_number(least=0, most=2**53 - 1, rule="not-a-count"),
    }
)


def _kept(replay: Row) -> Row:
    """The replay as this stage writes it, from a replay that somebody hands in. Raises VerificationError."""
    frozen = kept_part(replay["frozen"], documents.UPSTREAM, pointer="/replay/frozen")
    bundle = replay["bundle"]
    if bundle is not None:
        shape = documents.normalised_bundle(documents.environment_of(replay["manifest"]))
        bundle = kept_part(bundle, shape, pointer="/replay/bundle")
    assembled = kept_part(replay["assembled"], _ASSEMBLED, pointer="/replay/assembled")
    ready = assembled["status"] == "ready"
    if ready is (bundle is None) or ready is (assembled["bundleDigest"] is None):
        raise VerificationError("replay", "a bundle exactly where an assembly is ready", "/replay/bundle")
    return {"manifest": kept_manifest(replay), "bundle": bundle, "frozen": frozen, "assembled": assembled}


def _build(
    replay: Row, inputs: dict[str, dict[str, str]], *, made_at: int, policy: Policy, round_name: str | None
) -> Artifact:
    replay = _kept(replay)
    environment = documents.claimed_environment(replay["manifest"])
    blockers = _binding_blockers(replay, inputs, policy)
    result: Row = {
        "datasetDigest": None,
        "releaseDigest": None,
        "bundleDigest": None,
        "metrics": None,
        "missed": [],
        "ignoredAggregates": replay["assembled"]["ignoredAggregates"],
    }
    if not blockers:
        labels = {case["caseId"]: case for case in replay["manifest"]["cases"]}
        cases = replay["bundle"]["cases"]
        blockers = _coverage_blockers(labels, cases, made_at, policy) + _independence_blockers(replay)
        if not blockers:
            metrics = figures_of(labels, cases, policy, seed=replay["assembled"]["bundleDigest"])
            result |= {
                "datasetDigest": replay["bundle"]["datasetDigest"],
                "releaseDigest": replay["bundle"]["releaseDigest"],
                "bundleDigest": replay["assembled"]["bundleDigest"],
                "metrics": metrics,
                "missed": sorted(name for name, metric in metrics.items() if metric.get("met") is False),
            }
    return sealed(
        kind=KIND,
        environment=environment,
        round_name=round_name,
        status=_status(blockers, result["missed"], environment),
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(inputs, {"frozenLabels": "digest", "assembledBundle": "digest"}),
        result=result,
        replay=replay,
        authority=AUTHORITY,
    )


rebuild = replayed(_build)


def _status(blockers: list[Blocker], missed: list[str], environment: str | None) -> str:
    if blockers:
        return "blocked"
    if missed:
        return "failed"
    # A rehearsal can never be taken for the real thing, not even by its status.
    return "passed" if environment == "production" else "rehearsed"


def _binding_blockers(replay: Row, inputs: dict[str, dict[str, str]], policy: Policy) -> list[Blocker]:
    """The bundle must be ready, whole, of these very labels, and all of it under the policy in force."""
    assembled, frozen, bundle = replay["assembled"], replay["frozen"], replay["bundle"]
    blockers = unchanged_policy(frozen["policyDigest"], policy, subject="frozenLabels")
    blockers += unchanged_policy(assembled["policyDigest"], policy, subject="assembledBundle")
    if frozen["status"] != "ready":
        blockers.append(Blocker("frozen-labels-not-ready", "frozenLabels"))
    if assembled["status"] != "ready" or bundle is None:
        return [*blockers, Blocker("bundle-not-ready", "assembledBundle")]
    if assembled["frozenDigest"] != inputs["frozenLabels"]["digest"]:
        blockers.append(Blocker("labels-differ-from-bundle", "assembledBundle"))
    if bundle["environment"] != replay["manifest"].get("environment"):
        blockers.append(Blocker("environment-changed", "assembledBundle"))
    if bundle["datasetDigest"] != digest(replay["manifest"]):
        blockers.append(Blocker("dataset-digest-mismatch", "assembledBundle"))
    if digest(bundle) != assembled["bundleDigest"]:
        blockers.append(Blocker("bundle-digest-mismatch", "assembledBundle"))
    return blockers


def _coverage_blockers(labels: Mapping[str, Row], cases: list[Row], made_at: int, policy: Policy) -> list[Blocker]:
    """Alignment, class sizes, reviewers and freshness again, from the rows at hand and today's clock."""
    refusing = sum(label["shouldRefuse"] for label in labels.values())
    citations = sum(len(claim["citations"]) for case in cases for claim in case["claims"])
    reviewers = {review["reviewerCode"] for case in cases for review in case["reviews"]}
    least = policy.least_cases_per_class
    blockers = [
        *at_least(len(cases), policy.least_cases, code="too-few-cases", subject="bundle"),
        *at_least(len(labels) - refusing, least, code="too-few-answerable-cases", subject="bundle"),
        *at_least(refusing, least, code="too-few-refusal-cases", subject="bundle"),
        *at_least(citations, policy.least_reviewed_citations, code="too-few-reviewed-citations", subject="bundle"),
        *at_least(len(reviewers), policy.least_reviewers, code="too-few-reviewers", subject="bundle"),
    ]
    if [case["caseId"] for case in cases] != sorted(labels):
        blockers.append(Blocker("cases-differ-from-labels", "bundle"))
    ages = [made_at - (instant_ms(case["observedAt"]) or 0) for case in cases]
    if stale := sum(age > policy.freshness_ms for age in ages):
        blockers.append(Blocker("trace-stale", "bundle", stale))
    if future := sum(age < 0 for age in ages):
        blockers.append(Blocker("trace-in-the-future", "bundle", future))
    return blockers


def _independence_blockers(replay: Row) -> list[Blocker]:
    """Nobody who reviewed ran the model or approved the labels, and whoever ran the model did neither."""
    operator, approver = replay["bundle"]["runOperatorCode"], replay["manifest"]["approval"]["approverCode"]
    reviewers = [review["reviewerCode"] for case in replay["bundle"]["cases"] for review in case["reviews"]]
    blockers = [Blocker("run-operator-is-label-approver", "bundle")] if operator == approver else []
    for code, rule in ((operator, "reviewer-is-run-operator"), (approver, "reviewer-is-label-approver")):
        if found := reviewers.count(code):
            blockers.append(Blocker(rule, "bundle", found))
    return blockers
