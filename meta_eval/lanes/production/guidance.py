"""What a person does next, told by the artifact at hand: one sentence a stage and status."""

from __future__ import annotations

from collections.abc import Mapping

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import attestation, bundle, labels, manifest, metrics, question_export, run_kit

_WHEN_READY: Mapping[str, str] = {
    attestation.KIND: "fill in the attestation template and put it into inbox/attestation.json",
    question_export.KIND: "prepare the manifest; keep the export private",
    manifest.KIND: "have an independent person label the worksheet, and put it into inbox/labels.json",
    labels.KIND: "name the run operator in inbox/run-operator.json",
    run_kit.KIND: "complete the observation worksheet from instrumentation, and have both lanes reviewed",
    bundle.KIND: "evaluate the bundle",
}
_WHEN_BLOCKED: Mapping[str, str] = {
    attestation.KIND: "collect more consented questions, or mend the log at its source; then attest again",
    question_export.KIND: "have the operator complete a new attestation of this very log; then export again",
    manifest.KIND: "mend the export at its source; then prepare again",
    labels.KIND: "return the labels to the labeller with these blockers; then freeze again",
    run_kit.KIND: "name an operator who did not approve the labels; then make the kit again",
    bundle.KIND: "return observations and reviews to their authors with these blockers; then assemble again",
    metrics.KIND: "mend what blocks the bundle, or collect fresh traces; then evaluate again",
}
_VERDICTS: Mapping[str, str] = {
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
