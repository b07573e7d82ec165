"""Stage 7 breaks one thing of a valid round at a time, and names exactly that thing."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.evidence.replay import verified
from meta_eval.lanes.production.joined import normalised_bundle
from meta_eval.lanes.production.steps import REBUILDS
from meta_eval_tests.lanes.production.broken import (
    OBSERVATION,
    OTHER_POLICY,
    REVIEW,
    Breaks,
    Papers,
    papers,
    places,
    whole,
)
from meta_eval_tests.valid_world import (
    APPROVED_AT,
    ASSEMBLED_AT,
    FROZEN_AT,
    OBSERVED_AT,
    REVIEWED_AT,
    World,
    blockers,
    deep,
    sha,
)

BREAKS = Breaks()
ANSWERED, REFUSED = 0, 50
"""Numbers of a case that was answered (one claim, one citation) and of one that was refused."""


def test_a_valid_round_is_ready() -> None:
    artifact = papers().assembled()
    assert (artifact["status"], blockers(artifact)) == ("ready", set())
    assert artifact["result"]["caseCount"] == 60
    assert artifact["result"]["reviewCount"] == 60
    assert artifact["result"]["reviewedCitationCount"] == 40
    assert artifact["result"]["reviewerCount"] == 2


# --- every frozen case exactly once, and no other ---------------------------------------------------------------


@BREAKS(("frozen-case-not-observed", "case_coverage", 1))
def a_refused_case_is_not_observed(papers: Papers) -> None:
    papers.observations["observations"].remove(papers.observed(REFUSED))


@BREAKS(("frozen-case-not-observed", "case_coverage", 1), ("decision-on-invented-citation", "citation_decisions", 1))
def an_answered_case_is_not_observed(papers: Papers) -> None:
    papers.observations["observations"].remove(papers.observed(ANSWERED))


@BREAKS(("case-observed-twice", "case_coverage", 1))
def a_case_is_observed_twice(papers: Papers) -> None:
    papers.observations["observations"].append(papers.observed(REFUSED) | {"traceSha256": sha("again")})


@BREAKS(("case-never-frozen", "case_coverage", 1), ("frozen-case-not-observed", "case_coverage", 1))
def another_case_is_observed_instead(papers: Papers) -> None:
    papers.observed(REFUSED)["caseId"] = "case-" + "0" * 20


@BREAKS(("frozen-case-not-reviewed", "case_coverage", 1))
def a_case_is_not_reviewed(papers: Papers) -> None:
    papers.reviews["reviews"].remove(papers.reviewed(ANSWERED))


@BREAKS(("case-never-frozen", "case_coverage", 1), ("frozen-case-not-reviewed", "case_coverage", 1))
def another_case_is_reviewed_instead(papers: Papers) -> None:
    papers.reviewed(REFUSED)["caseId"] = "case-" + "0" * 20


@BREAKS(("case-reviewed-twice-by-one-reviewer", "case_coverage", 1), ("reviews-differ-from-lanes", "case_coverage", 1))
def one_reviewer_reviews_a_case_twice(papers: Papers) -> None:
    papers.reviews["reviews"].append(papers.reviewed(REFUSED) | {"receiptSha256": sha("again")})


@BREAKS(("reviews-differ-from-lanes", "case_coverage", 1))
def a_second_reviewer_reviews_a_case_of_one_lane(papers: Papers) -> None:
    other = {"REV-A1": "REV-B2", "REV-B2": "REV-A1"}[papers.reviewed(REFUSED)["reviewerCode"]]
    papers.reviews["reviews"].append(papers.reviewed(REFUSED) | {"receiptSha256": sha("again"), "reviewerCode": other})


@BREAKS(
    ("too-few-rows", "traces", 0),
    ("frozen-case-not-observed", "case_coverage", 60),
    ("decision-on-invented-citation", "citation_decisions", 40),
)
def nothing_is_observed(papers: Papers) -> None:
    papers.observations["observations"] = []


@BREAKS(
    ("too-few-rows", "reviews", 0),
    ("frozen-case-not-reviewed", "case_coverage", 60),
    ("too-few-reviewed-citations", "reviews", 0),
    ("too-few-reviewers", "reviews", 0),
)
def nothing_is_reviewed(papers: Papers) -> None:
    papers.reviews["reviews"] = []


# --- one of everything that must be one -------------------------------------------------------------------------


@BREAKS(("more-than-one-model", f"{OBSERVATION}.modelVersion", 2))
def two_models_answer(papers: Papers) -> None:
    papers.observed(ANSWERED)["modelVersion"] = "assist-4.2"


@BREAKS(("more-than-one-prompt", f"{OBSERVATION}.promptVersion", 2))
def two_prompts_answer(papers: Papers) -> None:
    papers.observed(ANSWERED)["promptVersion"] = "p-13"


@BREAKS(("more-than-one-currency", f"{OBSERVATION}.cost", 2))
def cost_is_in_two_currencies(papers: Papers) -> None:
    papers.observed(ANSWERED)["cost"]["currency"] = "USD"


@BREAKS(("repeated", "traces.trace_sha256", 2))
def two_cases_share_a_trace(papers: Papers) -> None:
    papers.observed(ANSWERED)["traceSha256"] = papers.observed(REFUSED)["traceSha256"]


@BREAKS(("repeated", "reviews.receipt_sha256", 2))
def two_reviews_share_a_receipt(papers: Papers) -> None:
    papers.reviewed(ANSWERED)["receiptSha256"] = papers.reviewed(REFUSED)["receiptSha256"]


@BREAKS(("dataset-digest-mismatch", "observations.datasetDigest", 1))
def observations_are_of_other_labels(papers: Papers) -> None:
    papers.observations["datasetDigest"] = sha("other labels")


@BREAKS(("dataset-digest-mismatch", "reviews.datasetDigest", 1))
def reviews_are_of_other_labels(papers: Papers) -> None:
    papers.reviews["datasetDigest"] = sha("other labels")


@BREAKS(("environment-changed", "observations.environment", 1))
def observations_claim_a_rehearsal(papers: Papers) -> None:
    papers.observations["environment"] = "rehearsal"


@BREAKS(("dataset-digest-mismatch", "runKit", 1))
def the_run_kit_is_of_other_labels(papers: Papers) -> None:
    papers.kit = whole(cases=61).kit


@BREAKS(("run-kit-not-ready", "runKit", 1))
def the_run_kit_is_blocked(papers: Papers) -> None:
    papers.kit = papers.world.kit({"version": 1, "operatorCode": "OPS-7Q", "overlap": 61})


@BREAKS(("frozen-labels-not-ready", "frozenLabels", 1))
def the_labels_are_blocked(papers: Papers) -> None:
    papers.frozen = papers.world.frozen({})


@BREAKS(("policy-changed-after-freeze", "frozenLabels", 1), ("policy-changed-after-freeze", "runKit", 1))
def the_policy_changes_before_assembly(papers: Papers) -> None:
    papers.policy = OTHER_POLICY


# --- the release ------------------------------------------------------------------------------------------------


@BREAKS(("release-without-files", "releaseManifest.files", 0))
def the_release_has_no_files(papers: Papers) -> None:
    papers.release["files"] = []


@BREAKS(("release-paths-not-ascending", "releaseManifest.files", 1))
def the_release_is_out_of_order(papers: Papers) -> None:
    papers.release["files"].reverse()


@BREAKS(("release-paths-not-ascending", "releaseManifest.files", 1))
def the_release_names_a_file_twice(papers: Papers) -> None:
    papers.release["files"].append(papers.release["files"][-1])


@BREAKS(("not-a-path", "releaseManifest.files[].path", 1))
def the_release_climbs_out_of_its_folder(papers: Papers) -> None:
    papers.release["files"][0]["path"] = "app/../../secrets"


@BREAKS(("contact-detail", "releaseManifest.files[].path", 1))
def the_release_names_an_address(papers: Papers) -> None:
    papers.release["files"][0]["path"] = "app/visitor@example.org.json"


# --- chronology -------------------------------------------------------------------------------------------------


@BREAKS(
    ("trace-not-after-freeze", "traces.since_freeze_ms", 1),
    ("trace-not-after-approval", "traces.since_approval_ms", 1),
)
def a_trace_is_of_the_instant_of_the_freeze(papers: Papers) -> None:
    papers.observed(ANSWERED)["observedAt"] = written_instant(FROZEN_AT)


@BREAKS(("trace-not-after-approval", "traces.since_approval_ms", 1))
def a_trace_lies_between_freeze_and_approval(papers: Papers) -> None:
    papers.observed(ANSWERED)["observedAt"] = written_instant(FROZEN_AT + 1)


@BREAKS(("trace-not-after-approval", "traces.since_approval_ms", 1))
def a_trace_is_of_the_instant_of_the_approval(papers: Papers) -> None:
    papers.observed(ANSWERED)["observedAt"] = written_instant(APPROVED_AT)


@BREAKS(("review-not-after-trace", "reviews.since_trace_ms", 1))
def a_review_is_of_the_instant_of_its_trace(papers: Papers) -> None:
    papers.reviewed(ANSWERED)["reviewedAt"] = papers.observed(ANSWERED)["observedAt"]


@BREAKS(("review-in-the-future", "reviews.age_ms", 1))
def a_review_is_in_the_future(papers: Papers) -> None:
    papers.reviewed(ANSWERED)["reviewedAt"] = written_instant(ASSEMBLED_AT + 1)


@BREAKS(("trace-in-the-future", "traces.age_ms", 1), ("review-not-after-trace", "reviews.since_trace_ms", 1))
def a_trace_is_in_the_future(papers: Papers) -> None:
    papers.observed(ANSWERED)["observedAt"] = written_instant(ASSEMBLED_AT + 1)


def test_one_millisecond_after_each_boundary_is_in_time() -> None:
    on_time = papers()
    on_time.observed(ANSWERED)["observedAt"] = written_instant(APPROVED_AT + 1)
    on_time.reviewed(ANSWERED)["reviewedAt"] = written_instant(APPROVED_AT + 2)
    on_time.reviewed(REFUSED)["reviewedAt"] = written_instant(ASSEMBLED_AT)
    assert blockers(on_time.assembled()) == set()


def test_instants_with_an_offset_are_compared_as_instants() -> None:
    on_time = papers()
    # Approval was at 11:00 UTC; 12:30 at +01:00 is half an hour later, 11:30 at +01:00 half an hour earlier.
    on_time.observed(ANSWERED)["observedAt"] = "2026-11-01T12:30:00+01:00"
    assert blockers(on_time.assembled()) == set()
    on_time.observed(ANSWERED)["observedAt"] = "2026-11-01T11:30:00+01:00"
    assert blockers(on_time.assembled()) == {("trace-not-after-approval", "traces.since_approval_ms", 1)}


@pytest.mark.parametrize(
    ("late_ms", "expected"),
    [(0, set()), (1, {("trace-stale", "traces.stale", 1)}), (60, {("trace-stale", "traces.stale", 60)})],
)
def test_traces_are_fresh_for_35_days_to_the_millisecond(late_ms: int, expected: set[Any]) -> None:
    # Case n was observed n milliseconds after the first, so one millisecond makes one trace stale.
    assert blockers(papers().assembled(made_at=OBSERVED_AT + 35 * DAY_MS + late_ms)) == expected


# --- what a trace may say ---------------------------------------------------------------------------------------


@BREAKS(("refusal-with-claims", "traces", 1))
def a_refusal_emits_a_claim(papers: Papers) -> None:
    papers.observed(ANSWERED)["refused"] = True


@BREAKS(("claim-without-citation", "emitted_claims.citation_count", 1))
def a_claim_has_no_citation(papers: Papers) -> None:
    papers.observed(ANSWERED)["claims"][0]["citations"] = []
    papers.reviewed(ANSWERED)["decisions"] = []


@BREAKS(("emitted-claim-repeated", "traces", 1))
def a_claim_is_emitted_twice(papers: Papers) -> None:
    papers.observed(ANSWERED)["claims"] *= 2


@BREAKS(("citation-repeated", "emitted_claims", 1))
def a_claim_cites_a_page_twice(papers: Papers) -> None:
    papers.observed(ANSWERED)["claims"][0]["citations"] *= 2


@BREAKS(("cost-receipt-missing", "traces.receipt_is_missing", 1))
def a_cost_from_a_receipt_names_none(papers: Papers) -> None:
    papers.observed(ANSWERED)["cost"]["basis"] = "provider-receipt"


def test_a_cost_from_a_receipt_that_it_names_is_fine() -> None:
    fine = papers()
    fine.observed(ANSWERED)["cost"] |= {"basis": "provider-receipt", "receiptSha256": sha("invoice")}
    assert blockers(fine.assembled()) == set()


# --- decisions and who made them --------------------------------------------------------------------------------


@BREAKS(("citation-not-decided", "citation_decisions", 1))
def a_citation_is_not_decided(papers: Papers) -> None:
    papers.reviewed(ANSWERED)["decisions"] = []


@BREAKS(("citation-decided-twice", "citation_decisions", 1))
def a_citation_is_decided_twice(papers: Papers) -> None:
    papers.reviewed(ANSWERED)["decisions"] *= 2


@BREAKS(("decision-on-invented-citation", "citation_decisions", 1))
def a_decision_is_about_a_citation_that_nobody_emitted(papers: Papers) -> None:
    invented = papers.reviewed(ANSWERED)["decisions"][0] | {"citation": f"{papers.world.host}/other"}
    papers.reviewed(ANSWERED)["decisions"].append(invented)


@BREAKS(("decision-on-invented-citation", "citation_decisions", 1))
def a_decision_is_about_a_refusal(papers: Papers) -> None:
    papers.reviewed(REFUSED)["decisions"] = papers.reviewed(ANSWERED)["decisions"]


@BREAKS(("reviewer-is-run-operator", "reviews.is_operator", 1))
def the_operator_reviews(papers: Papers) -> None:
    papers.reviewed(REFUSED)["reviewerCode"] = "OPS-7Q"


@BREAKS(("reviewer-is-label-approver", "reviews.is_approver", 1))
def the_approver_reviews(papers: Papers) -> None:
    papers.reviewed(REFUSED)["reviewerCode"] = "APP-1A"


@BREAKS(("run-operator-is-label-approver", "runOperator.operatorCode", 1))
def the_approver_runs_the_model(papers: Papers) -> None:
    papers.operator_code = papers.observations["runOperatorCode"] = "APP-1A"
    papers.kit = None


@BREAKS(("run-operator-mismatch", "observations.runOperatorCode", 1))
def observations_name_another_operator(papers: Papers) -> None:
    papers.observations["runOperatorCode"] = "OPS-8R"


@BREAKS(("run-operator-mismatch", "observations.runOperatorCode", 1), ("run-operator-mismatch", "runKit", 1))
def the_caller_names_another_operator(papers: Papers) -> None:
    papers.operator_code = "OPS-8R"


@BREAKS(("too-few-reviewers", "reviews", 1))
def one_person_reviews_everything(papers: Papers) -> None:
    for review in papers.reviews["reviews"]:
        review["reviewerCode"] = "REV-A1"


@pytest.mark.parametrize(
    ("answerable", "expected"), [(25, set()), (24, {("too-few-reviewed-citations", "reviews", 24)})]
)
def test_at_least_25_citations_are_reviewed(answerable: int, expected: set[Any]) -> None:
    assert blockers(papers(answerable=answerable).assembled()) == expected


def test_without_a_run_kit_one_or_two_reviews_of_a_case_are_accepted_and_three_are_not() -> None:
    loose = papers()
    loose.kit = None
    for reviewer, expected in (("REV-C3", set()), ("REV-D4", {("reviews-differ-from-lanes", "case_coverage", 1)})):
        loose.reviews["reviews"].append(
            loose.reviewed(ANSWERED) | {"reviewerCode": reviewer, "receiptSha256": sha(reviewer)}
        )
        assert blockers(loose.assembled()) == expected


def test_an_overlapping_case_needs_both_its_reviews() -> None:
    two_lanes = papers(overlap=60)
    assert blockers(two_lanes.assembled()) == set()
    assert two_lanes.assembled()["result"]["reviewCount"] == 120
    assert two_lanes.assembled()["result"]["reviewedCitationCount"] == 40, "a citation counts once, however many decide"
    two_lanes.reviews["reviews"].remove(two_lanes.reviewed(ANSWERED))
    assert blockers(two_lanes.assembled()) == {("reviews-differ-from-lanes", "case_coverage", 1)}


# --- values of the wrong form -----------------------------------------------------------------------------------

WRONG_FORMS: list[tuple[str, Any, str]] = [
    ("observedAt", "2026-11-02", "not-an-instant"),
    ("observedAt", 1_793_000_000_000, "not-an-instant"),
    ("traceSha256", "abc", "not-a-sha256"),
    ("traceSha256", sha("x").upper(), "not-a-sha256"),
    ("modelVersion", "", "not-a-revision"),
    ("promptVersion", "two words", "not-a-revision"),
    ("refused", "true", "not-true-or-false"),
    ("refused", 1, "not-true-or-false"),
    ("refused", None, "not-true-or-false"),
    ("claims", {}, "not-a-list"),
    ("latencyMs", -1, "not-a-latency"),
    ("latencyMs", True, "not-a-latency"),
    ("latencyMs", "100", "not-a-latency"),
    ("latencyMs", 0.0001, "not-a-latency"),
    ("latencyMs", 86_400_001, "not-a-latency"),
    ("cost", "0.002 EUR", "not-an-object"),
    ("cost.amount", 0.002, "not-an-amount"),
    ("cost.amount", "-0.002", "not-an-amount"),
    ("cost.amount", "1e-3", "not-an-amount"),
    ("cost.currency", "eur", "not-a-currency"),
    ("cost.basis", "estimate", "not-a-cost-basis"),
    ("cost.receiptSha256", "abc", "not-a-sha256"),
]


@pytest.mark.parametrize(("key", "value", "code"), WRONG_FORMS)
def test_a_value_of_the_wrong_form_is_refused_once_and_not_kept(key: str, value: Any, code: str) -> None:
    broken = papers()
    target = broken.observed(REFUSED)
    *parents, last = key.split(".")
    for parent in parents:
        target = target[parent]
    target[last] = value
    artifact = broken.assembled()
    assert blockers(artifact) == {(code, f"{OBSERVATION}.{key}", 1)}


@BREAKS(("frozen-case-not-observed", "case_coverage", 1), ("not-a-case-id", f"{OBSERVATION}.caseId", 1))
def a_case_id_is_a_number_to_call(papers: Papers) -> None:
    papers.observed(REFUSED)["caseId"] = "+1 202 555 0123"


@BREAKS(
    ("decision-on-invented-citation", "citation_decisions", 1), ("contact-detail", f"{OBSERVATION}.claims[].claimId", 1)
)
def a_claim_id_is_a_number_to_call(papers: Papers) -> None:
    papers.observed(ANSWERED)["claims"][0]["claimId"] = "202-555-0123"


@BREAKS(
    ("decision-on-invented-citation", "citation_decisions", 1), ("not-a-claim-id", f"{OBSERVATION}.claims[].claimId", 1)
)
def a_claim_id_is_a_sentence(papers: Papers) -> None:
    papers.observed(ANSWERED)["claims"][0]["claimId"] = "the bowl is blue"


@BREAKS(("not-a-code", f"{REVIEW}.reviewerCode", 1))
def a_reviewer_is_named(papers: Papers) -> None:
    papers.reviewed(REFUSED)["reviewerCode"] = "Jan Jansen"


@BREAKS(("not-an-object", f"{OBSERVATION}", 1), ("frozen-case-not-observed", "case_coverage", 1))
def an_observation_is_a_word(papers: Papers) -> None:
    papers.observations["observations"][papers.observations["observations"].index(papers.observed(REFUSED))] = "lost"


@BREAKS(("missing-key", f"{OBSERVATION}.latencyMs", 1))
def a_latency_was_not_measured(papers: Papers) -> None:
    del papers.observed(REFUSED)["latencyMs"]


@BREAKS(("not-version-1", "observations.version", 1), ("not-version-1", "reviews.version", 1))
def documents_are_of_another_version(papers: Papers) -> None:
    papers.observations["version"], papers.reviews["version"] = 2, True


# --- evidence is public, in the environment that it claims -------------------------------------------------------

BAD_URLS = {
    "http://evidence.metmuseum.org/run": "url-not-https",
    "https://localhost/run": None,
    "https://10.0.0.1/run": None,
    "https://demo.metmuseum.org/run": None,
    "https://evidence.museum.example/run": None,
    "https://evidence.metmuseum.org/run?to=visitor@example.org": "url-contact-detail",
    "https://evidence.metmuseum.org/run?to=visitor%40example.org": "url-contact-detail",
    "not a url": None,
}


@pytest.mark.parametrize("url", BAD_URLS)
@pytest.mark.parametrize("place", ["citation", "review", "reference"])
def test_no_url_is_evidence_unless_it_is_public(place: str, url: str) -> None:
    broken = papers()
    if place == "reference":
        broken.evidence_reference["evidenceUrl"] = url
    elif place == "review":
        broken.reviewed(REFUSED)["evidenceUrl"] = url
    else:
        broken.observed(ANSWERED)["claims"][0]["citations"] = [url]
        broken.reviewed(ANSWERED)["decisions"][0]["citation"] = url
    artifact = broken.assembled()
    codes = {code for code, _, _ in blockers(artifact)} - {"claim-without-citation"}
    assert len(codes) == 1
    assert next(iter(codes)).startswith("url-")
    assert BAD_URLS[url] in (None, *codes)
    assert url not in json.dumps(artifact)


def test_a_url_that_is_no_text_is_refused() -> None:
    broken = papers()
    broken.evidence_reference["evidenceUrl"] = 7
    assert blockers(broken.assembled()) == {("url-not-a-string", "evidenceReference.evidenceUrl", 1)}


def test_a_rehearsal_accepts_reserved_hosts_only() -> None:
    rehearsal = papers(environment="rehearsal")
    assert blockers(rehearsal.assembled()) == set()
    rehearsal.evidence_reference["evidenceUrl"] = "https://evidence.metmuseum.org/run"
    found = blockers(rehearsal.assembled())
    assert [(subject, count) for _, subject, count in found] == [("evidenceReference.evidenceUrl", 1)]
    assert next(iter(found))[0].startswith("url-")


# --- privacy ----------------------------------------------------------------------------------------------------

CANARY = "canary-7f3a visitor words"
KEYS = {
    "note": "unknown-key",
    "prompt": "content-field",
    "finalAnswer": "content-field",
    "question_text": "content-field",
    "model-output": "content-field",
    "userEmail": "identifying-field",
    "phone-number": "identifying-field",
    "contact": "identifying-field",
    "home_address": "identifying-field",
    "reviewerName": "identifying-field",
    "ip": "identifying-field",
}
DOCUMENTS = ("observations", "reviews", "evidence_reference", "release")
PLACES = [(name, at) for name in DOCUMENTS for at, _ in places(getattr(papers(), name))]


@pytest.mark.parametrize(("name", "at"), PLACES)
def test_no_key_beyond_the_contract_is_taken_or_kept_at_any_depth(name: str, at: str) -> None:
    subject = {"evidence_reference": "evidenceReference", "release": "releaseManifest"}.get(name, name)
    broken = papers()
    dict(places(getattr(broken, name)))[at].update(dict.fromkeys(KEYS, CANARY))
    artifact = broken.assembled()
    assert blockers(artifact) == {(code, f"{subject}{at}", n) for code, n in Counter(KEYS.values()).items()}
    assert CANARY not in json.dumps(artifact)
    kept = json.dumps(artifact["replay"])
    assert not [key for key in KEYS if f'"{key}"' in kept], "nor is the spelling of a key kept"


def test_identifying_keys_are_found_inside_what_no_contract_describes() -> None:
    broken = papers()
    broken.observations["extra"] = [{"deep": {"deeper": [{"e-mail": CANARY, "answer": CANARY}]}}]
    artifact = broken.assembled()
    assert blockers(artifact) == {("content-field", "observations", 1), ("identifying-field", "observations", 1)}
    assert CANARY not in json.dumps(artifact)


def test_a_document_cannot_pass_itself_off_as_a_projection() -> None:
    broken = papers()
    broken.observed(REFUSED)["caseId"] = {"refused": "jan-jansen"}
    broken.reviewed(REFUSED)["refusedKeys"] = {"jan-jansen": 3}
    broken.observations["ignoredKeys"] = 40
    artifact = broken.assembled()
    assert blockers(artifact) == {
        ("frozen-case-not-observed", "case_coverage", 1),
        ("not-a-case-id", f"{OBSERVATION}.caseId", 1),
        ("unknown-key", REVIEW, 1),
        ("unknown-key", "observations", 1),
    }
    assert artifact["result"]["ignoredAggregates"] == 0
    assert "jan-jansen" not in json.dumps(artifact)


def test_aggregates_are_ignored_counted_and_change_nothing_else() -> None:
    boasting = papers()
    boasting.observations["metrics"] = {"precision": 1.0}
    boasting.observations["precision"] = 1
    boasting.observed(ANSWERED)["summary"] = "perfect"
    boasting.reviews["citationAccuracy"] = 1
    modest, artifact = papers().assembled(), boasting.assembled()
    assert blockers(artifact) == set()
    assert (modest["result"]["ignoredAggregates"], artifact["result"]["ignoredAggregates"]) == (0, 4)
    assert artifact["result"] | {"ignoredAggregates": 0} == modest["result"], "the very same bundle"
    assert "perfect" not in json.dumps(artifact)


def test_an_aggregate_that_hides_an_address_is_not_ignored() -> None:
    broken = papers()
    broken.observations["summary"] = {"email": CANARY}
    artifact = broken.assembled()
    assert blockers(artifact) == {("identifying-field", "observations", 1)}
    assert CANARY not in json.dumps(artifact)


# --- all faults together, and the order of papers ----------------------------------------------------------------


def test_every_fault_is_reported_not_the_first_only() -> None:
    broken = papers()
    broken.observed(1)["latencyMs"] = -1
    broken.observed(2)["observedAt"] = written_instant(APPROVED_AT)
    broken.observed(3)["modelVersion"] = "assist-5"
    broken.reviewed(4)["decisions"] = []
    broken.reviewed(5)["reviewerCode"] = "OPS-7Q"
    broken.reviewed(6)["note"] = "x"
    broken.release["files"].reverse()
    broken.observations["observations"].remove(broken.observed(REFUSED))
    assert blockers(broken.assembled()) == {
        ("not-a-latency", f"{OBSERVATION}.latencyMs", 1),
        ("trace-not-after-approval", "traces.since_approval_ms", 1),
        ("more-than-one-model", f"{OBSERVATION}.modelVersion", 2),
        ("citation-not-decided", "citation_decisions", 1),
        ("reviewer-is-run-operator", "reviews.is_operator", 1),
        ("unknown-key", REVIEW, 1),
        ("release-paths-not-ascending", "releaseManifest.files", 1),
        ("frozen-case-not-observed", "case_coverage", 1),
    }


def test_the_order_of_rows_never_changes_the_bundle() -> None:
    shuffled = papers()
    shuffled.observations["observations"].reverse()
    shuffled.reviews["reviews"].reverse()
    assert shuffled.assembled()["result"] == papers().assembled()["result"]


def test_the_release_digest_follows_the_release_and_not_its_white_space() -> None:
    ready, other = papers(), papers()
    other.release["files"][0]["sha256"] = sha("another build")
    assert deep(ready.release) == ready.release
    assert ready.assembled()["result"]["releaseDigest"] != other.assembled()["result"]["releaseDigest"]


def test_a_bundle_holds_each_case_once_with_all_its_decisions() -> None:
    bundle = normalised_bundle(papers(overlap=60).assembled()["replay"])
    assert [case["caseId"] for case in bundle["cases"]] == sorted(papers().world.case_id(n) for n in range(60))
    answered = next(case for case in bundle["cases"] if case["caseId"] == papers().world.case_id(ANSWERED))
    assert [d["reviewerCode"] for d in answered["claims"][0]["citations"][0]["decisions"]] == ["REV-A1", "REV-B2"]
    assert {review["reviewedAt"] for review in answered["reviews"]} == {written_instant(REVIEWED_AT)}


# Last, when the table is full.
@pytest.mark.parametrize(("edit", "expected"), BREAKS.params)
def test_each_break_is_named_and_nothing_else(edit: Any, expected: set[Any]) -> None:
    broken = papers()
    edit(broken)
    artifact = broken.assembled()
    assert blockers(artifact) == expected
    assert artifact["status"] == "blocked"
    assert artifact["result"]["bundleDigest"] is None
    assert artifact["result"]["releaseDigest"] is None


def test_no_stage_changes_a_document_or_an_artifact_that_it_is_given() -> None:
    world = World(overlap=6)
    export, labels, observations, reviews = world.export(), world.labels(), world.observations(), world.reviews()
    observations["observations"][0]["latencyMs"] = "fast"  # a document with a fault is read otherwise than a good one
    reviews["precision"] = 0.9
    prepared, frozen, kit = world.prepared(export), world.frozen(labels), world.kit()
    assembled = world.assembled(frozen=frozen, kit=kit)
    given = [export, labels, observations, reviews, prepared, frozen, kit, assembled]
    before = deep(given)
    world.prepared(export)
    world.frozen(labels)
    world.kit(frozen=frozen)
    world.assembled(frozen=frozen, kit=kit, observations=observations, reviews=reviews)
    world.evaluated(assembled, frozen=frozen)
    for artifact in (prepared, frozen, kit, assembled):
        verified(artifact, REBUILDS)
    assert given == before
