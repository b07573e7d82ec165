"""`verify`: is a record what its rubric, applied anew to the ledgers, says?

The record contract. Steps: the record's own form; its rubric's file against the lock and against the record; its run
id; then every dimension, KPI and the host class, scored afresh. A session may have many records in the ledger, and the
evidence names the line: the record verifies where one of them gives exactly its verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meta_eval.evidence.replay import first_difference
from meta_eval.lanes.sessions.difference import Difference, differences
from meta_eval.lanes.sessions.facts import FactFinder, Facts
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.record import Record, run_id_of
from meta_eval.lanes.sessions.rubric import Rubric, RubricError, version_named

ReadRubric = Callable[[str], Rubric]
ReadLedger = Callable[[Rubric], Ledger]


def verification(record: Record, read_rubric: ReadRubric, read_ledger: ReadLedger) -> list[Difference]:
    """What a record differs in; an empty list where it verifies.

    Args:
        record: a record that the contract takes.
        read_rubric: the frozen rubric of a version. May raise RubricError.
        read_ledger: the ledger as that rubric sees it.
    """
    found: list[Difference] = []
    try:
        rubric = read_rubric(version_named(record["rubric_version"]).version)
    except RubricError as error:
        return [{"id": "(rubric)", "reason": str(error)}]
    found += _changed("(rubric)", "rubric_sha256", record["provenance"]["rubric_sha256"], rubric.sha256)
    due = run_id_of(record["session_id"], record["timestamp"])
    found += _changed("(record)", "run_id", record["run_id"], due)
    return found + _rescored(record, rubric, read_ledger(rubric))


def _rescored(record: Record, rubric: Rubric, ledger: Ledger) -> list[Difference]:
    finder = FactFinder(ledger)
    tried: list[Difference] | None = None
    for line in reversed(ledger.lines):
        if line.session_id == record["session_id"]:
            facts = finder.facts_of(line)
            found = _against(record, facts, rubric)
            if not found:
                return []
            tried = found if tried is None else tried
    return tried or [{"id": "(ledger)", "reason": "sessions.jsonl holds no record of this session"}]


def _against(record: Record, facts: Facts, rubric: Rubric) -> list[Difference]:
    found = differences(record["dimensions"], rubric.dimensions_of(facts))
    names = [each["id"] for each in record["dimensions"] if each["method"] == "deterministic"]
    if not found and names != [each["id"] for each in rubric.dimensions_of(facts)]:
        found.append({"id": "(record)", "reason": "dimensions repeated, or in another order"})
    found += [
        difference
        for name, fresh in facts.kpis.items()
        for difference in _changed("(kpis)", name, record["kpis"].get(name), fresh)
    ]
    return found + _changed("(harness)", "host_class", record["harness"]["host_class"], facts.line.host_class)


def _changed(name: str, field: str, stored: Any, fresh: Any) -> list[Difference]:
    if first_difference(stored, fresh) is None:
        return []
    return [{"id": name, "field": field, "stored": stored, "fresh": fresh}]


def told(difference: Mapping[str, Any]) -> str:
    """A difference in one line."""
    if "reason" in difference:
        return f"{difference['id']}: {difference['reason']}"
    stored, fresh = (difference.get(side, "(missing)") for side in ("stored", "fresh"))
    return f"{difference['id']}.{difference['field']}: stored {stored!r}, now {fresh!r}"
