"""The public export: everything that may be read, nothing that may not, and every count again."""

from __future__ import annotations

from typing import Any

import pytest

from meta_eval.evidence import replay
from meta_eval.lanes.usefulness.publication import pseudonyms
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.studies import REBUILDS
from meta_eval_tests.lanes.usefulness.world import NONCE, found, whole

CODES = (*people.AUTHORS.values(), *people.SCORERS, people.RUNNER, people.ADJUDICATOR, "OWN-5N", "IMP-6T")


def test_an_export_recounts_what_acceptance_counted() -> None:
    export, accepted = whole().made["publish"], whole().made["accept"]
    for name in ("sets", "combined", "met", "missed", "agreement", "adjudicated"):
        assert export["result"][name] == accepted["result"][name]
    for role in ("baseline", "candidate"):
        assert export["result"]["defects"][role] == accepted["result"]["arms"][role]["defects"]
    assert replay.verified(export, REBUILDS) == export


def test_an_export_keeps_both_judgments_and_every_rationale() -> None:
    questions = whole().made["publish"]["replay"]["questions"]
    assert len(questions) == 120
    deliveries = [delivery for entry in questions for delivery in entry["deliveries"].values()]
    assert all(sorted(delivery["judgments"]) == ["ScorerA", "ScorerB"] for delivery in deliveries)
    decided = [delivery["adjudication"] for delivery in deliveries if delivery["adjudication"]]
    assert len(decided) == 10
    assert all(decision["rationale"] for decision in decided)
    assert all(entry["oracle"]["sources"][0]["passage"] for entry in questions)


def test_an_export_holds_no_code_cost_nonce_or_label() -> None:
    text = str(whole().made["publish"])
    for word in (*CODES, NONCE, "0.0125", "records-lookup", "assist-4.1", "'label'", "'cost'", "'latencyMs'", "/home/"):
        assert word not in text


def test_pseudonyms_are_stable_and_follow_from_the_nonce_alone() -> None:
    codes = [f"AUT-{number}" for number in range(2)]
    made = {nonce: pseudonyms(codes, "Reviewer", nonce) for nonce in (f"{n:02x}" * 32 for n in range(40))}
    assert all(pseudonyms(codes[::-1], "Reviewer", nonce) == names for nonce, names in made.items())
    orders = {tuple(names[code] for code in codes) for names in made.values()}
    assert orders == {("ReviewerA", "ReviewerB"), ("ReviewerB", "ReviewerA")}


def edit_packet(**changes: Any) -> dict[str, Any]:
    packets = {set_id: whole().copy(set_id) for set_id in ("set-a", "set-b")}
    packets["set-b"]["publication"] |= changes.pop("publication", {})
    packets["set-a"]["questions"][0] |= changes
    return packets


def told(text: str) -> dict[str, Any]:
    document = whole().copy("runs")
    document["runs"][0]["answer"] = text
    return document


REFUSED: dict[str, tuple[Any, tuple[str, str, int]]] = {
    "no permission": (
        lambda: {"packets": edit_packet(publication={"permitted": False})},
        ("publication-not-permitted", "set-b", 1),
    ),
    "not consumed": (
        lambda: {"state": whole().state() | {"opened": {"set-b": {}}}},
        ("packet-not-consumed", "set-a", 1),
    ),
    "not on record": (
        lambda: {"state": whole().state("accept")},
        ("not-accepted-on-record", "acceptance", 1),
    ),
    "another document": (lambda: {"unfaithful": ["scores"]}, ("document-differs-from-artifact", "scores", 1)),
    "an address in a text": (
        lambda: {"runs": told("Write to visitor@example.org")},
        ("contact-detail-in-text", "export", 1),
    ),
    "a code in a text": (lambda: {"runs": told("SCO-1P said so")}, ("role-code-in-text", "export", 1)),
    "a path in a text": (lambda: {"runs": told("see /home/someone/notes")}, ("machine-path-in-text", "export", 1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_export_is_named_and_holds_no_text(name: str) -> None:
    given, expected = REFUSED[name]
    made = whole().published(**given())
    assert found(made) == {expected}
    assert made["replay"]["questions"] == []
    assert "invented amber" not in str(made)


def test_a_failed_study_may_be_published_as_failed() -> None:
    export = whole("short-of-41").made["publish"]
    assert (export["status"], export["result"]["missed"]) == ("ready", ["leastUseful:set-a"])
