"""Canonical JSON is RFC 8785's, and the strict reader refuses what two readers could understand in two ways."""

from __future__ import annotations

import hashlib
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.evidence.canonical import canonical_bytes, digest, file_receipt, parse_document, read_document, receipt
from meta_eval.evidence.errors import InputError

# RFC 8785, section 3.2.2: the input of its worked example, and section 3.2.4: its bytes in hexadecimal.
RFC_INPUT = rb"""{
  "numbers": [333333333.33333329, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
RFC_BYTES = bytes.fromhex(
    "7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72"
    "75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a"
    "5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31"
    "65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37"
    "5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30"
    "30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d"
)

# RFC 8785, section 3.2.3: keys in the order of their UTF-16 code units.
RFC_KEYS = (
    rb'{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",'
    rb'"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}'
)
RFC_KEY_ORDER = [
    "Carriage Return",
    "One",
    "Control",
    "Latin Small Letter O With Diaeresis",
    "Euro Sign",
    "Emoji: Grinning Face",
    "Hebrew Letter Dalet With Dagesh",
]

# RFC 8785, appendix B: IEEE 754 bits and the text that ECMAScript gives them.
RFC_NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


def parsed(data: bytes) -> Any:
    return parse_document(data, source="a file")


def test_the_worked_example_of_the_rfc_has_the_bytes_of_the_rfc() -> None:
    assert canonical_bytes(parsed(RFC_INPUT)) == RFC_BYTES


def test_keys_are_in_the_order_of_the_rfc() -> None:
    assert list(json.loads(canonical_bytes(parsed(RFC_KEYS))).values()) == RFC_KEY_ORDER


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS)
def test_numbers_are_written_as_the_rfc_writes_them(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_bytes(value).decode() == text


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_what_is_no_number_in_the_rfc_has_no_canonical_form(bits: str) -> None:
    with pytest.raises(ValueError, match="canonical"):
        canonical_bytes(struct.unpack(">d", bytes.fromhex(bits))[0])


def test_d1_numbers_of_one_value_have_one_text() -> None:
    text = b"[10.0,-0.0,1e-7,1e20,1e21,5e-324,0.30000000000000004,3.50]"
    expected = b"[10,0,1e-7,100000000000000000000,1e+21,5e-324,0.30000000000000004,3.5]"
    assert canonical_bytes(parsed(text)) == expected


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (b'{"x":1}', b'{"x":1.0}', True),
        (b'{"x":1}', b'{"x":true}', False),
        (b'{"x":0}', b'{"x":false}', False),
        (b'{"x":null}', b"{}", False),
        (b'{"b":1,"a":{"d":2,"c":3}}', b'{ "a" : {"c":3,"d":2}, "b" : 1 }', True),
        (rb'{"x":"caf\u00e9 \/ \u2028"}', '{"x":"café / \u2028"}'.encode(), True),
        ('{"x":"café"}'.encode(), '{"x":"cafe\u0301"}'.encode(), False),
        (b"[1,2]", b"[2,1]", False),
        (b'"1"', b"1", False),
        (b'"a"', rb'"a\u0000b"', False),
    ],
)
def test_d1_equal_values_and_only_they_have_equal_digests(one: bytes, other: bytes, equal: bool) -> None:
    assert (digest(parsed(one)) == digest(parsed(other))) is equal


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-(2**53) + 1, 2**53 - 1, allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


ANY_KEYS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=3), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "é", "\ufb33", "\U0001f600"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(ANY_KEYS)
def test_the_quick_writer_and_the_plain_one_write_the_same_bytes_or_neither_does(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        with pytest.raises(ValueError, match="canonical"):
            canonical_bytes(value)
    else:
        assert canonical_bytes(value) == expected


def test_both_writers_escape_every_character_alike() -> None:
    for start in range(0, 0x110000, 0x400):
        text = "".join(map(chr, range(start, start + 0x400)))
        if not "\ud800" <= text[0] <= "\udfff":
            assert canonical_bytes([text]) == rfc8785.dumps([text])


@pytest.mark.parametrize("value", [{1: 2}, {None: 1}, b"a", {1, 2}, object(), struct, 2**53, [-(2**53)], {"a": b""}])
def test_what_is_no_json_value_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(ValueError, match="canonical"):
        canonical_bytes(value)


def shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {key: shuffled(inner, random) for key, inner in items}
    return [shuffled(inner, random) for inner in value] if isinstance(value, list) else value


@given(JSON, st.randoms(use_true_random=False), st.booleans(), st.integers(0, 4))
def test_white_space_key_order_and_escapes_never_change_a_digest(
    value: Any, random: Any, ascii_only: bool, indent: int
) -> None:
    text = json.dumps(shuffled(value, random), ensure_ascii=ascii_only, indent=indent or None)
    assert digest(parsed(text.encode())) == digest(value)
    assert canonical_bytes(parsed(canonical_bytes(value))) == canonical_bytes(value)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is no number, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) in (int, float) and type(other) in (int, float) and one == other) or (
        type(one) is type(other) and one == other
    )


@given(JSON, JSON)
def test_a_changed_value_changes_the_digest(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) is same(one, other)


def test_a_receipt_is_of_bytes_and_a_digest_of_a_value(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'{ "a": 1 }\n')
    value, found = read_document(file)
    assert found == file_receipt(file) == receipt(b'{ "a": 1 }\n') == hashlib.sha256(b'{ "a": 1 }\n').hexdigest()
    assert digest(value) == hashlib.sha256(b'{"a":1}').hexdigest() != found


# Each fault with the byte at which it is, counted by hand from 0.
FAULTS: list[tuple[str, bytes, str, int]] = [
    ("nothing", b"", "empty", 0),
    ("white space only", b" \n\t", "empty", 0),
    ("cut in an array", b"[1,2", "truncated", 4),
    ("cut in a string", b'["abc', "truncated", 1),
    ("cut in a key", b'{"a":1,"b', "truncated", 7),
    ("two values", b"[1] [2]", "not JSON", 4),
    ("a trailing comma", b'{"a":1,}', "not JSON", 7),
    ("a single quote", b"{'a':1}", "not JSON", 1),
    ("a comment", b"[1, // one\n2]", "not JSON", 4),
    ("after two-byte text", '["é", x]'.encode(), "not JSON", 7),
    ("not UTF-8", b'["a\xff"]', "not UTF-8", 3),
    ("UTF-16", '{"a":1}'.encode("utf-16"), "not UTF-8", 0),
    ("a repeated key", b'{"a":1,"a":2}', "repeated key", 7),
    ("a repeated key in two spellings", rb'{"a":1,"\u0061":2}', "repeated key", 7),
    ("a repeated key, nested", b'[{"b":1},{"a":{"x":1,"y":2,"x":3}}]', "repeated key", 27),
    ("NaN", b'{"a": NaN}', "NaN", 6),
    ("Infinity", b"[Infinity]", "NaN", 1),
    ("minus Infinity", b"[1, -Infinity]", "NaN", 4),
    ("a number beyond doubles", b"[1e400]", "NaN", 1),
    ("2^53", b"[1, 9007199254740992]", "integer beyond", 4),
    ("minus 2^53", b"[-9007199254740992]", "integer beyond", 1),
    ("a lone high surrogate", rb'["ok", "\ud83d"]', "surrogate", 7),
    ("a lone low surrogate", rb'["\ude00 x"]', "surrogate", 1),
    ("a lone surrogate in a key", rb'{"\ud800":1}', "surrogate", 1),
    ("65 levels", b"[" * 65 + b"]" * 65, "nested deeper", 64),
]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
@pytest.mark.parametrize(
    ("data", "rule", "offset"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_the_strict_reader_names_the_rule_and_the_byte(data: bytes, rule: str, offset: int, mark: bytes) -> None:
    with pytest.raises(InputError) as caught:
        parsed(mark + data)
    assert rule in caught.value.rule
    assert caught.value.offset == (offset + len(mark) if data.strip() else 0)


@pytest.mark.parametrize(
    "data",
    [b"[9007199254740991,-9007199254740991]", rb'["\ud83d\ude00"]', b"[" * 64 + b"]" * 64, b'{"a":{"a":1}}', b"null"],
)
def test_what_lies_just_within_the_rules_is_read(data: bytes) -> None:
    assert parsed(data) == json.loads(data)


def test_an_error_never_quotes_the_document() -> None:
    for data in (b'{"canary":1,"canary":2}', b'["canary\xff"]', b'["canary", NaN]', b'{"canary'):
        with pytest.raises(InputError) as caught:
            parsed(data)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b"[" + b"9" * 5_000 + b"]", b"9" * 1_000_000],
    ids=["brackets", "objects", "closed", "5,000 digits", "a million digits"],
)
def test_d4_giant_documents_are_refused_at_once(data: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(InputError):
        parsed(data)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(("name", "rule"), [("absent.json", "no such file"), (".", "a folder")])
def test_a_file_that_cannot_be_had_is_an_input_error(tmp_path: Path, name: str, rule: str) -> None:
    for reader in (read_document, file_receipt):
        with pytest.raises(InputError, match=rule):
            reader(tmp_path / name)


@pytest.mark.parametrize("value", [2**53, -(2**53), "\ud800", {"\ud800": 1}, float("nan"), {1: 2}, object()])
def test_a_value_beyond_json_has_no_digest(value: Any) -> None:
    with pytest.raises(ValueError, match="canonical"):
        digest(value)
