"""Single values of a ledger line: numbers kept as numbers, everything else kept as the name of its JSON type.

The session process rubric: a value of the wrong type is never coerced, and neither is it forgotten, so that a
verdict can name the field. A number beyond a double is `infinite`, as JSON's own grammar allows it.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from meta_eval.evidence.canonical import MAX_SAFE_INTEGER

Measure = int | float | str | None  # a number, the name of a JSON type, or nothing
_INFINITE = {"infinite": math.inf, "minus infinite": -math.inf}
# What the reference's trim() removes, which is neither str.strip() nor the white space of JSON.
WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def measure(value: object) -> Measure:
    """A value as a measure. Whole numbers become integers; an integer no double can hold is rounded to one."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return _number(value)
    return "string" if isinstance(value, str) else "list" if isinstance(value, list) else "object"


def _number(value: int | float) -> Measure:
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf if value > 0 else -math.inf
    if math.isinf(as_float):
        return "infinite" if as_float > 0 else "minus infinite"
    if as_float.is_integer() and abs(as_float) <= MAX_SAFE_INTEGER:
        return int(as_float)
    return as_float


def number_of(value: Measure) -> int | float | None:
    """The number that a measure is, or None where it is none."""
    return _INFINITE.get(value) if isinstance(value, str) else value


def wrong_type(value: Measure) -> str | None:
    """The JSON type of a measure that is there and no number."""
    return value if isinstance(value, str) and value not in _INFINITE else None


def counted(value: Measure) -> int | float | None:
    """A number that a double holds exactly, or None: an infinite or rounded figure is no measurement."""
    return None if isinstance(value, str) or value is None or abs(value) > MAX_SAFE_INTEGER else value


def blank(text: str) -> bool:
    """Whether a text has nothing but white space."""
    return not text.strip(WHITE_SPACE)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a value is a text with something in it."""
    return isinstance(value, str) and not blank(value)


def member(holder: object, name: str) -> Any:
    """A member of a value that may be no object at all."""
    return holder.get(name) if isinstance(holder, dict) else None


def given(value: object) -> bool:
    """Whether a field is set at all: not missing, null, false, zero or an empty text."""
    return bool(value) or isinstance(value, (list, dict))


def shown(text: str, *, most: int = 80) -> str:
    """A text from a ledger as it may stand in evidence: printable, and no longer than it is useful."""
    cut = text[:most] + ("…" if len(text) > most else "")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)
