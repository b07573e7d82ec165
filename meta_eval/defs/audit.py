"""The jobs over all evidence: verify every artifact, and make the store anew.

Each runs the very command that an auditor runs, in a process of its own, so that what the web page calls verified is
what `meta-eval verify` calls verified. Paths, rules and counts are shown, as the command shows them, and nothing else.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from meta_eval.defs.refusals import refusals
from meta_eval.defs.resources import MetaEvalHome

_COMMAND = [sys.executable, "-c", "from meta_eval.cli.main import main; main()"]
_MOST_ROWS = 200


def _said(home: Path, *words: str) -> dict[str, Any]:
    """The one object that a command prints. Raises Failure, with the command's own error, where it prints none."""
    done = subprocess.run(  # noqa: S603 - the words are ours
        [*_COMMAND, *words, "--json"],
        env=os.environ | {"META_EVAL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        value = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        value = None
    if not isinstance(value, dict) or "error" in value or done.returncode not in (0, 1):
        told = (done.stderr or done.stdout).strip().splitlines()
        raise dg.Failure(
            f"{words[0]} did not finish (exit code {done.returncode})",
            metadata={"it said": told[-1].replace(f"{home}/", "") if told else "nothing"},
            allow_retries=False,
        )
    return value


def _table(home: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> dg.TableMetadataValue:
    """The first rows, paths from the home folder on."""
    shown = [[cell.replace(f"{home}/", "") for cell in row] for row in rows[:_MOST_ROWS]]
    records = [dg.TableRecord(dict(zip(names, row, strict=True))) for row in shown]
    return dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name) for name in names]))


@dg.op(
    tags={"made_by": "line"},
    description="`meta-eval verify --all`: each artifact is rebuilt from its replay and compared whole.",
)
def verify_every_artifact(context: dg.OpExecutionContext, home: MetaEvalHome) -> None:
    with refusals(home.folder, "verify_all_job"):
        value = _said(home.folder, "verify", "--all")
        refused = [(one["path"], one["reason"]) for one in value["artifacts"] if not one["verified"]]
        figures = {"verified": value["verified"], "refused": value["failed"]}
        context.log.info(f"{value['verified']} verified, {value['failed']} refused")
        if refused or not value["verified"]:
            table = _table(home.folder, ("file", "reason"), refused)
            raise dg.Failure(
                f"{value['failed']} artifacts do not verify",
                metadata=figures
                | {"refused artifacts": table, "next step": "restore these files, or run their stages"},
                allow_retries=False,
            )
        context.add_output_metadata(figures)


@dg.op(
    pool="duckdb",  # one step at a time loads rows
    tags={"made_by": "line"},
    description="`meta-eval rebuild-store`: the store anew from verified artifacts. The old one stays until then.",
)
def rebuild_the_store(context: dg.OpExecutionContext, home: MetaEvalHome) -> None:
    with refusals(home.folder, "rebuild_store_job"):
        value = _said(home.folder, "rebuild-store")
        context.log.info(f"{value['loaded']} artifacts loaded, {len(value['refused'])} left out")
        if value["refused"]:
            table = _table(home.folder, ("left out",), [(reason,) for reason in value["refused"]])
            raise dg.Failure(
                f"{len(value['refused'])} artifacts were left out of the new store",
                metadata={"loaded": value["loaded"], "left out": table, "next step": "run verify_all_job"},
                allow_retries=False,
            )
        context.add_output_metadata({"loaded": value["loaded"]})


@dg.job(description="Every artifact of every round, verified as an auditor verifies it. Fails where one is refused.")
def verify_all_job() -> None:
    verify_every_artifact()


@dg.job(description="The evidence store, made anew from the artifacts on disk and published for analysts.")
def rebuild_store_job() -> None:
    rebuild_the_store()


audit_jobs = [verify_all_job, rebuild_store_job]
