"""Stage 6: blank worksheets, dealt by the dataset digest, for an operator who did not approve the labels."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.lanes.production.run_kit import LANES, dealt_lanes, observation_worksheet, review_worksheet
from meta_eval_tests.lanes.production.broken import OTHER_POLICY, whole
from meta_eval_tests.valid_world import APPROVED_AT, World, blockers, sha


@st.composite
def deals(draw: st.DrawFn) -> tuple[list[dict[str, Any]], str, int]:
    classes = draw(st.lists(st.booleans(), min_size=1, max_size=120))
    cases = [{"caseId": f"case-{sha(str(n))[:20]}", "shouldRefuse": refuse} for n, refuse in enumerate(classes)]
    return cases, sha(draw(st.text(max_size=5))), draw(st.integers(0, len(cases)))


@given(deals(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_lanes_are_balanced_whole_and_blind_to_input_order(deal: Any, random: Any) -> None:
    cases, dataset, overlap = deal
    lanes = dealt_lanes(cases, dataset, overlap)
    a, b = set(lanes["A"]), set(lanes["B"])
    assert a | b == {case["caseId"] for case in cases}, "every case is in a lane"
    assert len(a & b) == overlap, "exactly the overlap is in both"
    assert abs(len(lanes["A"]) - len(lanes["B"])) <= 1
    for refuse in (True, False):
        members = {case["caseId"] for case in cases if case["shouldRefuse"] is refuse}
        assert abs(len(a & members) - len(b & members)) <= 1, "within each class too"
    assert (len(a), len(b)) == (len(lanes["A"]), len(lanes["B"])), "nobody is dealt a case twice"
    assert all(lane == sorted(lane) for lane in lanes.values()), "the order tells nothing"
    shuffled = list(cases)
    random.shuffle(shuffled)
    assert dealt_lanes(shuffled, dataset, overlap) == lanes


def test_the_deal_follows_the_dataset_digest() -> None:
    cases = [{"caseId": f"case-{sha(str(n))[:20]}", "shouldRefuse": False} for n in range(60)]
    assert dealt_lanes(cases, sha("one"), 0) != dealt_lanes(cases, sha("two"), 0)


def test_a_valid_kit_deals_thirty_cases_to_each_lane() -> None:
    kit = whole().kit
    assert (kit["status"], blockers(kit)) == ("ready", set())
    assert [len(kit["result"]["lanes"][lane]) for lane in LANES] == [30, 30]
    refusing = {case["caseId"] for case in whole().labels["cases"] if case["shouldRefuse"]}
    assert [len(refusing & set(kit["result"]["lanes"][lane])) for lane in LANES] == [10, 10]


@pytest.mark.parametrize(("overlap", "sizes"), [(0, [30, 30]), (1, [31, 30]), (10, [35, 35]), (60, [60, 60])])
def test_overlapping_cases_are_in_both_lanes(overlap: int, sizes: list[int]) -> None:
    lanes = whole(overlap=overlap).kit["result"]["lanes"]
    assert sorted(map(len, lanes.values()), reverse=True) == sizes
    assert len(set(lanes["A"]) & set(lanes["B"])) == overlap


def test_worksheets_are_blank_and_carry_nothing_of_the_approval() -> None:
    kit = whole().kit
    sheets = [observation_worksheet(kit), *(review_worksheet(kit, lane) for lane in LANES)]
    text = json.dumps(sheets)
    for secret in ("APP-1A", "/approval", sha("approval"), "questionSha256", "relevantClaimIds", "shouldRefuse"):
        assert secret not in text
    assert not [case["questionSha256"] for case in whole().labels["cases"] if case["questionSha256"] in text]
    for row in sheets[0]["observations"] + sheets[1]["reviews"] + sheets[2]["reviews"]:
        assert {value for key, value in row.items() if key != "caseId"} == {None}
    assert len(sheets[0]["observations"]) == 60, "each case once, also where lanes overlap"
    assert len(observation_worksheet(whole(overlap=60).kit)["observations"]) == 60


def operator(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "operatorCode": "OPS-7Q"} | changes


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (operator(), set()),
        (operator(overlap=60), set()),
        (operator(operatorCode="APP-1A"), {("run-operator-is-label-approver", "runOperator.operatorCode", 1)}),
        (operator(overlap=61), {("overlap-exceeds-cases", "runOperator.overlap", 61)}),
        (operator(overlap=-1), {("not-a-number-of-cases", "runOperator.overlap", 1)}),
        (operator(overlap=True), {("not-a-number-of-cases", "runOperator.overlap", 1)}),
        (operator(overlap=1.0), {("not-a-number-of-cases", "runOperator.overlap", 1)}),
        (operator(operatorCode="Jan Jansen"), {("not-a-code", "runOperator.operatorCode", 1)}),
        (operator(operatorCode="NN-202-555-0123"), {("not-a-code", "runOperator.operatorCode", 1)}),
        (operator(operatorCode=None), {("not-a-code", "runOperator.operatorCode", 1)}),
        (operator(operatorName="x"), {("identifying-field", "runOperator", 1)}),
        (operator(note="x"), {("unknown-key", "runOperator", 1)}),
        (operator(version=2), {("not-version-1", "runOperator.version", 1)}),
        (["OPS-7Q"], {("not-an-object", "runOperator", 1)}),
    ],
)
def test_the_operator_is_a_code_and_not_the_approver(document: Any, expected: set[Any]) -> None:
    kit = World().kit(document, whole().frozen)
    assert blockers(kit) == expected
    assert kit["status"] == ("blocked" if expected else "ready")
    assert bool(kit["result"]["lanes"]) is not bool(expected)
    assert "Jansen" not in json.dumps(kit)
    assert "555" not in json.dumps(kit["replay"]["runOperator"])


def test_blocked_labels_get_no_kit() -> None:
    assert blockers(World().kit(frozen=World().frozen({}))) == {("frozen-labels-not-ready", "frozenLabels", 1)}


def test_a_kit_is_not_made_before_the_approval() -> None:
    early = World().kit(frozen=whole().frozen, made_at=APPROVED_AT - 1)
    assert blockers(early) == {("approval-in-the-future", "labels.approval.approvedAt", 1)}


def test_the_policy_may_not_change_between_freeze_and_kit() -> None:
    kit = World(policy=OTHER_POLICY).kit(frozen=whole().frozen)
    assert blockers(kit) == {("policy-changed-after-freeze", "frozenLabels", 1)}
