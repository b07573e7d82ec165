"""Reading the documents that people fill in: whole, strict, and without keeping what must not be kept.

Source: the house promises *fail closed* and *private by construction*. A `Shape` says which keys and values a
document may have. `read` gives three things at once:

- the value for the stage's own logic, with None wherever something was refused;
- the *projection*, the same document with each refused value replaced by the name of the rule it breaks, which is
  what an artifact may keep. `read_projection` gives the same projection and the same blockers again, so a blocked
  artifact can be rebuilt from it; a document that a person brings is never read as if it were a projection;
- the blockers, one for each rule and place, counted.

A part in which nothing was refused or ignored is not copied: value and projection are the document's own.
Nothing that was refused is kept or shown: not the value, nor the spelling of an unknown key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from meta_eval.evidence.artifacts import Blocker
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.identifiers import (
    contact_rule,
    content_key,
    identifying_key,
    is_code,
    urls_carry_contact,
)
from meta_eval.evidence.public_hosts import url_refusal

REFUSED = "refused"
REFUSED_KEYS = "refusedKeys"
IGNORED_KEYS = "ignoredKeys"
_RULE = re.compile(r"[a-z][a-z0-9-]{0,60}")


@dataclass(frozen=True)
class Leaf:
    """A value without parts: `rule_broken` names the rule it breaks, or gives None."""

    rule_broken: Callable[[object], str | None]


@dataclass(frozen=True)
class Listed:
    """A list whose entries all have one shape."""

    entry: Shape


@dataclass(frozen=True)
class Keyed:
    """An object with exactly these keys; `optional` ones may be absent, `ignored` ones are dropped and counted."""

    keys: Mapping[str, Shape]
    optional: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()


Shape = Leaf | Listed | Keyed


@dataclass
class Reading:
    """A document after reading: `value` for logic, `projection` to keep, `blockers`, and how much was ignored."""

    value: Any
    projection: Any
    _faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    ignored: int = 0
    projected: bool = False

    @property
    def blockers(self) -> list[Blocker]:
        return [Blocker(code, subject, count) for (code, subject), count in sorted(self._faults.items())]

    def refused_at(self, subject: str) -> int:
        """How many values were refused at one place, such as `reviews[].reviewedAt`."""
        return sum(count for (_, place), count in self._faults.items() if place == subject)


def read(document: object, shape: Shape, *, subject: str) -> Reading:
    """Read a parsed JSON value under a shape; `subject` opens every blocker's place. Raises nothing."""
    reading = Reading(None, None)
    reading.value, reading.projection = _visit(document, shape, subject, reading)
    return reading


def read_projection(projection: object, shape: Shape, *, subject: str) -> Reading:
    """Read again what `read` gave as a projection: the same projection, blockers and count of what was ignored."""
    reading = Reading(None, None, projected=True)
    reading.value, reading.projection = _visit(projection, shape, subject, reading)
    return reading


def kept_part(part: object, shape: Shape, *, pointer: str) -> Any:
    """A part of a replay that a stage wrote itself, which must fit its shape without a fault.

    Raises:
        VerificationError: it does not, so no stage wrote it.
    """
    reading = read(part, shape, subject=pointer)
    if reading.blockers or reading.ignored:
        raise VerificationError("replay", "holds what no stage keeps", pointer)
    return reading.value


def _visit(node: object, shape: Shape, place: str, reading: Reading) -> tuple[Any, Any]:
    if reading.projected and isinstance(node, dict) and node.keys() == {REFUSED}:
        rule = node[REFUSED]
        return _refuse(rule if isinstance(rule, str) and _RULE.fullmatch(rule) else "wrong-type", place, reading)
    if isinstance(shape, Leaf):
        rule = shape.rule_broken(node)
        return (node, node) if rule is None else _refuse(rule, place, reading)
    if isinstance(shape, Listed):
        if not isinstance(node, list):
            return _refuse("not-a-list", place, reading)
        return _visit_list(node, shape, f"{place}[]", reading)
    if not isinstance(node, dict):
        return _refuse("not-an-object", place, reading)
    return _visit_object(node, shape, place, reading)


def _visit_list(node: list[Any], shape: Listed, place: str, reading: Reading) -> tuple[list[Any], list[Any]]:
    pairs = [_visit(entry, shape.entry, place, reading) for entry in node]
    if all(value is entry and kept is entry for entry, (value, kept) in zip(node, pairs, strict=True)):
        return node, node
    return [value for value, _ in pairs], [projection for _, projection in pairs]


def _visit_object(
    node: dict[str, Any], shape: Keyed, place: str, reading: Reading
) -> tuple[dict[str, Any], dict[str, Any]]:
    value: dict[str, Any] = {}
    projection: dict[str, Any] = {}
    whole = True
    for key, inner in shape.keys.items():
        if key in node:
            item = node[key]
            if type(inner) is Leaf and type(item) is not dict and inner.rule_broken(item) is None:
                value[key] = projection[key] = item  # by far the most; saves a call and a place for each
                continue
            value[key], projection[key] = _visit(item, inner, f"{place}.{key}", reading)
            whole = whole and value[key] is item and projection[key] is item
        elif key not in shape.optional:
            value[key], projection[key] = _refuse("missing-key", f"{place}.{key}", reading)
            whole = False
    if whole and len(value) == len(node):
        return node, node
    ignored, refused = _other_keys(node, shape, projected=reading.projected)
    for rule, count in refused.items():
        reading._faults[rule, place] += count
    reading.ignored += ignored
    if refused:
        projection[REFUSED_KEYS] = dict(sorted(refused.items()))
    if ignored:
        projection[IGNORED_KEYS] = ignored
    return value, projection


def _other_keys(node: dict[str, Any], shape: Keyed, *, projected: bool) -> tuple[int, Counter[str]]:
    """Keys beyond the shape's: how many are ignored aggregates, and the rules that the others break."""
    ignored, refused = 0, Counter[str]()
    for key, inner in node.items():
        if key in shape.keys:
            continue
        if projected and key == REFUSED_KEYS and isinstance(inner, dict):
            refused.update({rule: n for rule, n in inner.items() if _RULE.fullmatch(rule) and _is_count(n)})
        elif projected and key == IGNORED_KEYS and _is_count(inner):
            ignored += inner
        else:
            found = _screened_keys({key: inner})
            if key in shape.ignored and not found:
                ignored += 1
            else:
                refused.update(found or {"unknown-key": 1})
    return ignored, refused


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _screened_keys(node: object) -> Counter[str]:
    """Identifying and content keys in a part that no shape describes, at any depth."""
    found = Counter[str]()
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
            for key in item:
                if identifying_key(key):
                    found["identifying-field"] += 1
                elif content_key(key):
                    found["content-field"] += 1
        elif isinstance(item, list):
            stack.extend(item)
    return found


def _refuse(rule: str, place: str, reading: Reading) -> tuple[None, dict[str, str]]:
    reading._faults[rule, place] += 1
    return None, {REFUSED: rule}


# The values that documents are made of.


def exactly(expected: object, *, rule: str) -> Leaf:
    """One value only, of the same type (`true` is not 1)."""
    return Leaf(lambda value: None if type(value) is type(expected) and value == expected else rule)


def one_of(options: tuple[str, ...], *, rule: str) -> Leaf:
    """One of a few words."""
    return Leaf(lambda value: None if isinstance(value, str) and value in options else rule)


def matching(pattern: str, *, rule: str, screened: bool = True) -> Leaf:
    """Text of a written form that is no contact detail."""
    compiled = re.compile(pattern)

    def rule_broken(value: object) -> str | None:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            return rule
        return "contact-detail" if screened and _contact(value) else None

    return Leaf(rule_broken)


@lru_cache(maxsize=65_536)
def _contact(value: str) -> bool:
    return contact_rule(value) is not None


@lru_cache(maxsize=65_536)
def _url_rule(value: str, environment: str) -> str | None:
    if (rule := url_refusal(value, environment=environment)) is not None:
        return f"url-{rule}"
    return "url-contact-detail" if urls_carry_contact(value) else None


def none_or(leaf: Leaf) -> Leaf:
    """Null, or what the leaf takes."""
    return Leaf(lambda value: None if value is None else leaf.rule_broken(value))


def public_url(environment: str) -> Leaf:
    """A URL that may serve as evidence in this environment; the rule it breaks is named, never the URL."""
    return Leaf(lambda value: _url_rule(value, environment) if isinstance(value, str) else "url-not-a-string")


def whole_number(*, least: int, most: int, rule: str) -> Leaf:
    """An integer within bounds; `true` and 1.0 are not integers here."""
    return Leaf(
        lambda value: (
            None if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most else rule
        )
    )


SHA256 = matching(r"[0-9a-f]{64}", rule="not-a-sha256", screened=False)
INSTANT = Leaf(lambda value: None if instant_ms(value) is not None else "not-an-instant")
WRITTEN_INSTANT = Leaf(
    lambda value: None if (ms := instant_ms(value)) is not None and written_instant(ms) == value else "not-as-written"
)
CODE = Leaf(lambda value: None if is_code(value) else "not-a-code")
TRUE_OR_FALSE = Leaf(lambda value: None if isinstance(value, bool) else "not-true-or-false")
