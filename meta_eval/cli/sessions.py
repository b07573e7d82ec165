"""`meta-eval sessions`: score agent sessions under the frozen session process rubric, and check what was scored.

Exit codes: 0 scored, or every record verifies; 1 no session to score, a record that the contract refuses, or a record
that does not verify; 2 a call or a file that cannot be used.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.judge import judge
from meta_eval.cli.metrics_folder import Place, file_name, placed, rubric_option
from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.files import write_bytes
from meta_eval.lanes import catalogue
from meta_eval.lanes.sessions import steps
from meta_eval.lanes.sessions.journal import append, read_journal
from meta_eval.lanes.sessions.ledgers import LedgerFolder
from meta_eval.lanes.sessions.record import MODEL_SOURCES, Provenance, Record, RecordError, checked, title
from meta_eval.lanes.sessions.report import report as written_report
from meta_eval.lanes.sessions.resolution import SessionResolutionError, unusable_ids
from meta_eval.lanes.sessions.rubric import NEWEST
from meta_eval.lanes.sessions.scored_sessions import readings
from meta_eval.lanes.sessions.scoring import Scored
from meta_eval.lanes.sessions.submission import submission as sent_part
from meta_eval.lanes.sessions.trend import trend as trend_of
from meta_eval.lanes.sessions.verification import told

_COLOURS = {"pass": "green", "fail": "red", "cannot-determine": "yellow", "not-applicable": None}


@click.group()
def command() -> None:
    """The sessions lane: did an agent session follow its process?

    Reads sessions.jsonl and events.jsonl of a metrics folder, appends a record a session to its eval.jsonl, and never
    gives an overall figure. Exits 0 when scored or verified; 1 when there is nothing to score, or a record is refused
    or drifts; 2 when the call or a file cannot be used.
    """


command.add_command(judge)


@command.command()
@click.option("--session", metavar="ID", help="This session, by its last record. By default the newest finished one.")
@click.option("--all", "every", is_flag=True, help="Every session that is finished, in one pass.")
@placed
@rubric_option(NEWEST)
@options.clock("--timestamp")
@click.option("--no-write", is_flag=True, help="Score and print; append nothing to the journal.")
@click.option("--model-id", default="unknown", show_default=True, metavar="ID", help="The model that ran the session.")
@click.option("--model-source", type=click.Choice(MODEL_SOURCES), default="self-report", show_default=True)
@click.option("--platform", default="unknown", show_default=True, metavar="NAME", help="What the session ran in.")
@click.option("--plugin-version", default="unknown", show_default=True, metavar="V", help="The harness's version.")
@click.option("--hostname-hash", metavar="HEX", help="A pseudonym of the machine; its name is never read. [optional]")
@click.option("--handle", metavar="NAME", help="A handle to publish under; without one the record is anonymous.")
@options.as_json
def score(
    session: str | None,
    every: bool,
    place: Place,
    rubric: str,
    made_at: int,
    no_write: bool,
    as_json: bool,
    **known: Any,
) -> None:
    """Score a session, or with --all every finished one, and append the records to the journal.

    A session that was abandoned is never scored. With --ledger NAME the verdicts also become an artifact in the
    ledger's folder and rows in the evidence store.
    """
    if every and session is not None:
        raise click.UsageError("give --session ID or --all, not both")
    made = Provenance(
        timestamp=written_instant(made_at),
        rubric_version="",
        rubric_sha256="",
        engine_commit=f"meta-eval-{version('meta-eval')}",
        **known,
    )
    if every:
        _score_every(place, rubric, made, made_at, no_write=no_write, as_json=as_json)
        return
    ledger, frozen, scored = steps.scored(place.metrics, rubric, session)
    record = checked(scored.record(steps.under(frozen, made)))
    written = 0 if no_write else append(place.metrics.journal, [record], refuse_other=True)
    told_as = {"via": scored.resolved.via, "passedOver": scored.resolved.passed_over, "written": written}
    if as_json:
        click.echo(json.dumps({"record": record, **told_as, "readings": readings(ledger)}, ensure_ascii=False))
    else:
        _print_record(record)
        _print_end(place, readings(ledger), written, no_write=no_write)


def _score_every(place: Place, rubric: str, made: Provenance, made_at: int, *, no_write: bool, as_json: bool) -> None:
    ledger, frozen, scored = steps.all_scored(place.metrics, rubric)
    if not scored:
        raise SessionResolutionError("none-eligible", f"{place.metrics.folder}: no finished session to score")
    records, refused = _split(scored, steps.under(frozen, made))
    written = 0 if no_write else append(place.metrics.journal, records, refuse_other=True)
    if place.name is not None and not no_write:
        artifact = LedgerFolder(place.metrics.folder.parent, place.name).keep_scored(rubric, made_at).artifact
        place.store().load(artifact, catalogue.tables_of(artifact))
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        for dimension in record["dimensions"]:
            by_status = counts.setdefault(dimension["id"], {})
            by_status[dimension["status"]] = by_status.get(dimension["status"], 0) + 1
    passed_over = unusable_ids(ledger)
    if as_json:
        summary = {"sessions": len(scored), "written": written, "refused": refused, "counts": counts}
        click.echo(json.dumps({**summary, "withoutUsableId": passed_over, "readings": readings(ledger)}))
    else:
        click.secho(f"{len(scored):,} sessions scored under {frozen.version.name}", bold=True)
        for name, by_status in counts.items():
            click.echo(
                f"  {name:<22} " + "  ".join(f"{number:>6,} {status}" for status, number in sorted(by_status.items()))
            )
        for entry in refused:
            click.echo(f"  record of line {entry['line']} refused: {entry['field']}")
        if passed_over:
            click.echo(f"  {passed_over:,} finished record(s) without a usable id were passed over")
        _print_end(place, readings(ledger), written, no_write=no_write)
    click.get_current_context().exit(1 if refused else 0)


def _split(scored: list[Scored], made: Provenance) -> tuple[list[Record], list[dict[str, Any]]]:
    """Records that the contract takes, and for each other one its line and the field."""
    records: list[Record] = []
    refused: list[dict[str, Any]] = []
    for session in scored:
        try:
            records.append(checked(session.record(made)))
        except RecordError as error:  # one session's absurd figure is no reason to withhold the others
            refused.append({"line": session.facts.line.line, "field": error.field})
    return records, refused


def _print_record(record: Record) -> None:
    click.secho(title(record), bold=True)
    for dimension in record["dimensions"]:
        status = click.style(f"{dimension['status']:<16}", fg=_COLOURS[dimension["status"]])
        click.echo(f"  {status} {dimension['id']}")
        click.echo(f"                   {dimension['evidence']}")


def _print_end(place: Place, read: dict[str, Any], written: int, *, no_write: bool) -> None:
    for name, reading in read.items():
        told_of = [
            f"{value:,} {word}" for word, value in reading.items() if type(value) is int and value and word != "objects"
        ]
        flags = [word for word, value in reading.items() if value is True]
        lines = f" (lines {', '.join(map(str, reading['malformedLines']))})" if reading.get("malformedLines") else ""
        click.echo(
            f"  {name:<9} {reading['state']}, {reading['objects']:,} read"
            + "".join(f", {t}" for t in [*told_of, *flags])
            + lines
        )
    click.echo("  nothing written" if no_write else f"  journal   {place.metrics.journal} (+{written:,})")


@command.command()
@click.argument("run_id")
@placed
@options.as_json
def verify(run_id: str, place: Place, as_json: bool) -> None:
    """Score RUN-ID anew and compare: dimensions, KPIs, host class, run id and the rubric's bytes.

    Exits 0 when every record of the run id verifies, 1 when one drifts, with each difference.
    """
    results = steps.verified_runs(place.metrics, run_id)
    if as_json:
        shown = [
            {"rubric": record["rubric_version"], "verified": not found, "differences": found}
            for record, found in results
        ]
        click.echo(json.dumps({"runId": run_id, "records": shown}, ensure_ascii=False))
    else:
        for record, found in results:
            word = click.style("DRIFT   ", fg="red") if found else click.style("verified", fg="green")
            click.echo(f"{word}  {title(record)}  {record['rubric_version']}")
            for difference in found:
                click.echo(f"          {told(difference)}")
    click.get_current_context().exit(1 if any(found for _, found in results) else 0)


@command.command()
@click.argument("run_id")
@placed
@rubric_option(None)
@click.option(
    "--output", type=options.FILE, metavar="FILE", help="By default in the reports folder beside the journal."
)
def report(run_id: str, place: Place, rubric: str | None, output: Path | None) -> None:
    """Write RUN-ID as one HTML file that needs nothing else, the same bytes every time."""
    record = steps.found_record(place.metrics, run_id, rubric)
    name = file_name(f"{record['run_id']}-{record['rubric_version']}", ".html")
    target = output or place.metrics.journal.parent / "reports" / name
    click.echo(str(write_bytes(target, written_report(record).encode("utf-8"))))


@command.command()
@placed
@options.as_json
def trend(place: Place, as_json: bool) -> None:
    """Across the journal: how often each dimension came out how, with intervals, and ties said as ties."""
    journal = read_journal(place.metrics.journal)
    found = trend_of(journal.records)
    if as_json:
        health = {"malformed": journal.malformed, "refused": journal.refused, "torn": journal.torn}
        runs = [record["run_id"] for record in journal.records]
        click.echo(json.dumps({**found, "journal": health, "runIds": runs}, ensure_ascii=False))
        return
    click.secho(f"{found['records']:,} records of {found['sessions']:,} sessions", bold=True)
    for name, dimension in found["dimensions"].items():
        click.echo(name)
        for group in dimension["groups"]:
            counts = "  ".join(f"{number:>4} {status}" for status, number in group["counts"].items())
            rate = "" if group["passRate"] is None else f"  pass {group['passRate']:.3f}"
            interval = "" if group["wilson95"] is None else " ({:.3f} to {:.3f})".format(*group["wilson95"])
            note = f"  {group['note']}" if group["note"] else ""
            click.echo(f"  {group['rubric']} {group['model']:<16} {counts}{rate}{interval}{note}")
        for comparison in dimension["comparisons"]:
            click.echo(f"  {comparison['rubric']} {' and '.join(comparison['models'])}: {comparison['result']}")
    if journal.malformed or journal.refused:
        click.echo(f"passed over: {journal.malformed} torn or malformed line(s), {journal.refused} refused record(s)")


@command.command()
@click.argument("run_id")
@placed
@rubric_option(None)
@click.option("--output", type=options.FILE, metavar="FILE", help="By default the terminal.")
def submission(run_id: str, place: Place, rubric: str | None, output: Path | None) -> None:
    """What of RUN-ID may be sent to others: a whitelist without evidence or session id. Sends nothing itself."""
    record = sent_part(steps.found_record(place.metrics, run_id, rubric))
    if output is None:
        click.echo(json.dumps(record, ensure_ascii=False))
    else:
        click.echo(str(write_bytes(output, canonical_bytes(record) + b"\n")))
