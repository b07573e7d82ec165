"""Questions judged together: every answer is the one that the rules give to each question by itself."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meta_eval.evidence import identifiers
from meta_eval.evidence.contact_prefilters import SURELY_HOLDS
from meta_eval.evidence.identifiers import contact_rule, specified_contact_rule
from meta_eval.lanes.production.query_log import questions
from meta_eval.lanes.production.query_log.keys import Secrets, keys_of
from meta_eval.lanes.production.query_log.normalise import UNSETTLED, normalised_question
from meta_eval.lanes.production.query_log.questions import judged_questions
from meta_eval_tests.lanes.production.query_log_world import judged_singly

DATA = Path(__file__).parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data folder is absent")
LONGEST = 40
"""Short, so that drawn questions are on both sides of it."""

_settled = re.compile(UNSETTLED.replace("[^", "[", 1)).fullmatch
SETTLED = [char for char in map(chr, range(0x110000)) if _settled(char)]


def same(texts: list[str]) -> None:
    for normal in (True, False):
        expected = judged_singly(pa.array(texts, pa.string()), LONGEST, normal=normal)
        found = judged_questions(pa.array(texts, pa.string()), LONGEST, normal=normal)
        assert found.outcomes.tolist() == expected.outcomes.tolist()
        assert (found.normal and found.normal.to_pylist()) == (expected.normal and expected.normal.to_pylist())


_PIECES = st.sampled_from(
    [
        *(
            "Who",
            "WHO",
            "señora",
            "STRASSE",
            "Straße",
            "ΣΊΣΥΦΟΣ",
            "ς",
            "Ökonomie",
            "浮世絵",
            "ｗｉｄｅ",
            "ﬁne",
            "İ",
            "ı",
            "ſ",
        ),
        *(
            "e\u0301",
            "\u0301",
            "ǰ",
            "한국",
            "가",
            "\u1161",
            "が",
            "か\u3099",
            "ー",
            "“a”",
            "—",
            "…",
            "½",
            "²",
            "µ",
            "ª",
            "№",
        ),
        *(
            " ",
            "  ",
            "\u00a0",
            "\u3000",
            "\t",
            "\u2028",
            "\x1f",
            "?",
            "!",
            ".",
            "。",
            "？",
            " ?! ",
            "'",
            "\u200b",
            "\u00ad",
        ),
        *("1885", "١٨٨٥", "1883 and 1885", "12 Kalverstraat", "dot", "DOT", "Instagram", "[at]", "a@b", "me@home"),
        *(
            "visitor@example.org",
            "VISITOR@EXAMPLE.COM,",
            "x@y.de.",
            "ｕｓｅｒ＠ｅｘａｍｐｌｅ．ｏｒｇ",
            "é@example.org",
            "a@b.c.d.fr x",
        ),
        *("+1 202-555-0123", "a" * LONGEST, "é" * LONGEST, "\u0301" * 3000, "🙂", "\x7f"),
    ]
)
_TEXTS = (
    st.lists(_PIECES | st.text(max_size=8), max_size=6)
    .flatmap(lambda parts: st.sampled_from(["".join(parts), " ".join(parts)]))
    .filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text))
)


@pytest.mark.parametrize("worth", [1, 128])
@settings(max_examples=600, deadline=None)
@given(texts=st.lists(_TEXTS, max_size=8))
@example(texts=[])
@example(texts=[""])
@example(texts=["Straße?", "STRASSE", "ẞ"])
@example(texts=["ﬁ" * 30, "e\u0301" * 30])  # longer, and shorter, once normalised
def test_questions_judged_together_are_judged_as_each_by_itself(worth: int, texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "_WORTH_LOOKING_AGAIN", worth)
        same(texts)


@needs_data
def test_real_questions_are_judged_as_each_by_itself() -> None:
    def lines(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (DATA / name).read_text().splitlines()]

    texts = [item["query"] for item in lines("clinc150-queries.jsonl")]
    texts += [item["text"] for item in lines("pii-sentences.jsonl")]
    texts += [value for record in lines("museum-records.jsonl") for value in record.values() if isinstance(value, str)]
    same(texts)


# --- what the patterns may be trusted with -----------------------------------------------------------------


def test_each_settled_character_is_its_own_normal_form_but_for_lower_case() -> None:
    assert len(SETTLED) > 33_000
    lowered = pc.utf8_lower(pa.array(SETTLED)).to_pylist()
    for char, lower in zip(SETTLED, lowered, strict=True):
        folded = "ss" if char == "ß" else lower
        assert unicodedata.category(char) != "Cn"
        assert unicodedata.is_normalized("NFKC", char)
        assert unicodedata.combining(char) == 0
        assert char.casefold() == folded, char
        assert unicodedata.is_normalized("NFKC", folded)
        assert char.isascii() or not (char.isspace() or char.isdecimal()), char
        assert identifiers._plain(char) == char


def test_no_settled_character_joins_with_the_one_before_it() -> None:
    # All that NFKC joins to what stands before it, though it is no combining mark: the second half of a composition.
    seconds = set()
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    seconds |= {chr(code) for code in range(0x1161, 0x1176)} | {chr(code) for code in range(0x11A8, 0x11C3)}
    assert not seconds.intersection(SETTLED)


@settings(max_examples=1000, deadline=None)
@given(text=st.text(st.sampled_from(SETTLED) | st.characters(max_codepoint=127), max_size=20))
def test_a_settled_text_is_lower_cased_and_trimmed_and_nothing_else(text: str) -> None:
    assert not pc.match_substring_regex(pa.array([text]), UNSETTLED)[0].as_py()
    assert unicodedata.normalize("NFKC", text) == text
    if text.split() == text.split(" "):  # no white space to be changed
        folded = pc.replace_substring(pc.utf8_lower(pa.array([text])), "ß", "ss")
        assert normalised_question(text) == folded[0].as_py().rstrip(".?!。 ")


_MAIL = st.from_regex(
    r"[0-9A-Za-z]@([A-Za-z][0-9A-Za-z]{0,5}\.){1,3}(com|ORG|net|de|Fr)(\.?\s|[,;!?)\"']|\.?\Z)", fullmatch=True
)


@settings(max_examples=2000, deadline=None)
@given(before=_TEXTS, mail=_MAIL, after=_TEXTS)
def test_what_surely_holds_a_contact_does(before: str, mail: str, after: str) -> None:
    plain = identifiers._plain(before + mail + after)
    if pc.match_substring_regex(pa.array([plain]), SURELY_HOLDS)[0].as_py():
        assert contact_rule(plain) is not None
        assert specified_contact_rule(plain) is not None


def test_the_usual_address_surely_holds_a_contact() -> None:
    texts = [
        "Write to visitor@example.org",
        "visitor@mail.example.COM.",
        "(visitor@example.net)",
        "oil @ canvas.de",
        "a@b",
    ]
    found = pc.match_substring_regex(pa.array(texts), SURELY_HOLDS)
    assert found.to_pylist() == [True, True, True, False, False]


# --- keys --------------------------------------------------------------------------------------------------


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=20))
def test_equal_texts_have_equal_keys_and_unlike_ones_unlike_keys(texts: list[str]) -> None:
    keys = keys_of(pa.array(texts, pa.string()), Secrets.drawn())
    assert keys.shape == (len(texts), 2)
    assert keys.dtype == np.uint64
    told: dict[str, tuple[int, int]] = {}
    for text, key in zip(texts, map(tuple, keys.tolist()), strict=True):
        assert told.setdefault(text, key) == key
    assert len(set(told.values())) == len(told)


def test_keys_are_siphash_under_secrets_of_their_own() -> None:
    # The reference vector of SipHash-2-4 (key 00..0f, message 00..0e: a129ca6149be45e5), put through the mixing that
    # pandas adds, which loses nothing: it can be undone.
    secret = bytes(range(16)).decode()
    found = int(keys_of(pa.array([bytes(range(15)).decode()]), Secrets(secret, secret))[0, 0])
    mask = 2**64 - 1

    def unshifted(value: int, by: int) -> int:
        result = value
        for _ in range(64 // by + 1):
            result = value ^ (result >> by)
        return result

    value = unshifted(found, 31) * pow(0x94D049BB133111EB, -1, 2**64) & mask
    value = unshifted(value, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    assert unshifted(value, 30) == 0xA129CA6149BE45E5
    one, other = Secrets.drawn(), Secrets.drawn()
    assert len({*one, *other}) == 4
    ((first, second),) = keys_of(pa.array(["a"]), one).tolist()
    assert first != second
    assert keys_of(pa.array(["a"]), one).tolist() != keys_of(pa.array(["a"]), other).tolist()
