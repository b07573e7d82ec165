"""The steps between files and the lane: read rubrics, ledgers and the journal, and hand back what was found.

The clock, the folders and what is known about model and host come from the front door that calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import canonical_bytes, digest, file_receipt, read_document, unreadable
from meta_eval.evidence.errors import InputError
from meta_eval.evidence.replay import Rebuild
from meta_eval.lanes.sessions import calibration, scored_sessions
from meta_eval.lanes.sessions.difference import Difference
from meta_eval.lanes.sessions.journal import NAME as JOURNAL
from meta_eval.lanes.sessions.journal import read_journal
from meta_eval.lanes.sessions.ledger import EVENTS, SESSIONS, Ledger, event_files, read_ledger
from meta_eval.lanes.sessions.record import Provenance, Record
from meta_eval.lanes.sessions.rubric import LOCK, Rubric, frozen_rubric, version_named
from meta_eval.lanes.sessions.scoring import Scored, score_all, score_one
from meta_eval.lanes.sessions.verification import verification

REBUILDS: Mapping[str, Rebuild] = {
    scored_sessions.KIND: scored_sessions.rebuild,
    calibration.KIND: calibration.rebuild,
}
RUBRICS = Path(__file__).resolve().parents[3] / "rubrics"


@dataclass(frozen=True)
class Metrics:
    """One metrics folder, and where the frozen rubrics are."""

    folder: Path
    journal: Path
    rubrics: Path = RUBRICS

    @classmethod
    def of(cls, folder: Path, journal: Path | None = None, rubrics: Path = RUBRICS) -> Metrics:
        return cls(folder, journal or folder / JOURNAL, rubrics)

    def rubric(self, name: str) -> Rubric:
        """The frozen rubric of a version. Raises RubricError, InputError."""
        version = version_named(name)
        lock = _read(self.rubrics / LOCK).decode("utf-8", "replace")
        return frozen_rubric(version, _read(self.rubrics / version.file), lock)

    def ledger(self, rubric: Rubric) -> Ledger:
        """The ledger as a rubric sees it.

        Raises:
            InputError: the session ledger is there and cannot be read; a harness fault is never a session's.
        """
        ledger = self.ledger_or_fault(rubric)
        if ledger.sessions.state == "unreadable":
            raise InputError(str(self.folder / SESSIONS), ledger.sessions.fault, next_step="restore the session ledger")
        return ledger

    def ledger_or_fault(self, rubric: Rubric) -> Ledger:
        """The ledger, also where its files cannot be read."""
        version = rubric.version
        return read_ledger(self.folder, rotated=version.reads_rotated, drop_stubs=version.drops_stubs)

    def inputs(self, rubric: Rubric) -> dict[str, dict[str, str]]:
        """Receipts of everything that a rubric reads here."""
        inputs = {"rubric": {"receipt": rubric.sha256}}
        for name, file in (("sessionLedger", SESSIONS), ("eventStream", EVENTS)):
            if (self.folder / file).is_file():
                inputs[name] = {"receipt": file_receipt(self.folder / file)}
        rotated = event_files(self.folder)[0] if rubric.version.reads_rotated else []
        if rotated:
            inputs["rotatedEvents"] = {"digest": digest({path.name: file_receipt(path) for path in rotated})}
        return inputs


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def scored(metrics: Metrics, version: str, session_id: str | None) -> tuple[Ledger, Rubric, Scored]:
    """One session of a metrics folder, scored."""
    rubric = metrics.rubric(version)
    ledger = metrics.ledger(rubric)
    return ledger, rubric, score_one(ledger, rubric, session_id)


def all_scored(metrics: Metrics, version: str) -> tuple[Ledger, Rubric, list[Scored]]:
    """Every eligible session of a metrics folder, scored in one pass."""
    rubric = metrics.rubric(version)
    ledger = metrics.ledger(rubric)
    return ledger, rubric, list(score_all(ledger, rubric))


def under(rubric: Rubric, made: Provenance) -> Provenance:
    """What a call knows, with the rubric it scores under."""
    return replace(made, rubric_version=rubric.version.name, rubric_sha256=rubric.sha256)


def scored_artifact(metrics: Metrics, version: str, *, made_at: int, name: str | None) -> Artifact:
    """The `scored-sessions` artifact of a metrics folder.

    Raises:
        InputError: a ledger grew while it was read, so no receipt would be that of what was read.
    """
    rubric = metrics.rubric(version)
    before = metrics.inputs(rubric)
    ledger = metrics.ledger_or_fault(rubric)
    if metrics.inputs(rubric) != before:
        raise InputError(str(metrics.folder), "a ledger changed while it was read", next_step="run it again")
    return scored_sessions.scored_sessions(ledger, rubric, made_at=made_at, inputs=before, name=name)


def found_record(metrics: Metrics, run_id: str, rubric: str | None = None) -> Record:
    """The one record of a run id.

    Raises:
        InputError: the journal holds none, or several and no rubric says which.
    """
    runs = read_journal(metrics.journal).runs(run_id)
    if rubric is not None:
        runs = [record for record in runs if record["rubric_version"] == version_named(rubric).name]
    if not runs:
        raise InputError(
            str(metrics.journal),
            "no record of this run id",
            next_step="`sessions score` prints it, and each line of the journal has its run_id",
        )
    if len({record["rubric_version"] for record in runs}) > 1:
        raise InputError(str(metrics.journal), "records of this run id under several rubrics", next_step="add --rubric")
    try:
        canonical_bytes(runs[-1])
    except ValueError:
        raise InputError(str(metrics.journal), "the record holds a number that canonical JSON cannot hold") from None
    return runs[-1]


def verified_runs(metrics: Metrics, run_id: str) -> list[tuple[Record, list[Difference]]]:
    """Every record of a run id with what it differs in.

    Raises:
        InputError: the journal holds none.
    """
    runs = read_journal(metrics.journal).runs(run_id)
    if not runs:
        raise InputError(
            str(metrics.journal),
            "no record of this run id",
            next_step="`sessions score` prints it, and each line of the journal has its run_id",
        )
    ledgers: dict[str, Ledger] = {}

    def ledger(rubric: Rubric) -> Ledger:
        return ledgers.setdefault(rubric.version.version, metrics.ledger(rubric))

    return [(record, verification(record, metrics.rubric, ledger)) for record in runs]


def calibrated(gold_file: Path, replies_file: Path, *, made_at: int) -> Artifact:
    """The calibration artifact of a gold set and a judge's replies."""
    gold, gold_receipt = read_document(gold_file)
    replies, replies_receipt = read_document(replies_file)
    cases = calibration.checked_gold(gold, source=str(gold_file))
    inputs = {"goldSet": {"receipt": gold_receipt}, "replies": {"receipt": replies_receipt}}
    return calibration.calibration(cases, _replies(replies, str(replies_file)), made_at=made_at, inputs=inputs)


def _replies(document: Any, source: str) -> dict[str, object]:
    """A judge's replies by case id: `{"version": 1, "replies": {CASE: TEXT}}`."""
    replies = document.get("replies") if isinstance(document, dict) else None
    if not isinstance(replies, dict) or document.keys() != {"version", "replies"} or document["version"] != 1:
        raise InputError(source, "not a judge's replies: version 1, and replies by case id")
    return replies
