"""Scoring: the facts of a session under a rubric, for one session or for every eligible one in one pass.

The session process rubric. One session and all sessions go the same way, over the same indexes, so that a verdict does
not depend on which was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from meta_eval.lanes.sessions.facts import FactFinder, Facts
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.record import Provenance, Record, made_record
from meta_eval.lanes.sessions.resolution import Resolved, eligible, resolve
from meta_eval.lanes.sessions.rubric import Rubric
from meta_eval.lanes.sessions.verdicts import Dimension


@dataclass(frozen=True)
class Scored:
    """One session with its verdicts."""

    resolved: Resolved
    facts: Facts
    dimensions: list[Dimension]

    @property
    def session_id(self) -> str:
        return self.resolved.line.session_id or ""

    def record(self, made: Provenance) -> Record:
        """The record of these verdicts, not yet checked against the contract."""
        return made_record(self.session_id, self.facts.kpis, self.dimensions, self.facts.line.host_class, made)


def score_one(source: Ledger | FactFinder, rubric: Rubric, session_id: str | None = None) -> Scored:
    """Score the named session, or the one that the cascade finds.

    Args:
        source: a ledger, or its fact finder where sessions are asked for one after the other: indexes are built once.

    Raises:
        SessionResolutionError: no session can be scored as asked.
    """
    finder = source if isinstance(source, FactFinder) else FactFinder(source)
    return _scored(finder, rubric, resolve(finder.ledger, session_id))


def score_all(ledger: Ledger, rubric: Rubric) -> Iterator[Scored]:
    """Score every eligible session, in the ledger's order."""
    finder = FactFinder(ledger)
    for line in eligible(ledger):
        yield _scored(finder, rubric, Resolved(line, "explicit"))


def _scored(finder: FactFinder, rubric: Rubric, resolved: Resolved) -> Scored:
    facts = finder.facts_of(resolved.line)
    return Scored(resolved, facts, rubric.dimensions_of(facts))
