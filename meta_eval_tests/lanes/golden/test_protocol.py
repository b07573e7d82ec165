"""An answer is read strictly: one line, one object, nothing that two readers could take in two ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.lanes.golden.protocol import ERROR, FAULTS, Given, read_answer

CLAIM = {"claimId": "a.maker", "citations": ["https://golden.example/records/a"]}


def answer(**fields: Any) -> dict[str, Any]:
    return {"refused": False, "claims": [CLAIM], "latencyMs": 12.5} | fields


def said(value: Any) -> Given:
    return read_answer(json.dumps(value).encode() + b"\n", "p-01")


def test_an_answer_and_a_refusal() -> None:
    assert said(answer()) == Given("answered", None, ("a.maker",), False, 12.5)
    assert said(answer(refused=True, claims=[])) == Given("refused", None, (), False, 12.5)
    assert said(answer(promptId="p-01")).echoed
    assert said(answer(claims=[CLAIM | {"citations": []}])).uncited


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"garbage\n", "not-json"),
        (b"\xff\xfe{}\n", "not-json"),
        (b'{"refused":true,"refused":false,"claims":[],"latencyMs":1}\n', "not-json"),
        (b'{"refused":true,"claims":[],"latencyMs":NaN}\n', "not-json"),
        (b'{"refused":true,"claims":[],"latencyMs":1} {"refused":true}\n', "not-json"),
        (b"[]\n", "not-an-answer"),
        (b"{}\n", "not-an-answer"),
    ],
)
def test_a_line_that_is_no_answer(line: bytes, fault: str) -> None:
    assert read_answer(line, "p-01") == Given(ERROR, fault)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"refused": "false"}, "not-an-answer"),
        ({"refused": 0}, "not-an-answer"),
        ({"text": "Twice as much"}, "not-an-answer"),
        ({"promptId": "p-02"}, "out-of-order"),
        ({"promptId": None}, "out-of-order"),
        ({"latencyMs": -1}, "not-a-latency"),
        ({"latencyMs": True}, "not-a-latency"),
        ({"latencyMs": "12"}, "not-a-latency"),
        ({"latencyMs": 1e12}, "not-a-latency"),
        ({"claims": {}}, "not-a-claim"),
        ({"claims": ["a.maker"]}, "not-a-claim"),
        ({"claims": [{"claimId": "a.maker"}]}, "not-a-claim"),
        ({"claims": [CLAIM | {"claimId": "a maker of note"}]}, "not-a-claim"),
        ({"claims": [CLAIM | {"citations": "https://golden.example"}]}, "not-a-claim"),
        ({"claims": [CLAIM | {"citations": [""]}]}, "not-a-claim"),
        ({"claims": [CLAIM | {"quote": "x"}]}, "not-a-claim"),
        ({"claims": [CLAIM, CLAIM]}, "repeated-claim"),
        ({"refused": True}, "refusal-with-claims"),
        ({"claims": []}, "answer-without-claims"),
    ],
)
def test_an_answer_of_another_shape(fields: dict[str, Any], fault: str) -> None:
    assert said(answer(**fields)) == Given(ERROR, fault)


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_no_line_at_all_breaks_the_reader(line: bytes) -> None:
    given_ = read_answer(line, "p-01")
    assert given_.outcome != ERROR or given_.fault in FAULTS
