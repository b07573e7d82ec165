"""The partitions of the usefulness lane, a study each, and the job that advances one."""

import dagster as dg

studies_partitions = dg.DynamicPartitionsDefinition(name="studies")
score_study_job = dg.define_asset_job(
    "score_study_job",
    selection=dg.AssetSelection.groups("usefulness"),
    description="All stages of a study, or those selected. It stops at the first one that is blocked or waits.",
)
