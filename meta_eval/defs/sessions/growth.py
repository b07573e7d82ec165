"""Which ledgers have grown: a pure function of their folders' listing and of what was seen before.

The orchestration contract. A ledger counts once it has stopped growing: sizes and times are those of the last look, or
the newest time is a while ago. It is read only when they changed, and it is news only when its bytes are new, so that
a touched or re-saved file starts nothing. File times say when to look again, and never what is true.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from meta_eval.evidence.errors import MetaEvalError

QUIET_NS = 10_000_000_000


@dataclass(frozen=True)
class Found:
    """A ledger's files as the folder tells them: name, size and time of each, in one text, and the newest time."""

    stamp: str
    newest_ns: int


@dataclass(frozen=True)
class Tick:
    """What one look comes to: run keys by ledger, what to tell, and the next cursor."""

    run_keys: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    cursor: str = "{}"


def look(ledgers: Mapping[str, Found], cursor: str | None, *, now_ns: int, version_of: Callable[[str], str]) -> Tick:
    """One tick over every ledger.

    Args:
        version_of: the digest of everything in a ledger. May raise MetaEvalError or OSError.
    """
    tick, before, after = Tick(), _remembered(cursor), {}
    for name, found in sorted(ledgers.items()):
        stamp, version = before.get(name, ("", ""))
        after[name] = (found.stamp, version)
        if stamp == found.stamp and version.startswith("read:"):
            continue
        if stamp != found.stamp and now_ns - found.newest_ns < QUIET_NS:
            after[name] = (found.stamp, version.replace("read:", "old:", 1))
            continue
        try:
            current = version_of(name)
        except (MetaEvalError, OSError):
            tick.messages.append(f"{name}: its ledgers cannot be read; check their permissions")
            continue
        if version.partition(":")[2] != current:
            tick.run_keys[name] = f"{name}:{current}"
        after[name] = (found.stamp, f"read:{current}")
    return Tick(tick.run_keys, tick.messages, json.dumps(after, separators=(",", ":")))


def _remembered(cursor: str | None) -> dict[str, tuple[str, str]]:
    try:
        value: Any = json.loads(cursor or "{}")
        return {name: (str(stamp), str(version)) for name, (stamp, version) in value.items()}
    except (ValueError, TypeError, AttributeError):
        return {}  # a cursor that cannot be read only costs a look
