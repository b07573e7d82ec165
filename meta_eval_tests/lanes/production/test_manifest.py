"""Stage 4: blank labels from an export, and not a word of a question in them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from meta_eval.evidence.canonical import canonical_bytes, receipt
from meta_eval.lanes.production.manifest import labels_worksheet
from meta_eval_tests.lanes.production.broken import Breaks, places, whole
from meta_eval_tests.valid_world import World, blockers, deep

BREAKS = Breaks()
CASE = "export.cases[]"


def test_a_valid_export_is_prepared_in_ascending_order_with_every_label_blank() -> None:
    world = World()
    prepared = world.prepared()
    assert (prepared["status"], blockers(prepared)) == ("ready", set())
    cases = prepared["result"]["cases"]
    assert [case["caseId"] for case in cases] == sorted(world.case_id(n) for n in range(60))
    assert {(case["shouldRefuse"], case["relevantClaimIds"]) for case in cases} == {(None, None)}


def test_a_question_becomes_the_digest_and_length_of_its_normalised_text() -> None:
    world = World()
    export = world.export()
    export["cases"][0]["question"] = "  WHO  painted the “Café” ？！ "
    case = next(
        entry for entry in world.prepared(export)["replay"]["export"]["cases"] if entry["caseId"] == world.case_id(0)
    )
    # By hand: NFKC, case folded, white space runs to one space, trimmed, trailing marks removed.
    normalised = "who painted the “café”"
    assert case["questionSha256"] == hashlib.sha256(normalised.encode()).hexdigest()
    assert case["normalizedLength"] == 22
    assert set(case) == {"caseId", "questionSha256", "normalizedLength"}


def test_no_question_is_echoed() -> None:
    text = json.dumps([World().prepared(), labels_worksheet(World().prepared())])
    assert "story of object" not in text


def test_the_worksheet_is_bound_to_the_export_and_to_the_artifact() -> None:
    world, export = World(), World().export()
    prepared = world.prepared(export)
    sheet = labels_worksheet(prepared)
    assert sheet["exportSha256"] == receipt(canonical_bytes(export))
    assert sheet["preparedManifestDigest"] == prepared["digest"]
    assert set(sheet["approval"].values()) == {None}
    assert sheet["frozenAt"] is None


@pytest.mark.parametrize(
    ("cases", "expected"), [(49, {("too-few-cases", "export.cases", 49)}), (50, set()), (51, set())]
)
def test_at_least_50_cases_are_prepared(cases: int, expected: set[Any]) -> None:
    assert blockers(World(cases=cases).prepared()) == expected


@BREAKS(("repeated", "exported_cases.case_id", 2))
def two_cases_share_an_id(export: Any) -> None:
    export["cases"][0]["caseId"] = export["cases"][1]["caseId"]


@BREAKS(("repeated", "exported_cases.question_sha256", 2))
def two_questions_differ_in_case_and_space_only(export: Any) -> None:
    export["cases"][0]["question"] = "what is the  STORY of object number 1"


@BREAKS(("not-a-case-id", f"{CASE}.caseId", 1))
def a_case_id_is_a_number_to_call(export: Any) -> None:
    export["cases"][0]["caseId"] = "+1 202 555 0123"


@BREAKS(("not-a-case-id", f"{CASE}.caseId", 1))
def a_case_id_is_an_address(export: Any) -> None:
    export["cases"][0]["caseId"] = "visitor@example.org"


@BREAKS(("not-text", f"{CASE}.question", 1))
def a_question_is_an_object(export: Any) -> None:
    export["cases"][0]["question"] = {"text": "Who?"}


@BREAKS(("empty-question", f"{CASE}.question", 1))
def a_question_is_marks_only(export: Any) -> None:
    export["cases"][0]["question"] = " ?! "


@BREAKS(("over-length-question", f"{CASE}.question", 1))
def a_question_has_1001_code_points(export: Any) -> None:
    export["cases"][0]["question"] = "é" * 1001


@BREAKS()
def a_question_has_1000_code_points(export: Any) -> None:
    export["cases"][0]["question"] = "é" * 1000


@BREAKS(("contact-bearing-question", f"{CASE}.question", 2))
def two_questions_hold_contact_details(export: Any) -> None:
    export["cases"][0]["question"] = "Can you write to visitor@example.org about this bowl?"
    export["cases"][1]["question"] = "Please call (202) 555-0123 about the bowl"


@BREAKS(("missing-key", f"{CASE}.question", 1))
def a_question_is_missing(export: Any) -> None:
    del export["cases"][0]["question"]


@BREAKS(("not-an-environment", "export.environment", 1))
def the_environment_is_a_word_of_their_own(export: Any) -> None:
    export["environment"] = "staging"


@BREAKS(("not-version-1", "export.version", 1))
def the_version_is_a_text(export: Any) -> None:
    export["version"] = "1"


@BREAKS(("not-a-list", "export.cases", 1), ("too-few-rows", "exported_cases", 0), ("too-few-cases", "export.cases", 0))
def the_cases_are_an_object(export: Any) -> None:
    export["cases"] = {}


@BREAKS(("not-an-object", f"{CASE}", 1))
def a_case_is_a_question_alone(export: Any) -> None:
    export["cases"][0] = "Who painted this?"


@BREAKS(("url-reserved-name", "export.source", 1))
def the_source_is_a_reserved_host(export: Any) -> None:
    export["source"] = "https://evidence.museum.example/log"


@BREAKS(
    ("not-a-case-id", f"{CASE}.caseId", 1),
    ("empty-question", f"{CASE}.question", 1),
    ("content-field", f"{CASE}", 1),
    ("identifying-field", "export", 1),
)
def four_things_are_wrong_at_once(export: Any) -> None:
    export["cases"][0]["caseId"] = "case-1"
    export["cases"][1]["question"] = ""
    export["cases"][2]["answer"] = "A bowl."
    export["contactEmail"] = "visitor@example.org"


@pytest.mark.parametrize("export", [None, [], "export", 7, {}])
def test_what_is_no_export_is_blocked_and_never_crashes(export: Any) -> None:
    # `prepared(None)` means the valid one, so null is wrapped.
    artifact = World().prepared(export if export is not None else [None])
    assert artifact["status"] == "blocked"
    assert ("too-few-cases", "export.cases", 0) in blockers(artifact)


@pytest.mark.parametrize("at", [at for at, _ in places(whole().export)])
def test_no_key_beyond_the_contract_is_kept_at_any_depth(at: str) -> None:
    export = World().export()
    keys = {"note": "unknown-key", "answer": "content-field", "visitorPhone": "identifying-field"}
    dict(places(export))[at].update(dict.fromkeys(keys, "canary words"))
    artifact = World().prepared(export)
    assert blockers(artifact) == {(code, f"export{at}", 1) for code in keys.values()}
    assert "canary" not in json.dumps(artifact)


def test_a_blocked_export_prepares_no_case_at_all() -> None:
    export = World().export()
    export["cases"][0]["question"] = ""
    assert World().prepared(export)["result"]["cases"] == []


@pytest.mark.parametrize(("edit", "expected"), BREAKS.params)
def test_each_break_is_named_and_nothing_else(edit: Any, expected: set[Any]) -> None:
    export = deep(whole().export)
    edit(export)
    artifact = World().prepared(export)
    assert blockers(artifact) == expected
    assert artifact["status"] == ("blocked" if expected else "ready")
    for canary in ("visitor", "555-0123", "Who painted", "A bowl"):
        assert canary not in json.dumps(artifact["replay"])
