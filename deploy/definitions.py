"""The same definitions under another executor: each step becomes a task that some machine's worker takes.

Nothing else differs from `meta_eval.definitions`. On Kubernetes, `dagster_k8s.k8s_job_executor` goes in the same place.
"""

import dagster as dg
from dagster_celery import celery_executor

import meta_eval.definitions

BROKER = {"env": "META_EVAL_BROKER"}

defs = dg.Definitions.merge(
    meta_eval.definitions.defs,  # by module: Dagster allows one Definitions object at the top of this one
    dg.Definitions(executor=celery_executor.configured({"broker": BROKER, "backend": BROKER})),
)
