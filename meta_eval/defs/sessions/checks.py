"""The checks of the sessions lane, made in the step that made what they check. All are blocking, of severity ERROR."""

from collections.abc import Sequence

import dagster as dg

from meta_eval.defs.partitions import blocking_check
from meta_eval.defs.sessions import shown
from meta_eval.defs.sessions.jobs import ledgers_partitions
from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.replay import load_verified
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.sessions.journal import Journal
from meta_eval.lanes.sessions.ledgers import Kept
from meta_eval.lanes.sessions.record import Record
from meta_eval.lanes.sessions.scored_sessions import KIND
from meta_eval.lanes.sessions.steps import REBUILDS

NAMES = {
    "contracts": "both_ledgers_keep_their_contract",
    "gates": "every_gate_passed",
    "replay": "artifact_rebuilds_from_its_replay",
    "agreement": "sql_agrees_with_python",
    "journal": "journal_holds_every_verdict",
}
_TRUTHS = {
    "contracts": "The Pandera contracts of session records and event signals hold.",
    "gates": "The artifact names no blocker.",
    "replay": "The file on disk, read again, is rebuilt whole from its own replay at its own recorded time.",
    "agreement": "DuckDB finds every verdict again from rows alone, and each one equals what Python wrote.",
    "journal": "The last record of every scored session in the journal says what the artifact says.",
}


def specs(asset: dg.AssetKey, *names: str) -> list[dg.AssetCheckSpec]:
    return [blocking_check(NAMES[name], asset, _TRUTHS[name], ledgers_partitions) for name in names]


def _result(name: str, passed: bool, metadata: shown.Metadata) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=NAMES[name],
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
        description=_TRUTHS[name],
    )


def contracts_hold(blockers: Sequence[Blocker]) -> dg.AssetCheckResult:
    return _result("contracts", not blockers, {"blockers": shown.blockers_table([each.document for each in blockers])})


def gates(artifact: Artifact) -> dg.AssetCheckResult:
    passed = artifact["status"] == "ready" and not artifact["blockers"]
    return _result("gates", passed, {"blockers": shown.blockers_table(artifact["blockers"])})


def replays(kept: Kept) -> dg.AssetCheckResult:
    try:
        again = load_verified(kept.path, REBUILDS, kind=KIND)
    except VerificationError as error:
        return _result("replay", False, {"rule": error.rule, "at": error.pointer or "/"})
    except InputError as error:
        return _result("replay", False, {"rule": error.rule})
    return _result("replay", again["digest"] == kept.artifact["digest"], {"digest": again["digest"]})


def agreement(artifact: Artifact, store: EvidenceStore) -> dg.AssetCheckResult:
    digest = artifact["digest"]
    written = sum(len(each["statuses"]) for each in artifact["result"]["verdicts"])
    ((recomputed,),) = store.rows(
        "SELECT count(*) FROM recomputed_session_verdicts WHERE artifact_digest = ?", [digest]
    )
    ((differing,),) = store.rows(
        "SELECT count(*) FROM session_verdict_disagreements WHERE artifact_digest = ?", [digest]
    )
    # No disagreement over no verdicts is no agreement.
    passed = written > 0 and recomputed == written and differing == 0
    return _result(
        "agreement", passed, {"verdicts in Python": written, "verdicts in SQL": recomputed, "disagreeing": differing}
    )


def journal_complete(journal: Journal, fresh: Sequence[Record], missing: Sequence[Record]) -> dg.AssetCheckResult:
    metadata = {"records": len(journal.records), "sessions": len(fresh), "missing": len(missing), "torn": journal.torn}
    return _result("journal", bool(fresh) and not missing, metadata)
