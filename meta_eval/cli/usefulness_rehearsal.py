"""`meta-eval usefulness rehearse`: a whole study on invented packets, to the ending that is asked for."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections import Counter
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.output import exit_code
from meta_eval.cli.usefulness_figures import figure_lines
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.files import write_bytes
from meta_eval.home import evidence_folder, studies_folder
from meta_eval.lanes import catalogue
from meta_eval.lanes.golden import steps as golden
from meta_eval.lanes.golden.answerer import BuiltInAnswerer
from meta_eval.lanes.golden.seed_records import read_records
from meta_eval.lanes.usefulness import acceptance, guidance
from meta_eval.lanes.usefulness import report as page
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.rehearsal.invented import Objects
from meta_eval.lanes.usefulness.rehearsal.play import Script, play
from meta_eval.lanes.usefulness.rehearsal.scenarios import SCENARIOS, SETS
from meta_eval.lanes.usefulness.studies import Study


@click.command("rehearse")
@click.option("--study", "study_name", metavar="NAME", help="The study's name. [default: rehearsal- and the time]")
@click.option(
    "--scenario", type=click.Choice(list(SCENARIOS)), default="accepted", show_default=True, help="The ending."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another seed, other objects.")
@options.clock("--as-of")
@options.as_json
def rehearse(study_name: str | None, scenario: str, seed: int, made_at: int, as_json: bool) -> None:
    """Play a whole study on invented content: every gate for real, the people's parts by stated rules.

    Two packets of 60 questions about the golden set's invented records, answered by the golden lane's built-in answerer
    and, for both arms, spoilt where the scenario says; two scorers and an adjudicator. The labels come from
    the operating system's randomness even here. A study that comes through ends `rehearsed`, never `passed`.

    Exits 0 when the study ends rehearsed; 1 when it is blocked or misses a condition, as the other scenarios do.
    """
    name = study_name or f"rehearsal-{written_instant(made_at)[:19].lower().replace(':', '')}"
    folder = studies_folder()
    place, again = Study(folder, name), Study(folder, f"{name}-again")
    if place.folder.exists():
        raise UsageError(f"study {name} is there already; a rehearsal needs a new name")
    if not as_json:
        click.echo(f"study {name}: every person, question and host in it is invented")
    script = Script(SCENARIOS[scenario], golden_objects(seed), made_at, os.urandom(32), secrets.token_hex(32))
    told: list[dict[str, Any]] = []
    made: list[Artifact] = []
    started = time.monotonic()
    for step, artifact in play(place, script, again=again):
        made.append(artifact)
        told.append(_told(step, artifact, time.monotonic() - started, as_json=as_json))
        started = time.monotonic()
    last = next((one for one in made if one["artifact"] == acceptance.KIND), made[-1])
    if made[-1]["status"] == "blocked":
        last = made[-1]
    _load(made)
    written = write_bytes(place.folder / "reports" / "report.html", page.report(last)) if _judged(last) else None
    if as_json:
        figures = last["result"] if _judged(last) else None
        blockers = last["blockers"]
        click.echo(
            json.dumps(
                {"study": name, "status": last["status"], "steps": told, "blockers": blockers, "result": figures}
            )
        )
    else:
        _finish(place, last, written)
    click.get_current_context().exit(exit_code(last))


def golden_objects(seed: int) -> Objects:
    """The golden lane's records and its built-in answerer, handed to a lane that knows neither."""
    records = read_records(golden.RECORDS)
    titles = Counter(record.title for record in records)
    own = [record for record in records if titles[record.title] == 1 and {"maker", "made"} <= record.states.keys()]
    own.sort(key=lambda record: hashlib.sha256(f"{seed}:{record.record_id}".encode()).digest())
    answerer = BuiltInAnswerer(records)

    def thing(set_id: str, number: int) -> dict[str, Any]:
        record = own[SETS.index(set_id) * CURRENT_POLICY.questions_per_set + number]
        return {"name": f"“{record.title}”", "maker": record.states["maker"], "year": record.states["made"]}

    def stated(question: str) -> frozenset[str]:
        fields = {claim["claimId"].rpartition(".")[2] for claim in answerer.answer(question)["claims"]}
        return frozenset({"maker": "maker", "made": "year"}[field] for field in fields & {"maker", "made"})

    return Objects(thing, stated)


def _judged(artifact: Artifact) -> bool:
    return bool(artifact["artifact"] == acceptance.KIND and artifact["status"] != "blocked")


def _told(step: str, artifact: Artifact, seconds: float, *, as_json: bool) -> dict[str, Any]:
    good = artifact["status"] in ("ready", "rehearsed")
    if not as_json:
        status = click.style(f"{artifact['status']:<10}", fg="green" if good else "red")
        click.echo(f"  {step:<14} {status} {artifact['artifact']:<24} {artifact['digest'][:12]}  {seconds:4.1f} s")
    return {"step": step, "artifact": artifact["artifact"], "status": artifact["status"], "digest": artifact["digest"]}


def _load(made: list[Artifact]) -> None:
    """The rows of what was made, once no judgment is open any more."""
    store = catalogue.evidence_store(evidence_folder())
    for artifact in made:
        store.load(artifact, catalogue.tables_of(artifact))


def _finish(place: Study, last: Artifact, written: Any) -> None:
    click.echo()
    colour = "green" if last["status"] == "rehearsed" else "red"
    click.secho(f"{last['artifact']}: {last['status']}", bold=True, fg=colour)
    for blocker in last["blockers"]:
        click.echo(f"  {blocker['code']}  {blocker['subject']}  ({blocker['count']:,})")
    if _judged(last):
        click.echo("\n".join(f"  {line}".rstrip() for line in figure_lines(last["result"])))
    click.echo(f"  next     {guidance.next_step(last)}")
    click.echo(f"  look     {written or place.folder}")
    for export in sorted(place.export.glob("usefulness-export-*.json")):
        click.echo(f"  recount  meta-eval usefulness replay {export}")
