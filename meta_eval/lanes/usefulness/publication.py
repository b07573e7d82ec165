"""The public export: what anybody may read of a finished study, and recount.

Source: the usefulness contract, public export. Authors and scorers appear under names that belong to this export
alone; role codes, the nonce, costs, expanded texts and paths do not appear. An export that is refused holds no text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.identifiers import contact_rule
from meta_eval.lanes.usefulness import figures, runs, scoring
from meta_eval.lanes.usefulness.acceptance import LIMITS
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage
from meta_eval.lanes.usefulness.study import arm_of, codes_of, extract, scorer_codes, set_ids

KIND = "usefulness-export"
AUTHORITY = {
    "permitsReuseAsFresh": False,
    "reproducesSemanticScoring": False,
    "statement": "Recounting this export reproduces its counts. It neither repeats a judgment nor asks a model again.",
}
_MACHINE_PATH = re.compile(r"(?:^|[\s\"'(=])(?:/(?:home|root|Users|tmp|var|mnt|opt|srv)/|[A-Za-z]:\\)")


def pseudonyms(codes: Sequence[str], word: str, nonce: str) -> dict[str, str]:
    """Names for codes, such as ReviewerA: stable in an export, in an order that only the nonce gives away."""
    ordered = sorted(codes, key=lambda code: hmac.new(nonce.encode(), code.encode(), hashlib.sha256).digest())
    return {code: f"{word}{chr(ord('A') + place)}" for place, code in enumerate(ordered)}


def publish(
    study: Artifact,
    accepted: Artifact,
    unblinded: Artifact,
    state: Row,
    *,
    packets: Mapping[str, Row],
    recorded: Row,
    scores: Mapping[str, Row],
    adjudicated: Row,
    unfaithful: Sequence[str],
    setting: Setting,
) -> Artifact:
    """The export of a study, ready or blocked.

    Args:
        packets, recorded, scores, adjudicated: the private documents: by set, and by scorer's code.
        unfaithful: names of documents that are not those from which the verified artifacts were made.
    """
    declared = extract(study)
    gate: Row = {
        "accepted": {name: accepted[name] for name in ("digest", "status")},
        "registered": state["accepted"] == accepted["digest"],
        "consumed": {set_id: set_id in state["opened"] for set_id in set_ids(declared)},
        "permitted": {set_id: packets[set_id]["publication"]["permitted"] is True for set_id in sorted(packets)},
        "unfaithful": sorted(unfaithful),
        "screened": {},
    }
    inputs = {"acceptance": {"digest": accepted["digest"]}}
    empty: Row = {"environment": study["environment"], "gate": gate, "study": None, "questions": []}
    if accepted["status"] == "blocked" or unfaithful:
        return STAGE.make(empty, inputs, setting)
    nonce = unblinded["replay"]["key"]["nonce"]
    whole = {
        **empty,
        "study": _public_study(declared, packets, nonce),
        "questions": _questions(declared, unblinded, packets, recorded, scores, adjudicated, nonce),
    }
    gate["screened"] = _screened(whole, codes_of(declared))
    made = STAGE.make(whole, inputs, setting)
    return made if made["status"] == "ready" else STAGE.make(empty, inputs, setting)


def _public_study(declared: Row, packets: Mapping[str, Row], nonce: str) -> Row:
    kinds = {person["code"]: person["kind"] for person in declared["roles"]["authors"] + declared["roles"]["scorers"]}
    names = _names(declared, nonce)
    return {
        "sets": set_ids(declared),
        "arms": {role: arm_of(declared, role)["kind"] for role in figures.ROLES},
        "corpusDigest": declared["corpusDigest"],
        "activationDigest": declared["activation"]["digest"],
        "people": {name: kinds[code] for code, name in sorted(names.items(), key=lambda pair: pair[1])},
        "adjudicator": declared["roles"]["adjudicator"]["kind"],
        "authors": {author["setId"]: names[author["code"]] for author in declared["roles"]["authors"]},
        "retentionDays": {set_id: packet["retentionDays"] for set_id, packet in sorted(packets.items())},
        "limits": LIMITS,
    }


def _names(declared: Row, nonce: str) -> dict[str, str]:
    authors = [author["code"] for author in declared["roles"]["authors"]]
    return pseudonyms(authors, "Reviewer", nonce) | pseudonyms(scorer_codes(declared), "Scorer", nonce)


def _questions(
    declared: Row,
    unblinded: Artifact,
    packets: Mapping[str, Row],
    recorded: Row,
    scores: Mapping[str, Row],
    adjudicated: Row,
    nonce: str,
) -> list[Row]:
    shown = runs.delivered(recorded["runs"])
    names = _names(declared, nonce)
    role_of = {arm["armId"]: arm["role"] for arm in declared["arms"]}
    judged = {
        names[code]: {scoring.place_of(row): row for row in document["scores"]} for code, document in scores.items()
    }
    decided = {scoring.place_of(row): row for row in adjudicated["decisions"]}
    key = unblinded["replay"]["key"]["key"]
    rows = []
    for set_id, packet in sorted(packets.items()):
        for question in sorted(packet["questions"], key=lambda entry: str(entry["questionId"])):
            labels = key[set_id][question["questionId"]]
            deliveries = {
                role_of[arm]: _delivery(shown[set_id, question["questionId"], arm], place, judged, decided)
                for label, arm in labels.items()
                for place in [(set_id, question["questionId"], label)]
            }
            kept = ("questionId", "question", "clauses", "exactSourceNavigation", "oracle")
            rows.append({"setId": set_id, **{name: question[name] for name in kept}, "deliveries": deliveries})
    return rows


def _delivery(
    row: Row, place: scoring.Place, judged: Mapping[str, Mapping[Any, Row]], decided: Mapping[Any, Row]
) -> Row:
    """The first-visible answer with every judgment of it. Never the expanded text, its cost or its label."""
    dropped = ("setId", "questionId", "label")
    decision = decided.get(place)
    return {
        "status": row["status"],
        "answer": row["answer"],
        "limitations": row["limitations"],
        "links": row["links"],
        "judgments": {
            name: {key: value for key, value in rows[place].items() if key not in dropped}
            for name, rows in sorted(judged.items())
        },
        "adjudication": None
        if decision is None
        else {key: value for key, value in decision.items() if key not in dropped},
    }


def _screened(node: Any, codes: Sequence[str]) -> dict[str, int]:
    """What must not be published, by rule: how many texts hold it."""
    found = {"contact-detail": 0, "role-code": 0, "machine-path": 0}
    for text in _texts(node):
        found["contact-detail"] += contact_rule(text) is not None
        found["role-code"] += any(code in text for code in codes)
        found["machine-path"] += _MACHINE_PATH.search(text) is not None
    return found


def _texts(node: Any) -> Iterator[str]:
    """Every text that people wrote; URLs and digests have been checked by their own rules."""
    if isinstance(node, str):
        if not node.startswith("https://") and not re.fullmatch(r"[0-9a-f]{64}", node):
            yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _judge(replay: Row, _: Inputs, setting: Setting) -> Judged:
    gate, environment = replay["gate"], replay["environment"]
    blockers = []
    if gate["accepted"]["status"] == "blocked" or not gate["registered"]:
        blockers.append(Blocker("not-accepted-on-record", "acceptance"))
    blockers += [Blocker("packet-not-consumed", set_id) for set_id, done in gate["consumed"].items() if not done]
    blockers += [Blocker("publication-not-permitted", set_id) for set_id, told in gate["permitted"].items() if not told]
    blockers += [Blocker("document-differs-from-artifact", name) for name in gate["unfaithful"]]
    blockers += [Blocker(f"{rule}-in-text", "export", count) for rule, count in gate["screened"].items() if count]
    if blockers:
        return Judged(environment, blockers)
    return Judged(environment, [], counted(replay, setting))


def counted(replay: Row, setting: Setting) -> Row:
    """Every count of an export, from its rows."""
    rows = [
        {
            "setId": entry["setId"],
            "questionId": entry["questionId"],
            "arm": role,
            **_said(delivery),
        }
        for entry in replay["questions"]
        for role, delivery in entry["deliveries"].items()
    ]
    found, policy = figures.finals(rows), setting.policy
    sets = {
        set_id: figures.paired_table(found, set_id, denominator=policy.questions_per_set)
        for set_id in replay["study"]["sets"]
    }
    combined = figures.paired_table(found, None, denominator=policy.questions_per_set * policy.sets)
    met = figures.verdict(sets, combined, policy, candidate_kind=replay["study"]["arms"]["candidate"])
    return {
        "questionCount": len(replay["questions"]),
        "sets": sets,
        "combined": combined,
        "met": met,
        "missed": sorted(name for name, fine in met.items() if not fine),
        "agreement": figures.agreement(rows),
        "adjudicated": sum(row["first"] != row["second"] for row in rows),
        "defects": {role: figures.defects([row for row in rows if row["arm"] == role]) for role in figures.ROLES},
    }


def _said(delivery: Row) -> Row:
    (_, first), (_, second) = sorted(delivery["judgments"].items())
    decision = delivery["adjudication"]
    return {
        "first": first["useful"],
        "second": second["useful"],
        "firstDefects": first["defects"],
        "secondDefects": second["defects"],
        "decided": None if decision is None else decision["disposition"] == "useful",
    }


STAGE = Stage(KIND, AUTHORITY, _judge)
