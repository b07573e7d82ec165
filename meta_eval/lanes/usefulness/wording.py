"""Is a question a repaired old one? Exact equality after normalisation, and the token-set ratio.

Source: the usefulness contract, custody register. The ratio is the one that RapidFuzz calls `token_set_ratio`, with
each text first normalised as below; here it is an exact fraction, so a threshold is met on every machine or on none.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from fractions import Fraction

_WORD = re.compile(r"[^\W_]+")


def normalised(question: str) -> str:
    """Compatibility form, case folded, words only: what makes two spellings of one question equal."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", question).casefold()))


def question_digest(question: str) -> str:
    """The digest by which the register knows an exposed question for ever."""
    return hashlib.sha256(normalised(question).encode()).hexdigest()


def token_set_ratio(one: str, other: str) -> Fraction:
    """Likeness of two normalised texts from 0 to 100, whatever the order and repetition of their words."""
    first, second = set(one.split()), set(other.split())
    if not first or not second:
        return Fraction(0)
    shared, only_first, only_second = first & second, first - second, second - first
    if shared and not (only_first and only_second):
        return Fraction(100)
    left, right = " ".join(sorted(only_first)), " ".join(sorted(only_second))
    base = len(" ".join(sorted(shared)))
    joint = bool(base)
    whole_left, whole_right = base + joint + len(left), base + joint + len(right)
    ratios = [_ratio(len(left) + len(right) - 2 * _common(left, right), whole_left + whole_right)]
    if base:
        ratios += [_ratio(joint + len(left), base + whole_left), _ratio(joint + len(right), base + whole_right)]
    return max(ratios)


def _ratio(distance: int, length: int) -> Fraction:
    return 100 - Fraction(100 * distance, length)


def _common(one: str, other: str) -> int:
    """Length of the longest common subsequence, bit-parallel (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << place
    row = full = (1 << len(one)) - 1
    for char in other:
        matched = row & places.get(char, 0)
        row = (row + matched) | (row - matched)
    return (~row & full).bit_count()


def closest(question: str, consumed: Mapping[str, str], *, least: int) -> tuple[str, Fraction] | None:
    """The exposed question that this one is most like, with the ratio, where it reaches `least`.

    Args:
        consumed: exposed questions, normalised, by their digest.
    """
    mine = normalised(question)
    ratios = ((sha256, token_set_ratio(mine, text)) for sha256, text in consumed.items())
    best = max(ratios, key=lambda pair: (pair[1], pair[0]), default=None)
    return best if best is not None and best[1] >= least else None


def normalised_by_digest(questions: Iterable[str]) -> dict[str, str]:
    """Questions as `closest` wants them."""
    return {question_digest(question): normalised(question) for question in questions}
