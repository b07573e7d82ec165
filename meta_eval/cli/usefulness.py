"""`meta-eval usefulness`: one command a step of a study.

Each command works on the folder of the study that `--study` names; people put their documents where the study's
folder says, or name them. What a step makes is kept there, recorded in the custody register, and its rows go into
the evidence store.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import click

from meta_eval.cli import options
from meta_eval.cli.output import exit_code, report
from meta_eval.cli.usefulness_figures import figure_lines
from meta_eval.cli.usefulness_registers import budget, register
from meta_eval.cli.usefulness_rehearsal import rehearse
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.errors import StoreError, UsageError
from meta_eval.evidence.files import write_bytes
from meta_eval.evidence.replay import verified
from meta_eval.home import evidence_folder, studies_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.usefulness import acceptance, adjudication, closing, guidance, publication, scoring, steps
from meta_eval.lanes.usefulness import report as page
from meta_eval.lanes.usefulness.evidence_rows import DISAGREEMENTS
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.steps import Made
from meta_eval.lanes.usefulness.studies import Study

_STUDY = click.option("--study", "study_name", required=True, metavar="NAME", help="The study's name and folder.")
_SET = click.option("--set", "set_id", required=True, metavar="SET", help="The set's id.")
_INPUT = options.file("--input", "The document. [default: the one of this name in the study's inbox]")
_PACKET = options.file("--packet", "The packet file, mode 0600. [default: packets/SET.json of the study]")
Step = Callable[[Study, Setting], Made]


def _run(study_name: str, made_at: int, as_json: bool, step: Step) -> None:
    """Run a step, load its rows, print what came of it, and leave with its exit code."""
    place = Study(studies_folder(), study_name)
    artifact, path = step(place, Setting(made_at, study_name))
    store = catalogue.evidence_store(evidence_folder())
    loaded = [] if artifact["artifact"] == scoring.KIND else [artifact]
    if artifact["artifact"] == adjudication.KIND and artifact["status"] == "ready":
        # Only now may anybody read a scorer's judgments: both are on record, and so are the decisions.
        loaded = [*place.every(scoring.KIND), artifact]
    for one in loaded:
        store.load(one, catalogue.tables_of(one))
    files = [path]
    if artifact["artifact"] == acceptance.KIND:
        files.append(write_bytes(place.folder / "reports" / f"{path.stem}.html", page.report(artifact)))
        [(differing,)] = store.rows(DISAGREEMENTS, [artifact["digest"]])
        if differing:
            raise StoreError(
                f"{store.path}: SQL and Python disagree on {differing} figures; see acceptance_disagreements"
            )
    report(artifact, files, next_step=guidance.next_step(artifact), as_json=as_json)
    if artifact["artifact"] == acceptance.KIND and artifact["status"] != "blocked" and not as_json:
        click.echo("\n".join(f"  {line}".rstrip() for line in figure_lines(artifact["result"])))
    click.get_current_context().exit(exit_code(artifact))


def _shared(command: options.Command) -> options.Command:
    return _STUDY(options.clock("--evaluated-at")(options.as_json(command)))


@click.group()
def command() -> None:
    """The usefulness lane: would a visitor find the first answer useful, and more so than the baseline's?

    In order: declare, seal (a set), freeze, preflight, open (a set), record-runs, blind, score (twice), adjudicate,
    unblind, accept, publish. A step that is blocked names every rule that is broken and records nothing.
    """


@command.command()
@_INPUT
@_shared
def declare(input: Path | None, study_name: str, made_at: int, as_json: bool) -> None:  # noqa: A002
    """Declare a study: who holds which role, which arms, on which corpus. It comes before any packet."""
    _run(study_name, made_at, as_json, lambda place, setting: steps.declare(place, setting, input))


@command.command()
@_SET
@_PACKET
@_shared
def seal(set_id: str, packet: Path | None, study_name: str, made_at: int, as_json: bool) -> None:
    """Seal a set's packet: what may be known of it before the freeze, and whether its questions are fresh."""
    _run(study_name, made_at, as_json, lambda place, setting: steps.seal(place, setting, set_id, packet))


@command.command()
@_INPUT
@_shared
def freeze(input: Path | None, study_name: str, made_at: int, as_json: bool) -> None:  # noqa: A002
    """Freeze candidate, configuration, model and budget, before any packet is opened."""
    _run(study_name, made_at, as_json, lambda place, setting: steps.freeze_study(place, setting, input))


@command.command()
@_shared
def preflight(study_name: str, made_at: int, as_json: bool) -> None:
    """Check that everything planned fits the budget at its worst; else nothing runs."""
    _run(study_name, made_at, as_json, steps.preflight)


@command.command("open")
@_SET
@click.option("--by", "opener", required=True, metavar="CODE", help="The code of whoever opens it.")
@_PACKET
@_shared
def open_packet(set_id: str, opener: str, packet: Path | None, study_name: str, made_at: int, as_json: bool) -> None:
    """Open a set's packet, as the designated runner, once. This consumes it for ever."""
    _run(study_name, made_at, as_json, lambda place, setting: steps.open_packet(place, setting, set_id, opener, packet))


@command.command("record-runs")
@_INPUT
@_shared
def record_runs(input: Path | None, study_name: str, made_at: int, as_json: bool) -> None:  # noqa: A002
    """Take the runner's record of every attempt of both arms, whatever came of it."""
    _run(study_name, made_at, as_json, lambda place, setting: steps.record_runs(place, setting, input))


@command.command()
@_shared
def blind(study_name: str, made_at: int, as_json: bool) -> None:
    """Give each scorer a sheet under random labels, and publish the commitment to the key."""
    random_bytes = {"secret": os.urandom(32), "nonce": secrets.token_hex(32)}
    _run(study_name, made_at, as_json, lambda place, setting: closing.blind(place, setting, **random_bytes))  # type: ignore[arg-type]


@command.command()
@options.file("--input", "The scorer's filled sheet.")
@_shared
def score(input: Path | None, study_name: str, made_at: int, as_json: bool) -> None:  # noqa: A002
    """Take one scorer's filled sheet, whole and once."""
    if input is None:
        raise click.UsageError("missing --input")
    _run(study_name, made_at, as_json, lambda place, setting: closing.score(place, setting, input))


@command.command()
@_INPUT
@_shared
def adjudicate(input: Path | None, study_name: str, made_at: int, as_json: bool) -> None:  # noqa: A002
    """Take the adjudicator's decisions on what the scorers disagree about."""
    _run(study_name, made_at, as_json, lambda place, setting: closing.adjudicate(place, setting, input))


@command.command()
@_shared
def unblind(study_name: str, made_at: int, as_json: bool) -> None:
    """Open the commitment, once adjudication is closed."""
    _run(study_name, made_at, as_json, closing.unblind)


@command.command()
@_shared
def accept(study_name: str, made_at: int, as_json: bool) -> None:
    """Recompute the verdict from every row, and write the report."""
    _run(study_name, made_at, as_json, closing.accept)


@command.command()
@_shared
def publish(study_name: str, made_at: int, as_json: bool) -> None:
    """Write the public export: what anybody may read, and recount."""
    _run(study_name, made_at, as_json, closing.publish)


@command.command()
@click.argument("export", type=options.FILE, metavar="EXPORT")
@options.as_json
def replay(export: Path, as_json: bool) -> None:
    """Recount a public export: every count in it, from its rows, without anything else."""
    value, _ = read_document(export)
    artifact = verified(value, catalogue.REBUILDS, source=str(export), kind=publication.KIND)
    if artifact["status"] != "ready":
        raise UsageError("this export was refused when it was made, and holds nothing to recount")
    if as_json:
        click.echo(json.dumps({"verified": True, "digest": artifact["digest"], "result": artifact["result"]}))
        return
    click.secho("recounted: every count is that of the rows", bold=True, fg="green")
    click.echo("\n".join(f"  {line}".rstrip() for line in figure_lines(artifact["result"])))
    click.echo(f"  limits   {artifact['replay']['study']['limits']}")


command.add_command(register)
command.add_command(budget)
command.add_command(rehearse)
