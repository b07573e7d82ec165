"""The chain of a study: an artifact edited and rebuilt to its last figure does not fit what is on record."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes import catalogue
from meta_eval.lanes.usefulness.chain import Recorded, broken_link
from meta_eval.lanes.usefulness.custody import register_name
from meta_eval_tests.lanes.usefulness.world import NAME, chained, sha, whole

UNLIKE = "keeps something else than what is on record"


def recorded(stage: str = "", forged: Artifact | None = None) -> Recorded:
    """What the good study has on record, one artifact forged and its register written again to name it."""
    w = whole()
    made = {**w.made, **({stage: forged} if forged is not None else {})}
    lines = copy.deepcopy(w.lines)
    for _, body in lines:
        if forged is not None and body.get("digest") == w.made[stage]["digest"]:
            body["digest"] = forged["digest"]
    return Recorded({one["digest"]: one for one in made.values()}, chained(register_name(NAME), lines), w.ledger)


def forge(stage: str, change: Callable[[Any], object]) -> Artifact:
    """An artifact, changed and rebuilt by its own stage, as a careful forger would."""
    artifact = copy.deepcopy(whole().made[stage])
    change(artifact)
    return catalogue.REBUILDS[artifact["artifact"]](artifact)


@pytest.mark.parametrize("stage", list(whole().made))
def test_every_artifact_of_a_good_study_fits(stage: str) -> None:
    assert broken_link(whole().made[stage], recorded(), study_name=NAME) is None


FORGERIES: list[tuple[str, Callable[[Any], object], str]] = [
    ("declare", lambda a: a["replay"]["register"].update(at="2026-11-20T08:00:00.000Z"), "/replay/register/at"),
    ("seal set-a", lambda a: a["replay"]["study"].update(corpusDigest=sha("other")), "/replay/study/corpusDigest"),
    (
        "freeze",
        lambda a: a["replay"]["study"]["roles"]["owner"].update(code="OWN-9Z"),
        "/replay/study/roles/owner/code",
    ),
    ("preflight", lambda a: a["replay"]["freeze"].update(modelDigest=sha("other")), "/replay/freeze/modelDigest"),
    ("open set-a", lambda a: a["replay"]["sealed"].update(receipt=sha("other")), "/replay/sealed/receipt"),
    ("record-runs", lambda a: a["replay"]["openings"][0].update(digest=sha("other")), "/replay/openings/0/digest"),
    ("blind", lambda a: a["replay"]["runs"].update(digest=sha("other")), "/replay/runs/digest"),
    (
        "score 1",
        lambda a: a["replay"]["blinding"]["questions"][3].update(clauses=9),
        "/replay/blinding/questions/3/clauses",
    ),
    (
        "adjudicate",
        lambda a: a["replay"]["scores"][1]["rows"][7].update(useful=None),
        "/replay/scores/1/rows/7/useful",
    ),
    ("unblind", lambda a: a["replay"]["blinding"].update(commitment=sha("other")), "/replay/blinding/commitment"),
    ("accept", lambda a: a["replay"]["rows"][0].update(first=None), "/replay/rows/0/first"),
    ("accept", lambda a: a["replay"].update(reservation="0.000001"), "/replay/reservation"),
    ("accept", lambda a: a["replay"]["exercises"].clear(), "/replay/exercises/0"),
    ("publish", lambda a: a["replay"]["gate"]["accepted"].update(digest=sha("other")), "/replay/gate/accepted/digest"),
]


@pytest.mark.parametrize(("stage", "change", "pointer"), FORGERIES)
def test_an_artifact_rebuilt_from_an_edited_part_does_not_fit(
    stage: str, change: Callable[[Any], object], pointer: str
) -> None:
    forged = forge(stage, change)
    assert broken_link(forged, recorded(stage, forged), study_name=NAME) == (UNLIKE, pointer)


def test_an_artifact_of_another_study_or_of_one_that_is_not_on_record_is_refused() -> None:
    accepted = whole().made["accept"]
    assert broken_link(accepted, recorded(), study_name="autumn") == ("belongs to another study", "/round")
    around = recorded()
    without = {digest: one for digest, one in around.artifacts.items() if digest != whole().made["blind"]["digest"]}
    told = broken_link(accepted, Recorded(without, around.entries, around.ledger), study_name=NAME)
    assert told == ("made from an artifact that is not on record", "/inputs/blindedSheets/digest")


def test_a_forger_who_names_no_input_gets_no_further() -> None:
    forged = forge("accept", lambda artifact: artifact["inputs"].pop("score1"))
    told = broken_link(forged, recorded("accept", forged), study_name=NAME)
    assert told == ("does not fit what it says it was made from", "/inputs")
