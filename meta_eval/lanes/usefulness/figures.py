"""The figures of a study, recomputed from its rows and from nothing else.

Source: the usefulness contract, acceptance. A row is one answer: set, question, arm, both judgments, the decision
where they differ, and how it was delivered. The denominator is always the policy's; a timeout is not useful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from meta_eval.evidence import statistics
from meta_eval.evidence.statistics import Ratio
from meta_eval.lanes.usefulness.ledger import amount_text
from meta_eval.lanes.usefulness.paired import gain_interval_95, mcnemar_exact
from meta_eval.lanes.usefulness.policy import Policy
from meta_eval.lanes.usefulness.rubric import DEFECTS
from meta_eval.lanes.usefulness.runs import latency_us
from meta_eval.lanes.usefulness.shapes import STATUSES
from meta_eval.lanes.usefulness.stage import Row

ROLES = ("baseline", "candidate")
Finals = dict[str, dict[tuple[str, str], bool]]


def final(row: Mapping[str, object]) -> bool:
    """Whether an answer counts as useful: what both scorers say, or else what the adjudicator decided."""
    if row["first"] == row["second"]:
        return bool(row["first"])
    return row["decided"] is True


def finals(rows: Sequence[Row]) -> Finals:
    """By arm's role, whether each question's answer is useful."""
    found: Finals = {role: {} for role in ROLES}
    for row in rows:
        found[row["arm"]][row["setId"], row["questionId"]] = final(row)
    return found


def paired_table(found: Finals, set_id: str | None, *, denominator: int) -> Row:
    """Both, recoveries, losses, neither, of one set or (None) of all, with each arm's count and its interval."""
    pairs = [
        (useful, found["candidate"][place])
        for place, useful in sorted(found["baseline"].items())
        if set_id in (None, place[0])
    ]
    counts = Counter(pairs)
    by_arm = {"baseline": sum(one for one, _ in pairs), "candidate": sum(other for _, other in pairs)}
    return {
        "questions": denominator,
        "useful": by_arm,
        "both": counts[True, True],
        "recoveries": counts[False, True],
        "losses": counts[True, False],
        "neither": counts[False, False],
        "gain": by_arm["candidate"] - by_arm["baseline"],
        "wilson95": {role: _listed(statistics.wilson_95(Ratio(count, denominator))) for role, count in by_arm.items()},
    }


def verdict(sets: Mapping[str, Row], combined: Row, policy: Policy, *, candidate_kind: str) -> dict[str, bool]:
    """Each condition of acceptance and whether it is met. A deterministic candidate owes no gain."""
    least = policy.least_useful_per_set
    met = {f"leastUseful:{set_id}": table["useful"]["candidate"] >= least for set_id, table in sets.items()}
    if candidate_kind != "deterministic":
        met["combinedGain"] = combined["gain"] >= policy.least_combined_gain
        met |= {f"noLowerSet:{set_id}": table["gain"] >= -policy.most_loss_per_set for set_id, table in sets.items()}
    return met


def information(found: Finals, combined: Row, *, seed: str) -> Row:
    """The test and the interval that readers ask for, and that gate nothing."""
    differences = [int(found["candidate"][place]) - int(useful) for place, useful in sorted(found["baseline"].items())]
    p = mcnemar_exact(combined["recoveries"], combined["losses"])
    return {
        "mcnemarExactP": round(float(p), 12),
        "gainPerQuestion95": _listed(gain_interval_95(differences, seed=seed)),
    }


def agreement(rows: Sequence[Row]) -> Row:
    """How far the two scorers agreed about `useful`, over every answer of both arms."""
    pairs = [(row["first"], row["second"]) for row in rows]
    kappa, raw = statistics.cohens_kappa(pairs), statistics.agreement(pairs)
    return {
        "pairs": len(pairs),
        "agreed": raw.numerator,
        "value": raw.shown,
        "kappa": None if kappa is None else round(float(kappa), 12),
    }


def arm_figures(rows: Sequence[Row], *, bound: Decimal, gain: int | None) -> Row:
    """Latency, cost, statuses, defects and the separate source metrics of one arm.

    Args:
        bound: the conservative cost of a completion whose usage is unknown.
        gain: the candidate's net useful gain; None for the baseline, to which no gain is charged.
    """
    useful = sum(map(final, rows))
    latencies = [latency_us(row["latencyMs"]) for row in rows if row["latencyMs"] is not None]
    statuses = Counter(row["status"] for row in rows)
    known = sum((Decimal(row["cost"]) for row in rows), Decimal(0))
    unknown = sum(row["unknownCosts"] for row in rows)
    upper = known + unknown * bound
    return {
        "useful": useful,
        "answers": len(rows),
        "statuses": {status: statuses[status] for status in STATUSES},
        "latencyMs": {
            "measured": len(latencies),
            "of": len(rows),
            **{f"p{percent}": _milliseconds(latencies, percent) for percent in (50, 95)},
        },
        "cost": {"known": amount_text(known), "unknownCount": unknown, "upperBound": amount_text(upper)},
        "costPerUseful": _per(known, upper, useful),
        "costPerNetGain": None if gain is None else _per(known, upper, gain),
        "defects": defects(rows),
    }


def defects(rows: Sequence[Row]) -> dict[str, int]:
    """Answers by defect class: a class counts once an answer, where a scorer whose word stands has named it."""
    found: Counter[str] = Counter()
    for row in rows:
        standing = [row[f"{who}Defects"] for who in ("first", "second") if row[who] == final(row)]
        found.update({defect for named in standing for defect in named})
    return {name: found[name] for name in DEFECTS}


def _per(known: Decimal, upper: Decimal, count: int) -> Row | None:
    """Cost for each of a positive count, as known and at its bound; nothing where there is nothing to divide by."""
    if count <= 0:
        return None
    return {"known": _quotient(known, count), "upperBound": _quotient(upper, count)}


def _quotient(amount: Decimal, count: int) -> str:
    scaled = round(Fraction(amount) / count * 10**9)
    return amount_text(Decimal(scaled).scaleb(-9))


def _milliseconds(latencies: Sequence[int], percent: int) -> float | None:
    value = statistics.nearest_rank(latencies, percent=percent)
    return None if value is None else value / 1000


def _listed(interval: statistics.Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
