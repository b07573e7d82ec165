"""A round on disk: where its parts lie, and how an artifact is kept.

    rounds/NAME/
      inbox/       where people put files (`INBOX` names them)
      artifacts/   what the pipeline wrote, one folder a stage, named by time and digest; nothing is overwritten
      worksheets/  blank forms and receipts for people, named by the artifact that they belong to
      private/     the pseudonym key, the question exports and, of a large log, a record of its last reading

Everything is private to its owner (0600 in 0700). The current artifact of a stage is the newest by its own recorded
time. Where machines share a root, the artifacts lie there, and everything else stays in the folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from meta_eval.evidence.artifact_roots import ArtifactRoot, FolderRoot
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable, file_receipt
from meta_eval.evidence.errors import InputError, UsageError, VerificationError, WaitingError
from meta_eval.evidence.files import private_folder, write_document
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.production.steps import KEY_NAME, REBUILDS, Step

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


@dataclass(frozen=True)
class Kept:
    """An artifact in its round. `reused` says that nothing but the time would have changed."""

    artifact: Artifact
    path: Readable
    papers: tuple[Path, ...]
    reused: bool


def round_name_problem(name: str) -> str | None:
    """Why a text cannot name a round, or None. One spelling a name: no case, no dots, no marks, no separators."""
    if _ROUND_NAME.fullmatch(name):
        return None
    return "a round's name is 1 to 80 of a-z, 0-9, - and _, and begins with a letter or digit"


class Round:
    """One round's folder, and the root of its artifacts. Raises UsageError for a name that is no round's."""

    def __init__(self, rounds_folder: Path, name: str, root: ArtifactRoot | None = None) -> None:
        if (problem := round_name_problem(name)) is not None:
            raise UsageError(problem)
        self.name, self.root = name, root or FolderRoot(rounds_folder)
        self.folder = rounds_folder / name
        self.inbox, self.private = self.folder / "inbox", self.folder / "private"
        self.artifacts, self.worksheets = self.folder / "artifacts", self.folder / "worksheets"

    def make(self) -> Round:
        """Make the folders that are missing, and return the round.

        Raises:
            UsageError: its artifacts are kept under a shared root, and its folder holds some of before.
        """
        if self.root.shared and any(self.artifacts.glob("*/*.json")):
            raise UsageError(
                f"round {self.name} holds artifacts in its folder, and is asked to keep them under {self.root}; "
                "copy its artifacts there, and move those in the folder away"
            )
        for folder in (self.inbox, self.worksheets, self.private, *([] if self.root.shared else [self.artifacts])):
            private_folder(folder).chmod(0o700)  # also one that a person made before us
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

    def receipts(self) -> set[str]:
        """The receipts of everything that people or an export put into the round."""
        files = [path for names in INBOX.values() for name in names if (path := self.inbox / name).exists()]
        return {file_receipt(path) for path in [*files, *self.private.glob("question-export-*.json")]}

    def key_digest(self) -> str | None:
        """SHA-256 of the round's pseudonym key, where it has one and we are shown it."""
        key = self.private / KEY_NAME
        return file_receipt(key) if key.is_file() else None

    def artifact_files(self, kind: str) -> Sequence[Readable]:
        """Every artifact of a kind, oldest first."""
        return self.root.files(self.name, kind)

    def current_file(self, kind: str) -> Readable:
        """The newest artifact of a kind.

        Raises:
            WaitingError: its stage has not run yet.
        """
        files = self.artifact_files(kind)
        if not files:
            raise WaitingError(f"waiting for: a {kind} artifact of round {self.name}")
        return files[-1]

    def current(self, kind: str) -> Artifact:
        """The newest artifact of a kind, verified.

        Raises:
            WaitingError: its stage has not run yet.
            VerificationError: it is not honest, or was copied from another round.
        """
        path = self.current_file(kind)
        artifact = load_verified(path, REBUILDS, kind=kind)
        if artifact["round"] != self.name:
            raise VerificationError(str(path), "belongs to another round", "/round")
        return artifact

    def keep(self, step: Step) -> Kept:
        """Write what a step made, unless the current artifact says the same already."""
        kind = step.artifact["artifact"]
        files = self.artifact_files(kind)
        if files:
            current = self.current(kind)
            if _but_for_time(current) == _but_for_time(step.artifact):
                return Kept(current, files[-1], tuple(self.papers_of(current)), reused=True)
        papers = tuple(
            write_document(self.worksheets / _paper_name(name, step.artifact), value)
            for name, value in step.papers.items()
        )
        path = self.root.keep(self.name, kind, artifact_name(step.artifact), step.artifact)
        return Kept(step.artifact, path, papers, reused=False)

    def papers_of(self, artifact: Artifact) -> list[Path]:
        """The worksheets and receipts that belong to an artifact."""
        return sorted(self.worksheets.glob(f"*.{artifact['digest'][:12]}.json"))

    @property
    def record_folder(self) -> Path | None:
        """Where a large log's record is kept for the export; None where none is to be kept or believed."""
        return self.private

    def export_file(self, export_receipt: str) -> Path:
        """Where the question export of this receipt is kept."""
        return self.private / f"question-export-{export_receipt[:12]}.json"


def _but_for_time(artifact: Artifact) -> Artifact:
    return {key: value for key, value in artifact.items() if key not in ("madeAt", "digest")}


def artifact_name(artifact: Artifact) -> str:
    """The file name of an artifact: its own recorded time, so that names sort by it, and its digest."""
    return f"{re.sub('[-:.]', '', artifact['madeAt'])}-{artifact['digest'][:12]}.json"


def _paper_name(name: str, artifact: Artifact) -> str:
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{artifact['digest'][:12]}.{ending}"
