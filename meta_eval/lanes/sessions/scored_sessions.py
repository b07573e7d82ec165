"""The `scored-sessions` artifact: every eligible session of a ledger, scored under one rubric, with its replay.

The sessions contract and the evidence contract. The journal holds the records; this artifact holds the same verdicts
with the projection of the ledger that they follow from, so that they can be rebuilt where the ledger is not at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.projection import document_of, ledger_of
from meta_eval.lanes.sessions.resolution import unusable_ids
from meta_eval.lanes.sessions.rubric import Rubric, version_named
from meta_eval.lanes.sessions.scoring import Scored, score_all
from meta_eval.lanes.sessions.verdicts import STATUSES

KIND = "scored-sessions"
AUTHORITY = {"isAnAudit": False, "ranksSessions": False, "isProductionEvidence": False}
INPUTS = {"sessionLedger": "receipt", "eventStream": "receipt", "rotatedEvents": "digest", "rubric": "receipt"}
_OPTIONAL = frozenset({"sessionLedger", "eventStream", "rotatedEvents"})


def scored_sessions(
    ledger: Ledger, rubric: Rubric, *, made_at: int, inputs: Mapping[str, Mapping[str, str]], name: str | None
) -> Artifact:
    """The artifact of a ledger.

    Args:
        inputs: receipts of the files that were read; those that are not there have none.
        name: the ledger's name, which is its partition; None outside of one.
    """
    replay = {"rubric": rubric.version.version, "ledger": document_of(ledger)}
    # Scored from the replay itself, so that nothing can be in the verdicts that the replay lacks.
    return _artifact(replay, rubric, made_at, inputs, name)


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact from its replay."""
    version = version_named(artifact["replay"]["rubric"])
    rubric = Rubric(version, artifact["inputs"]["rubric"]["receipt"])
    return _artifact(artifact["replay"], rubric, made_at_ms(artifact), artifact["inputs"], artifact["round"])


def scored_of(artifact: Artifact) -> tuple[Ledger, list[Scored]]:
    """The ledger and the scored sessions of a verified artifact."""
    ledger = ledger_of(artifact["replay"]["ledger"])
    rubric = Rubric(version_named(artifact["replay"]["rubric"]), artifact["inputs"]["rubric"]["receipt"])
    return ledger, list(score_all(ledger, rubric))


def _artifact(
    replay: Mapping[str, Any], rubric: Rubric, made_at: int, inputs: Mapping[str, Mapping[str, str]], name: str | None
) -> Artifact:
    ledger = ledger_of(replay["ledger"])
    scored = list(score_all(ledger, rubric))
    blockers = _blockers(ledger, scored)
    return sealed(
        kind=KIND,
        environment=None,
        round_name=name,
        status="blocked" if blockers else "ready",
        blockers=blockers,
        policy_digest=rubric.sha256,
        made_at_ms=made_at,
        inputs=named_inputs(inputs, INPUTS, optional=_OPTIONAL),
        result=_result(ledger, rubric, scored),
        replay=replay,
        authority=AUTHORITY,
        evidence_class="session-process",
    )


def _blockers(ledger: Ledger, scored: Sequence[Scored]) -> list[Blocker]:
    # Pandera is loaded with the first ledger, as most commands have none.
    from meta_eval.lanes.sessions.contracts import contract_blockers

    blockers = contract_blockers(ledger)
    if ledger.sessions.state != "present":
        blockers.append(Blocker(f"session-ledger-{ledger.sessions.state}", "sessionLedger"))
    elif not scored:
        blockers.append(Blocker("no-eligible-session", "sessionLedger", len(ledger.lines)))
    return blockers


def _result(ledger: Ledger, rubric: Rubric, scored: Sequence[Scored]) -> dict[str, Any]:
    names = [each["id"] for each in scored[0].dimensions] if scored else []
    statuses: dict[str, Counter[str]] = {name: Counter() for name in names}
    for session in scored:
        for dimension in session.dimensions:
            statuses[dimension["id"]][dimension["status"]] += 1
    return {
        "rubricVersion": rubric.version.name,
        "recordCount": len(ledger.lines),
        "sessionCount": len(scored),
        "notEligible": len(ledger.last_by_id) - len(scored),
        "withoutUsableId": unusable_ids(ledger),
        "counts": {name: {status: counter[status] for status in STATUSES} for name, counter in statuses.items()},
        "readings": readings(ledger),
        "verdicts": [_verdict(session) for session in scored],
    }


def _verdict(session: Scored) -> dict[str, Any]:
    scores = {each["id"]: each["score"] for each in session.dimensions if "score" in each}
    return {
        "sessionId": session.session_id,
        "statuses": {each["id"]: each["status"] for each in session.dimensions},
        "scores": scores,
        "evidenceDigest": digest([each["evidence"] for each in session.dimensions]),
    }


def readings(ledger: Ledger) -> dict[str, Any]:
    """What was passed over while the ledgers were read: everything has a count."""
    sessions, events = ledger.sessions, ledger.events
    return {
        "sessions": {
            "state": sessions.state,
            "objects": sessions.objects,
            "malformed": sessions.malformed,
            "malformedLines": list(sessions.malformed_lines),
            "torn": sessions.torn,
            "byteOrderMark": sessions.byte_order_mark,
            "stubsDropped": ledger.dropped_stubs,
            "rewrites": sum(line.session_id is not None for line in ledger.lines) - len(ledger.last_by_id),
        },
        "events": {
            "state": events.state,
            "objects": events.objects,
            "malformed": events.malformed,
            "torn": events.torn,
            "duplicates": events.duplicates,
            "gaps": events.gaps,
            "withoutInstant": sum(signal.at_ms is None for signal in events.signals),
            "orphans": events.orphans,
            "outsideTheirSession": events.strays,
        },
    }
