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


class Scorer:
    """The sessions of one ledger under one rubric, over indexes that are built once."""

    def __init__(self, ledger: Ledger, rubric: Rubric) -> None:
        self._ledger, self._rubric, self._finder = ledger, rubric, FactFinder(ledger)

    def one(self, session_id: str | None = None) -> Scored:
        """The named session, or the one that the cascade finds. Raises SessionResolutionError."""
        return self._scored(resolve(self._ledger, session_id))

    def every(self) -> Iterator[Scored]:
        """Every eligible session, in the ledger's order."""
        for line in eligible(self._ledger):
            yield self._scored(Resolved(line, "explicit"))

    def _scored(self, resolved: Resolved) -> Scored:
        facts = self._finder.facts_of(resolved.line)
        return Scored(resolved, facts, self._rubric.dimensions_of(facts))


def score_one(ledger: Ledger, rubric: Rubric, session_id: str | None = None) -> Scored:
    """Score the named session, or the one that the cascade finds. Raises SessionResolutionError."""
    return Scorer(ledger, rubric).one(session_id)


def score_all(ledger: Ledger, rubric: Rubric) -> Iterator[Scored]:
    """Score every eligible session, in the ledger's order."""
    return Scorer(ledger, rubric).every()
