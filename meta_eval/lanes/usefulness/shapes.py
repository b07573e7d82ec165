"""The shapes of the documents that people bring to a study, and the values that they are made of.

Source: the usefulness contract, records. Codes for people, ids for things; private text wherever something can be read.
"""

from __future__ import annotations

from decimal import Decimal

from meta_eval.evidence.artifacts import ENVIRONMENTS
from meta_eval.evidence.documents import (
    CODE,
    INSTANT,
    SHA256,
    TRUE_OR_FALSE,
    Keyed,
    Leaf,
    Listed,
    Shape,
    exactly,
    matching,
    none_or,
    one_of,
    public_url,
    whole_number,
)
from meta_eval.lanes.usefulness.hiding import private_text
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.rubric import ASSESSMENTS, CRITERIA, DEFECTS

KINDS = ("person", "agent-proxy")
ARM_ROLES = ("baseline", "candidate")
ARM_KINDS = ("deterministic", "provider", "agent")
STATUSES = ("answered", "refused", "evidence-gap", "timeout", "fallback", "error")
LABELS = ("X", "Y")
_TEXT = private_text(CURRENT_POLICY.longest_text)
_TEXT_OR_NONE = private_text(CURRENT_POLICY.longest_text, optional=True)
_QUESTION = private_text(CURRENT_POLICY.longest_question)
_VERSION = exactly(1, rule="not-version-1")
ID = matching(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?", rule="not-an-id")
_LABEL = one_of(LABELS, rule="not-a-label")
_AMOUNT = r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?"
AMOUNT = matching(_AMOUNT, rule="not-an-amount", screened=False)
CURRENCY = matching(r"[A-Z]{3}", rule="not-a-currency", screened=False)
LATENCY = Leaf(
    lambda value: (
        None
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value <= 86_400_000
        # to the microsecond, so that every reader adds up the same whole numbers
        and round(value * 1000) == Decimal(repr(value)) * 1000
        else "not-milliseconds"
    )
)
_COUNT = whole_number(least=0, most=1_000_000, rule="not-a-count")
_PERSON = Keyed({"code": CODE, "kind": one_of(KINDS, rule="not-person-or-agent-proxy")})


def study() -> Keyed:
    """The declaration that opens a study."""
    arm = Keyed(
        {
            "armId": ID,
            "role": one_of(ARM_ROLES, rule="not-an-arm-role"),
            "kind": one_of(ARM_KINDS, rule="not-an-arm-kind"),
            "identityTerms": Listed(_QUESTION),
        }
    )
    author = Keyed({"setId": ID, **_PERSON.keys})
    roles: dict[str, Shape] = {
        "authors": Listed(author),
        "runner": _PERSON,
        "scorers": Listed(_PERSON),
        "adjudicator": _PERSON,
        "owner": _PERSON,
        "implementer": _PERSON,
    }
    return Keyed(
        {
            "version": _VERSION,
            "environment": one_of(ENVIRONMENTS, rule="not-an-environment"),
            "roles": Keyed(roles),
            "corpusDigest": SHA256,
            "activation": Keyed({"digest": SHA256, "summary": _TEXT}),
            "arms": Listed(arm),
            "follows": Listed(ID),
        }
    )


def packet(environment: str) -> Keyed:
    """A sealed packet: questions with their oracle, and what its author states."""
    url = public_url(environment)
    source = Keyed({"url": url, "passage": _TEXT, "aliases": Listed(url)})
    oracle: dict[str, Shape] = {
        "facts": Listed(_TEXT),
        "sources": Listed(source),
        "limits": Listed(_TEXT),
        "unavailable": Listed(_TEXT),
        "condition": _TEXT_OR_NONE,
    }
    question: dict[str, Shape] = {
        "questionId": ID,
        "question": _QUESTION,
        "clauses": Listed(_QUESTION),
        "exactSourceNavigation": TRUE_OR_FALSE,
        "oracle": Keyed(oracle, optional=frozenset({"condition"})),
        "provenance": _TEXT,
    }
    return Keyed(
        {
            "version": _VERSION,
            "setId": ID,
            "authorCode": CODE,
            "questions": Listed(Keyed(question)),
            "sourcesApproved": exactly(True, rule="sources-not-approved"),
            "notExecuted": exactly(True, rule="no-execution-not-stated"),
            "retentionDays": whole_number(least=1, most=3650, rule="not-a-retention-period"),
            "publication": Keyed({"permitted": TRUE_OR_FALSE, "recordedAt": INSTANT}),
        }
    )


FREEZE = Keyed(
    {
        "version": _VERSION,
        "runnerCode": CODE,
        "candidateDigest": SHA256,
        "configurationDigest": SHA256,
        "modelDigest": SHA256,
        "budgetDigest": SHA256,
        "corpusDigest": SHA256,
        "activationDigest": SHA256,
        "mostAttempts": whole_number(least=1, most=10, rule="not-a-bound-of-attempts"),
    }
)


def runs(environment: str) -> Keyed:
    """What the runner recorded: every attempt of every arm at every question."""
    run: dict[str, Shape] = {
        "setId": ID,
        "questionId": ID,
        "arm": ID,
        "attempt": whole_number(least=1, most=10, rule="not-an-attempt"),
        "status": one_of(STATUSES, rule="not-a-status"),
        "answer": _TEXT_OR_NONE,
        "limitations": Listed(_TEXT),
        "links": Listed(Keyed({"claim": _TEXT, "url": public_url(environment)})),
        "expandedText": _TEXT_OR_NONE,
        "latencyMs": none_or(LATENCY),
        "cost": none_or(AMOUNT),
        "reservationId": none_or(ID),
    }
    exercise = Keyed({"exerciseId": ID, "passed": TRUE_OR_FALSE})
    return Keyed(
        {
            "version": _VERSION,
            "runnerCode": CODE,
            "freezeDigest": SHA256,
            "corpusDigest": SHA256,
            "activationDigest": SHA256,
            "runs": Listed(Keyed(run, optional=frozenset({"expandedText"}))),
            "invariantExercises": Listed(exercise),
        }
    )


_PLACE: dict[str, Shape] = {"setId": ID, "questionId": ID, "label": _LABEL}
JUDGMENT: dict[str, Shape] = {
    "criteria": Keyed(dict.fromkeys(CRITERIA, TRUE_OR_FALSE)),
    "clauseCoverage": _COUNT,
    "sourceSupport": one_of(ASSESSMENTS, rule="not-an-assessment"),
    "firstSourceRelevant": none_or(TRUE_OR_FALSE),
    "firstSourceDecisive": none_or(TRUE_OR_FALSE),
    "essentialLimits": one_of(ASSESSMENTS, rule="not-an-assessment"),
    "useful": TRUE_OR_FALSE,
    "defects": Listed(one_of(DEFECTS, rule="not-a-defect-class")),
    "reason": _TEXT,
}
SCORES = Keyed(
    {
        "version": _VERSION,
        "scorerCode": CODE,
        "sheetDigest": SHA256,
        "scores": Listed(Keyed({**_PLACE, **JUDGMENT})),
    }
)
DISPOSITIONS = ("useful", "not-useful")
CAUSES = ("oracleError", "productError")
ADJUDICATION = Keyed(
    {
        "version": _VERSION,
        "adjudicatorCode": CODE,
        "sheetDigest": SHA256,
        "decisions": Listed(
            Keyed(
                {
                    **_PLACE,
                    "disposition": one_of(DISPOSITIONS, rule="not-a-disposition"),
                    "cause": none_or(one_of(CAUSES, rule="not-a-cause")),
                    "rationale": _TEXT,
                }
            )
        ),
    }
)
BUDGET = Keyed(
    {
        "version": _VERSION,
        "currency": CURRENCY,
        "budget": AMOUNT,
        "reservation": AMOUNT,
        "acceptanceReserve": AMOUNT,
        "spentKnown": AMOUNT,
        "spentUnknown": _COUNT,
        "mostAttempts": whole_number(least=1, most=10, rule="not-a-bound-of-attempts"),
        "plannedCompletions": whole_number(least=0, most=1_000_000, rule="not-a-count"),
    }
)
CLEARANCE = Keyed(
    {"version": _VERSION, "setId": ID, "questionId": ID, "byCode": CODE, "different": TRUE_OR_FALSE, "rationale": _TEXT}
)
FOLLOW_UP = Keyed({"version": _VERSION, "byCode": CODE, "evidenceDigest": SHA256, "statement": _TEXT})
