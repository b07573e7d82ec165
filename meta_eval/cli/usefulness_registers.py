"""`meta-eval usefulness register` and `budget`: the two append-only files of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.canonical import digest, read_document
from meta_eval.evidence.documents import read
from meta_eval.evidence.errors import InputError, UsageError
from meta_eval.evidence.register import Register
from meta_eval.home import studies_folder
from meta_eval.lanes.usefulness import shapes, steps
from meta_eval.lanes.usefulness.custody import FOLLOW_UPS, look_at
from meta_eval.lanes.usefulness.ledger import ledger_of
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study
from meta_eval.lanes.usefulness.study import codes_of, extract

_STUDY = click.option("--study", "study_name", required=True, metavar="NAME", help="The study's name and folder.")


def _place(study_name: str) -> Study:
    return Study(studies_folder(), study_name)


@click.group()
def register() -> None:
    """The custody register: what happened to a study and its packets, in one chain."""


@register.command("verify")
@_STUDY
@options.as_json
def verify_register(study_name: str, as_json: bool) -> None:
    """Check both chains of a study whole, and every artifact that they name; the first broken one is named."""
    place = _place(study_name)
    if not place.folder.exists():
        raise UsageError("no study of that name")
    told = {name: _told(chain) for name, chain in (("custody", place.register), ("budget", place.ledger))}
    artifacts = place.on_record(place.register.entries())
    if as_json:
        click.echo(json.dumps({"verified": True, "registers": told, "artifacts": len(artifacts)}))
        return
    for name, chain in told.items():
        click.echo(f"verified  {name:<9} {chain['entries']:>5} entries  head {chain['head'] or 'none'}")
    click.echo(f"verified  artifacts {len(artifacts):>5} on record")


def _told(chain: Register) -> dict[str, Any]:
    entries = chain.entries()
    return {"entries": len(entries), "head": entries[-1]["digest"] if entries else None}


@register.command("record")
@_STUDY
@click.option(
    "--event", required=True, type=click.Choice(FOLLOW_UPS), help="What a failed attempt must be followed by."
)
@options.file("--input", "The document that tells of it.")
@options.clock("--timestamp")
def record(study_name: str, event: str, input: Path | None, made_at: int) -> None:  # noqa: A002
    """Record what followed a failed acceptance, by digest."""
    document, place = _document(input, shapes.FOLLOW_UP), _place(study_name)
    if document["byCode"] not in codes_of(extract(steps.declared_study(place))):
        raise UsageError("only somebody who holds a role in the study tells what followed it")
    body = {"by": document["byCode"], "digest": digest(document), "evidenceDigest": document["evidenceDigest"]}
    entry = place.register.append(event, body, at_ms=made_at)
    click.echo(f"recorded  {event}  entry {entry['seq']}  {entry['digest']}")


@register.command("clear")
@_STUDY
@options.file("--input", "The decision on one listed question.")
@options.clock("--timestamp")
def clear(study_name: str, input: Path | None, made_at: int) -> None:  # noqa: A002
    """Record a person's decision that a listed question differs from the exposed one that it resembles."""
    document, place = _document(input, shapes.CLEARANCE), _place(study_name)
    adjudicator = steps.declared_study(place)["replay"]["study"]["roles"]["adjudicator"]["code"]
    if document["byCode"] != adjudicator:
        raise UsageError("only the adjudicator, who builds and writes nothing, clears a question")
    if not document["different"]:
        raise UsageError("the decision is that the question is not fresh; take it out of the packet")
    facts, _ = look_at(place.packet_file(document["setId"]), export_folder=place.export)
    body = {name: document[name] for name in ("setId", "questionId")} | {"receipt": facts.receipt}
    entry = place.register.append("cleared", {**body, "digest": digest(document)}, at_ms=made_at)
    click.echo(f"recorded  cleared  entry {entry['seq']}  {entry['digest']}")


def _document(source: Path | None, shape: Any) -> dict[str, Any]:
    if source is None:
        raise click.UsageError("missing --input")
    value, _ = read_document(source)
    reading = read(value, shape, subject="document")
    if reading.blockers:
        first = reading.blockers[0]
        raise InputError(str(source), f"{first.code} at {first.subject}", next_step="mend the document")
    document: dict[str, Any] = reading.value
    return document


@click.group()
def budget() -> None:
    """The budget ledger: reserve before a completion, settle or expire after it."""


@budget.command("show")
@_STUDY
@options.as_json
def show(study_name: str, as_json: bool) -> None:
    """What is known, what is unknown, and the most that it can come to."""
    ledger = ledger_of(_place(study_name).ledger.entries())
    if not ledger.terms:
        raise UsageError("the ledger has not been opened; the preflight opens it")
    totals = ledger.totals()
    if as_json:
        click.echo(json.dumps(totals))
        return
    for name, value in totals.items():
        click.echo(f"{name:<18} {value}")


@budget.command("reserve")
@_STUDY
@click.option("--arm", required=True, metavar="ARM", help="The arm that is asked.")
@click.option("--set", "set_id", required=True, metavar="SET", help="The set's id.")
@click.option("--question", required=True, metavar="ID", help="The question's id.")
@click.option("--attempt", required=True, type=click.IntRange(min=1), metavar="N", help="From 1.")
@click.option("--reservation", required=True, metavar="ID", help="An id of your own for the reservation.")
@options.clock("--timestamp")
def reserve(
    study_name: str, arm: str, set_id: str, question: str, attempt: int, reservation: str, made_at: int
) -> None:
    """Reserve one completion at its bound. It is on the disk before this command ends."""
    body = {"arm": arm, "setId": set_id, "questionId": question, "attempt": attempt, "reservationId": reservation}
    if any(shapes.ID.rule_broken(value) for value in body.values() if isinstance(value, str)):
        raise UsageError("an id is 1 to 64 of a-z, 0-9 and -")
    steps.book(_place(study_name), Setting(made_at, study_name), ("reserve", body))
    click.echo(f"reserved  {reservation}")


@budget.command("settle")
@_STUDY
@click.option("--reservation", required=True, metavar="ID", help="The reservation.")
@click.option("--amount", metavar="AMOUNT", help="What it cost, as a decimal. Left out: its usage is unknown.")
@options.clock("--timestamp")
def settle(study_name: str, reservation: str, amount: str | None, made_at: int) -> None:
    """End a reservation: settled at what it cost, or, without an amount, expired at its bound."""
    if amount is not None and shapes.AMOUNT.rule_broken(amount):
        raise UsageError("an amount is a plain decimal such as 0.0125")
    ended = {"reservationId": reservation}
    line = ("expire", ended) if amount is None else ("settle", {**ended, "amount": amount})
    steps.book(_place(study_name), Setting(made_at, study_name), line)
    click.echo(f"{'expired' if amount is None else 'settled'}  {reservation}")
