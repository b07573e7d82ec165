"""Stage 0: no approval of this very contract, no collection; and never by the approval alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.lanes.production import collection
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import Breaks
from meta_eval_tests.valid_world import START, blockers, deep, sha

# Of the contract's canonical bytes, by `sha256sum` of the file without its line end.
CONTRACT_SHA256 = "7910d6d8fc3c53525a1e8de66a8c4141ae356762c3300ed8bd06018bdba7a233"
BREAKS = Breaks()


def approval() -> dict[str, Any]:
    return collection.approval_template() | {
        "approverCode": "APP-1A",
        "approvedAt": written_instant(START),
        "evidenceUrl": "https://evidence.metmuseum.org/approval",
        "receiptSha256": sha("approval"),
    }


def judged(document: Any, *, switch: bool = False, given: bool = True, made_at: int = START) -> Artifact:
    receipt = sha("file") if given else None
    return collection.judge(document, approval_receipt=receipt, switch=switch, made_at=made_at, policy=CURRENT_POLICY)


def test_the_contract_is_the_one_on_file_in_canonical_form() -> None:
    file = Path(collection.__file__).with_name("collection-contract-v1.json")
    assert file.read_bytes() == canonical_bytes(dict(collection.CONTRACT)) + b"\n"
    assert sha(file.read_text(encoding="utf-8").strip()) == collection.CONTRACT_DIGEST == CONTRACT_SHA256


def test_the_contract_asks_for_the_consent_that_the_policy_counts() -> None:
    assert collection.CONTRACT["consentContract"] == CURRENT_POLICY.consent_contract
    assert collection.CONTRACT["authorizesDeployment"] is False
    assert set(collection.CONTRACT["whileNotActive"].values()) == {False}


def test_an_approval_of_this_contract_is_ready_for_activation_and_activates_nothing() -> None:
    ready = judged(approval())
    assert (ready["status"], ready["blockers"]) == ("ready-for-runtime-activation", [])
    assert (ready["result"]["runtimeSwitch"], ready["result"]["collectionEnabled"]) == ("off", False)
    assert judged(approval(), switch=True)["result"]["collectionEnabled"] is True
    assert verified(deep(ready), REBUILDS) == deep(ready)


@pytest.mark.parametrize("switch", [False, True])
def test_it_never_claims_to_authorise_deployment(switch: bool) -> None:
    for artifact in (judged(approval(), switch=switch), judged(None, given=False, switch=switch)):
        assert not any(value for key, value in artifact["authority"].items() if key != "statement")
        assert "authorises no deployment" in artifact["authority"]["statement"]


def test_the_predicate_is_true_only_where_both_hold() -> None:
    contract = dict(collection.CONTRACT)
    another = contract | {"version": 2}
    approvals = [approval(), None, approval() | {"contractSha256": sha("another")}, collection.approval_template()]
    switches = [True, False, None, 1, "on", "true"]
    on = [
        (place, switch, document == contract)
        for (place, given), switch, document in itertools.product(
            enumerate(approvals), switches, (contract, another, None, "")
        )
        if collection.collection_enabled(given, switch, document)
    ]
    assert on == [(0, True, True)]


@BREAKS(("approval-of-another-contract", "approval.contractSha256", 1))
def another_contract_was_approved(document: dict[str, Any]) -> None:
    document["contractSha256"] = sha("another")


@BREAKS(("approval-in-the-future", "approval.approvedAt", 1))
def the_approval_is_in_the_future(document: dict[str, Any]) -> None:
    document["approvedAt"] = written_instant(START + 1)


@BREAKS(("not-a-code", "approval.approverCode", 1))
def a_name_stands_for_the_approver(document: dict[str, Any]) -> None:
    document["approverCode"] = "Invented Name"


@BREAKS(("url-reserved-name", "approval.evidenceUrl", 1))
def the_evidence_is_on_a_reserved_host(document: dict[str, Any]) -> None:
    document["evidenceUrl"] = "https://evidence.museum.example/approval"


@BREAKS(("not-a-sha256", "approval.receiptSha256", 1))
def the_receipt_is_left_blank(document: dict[str, Any]) -> None:
    document["receiptSha256"] = None


@BREAKS(("missing-key", "approval.approvedAt", 1))
def the_instant_is_left_out(document: dict[str, Any]) -> None:
    del document["approvedAt"]


@BREAKS(("unknown-key", "approval", 1))
def a_key_is_added(document: dict[str, Any]) -> None:
    document["deployed"] = True


@pytest.mark.parametrize(("break_", "expected"), BREAKS.params)
def test_an_approval_that_breaks_one_rule_counts_for_nothing(break_: Callable[[Any], Any], expected: set[Any]) -> None:
    document = approval()
    break_(document)
    artifact = judged(document, switch=True)
    mismatch = break_ is another_contract_was_approved
    assert artifact["status"] == ("approval-mismatch" if mismatch else "awaiting-human-approval")
    assert blockers(artifact) == expected
    assert artifact["result"]["collectionEnabled"] is False
    assert verified(deep(artifact), REBUILDS) == deep(artifact)


def test_without_an_approval_a_person_is_awaited_and_finds_a_blank() -> None:
    artifact = judged(None, given=False, switch=True)
    assert artifact["status"] == "awaiting-human-approval"
    assert blockers(artifact) == {("approval-missing", "approval", 1)}
    assert artifact["result"]["collectionEnabled"] is False
    blank = collection.approval_template()
    assert {key for key, value in blank.items() if value is not None} == {"version", "contractSha256"}
    assert verified(deep(artifact), REBUILDS) == deep(artifact)


def test_a_file_that_holds_null_is_no_approval() -> None:
    assert blockers(judged(None)) == {("not-an-object", "approval", 1)}


def test_a_contract_that_never_was_does_not_verify() -> None:
    artifact = deep(judged(approval()))
    for place in (artifact["replay"], artifact["result"], artifact["replay"]["approval"]):
        place["contractSha256"] = sha("another")
    artifact["inputs"]["collectionContract"]["digest"] = sha("another")
    artifact["digest"] = digest_of(artifact)
    with pytest.raises(VerificationError, match="never to be approved"):
        verified(artifact, REBUILDS)
