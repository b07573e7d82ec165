"""A whole good study in memory, which each test breaks in one named way.

Everything is invented: the documents are those of the rehearsal's people. `study()` plays every stage once a process;
a test takes copies of documents, edits one, and makes that one stage again from everything that came before it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pytest

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import canonical_bytes, receipt
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.register import Entry, genesis, sealed_entry
from meta_eval.lanes.usefulness import (
    acceptance,
    adjudication,
    blinding,
    budget,
    freeze,
    opening,
    packets,
    publication,
    runs,
    scoring,
    study,
    unblinding,
)
from meta_eval.lanes.usefulness.custody import FileFacts, ledger_name, register_name, state_of
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY, Policy
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.rehearsal.invented import own_objects
from meta_eval.lanes.usefulness.rehearsal.scenarios import SCENARIOS, SETS, Scenario
from meta_eval.lanes.usefulness.stage import Setting

START = instant_ms("2026-11-20T09:00:00.000Z") or 0
HOUR = 3_600_000
NAME = "spring"
KEY = bytes(range(32))
SECRET = bytes(range(7, 39))
NONCE = "5e" * 32


def sha(text: str) -> str:
    return people.sha(text)


def chained(name: str, lines: Sequence[tuple[str, Any]], *, at: int = START) -> list[Entry]:
    """A register's entries."""
    entries: list[Entry] = []
    for number, (event, body) in enumerate(lines, start=1):
        previous = entries[-1]["digest"] if entries else genesis(name)
        entries.append(sealed_entry(seq=number, at_ms=at, event=event, body=body, previous=previous))
    return entries


def facts_of(document: Any, **changes: Any) -> FileFacts:
    """A packet file in good custody, but for the changes."""
    good = {"mode": "0600", "symlink": False, "regular": True, "owned": True, "in_export": False}
    return FileFacts(**{"receipt": receipt(canonical_bytes(document)), **good, **changes})


@dataclass
class World:
    """Documents, what the register holds, and the artifact of each stage."""

    scenario: Scenario
    policy: Policy = CURRENT_POLICY
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    made: dict[str, Artifact] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    documents: dict[str, Any] = field(default_factory=dict)
    ledger: list[Entry] = field(default_factory=list)

    def entries(self, stage: str | None = None) -> list[Entry]:
        """The register before a stage, or at the end."""
        upto = len(self.lines) if stage is None else self.before[stage]
        return chained(register_name(NAME), self.lines[:upto])

    def state(self, stage: str | None = None) -> dict[str, Any]:
        return state_of(self.entries(stage))

    def copy(self, name: str) -> Any:
        """A document's copy, to be broken."""
        return copy.deepcopy(self.documents[name])

    def setting(self) -> Setting:
        return Setting(START + HOUR, NAME, self.policy)

    def record(self, stage: str, artifact: Artifact, *lines: tuple[str, dict[str, Any]]) -> None:
        assert artifact["status"] != "blocked", (stage, artifact["blockers"])
        self.before[stage] = len(self.lines)
        self.made[stage] = artifact
        self.lines += lines

    # Each stage again, from a document in place of the good one.

    def declared(self, document: Any = None, *, state: Any = None) -> Artifact:
        document = self.documents["study"] if document is None else document
        state = state_of([]) if state is None else state
        return study.declare(document, state, receipt=sha("study"), key=KEY, setting=self.setting())

    def sealed(self, set_id: str = "set-a", document: Any = None, **given: Any) -> Artifact:
        document = self.documents[set_id] if document is None else document
        entries = given.get("entries", self.entries(f"seal {set_id}"))
        artifact, _ = packets.seal(
            None if given.get("unread") else document,
            given.get("facts") or facts_of(document),
            given.get("study") or self.made["declare"],
            state_of(entries),
            set_id=set_id,
            registers=[entries, *given.get("others", ())],
            consumed_texts=given.get("texts", {}),
            setting=self.setting(),
        )
        return artifact

    def frozen(self, document: Any = None, *, state: Any = None) -> Artifact:
        return freeze.freeze(
            self.documents["freeze"] if document is None else document,
            self.made["declare"],
            self.state("freeze") if state is None else state,
            receipt=sha("freeze"),
            setting=self.setting(),
        )

    def preflighted(self, ledger: Any = None, *, state: Any = None, frozen: Artifact | None = None) -> Artifact:
        ledger = self.ledger[:1] if ledger is None else ledger
        state = self.state("preflight") if state is None else state
        frozen = frozen or self.made["freeze"]
        return budget.preflight(ledger, self.made["declare"], frozen, state, setting=self.setting())

    def opened(self, set_id: str = "set-a", **given: Any) -> Artifact:
        document = given.get("document", self.documents[set_id])
        facts = given.get("facts") or facts_of(document)
        return opening.open_packet(
            document if facts.receipt == self.made[f"seal {set_id}"]["inputs"]["packet"]["receipt"] else None,
            facts,
            given.get("sealed") or self.made[f"seal {set_id}"],
            self.made["declare"],
            given.get("freeze", self.made["freeze"]),
            given.get("state") or self.state(f"open {set_id}"),
            opener=given.get("opener", people.RUNNER),
            elsewhere=given.get("elsewhere", ()),
            setting=self.setting(),
        )

    def ran(self, document: Any = None, **given: Any) -> Artifact:
        ids = {set_id: [entry["questionId"] for entry in self.documents[set_id]["questions"]] for set_id in SETS}
        openings = given.get("openings") or {set_id: (self.made[f"open {set_id}"], ids[set_id]) for set_id in SETS}
        return runs.record(
            self.documents["runs"] if document is None else document,
            self.made["declare"],
            self.made["freeze"],
            openings,
            given.get("ledger", self.ledger),
            given.get("state") or self.state("record-runs"),
            receipt=sha("runs"),
            key=KEY,
            setting=self.setting(),
        )

    def blinded(self, *, runs_document: Any = None, **given: Any) -> Artifact:
        document = runs_document or self.documents["runs"]
        sheets = given.get("sheets") or {code: self.sheet(code, document) for code in people.SCORERS}
        terms = [term for arm in self.documents["study"]["arms"] for term in arm["identityTerms"]]
        return blinding.blind(
            self.made["declare"],
            given.get("recorded") or self.made["record-runs"],
            sheets,
            given.get("state") or self.state("blind"),
            published=blinding.commitment(self.documents["key"]["key"], NONCE),
            terms=terms,
            setting=self.setting(),
        )

    def sheet(self, code: str, runs_document: Any = None) -> dict[str, Any]:
        opened = {set_id: self.documents[set_id] for set_id in SETS}
        rows = (runs_document or self.documents["runs"])["runs"]
        summary = self.documents["study"]["activation"]["summary"]
        return blinding.sheet(code, NAME, summary, opened, rows, self.documents["key"]["key"])

    def scored(self, number: int = 1, document: Any = None, *, state: Any = None) -> Artifact:
        return scoring.score(
            self.documents[f"scores {number}"] if document is None else document,
            self.made["declare"],
            self.made["blind"],
            self.state(f"score {number}") if state is None else state,
            receipt=sha(f"scores {number}"),
            key=KEY,
            setting=self.setting(),
        )

    def adjudicated(self, document: Any = None, **given: Any) -> Artifact:
        document = self.documents["adjudication"] if document is None else document
        return adjudication.adjudicate(
            document,
            self.made["declare"],
            given.get("scores") or [self.made["score 1"], self.made["score 2"]],
            given.get("state") or self.state("adjudicate"),
            sheet_digest=self.documents["adjudication"]["sheetDigest"],
            receipt=sha("adjudication"),
            key=KEY,
            setting=self.setting(),
        )

    def unblinded(self, key: Any = None, **given: Any) -> Artifact:
        return unblinding.unblind(
            self.documents["key"] if key is None else key,
            self.made["declare"],
            self.made["blind"],
            given.get("adjudicated") or self.made["adjudicate"],
            given.get("state") or self.state("unblind"),
            setting=self.setting(),
        )

    def accepted(self, **given: Any) -> Artifact:
        return acceptance.accept(
            self.made["declare"],
            given.get("runs") or self.made["record-runs"],
            given.get("blind") or self.made["blind"],
            given.get("scores") or [self.made["score 1"], self.made["score 2"]],
            given.get("adjudicated") or self.made["adjudicate"],
            given.get("unblinded") or self.made["unblind"],
            given.get("entries") or self.entries("accept"),
            setting=self.setting(),
        )

    def published(self, **given: Any) -> Artifact:
        documents = {"runs": self.documents["runs"], "adjudication": self.documents["adjudication"]}
        return publication.publish(
            self.made["declare"],
            given.get("accepted") or self.made["accept"],
            self.made["unblind"],
            given.get("state") or self.state(),
            packets=given.get("packets") or {set_id: self.documents[set_id] for set_id in SETS},
            recorded=given.get("runs") or documents["runs"],
            scores={
                code: given.get(f"scores {n}") or self.documents[f"scores {n}"]
                for n, code in enumerate(people.SCORERS, start=1)
            },
            adjudicated=given.get("adjudication") or documents["adjudication"],
            unfaithful=given.get("unfaithful", ()),
            setting=self.setting(),
        )


def played(scenario: Scenario, policy: Policy = CURRENT_POLICY) -> World:
    """A world after every stage of a scenario."""
    w = World(scenario, policy)
    w.documents["study"] = people.study()
    w.record("declare", first := w.declared(), ("declared", {"digest": first["digest"], "environment": "rehearsal"}))
    for set_id in SETS:
        w.documents[set_id] = people.packet(set_id, own_objects(1), START)
        w.before[f"seal {set_id}"] = len(w.lines)
        made = w.sealed(set_id)
        body = {"setId": set_id, "receipt": made["result"]["receipt"], "digest": made["digest"]}
        w.record(f"seal {set_id}", made, ("sealed", body))
    terms = people.budget(enough=True)
    w.documents |= {"budget": terms, "freeze": people.freeze(terms)}
    w.before["freeze"] = len(w.lines)
    w.record("freeze", made := w.frozen(), ("frozen", {"digest": made["digest"]}))
    w.documents["runs"], booked = people.runs(scenario, own_objects(1), made["digest"])
    w.documents["booked"] = booked
    w.ledger = chained(ledger_name(NAME), [("budget", terms), *booked])
    w.before["preflight"] = len(w.lines)
    w.record("preflight", made := w.preflighted(), ("preflight", {"digest": made["digest"]}))
    for set_id in SETS:
        w.before[f"open {set_id}"] = len(w.lines)
        made = w.opened(set_id)
        w.record(f"open {set_id}", made, *opening.events_of(made))
    w.before["record-runs"] = len(w.lines)
    w.record("record-runs", made := w.ran(), ("runs-recorded", {"digest": made["digest"]}))
    _judge(w)
    return w


def _judge(w: World) -> None:
    ids = {set_id: [entry["questionId"] for entry in w.documents[set_id]["questions"]] for set_id in SETS}
    arms = [arm["armId"] for arm in w.documents["study"]["arms"]]
    w.documents["key"] = {"key": blinding.drawn_key(SECRET, ids, arms), "nonce": NONCE}
    w.before["blind"] = len(w.lines)
    w.record("blind", made := w.blinded(), ("blinded", {"digest": made["digest"]}))
    for number, code in enumerate(people.SCORERS, start=1):
        w.documents[f"scores {number}"] = people.scores(w.sheet(code), strict=number == 2)
        w.before[f"score {number}"] = len(w.lines)
        made = w.scored(number)
        w.record(f"score {number}", made, ("scored", {"digest": made["digest"], "scorerCode": code}))
    rows = [w.documents[f"scores {number}"]["scores"] for number in (1, 2)]
    sheet = adjudication.sheet(w.sheet(people.SCORERS[0]), *rows, adjudicator=people.ADJUDICATOR)
    w.documents["adjudication sheet"] = sheet
    w.documents["adjudication"] = people.adjudication(sheet)
    w.before["adjudicate"] = len(w.lines)
    w.record("adjudicate", made := w.adjudicated(), ("adjudicated", {"digest": made["digest"]}))
    w.before["unblind"] = len(w.lines)
    w.record("unblind", made := w.unblinded(), ("unblinded", {"digest": made["digest"]}))
    w.before["accept"] = len(w.lines)
    w.record("accept", made := w.accepted(), ("accepted", {"digest": made["digest"], "status": made["status"]}))
    w.before["publish"] = len(w.lines)
    w.record("publish", made := w.published(), ("published", {"digest": made["digest"]}))


@lru_cache(maxsize=8)
def whole(name: str = "accepted") -> World:
    """A world, played once a process. Take copies."""
    return played(SCENARIOS[name])


SMALL_POLICY = replace(CURRENT_POLICY, version=99, questions_per_set=8, least_useful_per_set=5)
"""A policy for small worlds; nobody has put it in force."""


@lru_cache(maxsize=4)
def small(**useful: tuple[int, int]) -> World:
    """A world of 8 questions a set, with one disagreement, for walks that touch every value."""
    scenario = Scenario({"set-a": useful.get("a", (4, 5)), "set-b": useful.get("b", (5, 5))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "QUESTIONS", SMALL_POLICY.questions_per_set)
        return played(scenario, SMALL_POLICY)


def found(artifact: Artifact) -> set[tuple[str, str, int]]:
    """An artifact's blockers."""
    return {(entry["code"], entry["subject"], entry["count"]) for entry in artifact["blockers"]}
