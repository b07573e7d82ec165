"""A study on disk: where its files lie, who may read which, and how its register tells which artifact counts.

    studies/NAME/
      inbox/           study.json, freeze.json, budget.json, runs.json, adjudication.json: what people bring
      packets/SET.json the sealed packets, outside the export folder, for author and runner alone
      export/          the reference export that everybody may have; the public export goes there in the end
      scorers/CODE/    one scorer's sheet, as JSON and as a form; nothing of the other's
      adjudicator/     the adjudicator's sheet, once both scores are on record
      artifacts/       what the stages wrote, one folder a kind, named by time and digest
      private/         the study's key, the blinding key, and the documents that were accepted, by receipt
      register.jsonl   the custody register; budget.jsonl the budget ledger

Everything is private to its owner (0600 in 0700). An artifact counts when its digest stands in the register,
whatever else lies in the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import file_receipt, read_document
from meta_eval.evidence.errors import InputError, UsageError, WaitingError
from meta_eval.evidence.files import private_folder, remove_partials, replacing, write_bytes, write_document
from meta_eval.evidence.register import Entry, Events, Register
from meta_eval.evidence.replay import Rebuild, load_verified
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    budget,
    freeze,
    opening,
    packets,
    publication,
    runs,
    scoring,
    study,
    unblinding,
)
from meta_eval.lanes.usefulness.custody import ledger_name, register_name
from meta_eval.lanes.usefulness.hiding import KEY_BYTES
from meta_eval.lanes.usefulness.shapes import ID

_MODULES = (
    study,
    packets,
    freeze,
    budget,
    opening,
    runs,
    blinding,
    scoring,
    adjudication,
    unblinding,
    acceptance,
    publication,
)
REBUILDS: Mapping[str, Rebuild] = {module.KIND: module.STAGE.rebuild for module in _MODULES}
KIND_OF = {
    "declared": study.KIND,
    "sealed": packets.KIND,
    "frozen": freeze.KIND,
    "preflight": budget.KIND,
    "opened": opening.KIND,
    "runs-recorded": runs.KIND,
    "blinded": blinding.KIND,
    "scored": scoring.KIND,
    "adjudicated": adjudication.KIND,
    "unblinded": unblinding.KIND,
    "accepted": acceptance.KIND,
    "published": publication.KIND,
}
"""The kind of artifact that an event of the custody register names."""


class Study:
    """One study's folder. Raises UsageError for a name that is no study's."""

    def __init__(self, studies_folder: Path, name: str) -> None:
        if ID.rule_broken(name) is not None:
            raise UsageError("a study's name is 1 to 64 of a-z, 0-9 and -, and begins and ends with a letter or digit")
        self.name = name
        self.folder = studies_folder / name
        self.inbox, self.packets, self.export = (self.folder / part for part in ("inbox", "packets", "export"))
        self.scorers, self.adjudicator = self.folder / "scorers", self.folder / "adjudicator"
        self.artifacts, self.private = self.folder / "artifacts", self.folder / "private"
        self.register = Register(self.folder / "register.jsonl", register_name(name))
        self.ledger = Register(self.folder / "budget.jsonl", ledger_name(name))

    def make(self) -> Study:
        """Make the folders that are missing, and return the study."""
        for folder in (self.inbox, self.packets, self.export, self.artifacts, self.private):
            private_folder(folder)
            remove_partials(folder)
        return self

    def inbox_file(self, name: str) -> Path:
        """The file that people put into the inbox under this name. Raises WaitingError."""
        path = self.inbox / f"{name}.json"
        if not path.exists():
            raise WaitingError(f"waiting for: {name} in {path}")
        return path

    def packet_file(self, set_id: str) -> Path:
        """Where a set's packet lies unless the call names another place. Raises UsageError."""
        if ID.rule_broken(set_id) is not None:
            raise UsageError("no set's id")
        return self.packets / f"{set_id}.json"

    def registered(self, kind: str, digest: str | None, *, stage: str) -> Artifact:
        """The verified artifact of this digest.

        Raises:
            WaitingError: the register knows none yet.
            InputError: the register knows it, and its file is gone.
        """
        if digest is None:
            raise WaitingError(f"waiting for: {stage} of study {self.name}")
        for path in sorted((self.artifacts / kind).glob(f"*-{digest[:12]}.json")):
            artifact = load_verified(path, REBUILDS, kind=kind)
            if artifact["digest"] == digest:
                return artifact
        raise InputError(
            str(self.artifacts / kind), "the artifact that the register names is gone", next_step="restore it"
        )

    def every(self, kind: str) -> list[Artifact]:
        """Every artifact of a kind, oldest first, whether it counts or not; each verified."""
        return [load_verified(path, REBUILDS, kind=kind) for path in sorted((self.artifacts / kind).glob("*.json"))]

    def on_record(self, entries: Sequence[Entry]) -> list[Artifact]:
        """Every artifact that the register names, in its order, each verified.

        Raises:
            InputError: one is gone, or another lies in its place.
        """
        named = [(KIND_OF[e["event"]], e["body"]["digest"]) for e in entries if e["event"] in KIND_OF]
        return [self.registered(kind, digest, stage=kind) for kind, digest in named]

    def recorded(
        self, build: Callable[[Sequence[Entry]], Artifact], events: Callable[[Artifact], Events], *, at_ms: int
    ) -> tuple[Artifact, Path]:
        """Make an artifact from the register as it stands, keep it, and record it unless it is blocked.

        Nobody else writes to the register in between, so a stage that may run once runs once.
        """
        kept: list[tuple[Artifact, Path]] = []

        def decide(entries: Sequence[Entry]) -> Events:
            artifact = build(entries)
            kept.append((artifact, self._keep(artifact)))
            return [] if artifact["status"] == "blocked" else events(artifact)

        self.register.transact(decide, at_ms=at_ms)
        return kept[0]

    def _keep(self, artifact: Artifact) -> Path:
        stamp = artifact["madeAt"].replace("-", "").replace(":", "").replace(".", "")
        name = f"{stamp}-{artifact['digest'][:12]}.json"
        return write_document(self.artifacts / artifact["artifact"] / name, artifact)

    def retain(self, source: Path) -> str:
        """Keep a copy of a document that a stage takes, under its receipt, and return the receipt."""
        receipt = file_receipt(source)
        write_bytes(self.private / "kept" / f"{receipt}.json", source.read_bytes())
        return receipt

    def retained(self, receipt: str) -> Any:
        """A document that a stage took.

        Raises:
            InputError: it is gone, or no longer what it was.
        """
        path = self.private / "kept" / f"{receipt}.json"
        value, found = read_document(path)
        if found != receipt:
            raise InputError(str(path), "no longer the document that was taken", next_step="restore it")
        return value

    def key(self) -> bytes:
        """The study's key, made at first use as 32 random bytes. Raises InputError where it is not one."""
        path = self.private / "study.key"
        if not path.exists():
            private_folder(path.parent)
            with replacing(path) as file:
                file.write(os.urandom(KEY_BYTES))
        key = path.read_bytes()
        if len(key) != KEY_BYTES or path.stat().st_mode & 0o077:
            raise InputError(str(path), "not a key of 32 bytes that only its owner can read", next_step="restore it")
        return key
