"""The production lane in Dagster: when its stages run."""

import dagster as dg

from meta_eval.defs.jobs import score_round_job
from meta_eval.defs.production.assets import production_assets, production_inputs
from meta_eval.defs.production.sensors import bundle_sensor, daily_rescore, inbox_sensor

production_lane = dg.Definitions(
    assets=[*production_inputs, *production_assets],
    jobs=[score_round_job],
    sensors=[inbox_sensor, bundle_sensor],
    schedules=[daily_rescore],
)
