"""`meta-eval rounds`: every round, how far it has come, and what it waits for."""

from __future__ import annotations

import json
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.places import good_round_names, round_named
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.errors import MetaEvalError
from meta_eval.home import rounds_folder
from meta_eval.lanes.production import rounds, stages


@click.command("rounds")
@options.as_json
def command(as_json: bool) -> None:
    """List the rounds, each with its latest stage, that stage's status, and what the round waits for."""
    listed = [_described(round_named(name)) for name in good_round_names()]
    if as_json:
        click.echo(json.dumps(listed))
        return
    if not listed:
        click.echo(f"no round yet in {rounds_folder()}; `meta-eval rehearse` makes one")
    for entry in listed:
        place, status, waits = (entry[key] or "" for key in ("stage", "status", "waits"))
        click.echo(f"{entry['round']:<32} {place or 'no stage yet':<20} {status:<10} {waits}".rstrip())


def _described(round_: rounds.Round) -> dict[str, Any]:
    stage_name = status = None
    for stage in stages.STAGES:
        files = round_.artifact_files(stage.kind)
        if not files:
            return {"round": round_.name, "stage": stage_name, "status": status, "waits": _waits(round_, stage)}
        stage_name, status = stage.name, _status(files[-1])
        if status == "blocked":
            break
    if judged := round_.artifact_files(stages.READINESS.kind):
        stage_name, status = stages.READINESS.name, _status(judged[-1])
    return {"round": round_.name, "stage": stage_name, "status": status, "waits": None}


def _status(file: Any) -> str:
    try:
        value, _ = read_document(file)
        return str(value["status"])
    except (MetaEvalError, KeyError, TypeError):
        return "unreadable"


def _waits(round_: rounds.Round, stage: stages.Stage) -> str:
    """What is still missing for the next stage."""
    for name in stage.inbox:
        try:
            round_.inbox_file(name)
        except MetaEvalError as error:
            return str(error)
    return f"ready to run: {stage.name}"
