"""How results look in the terminal: a short report for people, or one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import click

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable
from meta_eval.lanes.production.figures import FIGURES
from meta_eval.lanes.production.steps import Progress

_GOOD = ("ready", "passed", "rehearsed", "ready-for-runtime-activation")
_BULKY = ("cases", "lanes", "attestationTemplate")


def exit_code(artifact: Artifact) -> int:
    """0 when an artifact is ready, passed or rehearsed; 1 when it is blocked or failed."""
    return 0 if artifact["status"] in _GOOD else 1


def report(
    artifact: Artifact, files: Sequence[Readable], *, next_step: str, as_json: bool, reused: bool = False
) -> None:
    """Print what a stage made, where it lies and what comes next."""
    if as_json:
        click.echo(
            json.dumps(
                {
                    **{key: artifact[key] for key in ("artifact", "status", "environment", "round", "madeAt")},
                    "digest": artifact["digest"],
                    "policyDigest": artifact["policyDigest"],
                    "blockers": artifact["blockers"],
                    "result": {key: value for key, value in artifact["result"].items() if key not in _BULKY},
                    "files": [str(path) for path in files],
                    "reused": reused,
                    "nextStep": next_step,
                },
                ensure_ascii=False,
            )
        )
        return
    click.secho(f"{artifact['artifact']}: {artifact['status']}", bold=True, fg=_colour(artifact["status"]))
    for line in [*_summary(artifact), *_blocker_lines(artifact["blockers"])]:
        click.echo(f"  {line}")
    click.echo(f"  digest   {artifact['digest']}")
    for path in files:
        click.echo(f"  {'kept    ' if reused else 'wrote   '} {path}")
    click.echo(f"  next     {next_step}")


def _colour(status: str) -> str:
    return "green" if status in _GOOD else "red"


def _summary(artifact: Artifact) -> Iterator[str]:
    result = artifact["result"]
    if (outcomes := result.get("outcomes")) is not None:
        yield f"rows      {result['rowCount']:,}"
        for name, count in outcomes.items():
            if count:
                yield f"           {count:>9,}  {name}"
    if result.get("metrics"):
        yield from metric_lines(result["metrics"])
    for entry in result.get("requirements", ()):
        yield f"{entry['state']:<8}  {entry['requirement']}"
    for key, word in (("freshUntil", "fresh to"), ("contractSha256", "contract"), ("runtimeSwitch", "switch")):
        if result.get(key):
            yield f"{word:<10}{result[key]}"
    for key, word in (("caseCount", "cases"), ("reviewCount", "reviews"), ("reviewedCitationCount", "citations")):
        if key in result:
            yield f"{word:<10}{result[key]:,}"


def _blocker_lines(blockers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not blockers:
        return
    yield f"blocked by {len(blockers)} rule{'s' if len(blockers) > 1 else ''}"
    width = max(len(entry["code"]) for entry in blockers)
    for entry in blockers:
        yield f"  {entry['code']:<{width}}  {entry['subject']}  ({entry['count']:,})"


def metric_lines(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Each metric against its threshold, with numerator, denominator and interval, as aligned text."""
    yield f"{'metric':<17} {'value':>10}  {'from':>15}  {'threshold':>10}  {'95 % interval':>19}"
    for name in FIGURES:
        figure = metrics[name]
        value, made_from, threshold = _figure(name, figure)
        interval = figure.get("bootstrap95") or figure.get("wilson95")
        shown = f"{interval[0]:.4f} to {interval[1]:.4f}" if interval else ""
        mark = {True: "met", False: "MISSED", None: ""}[figure.get("met")]
        yield f"{name:<17} {value:>10}  {made_from:>15}  {threshold:>10}  {shown:>19}  {mark}".rstrip()


def _figure(name: str, figure: Mapping[str, Any]) -> tuple[str, str, str]:
    """A metric's value, what it was made from, and its threshold, as text."""
    if name == "p95LatencyMs":
        return _text(figure["value"]), f"rank {figure['rank']} of {figure['rows']}", f"<= {figure['threshold']}"
    if name == "meanCost":
        return figure["value"], f"{figure['rows']} rows", figure["currency"]
    if name == "agreement":
        kappa = "" if figure["kappa"] is None else f"kappa {figure['kappa']:.3f}"
        return _text(figure["value"]), f"{figure['agreed']}/{figure['pairs']}", kappa
    return _text(figure["value"]), f"{figure['numerator']}/{figure['denominator']}", f">= {figure['threshold']}"


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


@contextmanager
def progress(path: Path) -> Iterator[Progress | None]:
    """A progress bar over a file's bytes on a terminal; nothing where nobody watches or the file is short."""
    size = path.stat().st_size if path.exists() else 0
    if not sys.stderr.isatty() or size < 4_000_000:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rows]:,} rows, {task.fields[rate]:,.0f} a second"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading the log", total=size, rows=0, rate=0.0)
        start = monotonic()

        def told(rows: int, done: int) -> None:
            bar.update(task, completed=done, rows=rows, rate=rows / max(monotonic() - start, 0.001))

        yield told
