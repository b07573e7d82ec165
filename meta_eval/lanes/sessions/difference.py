"""The difference between a stored record's deterministic dimensions and those scored afresh.

The record contract, `verify`. A judge's opinions are no part of it. Values are compared by type and value; what is no
plain value (a list, an object) never equals another, as nothing of the kind is ever written.
"""

from __future__ import annotations

from typing import Any

from meta_eval.lanes.sessions.fields import is_text

COMPARED = ("status", "evidence", "score")
Difference = dict[str, Any]


def differences(stored: object, fresh: object) -> list[Difference]:
    """What changed, in the order of the stored dimensions and then of those that are only fresh."""
    before, after = _by_id(stored), _by_id(fresh)
    found: list[Difference] = []
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            found.append({"id": name, "reason": "present-in-stored-only"})
        elif name not in before:
            found.append({"id": name, "reason": "present-in-fresh-only"})
        else:
            found += _changed(name, before[name], after[name])
    return found


def _by_id(dimensions: object) -> dict[str, dict[str, Any]]:
    return {
        each["id"]: each
        for each in (dimensions if isinstance(dimensions, list) else [])
        if isinstance(each, dict) and each.get("method") == "deterministic" and is_text(each.get("id"))
    }


def _changed(name: str, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    changes: list[Difference] = []
    for field in COMPARED:
        if field in before or field in after:
            same = field in before and field in after and _same(before[field], after[field])
            if not same:
                sides = (("stored", before), ("fresh", after))
                changes.append({"id": name, "field": field, **{k: side[field] for k, side in sides if field in side}})
    return changes


def _same(one: object, other: object) -> bool:
    if isinstance(one, (list, dict)) or isinstance(other, (list, dict)):
        return False
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    # 1 and 1.0 are one number in JSON.
    return one == other if _numbers(one, other) else type(one) is type(other) and one == other


def _numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
