"""The line, run in this process: what the terminal's rehearsal calls, by name, where Dagster is installed.

The signature knows no Dagster. The caller sets `DAGSTER_HOME`, so that runs, checks and materializations are on record
in the same instance that the web page shows.
"""

import functools
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from meta_eval.defs.jobs import score_round_job
from meta_eval.defs.production import production_lane
from meta_eval.defs.production.assets import stage_key
from meta_eval.defs.production.sensors import ROUND_TAG
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.stages import stage_named

_PROCESS_TAG = "meta_eval/process"
# The event log holds everything; the console is the caller's.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def default_dagster_home() -> Path:
    """The project's own instance folder, with its checked-in `dagster.yaml`."""
    checkout = Path(__file__).resolve().parents[2]
    # As for the home folder: around an installed package there is no project but the folder one works in.
    return (checkout if (checkout / "pyproject.toml").exists() else Path.cwd()) / ".dagster_home"


def run_line(home: Path, round_name: str, stages: Sequence[str], *, as_of: str | None) -> list[dict[str, Any]]:
    """Run stages of a round as one Dagster run, on the instance that `DAGSTER_HOME` names.

    Args:
        as_of: the fixed clock of this run, as an instant; None for the real one.

    Returns:
        A report a stage, in order: `stage`, `state` ("done", "refused" or "not-run"), `status` and `blockers` of its
        artifact, `checks` (name to passed), `reason` (the rule or file that a stage without an artifact names) and
        `run` (the id of the Dagster run). No value of any input is in it.

    Raises:
        UsageError: no round's name, or no stage's.
    """
    keys = {stage_named(name).name: stage_key(name) for name in stages}
    name = Round(home / "rounds", round_name).name
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    return run_line_on(_instance(os.environ.get("DAGSTER_HOME")), home, name, keys, as_of=as_of)


@functools.cache
def _instance(_: str | None) -> dg.DagsterInstance:
    """One instance a process and `DAGSTER_HOME`: opening its databases takes longer than a stage does."""
    return dg.DagsterInstance.get()


def run_line_on(
    instance: dg.DagsterInstance, home: Path, round_name: str, keys: dict[str, dg.AssetKey], *, as_of: str | None
) -> list[dict[str, Any]]:
    """`run_line` on a given instance, for names that are known to be good."""
    _release_dead(instance)
    if not instance.has_dynamic_partition("rounds", round_name):
        instance.add_dynamic_partitions("rounds", [round_name])
    result = _job(home, as_of).execute_in_process(
        instance=instance,
        partition_key=round_name,
        asset_selection=list(keys.values()),
        run_config=_QUIET,
        raise_on_error=False,
        tags={ROUND_TAG: round_name, _PROCESS_TAG: str(os.getpid())},
    )
    return [_report(result, stage, key) for stage, key in keys.items()]


def _release_dead(instance: dg.DagsterInstance) -> None:
    """Give back what a killed `run_line` still holds: without a daemon nobody else would, and we would wait forever."""
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        process = run.tags.get(_PROCESS_TAG)
        if process is not None and not _alive(int(process)):
            instance.report_run_failed(run, "the process of this run has ended")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _job(home: Path, as_of: str | None) -> dg.JobDefinition:
    bound = dg.Definitions(resources={"home": MetaEvalHome(home=str(home), as_of=as_of)})
    bound = dg.Definitions.merge(production_lane, bound)
    return bound.resolve_job_def(score_round_job.name)


def _report(result: dg.ExecuteInProcessResult, stage: str, key: dg.AssetKey) -> dict[str, Any]:
    checks = {one.check_name: one.passed for one in result.get_asset_check_evaluations() if one.asset_key == key}
    step = "__".join(key.path)
    events = [event for event in result.all_events if event.step_key == step]
    failed = [event.step_failure_data.user_failure_data for event in events if event.is_step_failure]
    state = "refused" if failed else "done" if any(event.is_step_success for event in events) else "not-run"
    reason = {name: value.value for one in failed if one is not None for name, value in one.metadata.items()}
    made = [event.step_materialization_data.materialization for event in events if event.is_step_materialization]
    status = made[0].metadata["status"].value if made else None
    table = made[0].metadata["blockers"] if made else None
    blockers = [dict(row.data) for row in table.records] if isinstance(table, dg.TableMetadataValue) else []
    report = {"stage": stage, "state": state, "status": status, "blockers": blockers, "checks": checks}
    return report | {"reason": reason, "run": result.run_id}
