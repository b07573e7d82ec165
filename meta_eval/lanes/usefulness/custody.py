"""Custody: what the file system and the register say about a packet and about how far a study has come.

Source: the usefulness contract, custody register. A packet's file is looked at through one open descriptor that
follows no link, so that what was judged is what is read. The register decides what was sealed, opened and consumed,
whatever became of the files.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.canonical import receipt, unreadable
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness.stage import Row

FOLLOW_UPS = ("shared-cause-diagnosis", "bounded-development-experiment", "unsealed-falsification-challenge")
_ONCE = ("declared", "frozen", "preflight", "runs-recorded", "blinded", "adjudicated", "unblinded", "accepted")


@dataclass(frozen=True)
class FileFacts:
    """What is true of a packet's file. Nothing in it says where the file is or what it holds."""

    receipt: str
    mode: str
    symlink: bool
    regular: bool
    owned: bool
    in_export: bool

    @property
    def document(self) -> Row:
        words = asdict(self)
        words["inExport"] = words.pop("in_export")
        return words


def look_at(path: Path, *, export_folder: Path) -> tuple[FileFacts, bytes]:
    """A packet file's facts and its bytes; no bytes where its facts refuse it.

    Raises:
        InputError: it is not there, or cannot be opened at all.
    """
    inside = path.absolute().is_relative_to(export_folder.absolute()) or path.resolve().is_relative_to(
        export_folder.resolve()
    )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            return FileFacts("0" * 64, "0000", True, False, True, inside), b""
        raise unreadable(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        facts = FileFacts(
            "0" * 64,
            f"{stat.S_IMODE(found.st_mode):04o}",
            False,
            stat.S_ISREG(found.st_mode),
            found.st_uid == os.geteuid(),
            inside,
        )
        if file_blockers(facts.document, subject="packet"):
            return facts, b""
        data = file.read()
    return FileFacts(**{**asdict(facts), "receipt": receipt(data)}), data


def file_blockers(facts: Mapping[str, Any], *, subject: str) -> list[Blocker]:
    """Why a packet's file is not in custody."""
    rules = {
        "packet-is-a-symlink": facts["symlink"],
        "packet-not-a-regular-file": not facts["regular"] and not facts["symlink"],
        "packet-mode-not-0600": facts["mode"] != "0600" and not facts["symlink"],
        "packet-owned-by-another": not facts["owned"],
        "packet-inside-export-folder": facts["inExport"],
    }
    return [Blocker(rule, subject) for rule, broken in rules.items() if broken]


def register_name(study: str) -> str:
    """What a study's custody register is of."""
    return f"{study}/custody"


def ledger_name(study: str) -> str:
    """What a study's budget ledger is of."""
    return f"{study}/budget"


def state_of(entries: Sequence[Entry]) -> Row:
    """How far a study has come, from its register alone."""
    state: Row = {
        "head": entries[-1]["digest"] if entries else None,
        "at": entries[-1]["at"] if entries else None,
        **dict.fromkeys(_ONCE),
        "sealed": {},
        "opened": {},
        "scored": {},
    }
    for entry in entries:
        event, body = entry["event"], entry["body"]
        if event in _ONCE:
            state[event] = body["digest"]
        elif event in ("sealed", "opened"):
            state[event][body["setId"]] = {"receipt": body["receipt"], "digest": body["digest"]}
        elif event == "scored":
            state["scored"][body["scorerCode"]] = body["digest"]
    return state


def order_blockers(state: Row, *, event: str, after: Iterable[str], made_at: int) -> list[Blocker]:
    """Once only, after what must come first, and not before the last thing that the register knows."""
    blockers = [Blocker(f"not-yet-{earlier}", "register") for earlier in after if state[earlier] is None]
    if state.get(event) is not None and event in _ONCE:
        blockers.append(Blocker(f"already-{event}", "register"))
    last = instant_ms(state["at"])
    if last is not None and made_at < last:
        blockers.append(Blocker("clock-before-register", "register"))
    return blockers


def unregistered(state: Row, **artifacts: Artifact | str) -> list[Blocker]:
    """A blocker for each artifact that is not the one whose digest the register holds."""
    blockers = []
    for event, artifact in artifacts.items():
        found = artifact if isinstance(artifact, str) else artifact["digest"]
        name = event.replace("_", "-")
        if state[name] is not None and state[name] != found:
            blockers.append(Blocker("differs-from-register", name))
    return blockers


def consumed_digests(registers: Iterable[Sequence[Entry]]) -> dict[str, str]:
    """Every question that was ever exposed, by the digest of its normalised text, with its packet's receipt."""
    return {
        sha256: entry["body"]["receipt"]
        for entries in registers
        for entry in entries
        if entry["event"] == "consumed"
        for sha256 in entry["body"]["questions"]
    }


def missing_follow_ups(registers: Iterable[Sequence[Entry]]) -> list[str]:
    """What the registers still owe after their latest failed acceptance."""
    missing: set[str] = set()
    for entries in registers:
        failed = max(
            (e["seq"] for e in entries if e["event"] == "accepted" and e["body"]["status"] == "failed"), default=None
        )
        if failed is not None:
            since = {entry["event"] for entry in entries if entry["seq"] > failed}
            missing |= set(FOLLOW_UPS) - since
    return sorted(missing)


def cleared(entries: Sequence[Entry], *, set_id: str, receipt: str) -> set[str]:
    """The questions of these very packet bytes that a person has cleared as different from what they resemble."""
    return {
        entry["body"]["questionId"]
        for entry in entries
        if entry["event"] == "cleared" and (entry["body"]["setId"], entry["body"]["receipt"]) == (set_id, receipt)
    }
