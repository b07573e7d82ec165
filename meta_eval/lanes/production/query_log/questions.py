"""The questions of a batch judged together: contact details, length, and the form in which they are compared.

Source: the production evaluation document, the query log. A second way to the answers of `contact_rule` and
`normalised_question`: a few patterns, each asked of many questions at once, settle the ordinary question, and what
they leave open is judged one by one. A pattern here may leave a question open; it never decides otherwise than they do.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meta_eval.evidence.contact_prefilters import ASCII_MAY_HOLD, SURELY_HOLDS
from meta_eval.evidence.identifiers import ASCII_SIGN, contact_rule
from meta_eval.lanes.production.query_log.normalise import ASCII_TRAILING, UNSETTLED, normalised_question
from meta_eval.lanes.production.query_log.outcomes import CONTACT_BEARING, ELIGIBLE, EMPTY_QUESTION, OVER_LENGTH

_SPACED = r"^ |  |[\t-\r\x1c-\x1f]"
"""White space that the normal form changes, but at the end, in ASCII."""
_LONGEST_NORMALISED = 2048
"""Code points. NFKC takes quadratic time over a long run of combining marks."""
_WORTH_LOOKING_AGAIN = 128
"""Questions for which it pays to have a long pattern compiled, as each call does."""


class Questions(NamedTuple):
    """Questions in their order. `normal` is of the eligible ones among them; None where it was not asked for."""

    outcomes: np.ndarray
    normal: pa.Array | None


def judged_questions(questions: pa.Array, longest: int, *, normal: bool) -> Questions:
    """The outcome of each question (int8: eligible, contact-bearing, empty or over-length), and the normal forms.

    Args:
        questions: strings, none null.
        longest: code points that a question may have.
        normal: whether the normal forms are asked for.
    """
    if len(questions) == 0:
        return Questions(np.empty(0, dtype=np.int8), pa.array([], pa.string()) if normal else None)
    texts, plain, contact = _screened(questions)
    forms = pc.ascii_rtrim(texts, ASCII_TRAILING)
    blank, plain, contact = (_flags(mask) for mask in (pc.equal(pc.binary_length(forms), 0), plain, contact))
    outcomes = np.full(len(questions), ELIGIBLE, dtype=np.int8)
    # The last that fits decides, as a long question is screened like any other.
    outcomes[_flags(pc.greater(pc.utf8_length(questions), longest))] = OVER_LENGTH
    outcomes[blank] = EMPTY_QUESTION
    outcomes[contact] = CONTACT_BEARING
    left = np.flatnonzero(~(plain | contact))
    answers = [question_judged(text, longest) for text in questions.take(pa.array(left)).to_pylist()]
    outcomes[left] = [outcome for outcome, _ in answers]
    if not normal:
        return Questions(outcomes, None)
    eligible = np.flatnonzero(outcomes == ELIGIBLE)
    found = pc.replace_substring(pc.utf8_lower(forms.take(pa.array(eligible))), "ß", "ss")
    singly = pa.array(~plain[eligible])
    normals = [form for outcome, form in answers if outcome == ELIGIBLE]
    return Questions(outcomes, pc.replace_with_mask(found, singly, pa.array(normals, pa.string())))


def _screened(questions: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The texts to look at in place of the questions, which of them are plain, and which surely hold a contact.

    A text that is plain holds no contact, and lower-casing and trimming give its normal form.
    """
    # Asked in one pass over every question; of the few that hold anything it is asked again what they hold.
    special = pc.match_substring_regex(questions, rf"{UNSETTLED}|{_SPACED}|{ASCII_SIGN}")
    held = _normalised(questions.filter(special))
    shaped = pc.invert(pc.match_substring_regex(held, rf"{UNSETTLED}|{_SPACED}"))
    signed = pc.match_substring_regex(held, ASCII_SIGN)
    ascii_only = pc.string_is_ascii(held)
    # What is settled is screened as it stands, so that a contact in it is found whatever is beside it.
    contact = pc.and_(pc.or_(shaped, ascii_only), pc.match_substring_regex(held, SURELY_HOLDS))
    # Most signs are years. The longer pattern, which is for ASCII, tells them from the rest.
    doubtful = pc.and_not(pc.and_(pc.and_(shaped, signed), ascii_only), contact)
    if (pc.sum(doubtful).as_py() or 0) >= _WORTH_LOOKING_AGAIN:
        signed = pc.replace_with_mask(signed, doubtful, may_hold_in_ascii(held.filter(doubtful)))
    none = pa.array(np.zeros(len(questions), dtype=bool))
    return (
        pc.replace_with_mask(questions, special, held),
        pc.replace_with_mask(pc.invert(special), special, pc.and_not(shaped, signed)),
        pc.replace_with_mask(none, special, contact),
    )


def may_hold_in_ascii(texts: pa.Array) -> pa.Array:
    """False of an ASCII text in which `contact_rule` finds nothing."""
    may_hold = pa.array(np.zeros(len(texts), dtype=bool))
    for first, *others in ASCII_MAY_HOLD:
        found = pc.match_substring_regex(texts, first)
        for pattern in others:
            if pc.any(found).as_py():
                found = pc.replace_with_mask(found, found, pc.match_substring_regex(texts.filter(found), pattern))
        may_hold = pc.or_(may_hold, found)
    return may_hold


def _normalised(texts: pa.Array) -> pa.Array:
    """The texts, those that NFKC may change in that form: the screen and the normal form both begin with it."""
    loose = pc.and_(
        pc.match_substring_regex(texts, UNSETTLED), pc.less_equal(pc.utf8_length(texts), _LONGEST_NORMALISED)
    )
    found = [unicodedata.normalize("NFKC", text) for text in texts.filter(loose).to_pylist()]
    return pc.replace_with_mask(texts, loose, pa.array(found, pa.string()))


def _flags(mask: pa.Array) -> np.ndarray:
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)


def question_judged(question: str, longest: int) -> tuple[int, str]:
    """The outcome of one question, and its normal form where it is eligible."""
    # Looked for before the length, so that a long question cannot carry an address past the scan.
    if contact_rule(question) is not None:
        return CONTACT_BEARING, ""
    if len(question) > longest:
        return (EMPTY_QUESTION if _is_blank(question) else OVER_LENGTH), ""
    normal = normalised_question(question)
    return (ELIGIBLE if normal else EMPTY_QUESTION), normal


def _is_blank(question: str) -> bool:
    """Whether the normal form is empty, asked character by character.

    NFKC takes quadratic time over a long run of combining marks, so a text of any length is not put through it.
    No character whose own normal form is not empty can be normalised away by its neighbours.
    """
    return not any(map(normalised_question, set(question)))
