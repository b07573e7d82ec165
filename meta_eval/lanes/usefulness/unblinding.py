"""Unblinding: the key opens the commitment that was published before scoring, once adjudication is closed.

Source: the usefulness contract, records. An artifact that was refused for coming too early does not hold the key.
"""

from __future__ import annotations

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.documents import SHA256, Leaf, read
from meta_eval.lanes.usefulness.blinding import Key
from meta_eval.lanes.usefulness.custody import order_blockers, unregistered
from meta_eval.lanes.usefulness.shapes import LABELS
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, study_blockers

KIND = "unblinding"
AUTHORITY = {
    "permitsRescoring": False,
    "permitsPublication": False,
    "statement": "Which label was whose, after every judgment was closed. The nonce stays out of any export.",
}


def unblind(
    key: object, study: Artifact, blinded: Artifact, adjudicated: Artifact, state: Row, *, setting: Setting
) -> Artifact:
    """The unblinding, ready or blocked.

    Args:
        key: the parsed key document, `key` and `nonce`.
        adjudicated: the verified adjudication.
    """
    replay: Row = {
        "study": extract(study),
        "register": state,
        "blinding": blinding_extract(blinded),
        "adjudication": {name: adjudicated[name] for name in ("digest", "status")},
        "key": None,
    }
    inputs = by_digest(study=study, blindedSheets=blinded, adjudication=adjudicated)
    early = STAGE.make(replay, inputs, setting)
    if {blocker["code"] for blocker in early["blockers"]} != {"key-missing"}:
        return early
    opens = _is_key(key) and digest(key) == replay["blinding"]["commitment"]
    return STAGE.make({**replay, "key": key if opens else {}}, inputs, setting)


def blinding_extract(blinded: Artifact) -> Row:
    """What an unblinding keeps of the blinded sheets."""
    return {
        **{name: blinded[name] for name in ("digest", "status")},
        "commitment": blinded["replay"]["commitment"],
        "questions": [[entry["setId"], entry["questionId"]] for entry in blinded["replay"]["questions"]],
    }


def arm_of_label(unblinded: Artifact) -> Key:
    """Which arm each label stands for, by set and question."""
    key: Key = unblinded["replay"]["key"]["key"]
    return key


def _is_key(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"key", "nonce"} or SHA256.rule_broken(value["nonce"]):
        return False
    plain = Leaf(lambda entry: None if isinstance(entry, dict) else "not-a-key")
    return not read(value["key"], plain, subject="key").blockers


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state, blinding = replay["study"], replay["register"], replay["blinding"]
    blockers = study_blockers(replay, inputs, setting)
    blockers += order_blockers(state, event="unblinded", after=("blinded",), made_at=setting.made_at)
    blockers += unregistered(state, blinded=blinding["digest"])
    if state["adjudicated"] is None or replay["adjudication"]["status"] != "ready":
        blockers.append(Blocker("unblinding-before-adjudication", "register"))
    else:
        blockers += unregistered(state, adjudicated=replay["adjudication"]["digest"])
    if replay["key"] is None:
        return Judged(study["environment"], [*blockers, Blocker("key-missing", "key")])
    opened = digest(replay["key"])
    if opened != blinding["commitment"]:
        blockers.append(Blocker("key-does-not-open-commitment", "key"))
    elif not _covers(replay["key"]["key"], blinding["questions"], study):
        blockers.append(Blocker("key-does-not-cover-the-sheets", "key"))
    return Judged(study["environment"], blockers, {"commitment": blinding["commitment"], "opened": opened})


def _covers(key: Key, questions: list[list[str]], study: Row) -> bool:
    arms = sorted(arm["armId"] for arm in study["arms"])
    found = {(set_id, question_id) for set_id, ids in key.items() for question_id in ids}
    labels = [labels for ids in key.values() for labels in ids.values()]
    return found == {(set_id, question_id) for set_id, question_id in questions} and all(
        sorted(entry) == list(LABELS) and sorted(entry.values()) == arms for entry in labels
    )


STAGE = Stage(KIND, AUTHORITY, _judge)
