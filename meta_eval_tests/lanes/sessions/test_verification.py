"""`verify` finds every changed value of a record, and a changed rubric; a ledger that merely grew changes nothing."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meta_eval.lanes.sessions.record import Record, RecordError, checked
from meta_eval.lanes.sessions.steps import RUBRICS, Metrics, scored, under
from meta_eval.lanes.sessions.verification import verification
from meta_eval_tests.lanes.sessions.ledgers import MADE, QUIET, event, folder, gate, lines, session

# What a record says about who scored it is not in the ledgers, so it cannot be scored anew.
NOT_REPLAYED = {
    *(f"/harness/{name}" for name in ("plugin_version", "platform", "hostname_hash")),
    *("/model/id", "/model/source", "/handle", "/anonymized", "/standard_version", "/provenance/engine_commit"),
}


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    events = [
        event("10:00", "session.started", host_class="linux-x64"),
        gate("10:10"),
        gate("10:20", 1, full=True),
        event("10:15", "destructive_guard.blocked"),
    ]
    return Metrics.of(folder(tmp_path, [session("s0", "08:00", "09:00"), session()], events))


def record_of(metrics: Metrics, rubric: str) -> Record:
    _, frozen, found = scored(metrics, rubric, "s1")
    return checked(found.record(under(frozen, MADE)))


def differing(metrics: Metrics, record: Record) -> list[dict[str, Any]]:
    return verification(record, metrics.rubric, metrics.ledger)


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield f"{pointer}/{key}", value, key
        yield from leaves(child, f"{pointer}/{key}")


@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_an_honest_record_verifies_and_no_changed_value_does(metrics: Metrics, rubric: str) -> None:
    record = record_of(metrics, rubric)
    assert differing(metrics, record) == []
    tried = survived = 0
    for pointer, _, _ in list(leaves(record)):
        if pointer in NOT_REPLAYED:
            continue
        for change in ("other", 7, None, "removed"):
            changed = copy.deepcopy(record)
            holder, key = next((holder, key) for place, holder, key in leaves(changed) if place == pointer)
            if holder[key] == change:
                continue
            if change == "removed":
                del holder[key]
            else:
                holder[key] = change
            tried += 1
            try:
                if not differing(metrics, checked(changed)):
                    survived += 1
            except RecordError:
                pass
    assert tried > 170
    # Removing the schema version leaves a record that normalisation completes to the very same.
    assert survived == 1


def test_a_ledger_that_grew_by_other_sessions_changes_no_verdict(metrics: Metrics) -> None:
    records = [record_of(metrics, rubric) for rubric in ("v1", "v2")]
    with (metrics.folder / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines([session("s2", "12:00", "13:00"), "{torn"]))
    with (metrics.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines([gate("12:30", 1), QUIET | {"timestamp": "2026-08-01T12:01:00Z"}, "nonsense"]))
    assert [differing(metrics, record) for record in records] == [[], []]


def test_a_changed_ledger_is_drift_told_dimension_by_dimension(metrics: Metrics) -> None:
    record = record_of(metrics, "v1")
    text = (metrics.folder / "events.jsonl").read_text(encoding="utf-8")
    (metrics.folder / "events.jsonl").write_text(text.replace('"exit_code": 1', '"exit_code": 0'), encoding="utf-8")
    found = differing(metrics, record)
    assert {(each["id"], each["field"]) for each in found} == {
        ("verification-evidence", "status"),
        ("verification-evidence", "evidence"),
        ("gate-health", "status"),
        ("gate-health", "evidence"),
    }


def test_a_changed_byte_of_the_rubric_is_drift(metrics: Metrics, tmp_path: Path) -> None:
    record = record_of(metrics, "v1")
    shutil.copytree(RUBRICS, tmp_path / "rubrics")
    with (tmp_path / "rubrics" / "session-process-v1.md").open("ab") as file:
        file.write(b" ")
    edited = Metrics.of(metrics.folder, rubrics=tmp_path / "rubrics")
    (difference,) = differing(edited, record)
    assert "not the frozen bytes" in difference["reason"]


def test_a_record_of_an_earlier_line_of_its_session_still_verifies(metrics: Metrics) -> None:
    record = record_of(metrics, "v1")
    with (metrics.folder / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines([session(total_files_changed=0, effectiveness={"completion_rate": 0.1})]))
    assert differing(metrics, record) == []


def test_a_session_that_the_ledger_lost_is_drift(metrics: Metrics) -> None:
    record = record_of(metrics, "v1")
    (metrics.folder / "sessions.jsonl").write_text("", encoding="utf-8")
    assert [each["id"] for each in differing(metrics, record)] == ["(ledger)"]


def test_a_verdict_told_twice_or_in_another_order_is_drift(metrics: Metrics) -> None:
    record = record_of(metrics, "v1")
    twice = record | {"dimensions": [*record["dimensions"], record["dimensions"][0]]}
    turned = record | {"dimensions": record["dimensions"][::-1]}
    for changed in (twice, turned):
        assert differing(metrics, changed) != []
