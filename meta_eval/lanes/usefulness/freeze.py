"""The freeze: candidate, configuration, model and budget stand, before any packet is opened.

Source: the usefulness contract, records. It names by digest all that the run depends on, repeats the study's corpus
and activation configuration, and names the designated runner. It comes after every set is sealed, and once.
"""

from __future__ import annotations

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import read, read_projection
from meta_eval.lanes.usefulness import shapes
from meta_eval.lanes.usefulness.custody import order_blockers
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, set_ids, study_blockers

KIND = "study-freeze"
AUTHORITY = {
    "permitsDevelopment": False,
    "permitsReading": False,
    "statement": "All that a run depends on, fixed. To change any of it takes another study and fresh packets.",
}


def freeze(document: object, study: Artifact, state: Row, *, receipt: str, setting: Setting) -> Artifact:
    """The freeze of a study, ready or blocked."""
    kept = read(document, shapes.FREEZE, subject="freeze").projection
    replay = {"study": extract(study), "register": state, "freeze": kept}
    return STAGE.make(replay, {**by_digest(study=study), "freeze": {"receipt": receipt}}, setting)


def extract_of(frozen: Artifact) -> Row:
    """What later stages keep of a freeze."""
    return {"digest": frozen["digest"], "status": frozen["status"], **frozen["replay"]["freeze"]}


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state = replay["study"], replay["register"]
    reading = read_projection(replay["freeze"], shapes.FREEZE, subject="freeze")
    frozen = reading.value or {}
    blockers = [
        *study_blockers(replay, inputs, setting),
        *reading.blockers,
        *order_blockers(state, event="frozen", after=("declared",), made_at=setting.made_at),
    ]
    if study["status"] == "ready":
        due = {
            "runnerCode": (study["roles"]["runner"]["code"], "not-the-declared-runner"),
            "corpusDigest": (study["corpusDigest"], "corpus-changed"),
            "activationDigest": (study["activation"]["digest"], "activation-changed"),
        }
        for name, (expected, rule) in due.items():
            if frozen.get(name) is not None and frozen[name] != expected:
                blockers.append(Blocker(rule, f"freeze.{name}"))
        if unsealed := sum(set_id not in state["sealed"] for set_id in set_ids(study)):
            blockers.append(Blocker("set-not-sealed", "register", unsealed))
    return Judged(study["environment"], blockers, {"mostAttempts": frozen.get("mostAttempts")})


STAGE = Stage(KIND, AUTHORITY, _judge)
