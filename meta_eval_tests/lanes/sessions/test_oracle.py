"""Agreement with the published reference engine, row by row. Rows tagged `quirk` are held by the decisions instead."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from meta_eval.lanes.sessions.difference import differences
from meta_eval.lanes.sessions.facts import FactFinder
from meta_eval.lanes.sessions.judge import parsed_reply
from meta_eval.lanes.sessions.record import RecordError, checked, normalised, run_id_of
from meta_eval.lanes.sessions.resolution import SessionResolutionError
from meta_eval.lanes.sessions.rubric import VERSIONS
from meta_eval.lanes.sessions.scoring import score_one
from meta_eval.lanes.sessions.submission import submission
from meta_eval_tests.lanes.sessions.ledgers import MADE, RUBRICS, SHARED, ledger_of

ORACLE = SHARED / "oracle"
pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="the reference's verdicts are not beside this project")
Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ORACLE / f"{name}.jsonl").read_text(encoding="ascii").splitlines()]


def lay_out(files: dict[str, Any], folder: Path) -> Path:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            path.write_text("".join(f"{line}\n" for line in content), encoding="utf-8", newline="")
        elif content is not None and content.get("dir"):
            path.mkdir()
        elif content is not None:
            path.write_bytes(content["text"].encode() if "text" in content else base64.b64decode(content["b64"]))
    return folder


def outcome(row: Row, folder: Path, rubric: str) -> Row:
    """What we make of a row, in the oracle's words."""
    ledger = ledger_of(lay_out(row["files"], folder), rubric)
    try:
        scored = score_one(ledger, RUBRICS[rubric], row["args"]["session_id"])
    except SessionResolutionError as error:
        return {"error": error.reason}
    record = scored.record(MADE)
    valid: Any = True
    try:
        checked(record)
    except RecordError as error:
        valid = {"field": error.field}
    facts, stream = scored.facts, ledger.events
    index = FactFinder(ledger).peer_index
    return {
        "error": None,
        "resolvedVia": scored.resolved.via,
        "session_id": scored.session_id,
        "peers": index.peers(facts.window, scored.session_id) if facts.window else [],
        "dimensions": scored.dimensions,
        "kpis": facts.kpis,
        "run_id": record["run_id"].replace("20260820", "20260720"),
        "host_class": record["harness"]["host_class"],
        "record_valid": valid,
        "exit": 0 if valid is True else 1,
        "guard": None if facts.friction_by is None else {**facts.friction, "attribution": facts.friction_by},
        "ledger": _ledger_note(stream.state, stream.malformed, stream.gaps),
    }


def _ledger_note(state: str, malformed: int, gaps: int) -> str | None:
    if gaps:
        return f"{gaps} gap(s) [ring-hole×{gaps}]"
    return f"{malformed} unreadable line(s)" if malformed else "absent" if state == "absent" else None


def agrees(expected: Row, found: Row) -> bool:
    if expected.get("error") or found["error"]:
        return bool(expected.get("error")) and expected["error"]["class"] == found["error"]
    for key, value in expected.items():
        if key == "dimensions":
            ours = [
                {name: each[name] for name in ("id", "method", "status", "score") if name in each and name in theirs}
                for each, theirs in zip(found[key], value, strict=True)
            ]
            same = ours == value and ["score" in each for each in found[key]] == ["score" in each for each in value]
        else:
            same = key == "error" or found[key] == value
        if not same:
            return False
    return True


@pytest.mark.parametrize(("rubric", "key"), [("v1", "expected"), ("v2", "expected_v2")])
def test_every_plain_row_of_the_engine_agrees(rubric: str, key: str, tmp_path: Path) -> None:
    plain = [row for row in rows("engine") if not row.get("quirk")]
    differing = [
        row["id"]
        for number, row in enumerate(plain)
        if not agrees(row[key], outcome(row, tmp_path / str(number), rubric))
    ]
    assert len(plain) == 642
    assert differing == []


@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_no_quirk_ends_in_a_traceback_and_none_that_hangs_on_a_time_zone_is_guessed(
    rubric: str, tmp_path: Path
) -> None:
    quirks = [row for row in rows("engine") if row.get("quirk")]
    assert len(quirks) == 193
    for number, row in enumerate(quirks):
        found = outcome(row, tmp_path / str(number), rubric)
        if row.get("tz_dependent"):
            by_id = {each["id"]: each["status"] for each in found["dimensions"]}
            assert by_id["verification-evidence"] == "cannot-determine", row["id"]


@pytest.mark.parametrize("rubric", ["v1", "v2"])
def test_unmeasurable_windows_ties_and_abandoned_sessions_are_what_the_contract_says(
    rubric: str, tmp_path: Path
) -> None:
    for number, row in enumerate(row for row in rows("engine") if row.get("text_conflict")):
        found = outcome(row, tmp_path / str(number), rubric)
        conflict = row["text_conflict"]
        if conflict == "explicit-abandoned":
            assert found["error"] == "abandoned", row["id"]
            continue
        by_id = {each["id"]: each["status"] for each in found["dimensions"]}
        if conflict in ("full-gate-tie", "waves-not-a-list"):
            tied_alike = row["id"].startswith("date-event/") or by_id["gate-health"] == "cannot-determine"
            assert tied_alike, row["id"]
        if row["id"].startswith("window/"):
            assert by_id["verification-evidence"] == "cannot-determine", row["id"]
            if rubric == "v1" and row["id"] != "window/reversed-files-0":
                assert by_id["process-safety"] == "cannot-determine", row["id"]
        if conflict == "planned-negative":
            assert by_id["plan-fidelity"] == "cannot-determine"


def test_every_plain_record_is_taken_or_refused_by_the_same_field() -> None:
    plain = [row for row in rows("validate") if not row.get("quirk")]
    for row in plain:
        try:
            checked(json.loads(row["record_text"]))
            found: Row = {"ok": True}
        except RecordError as error:
            found = {"ok": False, "field": error.field}
        expected = row["expected"]
        assert (found["ok"], found.get("field")) == (expected["ok"], expected.get("field")), row["id"]
    assert len(plain) == 161


def test_every_plain_run_id_is_the_same() -> None:
    plain = [row for row in rows("run_id") if not row.get("quirk")]
    for row in plain:
        try:
            found: Row = {"ok": True, "value": run_id_of(row["session_id"], row["timestamp"])}
        except RecordError as error:
            found = {"ok": False, "error": "ValidationError", "field": error.field}
        assert found == row["expected"], row["id"]
    assert len(plain) == 23


@pytest.mark.parametrize(("name", "count"), [("normalize", 32), ("project", 25), ("diff", 20)])
def test_normalisation_projection_and_difference_are_the_same(name: str, count: int) -> None:
    for row in rows(name):
        if name == "diff":
            found: Any = differences(row["stored"], row["fresh"])
        else:
            found = {"normalize": normalised, "project": submission}[name](json.loads(row["record_text"]))
        # As text, for True equals 1 in Python and not in JSON.
        assert json.dumps(found, sort_keys=True) == json.dumps(row["expected"], sort_keys=True), row["id"]
    assert len(rows(name)) == count


@pytest.mark.parametrize(("rubric", "key"), [("v1", "expected"), ("v2", "expected_v2")])
def test_a_judges_reply_is_read_the_same(rubric: str, key: str) -> None:
    for row in rows("judge"):
        found = parsed_reply(row["text"], VERSIONS[rubric].judge_dimensions)
        assert json.dumps(found, sort_keys=True) == json.dumps(row[key], sort_keys=True), row["id"]
    assert len(rows("judge")) == 46
