"""The declaration: every pair of roles kept apart, arms and counts as the contract says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from meta_eval_tests.lanes.usefulness.world import found, whole

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "author 1": lambda roles: roles["authors"][0],
    "author 2": lambda roles: roles["authors"][1],
    "scorer 1": lambda roles: roles["scorers"][0],
    "scorer 2": lambda roles: roles["scorers"][1],
    "runner": lambda roles: roles["runner"],
    "adjudicator": lambda roles: roles["adjudicator"],
    "owner": lambda roles: roles["owner"],
    "implementer": lambda roles: roles["implementer"],
}


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(HOLDERS, 2)))
def test_no_two_roles_share_a_code(one: str, other: str) -> None:
    document = whole().copy("study")
    HOLDERS[other](document["roles"])["code"] = HOLDERS[one](document["roles"])["code"]
    subject = f"{one.split()[0]} and {other.split()[0]}"
    assert found(whole().declared(document)) == {("role-shared", subject, 1)}


def test_a_good_declaration_is_ready_and_discloses_proxies() -> None:
    made = whole().declared()
    assert (made["status"], made["result"]["agentProxies"], made["evidenceClass"]) == ("ready", 8, "rehearsal")


BREAKS: list[tuple[str, Callable[[Any], Any], set[tuple[str, str, int]]]] = [
    (
        "three authors",
        lambda d: d["roles"]["authors"].append({"setId": "set-c", "code": "AUT-9Z", "kind": "person"}),
        {("not-one-author-a-set", "study.roles.authors", 3)},
    ),
    (
        "one set twice",
        lambda d: d["roles"]["authors"][1].update(setId="set-a"),
        {("set-with-two-authors", "study.roles.authors", 1)},
    ),
    ("one scorer", lambda d: d["roles"]["scorers"].pop(), {("not-two-scorers", "study.roles.scorers", 1)}),
    (
        "a name for a code",
        lambda d: d["roles"]["owner"].update(code="Jan"),
        {("not-a-code", "study.roles.owner.code", 1)},
    ),
    (
        "no kind",
        lambda d: d["roles"]["owner"].update(kind="robot"),
        {("not-person-or-agent-proxy", "study.roles.owner.kind", 1)},
    ),
    (
        "two baselines",
        lambda d: d["arms"][1].update(role="baseline", kind="deterministic"),
        {("not-a-baseline-and-a-candidate", "study.arms", 1)},
    ),
    ("one arm id", lambda d: d["arms"][1].update(armId="records-lookup"), {("arm-repeated", "study.arms", 1)}),
    (
        "a provider as baseline",
        lambda d: d["arms"][0].update(kind="provider"),
        {("baseline-not-deterministic", "study.arms", 1)},
    ),
    ("no corpus", lambda d: d.pop("corpusDigest"), {("missing-key", "study.corpusDigest", 1)}),
    ("an unknown key", lambda d: d.update(note="x"), {("unknown-key", "study", 1)}),
]


@pytest.mark.parametrize(("edit", "expected"), [b[1:] for b in BREAKS], ids=[b[0] for b in BREAKS])
def test_one_broken_thing_is_named(edit: Callable[[Any], Any], expected: set[tuple[str, str, int]]) -> None:
    document = whole().copy("study")
    edit(document)
    assert found(whole().declared(document)) == expected


def test_a_study_is_declared_once() -> None:
    state = whole().state("seal set-a")
    assert found(whole().declared(state=state)) == {("already-declared", "register", 1)}


def test_the_activation_text_is_not_in_the_artifact() -> None:
    assert "no provider keeps" not in str(whole().made["declare"])
