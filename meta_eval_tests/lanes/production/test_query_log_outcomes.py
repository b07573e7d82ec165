"""Run-length text of outcomes: one spelling for one list, and nothing else is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.lanes.production.query_log import OUTCOME_LETTERS, OUTCOMES, outcomes_of, runs_of


def test_order_of_the_outcomes_is_the_contracts() -> None:
    assert ",".join(OUTCOMES) == (
        "malformed,missing-consent,wrong-consent-contract,unsuccessful,future,stale,contact-bearing,"
        "empty-question,over-length,duplicate,eligible"
    )
    assert len(set(OUTCOME_LETTERS)) == len(OUTCOMES)


def test_runs_of_three_malformed_one_eligible_two_duplicates() -> None:
    assert runs_of(np.array([0, 0, 0, 10, 9, 9], dtype=np.uint8)) == "m3ed2"
    assert outcomes_of("m3ed2").tolist() == [0, 0, 0, 10, 9, 9]
    assert runs_of(np.array([], dtype=np.uint8)) == ""
    assert outcomes_of("").tolist() == []


@given(st.lists(st.integers(0, len(OUTCOMES) - 1)))
def test_text_of_any_outcomes_reads_back(values: list[int]) -> None:
    read = outcomes_of(runs_of(np.array(values, dtype=np.uint8)))
    assert read.dtype == np.uint8
    assert read.tolist() == values


@given(st.text(alphabet="mnwufscbldexz0123456789 -", max_size=12))
def test_what_is_read_at_all_is_written_the_same_way(text: str) -> None:
    try:
        values = outcomes_of(text) if not any(len(run) > 5 for run in text.split()) else None
    except ValueError:
        return
    if values is not None:
        assert runs_of(values) == text


@pytest.mark.parametrize(
    "text",
    [
        "x", "M", "3m", "m0", "m1", "m02", "mm", "m2m", "m2m3", "m 2", " m", "m-2", "m2.", "m+2", "m²", "m٣",
        "m1000000001", "m999999999e2", "m" + "9" * 5000, "m\n", "m2\n",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a run"):
        outcomes_of(text)


@pytest.mark.parametrize("values", [[-1], [11], [255]])
def test_an_index_without_an_outcome_is_not_written(values: list[int]) -> None:
    with pytest.raises(ValueError, match="names no outcome"):
        runs_of(np.array(values))
