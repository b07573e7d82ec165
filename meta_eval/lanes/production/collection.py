"""Stage 0: may questions be collected? An approval of this very contract, and apart from it a switch, or nothing.

Source: the production evaluation document, its first operator step. The contract is canonical JSON kept beside this
module; whatever asks a visitor for a question, a page or the interface behind it, asks `collection_enabled` for itself.
The artifact tells how far a person has come. It deploys nothing, switches nothing on and says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.documents import Reading, read, read_projection
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.policy import Policy, policy_of

KIND = "collection-readiness"
AWAITING, MISMATCH, READY = "awaiting-human-approval", "approval-mismatch", "ready-for-runtime-activation"
CONTRACT: Mapping[str, Any] = json.loads(
    Path(__file__).with_name("collection-contract-v1.json").read_text(encoding="utf-8")
)
CONTRACT_DIGEST = digest(CONTRACT)
KNOWN_CONTRACTS: Mapping[str, Mapping[str, Any]] = {CONTRACT_DIGEST: CONTRACT}
"""Every contract that was ever to be approved, by digest. A change is a new file beside the old one."""
AUTHORITY = {
    "authorizesDeployment": False,
    "enablesCollection": False,
    "permitsPublication": False,
    "permitsOutreach": False,
    "permitsPayment": False,
    "permitsModelRun": False,
    "statement": (
        "Tells whether a person approved this contract. It authorises no deployment, enables no collection, and "
        "permits no publication, contact, payment or model run."
    ),
}
_APPROVAL = documents.COLLECTION_APPROVAL


def collection_enabled(approval: object, switch: object, contract: object) -> bool:
    """May a question be taken right now? The one predicate that a page and the interface behind it each ask.

    Args:
        approval: the approval as parsed JSON, or None.
        switch: the runtime switch; nothing but `True` is on.
        contract: the collection contract that the asking side would collect under, as parsed JSON.
    """
    if switch is not True or not isinstance(contract, dict):
        return False
    reading = read(approval, _APPROVAL, subject="approval")
    return not reading.blockers and bool(reading.value["contractSha256"] == digest(contract))


def approval_template() -> dict[str, Any]:
    """The blank approval: the digest of the contract at hand, and every judgement left to a person."""
    blank = dict.fromkeys(("approverCode", "approvedAt", "evidenceUrl", "receiptSha256"))
    return {"version": 1, "contractSha256": CONTRACT_DIGEST, **blank}


def judge(approval: object, *, approval_receipt: str | None, switch: bool, made_at: int, policy: Policy) -> Artifact:
    """How far the approval of the contract has come.

    Args:
        approval: the completed approval as parsed JSON, or None where there is none.
        approval_receipt: the receipt of its file.
        switch: whether the runtime switch is on, as the caller says.
        made_at: judging time, milliseconds since the epoch.
    """
    inputs = {} if approval_receipt is None else {"approval": {"receipt": approval_receipt}}
    reading = None if approval_receipt is None else read(approval, _APPROVAL, subject="approval")
    return _build(reading, CONTRACT_DIGEST, inputs, switch=switch, made_at=made_at, policy=policy)


def _build(
    reading: Reading | None,
    contract_digest: str,
    inputs: Mapping[str, Mapping[str, str]],
    *,
    switch: bool,
    made_at: int,
    policy: Policy,
) -> Artifact:
    value = None if reading is None else reading.value
    named = value.get("contractSha256") if isinstance(value, dict) else None
    blockers = [Blocker("approval-missing", "approval")] if reading is None else list(reading.blockers)
    if named is not None and named != contract_digest:
        blockers.append(Blocker("approval-of-another-contract", "approval.contractSha256"))
    approved_at = instant_ms(value["approvedAt"]) if isinstance(value, dict) and value.get("approvedAt") else None
    if approved_at is not None and approved_at > made_at:
        blockers.append(Blocker("approval-in-the-future", "approval.approvedAt"))
    status = READY
    if blockers:
        status = MISMATCH if named is not None and named != contract_digest else AWAITING
    due = {} if reading is None else {"approval": "receipt"}
    return sealed(
        kind=KIND,
        environment=None,
        round_name=None,
        status=status,
        blockers=blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs={"collectionContract": {"digest": contract_digest}, **named_inputs(inputs, due)},
        result={
            "contractSha256": contract_digest,
            "runtimeSwitch": "on" if switch else "off",
            "collectionEnabled": status == READY
            and collection_enabled(value, switch, dict(KNOWN_CONTRACTS[contract_digest])),
        },
        replay={
            "contractSha256": contract_digest,
            "runtimeSwitch": switch,
            "approval": None if reading is None else reading.projection,
        },
        authority=AUTHORITY,
    )


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact again, from its replay. Raises VerificationError for a contract that never was."""
    replay = artifact["replay"]
    if replay["contractSha256"] not in KNOWN_CONTRACTS:
        raise VerificationError(KIND, "a contract that was never to be approved", "/replay/contractSha256")
    if not isinstance(replay["runtimeSwitch"], bool):
        raise VerificationError(KIND, "a switch that is neither on nor off", "/replay/runtimeSwitch")
    approval = replay["approval"]
    return _build(
        None if approval is None else read_projection(approval, _APPROVAL, subject="approval"),
        replay["contractSha256"],
        artifact["inputs"],
        switch=replay["runtimeSwitch"],
        made_at=made_at_ms(artifact),
        policy=policy_of(artifact),
    )
