"""The identifier screen: what it must find, what a museum must be able to say, its keys, its codes, its speed.

All details are invented: reserved names (RFC 2606), numbers kept for fiction, documentation addresses and the
published test numbers of cards and accounts.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence import identifiers
from meta_eval.evidence.identifiers import (
    CONTACT_RULES,
    contact_rule,
    content_key,
    identifying_key,
    is_code,
    may_hold_contact,
    specified_contact_rule,
    urls_carry_contact,
)
from meta_eval.lanes.production.query_log.questions import may_hold_in_ascii

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data folder is absent")

FOUND = {
    "url-user-info": ["https://user:pw@www.metmuseum.org/", "see ftp://anonymous@files.example/"],
    "e-mail": [
        "Please write to guest@xn--bcher-kva.example",
        "Please write to guest@bücher.example",
        "Guest+Tour@EXAMPLE.MUSEUM",
        "mailto:guest@example.org",
        '"the guest"@example.org',
        "guest@localhost",
        "I am guest [at] example [dot] org",
        "guest(at)example(dot)org please",
        "guest { at } example { dot } org",
        "guest AT example DOT org",
        "guest at example [dot] org",
        "guest@example(dot)org",
        "guest @ example.org",
        "guest_at_example.org",
        "guest.@example.org",
        "a link with ?u=guest%40example.org",
        "double: guest%2540example.org",
        "guest&#64;example.org",
        "ｇｕｅｓｔ＠ｅｘａｍｐｌｅ．ｏｒｇ",
        "gu\u200best\u2060@exam\u00adple.org",
        "guest@example。org",
    ],
    "ip-address": [
        *("192.0.2.1", "198.51.100.7", "10.0.0.1", "the host is 127.0.0.1.", "192.168.001.001"),
        "203.0.113.9/24",
        *("my IP is 94.198.2.7", "ping 94.198.2.7", "client_ip=94.198.2.7", "48.90.248.226", "１９２.０.２.１"),
        *("2001:db8::1", "is it ::1?", "fe80::1%eth0", "::ffff:192.0.2.1", "2001:db8:0:0:0:0:0:1"),
    ],
    "iban": [
        *("GB33 BUKB 2020 1555 5555 55", "de89370400440532013000", "pay NL91-ABNA-0417-1643-00 now"),
        "after a code: AB12 DE89 3704 0044 0532 0130 00",
    ],
    "card-number": ["4111 1111 1111 1111", "5555-5555-5555-4444 12/29", "3782 822463 10005", "card 6011111111111117"],
    "national-id": [
        *("078-05-1120", "my SSN is 078 05 1120", "social security: 078051120"),
        "QQ 12 34 56 C is no prefix; AB 12 34 56 C",
        *("passport number 123456789", "219099999 is my SSN"),
    ],
    "phone": [
        *("Call me at (202) 555-0123 about the vase", "202.555.0123", "202-555-0123", "202 555 0123"),
        "1-202-555-0123",
        *("my number is 202.555.0123", "+44 20 7946 0123", "ring 020 7946 0123", "020 7946 0123"),
        "07700 900123",
        *("mon numéro 01 99 00 12 34", "tel:+12025550123", "call 2025550123", "+1 (202) 555 0123 ext. 4"),
        *("fax 00 44 20 7946 0123", "+31 20 794 0123", "WhatsApp 44 20 7946 0123", "ring 555-0123"),
        *("07700900123", "02079460123", "llámame al 600 123 456"),
        *("555-0123 is my phone", "Tel. 45.33.52.22.11", "5550123 (mobile)", "ｃａｌｌ ２０２５５５０１２３"),
        *("call ٢٠٢ ٥٥٥ ٠١٢٣", "+44–20–7946–0123"),
    ],
    "postal-address": [
        *("Send it to 12 Example Street", "Who lives at 10 Invented Close?", "221B Example Road"),
        "P.O. Box 12",
        *("Musterstraße 5", "an der Beispielgasse 17a", "Voorbeeldgracht 263", "ul. Przykładowa 8"),
        "Rua do Exemplo 46",
        *("12 rue de l'Exemple", "PSC 1234, Box 567", "FPO AE 09499", "Springfield, IL 62701", "ZZ1A 1AA"),
        *("1668 Example Avenue", "Minta utca 12.", "the corner of 14 Sample and Pattern", "Apt. 12"),
        "Am Beispiel 5, 10115 Musterstadt",
    ],
    "social-handle": [
        *("Who is @rijksmuseum on social media?", "my instagram is invented_guest"),
        *("telegram: invented_guest", "ig: invented_guest", "snapchat invented_guest"),
        *("https://instagram.com/invented_guest", "find t.me/invented_guest", "＠invented_guest"),
    ],
}  # fmt: skip

MUSEUM_LANGUAGE = [
    # Accession and inventory numbers.
    *("What is object 2009.20.118?", "Who gave 1985.20.23-24 to the museum?", "Show me 37.11 and 27.474A"),
    *("What is W.854?", "Is 2007.51.21.29 on view?", "06.16.2", "Is 94.198.2.7 from 1894?"),
    "82.3.1.6 or 56.55.7.147?",
    *("92.143.2-.10", "89.28.382.13", "06.16.2.1", "1989.281.123a, b", "1.2.840.10008.1.2", "SK-A-3262"),
    "RF 2007-1234",
    *("Inv. no. 1972-1234-0001", "BM 1867,0508.962", "Is the object number 1234567?"),
    "hosted-eu-20260812-09",
    *("Call number ND653.R4 A12", "call no. 759.9492 V35", "Call number 1234567", "OMB No. 1545-0008"),
    # Years, ranges, dates, instants, epochs, times.
    *("What was made in 1889-1890?", "1883–1885", "Open from 16/04/2010 to 30/09/2010?", "c. 1700-1750"),
    "300 BC to 200 AD",
    *("2026-11-30T19:00:00.000Z", "Log time 1747731000", "1747731000000", "open 10:00-17:00?"),
    *("12:30:45", "July 4, 1776"),
    *("In 1883 Wall Street crashed", "Boulevard des Capucines 1873", "Who painted rue Mosnier in 1878?"),
    # Books, sizes, places, versions, amounts.
    *("Is ISBN 978-0-306-40615-7 in the shop?", "ISBN 0306406152", "0-306-40615-2", "9780306406157"),
    "ISSN 0317-8471",
    *("Size 120.5 x 90.25 x 30 cm", "Is it 19 1/4 × 14 1/4 in.?"),
    "Latitude 52.3599976 longitude 4.8852188",
    *("48.8606° N, 2.3376° E", "Version 4.4.2 of the app", "version 4.4.2.1"),
    *("sold for $1,234,567 in 1990", "10,000 years"),
    # Names, titles and signs.
    "Rue Transnonain 15 April 1834",
    *("Did she live in Delft 43 years?", "Was it sent to Venice in 1895?", "How many live in Florence 500 BC?"),
    *("When is Sir John A. Macdonald Day?", "Who was Vincent van Gogh?"),
    'What does @ mean in "oil @ canvas"?',
    *("36 Views of Mount Fuji", "Is Vollard Suite 12 famous?", "What is located at gallery 12?"),
    "Where is 5th Avenue?",
    *("a polka dot dress at the ball", "Is there a tour at metmuseum.org?", "Highway 61 poster"),
    "meet me at 5 pm",
    *("https://www.metmuseum.org/art/collection/search/436535", "std::vector in the model"),
    "What is 100% cotton & silk?",
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in FOUND.items() for text in texts])
def test_a_contact_detail_is_found_by_its_rule(rule: str, text: str) -> None:
    assert contact_rule(text) == rule
    assert may_hold_contact(text)


@pytest.mark.parametrize("text", MUSEUM_LANGUAGE)
def test_museum_language_passes(text: str) -> None:
    assert contact_rule(text) is None


def test_every_rule_has_a_case() -> None:
    assert set(FOUND) == set(CONTACT_RULES)


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1112", "GB33 BUKB 2020 1555 5555 56", "000-12-3456", "666-12-3456", "256.0.2.1"]
)
def test_a_number_whose_check_fails_is_no_detail(text: str) -> None:
    assert contact_rule(text) is None


# --- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        *("userEmail", "user_email", "USER-EMAIL", "e-mail", "email2", "ip", "ip_address", "IPAddress"),
        "clientIp",
        *(
            "ipaddress",
            "firstname",
            "first name",
            "fullName",
            "user.name",
            "nickname",
            "telephone",
            "mobilePhone",
            "fax",
        ),
        *(
            "postcode",
            "postal_code",
            "zipCode",
            "street1",
            "ssn",
            "iban",
            "socialHandle",
            "contact",
            "ｅｍａｉｌ",
            "NAME",
        ),
    ],
)
def test_an_identifying_key_is_known_in_every_spelling(key: str) -> None:
    assert identifying_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "prompt",
        "systemPrompt",
        "question_text",
        "final-answer",
        "rawOutput",
        "messages",
        "ANSWER",
        "completion",
    ],
)
def test_a_content_key_is_known_in_every_spelling(key: str) -> None:
    assert content_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *("shipping", "nameless", "description", "unanswered", "zipper", "handler", "telescope", "tip"),
        "filename",
        *("caseId", "traceSha256", "observedAt", "modelVersion", "latencyMs", "evidenceUrl", "claimId"),
        *("context", ""),
    ],
)
def test_words_are_matched_whole(key: str) -> None:
    assert not identifying_key(key)
    assert not content_key(key)


# --- codes and URLs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["REV-7Q2K", "OP-1", "A12", "X" * 40, "CASE-2007"])
def test_a_pseudonym_is_a_code(value: str) -> None:
    assert is_code(value)


@pytest.mark.parametrize(
    "value",
    [
        *("A1", "X" * 41, "123", "---", "rev-7q2k", "REV 7Q2K", "ＲEV-1", "REV-7Q2K\n", "É12", "", None, 7, ["R-1"]),
        *("A-078-05-1120", "REV-020-7946-0123", "NN-202-555-0123", "CALL-2025550123"),
        "GB33BUKB20201555555555",
    ],
)
def test_what_could_reach_a_person_is_no_code(value: object) -> None:
    assert not is_code(value)


@pytest.mark.parametrize(
    ("url", "carries"),
    [
        ("https://www.metmuseum.org/art/collection/search/436535", False),
        ("https://www.metmuseum.org/@collection", False),
        ("https://www.metmuseum.org/?u=guest@example.org", True),
        ("https://www.metmuseum.org/?u=guest%40example.org", True),
        ("https://www.metmuseum.org/guest%2540example.org/", True),
        ("https://www.metmuseum.org/#guest@example.org", True),
        ("https://www.metmuseum.org/go?to=https%3A%2F%2Fu%3Ap%40museum.example%2F", True),
        ("https://[::1/guest@example.org", True),
    ],
)
def test_a_url_that_carries_a_contact_is_seen(url: str, carries: bool) -> None:
    assert urls_carry_contact(url) is carries


# --- properties -----------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *("@", ".", " ", "-", "+", "(", ")", ":", "::", "/", "at", "dot", "guest", "org", "call"),
        *("suite", "street"),
        *("rue", "0", "1", "20", "202", "555", "0123", "1883", "%40", "&#64;", "é", "＠", "\u200b", "١"),
        *("insta", "ı", "my", "is"),
    ]
)
_TEXTS = st.one_of(st.text(), st.lists(_PIECES, max_size=14).map("".join), st.lists(_PIECES, max_size=14).map(" ".join))


@given(_TEXTS)
@settings(deadline=None)
def test_nothing_raises_and_the_answer_is_a_rule(text: str) -> None:
    assert contact_rule(text) in (None, *CONTACT_RULES)
    assert identifying_key(text) in (True, False)
    assert urls_carry_contact(text) in (True, False)
    assert is_code(text) in (True, False)


# Words and numbers from which every rule's prefilter can be put wrong: what stands before, after and in its details.
_WORDS = st.sampled_from(
    [
        *("12", "7a,", "1883", "2007", "1883-1885", "1985.20.23-24", "94.198.2.7", "90210", "#4", "(12", "45.33.52.22"),
        *("$1985.20.23", "ISBN 1883-1885", "+1985.20.23", "1985.20.23.24.25", "04.12.1883", "12.345.678", "SW1A 1AA"),
        *("street", "Road", "AVENUE", "Drive", "St", "Wall", "rue", "Via", "piazza", "ul.", "av.", "c/", "λεωφόρος"),
        *(
            "Beispielstr.",
            "Musterweg",
            "utca",
            "u.",
            "TÉR",
            "Allé",
            "STRAẞE",
            "Voorbeeldgracht",
            "apt.",
            "Suite",
            "unit",
        ),
        *("P.O.", "box", "no.", "Postfach", "corner", "of", "live", "at", "send", "it", "to", "moved", "Box", "PSC"),
        *(
            "call",
            "me",
            "tel",
            "passport",
            "SSN",
            "is",
            "my",
            "and",
            "in",
            "May",
            "the",
            "IL",
            "guest",
            "(at)",
            "[dot]",
        ),
        *("dot", "_at_", "://", "@", "::1", "2001:db8::1", "t.me/guest", "ig:", "instagram", "%31", "&#49;", "é", "誰"),
    ]
)
_SPOKEN = st.lists(_WORDS, max_size=9).flatmap(
    lambda words: st.sampled_from([" ", "  ", "", "-", ", ", "\t"]).map(lambda gap: gap.join(words))
)
_EXAMPLES = [*(text for texts in FOUND.values() for text in texts), *MUSEUM_LANGUAGE]


def assert_nothing_is_passed_over(text: str) -> None:
    """Each rule that finds something was let through, and the answer is the one specified."""
    assert contact_rule(text) == specified_contact_rule(text)
    plain = text if text.isascii() else identifiers._plain(text)
    for form in identifiers._forms(plain):
        for _, holds, _, may_hold in identifiers._RULES:
            assert may_hold(form, form.lower()) or not holds(form), (holds.__name__, form)


@given(_TEXTS | _SPOKEN)
@settings(max_examples=1500, deadline=None)
def test_the_quick_way_gives_the_specified_answer(text: str) -> None:
    assert_nothing_is_passed_over(text)


@given(st.sampled_from(_EXAMPLES), st.sampled_from(_EXAMPLES), st.sampled_from([" ", "", ". ", "\n"]), st.booleans())
@settings(max_examples=1000, deadline=None)
def test_the_quick_way_gives_the_specified_answer_for_examples_joined(
    one: str, other: str, gap: str, loud: bool
) -> None:
    text = one + gap + other
    assert_nothing_is_passed_over(text.upper() if loud else text)


@needs_data
def test_the_quick_way_gives_the_specified_answer_on_real_data() -> None:
    texts = [item["query"] for item in _lines("clinc150-queries.jsonl")]
    texts += [item["text"] for item in _lines("pii-sentences.jsonl")]
    for record in _lines("museum-records.jsonl"):
        texts += [value for value in record.values() if isinstance(value, str)]
        texts.append(f"Is {record['accession_number']} from {record['creation_date']}?")
        texts.append(f"Is it {record['item_width']} x {record['item_height']} in.?")
    for text in texts:
        assert_nothing_is_passed_over(text)
    assert_the_one_pattern_is_sound(texts)


def assert_the_one_pattern_is_sound(texts: list[str]) -> None:
    plain = [text for text in texts if text.isascii()]
    found = may_hold_in_ascii(pa.array(plain, pa.string())).to_pylist()
    assert [text for text, may in zip(plain, found, strict=True) if not may and specified_contact_rule(text)] == []


@given(st.lists(_TEXTS | _SPOKEN | st.tuples(_SPOKEN, st.sampled_from(_EXAMPLES)).map(" ".join), max_size=20))
@settings(max_examples=500, deadline=None)
def test_the_one_pattern_for_ascii_texts_is_sound(texts: list[str]) -> None:
    assert_the_one_pattern_is_sound(texts)


def test_the_one_pattern_lets_every_example_through() -> None:
    assert_the_one_pattern_is_sound([*_EXAMPLES, *map(str.upper, _EXAMPLES), *map(str.lower, _EXAMPLES)])
    years = ["What was made in Florence between 1883 and 1885?", "Which prints of 1885 are on show?"]
    assert may_hold_in_ascii(pa.array(years)).to_pylist() == [False, False]


@given(_TEXTS | _SPOKEN)
@settings(max_examples=500, deadline=None)
def test_the_prefilter_is_sound(text: str) -> None:
    assert may_hold_contact(text) or specified_contact_rule(text) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=1000)
def test_a_text_that_skips_the_later_steps_is_one_they_leave_alone(text: str) -> None:
    plain = identifiers._plain(text)
    assert identifiers._INVISIBLE.search(plain) is None
    assert plain == plain.translate(identifiers._DASHES)
    assert not any(char.isdecimal() and not char.isascii() for char in plain)


def test_no_settled_character_would_be_changed_by_a_later_step() -> None:
    settled = [char for char in map(chr, range(sys.maxunicode + 1)) if identifiers._SETTLED.fullmatch(char)]
    assert len(settled) > 30_000
    assert [char for char in settled if ord(char) in identifiers._DASHES or identifiers._INVISIBLE.match(char)] == []
    assert [char for char in settled if char.isdecimal() and not char.isascii()] == []


@given(
    st.sampled_from([text for texts in FOUND.values() for text in texts]),
    st.sampled_from(["", "\u200b", "\ufeff"]),
)
@settings(deadline=None)
def test_what_is_found_is_found_inside_a_sentence_too(detail: str, mark: str) -> None:
    assert contact_rule(f"Dear museum,{mark} {detail}{mark} , thank you") is not None


def test_the_format_characters_are_all_known() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    unknown = [c for c in every if unicodedata.category(c) == "Cf" and not identifiers._INVISIBLE.match(c)]
    # A newer Unicode table may know more; of those this Python knows none may be missing.
    assert unknown == []


# --- time -----------------------------------------------------------------------------------------------------


def _seconds(text: str) -> float:
    # Processor time: the machine may be busy with the other tests.
    start = time.process_time()
    contact_rule(text)
    return time.process_time() - start


@pytest.mark.parametrize(
    "text",
    [
        "a@" + "a." * 20_000 + "!",
        "1.1.1." * 8_000,
        "123-45-" * 8_000,
        "x" + ".a" * 30_000 + "@",
        "(" * 60_000,
        " " * 60_000 + "?",
        "020 7946 012 " * 5_000,
        "+1 202 555 01 " * 5_000,
        "94.198.2.7 " * 6_000,
        "address 1 a " * 6_000,
        "a" + "\u0300\u0316" * 30_000,
        "".join(f"{n} " for n in range(10_000, 20_000)),
        "".join(f"a@x{n}-.9a " for n in range(6_000)),
        "".join(f"0{n % 9 + 1}2 {n:04d} {n * 7 % 10_000:04d}; " for n in range(5_000)),
    ],
    ids=lambda text: text[:12],
)
def test_a_long_text_ends_in_under_a_second(text: str) -> None:
    contact_rule("guest@example.org +44 20 7946 0123")  # loads the libraries
    assert _seconds(text) < 1


def test_no_length_skips_the_scan() -> None:
    assert contact_rule("guest@example.org " + "a " * 50_000) == "e-mail"
    assert contact_rule("a " * 50_000 + "guest@example.org") == "e-mail"


@given(unit=st.lists(_PIECES, min_size=1, max_size=4).map("".join))
@settings(max_examples=60, deadline=None)
def test_time_grows_no_faster_than_the_text(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert _seconds(text) < 1


# --- rates on other people's data -----------------------------------------------------------------------------


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


@needs_data
@pytest.mark.parametrize(
    ("kind", "percent"),
    [
        ("EMAIL_ADDRESS", 97),
        ("PHONE_NUMBER", 97),
        ("IP_ADDRESS", 97),
        ("CREDIT_CARD", 97),
        ("IBAN_CODE", 97),
        ("US_SSN", 97),
        ("STREET_ADDRESS", 85),
    ],
)
def test_sentences_with_a_detail_are_caught(kind: str, percent: int) -> None:
    texts = [item["text"] for item in _lines("pii-sentences.jsonl") if kind in {span["type"] for span in item["spans"]}]
    assert texts
    assert 100 * sum(contact_rule(text) is not None for text in texts) >= percent * len(texts)


@needs_data
def test_questions_about_real_records_pass() -> None:
    questions = []
    for record in _lines("museum-records.jsonl"):
        accession = record["accession_number"]
        questions += [f"When was {accession} acquired?", f"Is {accession} from {record['creation_date']}?"]
        questions.append(f"Is it {record['item_width']} x {record['item_height']} in.?")
    assert len(questions) >= 9_000
    assert 1000 * sum(contact_rule(question) is not None for question in questions) <= len(questions)


@needs_data
def test_real_requests_pass() -> None:
    queries = [item["query"] for item in _lines("clinc150-queries.jsonl")]
    assert 1000 * sum(contact_rule(query) is not None for query in queries) < 3 * len(queries)


def test_the_screen_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the screen opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert contact_rule("guest@network-test.example") == "e-mail"
    assert contact_rule("+44 20 7946 0124") == "phone"
