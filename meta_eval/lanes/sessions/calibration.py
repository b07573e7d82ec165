"""Calibration: how far a judge agrees with people on a frozen gold set.

The session process rubric leaves this for later; the sessions contract defines it. A gold set holds record slices and
what people hold of each, and carries its own digest. The report is an artifact of its own and changes no record: in
records of v1 and v2 a judge stays uncalibrated, whatever its figures.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, named_inputs, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.documents import SHA256
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.statistics import BOOTSTRAP_DRAWS, Ratio, bootstrap_95, wilson_95
from meta_eval.lanes.sessions.judge import QUESTIONS, parsed_reply
from meta_eval.lanes.sessions.verdicts import STATUSES

KIND = "judge-calibration"
AUTHORITY = {"calibratesRecords": False, "standsForAVerdict": False}
LEAST_CASES = 20
Pair = tuple[str, str]


def checked_gold(document: Any, *, source: str) -> list[dict[str, Any]]:
    """The cases of a gold set, each with `caseId`, `slice` and `expected`.

    Raises:
        InputError: another form, or a digest that is not that of the cases.
    """
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or document.keys() != {"version", "cases", "digest"} or document["version"] != 1:
        raise InputError(source, "not a gold set: version 1, cases and digest", next_step="see docs/sessions-guide.md")
    ids = set()
    for index, case in enumerate(cases):
        well_formed = isinstance(case, dict) and case.keys() == {"caseId", "slice", "expected"}
        if not well_formed or not isinstance(case["caseId"], str) or not _is_expected(case["expected"]):
            raise InputError(source, f"case {index + 1} has not caseId, slice and expected statuses")
        ids.add(case["caseId"])
    if len(ids) != len(cases):
        raise InputError(source, "a repeated caseId")
    if document["digest"] != digest(cases):
        raise InputError(
            source,
            "the digest is not that of the cases, so the gold set is not frozen",
            next_step=f"if the cases are final, their digest is {digest(cases)}",
        )
    return cases


def _is_expected(expected: object) -> bool:
    return isinstance(expected, dict) and all(
        name in QUESTIONS and status in STATUSES for name, status in expected.items()
    )


def calibration(
    gold: Sequence[Mapping[str, Any]], replies: Mapping[str, object], *, made_at: int, inputs: Any
) -> Artifact:
    """The calibration artifact of a judge's replies, by case id."""
    cases = [
        {
            "caseId": case["caseId"],
            "sliceDigest": digest(case["slice"]),
            "expected": dict(case["expected"]),
            "given": {
                opinion["id"]: opinion["status"]
                for opinion in parsed_reply(replies.get(case["caseId"]), tuple(case["expected"]))
            },
        }
        for case in gold
    ]
    return _artifact({"cases": cases}, made_at, inputs)


def rebuild(artifact: Artifact) -> Artifact:
    """The calibration from its replay. Raises VerificationError where the replay is not as this stage writes it."""
    replay = artifact["replay"]
    cases = replay.get("cases")
    if replay.keys() != {"cases"} or not isinstance(cases, list) or not all(map(_is_kept, cases)):
        raise VerificationError(KIND, "a replay that no calibration keeps", "/replay")
    if len({case["caseId"] for case in cases}) != len(cases):
        raise VerificationError(KIND, "a repeated case", "/replay/cases")
    return _artifact(replay, made_at_ms(artifact), artifact["inputs"])


def _is_kept(case: object) -> bool:
    """Whether a case of a replay holds these keys and values and no other: nothing may be planted in one."""
    if not isinstance(case, dict) or case.keys() != {"caseId", "sliceDigest", "expected", "given"}:
        return False
    words = isinstance(case["caseId"], str) and SHA256.rule_broken(case["sliceDigest"]) is None
    statuses = _is_expected(case["expected"]) and _is_expected(case["given"])
    return words and statuses and case["given"].keys() <= case["expected"].keys()


def _artifact(replay: Mapping[str, Any], made_at: int, inputs: Mapping[str, Mapping[str, str]]) -> Artifact:
    dimensions = {}
    for name in QUESTIONS:
        asked = [case for case in replay["cases"] if name in case["expected"]]
        pairs = [(case["expected"][name], case["given"][name]) for case in asked if name in case["given"]]
        if asked:
            dimensions[name] = _figures(pairs, asked=len(asked), seed=digest(replay))
    blockers = [
        Blocker("too-few-gold-cases", name, figures["pairs"])
        for name, figures in dimensions.items()
        if figures["pairs"] < LEAST_CASES
    ]
    if not dimensions:
        blockers.append(Blocker("too-few-gold-cases", "goldSet", 0))
    return sealed(
        kind=KIND,
        environment=None,
        round_name=None,
        status="blocked" if blockers else "ready",
        blockers=blockers,
        policy_digest=digest({"leastCases": LEAST_CASES, "bootstrapDraws": BOOTSTRAP_DRAWS}),
        made_at_ms=made_at,
        inputs=named_inputs(inputs, {"goldSet": "receipt", "replies": "receipt"}),
        result={"dimensions": dimensions},
        replay=replay,
        authority=AUTHORITY,
        evidence_class="session-process",
    )


def _figures(pairs: Sequence[Pair], *, asked: int, seed: str) -> dict[str, Any]:
    agreed = Ratio(sum(one == other for one, other in pairs), len(pairs))
    value, interval = kappa(pairs), wilson_95(agreed)
    hits = [int(one == other) for one, other in pairs]
    return {
        "asked": asked,
        "pairs": len(pairs),
        "unanswered": asked - len(pairs),
        "agreed": agreed.numerator,
        "agreement": agreed.shown,
        "agreementWilson95": None if interval is None else list(interval),
        "agreementBootstrap95": _listed(bootstrap_95(hits, [1] * len(hits), seed=seed)),
        "kappa": None if value is None else round(float(value), 6),
        "kappaBootstrap95": _listed(kappa_bootstrap_95(pairs, seed=seed)),
    }


def _listed(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def kappa(pairs: Sequence[Pair]) -> Fraction | None:
    """Cohen's kappa of two raters over any number of categories, exact; None where chance agreement is certain."""
    n = len(pairs)
    if not n:
        return None
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    observed = Fraction(sum(one == other for one, other in pairs), n)
    by_chance = Fraction(sum(first[status] * second[status] for status in first), n * n)
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def kappa_bootstrap_95(pairs: Sequence[Pair], *, seed: str) -> tuple[float, float] | None:
    """The 95 % percentile interval of kappa, cases drawn with replacement; draws without a kappa are left out."""
    n = len(pairs)
    if not n:
        return None
    stream = np.random.Philox(key=int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    found = []
    for _ in range(BOOTSTRAP_DRAWS):
        value = kappa([pairs[int(index)] for index in stream.random_raw(n) % np.uint64(n)])
        if value is not None:
            found.append(float(value))
    found.sort()
    if not found:
        return None
    low, high = (found[-(-per_mille * len(found) // 1000) - 1] for per_mille in (25, 975))
    return round(low, 6) + 0.0, round(high, 6) + 0.0
