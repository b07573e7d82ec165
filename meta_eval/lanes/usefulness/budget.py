"""Preflight: does the budget cover everything that is planned, at its worst? Else nothing runs.

Source: the usefulness contract, budget. Spent so far, with unknown usage at its bound, plus every planned completion
at its reservation, plus the reserve that is retained for acceptance, must not pass the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.documents import read_projection
from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.register import Entry, checked
from meta_eval.lanes.usefulness import shapes
from meta_eval.lanes.usefulness.custody import ledger_name, order_blockers, unregistered
from meta_eval.lanes.usefulness.freeze import extract_of
from meta_eval.lanes.usefulness.ledger import Ledger, amount_text, ledger_of
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, study_blockers

KIND = "budget-preflight"
AUTHORITY = {
    "permitsSpending": False,
    "statement": "The plan fits the budget. Each completion must still be reserved before it is asked for.",
}


def preflight(ledger: Sequence[Entry], study: Artifact, frozen: Artifact, state: Row, *, setting: Setting) -> Artifact:
    """Whether a study's plan fits its budget.

    Args:
        ledger: the verified entries of the study's budget ledger.
        frozen: the verified freeze, which names the budget by digest.
    """
    replay = {"study": extract(study), "register": state, "freeze": extract_of(frozen), "ledger": list(ledger)}
    return STAGE.make(replay, by_digest(study=study, freeze=frozen), setting)


def ledger_blockers(entries: Sequence[Entry], frozen: Row, study_name: str) -> tuple[Ledger | None, list[Blocker]]:
    """The ledger of a study, and what is wrong with it. Raises VerificationError for a broken chain."""
    checked(entries, ledger_name(study_name), source="ledger")
    if not entries or entries[0]["event"] != "budget":
        return None, [Blocker("ledger-not-opened", "ledger")]
    terms = read_projection(entries[0]["body"], shapes.BUDGET, subject="budget")
    if terms.blockers:
        return None, terms.blockers
    try:
        ledger = ledger_of(entries)
    except UsageError as error:
        return None, [Blocker(str(error), "ledger")]
    blockers = []
    if digest(entries[0]["body"]) != frozen.get("budgetDigest"):
        blockers.append(Blocker("budget-differs-from-freeze", "ledger"))
    if ledger.terms["mostAttempts"] != frozen.get("mostAttempts"):
        blockers.append(Blocker("attempts-differ-from-freeze", "ledger"))
    return ledger, blockers


def planned_completions(study: Mapping[str, Any], most_attempts: int, setting: Setting) -> int:
    """The most completions that a run may ask for: none for an arm that no provider answers."""
    paid: int = sum(arm["kind"] != "deterministic" for arm in study["arms"])
    questions = setting.policy.sets * setting.policy.questions_per_set
    return int(paid * questions * most_attempts)


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state, frozen = replay["study"], replay["register"], replay["freeze"]
    blockers = study_blockers(replay, inputs, setting)
    blockers += order_blockers(state, event="preflight", after=("frozen",), made_at=setting.made_at)
    blockers += unregistered(state, frozen=frozen["digest"])
    if frozen["status"] != "ready":
        return Judged(study["environment"], [*blockers, Blocker("not-frozen", "freeze")])
    ledger, refused = ledger_blockers(replay["ledger"], frozen, setting.study)
    blockers += refused
    if ledger is None:
        return Judged(study["environment"], blockers)
    planned = ledger.terms["plannedCompletions"]
    if study["status"] == "ready" and planned < planned_completions(study, frozen["mostAttempts"], setting):
        blockers.append(Blocker("plan-smaller-than-the-run", "ledger", planned))
    worst = ledger.spent + ledger.reserved + planned * ledger.bound + Decimal(ledger.terms["acceptanceReserve"])
    if worst > Decimal(ledger.terms["budget"]):
        blockers.append(Blocker("over-budget", "ledger"))
    return Judged(
        study["environment"],
        blockers,
        {"totals": ledger.totals(), "plannedCompletions": planned, "worstCase": amount_text(worst)},
    )


STAGE = Stage(KIND, AUTHORITY, _judge)
