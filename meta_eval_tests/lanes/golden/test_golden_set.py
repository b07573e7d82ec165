"""The committed golden set is what its makers make, and every expected answer is what its records state."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.canonical import canonical_bytes
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.golden import steps
from meta_eval.lanes.golden.answerer import BuiltInAnswerer
from meta_eval.lanes.golden.invented_records import invented_records
from meta_eval.lanes.golden.prompts import KINDS, derived_prompts, read_prompts
from meta_eval.lanes.golden.seed_records import FIELDS, SeedRecord, jsonl, read_records

MUSEUM = Path(__file__).parents[4] / "shared" / "data" / "museum-records.jsonl"


def prompts() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(steps.PROMPTS.read_bytes())["prompts"]
    return made


def test_the_records_are_the_invented_ones_to_the_byte() -> None:
    assert steps.RECORDS.read_bytes() == jsonl(invented_records())
    records = read_records(steps.RECORDS)
    assert len(records) == 220
    assert all(record.record_id.startswith("invented-") for record in records)
    assert len({record.number for record in records}) == 220


def test_the_prompts_are_made_from_the_records() -> None:
    assert derived_prompts(read_records(steps.RECORDS)) == json.loads(steps.PROMPTS.read_bytes())
    assert Counter(prompt["kind"] for prompt in prompts()) == KINDS
    assert sum(KINDS.values()) == 120
    assert len({prompt["question"] for prompt in prompts()}) == 120


def test_each_expected_claim_is_a_field_of_a_record_that_the_question_is_about() -> None:
    raw = {record["id"]: record for record in invented_records()}
    for prompt in prompts():
        for claim in prompt["expected"]["claimIds"]:
            record_id, _, field = claim.rpartition(".")
            record = raw[record_id]
            assert record[FIELDS[field]]
            named = record["accession_number"] if prompt["kind"] == "museum-number" else record["title"]
            assert named in prompt["question"]


def test_what_is_to_be_refused_has_nothing_to_be_answered_from() -> None:
    raw = invented_records()
    titles, numbers = {record["title"] for record in raw}, {record["accession_number"] for record in raw}
    for prompt in prompts():
        if prompt["kind"] == "near-miss":
            quoted, number = re.search("“(.+)”", prompt["question"]), re.search(r"[\d.]+\d", prompt["question"])
            assert quoted is None or quoted.group(1) not in titles
            assert number is None or number.group() not in numbers
        if prompt["kind"] in ("near-miss", "refusal", "out-of-scope"):
            assert prompt["expected"] == {"refused": True, "claimIds": []}


def test_an_ambiguous_prompt_expects_the_claim_about_every_object_of_that_title() -> None:
    shared = Counter(record["title"] for record in invented_records())
    for prompt in prompts():
        if prompt["kind"] == "ambiguous":
            (title,) = [title for title in shared if title in prompt["question"] and shared[title] > 1]
            assert len(prompt["expected"]["claimIds"]) == shared[title] == 2


# --- the built-in answerer ----------------------------------------------------------------------------------------


def answers() -> bytes:
    built_in = BuiltInAnswerer(read_records(steps.RECORDS))
    given = [built_in.answer(prompt["question"]) for prompt in prompts()]
    return canonical_bytes([{key: answer[key] for key in ("refused", "claims")} for answer in given])


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_the_built_in_answerer_says_the_same_in_every_process(seed: str) -> None:
    code = (
        "import sys; from meta_eval_tests.lanes.golden.test_golden_set import answers;"
        "sys.stdout.buffer.write(answers())"
    )
    env = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Asia/Kolkata"}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout
    assert told == answers()


def test_the_order_of_the_records_does_not_change_an_answer() -> None:
    records = read_records(steps.RECORDS)
    one, other = BuiltInAnswerer(records), BuiltInAnswerer(records[::-1])
    for prompt in prompts():
        assert one.answer(prompt["question"])["claims"] == other.answer(prompt["question"])["claims"]


def test_the_baseline_is_what_the_built_in_answerer_says_on_this_machine() -> None:
    frozen = {row["promptId"]: row["claimIds"] for row in json.loads(steps.BASELINE.read_bytes())["answers"]}
    built_in = BuiltInAnswerer(read_records(steps.RECORDS))
    for prompt in prompts():
        claims = sorted(claim["claimId"] for claim in built_in.answer(prompt["question"])["claims"])
        assert claims == frozen[prompt["promptId"]]


@pytest.mark.parametrize(
    ("question", "claims"),
    [
        ("Who made “Red Kettle”?", ["a.maker"]),
        ("When was “Blue Kettle” made, and of what?", ["b.made", "b.medium"]),
        ("Which object has the number 12.3.4?", ["a.title"]),
        ("Which object has the number 12.3.5?", []),
        ("Who made “Twin Bowl”?", ["c.maker", "d.maker"]),  # a tie is no reason to keep one of the two quiet
        ("Who made “Green Kettle”?", []),  # half of the title is not enough
        ("Where is “Red Kettle”?", []),  # no record states it
        ("What is “Red Kettle” worth?", []),
        ("Who are you?", []),
        ("", []),
        ("““”?\x00", []),
    ],
)
def test_what_the_built_in_answerer_does_with_each_kind_of_question(question: str, claims: list[str]) -> None:
    records = [
        SeedRecord("b", "12.3", {"title": "Blue Kettle", "maker": "Two", "made": "1900", "medium": "tin"}),
        SeedRecord("a", "12.3.4", {"title": "Red Kettle", "maker": "One"}),
        SeedRecord("d", None, {"title": "Twin bowl", "maker": "Four"}),
        SeedRecord("c", None, {"title": "Twin Bowl", "maker": "Three"}),
    ]
    answer = BuiltInAnswerer(records).answer(question)
    assert [claim["claimId"] for claim in answer["claims"]] == claims
    assert answer["refused"] is not bool(claims)
    assert all(claim["citations"] for claim in answer["claims"])


@pytest.mark.skipif(not MUSEUM.exists(), reason="the shared data folder is absent")
def test_prompts_can_be_made_from_a_real_collection_and_most_are_met() -> None:
    records = read_records(MUSEUM)
    assert len(records) == 3000
    _, made = read_prompts(derived_prompts(records), "derived")
    built_in = BuiltInAnswerer(records)
    met = sum(
        sorted(claim["claimId"] for claim in built_in.answer(prompt.question)["claims"]) == sorted(prompt.claim_ids)
        for prompt in made
    )
    assert len(made) == 120
    assert 100 <= met < 120, "a baseline, and no perfect one"


# --- records and prompts that cannot be used -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "no record"),
        ("\n \n", "no record"),
        ("{}", "line 1: not a record with an id"),
        ('{"id":"a"}\n[]', "line 2: not a record with an id"),
        ('{"id":"a"}\n{"id":"a"}', "line 2: a repeated record id"),
        ('{"id":"a b"}', "not a record with an id"),
        ('{"id":"a","id":"b"}', "a repeated key"),
        ('{"id":"a"', "truncated"),
        ('{"id":7}', "not a record with an id"),
    ],
)
def test_records_that_cannot_be_used_are_named_by_line_and_rule(tmp_path: Path, text: str, rule: str) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=rule):
        read_records(file)


def test_a_field_of_another_type_is_not_stated(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(
        '{"id":"a","title":["x"],"creators":[{"name":5},{"name":"One"},7],"medium":3,"accession_number":1}\n'
    )
    (record,) = read_records(file)
    assert record == SeedRecord("a", None, {"maker": "One"})


def test_too_few_records_make_no_prompts() -> None:
    with pytest.raises(InputError, match="too few to ask 40 answerable prompts"):
        derived_prompts([SeedRecord("a", "1.2", {"title": "Red Kettle", "maker": "One"})])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"version": 2}, "not-version-1"),
        ({"extra": 1}, "unknown-key"),
        ({"prompts": {}}, "not-a-list"),
        ({"recordsDigest": "x"}, "not-a-sha256"),
        ({"kind": "other"}, "not-a-kind"),
        ({"question": "two\nlines"}, "not-a-question"),
        ({"question": " "}, "not-a-question"),
        ({"promptId": "A B"}, "not-a-prompt-id"),
        ({"expected": {"refused": True, "claimIds": ["a.maker"]}}, "a refusal claims nothing"),
        ({"expected": {"refused": False, "claimIds": []}}, "a refusal claims nothing"),
    ],
)
def test_prompts_that_cannot_be_used_are_named_by_rule(change: dict[str, Any], rule: str) -> None:
    document = json.loads(steps.PROMPTS.read_bytes())
    (document if change.keys() & {"version", "extra", "prompts", "recordsDigest"} else document["prompts"][0]).update(
        change
    )
    with pytest.raises(InputError, match=rule):
        read_prompts(document, "prompts.json")
