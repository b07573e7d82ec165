"""Adjudication: the answers on which the scorers disagree, decided by a third under the same rubric, with a rationale.

Source: the usefulness contract, records. A disagreement is one about `useful`. Every one is decided, nothing else is,
both initial judgments stay as they were, and a decision that goes against an answer says whether the oracle or the
product was at fault. The adjudicator's sheet names neither scorer nor arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import read_projection
from meta_eval.lanes.usefulness import shapes
from meta_eval.lanes.usefulness.custody import order_blockers
from meta_eval.lanes.usefulness.hiding import hidden_shape, read_hidden
from meta_eval.lanes.usefulness.scoring import Place, extract_of, place_of
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, scorer_codes, study_blockers

KIND = "usefulness-adjudication"
AUTHORITY = {
    "permitsRescoring": False,
    "statement": "Disagreements only, decided. What the scorers said stays as they said it.",
}


def disagreements(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[Place]:
    """The answers that one scorer calls useful and the other does not."""
    other = {place_of(row): row["useful"] for row in second}
    return sorted(place_of(row) for row in first if other.get(place_of(row), row["useful"]) != row["useful"])


def sheet(scorer_sheet: Row, first: Sequence[Row], second: Sequence[Row], *, adjudicator: str) -> Row:
    """What the adjudicator sees: each disputed answer with question, oracle and both judgments, unnamed.

    Args:
        scorer_sheet: a scorer's sheet.
        first, second: both scorers' rows with their reasons.
    """
    judgments = [{place_of(row): row for row in rows} for rows in (first, second)]
    disputed = set(disagreements(first, second))
    entries = []
    for entry in scorer_sheet["entries"]:
        for delivery in entry["deliveries"]:
            place = (entry["setId"], entry["questionId"], delivery["label"])
            if place in disputed:
                said = [
                    {name: value for name, value in rows[place].items() if name not in ("setId", "questionId", "label")}
                    for rows in judgments
                ]
                entries.append({**entry, "deliveries": [delivery], "judgments": said})
    kept = {name: value for name, value in scorer_sheet.items() if name not in ("entries", "scorerCode")}
    return {**kept, "adjudicatorCode": adjudicator, "entries": entries}


def adjudicate(
    document: object,
    study: Artifact,
    scores: Sequence[Artifact],
    state: Row,
    *,
    sheet_digest: str | None,
    receipt: str,
    key: bytes,
    setting: Setting,
) -> Artifact:
    """The adjudication, ready or blocked.

    Args:
        scores: the verified scores, one a scorer.
        sheet_digest: the digest of the sheet that the adjudicator was given.
    """
    _, kept = read_hidden(document, shapes.ADJUDICATION, key, subject="adjudication")
    replay = {
        "study": extract(study),
        "register": state,
        "scores": extracts_of(scores),
        "sheetDigest": sheet_digest,
        "adjudication": kept,
    }
    inputs = by_digest(study=study) | {"adjudication": {"receipt": receipt}}
    inputs |= {f"score:{one['result']['scorerCode']}": {"digest": one["digest"]} for one in scores}
    return STAGE.make(replay, inputs, setting)


def extracts_of(scores: Sequence[Artifact]) -> list[Row]:
    """What an adjudication keeps of the scores: each place, and whether it was called useful."""
    return [
        {**extract_of(scored), "rows": [{**_place(row), "useful": row["useful"]} for row in extract_of(scored)["rows"]]}
        for scored in scores
    ]


def _place(row: Row) -> Row:
    return {name: row[name] for name in ("setId", "questionId", "label")}


def score_blockers(scores: Sequence[Row], study: Row, state: Row) -> list[Blocker]:
    """Both scorers' scores, ready, and the very ones that the register holds."""
    blockers = []
    codes = scorer_codes(study) if study["status"] == "ready" else []
    if sorted(str(scored["scorerCode"]) for scored in scores) != sorted(codes):
        blockers.append(Blocker("not-one-score-a-scorer", "scores", len(scores)))
    for scored in scores:
        if scored["status"] != "ready":
            blockers.append(Blocker("score-not-ready", "scores"))
        elif state["scored"].get(scored["scorerCode"]) is None:
            blockers.append(Blocker("score-not-in-register", "scores"))
        elif state["scored"][scored["scorerCode"]] != scored["digest"]:
            blockers.append(Blocker("score-differs-from-register", "scores"))
    return blockers


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state, scores = replay["study"], replay["register"], replay["scores"]
    reading = read_projection(replay["adjudication"], hidden_shape(shapes.ADJUDICATION), subject="adjudication")
    value = reading.value or {}
    blockers = [*study_blockers(replay, inputs, setting), *reading.blockers]
    blockers += order_blockers(state, event="adjudicated", after=("blinded",), made_at=setting.made_at)
    blockers += score_blockers(scores, study, state)
    code = value.get("adjudicatorCode")
    if study["status"] == "ready" and code is not None and code != study["roles"]["adjudicator"]["code"]:
        blockers.append(Blocker("not-the-adjudicator", "adjudication.adjudicatorCode"))
    if value.get("sheetDigest") is not None and value["sheetDigest"] != replay["sheetDigest"]:
        blockers.append(Blocker("sheet-differs", "adjudication.sheetDigest"))
    disputed = disagreements(scores[0]["rows"], scores[1]["rows"]) if len(scores) == 2 else []
    decisions = [row for row in value.get("decisions") or [] if row is not None]
    blockers += _decision_blockers(decisions, disputed)
    causes = Counter(row["cause"] for row in decisions if row.get("cause"))
    result = {
        "disagreements": len(disputed),
        "useful": sum(row["disposition"] == "useful" for row in decisions),
        **{cause: causes[cause] for cause in shapes.CAUSES},
    }
    return Judged(study["environment"], blockers, result)


def _decision_blockers(decisions: Sequence[Row], disputed: Sequence[Place]) -> list[Blocker]:
    found = Counter(place_of(row) for row in decisions)
    counts = {
        "disagreement-undecided": len(set(disputed) - found.keys()),
        "decided-twice": sum(n - 1 for n in found.values()),
        "decision-without-disagreement": len(found.keys() - set(disputed)),
        "cause-missing": sum(row["disposition"] == "not-useful" and row["cause"] is None for row in decisions),
    }
    return [Blocker(rule, "adjudication.decisions", count) for rule, count in counts.items() if count]


STAGE = Stage(KIND, AUTHORITY, _judge)
