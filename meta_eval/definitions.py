"""Everything that Dagster loads: the lanes' definitions, merged. `workspace.yaml` names this module."""

import dagster as dg

from meta_eval.defs import production, sessions, usefulness
from meta_eval.defs.audit import audit_jobs
from meta_eval.defs.failures import run_failure_summary
from meta_eval.defs.resources import MetaEvalHome

# Dagster allows one Definitions object at the top of a module, so the parts are not given names here.
defs = dg.Definitions.merge(
    dg.Definitions(resources={"home": MetaEvalHome()}, jobs=audit_jobs, sensors=[run_failure_summary]),
    production.production_lane,
    sessions.sessions_lane,
    usefulness.usefulness_lane,
)
