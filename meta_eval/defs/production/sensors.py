"""When the production lane runs by itself: a thin shell of Dagster around `inbox` and `scoring`, which decide.

The orchestration contract. A broken file or folder of one round is named in the tick and stops no other round.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from meta_eval.defs.jobs import release_readiness_job, score_round_job
from meta_eval.defs.partitions import rounds_partitions
from meta_eval.defs.production import inbox, listing, scoring
from meta_eval.defs.production.assets import observation, stage_key
from meta_eval.defs.resources import MetaEvalHome

ROUND_TAG, RUN_KEY_TAG = "meta_eval/round", "dagster/run_key"
INTERVAL_S = 30
_MOST_MESSAGES = 20
_BUNDLE, _METRICS, _READINESS = "assembled_bundle", "production_metrics", "readiness"


@dg.sensor(
    name="inbox_sensor",
    job=score_round_job,
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="A new or changed file in a round's inbox that has stopped growing runs just the stages it unlocks.",
)
def inbox_sensor(context: dg.SensorEvaluationContext, home: MetaEvalHome) -> dg.SensorResult:
    instance, rounds, root = context.instance, home.rounds, home.root
    world = inbox.World(
        now_ns=time.time_ns(),
        partitions=set(instance.get_dynamic_partitions("rounds")),
        sha_of=lambda found: listing.steady_receipt(rounds, found),
        ready=lambda name: listing.ready_stages(root, name),
        times_asked=lambda name, input_name, sha: (
            _runs(instance, {ROUND_TAG: name, input_tag(input_name): sha})
            or int(listing.taken_in(root, name, input_name, sha))
        ),
    )
    tick = inbox.look(listing.list_inboxes(rounds), context.cursor, world)
    requests = [
        dg.RunRequest(
            run_key=request.run_key,
            partition_key=request.round,
            asset_selection=[stage_key(stage) for stage in request.stages],
            tags={ROUND_TAG: request.round} | {input_tag(name): sha for name, sha in request.read.items()},
        )
        for request in tick.requests
    ]
    return _result(
        context,
        requests,
        tick.messages,
        cursor=tick.cursor,
        dynamic_partitions_requests=[rounds_partitions.build_add_request(tick.new_rounds)] if tick.new_rounds else [],
        asset_events=[observation(name, round_name, sha) for round_name, name, sha in tick.news],
    )


@dg.sensor(
    name="bundle_sensor",
    jobs=[score_round_job, release_readiness_job],
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="A new ready bundle of a round, whoever assembled it, is scored; a new verdict has its release judged.",
)
def bundle_sensor(context: dg.SensorEvaluationContext, home: MetaEvalHome) -> dg.SensorResult:
    scores = scoring.new_bundles(
        listing.newest_artifacts(home.root, _BUNDLE),
        context.cursor,
        artifact_of=lambda name: listing.newest_artifact(home.root, name, _BUNDLE),
        asked=lambda name, digest: (
            listing.is_scored(home.root, name, digest)
            or bool(_runs(context.instance, {RUN_KEY_TAG: scoring.run_key(name, digest)}))
        ),
    )
    due = scoring.due_readiness(
        listing.newest_artifacts(home.root, _METRICS),
        listing.newest_artifacts(home.root, _READINESS),
        scoring.readiness_cursor(context.cursor),
        verdict_of=lambda name: listing.newest_artifact(home.root, name, _METRICS),
    )
    known = set(context.instance.get_dynamic_partitions("rounds"))
    new = sorted({*scores.run_keys, *due.run_keys} - known)  # a round that the terminal made
    return _result(
        context,
        [
            *(_scoring(name, key) for name, key in scores.run_keys.items()),
            *(_judging(name, key) for name, key in due.run_keys.items()),
        ],
        scores.messages,
        cursor=scoring.joined_cursor(scores.cursor, due.cursor),
        dynamic_partitions_requests=[rounds_partitions.build_add_request(new)] if new else [],
    )


@dg.schedule(
    name="daily_rescore",
    job=score_round_job,
    cron_schedule="30 4 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Traces age: each round whose verdict depends on the day is judged again. An equal verdict is kept.",
)
def daily_rescore(context: dg.ScheduleEvaluationContext, home: MetaEvalHome) -> list[dg.RunRequest] | dg.SkipReason:
    day, verdicts = context.scheduled_execution_time.date().isoformat(), _newest_of_known(context, home, _METRICS)
    unread = [name for name, verdict in verdicts.items() if verdict is None]
    for name in unread:
        context.log.warning(f"{name}: its newest verdict cannot be read; judging it again will name the fault")
    due = _due_each_day(verdicts)
    if not due:
        return dg.SkipReason("no round has a verdict that depends on the day")
    return [_scoring(name, f"{name}:{day}") for name in due]


@dg.schedule(
    name="daily_readiness",
    job=release_readiness_job,
    cron_schedule="45 4 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="What was ready yesterday may be stale today: each readiness that depends on the day is judged again.",
)
def daily_readiness(context: dg.ScheduleEvaluationContext, home: MetaEvalHome) -> list[dg.RunRequest] | dg.SkipReason:
    day = context.scheduled_execution_time.date().isoformat()
    due = _due_each_day(_newest_of_known(context, home, _READINESS))
    if not due:
        return dg.SkipReason("no round has a readiness that depends on the day")
    return [_judging(name, f"{name}:readiness:{day}") for name in due]


def _newest_of_known(
    context: dg.ScheduleEvaluationContext, home: MetaEvalHome, stage: str
) -> dict[str, Mapping[str, Any] | None]:
    """A stage's newest artifact in each round that Dagster knows; None where it cannot be read."""
    known = set(context.instance.get_dynamic_partitions("rounds"))
    names = [name for name in sorted(listing.newest_artifacts(home.root, stage)) if name in known]
    return {name: listing.newest_artifact(home.root, name, stage) for name in names}


def _due_each_day(newest: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """The rounds whose artifact another day can change, or that cannot be read."""
    return [name for name, found in newest.items() if found is None or scoring.depends_on_the_day(found)]


def input_tag(name: str) -> str:
    """The run tag that tells with which bytes a run reads an input."""
    return f"meta_eval/inbox.{name}"


def _scoring(round_name: str, run_key: str) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=run_key,
        partition_key=round_name,
        asset_selection=[stage_key(_METRICS)],
        job_name=score_round_job.name,
        tags={ROUND_TAG: round_name},
    )


def _judging(round_name: str, run_key: str) -> dg.RunRequest:
    """A run of its own: a verdict that fails must not keep its release from being judged, and refused, again."""
    return dg.RunRequest(
        run_key=run_key,
        partition_key=round_name,
        asset_selection=[stage_key(_READINESS)],
        job_name=release_readiness_job.name,
        tags={ROUND_TAG: round_name},
    )


def _runs(instance: dg.DagsterInstance, tags: dict[str, str]) -> int:
    return instance.get_runs_count(dg.RunsFilter(tags=tags))


def _result(
    context: dg.SensorEvaluationContext,
    requests: Sequence[dg.RunRequest],
    messages: Sequence[str],
    *,
    cursor: str,
    dynamic_partitions_requests: Sequence[dg.AddDynamicPartitionsRequest],
    asset_events: Sequence[dg.AssetObservation] = (),
) -> dg.SensorResult:
    """The tick, with its messages: as the reason to skip where nothing runs, and in the tick's log."""
    shown = [
        *messages[:_MOST_MESSAGES],
        *([f"and {len(messages) - _MOST_MESSAGES} more"] * (len(messages) > _MOST_MESSAGES)),
    ]
    for message in shown:
        context.log.warning(message)
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else dg.SkipReason("; ".join(shown) or "nothing new"),
        cursor=cursor,
        dynamic_partitions_requests=dynamic_partitions_requests,
        asset_events=asset_events,
    )
