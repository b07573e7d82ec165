"""`meta-eval golden`: run an answerer against golden prompts, and gate a change by what it broke.

Exit codes: 0 nothing regressed; 1 something did, or records, prompts and baseline do not belong together; 2 the call or
a file cannot be used.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.files import write_bytes, write_document
from meta_eval.home import evidence_folder, golden_runs_folder
from meta_eval.lanes.golden import gate, steps
from meta_eval.lanes.golden.process import Limits
from meta_eval.lanes.golden.prompts import KINDS, derived_prompts
from meta_eval.lanes.golden.seed_records import read_records

_COLOURS = {"regressed": "red", "fixed": "green", "changed": "yellow", "same": None}


@click.group()
def command() -> None:
    """The golden gate: did a change of an answerer break what worked?

    120 prompts over a small invented collection, each with the answer that its records give. An answerer is any
    command that reads a question a line and writes an answer a line, or the built-in baseline. The verdict is of
    regression alone; it can never stand in for evidence of production.
    """


@command.command()
@click.option("--answerer", required=True, metavar="COMMAND", help="`builtin`, or a command; no shell reads it.")
@options.file("--records", "Seed records, JSON Lines. By default the project's invented collection.")
@options.file("--prompts", "Golden prompts about these records, made by `golden prompts`. By default the project's.")
@options.file(
    "--baseline",
    "A frozen run to compare with. By default the built-in answerer's for itself, and the expectation for a command.",
)
@options.file("--write-baseline", "Freeze this run, to compare later ones with.")
@click.option("--output", type=options.FOLDER, metavar="DIR", help="Folder for the verdict. [default: golden-runs]")
@options.file("--junit", "Write the run as JUnit XML, a test case a prompt.")
@click.option("--timeout", type=click.FloatRange(min=0.01), default=10.0, show_default=True, help="Seconds a prompt.")
@click.option(
    "--total-timeout", type=click.FloatRange(min=0.1), default=300.0, show_default=True, help="Seconds a run."
)
@options.clock("--evaluated-at")
@options.as_json
def run(
    answerer: str,
    records: Path | None,
    prompts: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    output: Path | None,
    junit: Path | None,
    timeout: float,
    total_timeout: float,
    made_at: int,
    as_json: bool,
) -> None:
    """Ask an answerer every prompt, and compare with what is expected and with the baseline.

    It is asked {"promptId", "question"} and answers {"refused", "claims": [{"claimId", "citations"}], "latencyMs"},
    one line each. A prompt on which it hangs, crashes or says anything else is an error, counted and never dropped.
    """
    own = records is None and prompts is None
    if (records is None) is not (prompts is None):
        raise click.UsageError(
            "give --records and --prompts together: prompts are about the records they were made from"
        )
    if baseline is None and own and answerer == steps.BUILT_IN and write_baseline is None:
        baseline = steps.BASELINE
    files = steps.Files(records or steps.RECORDS, prompts or steps.PROMPTS, baseline)
    with _progress() as on_prompt:
        made = steps.run(files, answerer, made_at=made_at, limits=Limits(timeout, total_timeout), on_prompt=on_prompt)
    artifact, written = made.artifact, []
    written.append(write_document((output or golden_runs_folder()) / _name(artifact), artifact))
    if artifact["status"] != gate.BLOCKED:
        if junit is not None:
            from meta_eval.lanes.golden.junit import junit_xml

            written.append(write_bytes(junit, junit_xml(artifact, made.prompts)))
        if write_baseline is not None:
            written.append(write_document(write_baseline, gate.baseline_of(artifact)))
    _load(artifact)
    if as_json:
        click.echo(json.dumps(_told(artifact) | {"files": [str(path) for path in written]}))
    else:
        _report(made, written, compared=baseline is not None)
    click.get_current_context().exit(0 if artifact["status"] == gate.NO_REGRESSION else 1)


@command.command()
@click.option("--records", type=options.FILE, metavar="FILE", required=True, help="Seed records, JSON Lines.")
@click.option("--output", type=options.FILE, metavar="FILE", required=True, help="Where to write the prompts.")
def prompts(records: Path, output: Path) -> None:
    """Make 120 prompts about records of your own, with the answers that the records give.

    The same records always give the same prompts. No answerer has a part in it.
    """
    document = derived_prompts(read_records(records))
    write_document(output, document)
    click.echo(
        f"{len(document['prompts'])} prompts in {output}: {', '.join(f'{n} {kind}' for kind, n in KINDS.items())}"
    )


def _name(artifact: Artifact) -> str:
    return f"golden-{re.sub('[-:.]', '', artifact['madeAt'])}-{artifact['digest'][:12]}.json"


def _load(artifact: Artifact) -> None:
    from meta_eval.lanes import catalogue

    catalogue.evidence_store(evidence_folder()).load(artifact, catalogue.tables_of(artifact))


def _told(artifact: Artifact) -> dict[str, Any]:
    kept = ("artifact", "evidenceClass", "status", "blockers", "madeAt", "digest")
    return {**{key: artifact[key] for key in kept}, "result": artifact["result"]}


def _report(made: steps.Run, written: list[Path], *, compared: bool) -> None:
    artifact = made.artifact
    good = artifact["status"] == gate.NO_REGRESSION
    click.secho(f"golden: {artifact['status']}", bold=True, fg="green" if good else "red")
    if artifact["status"] == gate.BLOCKED:
        for entry in artifact["blockers"]:
            click.echo(f"  {entry['code']}  {entry['subject']}  ({entry['count']})")
        click.echo("  next     bring records, prompts and baseline that were made for each other")
    else:
        result = artifact["result"]
        click.echo(f"  met      {result['met']} of {result['prompts']} prompts; errors {result['outcomes']['error']}")
        for kind, counts in result["byKind"].items():
            click.echo(f"           {counts['met']:>3} of {counts['prompts']:>3}  {kind}")
        click.echo(f"  against  {'the baseline' if compared else 'the expectation, for there is no baseline'}")
        click.echo("           " + ", ".join(f"{n} {verdict}" for verdict, n in result["counts"].items()))
        _differences(made)
    for path in written:
        click.echo(f"  wrote    {path}")


def _differences(made: steps.Run) -> None:
    """Each prompt that is not the same, as a reader would compare it."""
    from meta_eval.lanes.golden.junit import got, said

    replay = made.artifact["replay"]
    before = {row["promptId"]: row for row in replay["baseline"]["answers"]} if replay["baseline"] else {}
    rows = zip(made.prompts, replay["answers"], made.artifact["result"]["verdicts"], strict=True)
    for prompt, answer, verdict in rows:
        if verdict["verdict"] == "same":
            continue
        click.secho(f"\n  {verdict['verdict']}  {prompt.prompt_id}", fg=_COLOURS[verdict["verdict"]])
        click.echo(f"    {prompt.question}")
        click.echo(f"    expected {said(prompt.claim_ids)}")
        if prompt.prompt_id in before:
            click.echo(f"    before   {got(before[prompt.prompt_id])}")
        click.echo(f"    now      {got(answer)}")
    click.echo()


@contextmanager
def _progress() -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking", total=sum(KINDS.values()))
        yield lambda: bar.advance(task)
