"""`meta-eval sessions judge`: carry a question to a judge and an opinion back, by files. It calls no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.metrics_folder import Place, file_name, placed, rubric_option
from meta_eval.cli.output import exit_code
from meta_eval.evidence.canonical import read_document, unreadable
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.lanes.sessions import steps
from meta_eval.lanes.sessions.calibration import KIND, checked_gold
from meta_eval.lanes.sessions.journal import append
from meta_eval.lanes.sessions.judge import parsed_reply, prompt, record_slice, with_opinions
from meta_eval.lanes.sessions.record import run_id_of, title
from meta_eval.lanes.sessions.rubric import version_named


@click.group()
def judge() -> None:
    """A judge's advisory opinions, off by default: request, merge and calibrate.

    A request is a file with a prompt. You take it to a judge of your choice and bring the reply back in a file.
    """


@judge.command()
@click.argument("run_id", required=False)
@placed
@rubric_option(None)
@options.file("--gold", "Instead of a record: a frozen gold set; one prompt a case.")
@click.option("--output", type=click.Path(path_type=Path), metavar="PATH", help="A file; with --gold a folder.")
def request(run_id: str | None, place: Place, rubric: str | None, gold: Path | None, output: Path | None) -> None:
    """Write the prompt about RUN-ID, its slice fenced as untrusted data."""
    if (run_id is None) == (gold is None) or (gold is not None and output is None):
        raise click.UsageError("give RUN-ID, or --gold FILE with --output FOLDER")
    if gold is not None and output is not None:
        document, _ = read_document(gold)
        for case in checked_gold(document, source=str(gold)):
            text = prompt(case["slice"], tuple(case["expected"]))
            click.echo(str(write_bytes(output / file_name(case["caseId"], ".txt"), text.encode("utf-8"))))
        return
    record = steps.found_record(place.metrics, run_id or "", rubric)
    text = prompt(record_slice(record), version_named(record["rubric_version"]).judge_dimensions)
    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(str(write_bytes(output, text.encode("utf-8"))))


@judge.command()
@click.argument("run_id")
@placed
@rubric_option(None)
@click.option("--reply", type=options.FILE, required=True, metavar="FILE", help="The judge's reply, as text.")
@options.clock("--timestamp")
@options.as_json
def merge(run_id: str, place: Place, rubric: str | None, reply: Path, made_at: int, as_json: bool) -> None:
    """Append a new record: RUN-ID's verdicts with the reply's opinions, advisory and uncalibrated.

    Opinions on other questions, repeated ones and malformed ones are dropped. Exits 1 where none is left.
    """
    record = steps.found_record(place.metrics, run_id, rubric)
    try:
        text = reply.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise unreadable(reply, error) from error
    opinions = parsed_reply(text, version_named(record["rubric_version"]).judge_dimensions)
    written = 0
    merged = with_opinions(record, opinions)
    if opinions:
        timestamp = written_instant(made_at)
        merged |= {"timestamp": timestamp, "run_id": run_id_of(record["session_id"], timestamp)}
        written = append(place.metrics.journal, [merged], refuse_other=True)
    if as_json:
        click.echo(
            json.dumps({"runId": merged["run_id"], "opinions": opinions, "written": written}, ensure_ascii=False)
        )
    else:
        for opinion in opinions:
            click.echo(f"  {opinion['status']:<16} {opinion['id']}  (advisory, uncalibrated)")
        click.echo(
            f"  journal   +{written} {title(merged)}" if opinions else "  no opinion in the reply could be taken"
        )
    click.get_current_context().exit(0 if opinions else 1)


@judge.command()
@options.file("--gold", "The frozen gold set.")
@options.file("--replies", "The judge's replies by case id.")
@click.option(
    "--output", type=options.FOLDER, required=True, metavar="DIR", help="Folder for the calibration artifact."
)
@options.clock("--timestamp")
@options.as_json
def calibrate(gold: Path | None, replies: Path | None, output: Path, made_at: int, as_json: bool) -> None:
    """How far a judge agrees with people: raw agreement, Cohen's kappa and intervals, a dimension.

    The report is an artifact of its own. Records stay uncalibrated whatever it says.
    """
    if gold is None or replies is None:
        raise click.UsageError("missing --gold or --replies")
    artifact = steps.calibrated(gold, replies, made_at=made_at)
    path = write_document(output / f"{KIND}-{artifact['digest'][:12]}.json", artifact)
    if as_json:
        kept = {key: artifact[key] for key in ("artifact", "status", "blockers", "result", "digest")}
        click.echo(json.dumps({**kept, "file": str(path)}))
    else:
        click.secho(f"{KIND}: {artifact['status']}", bold=True)
        for name, figures in artifact["result"]["dimensions"].items():
            click.echo(f"  {name:<22} {_figures(figures)}")
        for blocker in artifact["blockers"]:
            click.echo(f"  {blocker['code']}  {blocker['subject']}  ({blocker['count']})")
        click.echo(f"  wrote     {path}")
    click.get_current_context().exit(exit_code(artifact))


def _figures(figures: dict[str, Any]) -> str:
    def interval(name: str) -> str:
        return "" if figures[name] is None else " ({:.3f} to {:.3f})".format(*figures[name])

    agreed = f"agreed {figures['agreed']}/{figures['pairs']}{interval('agreementBootstrap95')}"
    value = "kappa none" if figures["kappa"] is None else f"kappa {figures['kappa']:.3f}{interval('kappaBootstrap95')}"
    return f"{agreed}, {value}, {figures['unanswered']} unanswered"
