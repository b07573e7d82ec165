"""The sessions lane's assets over `ledgers` partitions: the ledger as read, scored sessions, journal and trend.

The orchestration contract. A step does its work on files, loads the rows, checks, and returns what a person should see.
No value passes through an IO manager: what comes later reads the artifact from disk and verifies it first.
"""

from importlib.metadata import version

import dagster as dg

from meta_eval.defs.provenance import record_inputs
from meta_eval.defs.refusals import refusals
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.defs.sessions import shown
from meta_eval.defs.sessions.checks import agreement, contracts_hold, gates, journal_complete, replays, specs
from meta_eval.defs.sessions.jobs import ledgers_partitions
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.catalogue import tables_of
from meta_eval.lanes.sessions.contracts import contract_blockers
from meta_eval.lanes.sessions.journal import append, read_journal
from meta_eval.lanes.sessions.ledger import EVENTS, SESSIONS
from meta_eval.lanes.sessions.ledgers import LedgerFolder, news_for
from meta_eval.lanes.sessions.record import Provenance, RecordError, checked
from meta_eval.lanes.sessions.rubric import NEWEST
from meta_eval.lanes.sessions.scored_sessions import scored_of
from meta_eval.lanes.sessions.steps import under
from meta_eval.lanes.sessions.trend import trend as trend_of

GROUP, OWNERS, POOL = "sessions", ["team:evidence"], "duckdb"


def key(name: str) -> dg.AssetKey:
    return dg.AssetKey(["sessions", name])


def _input(name: str, file: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        dg.AssetKey(["sessions", "inbox", name]),
        description=shown.INPUTS[name].format(file=file),
        group_name=GROUP,
        owners=OWNERS,
        kinds={"json"},
        tags={"lane": "sessions", "made_by": "harness"},
        partitions_def=ledgers_partitions,
    )


session_inputs = [_input("session_ledger", SESSIONS), _input("event_stream", EVENTS)]
_TAGS = {"lane": "sessions", "made_by": "line"}


class RubricConfig(dg.Config):
    """The rubric's version under which a run scores."""

    rubric: str = NEWEST


def _ledger_folder(context: dg.AssetExecutionContext, home: MetaEvalHome) -> LedgerFolder:
    return LedgerFolder(home.folder / "ledgers", context.partition_key)


@dg.asset(
    key=key("ledger"),
    deps=[spec.key for spec in session_inputs],
    description=shown.description("ledger"),
    metadata=shown.schemas(),
    kinds={"python", "pandas", "json"},
    tags=_TAGS,
    check_specs=specs(key("ledger"), "contracts"),
    partitions_def=ledgers_partitions,
    group_name=GROUP,
    owners=OWNERS,
    pool=POOL,
)
def ledger(context: dg.AssetExecutionContext, home: MetaEvalHome, config: RubricConfig) -> dg.MaterializeResult:  # type: ignore[type-arg]
    with refusals(home.folder, "ledger"):
        metrics = _ledger_folder(context, home).metrics
        rubric = metrics.rubric(config.rubric)
        inputs = metrics.inputs(rubric)
        found = metrics.ledger(rubric)
        if found.sessions.state != "present":
            raise InputError(f"ledgers/{context.partition_key}/{SESSIONS}", "no such file", next_step="put it there")
        read = shown.receipts(inputs)
        record_inputs(context, [shown.observation(name, context.partition_key, sha) for name, sha in read.items()])
        return dg.MaterializeResult(
            data_version=dg.DataVersion(shown.version_of(inputs)),
            metadata=shown.ledger_metadata(found, inputs),
            check_results=[contracts_hold(contract_blockers(found))],
        )


@dg.asset(
    key=key("scored_sessions"),
    deps=[key("ledger")],
    description=shown.description("scored_sessions"),
    kinds={"python", "duckdb"},
    tags=_TAGS,
    check_specs=specs(key("scored_sessions"), "gates", "replay", "agreement"),
    partitions_def=ledgers_partitions,
    group_name=GROUP,
    owners=OWNERS,
    pool=POOL,
)
def scored_sessions(
    context: dg.AssetExecutionContext, home: MetaEvalHome, config: RubricConfig
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    with refusals(home.folder, "scored_sessions"):
        folder = _ledger_folder(context, home)
        kept = folder.keep_scored(config.rubric, home.setting(folder.name).made_at)
        store = home.store()
        store.load(kept.artifact, tables_of(kept.artifact))
        return dg.MaterializeResult(
            data_version=dg.DataVersion(kept.artifact["digest"]),
            metadata=shown.scored_metadata(kept, home),
            check_results=[gates(kept.artifact), replays(kept), agreement(kept.artifact, store)],
        )


@dg.asset(
    key=key("journal"),
    deps=[key("scored_sessions")],
    description=shown.description("journal"),
    kinds={"python", "json"},
    tags=_TAGS,
    check_specs=specs(key("journal"), "journal"),
    partitions_def=ledgers_partitions,
    group_name=GROUP,
    owners=OWNERS,
    pool=POOL,
)
def journal(context: dg.AssetExecutionContext, home: MetaEvalHome, config: RubricConfig) -> dg.MaterializeResult:  # type: ignore[type-arg]
    with refusals(home.folder, "journal"):
        folder = _ledger_folder(context, home)
        artifact = folder.current(config.rubric)
        if artifact["status"] != "ready":
            raise InputError(
                folder.name, "its scored sessions are blocked", next_step="mend the ledger by the blockers"
            )
        made = under(folder.metrics.rubric(config.rubric), _provenance(artifact["madeAt"]))
        fresh, refused = [], 0
        for session in scored_of(artifact)[1]:
            try:
                fresh.append(checked(session.record(made)))
            except RecordError:
                refused += 1
        path = folder.metrics.journal
        written = append(path, news_for(read_journal(path).records, fresh), refuse_other=True)
        held = read_journal(path)
        return dg.MaterializeResult(
            metadata=shown.journal_metadata(held, written, refused, home.relative(path)),
            check_results=[journal_complete(held, fresh, news_for(held.records, fresh))],
        )


def _provenance(timestamp: str) -> Provenance:
    return Provenance(
        timestamp=timestamp, rubric_version="", rubric_sha256="", engine_commit=f"meta-eval-{version('meta-eval')}"
    )


@dg.asset(
    key=key("trend"),
    deps=[key("journal")],
    description=shown.description("trend"),
    kinds={"python"},
    tags=_TAGS,
    partitions_def=ledgers_partitions,
    group_name=GROUP,
    owners=OWNERS,
    pool=POOL,
)
def trend(context: dg.AssetExecutionContext, home: MetaEvalHome) -> dg.MaterializeResult:  # type: ignore[type-arg]
    with refusals(home.folder, "trend"):
        held = read_journal(_ledger_folder(context, home).metrics.journal)
        return dg.MaterializeResult(metadata=shown.trend_metadata(trend_of(held.records)))


session_assets = [ledger, scored_sessions, journal, trend]
