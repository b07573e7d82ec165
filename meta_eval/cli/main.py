"""`meta-eval`: the command and its exit codes.

0 ready, passed or rehearsed; 1 blocked, failed or not verified; 2 a call or a file that cannot be used. A command's
module is imported only when that command is called, so that help and completion stay fast.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from meta_eval.evidence.errors import MetaEvalError

_COMMANDS = {
    "attest-verdict": ("attest_verdict:attest", "Write a verdict as an in-toto Statement, signed if you have a key."),
    "explain": ("explain:explain", "Tell why a case counted as it did, by rule and row."),
    "golden": ("golden:command", "The golden gate: did a change of an answerer break what worked?"),
    "keygen": ("attest_verdict:keygen", "Make a key pair for signing verdicts."),
    "lineage": ("explain:lineage", "Print the chain of a round, from raw log to verdict."),
    "production": ("production:command", "The production lane: from a consented query log to a verdict."),
    "query": ("query:query", "Answer a question in SQL from the published evidence."),
    "rebuild-store": ("rebuild_store:command", "Make the evidence store anew from the artifacts on disk."),
    "rehearse": ("rehearse:command", "Play a whole round on invented data, through every stage and Dagster."),
    "release-manifest": ("release_manifest:command", "List a release's files with their SHA-256."),
    "rounds": ("rounds:command", "List the rounds and what each one waits for."),
    "sessions": ("sessions:command", "The sessions lane: did an agent session follow its process?"),
    "tables": ("query:tables", "List the tables of the evidence store and what they mean."),
    "usefulness": ("usefulness:command", "The usefulness lane: sealed packets, blind scores, paired acceptance."),
    "verify": ("verify:command", "Replay artifacts and compare: does each say what its evidence says?"),
    "verify-verdict": (
        "attest_verdict:verify",
        "Verify a Statement: its signature, and that the verdict says the same.",
    ),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"meta_eval.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="meta-eval")
def cli() -> None:
    """Evidence that an AI feature works, which a stranger can recheck.

    Nothing here calls a model. Every command exits 0 when its result is ready, passed or rehearsed; 1 when it is
    blocked, failed or does not verify; 2 when the call or a file cannot be used.

    Rounds and evidence live under META_EVAL_HOME, by default the project's data folder.
    """


def main() -> None:
    """Run the command; every error of ours ends in one line and its exit code."""
    # Nothing here multiplies matrices, and NumPy would start threads for it that spin, in each process of ours.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        cli(prog_name="meta-eval")  # also under `python -m`
    except MetaEvalError as error:
        click.echo(f"meta-eval: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if os.environ.get("META_EVAL_DEBUG"):
            raise
        # The message of a foreign exception may hold a private value, so only its kind is shown.
        click.echo(
            f"meta-eval: an error in meta_eval itself ({type(error).__name__}); "
            "set META_EVAL_DEBUG=1 to see where, on data that may be shown",
            err=True,
        )
        sys.exit(2)
