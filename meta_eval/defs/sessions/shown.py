"""What a person sees on a session asset's page: counts, verdicts, digests and what was passed over.

The orchestration contract. Counts, digests and rules only: no session id, no evidence text, no path of a machine.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from meta_eval.defs.production.descriptions import table_schema
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.canonical import digest
from meta_eval.lanes.sessions import contracts
from meta_eval.lanes.sessions.journal import Journal
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.ledgers import Kept
from meta_eval.lanes.sessions.scored_sessions import readings
from meta_eval.lanes.sessions.verdicts import STATUSES

Metadata = Mapping[str, Any]
CONTRACT = "docs/sessions-guide.md"
INPUTS = {
    "session_ledger": f"One record a session, by its harness: `ledgers/LEDGER/{{file}}`. Contract: `{CONTRACT}`.",
    "event_stream": f"What the tools reported meanwhile: `ledgers/LEDGER/{{file}}`. Contract: `{CONTRACT}`.",
}
_ASSETS = {
    "ledger": "Both ledgers as read: what is whole, what was passed over, and whether their Pandera contracts hold.",
    "scored_sessions": (
        "Every finished session scored under the frozen session process rubric, one verdict a dimension and no overall "
        "figure. The artifact is JSON that `meta-eval verify` rebuilds; its rows are in the evidence store."
    ),
    "journal": "The append-only journal eval.jsonl: a record for each session whose verdicts are new or changed.",
    "trend": "Across the journal: how often each dimension came out how, with Wilson intervals and ties.",
}


def description(name: str) -> str:
    return f"{_ASSETS[name]}\n\nContract: `{CONTRACT}`."


def schemas() -> Mapping[str, dg.TableSchema]:
    """The Pandera contracts of both ledgers."""
    return {
        "dagster/column_schema": table_schema(contracts.SessionRecords),  # type: ignore[arg-type]
        "contract EventSignals": table_schema(contracts.EventSignals),  # type: ignore[arg-type]
    }


def receipts(inputs: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The inputs that are assets, by name, each with its SHA-256."""
    names = {"sessionLedger": "session_ledger", "eventStream": "event_stream"}
    return {name: inputs[camel]["receipt"] for camel, name in names.items() if camel in inputs}


def observation(name: str, partition: str, sha: str) -> dg.AssetObservation:
    return dg.AssetObservation(
        dg.AssetKey(["sessions", "inbox", name]),
        partition=partition,
        tags={"dagster/data_version": sha},
        metadata={"sha256": sha},
    )


def version_of(inputs: Mapping[str, Mapping[str, str]]) -> str:
    """The data version of a ledger: a digest of everything that was read."""
    return digest({name: dict(entry) for name, entry in inputs.items()})


def blockers_table(blockers: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    columns = [dg.TableColumn("code"), dg.TableColumn("subject"), dg.TableColumn("count", "int")]
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in blockers], dg.TableSchema(columns))


def ledger_metadata(ledger: Ledger, inputs: Mapping[str, Mapping[str, str]]) -> Metadata:
    found = {
        f"{file} {name}": value
        for file, reading in readings(ledger).items()
        for name, value in reading.items()
        if not isinstance(value, list)
    }
    sha = {f"sha256 {name}": value for name, value in receipts(inputs).items()}
    return {"dagster/row_count": len(ledger.lines), "signals": len(ledger.events.signals), **found, **sha}


def scored_metadata(kept: Kept, home: MetaEvalHome) -> Metadata:
    artifact = kept.artifact
    result = artifact["result"]
    rows = [{"dimension": name, **counts} for name, counts in result["counts"].items()]
    columns = [dg.TableColumn("dimension"), *(dg.TableColumn(name, "int") for name in STATUSES)]
    verdicts = dg.MetadataValue.table([dg.TableRecord(row) for row in rows], dg.TableSchema(columns))
    return {
        "status": artifact["status"],
        "rubric": result["rubricVersion"],
        "rubric sha256": artifact["inputs"]["rubric"]["receipt"],
        "dagster/row_count": result["sessionCount"],
        "sessions abandoned, or not finished": result["notEligible"],
        "records without a usable id": result["withoutUsableId"],
        "verdicts": verdicts,
        "blockers": blockers_table(artifact["blockers"]),
        "made at": artifact["madeAt"],
        "digest": artifact["digest"],
        "file": home.relative(kept.path),
        "reused": kept.reused,
        "next step": "read view session_basis of the evidence store for what each verdict follows from",
    }


def journal_metadata(journal: Journal, written: int, refused: int, file: str) -> Metadata:
    return {
        "dagster/row_count": len(journal.records),
        "written now": written,
        "records the contract refuses": refused,
        "torn or malformed lines": journal.malformed,
        "file": file,
    }


def trend_metadata(trend: Mapping[str, Any]) -> Metadata:
    names = ("dimension", "rubric", "judged", "pass rate", "interval", "note")
    rows = [
        {
            "dimension": name,
            "rubric": group["rubric"],
            "judged": str(group["judged"]),
            "pass rate": "" if group["passRate"] is None else f"{group['passRate']:.3f}",
            "interval": "" if group["wilson95"] is None else "{:.3f} to {:.3f}".format(*group["wilson95"]),
            "note": group["note"],
        }
        for name, dimension in trend["dimensions"].items()
        for group in dimension["groups"]
    ]
    schema = dg.TableSchema([dg.TableColumn(name) for name in names])
    table = dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema)
    return {"records": trend["records"], "sessions": trend["sessions"], "trend": table}
