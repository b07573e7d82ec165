"""Acceptance: the verdict of a study, recomputed from its rows.

Source: the usefulness contract, acceptance. Every artifact that a row comes from must be ready, made from one another,
and the very one that the register holds; then the rows are joined and everything else follows from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.register import Entry, checked
from meta_eval.lanes.usefulness import figures, runs, scoring
from meta_eval.lanes.usefulness.adjudication import score_blockers
from meta_eval.lanes.usefulness.custody import order_blockers, register_name, state_of, unregistered
from meta_eval.lanes.usefulness.shapes import CAUSES
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import arm_of, extract, set_ids, study_blockers
from meta_eval.lanes.usefulness.unblinding import arm_of_label

KIND = "usefulness-acceptance"
LIMITS = (
    "The questions were written by the authors of these sets, who may be agents; they are no sample of visitors. "
    "This says nothing about performance in general, about reliability in production, or about value to real users."
)
AUTHORITY = {
    "establishesProductionReliability": False,
    "establishesRealUserValue": False,
    "permitsPublication": False,
    "permitsRelease": False,
    "statement": LIMITS,
}


def accept(
    study: Artifact,
    recorded: Artifact,
    blinded: Artifact,
    scores: Sequence[Artifact],
    adjudicated: Artifact,
    unblinded: Artifact,
    entries: Sequence[Entry],
    *,
    setting: Setting,
) -> Artifact:
    """The verdict of a study.

    Args:
        scores: the verified scores, in any order.
        entries: the verified entries of the study's register; the verdict keeps them.
    """
    ordered = sorted(scores, key=lambda scored: str(scored["result"]["scorerCode"]))
    chain = {"runs": recorded, "blinding": blinded, "adjudication": adjudicated, "unblinding": unblinded}
    ready = all(artifact["status"] == "ready" for artifact in [*chain.values(), *ordered]) and len(ordered) == 2
    ledger = recorded["replay"]["ledger"]
    replay = {
        "study": extract(study),
        "entries": list(entries),
        "register": state_of(entries),
        "chain": {name: {key: artifact[key] for key in ("digest", "status")} for name, artifact in chain.items()},
        "scores": [
            {"digest": one["digest"], "status": one["status"], "scorerCode": one["result"]["scorerCode"]}
            for one in ordered
        ],
        "linked": _linked(recorded, blinded, ordered, adjudicated, unblinded),
        "rows": _rows(study, recorded, ordered, adjudicated, unblinded) if ready else [],
        "exercises": recorded["replay"]["runs"].get("invariantExercises") if ready else [],
        "reservation": ledger[0]["body"]["reservation"] if ready else "0",
        "budget": recorded["result"].get("budget"),
    }
    inputs = by_digest(study=study, recordedRuns=recorded, blindedSheets=blinded)
    inputs |= by_digest(adjudication=adjudicated, unblinding=unblinded)
    inputs |= {f"score{number}": {"digest": scored["digest"]} for number, scored in enumerate(ordered, start=1)}
    return STAGE.make(replay, inputs, setting)


def _linked(
    recorded: Artifact, blinded: Artifact, scores: Sequence[Artifact], adjudicated: Artifact, unblinded: Artifact
) -> bool:
    """Whether the artifacts were made from one another, and not from others of their kind."""
    pairs = [
        (blinded["inputs"].get("recordedRuns"), recorded),
        (unblinded["inputs"].get("blindedSheets"), blinded),
        (unblinded["inputs"].get("adjudication"), adjudicated),
        *((scored["inputs"].get("blindedSheets"), blinded) for scored in scores),
        *((adjudicated["inputs"].get(f"score:{scored['result']['scorerCode']}"), scored) for scored in scores),
    ]
    return all(entry == {"digest": artifact["digest"]} for entry, artifact in pairs)


def _rows(
    study: Artifact, recorded: Artifact, scores: Sequence[Artifact], adjudicated: Artifact, unblinded: Artifact
) -> list[Row]:
    """One row an answer: delivery, both judgments and the decision, under its arm's role."""
    declared = extract(study)
    role_of = {arm["armId"]: arm["role"] for arm in declared["arms"]}
    shown = runs.delivered(recorded["replay"]["runs"]["runs"])
    first, second = map(scoring.rows_of, scores)
    decided = {scoring.place_of(row): row for row in adjudicated["replay"]["adjudication"]["decisions"]}
    rows = []
    for set_id, questions in arm_of_label(unblinded).items():
        for question_id, labels in questions.items():
            for label, arm in labels.items():
                place = (set_id, question_id, label)
                delivery, decision = shown[set_id, question_id, arm], decided.get(place)
                rows.append(
                    {
                        "setId": set_id,
                        "questionId": question_id,
                        "arm": role_of[arm],
                        "first": first[place]["useful"],
                        "second": second[place]["useful"],
                        "firstDefects": first[place]["defects"],
                        "secondDefects": second[place]["defects"],
                        "relevant": [one[place]["firstSourceRelevant"] for one in (first, second)],
                        "decisive": [one[place]["firstSourceDecisive"] for one in (first, second)],
                        "decided": None if decision is None else decision["disposition"] == "useful",
                        "cause": None if decision is None else decision["cause"],
                        **{name: delivery[name] for name in ("status", "latencyMs", "cost", "unknownCosts")},
                    }
                )
    return sorted(rows, key=lambda row: (row["setId"], row["questionId"], row["arm"]))


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study = replay["study"]
    entries = checked(replay["entries"], register_name(setting.study), source="custody register")
    state = state_of(entries)
    chain = replay["chain"]
    blockers = study_blockers({**replay, "register": state}, inputs, setting)
    blockers += order_blockers(
        state,
        event="accepted",
        after=("frozen", "preflight", "runs-recorded", "blinded", "adjudicated", "unblinded"),
        made_at=setting.made_at,
    )
    blockers += score_blockers(replay["scores"], study, state)
    events = {"runs": "runs_recorded", "blinding": "blinded", "adjudication": "adjudicated", "unblinding": "unblinded"}
    for name, entry in chain.items():
        blockers += unregistered(state, **{events[name]: entry["digest"]})
        if entry["status"] != "ready":
            blockers.append(Blocker("not-ready", name))
    if not replay["linked"]:
        blockers.append(Blocker("made-from-other-artifacts", "chain"))
    if not blockers:
        blockers = _coverage_blockers(replay["rows"], study, setting)
    if blockers:
        return Judged(study["environment"], blockers, {"missed": []})
    result = _result(replay, inputs["recordedRuns"]["digest"], setting)
    return Judged(study["environment"], [], result, _word(result["missed"], study["environment"]))


def _word(missed: Sequence[str], environment: str | None) -> str:
    if missed:
        return "failed"
    return "passed" if environment == "production" else "rehearsed"


def _coverage_blockers(rows: Sequence[Row], study: Row, setting: Setting) -> list[Blocker]:
    """All questions of every set in both arms, once: the denominator is what the policy says it is."""
    due = setting.policy.questions_per_set
    found = Counter((row["setId"], row["arm"]) for row in rows)
    places = Counter((row["setId"], row["questionId"], row["arm"]) for row in rows)
    blockers = []
    if any(found[set_id, role] != due for set_id in set_ids(study) for role in figures.ROLES) or len(found) != 2 * len(
        set_ids(study)
    ):
        blockers.append(Blocker("denominator-reduced", "rows", len(rows)))
    if max(places.values(), default=0) > 1:
        blockers.append(Blocker("answer-counted-twice", "rows"))
    if undecided := sum(row["first"] != row["second"] and row["decided"] is None for row in rows):
        blockers.append(Blocker("disagreement-undecided", "rows", undecided))
    return blockers


def _result(replay: Row, runs_digest: str, setting: Setting) -> Row:
    rows, study, policy = replay["rows"], replay["study"], setting.policy
    found = figures.finals(rows)
    names = set_ids(study)
    sets = {set_id: figures.paired_table(found, set_id, denominator=policy.questions_per_set) for set_id in names}
    combined = figures.paired_table(found, None, denominator=policy.questions_per_set * policy.sets)
    candidate = arm_of(study, "candidate")
    met = figures.verdict(sets, combined, policy, candidate_kind=candidate["kind"])
    by_arm = {role: [row for row in rows if row["arm"] == role] for role in figures.ROLES}
    causes = Counter(row["cause"] for row in rows if row["cause"])
    holders = [*study["roles"]["authors"], *study["roles"]["scorers"], study["roles"]["adjudicator"]]
    return {
        "sets": sets,
        "combined": combined,
        "threshold": f"{policy.least_useful_per_set} of {policy.questions_per_set}",
        "met": met,
        "missed": sorted(name for name, fine in met.items() if not fine),
        "information": figures.information(found, combined, seed=runs_digest),
        "agreement": figures.agreement(rows),
        "arms": {
            role: {
                "kind": arm_of(study, role)["kind"],
                **figures.arm_figures(
                    by_arm[role],
                    bound=Decimal(replay["reservation"]),
                    gain=combined["gain"] if role == "candidate" else None,
                ),
                "firstSource": _source_metrics(by_arm[role]),
            }
            for role in figures.ROLES
        },
        "adjudicated": sum(row["first"] != row["second"] for row in rows),
        **{cause: causes[cause] for cause in CAUSES},
        "invariantExercises": {
            "held": sum(entry["passed"] for entry in replay["exercises"]),
            "of": len(replay["exercises"]),
        },
        "budget": replay["budget"],
        "disclosure": {"agentProxies": sum(holder["kind"] == "agent-proxy" for holder in holders), "of": len(holders)},
        "limits": LIMITS,
    }


def _source_metrics(rows: Sequence[Row]) -> Row:
    """First-source relevance and decisiveness: judgments that say yes, over judgments where there was a source."""
    said = {name: [word for row in rows for word in row[name] if word is not None] for name in ("relevant", "decisive")}
    return {name: {"yes": sum(words), "of": len(words)} for name, words in said.items()}


STAGE = Stage(KIND, AUTHORITY, _judge)
