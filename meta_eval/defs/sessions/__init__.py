"""The sessions lane in Dagster: when ledgers are read and sessions are scored."""

import dagster as dg

from meta_eval.defs.sessions.assets import session_assets, session_inputs
from meta_eval.defs.sessions.jobs import score_ledger_job
from meta_eval.defs.sessions.sensors import ledger_sensor

sessions_lane = dg.Definitions(
    assets=[*session_inputs, *session_assets],
    jobs=[score_ledger_job],
    sensors=[ledger_sensor],
)
