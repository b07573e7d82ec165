"""Scores: one scorer's judgment of every answer on the sheet, complete, consistent and written once.

Source: the usefulness contract, records. A score is taken whole or not at all; its digest goes into the register, and
nobody's second thoughts replace it. Nothing of the other scorer's is needed, or read, to take it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import read_projection
from meta_eval.lanes.usefulness import rubric, shapes
from meta_eval.lanes.usefulness.custody import order_blockers, unregistered
from meta_eval.lanes.usefulness.hiding import hidden_shape, read_hidden
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, scorer_codes, study_blockers

KIND = "usefulness-score"
AUTHORITY = {
    "permitsRevision": False,
    "statement": "One scorer's judgment, kept as it was given. A disagreement is adjudicated beside it, never in it.",
}
Place = tuple[str, str, str]


def score(
    document: object, study: Artifact, blinded: Artifact, state: Row, *, receipt: str, key: bytes, setting: Setting
) -> Artifact:
    """A scorer's filled sheet, ready or blocked.

    Args:
        document: the parsed scores.
        blinded: the verified blinding.
    """
    _, kept = read_hidden(document, shapes.SCORES, key, subject="scores")
    replay = {
        "study": extract(study),
        "register": state,
        "blinding": blinding_extract(blinded),
        "scores": kept,
    }
    inputs = by_digest(study=study, blindedSheets=blinded) | {"scores": {"receipt": receipt}}
    return STAGE.make(replay, inputs, setting)


def blinding_extract(blinded: Artifact) -> Row:
    """What a score keeps of the blinded sheets."""
    return {
        **{name: blinded[name] for name in ("digest", "status")},
        **{name: blinded["replay"][name] for name in ("sheets", "questions")},
    }


def rows_of(scored: Artifact) -> dict[Place, Row]:
    """The rows of a ready score by set, question and label."""
    return {place_of(row): row for row in scored["replay"]["scores"]["scores"]}


def place_of(row: Mapping[str, str]) -> Place:
    return row["setId"], row["questionId"], row["label"]


def extract_of(scored: Artifact) -> Row:
    """What later stages keep of a score: everything but its reasons."""
    rows = scored["replay"]["scores"]["scores"] if scored["status"] == "ready" else []
    return {
        "digest": scored["digest"],
        "status": scored["status"],
        "scorerCode": scored["result"]["scorerCode"],
        "rows": [{name: value for name, value in row.items() if name != "reason"} for row in rows],
    }


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state, blinding = replay["study"], replay["register"], replay["blinding"]
    reading = read_projection(replay["scores"], hidden_shape(shapes.SCORES), subject="scores")
    value = reading.value or {}
    code = value.get("scorerCode")
    blockers = [*study_blockers(replay, inputs, setting), *reading.blockers]
    blockers += order_blockers(state, event="scored", after=("blinded",), made_at=setting.made_at)
    blockers += unregistered(state, blinded=blinding["digest"])
    if blinding["status"] != "ready":
        blockers.append(Blocker("not-blinded", "blindedSheets"))
    if study["status"] == "ready" and code is not None:
        if code not in scorer_codes(study):
            blockers.append(Blocker("not-a-scorer", "scores.scorerCode"))
        elif value.get("sheetDigest") is not None and value["sheetDigest"] != blinding["sheets"].get(code):
            blockers.append(Blocker("sheet-differs", "scores.sheetDigest"))
    if code is not None and code in state["scored"]:
        blockers.append(Blocker("score-already-recorded", "register"))
    if state["adjudicated"] is not None or state["unblinded"] is not None:
        blockers.append(Blocker("scored-after-adjudication", "register"))
    rows = [row for row in value.get("scores") or [] if row is not None]
    blockers += coverage_blockers(rows, blinding["questions"])
    blockers += _contradictions(rows, blinding["questions"])
    return Judged(study["environment"], blockers, {"scorerCode": code, "scoreCount": len(rows)})


def coverage_blockers(rows: Sequence[Row], questions: Sequence[Row]) -> list[Blocker]:
    """Every label of every question once, and nothing else."""
    due = {(entry["setId"], entry["questionId"], label) for entry in questions for label in shapes.LABELS}
    found = Counter(place_of(row) for row in rows)
    counts = {
        "answer-not-scored": len(due - found.keys()),
        "answer-scored-twice": sum(n - 1 for place, n in found.items() if place in due),
        "score-of-unknown-answer": sum(n for place, n in found.items() if place not in due),
    }
    return [Blocker(rule, "scores.scores", count) for rule, count in counts.items() if count]


def _contradictions(rows: Sequence[Row], questions: Sequence[Row]) -> list[Blocker]:
    asked = {(entry["setId"], entry["questionId"]): entry for entry in questions}
    found: Counter[str] = Counter()
    for row in rows:
        entry = asked.get((row["setId"], row["questionId"]))
        if entry is None or not _judged(row):
            continue  # named already, as an unknown answer or by the value that was refused
        rule = rubric.contradiction(row, clauses=entry["clauses"], navigation=entry["navigation"])
        if rule is not None:
            found[rule] += 1
    return [Blocker(rule, "scores.scores[]", count) for rule, count in sorted(found.items())]


def _judged(row: Row) -> bool:
    required = ("criteria", "clauseCoverage", "sourceSupport", "essentialLimits", "useful", "defects")
    return all(row.get(name) is not None for name in required) and None not in row["criteria"].values()


STAGE = Stage(KIND, AUTHORITY, _judge)
