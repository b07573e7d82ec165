"""The trend: across a journal's records, how often each dimension came out how.

The record contract, `trend`. A dimension's rate is of the sessions that could be judged: passes over passes and fails,
with a Wilson interval. Groups (rubric version, and model) are never mixed. Two groups whose intervals overlap are a
tie, and one judged session is said to be one. Each session counts once a group, by its last record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from meta_eval.evidence.statistics import Ratio, wilson_95
from meta_eval.lanes.sessions.record import Record
from meta_eval.lanes.sessions.verdicts import STATUSES

Group = tuple[str, str]


def trend(records: Iterable[Record]) -> dict[str, Any]:
    """Counts, rates and ties, by dimension and group."""
    latest: dict[tuple[Group, str], Record] = {}
    total = 0
    for record in records:
        total += 1
        latest[(record["rubric_version"], record["model"]["id"]), record["session_id"]] = record
    counts: dict[str, dict[Group, Counter[str]]] = {}
    for (group, _), record in latest.items():
        for dimension in record["dimensions"]:
            if dimension["method"] == "deterministic":
                by_group = counts.setdefault(dimension["id"], {})
                by_group.setdefault(group, Counter())[dimension["status"]] += 1
    return {
        "records": total,
        "sessions": len({session for _, session in latest}),
        "dimensions": {name: _dimension(by_group) for name, by_group in counts.items()},
    }


def _dimension(by_group: dict[Group, Counter[str]]) -> dict[str, Any]:
    groups = {group: _figures(group, counter) for group, counter in sorted(by_group.items())}
    return {"groups": list(groups.values()), "comparisons": _comparisons(groups)}


def _figures(group: Group, counter: Counter[str]) -> dict[str, Any]:
    ratio = Ratio(counter["pass"], counter["pass"] + counter["fail"])
    interval = wilson_95(ratio)
    return {
        "rubric": group[0],
        "model": group[1],
        "counts": {status: counter[status] for status in STATUSES},
        "judged": ratio.denominator,
        "passRate": ratio.shown,
        "wilson95": None if interval is None else list(interval),
        "note": {0: "none judged", 1: "n=1: one session is no trend"}.get(ratio.denominator, ""),
    }


def _comparisons(groups: dict[Group, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every two groups of one rubric; those of different rubrics are not compared, for they ask other things."""
    found = []
    for one, other in combinations(groups, 2):
        first, second = groups[one]["wilson95"], groups[other]["wilson95"]
        if one[0] != other[0] or first is None or second is None:
            continue
        if first[1] < second[0] or second[1] < first[0]:
            higher = one if first[0] > second[1] else other
            result = f"higher: {higher[1]}"
        else:
            result = "tie: the intervals overlap"
        found.append({"rubric": one[0], "models": [one[1], other[1]], "result": result})
    return found
