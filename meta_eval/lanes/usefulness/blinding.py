"""Blinding: answers under random labels, and a published commitment to which label is whose.

Source: the usefulness contract, records. For each question one random bit says which arm is X. The bits come from a
secret of at least 32 random bytes that a front door draws from the operating system, never from a seed, and the
commitment is over the key together with a random nonce, so no enumeration of seeds or keys can open it. A sheet
holds what a scorer may see: question, oracle, and both answers under their labels, in an order of ids.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.usefulness import runs
from meta_eval.lanes.usefulness.custody import order_blockers, unregistered
from meta_eval.lanes.usefulness.rubric import ASSESSMENTS, CRITERIA, DEFECTS
from meta_eval.lanes.usefulness.shapes import LABELS
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, scorer_codes, study_blockers

KIND = "blinded-sheets"
SECRET_BYTES = 32
AUTHORITY = {
    "permitsUnblinding": False,
    "statement": "Answers under labels. Which label is whose stays sealed until adjudication is closed.",
}
Key = dict[str, dict[str, dict[str, str]]]


def drawn_key(secret: bytes, questions: Mapping[str, Sequence[str]], arms: Sequence[str]) -> Key:
    """Which arm each label stands for, by set and question.

    Args:
        secret: at least 32 bytes from the operating system's generator.
        arms: the two arms.

    Raises:
        UsageError: a secret that could be guessed.
    """
    if len(secret) < SECRET_BYTES or len(set(secret)) < SECRET_BYTES // 4:
        raise UsageError("blinding needs 32 random bytes; a seed or a short secret could be found by trying")
    key: Key = {}
    for set_id, ids in sorted(questions.items()):
        for question_id in sorted(ids):
            bits = hmac.new(secret, f"{set_id}/{question_id}".encode(), hashlib.sha256).digest()
            ordered = sorted(arms, reverse=bool(bits[0] & 1))
            key.setdefault(set_id, {})[question_id] = dict(zip(LABELS, ordered, strict=True))
    return key


def commitment(key: Key, nonce: str) -> str:
    """SHA-256 over key and nonce: published before scoring, opened after adjudication."""
    return digest({"key": key, "nonce": nonce})


def sheet(
    scorer: str, study_name: str, activation: str, packets: Mapping[str, Row], rows: Sequence[Row], key: Key
) -> Row:
    """What one scorer sees, and all of it.

    Args:
        activation: the frozen activation configuration in words, against which privacy statements are scored.
        packets: the opened packets by set.
        rows: the runs as recorded.
    """
    shown = runs.delivered(rows)
    entries = []
    for set_id, packet in sorted(packets.items()):
        for question in sorted(packet["questions"], key=lambda question: str(question["questionId"])):
            labels = key[set_id][question["questionId"]]
            deliveries = [
                _delivery(label, shown[set_id, question["questionId"], arm]) for label, arm in sorted(labels.items())
            ]
            kept = ("questionId", "question", "clauses", "exactSourceNavigation", "oracle")
            entries.append({"setId": set_id, **{name: question[name] for name in kept}, "deliveries": deliveries})
    return {
        "version": 1,
        "study": study_name,
        "scorerCode": scorer,
        "activation": activation,
        # A list, because canonical JSON sorts keys and the rubric numbers its criteria.
        "criteria": [{"name": name, "text": text} for name, text in CRITERIA.items()],
        "assessments": list(ASSESSMENTS),
        "defects": list(DEFECTS),
        "entries": entries,
    }


def _delivery(label: str, row: Row) -> Row:
    """The first-visible answer and what stands beside it. Never the expanded text, nor how or at what cost it came."""
    answer = row["answer"] if row["status"] not in ("timeout", "error") else None
    links = [{"claim": link["claim"], "url": link["url"]} for link in row["links"]]
    return {"label": label, "answer": answer, "limitations": list(row["limitations"]), "links": links}


def blind(
    study: Artifact,
    recorded: Artifact,
    sheets: Mapping[str, Row],
    state: Row,
    *,
    published: str,
    terms: Sequence[str],
    setting: Setting,
) -> Artifact:
    """The artifact that publishes the commitment and binds the sheets.

    Args:
        recorded: the verified runs.
        sheets: each scorer's sheet by code.
        published: the commitment.
        terms: the arms' identity terms, which no answer may hold.
    """
    any_sheet: Row = next(iter(sheets.values()), {"entries": []})
    replay = {
        "study": extract(study),
        "register": state,
        "runs": {name: recorded[name] for name in ("digest", "status")},
        "commitment": published,
        "sheets": {code: digest(content) for code, content in sorted(sheets.items())},
        "questions": [
            {
                "setId": entry["setId"],
                "questionId": entry["questionId"],
                "clauses": len(entry["clauses"]),
                "navigation": entry["exactSourceNavigation"],
            }
            for entry in any_sheet["entries"]
        ],
        "namedArms": _naming(any_sheet, terms),
    }
    return STAGE.make(replay, by_digest(study=study, recordedRuns=recorded), setting)


def _naming(content: Row, terms: Sequence[str]) -> int:
    """How many deliveries give an arm away by name."""
    folded = [term.casefold() for term in terms]
    return sum(
        any(term in text.casefold() for text in _texts(delivery) for term in folded)
        for entry in content["entries"]
        for delivery in entry["deliveries"]
    )


def _texts(delivery: Mapping[str, Any]) -> list[str]:
    links = [text for link in delivery["links"] for text in (link["claim"], link["url"])]
    return [delivery["answer"] or "", *delivery["limitations"], *links]


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state = replay["study"], replay["register"]
    blockers = study_blockers(replay, inputs, setting)
    blockers += order_blockers(state, event="blinded", after=("runs-recorded",), made_at=setting.made_at)
    blockers += unregistered(state, runs_recorded=replay["runs"]["digest"])
    if replay["runs"]["status"] != "ready":
        blockers.append(Blocker("runs-not-ready", "recordedRuns"))
    if replay["namedArms"]:
        blockers.append(Blocker("answer-names-an-arm", "sheets", replay["namedArms"]))
    if study["status"] == "ready" and sorted(replay["sheets"]) != sorted(scorer_codes(study)):
        blockers.append(Blocker("not-one-sheet-a-scorer", "sheets", len(replay["sheets"])))
    if len(replay["questions"]) != setting.policy.sets * setting.policy.questions_per_set:
        blockers.append(Blocker("denominator-reduced", "sheets", len(replay["questions"])))
    result = {"commitment": replay["commitment"], "questionCount": len(replay["questions"])}
    return Judged(study["environment"], blockers, result)


STAGE = Stage(KIND, AUTHORITY, _judge)
