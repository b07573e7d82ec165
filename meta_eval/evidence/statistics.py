"""Figures that cannot drift: exact ratios, nearest rank, intervals for information, agreement of two raters.

Source: the production evaluation document, metrics section. Gates compare fractions of integers. Intervals are
for the reader and never a gate; they are rounded to six places so that every machine writes the same digits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Z_95 = 1.959963984540054
BOOTSTRAP_DRAWS = 1000
_PLACES = 6
Interval = tuple[float, float]


@dataclass(frozen=True)
class Ratio:
    """A count over a count. An empty denominator has no value and meets no threshold."""

    numerator: int
    denominator: int

    @property
    def fraction(self) -> Fraction | None:
        return Fraction(self.numerator, self.denominator) if self.denominator else None

    def meets(self, least: Fraction) -> bool:
        """Whether the exact ratio is at least the threshold; 9/10 meets 9/10."""
        return self.fraction is not None and self.fraction >= least

    @property
    def shown(self) -> float | None:
        return None if self.fraction is None else round(float(self.fraction), _PLACES)


def nearest_rank(values: Sequence[int], *, percent: int) -> int | None:
    """The value at rank ceil(percent * n / 100), counted from 1 in ascending order; None without values."""
    if not values:
        return None
    return sorted(values)[-(-percent * len(values) // 100) - 1]


def wilson_95(ratio: Ratio) -> Interval | None:
    """The 95 % Wilson score interval of a proportion, or None where the denominator is empty."""
    n = ratio.denominator
    if not n:
        return None
    p = ratio.numerator / n
    centre = p + Z_95**2 / (2 * n)
    spread = Z_95 * math.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n * n))
    scale = 1 + Z_95**2 / n
    return _rounded((centre - spread) / scale, (centre + spread) / scale)


def bootstrap_95(numerators: Sequence[int], denominators: Sequence[int], *, seed: str) -> Interval | None:
    """The 95 % percentile interval of a ratio of sums, cases drawn with replacement.

    Args:
        numerators, denominators: one entry a case, so that claims of one case are drawn together.
        seed: any text; its SHA-256 keys a Philox stream, whose raw bits NumPy keeps stable for ever.

    Returns:
        (low, high), or None where no draw has a denominator. Draws without one are left out.
    """
    n = len(numerators)
    if not n or not any(denominators):
        return None
    tops, bottoms = np.asarray(numerators, dtype=np.int64), np.asarray(denominators, dtype=np.int64)
    key = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")
    stream = np.random.Philox(key=key)
    ratios = []
    for _ in range(BOOTSTRAP_DRAWS):
        chosen: npt.NDArray[np.int64] = (stream.random_raw(n) % np.uint64(n)).astype(np.int64)
        if bottom := int(bottoms[chosen].sum()):
            ratios.append(int(tops[chosen].sum()) / bottom)
    ratios.sort()
    if not ratios:
        return None
    low, high = (ratios[-(-per_mille * len(ratios) // 1000) - 1] for per_mille in (25, 975))
    return _rounded(low, high)


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Ratio:
    """How often two raters said the same."""
    return Ratio(sum(one == other for one, other in pairs), len(pairs))


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> Fraction | None:
    """Cohen's kappa of two raters over two categories, exact; None where chance agreement is certain."""
    n = len(pairs)
    if not n:
        return None
    first, second = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    observed = Fraction(agreement(pairs).numerator, n)
    by_chance = Fraction(first * second + (n - first) * (n - second), n * n)
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def _rounded(low: float, high: float) -> Interval:
    # `+ 0.0` turns -0.0, which a zero numerator can leave behind, into 0.0.
    return round(max(low, 0.0), _PLACES) + 0.0, round(min(high, 1.0), _PLACES) + 0.0
