"""The jobs that a person, a sensor or a schedule starts."""

import dagster as dg

_READINESS = dg.AssetKey(["production", "readiness"])
score_round_job = dg.define_asset_job(
    "score_round_job",
    selection=dg.AssetSelection.groups("production") - dg.AssetSelection.assets(_READINESS),
    description="All stages of a round, or those selected. It stops at the first stage that is blocked or waits.",
)
release_readiness_job = dg.define_asset_job(
    "release_readiness_job",
    selection=dg.AssetSelection.assets(_READINESS),
    description="Whether a round's release is ready today. Apart from the round's own stages: a rehearsal never is.",
)
