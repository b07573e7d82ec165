"""When the sessions lane runs by itself: a thin shell of Dagster around `growth`, which decides."""

import os
import re
import time
from pathlib import Path

import dagster as dg

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.defs.sessions import growth, shown
from meta_eval.defs.sessions.jobs import ledgers_partitions, score_ledger_job
from meta_eval.lanes.sessions.ledger import ARCHIVE, EVENTS, SESSIONS
from meta_eval.lanes.sessions.ledgers import LedgerFolder, is_ledger_name
from meta_eval.lanes.sessions.rubric import NEWEST

INTERVAL_S = 30
_MOST_MESSAGES = 20
_UNSHOWN = re.compile(r"[^A-Za-z0-9._-]")


@dg.sensor(
    name="ledger_sensor",
    job=score_ledger_job,
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="A ledger that has grown and stopped growing is scored. The same bytes again start nothing.",
)
def ledger_sensor(context: dg.SensorEvaluationContext, home: MetaEvalHome) -> dg.SensorResult:
    root = home.folder / "ledgers"
    ledgers, messages = listed(root)

    def version_of(name: str) -> str:
        metrics = LedgerFolder(root, name).metrics
        return shown.version_of(metrics.inputs(metrics.rubric(NEWEST)))

    tick = growth.look(ledgers, context.cursor, now_ns=time.time_ns(), version_of=version_of)
    told = [*messages, *tick.messages]
    told = [*told[:_MOST_MESSAGES], *([f"and {len(told) - _MOST_MESSAGES} more"] * (len(told) > _MOST_MESSAGES))]
    for message in told:
        context.log.warning(message)
    known = set(context.instance.get_dynamic_partitions("ledgers"))
    new = [name for name in tick.run_keys if name not in known]
    requests = [dg.RunRequest(run_key=run_key, partition_key=name) for name, run_key in tick.run_keys.items()]
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else dg.SkipReason("; ".join(told) or "no ledger has grown"),
        cursor=tick.cursor,
        dynamic_partitions_requests=[ledgers_partitions.build_add_request(new)] if new else [],
    )


def listed(root: Path) -> tuple[dict[str, growth.Found], list[str]]:
    """Every ledger with a session ledger, by the size and time of its files, and what could not be listed."""
    found, messages = {}, []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        if not is_ledger_name(folder.name):
            name = _UNSHOWN.sub("?", folder.name)[:40]
            messages.append(f"{name}: a folder whose name is no ledger's; rename or move it")
            continue
        try:
            files = [each for each in _files(folder) if each.is_file()]
            stats = [(each.name, each.stat()) for each in files]
        except OSError:
            messages.append(f"{folder.name}: cannot be listed; check its permissions")
            continue
        if any(name == SESSIONS for name, _ in stats):
            stamp = ";".join(f"{name}:{stat.st_size}:{stat.st_mtime_ns}" for name, stat in stats)
            found[folder.name] = growth.Found(stamp, max(stat.st_mtime_ns for _, stat in stats))
    return found, messages


def _files(folder: Path) -> list[Path]:
    names = [name for name in os.listdir(folder) if name == SESSIONS or name.startswith(EVENTS)]  # noqa: PTH208
    return [*(folder / name for name in sorted(names)), *sorted((folder / ARCHIVE).glob("events-*.jsonl"))]
