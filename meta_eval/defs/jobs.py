"""The jobs that a person, a sensor or a schedule starts."""

import dagster as dg

score_round_job = dg.define_asset_job(
    "score_round_job",
    selection=dg.AssetSelection.groups("production"),
    description="All stages of a round, or those selected. It stops at the first stage that is blocked or waits.",
)
