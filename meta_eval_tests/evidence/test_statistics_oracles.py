"""Figures against SciPy and statsmodels, on drawn inputs and on the degenerate ones.

Where a lane shows six places, the shown figure must be the other library's value, known to 1e-12, rounded as it is.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_table
from statsmodels.stats.proportion import proportion_confint

from meta_eval.evidence.statistics import BOOTSTRAP_DRAWS, Ratio, bootstrap_95, cohens_kappa, wilson_95
from meta_eval.lanes.usefulness.paired import gain_interval_95, mcnemar_exact


def shown_of(shown: float, value: float) -> bool:
    """Whether a figure is a value, known to 1e-12, rounded to six places."""
    return shown in {round(value + error, 6) for error in (-1e-12, 0.0, 1e-12)}


COUNTS = st.integers(0, 400)


@given(COUNTS, COUNTS)
@example(0, 0)
@example(0, 60)
@example(60, 60)
def test_mcnemar_is_that_of_statsmodels_and_of_the_binomial_test(recoveries: int, losses: int) -> None:
    p = float(mcnemar_exact(recoveries, losses))
    theirs = mcnemar([[7, recoveries], [losses, 9]], exact=True).pvalue if recoveries + losses else 1.0
    assert p == pytest.approx(theirs, abs=1e-12)
    if recoveries + losses:
        assert p == pytest.approx(stats.binomtest(recoveries, recoveries + losses).pvalue, abs=1e-12)


@given(st.tuples(*[st.integers(0, 60)] * 4))
@example((0, 0, 0, 0))
@example((9, 0, 0, 0))
@example((0, 0, 0, 9))
@example((0, 9, 9, 0))
@example((0, 9, 0, 0))
def test_kappa_is_that_of_statsmodels(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    cells = ((True, True), (True, False), (False, True), (False, False))
    found = cohens_kappa([cell for cell, n in zip(cells, table, strict=True) for _ in range(n)])
    n = a + b + c + d
    # Chance agreement is certain exactly where both raters said one same thing throughout: no kappa is defined.
    if n in (0, a, d):
        assert found is None
        return
    assert found is not None
    assert float(found) == pytest.approx(kappa_of_table(np.array([[a, b], [c, d]]), return_results=False), abs=1e-12)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@example((0, 1))
@example((1, 1))
@example((0, 60))
@example((41, 60))
@example((60, 60))
def test_wilson_is_that_of_statsmodels_and_of_scipy(counts: tuple[int, int]) -> None:
    k, n = counts
    found = wilson_95(Ratio(k, n))
    assert found is not None
    theirs = proportion_confint(k, n, alpha=0.05, method="wilson")
    interval = stats.binomtest(k, n).proportion_ci(method="wilson")
    for mine, one, other in zip(found, theirs, interval, strict=True):
        assert shown_of(mine, one)
        assert shown_of(mine, other)


def drawn(n: int, seed: str) -> npt.NDArray[np.int64]:
    """The indices that a seed draws, a row a draw: the documented Philox stream, asked in one call."""
    key = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")
    raw = np.random.Philox(key=key).random_raw(n * BOOTSTRAP_DRAWS)
    return (raw % np.uint64(n)).astype(np.int64).reshape(BOOTSTRAP_DRAWS, n)


def percentiles(values: list[float]) -> tuple[float, float]:
    """NumPy's inverted empirical distribution, which takes an observed value and interpolates nothing."""
    low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high)


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=120), st.text(max_size=6))
@example([0], "")
@example([1] * 120, "s")
@example([-1] * 120, "s")
@settings(max_examples=25, deadline=None)
def test_the_gain_interval_is_the_percentile_of_the_same_draws(differences: list[int], seed: str) -> None:
    found = gain_interval_95(differences, seed=seed)
    means = [float(row.mean()) for row in np.asarray(differences)[drawn(len(differences), seed)]]
    assert found is not None
    assert all(map(shown_of, found, percentiles(means)))


@given(
    st.lists(st.integers(1, 3).flatmap(lambda d: st.tuples(st.integers(0, d), st.just(d))), min_size=1, max_size=40),
    st.text(max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_the_bootstrap_is_the_percentile_of_the_same_draws(rows: list[tuple[int, int]], seed: str) -> None:
    tops, bottoms = [top for top, _ in rows], [bottom for _, bottom in rows]
    chosen = drawn(len(rows), seed)
    ratios = (np.asarray(tops)[chosen].sum(axis=1) / np.asarray(bottoms)[chosen].sum(axis=1)).tolist()
    found = bootstrap_95(tops, bottoms, seed=seed)
    assert found is not None
    assert all(map(shown_of, found, percentiles(ratios)))


@pytest.mark.parametrize("n", [20, 60, 120])
def test_the_gain_interval_is_near_that_of_scipy_with_draws_of_its_own(n: int) -> None:
    differences = [1] * (n // 4) + [-1] * (n // 10) + [0] * (n - n // 4 - n // 10)
    theirs = stats.bootstrap(
        (np.asarray(differences),), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    found = gain_interval_95(differences, seed="any")
    assert found is not None
    # Two samples of draws: each bound is a quantile with a standard error of about a tenth of the mean's own.
    error = math.sqrt(np.var(differences) / n)
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.4 * error + 1 / n)
