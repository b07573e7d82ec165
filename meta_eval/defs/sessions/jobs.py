"""The partitions of the sessions lane, a folder each, and the job that scores one."""

import dagster as dg

ledgers_partitions = dg.DynamicPartitionsDefinition(name="ledgers")

score_ledger_job = dg.define_asset_job(
    "score_ledger_job",
    selection=dg.AssetSelection.groups("sessions"),
    description="Read a ledger, score every finished session, append what is new to the journal, and tell the trend.",
)
