"""The Pandera contracts of every table between the production lane's stages.

Source: the production contract. A check's name is the blocker that a breach earns, so this file reads as the list
of row rules; thresholds, which a policy sets, are counted by the stages. Columns are nullable types with
`nullable=False`: a value that the documents' reader refused is a null that has been reported already, and any
other null is a blocker of its own.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.typing import Series

Flags = Any  # a boolean Series; Pandera reads the return annotation of a check, which must stay plain


class Contract(pa.DataFrameModel):
    """No column beyond the model's, nothing coerced."""

    class Config:
        strict = True
        coerce = False


def _held(flags: pd.Series) -> pd.Series:
    # A comparison with a refused value is undecided, and that value has its own blocker.
    return flags.fillna(True).astype(bool)


class ExportedCases(Contract):
    """Stage 4: one row a case of the question export."""

    case_id: Series[str] = pa.Field(unique=True)
    question_sha256: Series[str] = pa.Field(unique=True)
    normalized_length: Series[pd.Int64Dtype] = pa.Field(ge=1)


class LabelledCases(Contract):
    """Stage 5: one row a case that was prepared or labelled."""

    case_id: Series[str]
    times_labelled: Series[pd.Int64Dtype]
    prepared: Series[pd.BooleanDtype]
    question_matches: Series[pd.BooleanDtype]

    @pa.dataframe_check(name="prepared-case-not-labelled")
    def every_prepared_case_is_labelled(cls, frame: pd.DataFrame) -> Flags:
        return frame["times_labelled"] >= 1

    @pa.dataframe_check(name="case-labelled-twice")
    def no_case_is_labelled_twice(cls, frame: pd.DataFrame) -> Flags:
        return frame["times_labelled"] <= 1

    @pa.dataframe_check(name="case-never-prepared")
    def only_prepared_cases_are_labelled(cls, frame: pd.DataFrame) -> Flags:
        return frame["prepared"]

    @pa.dataframe_check(name="question-digest-changed")
    def question_digests_are_the_prepared_ones(cls, frame: pd.DataFrame) -> Flags:
        return frame["question_matches"]


class Labels(Contract):
    """Stage 5: one row a label, as written."""

    case_id: Series[str]
    question_sha256: Series[str] = pa.Field(unique=True)
    should_refuse: Series[pd.BooleanDtype]
    claim_count: Series[pd.Int64Dtype]
    distinct_claims: Series[pd.Int64Dtype]

    @pa.dataframe_check(name="refusal-label-with-claims")
    def a_refusal_label_has_no_claims(cls, frame: pd.DataFrame) -> Flags:
        return _held(~frame["should_refuse"] | (frame["claim_count"] == 0))

    @pa.dataframe_check(name="answerable-label-without-claims")
    def an_answerable_label_has_claims(cls, frame: pd.DataFrame) -> Flags:
        return _held(frame["should_refuse"] | (frame["claim_count"] >= 1))

    @pa.dataframe_check(name="label-claim-repeated")
    def claims_of_a_label_are_unique(cls, frame: pd.DataFrame) -> Flags:
        return frame["claim_count"] == frame["distinct_claims"]


class CaseCoverage(Contract):
    """Stage 7: one row a case that was frozen, observed or reviewed."""

    case_id: Series[str]
    frozen: Series[pd.BooleanDtype]
    observations: Series[pd.Int64Dtype]
    reviews: Series[pd.Int64Dtype]
    reviewers: Series[pd.Int64Dtype]
    reviews_due: Series[pd.Int64Dtype]

    @pa.dataframe_check(name="case-never-frozen")
    def only_frozen_cases_appear(cls, frame: pd.DataFrame) -> Flags:
        return frame["frozen"]

    @pa.dataframe_check(name="frozen-case-not-observed")
    def every_frozen_case_is_observed(cls, frame: pd.DataFrame) -> Flags:
        return ~frame["frozen"] | (frame["observations"] >= 1)

    @pa.dataframe_check(name="case-observed-twice")
    def no_case_is_observed_twice(cls, frame: pd.DataFrame) -> Flags:
        return frame["observations"] <= 1

    @pa.dataframe_check(name="frozen-case-not-reviewed")
    def every_frozen_case_is_reviewed(cls, frame: pd.DataFrame) -> Flags:
        return ~frame["frozen"] | (frame["reviews"] >= 1)

    @pa.dataframe_check(name="case-reviewed-twice-by-one-reviewer")
    def reviews_of_a_case_come_from_different_people(cls, frame: pd.DataFrame) -> Flags:
        return frame["reviews"] == frame["reviewers"]

    @pa.dataframe_check(name="reviews-differ-from-lanes")
    def reviews_are_those_the_lanes_ask_for(cls, frame: pd.DataFrame) -> Flags:
        return ~frame["frozen"] | (frame["reviews"] == 0) | (frame["reviews"] == frame["reviews_due"])


class Traces(Contract):
    """Stage 7: one row an observation. Ages and gaps are in milliseconds."""

    case_id: Series[str]
    trace_sha256: Series[str] = pa.Field(unique=True)
    since_freeze_ms: Series[pd.Int64Dtype]
    since_approval_ms: Series[pd.Int64Dtype]
    age_ms: Series[pd.Int64Dtype]
    stale: Series[pd.BooleanDtype]
    refused: Series[pd.BooleanDtype]
    claim_count: Series[pd.Int64Dtype]
    distinct_claims: Series[pd.Int64Dtype]
    latency_us: Series[pd.Int64Dtype] = pa.Field(ge=0)
    cost_amount: Series[str]
    currency: Series[str]
    receipt_is_missing: Series[pd.BooleanDtype]

    @pa.check("since_freeze_ms", name="trace-not-after-freeze")
    def traces_follow_the_freeze(cls, gaps: pd.Series) -> Flags:
        return gaps > 0

    @pa.check("since_approval_ms", name="trace-not-after-approval")
    def traces_follow_the_approval(cls, gaps: pd.Series) -> Flags:
        return gaps > 0

    @pa.check("age_ms", name="trace-in-the-future")
    def no_trace_is_in_the_future(cls, ages: pd.Series) -> Flags:
        return ages >= 0

    @pa.check("stale", name="trace-stale")
    def every_trace_is_fresh(cls, stale: pd.Series) -> Flags:
        return ~stale

    @pa.dataframe_check(name="refusal-with-claims")
    def a_refusal_emits_no_claim(cls, frame: pd.DataFrame) -> Flags:
        return _held(~frame["refused"] | (frame["claim_count"] == 0))

    @pa.dataframe_check(name="emitted-claim-repeated")
    def claims_of_a_trace_are_unique(cls, frame: pd.DataFrame) -> Flags:
        return frame["claim_count"] == frame["distinct_claims"]

    @pa.check("receipt_is_missing", name="cost-receipt-missing")
    def a_cost_from_a_receipt_names_it(cls, missing: pd.Series) -> Flags:
        return ~missing


class EmittedClaims(Contract):
    """Stage 7: one row an emitted claim."""

    case_id: Series[str]
    claim_id: Series[str]
    citation_count: Series[pd.Int64Dtype]
    distinct_citations: Series[pd.Int64Dtype]

    @pa.check("citation_count", name="claim-without-citation")
    def every_claim_is_cited(cls, counts: pd.Series) -> Flags:
        return counts >= 1

    @pa.dataframe_check(name="citation-repeated")
    def citations_of_a_claim_are_unique(cls, frame: pd.DataFrame) -> Flags:
        return frame["citation_count"] == frame["distinct_citations"]


class CitationDecisions(Contract):
    """Stage 7: one row a reviewer and citation that was emitted or decided."""

    case_id: Series[str]
    claim_id: Series[str]
    citation: Series[str]
    emitted: Series[pd.BooleanDtype]
    decisions: Series[pd.Int64Dtype]

    @pa.dataframe_check(name="citation-not-decided")
    def every_emitted_citation_is_decided(cls, frame: pd.DataFrame) -> Flags:
        return frame["decisions"] >= 1

    @pa.dataframe_check(name="citation-decided-twice")
    def no_citation_is_decided_twice_by_a_reviewer(cls, frame: pd.DataFrame) -> Flags:
        return frame["decisions"] <= 1

    @pa.dataframe_check(name="decision-on-invented-citation")
    def only_emitted_citations_are_decided(cls, frame: pd.DataFrame) -> Flags:
        return frame["emitted"]


class Reviews(Contract):
    """Stage 7: one row a review. Gaps are in milliseconds."""

    case_id: Series[str]
    reviewer_code: Series[str]
    receipt_sha256: Series[str] = pa.Field(unique=True)
    since_trace_ms: Series[pd.Int64Dtype] = pa.Field(nullable=True)  # no trace of the case: reported as coverage
    age_ms: Series[pd.Int64Dtype]
    is_operator: Series[pd.BooleanDtype]
    is_approver: Series[pd.BooleanDtype]

    @pa.check("since_trace_ms", name="review-not-after-trace")
    def reviews_follow_their_trace(cls, gaps: pd.Series) -> Flags:
        return gaps > 0

    @pa.check("age_ms", name="review-in-the-future")
    def no_review_is_in_the_future(cls, ages: pd.Series) -> Flags:
        return ages >= 0

    @pa.check("is_operator", name="reviewer-is-run-operator")
    def reviewers_did_not_run_the_model(cls, same: pd.Series) -> Flags:
        return ~same

    @pa.check("is_approver", name="reviewer-is-label-approver")
    def reviewers_did_not_approve_the_labels(cls, same: pd.Series) -> Flags:
        return ~same
