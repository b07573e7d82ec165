"""The usefulness lane in Dagster: when the stages of a study run."""

import dagster as dg

from meta_eval.defs.usefulness.assets import usefulness_assets, usefulness_inputs
from meta_eval.defs.usefulness.jobs import score_study_job

usefulness_lane = dg.Definitions(assets=[*usefulness_inputs, *usefulness_assets], jobs=[score_study_job])
