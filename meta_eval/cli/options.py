"""Options that many commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from meta_eval.evidence.chronology import instant_ms, now_ms
from meta_eval.home import ENGINES

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


class Instant(click.ParamType[int]):
    """An instant as meta_eval reads it, in milliseconds since the epoch."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        ms = value if isinstance(value, int) else instant_ms(value)
        if ms is None:
            self.fail("not an instant; write it as 2026-11-30T19:00:00.000Z", param, ctx)
        return ms


def file(name: str, text: str) -> Callable[[Command], Command]:
    """An option that names an input file."""
    return click.option(name, type=FILE, metavar="FILE", help=text)


def clock(name: str) -> Callable[[Command], Command]:
    """The clock option under the name that the command is known by; its kin are understood too."""
    names = dict.fromkeys((name, "--evaluated-at", "--prepared-at", "--as-of"))
    return click.option(
        *names,
        "made_at",
        type=Instant(),
        default=now_ms,
        show_default="now",
        metavar="ISO",
        help="The instant at which this is judged and recorded, for a controlled run.",
    )


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a report.")
_ROUND = click.option(
    "--round",
    "round_name",
    metavar="NAME",
    help="Instead of files: take everything from this round's folder, and keep the result there.",
)
output = click.option("--output", type=FOLDER, metavar="DIR", help="Folder for the results. Nothing is overwritten.")


def engine(command: Command) -> Command:
    """Who reads the query log."""
    master = click.option(
        "--spark-master",
        metavar="MASTER",
        help="Spark's master, such as spark://HOST:7077. [default: META_EVAL_SPARK_MASTER, or local[*]]",
    )
    choice = click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="Who judges the log's rows; the results are the same bytes. [default: META_EVAL_ENGINE, or local]",
    )
    return choice(master(command))


def shared(clock_name: str) -> Callable[[Command], Command]:
    """What every stage's command takes besides its files."""
    decorators = (output, _ROUND, clock(clock_name), as_json)
    return lambda command: functools.reduce(lambda made, wrap: wrap(made), reversed(decorators), command)
