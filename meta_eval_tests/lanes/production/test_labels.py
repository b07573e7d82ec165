"""Stage 5: labels are frozen before anything is scored, by somebody else than whoever runs the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.production import labels
from meta_eval.lanes.production.labels import manifest_of
from meta_eval_tests.lanes.production.broken import OTHER_POLICY, Breaks, places, whole
from meta_eval_tests.valid_world import APPROVED_AT, FROZEN_AT, PREPARED_AT, World, blockers, deep, sha

BREAKS = Breaks()
CASE = "labels.cases[]"


def answerable(document: Any) -> Any:
    return next(case for case in document["cases"] if case["shouldRefuse"] is False)


def refusal(document: Any) -> Any:
    return next(case for case in document["cases"] if case["shouldRefuse"] is True)


def test_valid_labels_freeze_and_count_their_classes() -> None:
    frozen = whole().frozen
    assert (frozen["status"], blockers(frozen)) == ("ready", set())
    result = frozen["result"]
    counts = (result["caseCount"], result["answerableCount"], result["refusalCount"], result["expectedClaimCount"])
    assert counts == (60, 40, 20, 40)
    assert frozen["result"]["datasetDigest"] == digest(whole().labels)
    assert manifest_of(frozen) == whole().labels


def test_white_space_and_key_order_change_the_receipt_and_never_the_dataset_digest() -> None:
    pretty = json.loads(json.dumps(whole().labels, indent=4, sort_keys=True))
    assert whole().world.frozen(pretty)["result"]["datasetDigest"] == whole().frozen["result"]["datasetDigest"]
    changed = deep(whole().labels)
    answerable(changed)["relevantClaimIds"].append("claim-extra")
    assert whole().world.frozen(changed)["result"]["datasetDigest"] != whole().frozen["result"]["datasetDigest"]


@pytest.mark.parametrize(
    ("cases", "answering", "expected"),
    [
        (50, 40, set()),
        (51, 41, set()),
        (50, 41, {("too-few-refusal-cases", "labels.cases", 9)}),
        (50, 10, set()),
        (50, 9, {("too-few-answerable-cases", "labels.cases", 9)}),
        (60, 0, {("too-few-answerable-cases", "labels.cases", 0)}),
        (60, 60, {("too-few-refusal-cases", "labels.cases", 0)}),
    ],
)
def test_at_least_ten_cases_of_each_class(cases: int, answering: int, expected: set[Any]) -> None:
    assert blockers(World(cases=cases, answerable=answering).frozen()) == expected


def test_49_labels_of_50_prepared_cases_are_too_few() -> None:
    world = World(cases=50, answerable=40)
    document = world.labels()
    document["cases"].remove(answerable(document))
    assert blockers(world.frozen(document)) == {
        ("too-few-cases", "labels.cases", 49),
        ("prepared-case-not-labelled", "labelled_cases", 1),
    }


def test_labels_of_a_blocked_manifest_are_blocked() -> None:
    world = World(cases=49)
    assert blockers(world.frozen()) == {
        ("prepared-manifest-not-ready", "preparedManifest", 1),
        ("too-few-cases", "labels.cases", 0),
        ("too-few-answerable-cases", "labels.cases", 0),
        ("too-few-refusal-cases", "labels.cases", 0),
        ("too-few-rows", "labels", 0),
        ("too-few-rows", "labelled_cases", 0),
    }


# --- the cases are the prepared ones ------------------------------------------------------------------------------


@BREAKS(("prepared-case-not-labelled", "labelled_cases", 1))
def a_prepared_case_is_left_out(document: Any) -> None:
    document["cases"].remove(answerable(document))


@BREAKS(("case-labelled-twice", "labelled_cases", 1), ("repeated", "labels.question_sha256", 2))
def a_case_is_labelled_twice(document: Any) -> None:
    document["cases"].append(answerable(document))


@BREAKS(("case-never-prepared", "labelled_cases", 1), ("prepared-case-not-labelled", "labelled_cases", 1))
def a_case_was_never_prepared(document: Any) -> None:
    answerable(document)["caseId"] = "case-" + "0" * 20


@BREAKS(("question-digest-changed", "labelled_cases", 1))
def a_question_digest_is_changed(document: Any) -> None:
    answerable(document)["questionSha256"] = sha("another question")


@BREAKS(("question-digest-changed", "labelled_cases", 1), ("repeated", "labels.question_sha256", 2))
def two_cases_share_a_question(document: Any) -> None:
    answerable(document)["questionSha256"] = refusal(document)["questionSha256"]


# --- each label -----------------------------------------------------------------------------------------------------


@BREAKS(("refusal-label-with-claims", "labels", 1))
def a_refusal_label_expects_a_claim(document: Any) -> None:
    refusal(document)["relevantClaimIds"] = ["claim-x"]


@BREAKS(("answerable-label-without-claims", "labels", 1))
def an_answerable_label_expects_nothing(document: Any) -> None:
    answerable(document)["relevantClaimIds"] = []


@BREAKS(("label-claim-repeated", "labels", 1))
def a_label_expects_a_claim_twice(document: Any) -> None:
    answerable(document)["relevantClaimIds"] *= 2


@BREAKS(("not-true-or-false", f"{CASE}.shouldRefuse", 1))
def a_label_is_left_blank(document: Any) -> None:
    answerable(document)["shouldRefuse"] = None


@BREAKS(("not-true-or-false", f"{CASE}.shouldRefuse", 1))
def a_label_is_a_word(document: Any) -> None:
    refusal(document)["shouldRefuse"] = "yes"


@BREAKS(("not-a-list", f"{CASE}.relevantClaimIds", 1))
def expected_claims_are_left_blank(document: Any) -> None:
    answerable(document)["relevantClaimIds"] = None


@BREAKS(("not-a-claim-id", f"{CASE}.relevantClaimIds[]", 1))
def an_expected_claim_is_a_sentence(document: Any) -> None:
    answerable(document)["relevantClaimIds"] = ["It is a bowl."]


@BREAKS(("contact-detail", f"{CASE}.relevantClaimIds[]", 1))
def an_expected_claim_is_a_number_to_call(document: Any) -> None:
    answerable(document)["relevantClaimIds"] = ["202-555-0123"]


# --- what the labels are bound to -----------------------------------------------------------------------------------


@BREAKS(("prepared-manifest-mismatch", "labels.preparedManifestDigest", 1))
def another_prepared_manifest_is_named(document: Any) -> None:
    document["preparedManifestDigest"] = sha("another manifest")


@BREAKS(("export-receipt-mismatch", "labels.exportSha256", 1))
def another_export_is_named(document: Any) -> None:
    document["exportSha256"] = sha("another export")


@BREAKS(("source-changed", "labels.source", 1))
def another_source_is_named(document: Any) -> None:
    document["source"] = "https://evidence.metmuseum.org/another-log"


@BREAKS(
    ("environment-changed", "labels.environment", 1),
    ("url-not-a-reserved-name", "labels.source", 1),
    ("url-not-a-reserved-name", "labels.approval.evidenceUrl", 1),
)
def production_labels_claim_a_rehearsal(document: Any) -> None:
    document["environment"] = "rehearsal"


# --- chronology and approval ----------------------------------------------------------------------------------------


@BREAKS(("frozen-before-preparation", "labels.frozenAt", 1))
def the_freeze_predates_preparation_by_a_millisecond(document: Any) -> None:
    document["frozenAt"] = written_instant(PREPARED_AT - 1)


@BREAKS()
def the_freeze_is_of_the_instant_of_preparation(document: Any) -> None:
    document["frozenAt"] = written_instant(PREPARED_AT)


@BREAKS(("approval-not-after-freeze", "labels.approval.approvedAt", 1))
def the_approval_is_of_the_instant_of_the_freeze(document: Any) -> None:
    document["approval"]["approvedAt"] = written_instant(FROZEN_AT)


@BREAKS()
def the_approval_follows_the_freeze_by_a_millisecond(document: Any) -> None:
    document["approval"]["approvedAt"] = written_instant(FROZEN_AT + 1)


@BREAKS(("approval-in-the-future", "labels.approval.approvedAt", 1))
def the_approval_is_in_the_future(document: Any) -> None:
    document["approval"]["approvedAt"] = written_instant(APPROVED_AT + 1)


@BREAKS(("freeze-in-the-future", "labels.frozenAt", 1), ("approval-not-after-freeze", "labels.approval.approvedAt", 1))
def the_freeze_is_in_the_future(document: Any) -> None:
    document["frozenAt"] = written_instant(APPROVED_AT + 1)


@BREAKS(("not-an-instant", "labels.frozenAt", 1))
def the_freeze_has_no_offset(document: Any) -> None:
    document["frozenAt"] = "2026-11-01T10:00:00"


@BREAKS(("not-independent-of-run-operator", "labels.approval.independentOfRunOperator", 1))
def independence_is_denied(document: Any) -> None:
    document["approval"]["independentOfRunOperator"] = False


@BREAKS(("not-independent-of-run-operator", "labels.approval.independentOfRunOperator", 1))
def independence_is_a_one(document: Any) -> None:
    document["approval"]["independentOfRunOperator"] = 1


@BREAKS(("not-a-code", "labels.approval.approverCode", 1))
def the_approver_is_named(document: Any) -> None:
    document["approval"]["approverCode"] = "Jan Jansen"


@BREAKS(("not-a-sha256", "labels.approval.receiptSha256", 1))
def the_approval_has_no_receipt(document: Any) -> None:
    document["approval"]["receiptSha256"] = None


@BREAKS(("missing-key", "labels.approval", 1))
def there_is_no_approval(document: Any) -> None:
    del document["approval"]


@BREAKS(("url-contact-detail", "labels.approval.evidenceUrl", 1))
def the_approval_url_holds_an_address(document: Any) -> None:
    document["approval"]["evidenceUrl"] = "https://evidence.metmuseum.org/approval?by=visitor@example.org"


def test_the_policy_may_not_change_between_preparation_and_freeze() -> None:
    world = World(policy=OTHER_POLICY)
    artifact = world.frozen(World(policy=OTHER_POLICY).labels())
    assert blockers(artifact) == set(), "the same policy throughout is no change"
    late = World()
    prepared = late.prepared()
    artifact = labels.freeze(
        late.labels(), prepared, labels_receipt=sha("labels"), made_at=APPROVED_AT, policy=OTHER_POLICY
    )
    assert blockers(artifact) == {("policy-changed-after-freeze", "preparedManifest", 1)}


@pytest.mark.parametrize("at", [at for at, _ in places(whole().labels)])
def test_no_key_beyond_the_contract_is_kept_at_any_depth(at: str) -> None:
    document = deep(whole().labels)
    keys = {"note": "unknown-key", "question": "content-field", "labellerName": "identifying-field"}
    dict(places(document))[at].update(dict.fromkeys(keys, "canary words"))
    artifact = whole().world.frozen(document)
    assert blockers(artifact) == {(code, f"labels{at}", 1) for code in keys.values()}
    assert "canary" not in json.dumps(artifact)


def test_every_fault_is_reported_not_the_first_only() -> None:
    document = deep(whole().labels)
    for edit in (a_prepared_case_is_left_out, a_refusal_label_expects_a_claim, another_export_is_named):
        edit(document)
    the_approver_is_named(document)
    assert blockers(whole().world.frozen(document)) == {
        ("prepared-case-not-labelled", "labelled_cases", 1),
        ("refusal-label-with-claims", "labels", 1),
        ("export-receipt-mismatch", "labels.exportSha256", 1),
        ("not-a-code", "labels.approval.approverCode", 1),
    }


@pytest.mark.parametrize(("edit", "expected"), BREAKS.params)
def test_each_break_is_named_and_nothing_else(edit: Any, expected: set[Any]) -> None:
    document = deep(whole().labels)
    edit(document)
    artifact = whole().world.frozen(document)
    assert blockers(artifact) == expected
    assert artifact["status"] == ("blocked" if expected else "ready")
    assert (artifact["result"]["datasetDigest"] is None) is bool(expected)
    for canary in ("Jan Jansen", "202-555", "visitor@", "It is a bowl"):
        assert canary not in json.dumps(artifact)
