"""The stages of the production lane in order, and how one of them is advanced from what its round holds.

Source: the production contract. A stage that is ready is not judged again while its inputs and the policy stay as they
are: an export or a freeze happened once, at its time, and what people filled in stays bound to it. Only a verdict ages,
so metrics are judged anew each time, and the artifact is kept where nothing but the time would change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifact_roots import ArtifactRoot
from meta_eval.evidence.canonical import Readable, digest, file_receipt, read_document, receipt
from meta_eval.evidence.errors import UsageError, WaitingError
from meta_eval.evidence.files import remove_partials
from meta_eval.lanes.production import (
    attestation,
    bundle,
    labels,
    manifest,
    metrics,
    question_export,
    readiness,
    readiness_steps,
    run_kit,
    steps,
)
from meta_eval.lanes.production.rounds import INBOX, Kept, Round
from meta_eval.lanes.production.steps import Setting, Step

Inputs = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Stage:
    """One stage of the line: its name, its artifact, and what it needs."""

    name: str
    kind: str
    inbox: tuple[str, ...]
    upstream: tuple[str, ...]
    run: Callable[[Round, Setting], Step]
    sources: Callable[[Round], Inputs]
    """What the stage would be made from now, as its artifact names it, without making it."""
    ages: bool = False
    """Whether the mere passing of time can end what is ready."""


def advance(round_: Round, stage: Stage, setting: Setting) -> Kept:
    """Run one stage of a round from what lies in its folder, and keep what it made.

    Raises:
        WaitingError: an input is not there yet.
        InputError, VerificationError: an input cannot be read or an upstream artifact is not honest.
    """
    round_.make()
    for folder in (round_.private, round_.worksheets, round_.artifacts / stage.kind):
        remove_partials(folder)
    return _unchanged(round_, stage, setting) or round_.keep(stage.run(round_, setting))


def _unchanged(round_: Round, stage: Stage, setting: Setting) -> Kept | None:
    """The current artifact, where it is ready and was made from the very inputs that are there now."""
    files = round_.artifact_files(stage.kind)
    if not files or stage.ages:
        return None
    current = round_.current(stage.kind)
    same_policy = current["policyDigest"] == setting.policy.digest
    if current["status"] != "ready" or not same_policy or stage.sources(round_) != current["inputs"]:
        return None
    return Kept(current, files[-1], tuple(round_.papers_of(current)), reused=True)


def stage_named(name: str) -> Stage:
    """The stage of this name. Raises UsageError."""
    for stage in (*STAGES, READINESS):
        if stage.name == name:
            return stage
    raise UsageError(f"no stage of that name; the stages are {', '.join(stage.name for stage in (*STAGES, READINESS))}")


def _attest(round_: Round, setting: Setting) -> Step:
    return steps.attest_log(round_.inbox_file("query_log"), setting, private=round_.record_folder)


def _export(round_: Round, setting: Setting) -> Step:
    log, attested = round_.inbox_file("query_log"), round_.inbox_file("attestation")
    key = _pseudonym_key(round_)
    return steps.export_questions(
        log, attested, setting, key=key, export_file=round_.export_file, private=round_.record_folder
    )


def _pseudonym_key(round_: Round) -> bytes:
    """The round's key; another machine may hold it, and then this one must not make a second."""
    elsewhere = round_.root.shared and bool(round_.artifact_files(question_export.KIND))
    return steps.pseudonym_key(round_.private / steps.KEY_NAME, make=not elsewhere)


def _prepare(round_: Round, setting: Setting) -> Step:
    export = round_.current(question_export.KIND)
    if export["status"] != "ready":
        raise WaitingError(f"waiting for: a question export of round {round_.name} that is not blocked")
    return steps.prepare_manifest(round_.export_file(export["result"]["exportSha256"]), setting)


def _freeze(round_: Round, setting: Setting) -> Step:
    return steps.freeze_labels(round_.inbox_file("labels"), round_.current_file(manifest.KIND), setting)


def _kit(round_: Round, setting: Setting) -> Step:
    operator, operator_receipt = read_document(round_.inbox_file("run_operator"))
    frozen_file = round_.current_file(labels.KIND)
    return steps.prepare_run_kit(frozen_file, operator, setting, operator_receipt=operator_receipt)


def _assemble(round_: Round, setting: Setting) -> Step:
    kit_file = round_.current_file(run_kit.KIND)
    files = steps.BundleFiles(
        observations=round_.inbox_file("observations"),
        reviews=round_.inbox_file("reviews"),
        release_manifest=round_.inbox_file("release_manifest"),
        frozen=round_.current_file(labels.KIND),
        kit=kit_file,
    )
    reference, reference_receipt = read_document(round_.inbox_file("evidence_reference"))
    kit = round_.current(run_kit.KIND)
    return steps.assemble_bundle(
        files,
        setting,
        evidence_reference=reference,
        reference_receipt=reference_receipt,
        operator_code=kit["result"]["operatorCode"],
    )


def _evaluate(round_: Round, setting: Setting) -> Step:
    return steps.evaluate_bundle(round_.current_file(labels.KIND), round_.current_file(bundle.KIND), setting)


def judge_release(round_: Round, setting: Setting, release_folder: Path | None = None) -> Step:
    """Stage 9 from what a round holds, and the release's folder, where somebody points to it."""
    verdicts = round_.artifact_files(metrics.KIND)
    [name] = INBOX["release_manifest"]
    verdict = verdicts[-1] if verdicts else None
    return readiness_steps.judge_release(verdict, round_.inbox / name, setting, release_folder=release_folder)


def verdict_of(root: ArtifactRoot, release_manifest: Path) -> Readable | None:
    """The newest verdict of any round that says it measured this release. It is not verified here."""
    found: list[Readable] = []
    release_digest = digest(read_document(release_manifest)[0])
    for round_name in root.round_names():
        for file in root.files(round_name, metrics.KIND)[-1:]:
            value, _ = read_document(file)
            result = value.get("result") if isinstance(value, dict) else None
            if isinstance(result, dict) and result.get("releaseDigest") == release_digest:
                found.append(file)
    return max(found, key=lambda file: (file.name, str(file)), default=None)


def _received(round_: Round, *names: str) -> Inputs:
    """Inbox files as an artifact names them: by receipt."""
    return {input_name(name): {"receipt": file_receipt(round_.inbox_file(name))} for name in names}


def input_name(name: str) -> str:
    """How an artifact names a file of the inbox: in camelCase."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _current(round_: Round, **kinds: str) -> Inputs:
    """Upstream artifacts as an artifact names them: by digest."""
    return {name: {"digest": round_.current(kind)["digest"]} for name, kind in kinds.items()}


def _export_sources(round_: Round) -> Inputs:
    key = _pseudonym_key(round_)
    return _received(round_, "query_log", "attestation") | {"pseudonymKey": {"digest": receipt(key)}}


def _manifest_sources(round_: Round) -> Inputs:
    export = round_.current(question_export.KIND)
    return {"questionExport": {"receipt": export["result"]["exportSha256"]}}


_RESULTS = ("observations", "reviews", "evidence_reference", "release_manifest")
STAGES: Sequence[Stage] = (
    Stage(
        name="log_attestation",
        kind=attestation.KIND,
        inbox=("query_log",),
        upstream=(),
        run=_attest,
        sources=lambda round_: _received(round_, "query_log"),
    ),
    Stage(
        name="question_export",
        kind=question_export.KIND,
        inbox=("query_log", "attestation"),
        upstream=("log_attestation",),
        run=_export,
        sources=_export_sources,
    ),
    Stage(
        name="prepared_manifest",
        kind=manifest.KIND,
        inbox=(),
        upstream=("question_export",),
        run=_prepare,
        sources=_manifest_sources,
    ),
    Stage(
        name="frozen_labels",
        kind=labels.KIND,
        inbox=("labels",),
        upstream=("prepared_manifest",),
        run=_freeze,
        sources=lambda round_: _received(round_, "labels") | _current(round_, preparedManifest=manifest.KIND),
    ),
    Stage(
        name="run_kit",
        kind=run_kit.KIND,
        inbox=("run_operator",),
        upstream=("frozen_labels",),
        run=_kit,
        sources=lambda round_: _received(round_, "run_operator") | _current(round_, frozenLabels=labels.KIND),
    ),
    Stage(
        name="assembled_bundle",
        kind=bundle.KIND,
        inbox=_RESULTS,
        upstream=("frozen_labels", "run_kit"),
        run=_assemble,
        sources=lambda round_: (
            _received(round_, *_RESULTS) | _current(round_, frozenLabels=labels.KIND, runKit=run_kit.KIND)
        ),
    ),
    Stage(
        name="production_metrics",
        kind=metrics.KIND,
        inbox=(),
        upstream=("frozen_labels", "assembled_bundle"),
        run=_evaluate,
        sources=lambda round_: _current(round_, frozenLabels=labels.KIND, assembledBundle=bundle.KIND),
    ),
)
READINESS = Stage(
    name="readiness",
    kind=readiness.KIND,
    inbox=("release_manifest",),
    upstream=("production_metrics",),
    run=judge_release,
    sources=lambda round_: _received(round_, "release_manifest") | _current(round_, productionMetrics=metrics.KIND),
    ages=True,
)
"""Judged beside the line: a round is over with its verdict, and a rehearsal's release is refused, never ready."""
