"""One row by itself: every rule of the query log's contract, in its order."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.chronology import instant_ms
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import OUTCOMES, ROW_LIMIT, classify, normalised_question
from meta_eval.lanes.production.query_log.instants import quick_instant_ms
from meta_eval.lanes.production.query_log.parsing import quick_fields, strict_fields
from meta_eval_tests.lanes.production.query_log_world import (
    MISSING,
    as_of_ms,
    compact,
    good_consent,
    good_row,
    outcome_of,
)

GOOD = compact(good_row())


def raw(extra: str) -> str:
    """The good row's text with one more member."""
    return GOOD[:-1] + "," + extra + "}"


def test_good_row_is_eligible() -> None:
    assert outcome_of(GOOD) == "eligible"
    assert outcome_of(good_row(outcome="refused")) == "eligible"
    assert outcome_of(" \t" + GOOD + "\r\n") == "eligible"


@pytest.mark.parametrize(
    "text", ["null", "42", '"text"', "[]", "[{}]", "{}", "", " ", "{", "{}{}", GOOD + GOOD, "\ufeff" + GOOD]
)
def test_what_is_no_object_is_malformed(text: str) -> None:
    assert outcome_of(text) == "malformed"


@pytest.mark.parametrize(
    "extra",
    [
        '"outcome":"answered"',
        '"outc\\u006fme":"answered"',
        '"meta":{"a":1,"a":1}',
        '"meta":[{"b":{"a":1,"\\u0061":2}}]',
    ],
)
def test_repeated_key_at_any_depth_is_malformed(extra: str) -> None:
    assert outcome_of(raw(extra)) == "malformed"


def test_repeated_key_in_consent_cannot_turn_a_refusal_round() -> None:
    assert outcome_of(GOOD.replace('"granted":true', '"granted":false,"granted":true')) == "malformed"
    assert outcome_of(GOOD.replace('"consent":', '"consent":null,"consent":')) == "malformed"


@pytest.mark.parametrize("where", ['"note":"%s"', '"%s":1', '"meta":["a",{"b":"%s"}]', '"meta":{"%s":1}'])
@pytest.mark.parametrize("escape", ["\\ud83d", "\\uDE00", "\\ude00\\ud83d", "\\ud83dx"])
def test_lone_surrogate_anywhere_is_malformed(where: str, escape: str) -> None:
    assert outcome_of(raw(where % escape)) == "malformed"


def test_paired_surrogates_are_one_character() -> None:
    assert outcome_of(raw('"note":"\\ud83d\\ude00"')) == "eligible"
    assert outcome_of(GOOD.replace("picture", "\\ud83d\\ude00")) == "eligible"
    # An escaped backslash before "ud83d" is text, not a surrogate.
    assert outcome_of(raw('"note":"\\\\ud83d"')) == "eligible"


@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "9007199254740992",
        "-9007199254740992",
        "9" * 5000,
        "[NaN]",
        "1.",
        "01",
        "+1",
        "nan",
        "tru",
    ],
)
def test_number_that_no_two_readers_agree_on_is_malformed(value: str) -> None:
    assert outcome_of(raw(f'"latencyMs":{value}')) == "malformed"


@pytest.mark.parametrize(
    "value", ["9007199254740991", "-9007199254740991", "1e308", "1e-400", "-0", "1.5", "true", "null", "[]"]
)
def test_other_extra_values_do_not_matter(value: str) -> None:
    assert outcome_of(raw(f'"latencyMs":{value}')) == "eligible"


def test_nesting_of_64_levels_is_read_and_of_65_is_malformed() -> None:
    # The row itself is the first level.
    assert outcome_of(raw('"meta":' + "[" * 63 + "]" * 63)) == "eligible"
    assert outcome_of(raw('"meta":' + "[" * 64 + "]" * 64)) == "malformed"
    assert outcome_of(raw('"meta":' + '{"a":' * 62 + "[]" + "}" * 62)) == "eligible"
    # Brackets in text nest nothing, an escaped quotation mark notwithstanding.
    assert outcome_of(raw('"note":"\\"' + "[" * 100 + '"')) == "eligible"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"a":"' + '\\"[' * 300_000], ids=["array", "object", "quotes"]
)
def test_deep_or_unclosed_rows_are_malformed_and_quick(text: str) -> None:
    assert outcome_of(text) == "malformed"


def test_row_of_the_limit_is_read_and_one_byte_more_is_malformed() -> None:
    room = ROW_LIMIT - len(raw('"note":""').encode())
    assert outcome_of(raw(f'"note":"{"x" * room}"')) == "eligible"
    assert outcome_of(raw(f'"note":"{"x" * (room + 1)}"')) == "malformed"
    assert outcome_of(raw(f'"note":"{"é" * (room // 2 + 1)}"')) == "malformed"
    assert outcome_of(None) == "malformed"


def test_row_that_is_not_utf8_is_malformed_and_its_neighbours_are_not() -> None:
    rows = [GOOD.encode(), GOOD.encode().replace(b"picture", b"\xff"), GOOD.encode()]
    batch = pa.RecordBatch.from_arrays([pa.array(rows, pa.binary())], names=["row"])
    found = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY).column("outcome").to_pylist()
    assert [OUTCOMES[index] for index in found] == ["eligible", "malformed", "eligible"]


@pytest.mark.parametrize("key", ["queryId", "question", "askedAt", "outcome"])
@pytest.mark.parametrize("value", [MISSING, None, 1, 1.5, True, [], {}, ["Who?"], {"text": "Who?"}])
def test_key_missing_or_of_wrong_type_is_malformed(key: str, value: object) -> None:
    assert outcome_of(good_row(**{key: value})) == "malformed"


@pytest.mark.parametrize("value", ["", " ", "\t\u00a0", "x" * 201])
def test_query_id_without_substance_or_too_long_is_malformed(value: str) -> None:
    assert outcome_of(good_row(queryId=value)) == "malformed"


def test_query_id_of_200_code_points_is_read() -> None:
    assert outcome_of(good_row(queryId="😀" * 200)) == "eligible"


@pytest.mark.parametrize("control", ["\x00", "\x01", "\x08", "\x0b", "\x0c", "\x0e", "\x1f"])
def test_control_character_in_a_question_is_malformed(control: str) -> None:
    assert outcome_of(good_row(question=f"Who{control}?")) == "malformed"


@pytest.mark.parametrize("control", ["\t", "\n", "\r", "\x7f", "\x85"])
def test_tab_and_line_ends_in_a_question_are_text(control: str) -> None:
    assert outcome_of(good_row(question=f"Who{control}painted it?")) == "eligible"


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-20T10:00:00", "2026-11-20", "2026-11-20 10:00:00Z", "01/11/2026", "2026-02-30T10:00:00Z",
        "2026-11-20T10:00:60Z", "2026-11-20T24:00:00Z", "2026-11-20T10:00:00+0000", "2026-11-20T10:00:00.Z",
        "2026-11-20T10:00:00.+12Z", "2026-11-20T10:00:00.1_2Z", "2026-11-20T25:00:00.000Z",
        "2026-13-20T10:00:00.000Z", "２026-11-20T10:00:00.000Z", "2026-11-20x10:00:00.000Z",
    ],
)  # fmt: skip
def test_instant_outside_the_grammar_is_malformed(value: str) -> None:
    assert outcome_of(good_row(askedAt=value)) == "malformed"
    assert outcome_of(good_row(consent=good_consent(recordedAt=value))) == "malformed"


@pytest.mark.parametrize("value", ["Answered", "ok", "", "answered "])
def test_outcome_outside_the_three_is_malformed(value: str) -> None:
    assert outcome_of(good_row(outcome=value)) == "malformed"


@pytest.mark.parametrize("consent", [1, "yes", True, False, [], [good_consent()], {}])
def test_consent_that_is_no_object_is_malformed(consent: object) -> None:
    assert outcome_of(good_row(consent=consent)) == "malformed"


@pytest.mark.parametrize("key", ["contract", "granted", "recordedAt"])
@pytest.mark.parametrize("value", [MISSING, None, 1, 0, "true", "", []])
def test_consent_key_missing_or_of_wrong_type_is_malformed(key: str, value: object) -> None:
    expected = "wrong-consent-contract" if key == "contract" and isinstance(value, str) else "malformed"
    assert outcome_of(good_row(consent=good_consent(**{key: value}))) == expected


def test_consent_recorded_with_the_question_counts_and_a_millisecond_later_does_not() -> None:
    asked = "2026-11-20T10:00:00.000Z"
    assert outcome_of(good_row(askedAt=asked, consent=good_consent(recordedAt=asked))) == "eligible"
    later = good_consent(recordedAt="2026-11-20T10:00:00.001Z")
    assert outcome_of(good_row(askedAt=asked, consent=later)) == "malformed"
    # The rule holds whether or not consent was given, and compares instants, not spellings.
    assert outcome_of(good_row(askedAt=asked, consent=later | {"granted": False})) == "malformed"
    same = good_consent(recordedAt="2026-11-20T12:00:00+02:00")
    assert outcome_of(good_row(askedAt=asked, consent=same)) == "eligible"


@pytest.mark.parametrize("key", ["email", "phoneNumber", "ip_address", "visitor-name"])
def test_identifying_extra_key_at_any_depth_is_malformed(key: str) -> None:
    assert outcome_of(good_row(**{key: 1})) == "malformed"
    assert outcome_of(good_row(meta=[{"inner": {key: None}}])) == "malformed"
    assert outcome_of(good_row(consent=good_consent(**{key: 1}))) == "malformed"


@pytest.mark.parametrize(
    "key", ["Question", "QueryID", "queryid", "ASKEDAT", "Outcome", "Consent", "Granted", "queſtion"]
)
def test_contract_key_in_another_letter_case_is_malformed(key: str) -> None:
    assert outcome_of(good_row(**{key: 1})) == "malformed"
    assert outcome_of(good_row(meta={key: 1})) == "malformed"
    assert outcome_of(good_row(consent=good_consent(**{key: 1}))) == "malformed"


@pytest.mark.parametrize(
    "extra",
    [
        {"latencyMs": 7},
        {"latencyMs": "12"},
        {"modelVersion": None},
        {"meta": {"steps": [1, {"n": 2}]}},
        {"granted": False},
    ],
)
def test_other_extra_keys_are_ignored(extra: dict[str, Any]) -> None:
    assert outcome_of(good_row(**extra)) == "eligible"


def test_rules_are_asked_in_their_order() -> None:
    """A row that breaks every rule, mended one rule at a time, shows the outcomes in their order."""
    row: dict[str, Any] = good_row(
        question="visitor@example.org " + "x" * 1000,
        outcome="failed",
        askedAt="2027-01-01T00:00:00.000Z",
        consent=good_consent(contract="other", granted=False, recordedAt=5),
    )
    seen = [outcome_of(row)]
    mends: list[dict[str, Any]] = [
        {"consent": good_consent(contract="other", granted=False)},
        {"consent": good_consent(contract="other")},
        {"consent": good_consent(recordedAt="2026-10-01T00:00:00.000Z")},
        {"outcome": "answered"},
        {"askedAt": "2026-10-01T00:00:00.000Z"},
        {"askedAt": "2026-11-20T10:00:00.000Z"},
        {"question": " " * 1001},
        {"question": "x" * 1001},
        {"question": "x" * 1000},
    ]
    for mend in mends:
        row |= mend
        seen.append(outcome_of(row))
    assert seen == [
        "malformed", "missing-consent", "wrong-consent-contract", "unsuccessful", "future", "stale",
        "contact-bearing", "empty-question", "over-length", "eligible",
    ]  # fmt: skip


@pytest.mark.parametrize("consent", [MISSING, None, good_consent(granted=False)])
def test_no_consent_given_is_missing_consent(consent: object) -> None:
    assert outcome_of(good_row(consent=consent)) == "missing-consent"


@pytest.mark.parametrize(
    "contract", ["research-ai-evaluation-v2", "Research-ai-evaluation-v1", "research-ai-evaluation-v1 ", ""]
)
def test_any_other_contract_is_the_wrong_one(contract: str) -> None:
    assert outcome_of(good_row(consent=good_consent(contract=contract))) == "wrong-consent-contract"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # The clock stands at 2026-11-30T00:00:00.000Z; 35 days before it is 2026-10-26T00:00:00.000Z.
        ("2026-11-30T00:00:00.000Z", "eligible"),
        ("2026-11-30T00:00:00.001Z", "future"),
        ("2026-10-26T00:00:00.000Z", "eligible"),
        ("2026-10-25T23:59:59.999Z", "stale"),
        ("2026-10-26T01:00:00+01:00", "eligible"),
    ],
)  # fmt: skip
def test_freshness_is_35_days_to_the_millisecond(asked: str, expected: str) -> None:
    row = good_row(askedAt=asked, consent=good_consent(recordedAt="2026-10-01T00:00:00Z"))
    assert outcome_of(row) == expected


@pytest.mark.parametrize("question", ["", " ", "?", " . ! ? ", "。", "？！．", "｡", "\u3000", "?" * 5000, " " * 5000])
def test_question_without_words_is_empty(question: str) -> None:
    assert outcome_of(good_row(question=question)) == "empty-question"


def test_length_is_counted_in_code_points_of_the_raw_question() -> None:
    assert outcome_of(good_row(question="é" * 1000)) == "eligible"
    assert outcome_of(good_row(question="é" * 1001)) == "over-length"
    assert outcome_of(good_row(question="😀" * 1000)) == "eligible"
    assert outcome_of(good_row(question="x" + " " * 1000)) == "over-length"


def test_address_in_an_over_long_question_is_still_found() -> None:
    assert outcome_of(good_row(question="visitor@example.org " + "a " * 50_000)) == "contact-bearing"
    assert outcome_of(good_row(question="a " * 50_000 + "visitor@example.org")) == "contact-bearing"


def test_run_of_combining_marks_costs_no_quadratic_time() -> None:
    assert outcome_of(good_row(question="a" + "\u0301\u0316" * 100_000)) == "over-length"


def test_columns_of_a_candidate_and_of_an_excluded_row() -> None:
    rows = [good_row(question="  Who PAINTED\tit ?"), good_row(outcome="failed"), {}]
    batch = pa.RecordBatch.from_arrays([pa.array([compact(row).encode() for row in rows], pa.binary())], names=["row"])
    found = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY).to_pylist()
    # 2026-11-20T10:00:00Z is ten days and fourteen hours short of the clock.
    asked = as_of_ms() - (9 * 24 + 14) * 3_600_000
    nothing = {"query_id": None, "question": None, "normal_question": None}
    assert found == [
        {"outcome": 10, "asked_at_ms": asked, "query_id": "query-1", "question": "  Who PAINTED\tit ?",
         "normal_question": "who painted it"},
        {"outcome": 3, "asked_at_ms": asked} | nothing,
        {"outcome": 0, "asked_at_ms": None} | nothing,
    ]  # fmt: skip


# --- normal form -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Who painted the caf\u00e9?", "Who painted the cafe\u0301?", True),
        ("Who painted this?", "Who  painted\u00a0this ?", True),
        ("WHO PAINTED THIS?", "Who painted this?", True),
        ("Ｗｈｏ painted this？", "who painted this", True),
        ("Who painted this. ! ?", "who painted this", True),
        ("誰が描いた。", "誰が描いた", True),
        ("誰が描いた｡", "誰が描いた", True),
        ("Straße", "STRASSE", True),
        ("s\u015b", "\u00df\u0301", True),
        ("żubr", "Zubr", False),
        ("resume", "résumé", False),
        # Case folding keeps the dot of İ as a combining mark, so this one stays apart, on every machine.
        ("\u0130stanbul", "istanbul", False),
        ("what is this", "what is that", False),
        ("?who", "who", False),
    ],
)
def test_same_question_has_one_normal_form(one: str, other: str, same: bool) -> None:
    assert (normalised_question(one) == normalised_question(other)) is same
    assert (normalised_question(other) == normalised_question(one)) is same


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_shortcut_agrees_with_the_general_path(text: str) -> None:
    # A character that NFKC and folding leave alone, and that ends no question, forces the general path.
    general = normalised_question("\u2603" + text + "\u2603")
    assert normalised_question("x" + text + "x")[1:-1] == general[1:-1]


@given(st.text())
def test_normal_form_is_its_own_normal_form(text: str) -> None:
    assert normalised_question(normalised_question(text)) == normalised_question(text)


# --- two readers, one answer -------------------------------------------------------------------------------

_STRINGS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "answered",
            "failed",
            "2026-11-20T10:00:00.000Z",
            "2026-11-20T10:00:00Z",
            "2026-02-30T10:00:00.000Z",
            "\x00",
            "\\",
            '"',
            "{",
            "\u00a0",
        ]
    ),
)
_VALUES = st.one_of(_STRINGS, st.none(), st.booleans(), st.integers(-5, 2**60), st.floats(), st.just([]), st.just({}))


@st.composite
def row_texts(draw: st.DrawFn) -> str:
    """A good row's text after a few changes: other values, keys gone, added, repeated or in another order."""
    consent = list(good_consent().items())
    row: list[tuple[str, object]] = [*good_row().items()]
    for pairs in (consent, row):
        for _ in range(draw(st.integers(0, 2))):
            keys = [
                "queryId",
                "question",
                "askedAt",
                "outcome",
                "contract",
                "granted",
                "recordedAt",
                "consent",
                "extra",
            ]
            change = (draw(st.sampled_from(keys)), draw(_VALUES))
            at = draw(st.integers(0, len(pairs)))
            pairs[at : at + draw(st.integers(0, 1))] = [change]
    colon, comma = draw(st.sampled_from([(":", ","), (": ", ", "), (" :\n", "\t,\r ")]))
    escaped = draw(st.booleans())

    def written(value: object) -> str:
        return json.dumps(value, ensure_ascii=escaped)

    inner = "{" + comma.join(f"{written(key)}{colon}{written(value)}" for key, value in consent) + "}"
    outer = [
        f"{written(key)}{colon}{inner if key == 'consent' and isinstance(value, dict) and value else written(value)}"
        for key, value in draw(st.permutations(row))
    ]
    return "{" + comma.join(outer) + "}"


@settings(max_examples=400)
@given(row_texts())
def test_quick_reader_answers_only_what_the_strict_one_does(text: str) -> None:
    answered, fields = quick_fields(text)
    if answered:
        assert fields == strict_fields(text)


def test_quick_reader_answers_for_the_ordinary_row_and_not_for_the_odd_one() -> None:
    assert quick_fields(GOOD) == (True, strict_fields(GOOD))
    assert quick_fields(compact(good_row(consent=None)))[0]
    assert quick_fields(compact(good_row(consent=MISSING)))[0]
    assert not quick_fields(raw('"latencyMs":1'))[0]
    assert not quick_fields(raw('"outcome":"answered"'))[0]
    assert not quick_fields(GOOD.replace("picture", "\\u0070icture"))[0]
    assert strict_fields(GOOD) is not None


@settings(max_examples=300)
@given(st.from_regex(r"\A20[0-9]{2}-[0-3][0-9]-[0-4][0-9][Tt ][0-3][0-9]:[0-9]{2}:[0-9]{2}[.,:][0-9_+]{3}[Zz0]\Z"))
def test_quick_instant_is_the_instant(text: str) -> None:
    assert quick_instant_ms(text) == instant_ms(text)
