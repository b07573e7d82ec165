"""What an answerer may say: one line of JSON for each question, read strictly. Whatever else it says is an error.

    to it    {"promptId": "near-miss-03", "question": "Who made …?"}
    from it  {"refused": false, "claims": [{"claimId": "…", "citations": ["…"]}], "latencyMs": 12.5}

`promptId` may be echoed; then an answer to another question is known for what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.canonical import parse_document
from meta_eval.evidence.errors import InputError

ANSWERED, REFUSED, ERROR = "answered", "refused", "error"
MOST_LATENCY_MS = 86_400_000
LONGEST_ANSWER = 1 << 20
"""Bytes of one line."""
CLAIM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,149}")
FAULTS = (
    "timed-out",
    "ended",
    "answer-too-long",
    "not-json",
    "not-an-answer",
    "not-a-claim",
    "not-a-latency",
    "repeated-claim",
    "refusal-with-claims",
    "answer-without-claims",
    "out-of-order",
    "answered-twice",
    "out-of-step",
    "not-asked-in-time",
)
"""Every way in which a prompt is an error."""


@dataclass(frozen=True)
class Given:
    """What came of one prompt."""

    outcome: str
    fault: str | None = None
    claim_ids: tuple[str, ...] = ()
    uncited: bool = False
    """A claim came without a single citation."""
    latency_ms: float | None = None
    echoed: bool = False
    """The answer named its prompt."""


def faulty(fault: str) -> Given:
    """An error, by one of `FAULTS`."""
    return Given(ERROR, fault)


def read_answer(line: bytes, prompt_id: str) -> Given:
    """What a line says in answer to a prompt. Raises nothing: whatever is wrong with it is an error of the prompt."""
    try:
        value = parse_document(line, source="an answer")
    except InputError:
        return faulty("not-json")
    return answer_of(value, prompt_id)


def named_prompt(line: bytes) -> str | None:
    """The prompt that a line says it answers, or None."""
    try:
        value = parse_document(line, source="an answer")
    except InputError:
        return None
    named = value.get("promptId") if isinstance(value, dict) else None
    return named if isinstance(named, str) else None


def answer_of(value: Any, prompt_id: str) -> Given:
    """What a parsed answer says."""
    if not isinstance(value, dict) or not {"refused", "claims", "latencyMs"} <= value.keys():
        return faulty("not-an-answer")
    if not value.keys() <= {"refused", "claims", "latencyMs", "promptId"} or not isinstance(value["refused"], bool):
        return faulty("not-an-answer")
    if "promptId" in value and value["promptId"] != prompt_id:
        return faulty("out-of-order")
    claims, latency = value["claims"], value["latencyMs"]
    if isinstance(latency, bool) or not isinstance(latency, int | float) or not 0 <= latency <= MOST_LATENCY_MS:
        return faulty("not-a-latency")
    if not isinstance(claims, list) or not all(map(_is_claim, claims)):
        return faulty("not-a-claim")
    claim_ids = tuple(sorted(claim["claimId"] for claim in claims))
    if len(set(claim_ids)) < len(claim_ids):
        return faulty("repeated-claim")
    if value["refused"] is bool(claims):
        return faulty("refusal-with-claims" if claims else "answer-without-claims")
    uncited = not all(claim["citations"] for claim in claims)
    outcome = REFUSED if value["refused"] else ANSWERED
    return Given(outcome, None, claim_ids, uncited, float(latency), "promptId" in value)


def _is_claim(claim: object) -> bool:
    if not isinstance(claim, dict) or claim.keys() != {"claimId", "citations"}:
        return False
    claim_id, citations = claim["claimId"], claim["citations"]
    cited = isinstance(citations, list) and all(isinstance(one, str) and one for one in citations)
    return cited and isinstance(claim_id, str) and CLAIM_ID.fullmatch(claim_id) is not None
