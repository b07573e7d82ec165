"""Named ledgers on disk: a folder each, with the two ledgers, the journal and the artifacts that were made of them.

The sessions contract and the house's rooms. `ledgers/NAME/` of the home folder is one Dagster partition. What was
scored from the same bytes under the same rubric is kept and not made again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import InputError, MetaEvalError, UsageError
from meta_eval.evidence.files import write_document
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.sessions.record import Record
from meta_eval.lanes.sessions.scored_sessions import KIND
from meta_eval.lanes.sessions.steps import REBUILDS, Metrics, scored_artifact

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def is_ledger_name(name: str) -> bool:
    """Whether a name is lower-case letters, digits and hyphens, at most 63."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Kept:
    """A verified artifact, where it lies, and whether it was there already."""

    artifact: Artifact
    path: Path
    reused: bool


@dataclass(frozen=True)
class LedgerFolder:
    """One named ledger. Raises UsageError for a name that is none."""

    root: Path
    name: str

    def __post_init__(self) -> None:
        if not is_ledger_name(self.name):
            raise UsageError("a ledger's name is lower-case letters, digits and hyphens, at most 63")

    @property
    def folder(self) -> Path:
        return self.root / self.name

    @property
    def metrics(self) -> Metrics:
        return Metrics.of(self.folder)

    def artifact_files(self, rubric: str) -> list[Path]:
        """The scored-sessions artifacts of a rubric's version, oldest first."""
        return sorted((self.folder / "artifacts" / KIND).glob(f"{rubric}-*.json"))

    def keep_scored(self, rubric: str, made_at: int) -> Kept:
        """Score every finished session, or keep the newest artifact where nothing that it was made from changed."""
        for path in self.artifact_files(rubric)[-1:]:
            kept = self._still_true(path, rubric)
            if kept is not None:
                return Kept(kept, path, reused=True)
        artifact = scored_artifact(self.metrics, rubric, made_at=made_at, name=self.name)
        stamp = re.sub("[-:.]", "", written_instant(made_at))
        path = self.folder / "artifacts" / KIND / f"{rubric}-{stamp}-{artifact['digest'][:12]}.json"
        return Kept(artifact, write_document(path, artifact), reused=False)

    def _still_true(self, path: Path, rubric: str) -> Artifact | None:
        try:
            value, _ = read_document(path)
            current = self.metrics.inputs(self.metrics.rubric(rubric))
            if not isinstance(value, dict) or value.get("inputs") != current:
                return None
            return load_verified(path, REBUILDS, kind=KIND)
        except MetaEvalError:  # an artifact that cannot be believed is made anew beside it
            return None

    def current(self, rubric: str) -> Artifact:
        """The newest scored-sessions artifact, verified.

        Raises:
            InputError: there is none yet.
            VerificationError: it is not honest.
        """
        files = self.artifact_files(rubric)
        if not files:
            raise InputError(self.name, "no scored sessions yet", next_step="materialize scored_sessions first")
        return load_verified(files[-1], REBUILDS, kind=KIND)


def news_for(records: Iterable[Record], fresh: Iterable[Record]) -> list[Record]:
    """The fresh records that say something new: a session that has none yet under this rubric, or other verdicts."""
    last: dict[tuple[str, str], Any] = {}
    for record in records:
        last[record["session_id"], record["rubric_version"]] = _said(record)
    return [each for each in fresh if last.get((each["session_id"], each["rubric_version"])) != _said(each)]


def _said(record: Record) -> Any:
    deterministic = [each for each in record["dimensions"] if each["method"] == "deterministic"]
    return deterministic, record["kpis"], record["harness"]["host_class"], record["provenance"]["rubric_sha256"]
