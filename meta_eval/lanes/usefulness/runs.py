"""Recorded runs: every attempt of every arm at every question, whatever came of it.

Source: the usefulness contract, records and budget. All questions of each set in each arm, the same corpus and
configuration in both; a further attempt only after one that delivered nothing, and only within the bound. What a
visitor saw first is the last attempt. Every completion of a paid arm matches one reservation of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from meta_eval.evidence.artifacts import Artifact, Blocker
from meta_eval.evidence.documents import read_projection
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness import shapes
from meta_eval.lanes.usefulness.budget import ledger_blockers
from meta_eval.lanes.usefulness.custody import order_blockers, unregistered
from meta_eval.lanes.usefulness.freeze import extract_of
from meta_eval.lanes.usefulness.hiding import hidden_shape, read_hidden
from meta_eval.lanes.usefulness.ledger import Ledger, amount_text
from meta_eval.lanes.usefulness.stage import Inputs, Judged, Row, Setting, Stage, by_digest
from meta_eval.lanes.usefulness.study import extract, set_ids, study_blockers

KIND = "recorded-runs"
AUTHORITY = {
    "permitsRerun": False,
    "permitsSelection": False,
    "statement": "What happened, all of it. No row may be left out, run again or replaced.",
}
_UNDELIVERED = ("timeout", "error")


def record(
    document: object,
    study: Artifact,
    frozen: Artifact,
    openings: Mapping[str, tuple[Artifact, Sequence[str]]],
    ledger: Sequence[Entry],
    state: Row,
    *,
    receipt: str,
    key: bytes,
    setting: Setting,
) -> Artifact:
    """The runs of a study, ready or blocked.

    Args:
        openings: by set, the verified opening and the ids of the packet's questions.
        ledger: the verified entries of the budget ledger.
    """
    environment = study["environment"] or "production"
    _, kept = read_hidden(document, shapes.runs(environment), key, subject="runs")
    opened = [
        {"setId": set_id, "digest": opening["digest"], "status": opening["status"], "questionIds": sorted(ids)}
        for set_id, (opening, ids) in sorted(openings.items())
    ]
    replay = {
        "study": extract(study),
        "register": state,
        "freeze": extract_of(frozen),
        "openings": opened,
        "ledger": list(ledger),
        "runs": kept,
    }
    inputs = by_digest(study=study, freeze=frozen) | {"runs": {"receipt": receipt}}
    inputs |= {f"opening:{set_id}": {"digest": opening["digest"]} for set_id, (opening, _) in sorted(openings.items())}
    return STAGE.make(replay, inputs, setting)


def delivered(rows: Sequence[Row]) -> dict[tuple[str, str, str], Row]:
    """What a visitor saw, by set, question and arm: the last attempt, with what all of them took.

    `latencyMs` is measured only where that of every attempt is. `cost` adds up the costs that are known, and
    `unknownCosts` counts those that are not.
    """
    attempts: dict[tuple[str, str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["attempt"])):
        attempts.setdefault((row["setId"], row["questionId"], row["arm"]), []).append(row)
    return {
        place: {
            **tried[-1],
            "latencyMs": _sum_latency([row["latencyMs"] for row in tried]),
            "cost": amount_text(sum((Decimal(row["cost"]) for row in tried if row["cost"] is not None), Decimal(0))),
            "unknownCosts": sum(row["cost"] is None for row in tried),
        }
        for place, tried in sorted(attempts.items())
    }


def latency_us(latency_ms: float) -> int:
    """A latency in whole microseconds, which the documents' reader has made sure it is."""
    return round(latency_ms * 1000)


def _sum_latency(values: Sequence[float | None]) -> int | float | None:
    measured = [latency_us(value) for value in values if value is not None]
    if len(measured) < len(values):
        return None
    whole, rest = divmod(sum(measured), 1000)
    return whole if not rest else sum(measured) / 1000


def _judge(replay: Row, inputs: Inputs, setting: Setting) -> Judged:
    study, state, frozen = replay["study"], replay["register"], replay["freeze"]
    environment = study["environment"]
    reading = read_projection(replay["runs"], hidden_shape(shapes.runs(environment or "production")), subject="runs")
    value = reading.value or {}
    blockers = [*study_blockers(replay, inputs, setting), *reading.blockers]
    blockers += order_blockers(state, event="runs-recorded", after=("frozen", "preflight"), made_at=setting.made_at)
    blockers += unregistered(state, frozen=frozen["digest"])
    if study["status"] != "ready" or frozen["status"] != "ready":
        return Judged(environment, [*blockers, Blocker("not-frozen", "freeze")])
    blockers += _binding_blockers(value, replay, state)
    rows = [row for row in value.get("runs") or [] if row is not None and _whole(row)]
    ledger, refused = ledger_blockers(replay["ledger"], frozen, setting.study)
    blockers += refused + _coverage_blockers(rows, replay, setting) + _attempt_blockers(rows, frozen)
    if ledger is not None:
        blockers += _cost_blockers(rows, study, ledger)
    statuses = Counter(row["status"] for row in delivered(rows).values())
    result = {
        "attempts": len(rows),
        "statuses": {status: statuses[status] for status in shapes.STATUSES},
        "budget": None if ledger is None else ledger.totals(),
        "invariantExercises": len(value.get("invariantExercises") or []),
    }
    return Judged(environment, blockers, result)


def _whole(row: Row) -> bool:
    """Whether nothing in a row was refused, apart from what may be null."""
    return all(row[name] is not None for name in ("setId", "questionId", "arm", "attempt", "status"))


def _binding_blockers(value: Row, replay: Row, state: Row) -> list[Blocker]:
    study, frozen = replay["study"], replay["freeze"]
    due = {
        "runnerCode": (frozen["runnerCode"], "not-the-designated-runner"),
        "freezeDigest": (frozen["digest"], "freeze-differs"),
        "corpusDigest": (frozen["corpusDigest"], "corpus-changed"),
        "activationDigest": (frozen["activationDigest"], "activation-changed"),
    }
    blockers = [
        Blocker(rule, f"runs.{name}")
        for name, (expected, rule) in due.items()
        if value.get(name) is not None and value[name] != expected
    ]
    opened = {entry["setId"]: entry for entry in replay["openings"] if entry["status"] == "ready"}
    for set_id in set_ids(study):
        if set_id not in opened or set_id not in state["opened"]:
            blockers.append(Blocker("packet-not-opened", "register"))
        elif opened[set_id]["digest"] != state["opened"][set_id]["digest"]:
            blockers.append(Blocker("differs-from-register", "opened"))
    return blockers


def _coverage_blockers(rows: Sequence[Row], replay: Row, setting: Setting) -> list[Blocker]:
    """Every question of every set in every arm, and nothing else."""
    arms = [arm["armId"] for arm in replay["study"]["arms"]]
    due = {
        (entry["setId"], question, arm)
        for entry in replay["openings"]
        for question in entry["questionIds"]
        for arm in arms
    }
    found = Counter((row["setId"], row["questionId"], row["arm"]) for row in rows)
    attempts = Counter((row["setId"], row["questionId"], row["arm"], row["attempt"]) for row in rows)
    counts = {
        "question-not-run": len(due - found.keys()),
        "run-of-unknown-question-or-arm": sum(n for place, n in found.items() if place not in due),
        "attempt-recorded-twice": sum(n - 1 for n in attempts.values()),
    }
    blockers = [Blocker(rule, "runs.runs", count) for rule, count in counts.items() if count]
    questions = setting.policy.sets * setting.policy.questions_per_set
    if sum(len(entry["questionIds"]) for entry in replay["openings"]) != questions:
        blockers.append(Blocker("denominator-reduced", "runs.openings"))
    return blockers


def _attempt_blockers(rows: Sequence[Row], frozen: Row) -> list[Blocker]:
    """Attempts from 1 without a gap, within the bound, each but the last one without a delivery."""
    tried: dict[tuple[str, str, str], dict[int, Row]] = {}
    for row in rows:
        tried.setdefault((row["setId"], row["questionId"], row["arm"]), {})[row["attempt"]] = row
    bound = frozen["mostAttempts"]
    counts = {
        "attempt-beyond-bound": sum(attempt > bound for found in tried.values() for attempt in found),
        "attempt-missing": sum(set(found) != set(range(1, len(found) + 1)) for found in tried.values()),
        "retried-after-a-delivery": sum(
            found[attempt]["status"] not in _UNDELIVERED for found in tried.values() for attempt in sorted(found)[:-1]
        ),
        "delivery-without-answer": sum(row["status"] not in _UNDELIVERED and row["answer"] is None for row in rows),
    }
    return [Blocker(rule, "runs.runs", count) for rule, count in counts.items() if count]


def _cost_blockers(rows: Sequence[Row], study: Row, ledger: Ledger) -> list[Blocker]:
    """A deterministic arm costs nothing; of a paid arm, every completion is one reservation, ended at that cost."""
    free = {arm["armId"] for arm in study["arms"] if arm["kind"] == "deterministic"}
    counts: Counter[str] = Counter()
    matched = set()
    for row in rows:
        if row["arm"] in free:
            counts["deterministic-arm-with-cost"] += row["reservationId"] is not None or Decimal(row["cost"] or 1) != 0
            continue
        place = (row["arm"], row["setId"], row["questionId"], row["attempt"])
        reservation = row["reservationId"]
        if reservation is None or ledger.reservations.get(reservation) != place:
            counts["completion-not-reserved"] += 1
            continue
        matched.add(reservation)
        if reservation not in ledger.ended:
            counts["reservation-still-open"] += 1
        elif not _same_amount(row["cost"], ledger.ended[reservation]):
            counts["cost-differs-from-ledger"] += 1
    counts["reserved-completion-not-recorded"] = len(ledger.reservations.keys() - matched)
    return [Blocker(rule, "runs.runs", count) for rule, count in sorted(counts.items()) if count]


def _same_amount(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    return Decimal(one) == Decimal(other)


STAGE = Stage(KIND, AUTHORITY, _judge)
