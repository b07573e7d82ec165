"""What the sensors look at: the rounds' folders, listed without opening more files than must be opened.

Nothing is decided here. `inbox` and `scoring` decide, from what these functions return.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifact_roots import ArtifactRoot
from meta_eval.evidence.canonical import Readable, file_receipt
from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.production.rounds import round_name_problem
from meta_eval.lanes.production.stages import STAGES, input_name, stage_named

_UNSHOWN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class Found:
    """A file in a round's inbox, as the folder tells it."""

    round: str
    name: str
    size: int
    modified_ns: int


@dataclass(frozen=True)
class Listing:
    """All inboxes; what could not be listed is named, and stops nothing else."""

    files: list[Found] = field(default_factory=list)
    rounds: list[str] = field(default_factory=list)
    not_rounds: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def shown_name(name: str) -> str:
    """A name out of a folder, safe to log: plain characters only, and cut."""
    return _UNSHOWN.sub("?", name)[:40]


def list_inboxes(rounds: Path) -> Listing:
    """Every file of every round's inbox, by name, size and time; none is opened."""
    listing = Listing()
    for folder in _folders(rounds):
        if round_name_problem(folder.name) is not None:
            listing.not_rounds.append(shown_name(folder.name))
            continue
        listing.rounds.append(folder.name)
        try:
            with os.scandir(Path(folder.path) / "inbox") as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if not entry.name.startswith(".") and entry.is_file():
                        stat = entry.stat()
                        listing.files.append(Found(folder.name, entry.name, stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            continue  # no inbox yet, or a file that went while we looked
        except OSError:
            listing.unreadable.append(folder.name)
    return listing


def steady_receipt(rounds: Path, found: Found) -> str | None:
    """The SHA-256 of a file, or None where it changed while it was read. Raises InputError where it cannot be read."""
    path = rounds / found.round / "inbox" / found.name
    sha = file_receipt(path)
    stat = path.stat()
    return sha if (stat.st_size, stat.st_mtime_ns) == (found.size, found.modified_ns) else None


def newest_artifacts(root: ArtifactRoot, stage: str) -> dict[str, str]:
    """By round, the file name of a stage's newest artifact; none is opened."""
    kind = stage_named(stage).kind
    names = [name for name in root.round_names() if round_name_problem(name) is None]
    return {name: file.name for name in names if (file := _newest_file(root, name, kind))}


def newest_artifact(root: ArtifactRoot, round_name: str, stage: str) -> dict[str, Any] | None:
    """A stage's newest artifact as it was written, or None where there is none that can be read.

    Not verified: it only decides what is worth asking for. The stage that is asked for verifies what it reads.
    """
    try:
        file = _newest_file(root, round_name, stage_named(stage).kind)
        value = json.loads(file.read_bytes()) if file else None
    except (OSError, ValueError, RecursionError, MetaEvalError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("blockers"), list):
        return None
    return value if all(isinstance(value.get(key), str) for key in ("status", "digest")) else None


def ready_stages(root: ArtifactRoot, round_name: str) -> frozenset[str]:
    """The stages whose newest artifact says that it is ready."""
    made = {stage.name: newest_artifact(root, round_name, stage.name) for stage in STAGES}
    return frozenset(name for name, artifact in made.items() if artifact and artifact["status"] == "ready")


def taken_in(root: ArtifactRoot, round_name: str, name: str, sha: str) -> bool:
    """Does the newest artifact of a stage that reads this input say that it was made from these bytes?

    Then somebody ran the stage already, in the terminal or by hand, and the file is no news.
    """
    newest = (newest_artifact(root, round_name, stage.name) for stage in STAGES if name in stage.inbox)
    inputs = [artifact.get("inputs") for artifact in newest if artifact]
    return any(isinstance(named, dict) and named.get(input_name(name)) == {"receipt": sha} for named in inputs)


def is_scored(root: ArtifactRoot, round_name: str, bundle_digest: str) -> bool:
    """Is the newest verdict of a round that of this bundle?"""
    verdict = newest_artifact(root, round_name, "production_metrics")
    named = verdict.get("inputs") if verdict else None
    return isinstance(named, dict) and named.get("assembledBundle") == {"digest": bundle_digest}


def _newest_file(root: ArtifactRoot, round_name: str, kind: str) -> Readable | None:
    files = [file for file in root.files(round_name, kind) if file.name[0] != "."]
    return files[-1] if files else None


def _folders(rounds: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(rounds) as entries:
            yield from sorted((entry for entry in entries if entry.is_dir()), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
