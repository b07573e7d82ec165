"""Packets: sealing, which tells of a packet only what may be known before the freeze.

Source: the usefulness contract, records and custody. The sealed metadata holds no question and nothing by which a
question could be guessed: a row a question says how many clauses it has and whether it is fresh, in an order that
is not the packet's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import INSTANT, read
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness import shapes, wording
from meta_eval.lanes.usefulness.custody import (
    FileFacts,
    cleared,
    consumed_digests,
    file_blockers,
    missing_follow_ups,
    order_blockers,
)
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, study_blockers

KIND = "sealed-packet"
AUTHORITY = {
    "permitsReading": False,
    "permitsRun": False,
    "statement": "What implementer and owner may know of a packet before the freeze. No question can be had from it.",
}


def seal(
    document: object,
    facts: FileFacts,
    study: Artifact,
    state: Row,
    *,
    set_id: str,
    registers: Sequence[Sequence[Entry]],
    consumed_texts: Mapping[str, str],
    setting: Setting,
) -> tuple[Artifact, list[Row]]:
    """The sealed metadata of a packet, and the private list of questions that a person must clear.

    Args:
        document: the parsed packet; None where its file is not in custody and was not read.
        facts: what is true of its file.
        registers: the entries of this study's register and of every earlier one that binds it, this study's first.
        consumed_texts: exposed questions at hand, normalised, by digest.
    """
    environment = study["environment"] or "production"
    reading = read(document, shapes.packet(environment), subject="packet")
    value = reading.value or {}
    known = consumed_digests(registers)
    questions = [question for question in value.get("questions") or [] if question is not None]
    texts = {sha256: text for sha256, text in consumed_texts.items() if sha256 in known}
    cleared_here = cleared(registers[0], set_id=set_id, receipt=facts.receipt)
    rows, listed = _freshness(questions, known, texts, cleared_here, setting)
    replay = {
        "study": extract(study),
        "register": state,
        "file": facts.document,
        "setId": set_id,
        "packet": {name: value.get(name) for name in ("setId", "authorCode", "retentionDays", "publication")},
        "refused": [] if document is None else [blocker.document for blocker in reading.blockers],
        "repeated": _repeated(questions),
        "questions": rows,
        "withoutText": len(known.keys() - texts.keys()),
        "owed": missing_follow_ups(registers),
    }
    inputs = {**by_digest(study=study), "packet": {"receipt": facts.receipt}}
    return STAGE.make(replay, inputs, setting), [{"setId": set_id, **entry} for entry in listed]


def _freshness(
    questions: list[Row], known: Mapping[str, str], texts: Mapping[str, str], cleared_here: set[str], setting: Setting
) -> tuple[list[Row], list[Row]]:
    """A row a question, and the list for a person. Rows are ordered by what they say, so they give no place away."""
    rows, listed = [], []
    for question in questions:
        text, freshness = question.get("question"), "unread"
        if text is not None:
            found = wording.closest(text, texts, least=setting.policy.listed_similarity)
            if wording.question_digest(text) in known:
                freshness = "equal"
            elif found is None:
                freshness = "fresh"
            elif found[1] >= setting.policy.refused_similarity:
                freshness = "near"
            else:
                freshness = "cleared" if question.get("questionId") in cleared_here else "similar"
                listed.append(
                    {
                        "questionId": question.get("questionId"),
                        "question": text,
                        "resembles": texts[found[0]],
                        "consumedDigest": found[0],
                        "likeness": round(float(found[1]), 3),
                        "cleared": freshness == "cleared",
                    }
                )
        clauses = question.get("clauses")
        rows.append({"clauses": None if clauses is None else len(clauses), "freshness": freshness})
    return sorted(rows, key=lambda row: (row["clauses"] or 0, row["freshness"])), listed


def _repeated(questions: list[Row]) -> Row:
    """How many ids and questions stand in a packet more than once."""
    ids = Counter(question["questionId"] for question in questions if question.get("questionId"))
    texts = Counter(wording.normalised(question["question"]) for question in questions if question.get("question"))
    return {name: sum(n - 1 for n in found.values()) for name, found in (("ids", ids), ("questions", texts))}


_FRESHNESS_RULES = {
    "equal": "question-consumed",
    "near": "question-near-paraphrase-of-consumed",
    "similar": "question-needs-clearance",
}


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, packet, rows = replay["study"], replay["packet"], replay["questions"]
    blockers = study_blockers(replay, inputs, setting)
    blockers += order_blockers(replay["register"], event="sealed", after=("declared",), made_at=setting.made_at)
    in_custody = not (refused_file := file_blockers(replay["file"], subject="packet"))
    blockers += refused_file
    if replay["setId"] in replay["register"]["sealed"]:
        blockers.append(Blocker("set-already-sealed", "packet"))
    if replay["register"]["frozen"] is not None:
        blockers.append(Blocker("sealed-after-freeze", "packet"))
    if in_custody:
        blockers += [Blocker(entry["code"], entry["subject"], entry["count"]) for entry in replay["refused"]]
        blockers += _content_blockers(replay, setting)
        authors = {
            a["setId"]: a["code"] for a in (study["roles"] or {}).get("authors") or [] if study["status"] == "ready"
        }
        if packet["setId"] is not None and packet["setId"] != replay["setId"]:
            blockers.append(Blocker("set-differs", "packet.setId"))
        if packet["authorCode"] is not None and packet["authorCode"] != authors.get(replay["setId"]):
            blockers.append(Blocker("not-the-author-of-this-set", "packet.authorCode"))
    blockers += [Blocker("failed-attempt-not-followed-up", event) for event in replay["owed"]]
    clauses = Counter(row["clauses"] for row in rows if row["clauses"] is not None)
    result = {
        "setId": replay["setId"],
        "authorCode": packet["authorCode"],
        "receipt": inputs["packet"]["receipt"],
        "questionCount": len(rows),
        "clauseCounts": {str(count): times for count, times in sorted(clauses.items())},
        "retentionDays": packet["retentionDays"],
        "publicationPermitted": (packet["publication"] or {}).get("permitted"),
    }
    return Judged(study["environment"], blockers, result)


def _content_blockers(replay: Row, setting: Setting) -> list[Blocker]:
    rows, blockers = replay["questions"], []
    if len(rows) != setting.policy.questions_per_set:
        blockers.append(Blocker("not-60-questions", "packet.questions", len(rows)))
    if without := sum(row["clauses"] == 0 for row in rows):
        blockers.append(Blocker("question-without-clause", "packet.questions[].clauses", without))
    for name, rule in (("ids", "question-id-repeated"), ("questions", "question-repeated")):
        if replay["repeated"][name]:
            blockers.append(Blocker(rule, "packet.questions", replay["repeated"][name]))
    for freshness, rule in _FRESHNESS_RULES.items():
        if found := sum(row["freshness"] == freshness for row in rows):
            blockers.append(Blocker(rule, "packet.questions", found))
    # Without the text of what was exposed, nobody can say that a question is not a paraphrase of it.
    if rows and replay["withoutText"]:
        blockers.append(Blocker("consumed-questions-not-at-hand", "register", replay["withoutText"]))
    recorded = (replay["packet"]["publication"] or {}).get("recordedAt")
    if recorded is not None and INSTANT.rule_broken(recorded):
        blockers.append(Blocker("not-an-instant", "packet.publication.recordedAt"))
    return blockers


STAGE = Stage(KIND, AUTHORITY, _judge)
