"""The gate: each prompt's answer against what its records give, and against the baseline. Pure, and replayable.

A prompt is *met* where the answer refuses, or claims, just what was expected, each claim with a citation. Against the
baseline it is

- `regressed`: met before, and not now, an error included;
- `fixed`: not met before, and now;
- `changed`: another answer than before, and neither of these;
- `same`.

Without a baseline the expectation is the baseline: whatever is not met has regressed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.documents import SHA256, TRUE_OR_FALSE, Keyed, Leaf, Listed, exactly, kept_part, none_or, one_of
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.golden.prompts import KINDS
from meta_eval.lanes.golden.protocol import ANSWERED, CLAIM_ID, ERROR, FAULTS, MOST_LATENCY_MS, REFUSED, Given

KIND = "golden-verdict"
NO_REGRESSION, REGRESSED, BLOCKED = "no-regression", "regressed", "blocked"
VERDICTS = ("same", "fixed", "regressed", "changed")
POLICY = {"version": 1, "met": "the very claims expected, each cited", "withoutBaseline": "the expectation"}
AUTHORITY = {
    "isProductionEvidence": False,
    "permitsRelease": False,
    "statement": "Did a change break what worked on invented or local records? It says nothing about production.",
}
Row = dict[str, Any]

_ID = Leaf(lambda value: None if isinstance(value, str) and CLAIM_ID.fullmatch(value) else "not-an-id")
_LATENCY = Leaf(
    lambda value: (
        None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_LATENCY_MS
        else "not-a-latency"
    )
)
_PROMPT = Keyed(
    {
        "promptId": _ID,
        "kind": one_of(tuple(KINDS), rule="not-a-kind"),
        "questionSha256": SHA256,
        "claimIds": Listed(_ID),
    }
)
_ANSWER = Keyed(
    {
        "promptId": _ID,
        "outcome": one_of((ANSWERED, REFUSED, ERROR), rule="not-an-outcome"),
        "fault": none_or(one_of(FAULTS, rule="not-a-fault")),
        "claimIds": Listed(_ID),
        "uncited": TRUE_OR_FALSE,
    }
)
_TIMED = Keyed({**_ANSWER.keys, "latencyMs": none_or(_LATENCY)})
BASELINE = Keyed({"version": exactly(1, rule="not-version-1"), "promptsDigest": SHA256, "answers": Listed(_ANSWER)})
"""A frozen run, to compare later ones with. It has no latencies: they are never the same twice."""


@dataclass(frozen=True)
class Asked:
    """A set of prompts as the gate keeps it, without a word of any question."""

    prompts: Sequence[Row]
    records_digest: str
    """Of the records at hand."""
    made_for: str
    """The digest of the records that the prompts were made from."""

    @property
    def digest(self) -> str:
        return digest({"recordsDigest": self.made_for, "prompts": list(self.prompts)})


def answer_row(prompt_id: str, given: Given) -> Row:
    """An answer as the artifact keeps it."""
    return {
        "promptId": prompt_id,
        "outcome": given.outcome,
        "fault": given.fault,
        "claimIds": list(given.claim_ids),
        "uncited": given.uncited,
        "latencyMs": given.latency_ms,
    }


def baseline_of(verdict: Artifact) -> Row:
    """The run of a verdict, frozen."""
    answers = [{key: row[key] for key in _ANSWER.keys} for row in verdict["replay"]["answers"]]
    return {"version": 1, "promptsDigest": verdict["result"]["promptsDigest"], "answers": answers}


def preflight(asked: Asked, baseline: Row | None) -> list[Blocker]:
    """What forbids to ask at all: prompts of other records, a baseline of other prompts."""
    blockers = []
    if asked.records_digest != asked.made_for:
        blockers.append(Blocker("records-differ-from-prompts", "prompts.recordsDigest"))
    if len({row["promptId"] for row in asked.prompts}) < len(asked.prompts):
        blockers.append(Blocker("repeated-prompt", "prompts"))
    if not asked.prompts:
        blockers.append(Blocker("no-prompts", "prompts", 0))
    if baseline is not None:
        there = [row["promptId"] for row in baseline["answers"]]
        if baseline["promptsDigest"] != asked.digest:
            blockers.append(Blocker("baseline-of-other-prompts", "baseline.promptsDigest"))
        elif sorted(there) != sorted(row["promptId"] for row in asked.prompts):
            blockers.append(Blocker("baseline-lacks-prompts", "baseline.answers"))
    return blockers


def judge(
    asked: Asked,
    answers: Sequence[Row],
    baseline: Row | None,
    *,
    answerer_sha256: str,
    receipts: Mapping[str, str],
    made_at: int,
) -> Artifact:
    """The verdict of a run.

    Args:
        answers: `answer_row` of each prompt, in their order; none where `preflight` forbids to ask.
        answerer_sha256: SHA-256 of the answerer's command, which may hold what must not be kept.
        receipts: SHA-256 of the files of records, prompts and, where there is one, baseline.
        made_at: run time, milliseconds since the epoch.
    """
    replay = {
        "prompts": list(asked.prompts),
        "recordsDigest": asked.records_digest,
        "madeFor": asked.made_for,
        "answers": list(answers),
        "baseline": baseline,
        "answererSha256": answerer_sha256,
    }
    return _build(replay, {name: {"receipt": value} for name, value in receipts.items()}, made_at)


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact from its replay. Raises VerificationError where no run kept such a replay."""
    return _build(artifact["replay"], artifact["inputs"], made_at_ms(artifact))


_REPLAY = Keyed(
    {
        "prompts": Listed(_PROMPT),
        "recordsDigest": SHA256,
        "madeFor": SHA256,
        "answers": Listed(_TIMED),
        "answererSha256": SHA256,
    }
)


def _build(replay: Row, inputs: Mapping[str, Mapping[str, str]], made_at: int) -> Artifact:
    baseline = replay["baseline"]
    if baseline is not None:
        baseline = kept_part(baseline, BASELINE, pointer="/replay/baseline")
    kept = kept_part({key: value for key, value in replay.items() if key != "baseline"}, _REPLAY, pointer="/replay")
    for row in [*kept["answers"], *(baseline["answers"] if baseline else [])]:
        if not _is_possible(row):
            raise VerificationError("replay", "an answer that no answerer can have given", "/replay")
    asked = Asked(kept["prompts"], kept["recordsDigest"], kept["madeFor"])
    blockers = preflight(asked, baseline)
    if not blockers and [row["promptId"] for row in kept["answers"]] != [row["promptId"] for row in asked.prompts]:
        blockers.append(Blocker("answers-differ-from-prompts", "answers"))
    result: Row = {"promptsDigest": asked.digest} if blockers else _result(asked, kept["answers"], baseline)
    status = BLOCKED if blockers else REGRESSED if result["counts"]["regressed"] else NO_REGRESSION
    due = {"records": "receipt", "prompts": "receipt"} | ({"baseline": "receipt"} if baseline is not None else {})
    return sealed(
        kind=KIND,
        environment=None,
        round_name=None,
        status=status,
        blockers=blockers,
        policy_digest=digest(POLICY),
        made_at_ms=made_at,
        inputs=named_inputs(inputs, due),
        result=result,
        replay={**kept, "baseline": baseline},
        authority=AUTHORITY,
        evidence_class="regression",
    )


def _is_possible(row: Row) -> bool:
    """An error has its fault and nothing else; an answer claims something, a refusal nothing."""
    if row["outcome"] == ERROR:
        return row["fault"] is not None and not row["claimIds"] and not row["uncited"] and row.get("latencyMs") is None
    timed = row.get("latencyMs", 0) is not None
    return row["fault"] is None and timed and bool(row["claimIds"]) is (row["outcome"] == ANSWERED)


def _result(asked: Asked, answers: Sequence[Row], baseline: Row | None) -> Row:
    before = {row["promptId"]: row for row in baseline["answers"]} if baseline else {}
    verdicts = [
        _verdict(prompt, now, before.get(prompt["promptId"]))
        for prompt, now in zip(asked.prompts, answers, strict=True)
    ]
    counts, outcomes = Counter(row["verdict"] for row in verdicts), Counter(row["outcome"] for row in answers)
    kinds: dict[str, Counter[str]] = {}
    for prompt, row in zip(asked.prompts, verdicts, strict=True):
        kinds.setdefault(prompt["kind"], Counter()).update(
            prompts=1, met=row["met"], regressed=row["verdict"] == "regressed"
        )
    return {
        "promptsDigest": asked.digest,
        "prompts": len(verdicts),
        "met": sum(row["met"] for row in verdicts),
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "outcomes": {outcome: outcomes[outcome] for outcome in (ANSWERED, REFUSED, ERROR)},
        "byKind": {kind: dict(counter) for kind, counter in kinds.items()},
        "p95LatencyMs": _p95([row["latencyMs"] for row in answers if row["latencyMs"] is not None]),
        "verdicts": verdicts,
    }


def _verdict(prompt: Row, now: Row, before: Row | None) -> Row:
    met, was_met = is_met(prompt, now), before is None or is_met(prompt, before)
    if met != was_met:
        verdict = "fixed" if met else "regressed"
    else:
        # Without a baseline, what is met is what was expected.
        verdict = "same" if before is None or _said(now) == _said(before) else "changed"
    return {"promptId": prompt["promptId"], "verdict": verdict, "met": met}


def is_met(prompt: Row, answer: Row) -> bool:
    """Does an answer refuse, or claim, just what was expected, each claim with a citation?"""
    if answer["outcome"] == ERROR or answer["uncited"]:
        return False
    return sorted(answer["claimIds"]) == sorted(prompt["claimIds"])


def _said(answer: Row) -> Row:
    return {**{key: answer[key] for key in ("outcome", "fault", "uncited")}, "claimIds": sorted(answer["claimIds"])}


def _p95(latencies: Sequence[float]) -> float | None:
    """The value at rank ceil(0.95 n), as for production's latencies."""
    return sorted(latencies)[math.ceil(0.95 * len(latencies)) - 1] if latencies else None
