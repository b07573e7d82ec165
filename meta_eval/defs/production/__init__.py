"""The production lane in Dagster: when its stages run."""

import dagster as dg

from meta_eval.defs.jobs import release_readiness_job, score_round_job
from meta_eval.defs.production.assets import production_assets, production_inputs
from meta_eval.defs.production.sensors import bundle_sensor, daily_readiness, daily_rescore, inbox_sensor

production_lane = dg.Definitions(
    assets=[*production_inputs, *production_assets],
    jobs=[score_round_job, release_readiness_job],
    sensors=[inbox_sensor, bundle_sensor],
    schedules=[daily_rescore, daily_readiness],
)
