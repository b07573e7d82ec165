"""Plays a rehearsal through `deploy.definitions` in the example's own environment: run by test_deployment.

Each call of the line is one run whose steps a Celery worker takes. Prints, as JSON, what the instance recorded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import dagster as dg

from deploy.definitions import defs
from meta_eval.defs.production.assets import stage_key
from meta_eval.evidence.chronology import written_instant
from meta_eval.home import artifact_root, rounds_folder
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round

NAME = "r-1"


def score_round() -> dg.JobDefinition:
    """The job as a worker builds it again, by module and name."""
    return defs.resolve_job_def("score_round_job")


def main(verdict_at: int) -> None:
    """Play the round on the instance that DAGSTER_HOME names."""
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("rounds", [NAME])

        def run(stages: Sequence[str], at: int) -> bool:
            with dg.execute_job(
                dg.reconstructable(score_round),
                instance=instance,
                asset_selection=[stage_key(stage) for stage in stages],
                run_config={"resources": {"home": {"config": {"as_of": written_instant(at)}}}},
                tags={"dagster/partition": NAME},
            ) as result:
                return result.success

        good = play(Round(rounds_folder(), NAME, artifact_root()), Script(verdict_at, rows=600), run)
        verdict = instance.get_latest_materialization_event(stage_key("production_metrics"))
        told = (
            verdict.asset_materialization.metadata["status"].value
            if verdict and verdict.asset_materialization
            else None
        )
        print(  # noqa: T201
            json.dumps(
                {
                    "good": good,
                    "verdict": told,
                    "storage": type(instance.event_log_storage).__name__,
                    "runs": [run.status.value for run in instance.get_runs()],
                }
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
