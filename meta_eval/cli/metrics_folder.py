"""Where a sessions command finds its ledgers: a metrics folder, or a named ledger of the home folder."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.store import EvidenceStore
from meta_eval.home import evidence_folder, home_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.sessions.ledger import SESSIONS
from meta_eval.lanes.sessions.ledgers import LedgerFolder
from meta_eval.lanes.sessions.rubric import VERSIONS
from meta_eval.lanes.sessions.steps import Metrics


@dataclass(frozen=True)
class Place:
    """A metrics folder, and the ledger's name where it has one."""

    metrics: Metrics
    name: str | None

    def store(self) -> EvidenceStore:
        return catalogue.evidence_store(evidence_folder())


def ledgers_folder() -> Path:
    """The folder with one folder for each named ledger."""
    return home_folder() / "ledgers"


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where, given to the command as `place`."""

    @click.option(
        "--metrics-dir", type=options.FOLDER, metavar="DIR", help="Folder of sessions.jsonl and events.jsonl."
    )
    @click.option("--ledger", metavar="NAME", help="Instead: a ledger of the home folder, in ledgers/NAME.")
    @click.option("--journal", type=options.FILE, metavar="FILE", help="By default eval.jsonl in that folder.")
    @functools.wraps(command)
    def wrapped(*args: Any, metrics_dir: Path | None, ledger: str | None, journal: Path | None, **rest: Any) -> Any:
        return command(*args, place=_place(metrics_dir, ledger, journal), **rest)

    return wrapped


def _place(metrics_dir: Path | None, ledger: str | None, journal: Path | None) -> Place:
    if metrics_dir is not None and ledger is not None:
        raise click.UsageError("give --metrics-dir DIR or --ledger NAME, not both")
    if metrics_dir is not None:
        return Place(Metrics.of(metrics_dir, journal), None)
    name = _only_ledger() if ledger is None else ledger
    return Place(Metrics.of(LedgerFolder(ledgers_folder(), name).folder, journal), name)


def _only_ledger() -> str:
    names = sorted(path.parent.name for path in ledgers_folder().glob(f"*/{SESSIONS}"))
    if len(names) != 1:
        found = f"{len(names)} ledgers" if names else "no ledger"
        raise click.UsageError(f"the home folder holds {found}; say --metrics-dir DIR or --ledger NAME")
    return names[0]


def rubric_option(default: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The rubric's version; without a default it is that of the record."""
    shown = default is not None
    return click.option(
        "--rubric",
        type=click.Choice(list(VERSIONS)),
        default=default,
        show_default=shown,
        help="The rubric's version." if shown else "Which record, where the run id has one under each version.",
    )


def file_name(text: str, suffix: str) -> str:
    """A file name for a text that may hold anything: told apart by a digest where characters had to go."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", text)[:120].lstrip(".")
    same = plain == text
    return f"{plain}{suffix}" if same else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}{suffix}"
