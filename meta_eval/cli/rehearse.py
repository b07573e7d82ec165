"""`meta-eval rehearse`: a whole round on invented data, through Dagster, to its verdict."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.cli.output import metric_lines
from meta_eval.cli.places import round_named, round_names
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.replay import load_verified
from meta_eval.home import home_folder
from meta_eval.lanes.production import guidance
from meta_eval.lanes.production.rehearsal import invented_log
from meta_eval.lanes.production.rehearsal.faults import BREAKS, MISSES
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.stages import stage_named
from meta_eval.lanes.production.steps import REBUILDS


@click.command("rehearse")
@click.option("--round", "round_name", metavar="NAME", help="The round's name. [default: rehearsal- and the time]")
@click.option("--queries", type=options.FILE, metavar="FILE", help="JSON Lines of {query, intent} to use as questions.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another seed, another log.")
@click.option("--fail", "miss", type=click.Choice(sorted(MISSES)), help="Miss this one threshold.")
@click.option("--break", "break_rule", type=click.Choice(sorted(BREAKS)), help="Break this one rule.")
@options.clock("--as-of")
@options.as_json
def command(
    round_name: str | None,
    queries: Path | None,
    seed: int,
    miss: str | None,
    break_rule: str | None,
    made_at: int,
    as_json: bool,
) -> None:
    """Play a whole round on invented data: every stage for real, the people's parts by stated rules.

    The log has thousands of invented rows of every outcome, or one row for each question of --queries, where the
    intent `oos` must be refused and any other intent is the claim that an answer makes. Every stage runs through
    Dagster on its persistent instance, so the round can be looked at in its UI. A round that comes through ends
    `rehearsed`, never `passed`.

    Exits 0 when the round ends rehearsed; 1 when it is blocked or misses a threshold, as --break and --fail ask for.
    """
    line = _dagster_line()
    name = round_name or f"rehearsal-{_stamp(made_at)}"
    round_ = round_named(name)
    if round_.folder.exists() or name in round_names():
        raise UsageError(f"round {name} is there already; a rehearsal needs a new name")
    asked, intents = invented_log.read_queries(queries) if queries else ([], {})
    script = Script(made_at, seed, asked, intents, miss, break_rule)
    if not as_json:
        click.echo(f"round {name}: every person, question and host in it is invented")
    results: list[dict[str, Any]] = []

    def run(stages: Sequence[str], at: int) -> bool:
        for stage in stages:
            started = time.monotonic()
            [report] = line.run_line(home_folder(), name, [stage], as_of=written_instant(at))
            made = _artifact(round_, stage)
            report["digest"] = made["digest"] if made and report["status"] else None
            results.append(_told(report, time.monotonic() - started, as_json=as_json))
            if not results[-1]["good"]:
                return False
        return True

    good = play(round_, script, run)
    _finish(round_, results, as_json=as_json)
    click.get_current_context().exit(0 if good else 1)


def _dagster_line() -> Any:
    if importlib.util.find_spec("dagster") is None:
        raise UsageError("a rehearsal runs through Dagster, which is not installed; install meta-eval[dagster]")
    # By name, because the terminal must work, and be importable, without Dagster.
    line = importlib.import_module("meta_eval.defs.line")
    os.environ.setdefault("DAGSTER_HOME", str(line.default_dagster_home()))
    return line


def _stamp(made_at: int) -> str:
    day, clock = written_instant(made_at)[:19].split("T")
    return f"{day.replace('-', '')}-{clock.replace(':', '')}"


def _told(report: dict[str, Any], seconds: float, *, as_json: bool) -> dict[str, Any]:
    """One line a stage while the round runs; whether the stage came out ready."""
    status = report["status"] or report["reason"] or "did not run"
    good = report["state"] == "done"
    if not as_json:
        checks = report["checks"]
        mark = click.style(f"{status:<10}", fg="green" if good else "red")
        digest = (report["digest"] or "")[:12]
        held = f"{sum(checks.values())} of {len(checks)} checks"
        click.echo(f"  {report['stage']:<20} {mark} {digest:<12}  {held:<14}  {seconds:4.1f} s")
    return {**report, "good": good, "seconds": round(seconds, 2)}


def _artifact(round_: Round, stage: str) -> Artifact | None:
    kind = stage_named(stage).kind
    files = round_.artifact_files(kind)
    return load_verified(files[-1], REBUILDS, kind=kind) if files else None


def _finish(round_: Round, results: list[dict[str, Any]], *, as_json: bool) -> None:
    verdict = _artifact(round_, "production_metrics")
    last = _artifact(round_, results[-1]["stage"])
    if as_json:
        figures = None if verdict is None else verdict["result"]["metrics"]
        told = {"round": round_.name, "status": results[-1]["status"], "stages": results, "metrics": figures}
        click.echo(json.dumps(told))
        return
    click.echo()
    if last is not None and last["blockers"]:
        click.secho(f"blocked at {results[-1]['stage']}", fg="red", bold=True)
        for blocker in last["blockers"]:
            click.echo(f"  {blocker['code']}  {blocker['subject']}  ({blocker['count']:,})")
    if verdict is not None and verdict["result"]["metrics"]:
        click.secho(
            f"verdict: {verdict['status']}", bold=True, fg="green" if verdict["status"] == "rehearsed" else "red"
        )
        for text in metric_lines(verdict["result"]["metrics"]):
            click.echo(f"  {text}")
        for key in ("datasetDigest", "bundleDigest", "releaseDigest"):
            click.echo(f"  {key:<14} {verdict['result'][key]}")
    if last is not None:
        click.echo(f"  next           {guidance.next_step(last)}")
    click.echo(f"  look           {round_.folder}")
    click.echo(f"  again          meta-eval verify --round {round_.name}")
    click.echo("  in Dagster     make ui, then Assets, group production")
