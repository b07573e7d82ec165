"""`meta-eval verify`: what an auditor runs, with no Dagster and no trust in whoever wrote the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.metrics_folder import ledgers_folder
from meta_eval.cli.places import round_named, round_names
from meta_eval.cli.verified_files import verified_path
from meta_eval.cli.verified_round import verified_round
from meta_eval.cli.verified_study import verified_study
from meta_eval.evidence.errors import InputError
from meta_eval.home import golden_runs_folder, rounds_folder, studies_folder
from meta_eval.lanes.usefulness.studies import Study


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--round", "round_name", metavar="NAME", help="Every artifact of a round, and the chain between them.")
@click.option("--study", "study_name", metavar="NAME", help="A study's registers, its artifacts, and their chain.")
@click.option("--all", "every", is_flag=True, help="Every round, study, ledger and golden run.")
@options.as_json
def command(path: Path | None, round_name: str | None, study_name: str | None, every: bool, as_json: bool) -> None:
    """Replay artifacts and compare them whole.

    PATH is an artifact, or a folder whose artifacts are all verified. Each one is read strictly, its digest is
    checked, and the whole of it is rebuilt from what it keeps, at its own recorded time. In a round, every digest
    that an artifact names must be that of another one there, every receipt that of its file, and where the evidence
    store is at hand, each artifact must be one that the store was given. Where the round still holds the files that
    an artifact was made from, its stage is run again from them, and must make the same artifact. Where machines share
    the artifacts, the receipts of files that this machine does not hold are named as not checked. In a study, both
    registers must be whole, and each artifact must keep of the others and of the registers what these hold.

    Exits 1 and names each artifact that fails, with the place of the first difference.
    """
    if sum((path is not None, round_name is not None, study_name is not None, every)) != 1:
        raise click.UsageError("give one of PATH, --round NAME, --study NAME and --all")
    if path is not None:
        results = list(verified_path(path))
    elif round_name is not None:
        results = list(verified_round(round_named(round_name)))
    elif study_name is not None:
        results = list(verified_study(Study(studies_folder(), study_name)))
    else:
        rounds = [round_named(name) for name in round_names()]
        studies = [Study(studies_folder(), name) for name in _names(studies_folder())]
        results = [result for round_ in rounds for result in verified_round(round_)]
        results += [result for place in studies for result in verified_study(place)]
        others = [folder for folder in (ledgers_folder(), golden_runs_folder()) if folder.is_dir()]
        results += [result for folder in others for result in verified_path(folder)]
    if not results:
        sought = str(path or round_name or study_name or rounds_folder())
        raise InputError(sought, "no artifact to verify", next_step="check the name")
    _print(results, as_json=as_json)
    click.get_current_context().exit(0 if all(result["verified"] for result in results) else 1)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.glob("*") if entry.is_dir())


def _print(results: list[dict[str, Any]], *, as_json: bool) -> None:
    failed = sum(not result["verified"] for result in results)
    if as_json:
        click.echo(json.dumps({"verified": len(results) - failed, "failed": failed, "artifacts": results}))
        return
    for result in results:
        word = click.style("verified", fg="green") if result["verified"] else click.style("REFUSED ", fg="red")
        told = f"{result['artifact']} {result['status']}" if result["verified"] else result["reason"]
        told += ", made again from its files" if result.get("madeAgain") and result["verified"] else ""
        click.echo(f"{word}  {result['path']}  {told}")
    if unseen := {name for result in results for name in result.get("notChecked", ())}:
        names = ", ".join(sorted(unseen))
        click.echo(f"not checked here, for their files lie on another machine: the receipts of {names}")
    click.echo(f"{len(results) - failed} verified, {failed} refused")
