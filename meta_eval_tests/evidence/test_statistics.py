"""Figures against independent computations, written out here with fractions and plain loops."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.statistics import Ratio, agreement, bootstrap_95, cohens_kappa, nearest_rank, wilson_95


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (range(1, 21), 19),
        (range(1, 101), 95),
        (range(1, 11), 10),
        ([7], 7),
        (range(1, 41), 38),
        (range(1, 22), 20),
        (range(1, 12), 11),
        (range(1, 20), 19),
        ([], None),
        ([9, 100, 10], 100),
        ([5] * 19 + [1000], 5),
    ],
)
def test_h3_p95_is_the_value_at_rank_ceil_of_95_hundredths(values: Any, expected: int | None) -> None:
    assert nearest_rank(list(values), percent=95) == expected


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.integers(1, 100))
def test_nearest_rank_is_the_least_value_that_enough_values_do_not_exceed(values: list[int], percent: int) -> None:
    found = nearest_rank(values, percent=percent)
    assert found is not None

    def share_up_to(value: int) -> Fraction:
        return Fraction(sum(other <= value for other in values), len(values))

    assert share_up_to(found) >= Fraction(percent, 100)
    smaller = [value for value in values if value < found]
    assert not smaller or share_up_to(max(smaller)) < Fraction(percent, 100)


@pytest.mark.parametrize(
    ("numerator", "denominator", "least", "meets"),
    [
        (9, 10, "9/10", True),
        (899_999, 1_000_000, "9/10", False),
        (19, 20, "19/20", True),
        (949_999_999, 1_000_000_000, "19/20", False),
        (0, 0, "9/10", False),
        (0, 0, "0/1", False),
        (0, 5, "0/1", True),
    ],
)
def test_a_ratio_meets_a_threshold_exactly_and_over_nothing_never(
    numerator: int, denominator: int, least: str, meets: bool
) -> None:
    assert Ratio(numerator, denominator).meets(Fraction(least)) is meets


def test_a_ratio_is_shown_to_six_places_and_over_nothing_not_at_all() -> None:
    assert [Ratio(2, 3).shown, Ratio(0, 7).shown, Ratio(0, 0).shown] == [0.666667, 0.0, None]


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_bounds_solve_the_score_equation(counts: tuple[int, int]) -> None:
    """A bound p is where (x/n - p)^2 = z^2 p (1 - p) / n, the equation that Wilson's interval inverts."""
    k, n = counts
    interval = wilson_95(Ratio(k, n))
    assert interval is not None
    low, high = interval
    assert 0 <= low <= k / n + 1e-6
    assert k / n - 1e-6 <= high <= 1
    z = 1.959963984540054
    for bound in interval:
        if 0 < bound < 1:
            # The bound is rounded to six places, so the equation holds as far as its slope lets it.
            assert math.isclose((k / n - bound) ** 2, z * z * bound * (1 - bound) / n, abs_tol=1e-5 * (1 + 4 / n))


def test_wilson_of_36_in_40_as_worked_out_by_hand() -> None:
    # p = 0.9, z^2 = 3.841459. Centre (0.9 + 3.841459/80) / (1 + 3.841459/40) = 0.948018/1.096036 = 0.864951;
    # spread 1.959964 * sqrt(0.09/40 + 3.841459/6400) / 1.096036 = 1.959964 * 0.0533875 / 1.096036 = 0.095469.
    interval = wilson_95(Ratio(36, 40))
    assert interval == pytest.approx((0.769482, 0.960420), abs=2e-6)


def test_intervals_of_nothing_are_null() -> None:
    assert wilson_95(Ratio(0, 0)) is None
    assert bootstrap_95([], [], seed="s") is None
    assert bootstrap_95([0, 0], [0, 0], seed="s") is None


@given(
    st.lists(st.integers(0, 3).flatmap(lambda d: st.tuples(st.integers(0, d), st.just(d))), min_size=1, max_size=30),
    st.text(max_size=8),
)
@settings(max_examples=25, deadline=None)
def test_the_bootstrap_is_that_of_its_seed_and_within_what_cases_allow(rows: Any, seed: str) -> None:
    tops, bottoms = [top for top, _ in rows], [bottom for _, bottom in rows]
    interval = bootstrap_95(tops, bottoms, seed=seed)
    assert interval == bootstrap_95(tops, bottoms, seed=seed)
    single = [Fraction(top, bottom) for top, bottom in rows if bottom]
    if not single:
        assert interval is None
        return
    assert interval is not None
    low, high = interval
    # A ratio of sums lies between the least and the greatest ratio of a single case.
    assert float(min(single)) - 1e-6 <= low <= high <= float(max(single)) + 1e-6


def test_the_bootstrap_of_many_equal_cases_is_near_the_closed_form() -> None:
    """400 cases of one claim each, 360 good: resampling a binomial, so about 0.9 plus or minus 1.96 * 0.015."""
    interval = bootstrap_95([1] * 360 + [0] * 40, [1] * 400, seed="any")
    assert interval is not None
    assert interval == pytest.approx((0.9 - 0.0294, 0.9 + 0.0294), abs=0.006)


def test_cases_are_drawn_whole() -> None:
    # One case holds all ten bad claims: it is drawn or it is not, so the interval is far wider than over 20 claims.
    interval = bootstrap_95([10, 0], [10, 10], seed="any")
    assert interval == (0.0, 1.0)


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60)


@given(PAIRS)
def test_kappa_is_observed_beyond_chance_over_possible_beyond_chance(pairs: list[tuple[bool, bool]]) -> None:
    n = len(pairs)
    cells = {cell: pairs.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))}
    observed = cells[True, True] + cells[False, False]
    assert agreement(pairs) == Ratio(observed, n)
    # The closed form of a two by two table: 2 (ad - bc) / ((a+b)(b+d) + (a+c)(c+d)).
    a, b, c, d = cells[True, True], cells[True, False], cells[False, True], cells[False, False]
    bottom = (a + b) * (b + d) + (a + c) * (c + d)
    assert cohens_kappa(pairs) == (Fraction(2 * (a * d - b * c), bottom) if bottom else None)


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ((20, 5, 10, 15), Fraction(2, 5)),  # 35/50 observed, 1/2 by chance
        ((10, 0, 0, 10), Fraction(1)),
        ((0, 10, 10, 0), Fraction(-1)),
        ((10, 10, 10, 10), Fraction(0)),
        ((10, 0, 0, 0), None),
    ],
)
def test_kappa_of_tables_worked_out_by_hand(table: tuple[int, ...], kappa: Fraction | None) -> None:
    cells = ((True, True), (True, False), (False, True), (False, False))
    assert cohens_kappa([cell for cell, n in zip(cells, table, strict=True) for _ in range(n)]) == kappa
