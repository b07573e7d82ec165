"""Paired statistics, for the reader and never a gate: the exact McNemar test and an interval of the gain.

Source: the usefulness contract, acceptance. Both look only at how the same questions fared in two arms.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from meta_eval.evidence.statistics import BOOTSTRAP_DRAWS, Interval


def mcnemar_exact(recoveries: int, losses: int) -> Fraction:
    """The two-sided exact p-value that so uneven a split of the discordant pairs comes by chance."""
    discordant = recoveries + losses
    tail = sum(math.comb(discordant, k) for k in range(min(recoveries, losses) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**discordant))


def gain_interval_95(differences: Sequence[int], *, seed: str) -> Interval | None:
    """The 95 % percentile interval of the mean difference, questions drawn with replacement.

    Args:
        differences: a question each, 1 for a recovery, -1 for a loss, 0 otherwise.
        seed: any text; its SHA-256 keys a Philox stream, whose raw bits NumPy keeps stable for ever.
    """
    n = len(differences)
    if not n:
        return None
    values = np.asarray(differences, dtype=np.int64)
    stream = np.random.Philox(key=int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    chosen = (stream.random_raw(n * BOOTSTRAP_DRAWS) % np.uint64(n)).astype(np.int64).reshape(BOOTSTRAP_DRAWS, n)
    sums = sorted(values[chosen].sum(axis=1).tolist())
    low, high = (sums[-(-per_mille * len(sums) // 1000) - 1] for per_mille in (25, 975))
    return round(low / n, 6) + 0.0, round(high / n, 6) + 0.0
