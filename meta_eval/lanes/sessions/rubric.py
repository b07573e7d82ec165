"""The rubric's versions: a frozen file each, its digest, and the scorers that are registered under it.

The session process rubric. A change mints a new version in a new file; a version's file never changes. So its SHA-256
stands in `rubrics.lock` and in every record, and a file whose bytes differ from the lock is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from meta_eval.evidence.canonical import receipt
from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.sessions.dimensions import SCORERS_V1, SCORERS_V2, Scorer
from meta_eval.lanes.sessions.facts import Facts
from meta_eval.lanes.sessions.judge import ADHERENCE, QUALITY
from meta_eval.lanes.sessions.verdicts import Dimension

LOCK = "rubrics.lock"
_LOCKED = re.compile(r"([0-9a-f]{64}) [ *](\S+)")


class RubricError(MetaEvalError):
    """A rubric that is unknown, or whose file is not the frozen one."""


@dataclass(frozen=True)
class Version:
    """What a version of the rubric is, apart from its text."""

    version: str  # as the command line names it
    name: str  # as records name it
    file: str
    scorers: tuple[Scorer, ...]
    judge_dimensions: tuple[str, ...]
    reads_rotated: bool  # archives and ring files belong to the event stream
    drops_stubs: bool  # a backfilled stub gives way to a session's own record


VERSIONS: Mapping[str, Version] = {
    each.version: each
    for each in (
        Version("v1", "rubric-v1", "session-process-v1.md", SCORERS_V1, (ADHERENCE, QUALITY), False, False),
        Version("v2", "rubric-v2", "session-process-v2.md", SCORERS_V2, (ADHERENCE,), True, True),
    )
}
NEWEST = "v2"


@dataclass(frozen=True)
class Rubric:
    """A version whose file has been checked against the lock."""

    version: Version
    sha256: str

    def dimensions_of(self, facts: Facts) -> list[Dimension]:
        """Every dimension's verdict, in the rubric's order."""
        return [scorer(facts) for scorer in self.version.scorers]


def version_named(name: object) -> Version:
    """The version of a command's or a record's name, such as `v1` or `rubric-v1`.

    Raises:
        RubricError: no such version.
    """
    for version in VERSIONS.values():
        if name in (version.version, version.name):
            return version
    raise RubricError(f"a rubric version that is not registered here; known: {', '.join(VERSIONS)}")


def frozen_rubric(version: Version, text: bytes, lock: str) -> Rubric:
    """The rubric whose file has these bytes.

    Raises:
        RubricError: the lock does not name the file, or its digest is not that of the bytes.
    """
    locked = {name: digest for digest, name in _LOCKED.findall(lock)}
    if version.file not in locked:
        raise RubricError(
            f"{LOCK}: does not name {version.file}; a rubric is frozen before anything is scored under it"
        )
    if receipt(text) != locked[version.file]:
        raise RubricError(
            f"{version.file}: not the frozen bytes that {LOCK} names; restore it, for a change needs a new version"
        )
    return Rubric(version, locked[version.file])
