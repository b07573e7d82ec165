"""The production lane's assets: one a stage, made by one factory, and one for each file that people put in.

The orchestration contract. A step advances its stage, loads the rows, checks, and returns what a person should see.
No value passes through an IO manager: the artifact is a file that the next stage verifies before it believes it.
Nothing here is automated by condition: sensors ask for stages, so that no condition can ask past a failed check.
"""

import contextlib
import time
from collections.abc import Callable, Mapping

import dagster as dg

from meta_eval.defs.partitions import rounds_partitions
from meta_eval.defs.production import descriptions, shown
from meta_eval.defs.production.checks import check_results, check_specs
from meta_eval.defs.provenance import record_inputs
from meta_eval.defs.refusals import refusals
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import StoreError, WaitingError
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.catalogue import tables_of
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.rounds import INBOX, Round
from meta_eval.lanes.production.stages import READINESS, STAGES, Stage, advance, input_name, stage_named

GROUP, OWNERS = "production", ["team:evidence"]
POOL = "duckdb"
_PROGRESS_S = 10.0


def stage_key(stage: str) -> dg.AssetKey:
    return dg.AssetKey(["production", stage])


def inbox_key(name: str) -> dg.AssetKey:
    return dg.AssetKey(["production", "inbox", name])


def _inbox_spec(name: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        inbox_key(name),
        description=descriptions.input_description(name),
        group_name=GROUP,
        owners=OWNERS,
        kinds={"json"},
        tags={"lane": "production", "made_by": "people"},
        partitions_def=rounds_partitions,
    )


def _stage_asset(stage: Stage) -> dg.AssetsDefinition:
    @dg.asset(
        key=stage_key(stage.name),
        deps=[*map(inbox_key, stage.inbox), *map(stage_key, stage.upstream)],
        partitions_def=rounds_partitions,
        description=descriptions.stage_description(stage.name),
        metadata=descriptions.schema_metadata(stage.name),
        group_name=GROUP,
        owners=OWNERS,
        kinds=descriptions.KINDS.get(stage.name, {"python", "pandas", "duckdb"}),
        tags={"lane": "production", "made_by": "line"},
        check_specs=check_specs(stage, stage_key(stage.name)),
        pool=POOL,  # one step at a time loads rows
        code_version=CURRENT_POLICY.digest[:12],  # under another policy every artifact is out of date
    )
    # Dagster 1.13 knows the bare class only, once checks are declared.
    def stage_asset(context: dg.AssetExecutionContext, home: MetaEvalHome) -> dg.MaterializeResult:  # type: ignore[type-arg]
        with refusals(home.folder, stage.name):
            return _advanced(stage, context, home)

    return stage_asset


def _advanced(stage: Stage, context: dg.AssetExecutionContext, home: MetaEvalHome) -> dg.MaterializeResult[None]:
    round_, store = home.round(context.partition_key), home.store()
    for artifact in _upstream(round_, stage):
        _load(store, artifact)  # the terminal may have made it, and figures need the rows of their inputs
    kept = advance(round_, stage, home.setting(round_.name, _progress(context)))
    record_inputs(context, [observation(name, round_.name, sha) for name, sha in _inputs_read(kept.artifact).items()])
    _load(store, kept.artifact)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(kept.artifact["digest"]),
        metadata=shown.metadata_of(stage, kept, round_, home),
        check_results=check_results(stage, kept, store),
    )


def _upstream(round_: Round, stage: Stage) -> list[Artifact]:
    """The verified upstream artifacts. A blocked one stops this stage, also in a run that asks for it alone.

    Raises:
        WaitingError: an upstream artifact is blocked or missing.
        VerificationError: it is not honest.
    """
    artifacts = []
    if stage is READINESS:
        return []  # it judges whatever verdict is there, and names what is wrong with it
    for name in stage.upstream:
        kind = stage_named(name).kind
        artifact = round_.current(kind)
        if artifact["status"] != "ready":
            raise WaitingError(f"waiting for: a {name} of round {round_.name} that is not blocked")
        artifacts.append(artifact)
    return artifacts


def _load(store: EvidenceStore, artifact: Artifact) -> None:
    with contextlib.suppress(StoreError):  # nothing is published yet
        if store.rows("SELECT 1 FROM artifacts WHERE artifact_digest = ?", [artifact["digest"]]):
            return
    store.load(artifact, tables_of(artifact))


def observation(name: str, round_name: str, sha: str) -> dg.AssetObservation:
    """That a round's input had these bytes when somebody read the whole file."""
    return dg.AssetObservation(
        inbox_key(name), partition=round_name, tags={"dagster/data_version": sha}, metadata={"sha256": sha}
    )


def _inputs_read(artifact: Artifact) -> Mapping[str, str]:
    """Each file of the inbox that the stage read, by the SHA-256 that its artifact names."""
    named = artifact["inputs"]
    return {name: named[key]["receipt"] for name in INBOX if (key := input_name(name)) in named}


def _progress(context: dg.AssetExecutionContext) -> Callable[[int, int], None]:
    told = time.monotonic()

    def tell(rows: int, size: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _PROGRESS_S:
            told = time.monotonic()
            context.log.info(f"{rows} rows, {size} bytes read so far")

    return tell


production_assets = [_stage_asset(stage) for stage in (*STAGES, READINESS)]
production_inputs = [_inbox_spec(name) for name in INBOX]
