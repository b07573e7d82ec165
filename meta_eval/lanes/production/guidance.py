"""What a person does next, told by the artifact at hand: one sentence a stage and status."""

from __future__ import annotations

from collections.abc import Mapping

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import (
    attestation,
    bundle,
    collection,
    labels,
    manifest,
    metrics,
    question_export,
    readiness,
    run_kit,
)

_WHEN_READY: Mapping[str, str] = {
    attestation.KIND: "fill in the attestation template and put it into inbox/attestation.json",
    question_export.KIND: "prepare the manifest; keep the export private",
    manifest.KIND: "have an independent person label the worksheet, and put it into inbox/labels.json",
    labels.KIND: "name the run operator in inbox/run-operator.json",
    run_kit.KIND: "complete the observation worksheet from instrumentation, and have both lanes reviewed",
    bundle.KIND: "evaluate the bundle",
    readiness.KIND: "release by your own authority and on this day's evidence; it permits nothing by itself",
}
_WHEN_BLOCKED: Mapping[str, str] = {
    attestation.KIND: "collect more consented questions, or mend the log at its source; then attest again",
    question_export.KIND: "have the operator complete a new attestation of this very log; then export again",
    manifest.KIND: "mend the export at its source; then prepare again",
    labels.KIND: "return the labels to the labeller with these blockers; then freeze again",
    run_kit.KIND: "name an operator who did not approve the labels; then make the kit again",
    bundle.KIND: "return observations and reviews to their authors with these blockers; then assemble again",
    metrics.KIND: "mend what blocks the bundle, or collect fresh traces; then evaluate again",
    readiness.KIND: "mend what is missed, by its own blocker; then judge the release again",
}
_VERDICTS: Mapping[str, str] = {
    collection.AWAITING: "review the contract, and complete the approval outside source control; then judge again",
    collection.MISMATCH: "approve the contract at hand: an approval of another digest counts for nothing",
    collection.READY: "activate by a separate decision; this deploys nothing and switches nothing on",
    "passed": "judge the release's readiness",
    "rehearsed": "nothing: a rehearsal shows that the line works, and proves nothing about the feature",
    "failed": "mend the feature and measure a new round; thresholds and labels stay as they were frozen",
}


def next_step(artifact: Artifact) -> str:
    """The operator's next step after this artifact of the production lane."""
    status, kind = artifact["status"], artifact["artifact"]
    if status in _VERDICTS:
        return _VERDICTS[status]
    return (_WHEN_BLOCKED if status == "blocked" else _WHEN_READY)[kind]


REQUIREMENTS: Mapping[str, tuple[str, str]] = {
    "metrics-verified": (
        "The verdict is there, is of this round, and replays whole",
        "evaluate the round again, and keep the artifact as it was written",
    ),
    "production-evidence": (
        "The evidence is of production: no rehearsal and no regression gate",
        "measure a production round; a rehearsal or a golden gate can never stand in for one",
    ),
    "verdict-passed": (
        "The verdict passed: every threshold is met",
        "mend the feature, or what blocks the verdict, and measure a new round",
    ),
    "policy-unchanged": (
        "The policy in force is the one that the labels were frozen under",
        "measure a round under the policy in force",
    ),
    "release-manifest-whole": (
        "The release at hand has a manifest that lists its files in order, each with its SHA-256",
        "make it anew with meta-eval release-manifest",
    ),
    "release-files-present": (
        "The release folder holds exactly the files of its manifest",
        "restore the files, or make the manifest anew and measure that release",
    ),
    "release-matches": (
        "The release at hand is the one that was measured",
        "judge the release that was measured, or measure this one",
    ),
    "traces-fresh": ("Every trace is fresh on this day", "collect fresh traces, and have them reviewed"),
}
"""Each requirement of a release in words, and what to do where it is missed."""
