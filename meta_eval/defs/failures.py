"""A failed run leaves a summary file in `run-failures/` of the home folder, for an operator's webhook to pick up.

The orchestration contract. It names run, round, stage, rule, blockers and failed checks; it copies no message text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster import DagsterEventType, EventLogEntry

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.files import write_document

FOLDER = "run-failures"
_COPIED = ("rule", "waiting for", "file", "at", "at byte", "where", "next step")


@dg.run_failure_sensor(
    name="run_failure_summary",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Writes run-failures/RUN.json into the home folder. Point a webhook of your own at it.",
)
def run_failure_summary(context: dg.RunFailureSensorContext, home: MetaEvalHome) -> None:
    run = context.dagster_run
    entries = context.instance.all_logs(run.run_id)
    write_document(home.folder / FOLDER / f"{run.run_id}.json", summary(run.run_id, run.job_name, run.tags, entries))


def summary(run_id: str, job: str, tags: Mapping[str, str], entries: Sequence[EventLogEntry]) -> dict[str, Any]:
    """What a run failed on, from its events."""
    checks, steps, failed_at = [], [], None
    for entry in entries:
        event = entry.dagster_event
        if event is None:
            continue
        if event.event_type is DagsterEventType.ASSET_CHECK_EVALUATION and not event.asset_check_evaluation_data.passed:
            checks.append(_check(event))
        elif event.event_type is DagsterEventType.STEP_FAILURE:
            steps.append(_step(event))
        elif event.event_type is DagsterEventType.RUN_FAILURE:
            failed_at = written_instant(int(entry.timestamp * 1000))
    return {
        "version": 1,
        "run": run_id,
        "job": job,
        "round": tags.get("dagster/partition"),
        "failedAt": failed_at,
        "failedChecks": checks,
        "failedSteps": steps,
    }


def _check(event: dg.DagsterEvent) -> dict[str, Any]:
    evaluation = event.asset_check_evaluation_data
    table = evaluation.metadata.get("blockers")
    rows = table.records if isinstance(table, dg.TableMetadataValue) else []
    return {
        "stage": evaluation.asset_key.path[-1],
        "check": evaluation.check_name,
        "blockers": [dict(row.data) for row in rows],
    }


def _step(event: dg.DagsterEvent) -> dict[str, Any]:
    given = event.step_failure_data.user_failure_data
    metadata = {} if given is None else given.metadata
    return {
        "step": event.step_key,
        "reason": {name: metadata[name].value for name in _COPIED if name in metadata},
    }
