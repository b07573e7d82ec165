"""Every kind of artifact that a lane can rebuild is walked by a mutation test: a new kind without one fails here."""

from __future__ import annotations

import pytest

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.lanes import catalogue
from meta_eval.lanes.golden import gate
from meta_eval.lanes.sessions import calibration, scored_sessions
from meta_eval.lanes.usefulness.studies import REBUILDS as USEFULNESS
from meta_eval_tests.lanes.production.test_mutations import ARTIFACTS, forgeries
from meta_eval_tests.lanes.sessions.test_judge import INPUTS, gold, opinion, reply

# By lane, the kinds that a walk covers: production and usefulness by their test_mutations.py (the latter walks a study
# from its declaration to its publication), sessions by test_scored_sessions.py and this file, golden by test_gate.py.
WALKED = {name.split()[0] for name in ARTIFACTS} | set(USEFULNESS) | {scored_sessions.KIND, calibration.KIND, gate.KIND}


def test_every_kind_of_the_catalogue_is_walked() -> None:
    assert sorted(set(catalogue.REBUILDS) - WALKED) == []


def calibrated() -> Artifact:
    cases = gold(24)
    replies = {case["caseId"]: reply(opinion(status="fail")) for case in cases[:22]}
    return calibration.calibration(cases, replies, made_at=0, inputs=INPUTS)


# What nothing else within it depends on: the instant, the receipts of its two files, and the order of the cases: only
# the draws of the bootstrap depend on that, and those may round to the same interval.
GIVEN = {
    "/madeAt value",
    "/inputs/goldSet/receipt value",
    "/inputs/replies/receipt value",
    "/replay/cases/* swapped",
}


def verifying_alone(original: Artifact) -> tuple[int, list[str]]:
    """How many forgeries of an artifact there are, and the places of those that verify by themselves."""
    tried, alone = 0, []
    for place, mutant in forgeries(original):
        tried += 1
        try:
            verified(mutant, catalogue.REBUILDS)
        except VerificationError:
            continue
        alone.append(place)
    return tried, alone


def test_a_forged_calibration_differs_in_nothing_but_what_it_was_given() -> None:
    tried, found = verifying_alone(calibrated())
    assert tried > 50
    assert set(found) == GIVEN


@pytest.mark.parametrize("plant", [{"note": "canary"}, {"caseId": None}, {"sliceDigest": "canary"}, {"given": {}}])
def test_nothing_can_be_planted_in_a_calibration_that_no_figure_depends_on(plant: dict[str, object]) -> None:
    blocked = calibration.calibration(gold(24), {}, made_at=0, inputs=INPUTS)
    case = blocked["replay"]["cases"][0]
    if plant == {"given": {}}:
        plant = {"given": {"canary": "pass"}}
    blocked["replay"]["cases"][0] = case | plant
    with pytest.raises(VerificationError, match="no calibration keeps"):
        calibration.rebuild(blocked)
