"""The single opening of a sealed packet.

Source: the usefulness contract, records and custody. It is allowed to the designated runner, after the freeze and its
preflight, once, for the very bytes that were sealed; the packet is consumed by it, for ever.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.identifiers import is_code
from meta_eval.lanes.usefulness import wording
from meta_eval.lanes.usefulness.custody import FileFacts, file_blockers, order_blockers, unregistered
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, study_blockers

KIND = "packet-opening"
AUTHORITY = {
    "permitsReuse": False,
    "statement": "This consumes the packet, whatever comes of the run; its questions are never fresh again.",
}


def open_packet(
    document: object,
    facts: FileFacts,
    sealed_packet: Artifact,
    study: Artifact,
    freeze: Artifact | None,
    state: Row,
    *,
    opener: str,
    elsewhere: Container[str] = (),
    setting: Setting,
) -> Artifact:
    """The opening of a sealed packet.

    Args:
        document: the parsed packet; None where its file is not in custody.
        freeze: the verified freeze; None where there is none yet.
        opener: the code of whoever opens it.
        elsewhere: digests of the questions that other studies have exposed, perhaps since this packet was sealed.
    """
    replay: Row = {
        "study": extract(study),
        "register": state,
        "file": facts.document,
        "opener": opener if is_code(opener) else None,
        "sealed": extract_of(sealed_packet),
        "freeze": None if freeze is None else {name: freeze[name] for name in ("digest", "status")},
        "consumedElsewhere": sum(sha256 in elsewhere for sha256 in _digests(document)),
        "questions": [],
    }
    inputs = by_digest(study=study, sealedPacket=sealed_packet)
    inputs |= {} if freeze is None else by_digest(freeze=freeze)
    inputs["packet"] = {"receipt": facts.receipt}
    opening = STAGE.make(replay, inputs, setting)
    if opening["status"] != "ready":
        return opening
    # Only an opening that stands may say by which digests the register will know the questions as consumed.
    return STAGE.make({**replay, "questions": _digests(document)}, inputs, setting)


def extract_of(sealed_packet: Artifact) -> Row:
    """What an opening keeps of a sealed packet."""
    return {
        **{name: sealed_packet[name] for name in ("digest", "status")},
        "receipt": sealed_packet["inputs"]["packet"]["receipt"],
        "setId": sealed_packet["replay"]["setId"],
    }


def _digests(document: object) -> list[str]:
    """The digests of a sealed packet's questions; none where its file is not what was sealed."""
    questions = document["questions"] if isinstance(document, dict) else []
    return sorted(wording.question_digest(question["question"]) for question in questions)


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, sealed_packet, state = replay["study"], replay["sealed"], replay["register"]
    blockers = study_blockers(replay, inputs, setting)
    if replay["freeze"] is None or state["frozen"] is None or replay["freeze"]["status"] != "ready":
        blockers.append(Blocker("opening-before-freeze", "packet"))
    else:
        blockers += unregistered(state, frozen=replay["freeze"]["digest"])
        blockers += order_blockers(state, event="opened", after=("preflight",), made_at=setting.made_at)
    if sealed_packet["setId"] in state["opened"]:
        blockers.append(Blocker("packet-already-opened", "packet"))
    if study["status"] == "ready" and replay["opener"] != study["roles"]["runner"]["code"]:
        blockers.append(Blocker("opener-is-not-the-runner", "packet"))
    known = state["sealed"].get(sealed_packet["setId"])
    if sealed_packet["status"] != "ready" or known is None:
        blockers.append(Blocker("packet-not-sealed", "packet"))
    elif known["digest"] != sealed_packet["digest"] or known["receipt"] != sealed_packet["receipt"]:
        blockers.append(Blocker("differs-from-register", "sealed"))
    if replay["consumedElsewhere"]:
        blockers.append(Blocker("question-consumed", "packet", replay["consumedElsewhere"]))
    refused_file = file_blockers(replay["file"], subject="packet")
    if not refused_file and replay["file"]["receipt"] != sealed_packet["receipt"]:
        blockers.append(Blocker("packet-receipt-mismatch", "packet"))
    result = {"setId": sealed_packet["setId"], "receipt": sealed_packet["receipt"], "openedBy": replay["opener"]}
    return Judged(study["environment"], [*blockers, *refused_file], result)


STAGE = Stage(KIND, AUTHORITY, _judge)


def events_of(opening: Artifact) -> list[tuple[str, dict[str, Any]]]:
    """What the register must hold once a packet is open: who opened it, and that it is consumed."""
    replay = opening["replay"]
    sealed_packet = replay["sealed"]
    common = {"setId": sealed_packet["setId"], "receipt": sealed_packet["receipt"]}
    return [
        ("opened", {**common, "digest": opening["digest"], "by": replay["opener"]}),
        ("consumed", {**common, "questions": replay["questions"]}),
    ]
