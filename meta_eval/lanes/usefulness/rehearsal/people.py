"""The people and arms of a rehearsal: each function gives the document that one of them would bring.

Scorers and adjudicator judge by what is on their sheet and by nothing else: whether the facts, the source, the limits
and the gap that the oracle names are in the answer. The second scorer is stricter: a limit must stand in the answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.rehearsal import invented
from meta_eval.lanes.usefulness.rehearsal.invented import Objects
from meta_eval.lanes.usefulness.rehearsal.scenarios import ARMS, SETS, Scenario, flawed
from meta_eval.lanes.usefulness.rubric import CRITERIA, useful

Row = dict[str, Any]
QUESTIONS = CURRENT_POLICY.questions_per_set
RESERVATION, COST = "0.02", "0.0125"
RUNNER, SCORERS, ADJUDICATOR = "RUN-3K", ("SCO-1P", "SCO-2Q"), "ADJ-4M"
AUTHORS = {"set-a": "AUT-1A", "set-b": "AUT-2B"}


def sha(text: str) -> str:
    return hashlib.sha256(f"invented {text}".encode()).hexdigest()


def study(follows: Sequence[str] = ()) -> Row:
    """The owner's declaration."""

    def proxy(code: str) -> Row:
        return {"code": code, "kind": "agent-proxy"}

    return {
        "version": 1,
        "environment": "rehearsal",
        "roles": {
            "authors": [{"setId": set_id, **proxy(code)} for set_id, code in AUTHORS.items()],
            "runner": proxy(RUNNER),
            "scorers": [proxy(code) for code in SCORERS],
            "adjudicator": proxy(ADJUDICATOR),
            "owner": proxy("OWN-5N"),
            "implementer": proxy("IMP-6T"),
        },
        "corpusDigest": sha("corpus"),
        "activation": {"digest": sha("activation"), "summary": "Invented: no provider keeps what a visitor asks."},
        "arms": [
            {"armId": "records-lookup", "role": "baseline", "kind": "deterministic", "identityTerms": ["lookup-v1"]},
            {"armId": "assistant", "role": "candidate", "kind": "provider", "identityTerms": ["assist-4.1"]},
        ],
        "follows": list(follows),
    }


def packet(set_id: str, objects: Objects, at_ms: int) -> Row:
    """An author's packet."""
    return {
        "version": 1,
        "setId": set_id,
        "authorCode": AUTHORS[set_id],
        "questions": [invented.question(objects.record(set_id, number), set_id, number) for number in range(QUESTIONS)],
        "sourcesApproved": True,
        "notExecuted": True,
        "retentionDays": 365,
        "publication": {"permitted": True, "recordedAt": written_instant(at_ms)},
    }


def budget(*, enough: bool) -> Row:
    """The budget's terms: one completion a question of each set, with one retry at most."""
    return {
        "version": 1,
        "currency": "EUR",
        "budget": "6.50" if enough else "5.50",
        "reservation": RESERVATION,
        "acceptanceReserve": "1.00",
        "spentKnown": "0.25",
        "spentUnknown": 2,
        "mostAttempts": 2,
        "plannedCompletions": 2 * QUESTIONS * len(SETS),
    }


def freeze(budget_terms: Row) -> Row:
    """The implementer's and owner's freeze."""
    return {
        "version": 1,
        "runnerCode": RUNNER,
        **{f"{name}Digest": sha(name) for name in ("candidate", "configuration", "model", "corpus", "activation")},
        "budgetDigest": digest(budget_terms),
        "mostAttempts": budget_terms["mostAttempts"],
    }


def runs(scenario: Scenario, objects: Objects, freeze_digest: str) -> tuple[Row, list[tuple[str, Row]]]:
    """The runner's record, and what it booked in the ledger on the way."""
    rows: list[Row] = []
    booked: list[tuple[str, Row]] = []
    for set_id in SETS:
        for number in range(QUESTIONS):
            for arm_id, arm in zip(("records-lookup", "assistant"), ARMS, strict=True):
                for row, lines in _attempts(scenario, objects, set_id, number, arm_id, arm):
                    rows.append(row)
                    booked += lines
    exercises = [{"exerciseId": f"invented-invariant-{n}", "passed": n != 2} for n in range(1, 5)]
    document = {
        "version": 1,
        "runnerCode": RUNNER,
        "freezeDigest": freeze_digest,
        "corpusDigest": sha("corpus"),
        "activationDigest": sha("activation"),
        "runs": rows,
        "invariantExercises": exercises,
    }
    return document, booked


def _attempts(
    scenario: Scenario, objects: Objects, set_id: str, number: int, arm_id: str, arm: str
) -> list[tuple[Row, list[tuple[str, Row]]]]:
    """One attempt, or two where the first one of a paid arm timed out."""
    bad = flawed(scenario, set_id, arm, number)
    flaw = invented.FLAWS[number % len(invented.FLAWS)] if bad else None
    thing = objects.record(set_id, number)
    last = invented.delivery(thing, objects.stated(invented.asked(thing)), flaw)
    paid = arm == "candidate"
    lost: Row = {"status": "timeout", "answer": None, "limitations": [], "links": []}
    made = []
    for attempt, told in enumerate([lost, last] if paid and number % 20 == 11 else [last], start=1):
        reservation = f"r-{set_id}-{number:02d}-{attempt}" if paid else None
        # Some usage never becomes known: the provider did not say.
        cost = (None if told["status"] == "timeout" or number % 30 == 7 else COST) if paid else "0"
        place = {"arm": arm_id, "setId": set_id, "questionId": f"{set_id}-{number:02d}", "attempt": attempt}
        row = {**place, **told, "latencyMs": _latency(number, paid, told), "cost": cost, "reservationId": reservation}
        lines: list[tuple[str, Row]] = []
        if reservation is not None:
            lines.append(("reserve", {**place, "reservationId": reservation}))
            ended = {"reservationId": reservation}
            lines.append(("expire", ended) if cost is None else ("settle", {**ended, "amount": cost}))
        made.append((row, lines))
    return made


def _latency(number: int, paid: bool, told: Row) -> float | None:
    if told["status"] == "error":
        return None
    return 30_000 if told["status"] == "timeout" else 900 + 7.5 * number if paid else 12 + 0.25 * number


def scores(sheet: Row, *, strict: bool) -> Row:
    """A scorer's filled sheet, by rule."""
    rows = [
        {"setId": entry["setId"], "questionId": entry["questionId"], "label": delivery["label"]}
        | judged(entry, delivery, strict=strict)
        for entry in sheet["entries"]
        for delivery in entry["deliveries"]
    ]
    return {"version": 1, "scorerCode": sheet["scorerCode"], "sheetDigest": digest(sheet), "scores": rows}


def judged(entry: Row, delivery: Row, *, strict: bool) -> Row:
    """One answer, judged by what is on the sheet."""
    oracle, answer = entry["oracle"], delivery["answer"] or ""
    urls = {url for source in oracle["sources"] for url in (source["url"], *source["aliases"])}
    first = delivery["links"][0]["url"] if delivery["links"] else None
    stated = (
        answer if strict and int(entry["questionId"][-2:]) % 4 == 3 else " ".join([answer, *delivery["limitations"]])
    )
    told = sum(fact in answer for fact in oracle["facts"])
    met = {
        "everyPart": told == len(oracle["facts"]) and bool(answer),
        "explicit": told == len(oracle["facts"]) and bool(answer),
        "sourcesSupport": first in urls,
        "limitsStated": all(limit in stated for limit in oracle["limits"]) and bool(answer),
        "unavailableNamed": all(gap in answer for gap in oracle["unavailable"]) and bool(answer),
        "nothingUnsupported": first in urls or not delivery["links"],
    }
    failed = [name for name in CRITERIA if not met[name]]
    row: Row = {
        "criteria": met,
        "clauseCoverage": min(told, len(entry["clauses"])) if oracle["facts"] else int(met["unavailableNamed"]),
        "sourceSupport": "complete" if met["sourcesSupport"] else "material-failure",
        "firstSourceRelevant": None if first is None else first in urls,
        "firstSourceDecisive": None if first is None else first in urls,
        "essentialLimits": "complete" if met["limitsStated"] else "material-failure",
        "defects": _defects(failed, answer),
        "reason": f"By rule: {', '.join(failed) or 'every criterion'} {'not met' if failed else 'met'}.",
    }
    row["useful"] = useful(row, navigation=entry["exactSourceNavigation"])
    return row


def _defects(failed: Sequence[str], answer: str) -> list[str]:
    if not answer:
        return ["infrastructure"]
    classes = {
        "everyPart": "omission",
        "unavailableNamed": "false-gap",
        "limitsStated": "maturity",
        "sourcesSupport": "citation",
    }
    return [name for criterion, name in classes.items() if criterion in failed]


def adjudication(sheet: Row) -> Row:
    """The adjudicator's decisions: the first scorer's reading, with the product at fault where it fails."""
    decisions = []
    for entry in sheet["entries"]:
        [delivery] = entry["deliveries"]
        good = judged(entry, delivery, strict=False)["useful"]
        decisions.append(
            {
                **{name: entry[name] for name in ("setId", "questionId")},
                "label": delivery["label"],
                "disposition": "useful" if good else "not-useful",
                "cause": None if good else "productError",
                "rationale": "By rule: a limit that is shown beside the answer is visible with it.",
            }
        )
    return {
        "version": 1,
        "adjudicatorCode": ADJUDICATOR,
        "sheetDigest": digest(sheet),
        "decisions": decisions,
    }


def tampered(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A score's rows with the first answer that was called useless made useful."""
    index = next(number for number, row in enumerate(rows) if not row["useful"])
    forged: Row = {**rows[index], "criteria": dict.fromkeys(CRITERIA, True), "useful": True}
    forged |= {"sourceSupport": "complete", "essentialLimits": "complete", "firstSourceDecisive": True}
    return [dict(row) if number != index else forged for number, row in enumerate(rows)]
