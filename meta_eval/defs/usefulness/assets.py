"""The usefulness lane's assets over `studies` partitions: one a stage, and one for each thing that people bring.

The orchestration contract. A step takes from the register what is on record, makes what is not, loads the rows, checks,
and returns what a person should see. Opening a packet is nobody's but the designated runner's: that asset waits.
"""

import os
from collections.abc import Sequence

import dagster as dg

from meta_eval.defs.refusals import refusals
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.defs.usefulness import shown
from meta_eval.defs.usefulness.checks import check_results, check_specs
from meta_eval.defs.usefulness.jobs import studies_partitions
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.catalogue import tables_of
from meta_eval.lanes.usefulness import adjudication, scoring
from meta_eval.lanes.usefulness.line import STAGES, LineStage, advance
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.steps import Made
from meta_eval.lanes.usefulness.studies import Study

GROUP, OWNERS, POOL = "usefulness", ["team:evidence"], "duckdb"


def stage_key(name: str) -> dg.AssetKey:
    return dg.AssetKey(["usefulness", name])


def inbox_key(name: str) -> dg.AssetKey:
    return dg.AssetKey(["usefulness", "inbox", name])


def _inbox_spec(name: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        inbox_key(name),
        description=shown.INPUTS[name],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"json"},
        tags={"lane": "usefulness", "made_by": "people"},
        partitions_def=studies_partitions,
    )


def _stage_asset(stage: LineStage) -> dg.AssetsDefinition:
    @dg.asset(
        key=stage_key(stage.name),
        deps=[*map(inbox_key, stage.inbox), *map(stage_key, stage.upstream)],
        partitions_def=studies_partitions,
        description=shown.STAGES[stage.name],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"python", "duckdb"},
        tags={"lane": "usefulness", "made_by": "line"},
        check_specs=check_specs(stage, stage_key(stage.name)),
        pool=POOL,  # one step at a time loads rows
        code_version=CURRENT_POLICY.digest[:12],
    )
    def stage_asset(context: dg.AssetExecutionContext, home: MetaEvalHome) -> dg.MaterializeResult:  # type: ignore[type-arg]
        with refusals(home.folder, stage.name):
            return _advanced(stage, context.partition_key, home)

    return stage_asset


def _advanced(stage: LineStage, name: str, home: MetaEvalHome) -> dg.MaterializeResult[None]:
    place, store = Study(home.folder / "studies", name), home.store()
    made = advance(place, stage, Setting(home.setting(name).made_at, name), os.urandom)
    _load(stage, place, store, made)
    digests = [artifact["digest"] for artifact, _ in made]
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digests[0] if len(digests) == 1 else digest(digests)),
        metadata=shown.metadata_of(made, home),
        check_results=check_results(stage, made, store),
    )


def _load(stage: LineStage, place: Study, store: EvidenceStore, made: Sequence[Made]) -> None:
    artifacts = [artifact for artifact, _ in made]
    if stage.kind == scoring.KIND:
        return  # nobody may read one scorer's judgments while the other's are open
    if stage.kind == adjudication.KIND and artifacts[0]["status"] == "ready":
        artifacts = [*place.every(scoring.KIND), *artifacts]
    for artifact in artifacts:
        store.load(artifact, tables_of(artifact))


usefulness_assets = [_stage_asset(stage) for stage in STAGES]
usefulness_inputs = [_inbox_spec(name) for stage in STAGES for name in stage.inbox]
