"""Stage 9: may this very release be called ready, on this day, by a passed production verdict?

Source: the production evaluation document, its last step, and the production contract. A verdict is believed only after
it was replayed, and it is kept whole, so that readiness can be replayed in turn. A verdict that cannot be believed is
kept by nothing but the rule that refused it. Every requirement is judged, not the first that is missed only; what
cannot be judged because something else is missing is unknown, and unknown is not met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.documents import Keyed, Reading, kept_part, read, read_projection, whole_number
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.lanes.production import documents, metrics, release
from meta_eval.lanes.production.policy import Policy, policy_of, unchanged_policy

KIND = "release-readiness"
AUTHORITY = {
    "permitsPublication": False,
    "permitsOutreach": False,
    "permitsPayment": False,
    "permitsModelRun": False,
    "permitsDeployment": False,
    "statement": (
        "Tells whether the evidence for one release holds on one day. It authorises no publication, contact, payment, "
        "model run or deployment."
    ),
}
REFUSALS: Mapping[str, str] = {
    "metrics-missing": "metrics-verified",
    "metrics-not-verified": "metrics-verified",
    "not-production-metrics": "production-evidence",
    "regression-evidence-refused": "production-evidence",
    "rehearsal-refused": "production-evidence",
    "evidence-class-refused": "production-evidence",
}
"""Why a file is no verdict to judge by, and the requirement that it misses."""
REQUIREMENTS = (
    "metrics-verified",
    "production-evidence",
    "verdict-passed",
    "policy-unchanged",
    "release-manifest-whole",
    "release-files-present",
    "release-matches",
    "traces-fresh",
)
MET, MISSED, UNKNOWN = "met", "missed", "unknown"
_BY_CLASS = {"regression": "regression-evidence-refused", "rehearsal": "rehearsal-refused"}
_FILES = Keyed(dict.fromkeys(release.COMPARED, whole_number(least=0, most=2**53 - 1, rule="not-a-count")))
_SUBJECT, _RELEASE = "productionMetrics", "releaseManifest"
Row = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What a file holds of a verdict: the verified artifact, or the rule that refuses it."""

    artifact: Artifact | None
    refusal: str | None = None


def believed(value: object, *, source: str) -> Verdict:
    """A verdict, if a parsed JSON value is one. Whatever is not of the production class is refused by its class."""
    if not isinstance(value, dict) or not isinstance(value.get("artifact"), str):
        return Verdict(None, "metrics-not-verified")
    claimed = value.get("evidenceClass")
    if value["artifact"] != metrics.KIND:
        other = _BY_CLASS.get(str(claimed), "evidence-class-refused")
        return Verdict(None, "not-production-metrics" if claimed == "production" else other)
    try:
        return Verdict(verified(value, {metrics.KIND: metrics.rebuild}, source=source, kind=metrics.KIND))
    except VerificationError:
        return Verdict(None, "metrics-not-verified")


def is_manifest(document: object) -> bool:
    """Whether a parsed JSON value is a whole release manifest."""
    return not _manifest_blockers(read(document, documents.RELEASE_MANIFEST, subject=_RELEASE))


def judge(
    verdict: Verdict,
    *,
    verdict_receipt: str | None,
    release_manifest: object,
    release_receipt: str | None,
    release_files: Mapping[str, int] | None = None,
    made_at: int,
    policy: Policy,
    round_name: str | None = None,
) -> Artifact:
    """The readiness of a release.

    Args:
        verdict: from `believed`, or `Verdict(None, "metrics-missing")`.
        verdict_receipt: the receipt of its file; None where it is missing.
        release_manifest: the manifest of the release at hand, as parsed JSON.
        release_receipt: the receipt of its file; None where it is missing.
        release_files: how the release's folder compares with the manifest, where somebody looked.
        made_at: judging time, milliseconds since the epoch.
    """
    reading = None
    if release_receipt is not None:
        reading = read(release_manifest, documents.RELEASE_MANIFEST, subject=_RELEASE)
    replay = {
        "metrics": verdict.artifact,
        "refusal": verdict.refusal,
        "releaseManifest": None if reading is None else reading.projection,
        "releaseFiles": None if release_files is None else dict(release_files),
    }
    inputs = {_RELEASE: {"receipt": release_receipt}} if release_receipt is not None else {}
    if verdict.artifact is None and verdict_receipt is not None:
        inputs[_SUBJECT] = {"receipt": verdict_receipt}
    return _build(replay, reading, inputs, made_at=made_at, policy=policy, round_name=round_name)


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact again, from its replay, the verdict in it replayed too. Raises VerificationError."""
    kept = artifact["replay"]
    verdict, files = kept["metrics"], kept["releaseFiles"]
    if (verdict is None) is (kept["refusal"] not in REFUSALS):
        raise VerificationError(KIND, "a verdict or one known reason why there is none", "/replay/refusal")
    if verdict is not None:
        verdict = verified(verdict, {metrics.KIND: metrics.rebuild}, source="replay", kind=metrics.KIND)
    manifest = kept["releaseManifest"]
    reading = None
    if manifest is not None:
        reading = read_projection(manifest, documents.RELEASE_MANIFEST, subject=_RELEASE)
    replay = {
        "metrics": verdict,
        "refusal": None if verdict is not None else kept["refusal"],
        "releaseManifest": None if reading is None else reading.projection,
        "releaseFiles": None if files is None else kept_part(files, _FILES, pointer="/replay/releaseFiles"),
    }
    return _build(
        replay,
        reading,
        artifact["inputs"],
        made_at=made_at_ms(artifact),
        policy=policy_of(artifact),
        round_name=artifact["round"],
    )


def _build(
    replay: Row,
    reading: Reading | None,
    inputs: Mapping[str, Mapping[str, Any]],
    *,
    made_at: int,
    policy: Policy,
    round_name: str | None,
) -> Artifact:
    verdict: Artifact | None = replay["metrics"]
    release_digest = digest(reading.value) if reading is not None and not _manifest_blockers(reading) else None
    found = _found(replay, verdict, reading, release_digest, made_at=made_at, policy=policy, round_name=round_name)
    blockers = [blocker for group in found.values() for blocker in group or ()]
    states = {name: UNKNOWN if group is None else MISSED if group else MET for name, group in found.items()}
    named = dict(inputs) | ({} if verdict is None else {_SUBJECT: {"digest": verdict["digest"]}})
    due = {} if reading is None else {_RELEASE: "receipt"}
    if replay["refusal"] != "metrics-missing":
        due[_SUBJECT] = "receipt" if verdict is None else "digest"
    return sealed(
        kind=KIND,
        environment=None if verdict is None else verdict["environment"],
        round_name=round_name,
        status="ready" if set(states.values()) == {MET} else "blocked",
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=named_inputs(named, due),
        result={
            "metricsDigest": None if verdict is None else verdict["digest"],
            "releaseDigest": release_digest,
            "freshUntil": _fresh_until(verdict, policy),
            "requirements": [
                {"requirement": name, "state": states[name], "codes": sorted({b.code for b in found[name] or ()})}
                for name in REQUIREMENTS
                if name in found
            ],
        },
        replay=replay,
        authority=AUTHORITY,
    )


def _found(
    replay: Row,
    verdict: Artifact | None,
    reading: Reading | None,
    release_digest: str | None,
    *,
    made_at: int,
    policy: Policy,
    round_name: str | None,
) -> dict[str, list[Blocker] | None]:
    """By requirement, what misses it, or None where it cannot be judged."""
    found: dict[str, list[Blocker] | None] = dict.fromkeys(REQUIREMENTS)
    found["release-manifest-whole"] = _manifest_blockers(reading)
    if replay["releaseFiles"] is None:
        del found["release-files-present"]  # nobody pointed to the folder; the digest binds the release all the same
    elif release_digest is not None:
        found["release-files-present"] = [
            Blocker(f"release-file-{what}", "releaseFiles", count)
            for what, count in replay["releaseFiles"].items()
            if count
        ]
    if verdict is None:
        found[REFUSALS[replay["refusal"]]] = [Blocker(replay["refusal"], _SUBJECT)]
        return found
    found["metrics-verified"] = _standing_blockers(verdict, made_at, round_name)
    found["production-evidence"] = _class_blockers(verdict)
    found["policy-unchanged"] = unchanged_policy(verdict["policyDigest"], policy, subject=_SUBJECT)
    if verdict["status"] != "rehearsed":  # which is refused for what it is, and says nothing of a pass
        passed = verdict["status"] == "passed"
        found["verdict-passed"] = [] if passed else [Blocker(f"verdict-{verdict['status']}", _SUBJECT)]
    bundle = verdict["replay"]["bundle"]
    if bundle is not None:
        found["traces-fresh"] = _age_blockers(bundle, made_at, policy)
        if release_digest is not None:
            same = bundle["releaseDigest"] == release_digest
            found["release-matches"] = [] if same else [Blocker("release-mismatch", _RELEASE)]
    return found


def _standing_blockers(verdict: Artifact, made_at: int, round_name: str | None) -> list[Blocker]:
    """A verdict is of the round that it is judged in, and not of a time to come."""
    blockers = [] if made_at_ms(verdict) <= made_at else [Blocker("verdict-in-the-future", _SUBJECT)]
    if round_name is not None and verdict["round"] != round_name:
        blockers.append(Blocker("metrics-of-another-round", _SUBJECT))
    return blockers


def _class_blockers(verdict: Artifact) -> list[Blocker]:
    if verdict["environment"] == verdict["evidenceClass"] == "production":
        return []
    return [Blocker(_BY_CLASS.get(verdict["evidenceClass"], "evidence-class-refused"), _SUBJECT)]


def _manifest_blockers(reading: Reading | None) -> list[Blocker]:
    """A manifest that is there, keeps its shape, and lists at least one file, each once and in order."""
    if reading is None:
        return [Blocker("release-manifest-missing", _RELEASE)]
    if reading.blockers or reading.ignored:
        return reading.blockers or [Blocker("unknown-key", _RELEASE)]
    paths = [entry["path"] for entry in reading.value["files"]]
    if not paths:
        return [Blocker("release-without-files", f"{_RELEASE}.files", 0)]
    ascending = all(one < other for one, other in pairwise(paths))
    return [] if ascending else [Blocker("release-paths-not-ascending", f"{_RELEASE}.files")]


def _age_blockers(bundle: Row, made_at: int, policy: Policy) -> list[Blocker]:
    ages = [made_at - (instant_ms(case["observedAt"]) or 0) for case in bundle["cases"]]
    stale, future = sum(age > policy.freshness_ms for age in ages), sum(age < 0 for age in ages)
    blockers = [Blocker("trace-stale", _SUBJECT, stale)] if stale else []
    return blockers + ([Blocker("trace-in-the-future", _SUBJECT, future)] if future else [])


def _fresh_until(verdict: Artifact | None, policy: Policy) -> str | None:
    """The last instant at which every trace of a verdict is fresh."""
    bundle = None if verdict is None else verdict["replay"]["bundle"]
    if bundle is None or not bundle["cases"]:
        return None
    oldest = min(instant_ms(case["observedAt"]) or 0 for case in bundle["cases"])
    return written_instant(oldest + policy.freshness_ms)
