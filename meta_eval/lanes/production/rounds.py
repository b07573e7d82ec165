"""A round on disk, and the order in which its stages unlock each other.

    rounds/NAME/
      inbox/       where people put files (`INBOX` names them)
      artifacts/   what the pipeline wrote, one folder a stage, named by time and digest; nothing is overwritten
      worksheets/  blank forms and receipts for people, named by the artifact that they belong to
      private/     the pseudonym key and the question exports

Everything is private to its owner (0600 in 0700). The current artifact of a stage is the newest by its own recorded
time. A stage that is ready is not judged again while its inputs and the policy stay as they are: an export or a
freeze happened once, at its time, and what people filled in stays bound to it. Only a verdict ages, so that metrics are
judged anew each time, and kept where nothing but the time would change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import file_receipt, read_document, receipt
from meta_eval.evidence.errors import InputError, MetaEvalError, UsageError
from meta_eval.evidence.files import private_folder, remove_partials, write_document
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.production import attestation, bundle, labels, manifest, metrics, question_export, run_kit, steps
from meta_eval.lanes.production.steps import REBUILDS, Setting, Step

Inputs = dict[str, dict[str, Any]]
_ROUND_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
INBOX: dict[str, tuple[str, ...]] = {
    "query_log": ("ai-query-log.json", "ai-query-log.jsonl", "ai-query-log.json.gz", "ai-query-log.jsonl.gz"),
    "attestation": ("attestation.json",),
    "labels": ("labels.json",),
    "run_operator": ("run-operator.json",),
    "observations": ("observations.json",),
    "reviews": ("reviews.json",),
    "evidence_reference": ("evidence-reference.json",),
    "release_manifest": ("release-manifest.json",),
}


class WaitingError(MetaEvalError):
    """A stage whose input is not there yet: what it waits for, and where to put it."""

    exit_code = 1


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


@dataclass(frozen=True)
class Kept:
    """An artifact in its round. `reused` says that nothing but the time would have changed."""

    artifact: Artifact
    path: Path
    papers: tuple[Path, ...]
    reused: bool


def round_name_problem(name: str) -> str | None:
    """Why a text cannot name a round, or None. One spelling a name: no case, no dots, no marks, no separators."""
    if _ROUND_NAME.fullmatch(name):
        return None
    return "a round's name is 1 to 80 of a-z, 0-9, - and _, and begins with a letter or digit"


class Round:
    """One round's folder. Raises UsageError for a name that is no round's."""

    def __init__(self, rounds_folder: Path, name: str) -> None:
        if (problem := round_name_problem(name)) is not None:
            raise UsageError(problem)
        self.name = name
        self.folder = rounds_folder / name
        self.inbox, self.private = self.folder / "inbox", self.folder / "private"
        self.artifacts, self.worksheets = self.folder / "artifacts", self.folder / "worksheets"

    def make(self) -> Round:
        """Make the folders that are missing, and return the round."""
        for folder in (self.inbox, self.artifacts, self.worksheets, self.private):
            private_folder(folder)
        return self

    def inbox_file(self, name: str) -> Path:
        """The file that a person put into the inbox under one of the names that it may have.

        Raises:
            WaitingError: it is not there yet.
            InputError: two files claim to be it.
        """
        found = [path for option in INBOX[name] if (path := self.inbox / option).exists()]
        if not found:
            raise WaitingError(f"waiting for: {name.replace('_', ' ')} in {self.inbox / INBOX[name][0]}")
        if len(found) > 1:
            raise InputError(str(found[1]), f"a second {name.replace('_', ' ')}", next_step="keep one of the two")
        return found[0]

    def artifact_files(self, kind: str) -> list[Path]:
        """Every artifact of a kind, oldest first."""
        return sorted((self.artifacts / kind).glob("*.json"))

    def current_file(self, kind: str) -> Path:
        """The newest artifact of a kind.

        Raises:
            WaitingError: its stage has not run yet.
        """
        files = self.artifact_files(kind)
        if not files:
            stage = next(stage.name for stage in STAGES if stage.kind == kind)
            raise WaitingError(f"waiting for: stage {stage} of round {self.name}")
        return files[-1]

    def keep(self, step: Step) -> Kept:
        """Write what a step made, unless the current artifact says the same already."""
        kind = step.artifact["artifact"]
        files = self.artifact_files(kind)
        if files:
            current = load_verified(files[-1], REBUILDS, kind=kind)
            if _but_for_time(current) == _but_for_time(step.artifact):
                return Kept(current, files[-1], tuple(self.papers_of(current)), reused=True)
        papers = tuple(
            write_document(self.worksheets / _paper_name(name, step.artifact), value)
            for name, value in step.papers.items()
        )
        path = write_document(self.artifacts / kind / artifact_name(step.artifact), step.artifact)
        return Kept(step.artifact, path, papers, reused=False)

    def papers_of(self, artifact: Artifact) -> list[Path]:
        """The worksheets and receipts that belong to an artifact."""
        return sorted(self.worksheets.glob(f"*.{artifact['digest'][:12]}.json"))

    def export_file(self, export_receipt: str) -> Path:
        """Where the question export of this receipt is kept."""
        return self.private / f"question-export-{export_receipt[:12]}.json"


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
    if not files:
        return None
    current = load_verified(files[-1], REBUILDS, kind=stage.kind)
    same_policy = current["policyDigest"] == setting.policy.digest
    if current["status"] != "ready" or not same_policy or stage.sources(round_) != _sources_of(current):
        return None
    return Kept(current, files[-1], tuple(round_.papers_of(current)), reused=True)


def stage_named(name: str) -> Stage:
    """The stage of this name. Raises UsageError."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise UsageError(f"no stage of that name; the stages are {', '.join(stage.name for stage in STAGES)}")


def _attest(round_: Round, setting: Setting) -> Step:
    return steps.attest_log(round_.inbox_file("query_log"), setting)


def _export(round_: Round, setting: Setting) -> Step:
    log, attested = round_.inbox_file("query_log"), round_.inbox_file("attestation")
    key = steps.pseudonym_key(round_.private / steps.KEY_NAME, make=True)
    return steps.export_questions(log, attested, setting, key=key, export_file=round_.export_file)


def _prepare(round_: Round, setting: Setting) -> Step:
    export = load_verified(round_.current_file(question_export.KIND), REBUILDS, kind=question_export.KIND)
    if export["status"] != "ready":
        raise WaitingError(f"waiting for: a question export of round {round_.name} that is not blocked")
    return steps.prepare_manifest(round_.export_file(export["result"]["exportSha256"]), setting)


def _freeze(round_: Round, setting: Setting) -> Step:
    return steps.freeze_labels(round_.inbox_file("labels"), round_.current_file(manifest.KIND), setting)


def _kit(round_: Round, setting: Setting) -> Step:
    operator, _ = read_document(round_.inbox_file("run_operator"))
    return steps.prepare_run_kit(round_.current_file(labels.KIND), operator, setting)


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
    kit = load_verified(kit_file, REBUILDS, kind=run_kit.KIND)
    return steps.assemble_bundle(
        files,
        setting,
        evidence_reference=reference,
        reference_receipt=reference_receipt,
        operator_code=kit["result"]["operatorCode"],
    )


def _evaluate(round_: Round, setting: Setting) -> Step:
    return steps.evaluate_bundle(round_.current_file(labels.KIND), round_.current_file(bundle.KIND), setting)


def _sources_of(artifact: Artifact) -> Inputs:
    """What an artifact was made from; for a run kit, also the operator's document, which it keeps whole."""
    operator = {"runOperator": artifact["replay"]["runOperator"]} if artifact["artifact"] == run_kit.KIND else {}
    inputs: Inputs = artifact["inputs"]
    return inputs | operator


def _received(round_: Round, *names: str) -> Inputs:
    """Inbox files as an artifact names them: by receipt, in camelCase."""
    return {_input_name(name): {"receipt": file_receipt(round_.inbox_file(name))} for name in names}


def _input_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _current(round_: Round, **kinds: str) -> Inputs:
    """Upstream artifacts as an artifact names them: by digest."""
    return {
        name: {"digest": load_verified(round_.current_file(kind), REBUILDS, kind=kind)["digest"]}
        for name, kind in kinds.items()
    }


def _export_sources(round_: Round) -> Inputs:
    key = steps.pseudonym_key(round_.private / steps.KEY_NAME, make=True)
    return _received(round_, "query_log", "attestation") | {"pseudonymKey": {"digest": receipt(key)}}


def _manifest_sources(round_: Round) -> Inputs:
    export = load_verified(round_.current_file(question_export.KIND), REBUILDS, kind=question_export.KIND)
    return {"questionExport": {"receipt": export["result"]["exportSha256"]}}


def _kit_sources(round_: Round) -> Inputs:
    operator, _ = read_document(round_.inbox_file("run_operator"))
    return _current(round_, frozenLabels=labels.KIND) | {"runOperator": operator}


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
        sources=_kit_sources,
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


def _but_for_time(artifact: Artifact) -> Artifact:
    return {key: value for key, value in artifact.items() if key not in ("madeAt", "digest")}


def artifact_name(artifact: Artifact) -> str:
    """The file name of an artifact: its own recorded time, so that names sort by it, and its digest."""
    return f"{re.sub('[-:.]', '', artifact['madeAt'])}-{artifact['digest'][:12]}.json"


def _paper_name(name: str, artifact: Artifact) -> str:
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{artifact['digest'][:12]}.{ending}"
