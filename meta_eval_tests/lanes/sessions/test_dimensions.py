"""Each dimension's table, one row a case; the expected verdict is read off the rubric, not off the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meta_eval.lanes.sessions.resolution import SessionResolutionError, eligible, resolve
from meta_eval_tests.lanes.sessions.ledgers import (
    QUIET,
    event,
    evidence,
    folder,
    gate,
    ledger_of,
    scored,
    session,
    statuses,
)

VERIFICATION, PLAN, GATES, SAFETY = "verification-evidence", "plan-fidelity", "gate-health", "process-safety"
HOUSEKEEPING = {"wave": 1, "role": "Housekeeping", "coordinator_direct": True}


def verdicts(path: Path, record: dict[str, Any], events: Any, rubric: str = "v1") -> dict[str, str]:
    return statuses(scored(folder(path, [record], events), rubric=rubric))


@pytest.mark.parametrize(
    ("events", "files", "expected"),
    [
        ([QUIET], 0, "not-applicable"),
        ([QUIET], 4, "cannot-determine"),
        ([QUIET], ..., "cannot-determine"),
        ([QUIET], "0", "cannot-determine"),
        ([gate("10:00"), gate("11:00")], 4, "pass"),  # both bounds are inside
        ([gate("09:59"), gate("11:01")], 0, "not-applicable"),
        ([gate("10:10"), gate("10:20", 1)], 4, "fail"),
        ([gate("10:10", 0.0)], 4, "pass"),
        *[([gate("10:10"), gate("10:20", code)], 4, "fail") for code in (False, None, ..., "0", True, -1)],
        ([gate("10:10"), gate("10:20", [0])], 4, "cannot-determine"),  # says nothing that could be an exit code
        ([gate("10:10", 1), gate("10:20", {})], 4, "fail"),
        ([gate("10:10", timestamp="noon")], 0, "not-applicable"),
        ([gate("10:10", 1, timestamp="2026-08-01 10:30:00")], 0, "cannot-determine"),  # whose 10:30?
        ([gate("10:10", 1, timestamp="2026-08-09 10:30:00"), gate("10:20")], 0, "pass"),  # no zone is that far off
        ([gate("10:10", 1), gate("10:20", timestamp="2026-08-01 10:30:00")], 0, "fail"),
    ],
)
def test_verification_evidence(tmp_path: Path, events: Any, files: Any, expected: str) -> None:
    assert verdicts(tmp_path, session(total_files_changed=files), events)[VERIFICATION] == expected


@pytest.mark.parametrize(
    ("effectiveness", "expected", "score"),
    [
        ({"completion_rate": 0.8}, "pass", 0.8),
        ({"completion_rate": 0.7999999999999999}, "fail", 0.7999999999999999),
        ({"completion_rate": 0, "planned_issues": 0}, "fail", 0),
        ({"planned_issues": 0}, "not-applicable", None),
        ({}, "not-applicable", None),
        (..., "not-applicable", None),
        ({"planned_issues": 2}, "cannot-determine", None),
        ({"planned_issues": -1}, "cannot-determine", None),
        ({"completion_rate": "0.9", "planned_issues": 2}, "cannot-determine", None),
        ({"completion_rate": True, "planned_issues": 0}, "not-applicable", None),
        ({"planned_issues": "five"}, "cannot-determine", None),
        ({"planned_issues": {"n": 5}}, "cannot-determine", None),
    ],
)
def test_plan_fidelity(tmp_path: Path, effectiveness: Any, expected: str, score: Any) -> None:
    found = scored(folder(tmp_path, [session(effectiveness=effectiveness)], [QUIET]))
    plan = next(each for each in found.dimensions if each["id"] == PLAN)
    assert (plan["status"], plan["score"]) == (expected, score)


@pytest.mark.parametrize(
    ("events", "waves", "expected"),
    [
        ([gate("10:10", full=True)], {}, "pass"),
        ([gate("10:10", full=True), gate("10:20", 1, full=True)], {}, "fail"),
        ([gate("10:20", full=True), gate("10:10", 1, full=True)], {}, "pass"),
        ([gate("10:10", full=True), gate("10:20", 1)], {}, "pass"),  # the later gate is no full one
        ([gate("10:10", full=True), gate("10:10", full=True)], {}, "pass"),  # one instant, one answer
        ([gate("10:10", 1, full=True), gate("10:10", 2, full=True)], {}, "fail"),
        ([gate("10:10", full=True), gate("10:10", 1, full=True)], {}, "cannot-determine"),
        ([gate("10:10", {}, full=True)], {}, "cannot-determine"),
        ([gate("10:10", full=True, timestamp="2026-08-01 10:30:00")], {}, "cannot-determine"),
        ([QUIET], {}, "cannot-determine"),
        ([QUIET], {"total_waves": 0}, "not-applicable"),
        ([QUIET], {"waves": []}, "not-applicable"),
        ([QUIET], {"total_waves": 1, "waves": [HOUSEKEEPING]}, "not-applicable"),
        ([QUIET], {"total_waves": 2, "waves": [HOUSEKEEPING, {"role": "Quality"}]}, "cannot-determine"),
        ([QUIET], {"total_waves": 3, "waves": "three"}, "cannot-determine"),
        ([QUIET], {"total_waves": 3, "waves": ...}, "cannot-determine"),
        ([QUIET], {"total_waves": ..., "waves": ...}, "not-applicable"),
        (None, {"total_waves": 0}, "not-applicable"),
    ],
)
def test_gate_health(tmp_path: Path, events: Any, waves: dict[str, Any], expected: str) -> None:
    assert verdicts(tmp_path, session(**waves), events)[GATES] == expected


BLOCKED, LOOP = event("10:15", "destructive_guard.blocked"), event("10:16", "loop.warning")


@pytest.mark.parametrize(
    ("events", "spiral", "v1", "v2"),
    [
        ([QUIET], 0, "pass", "pass"),
        ([QUIET], ..., "pass", "pass"),
        ([LOOP], 0, "pass", "pass"),
        ([BLOCKED], 0, "fail", "pass"),
        ([QUIET], 1, "fail", "fail"),
        ([QUIET], 0.5, "fail", "fail"),
        ([QUIET], "1", "cannot-determine", "cannot-determine"),
        ([QUIET], [], "cannot-determine", "cannot-determine"),
        ([QUIET], True, "cannot-determine", "cannot-determine"),
        ([BLOCKED], "1", "fail", "cannot-determine"),
        ([], 3, "cannot-determine", "cannot-determine"),
        (None, 3, "cannot-determine", "cannot-determine"),
        (["null", "[]", '"x"'], 0, "cannot-determine", "cannot-determine"),  # lines, and not one event
        ([BLOCKED | {"timestamp": "2026-08-01T10:15:00"}], 0, "cannot-determine", "pass"),
    ],
)
def test_process_safety(tmp_path: Path, events: Any, spiral: Any, v1: str, v2: str) -> None:
    summary = {"complete": 4} | ({} if spiral is ... else {"spiral": spiral})
    record = session(agent_summary=summary)
    assert verdicts(tmp_path / "1", record, events)[SAFETY] == v1
    assert verdicts(tmp_path / "2", record, events, "v2")[SAFETY] == v2


@pytest.mark.parametrize("bounds", [{"completed_at": ...}, {"completed_at": "2026-08-01T11:00:00"}, {"end": "09:00"}])
def test_an_unmeasurable_window_abstains_where_the_stream_holds_what_would_have_to_be_placed(
    tmp_path: Path, bounds: dict[str, Any]
) -> None:
    record = session(total_files_changed=0, total_waves=0, **bounds)
    found = verdicts(tmp_path / "a", record, [gate("10:10", 1, full=True), BLOCKED])
    assert (found[VERIFICATION], found[GATES], found[SAFETY]) == ("cannot-determine",) * 3
    spiralled = session(agent_summary={"complete": 1, "spiral": 2}, **bounds)
    assert verdicts(tmp_path / "b", spiralled, [BLOCKED])[SAFETY] == "fail"
    # A kind that the stream holds nowhere fell into no window, whatever the window was.
    found = verdicts(tmp_path / "c", record, [QUIET])
    assert (found[VERIFICATION], found[GATES], found[SAFETY]) == ("not-applicable", "not-applicable", "pass")


def test_one_overlapping_session_leaves_the_gates_to_nobody(tmp_path: Path) -> None:
    events = [gate("10:10", full=True)]
    for start, end, shared in (("09:00", "10:00", False), ("11:00", "12:00", False), ("10:59", "12:00", True)):
        path = folder(
            tmp_path / start.replace(":", ""), [session("p", start, end, status="abandoned"), session()], events
        )
        found = scored(path)
        assert found.facts.is_contaminated is shared
        assert statuses(found)[VERIFICATION] == ("cannot-determine" if shared else "pass")
        assert ('Overlapped by "p"' in evidence(found, GATES)) is shared


def test_guard_friction_counts_by_the_tied_raw_id_wherever_it_was_and_else_by_window(tmp_path: Path) -> None:
    late = event("15:00", "destructive_guard.blocked", session_id="u1")
    foreign = event("10:20", "destructive_guard.warned", session_id="u2")
    tie = event("10:01", "wave.started", session_id="u1", semantic_session_id="s1")
    found = scored(folder(tmp_path / "tied", [session()], [tie, late, foreign]), rubric="v2")
    assert (found.facts.friction, found.facts.friction_by) == (
        {"blocked": 1, "warned": 0, "loop_warning": 0},
        "session-id",
    )
    found = scored(folder(tmp_path / "loose", [session()], [late, foreign]), rubric="v2")
    assert (found.facts.friction, found.facts.friction_by) == (
        {"blocked": 0, "warned": 1, "loop_warning": 0},
        "time-window",
    )
    assert statuses(found)["guard-friction"] == "not-applicable"
    assert "guard-friction" not in statuses(scored(tmp_path / "loose"))


def test_an_evidence_text_holds_every_number_that_its_verdict_follows_from(tmp_path: Path) -> None:
    path = folder(tmp_path, [session()], [gate("10:10"), gate("10:20", 1, full=True), BLOCKED])
    found = scored(path)
    for part in (
        "2026-08-01T10:00:00.000Z to 2026-08-01T11:00:00.000Z",
        "2 quality gate(s)",
        "1 with exit_code 0",
        "1 with another",
    ):
        assert part in evidence(found, VERIFICATION)
    assert "the last, at 2026-08-01T10:20:00.000Z, has an exit_code other than 0" in evidence(found, GATES)
    assert "1 blocked command(s)" in evidence(found, SAFETY)
    assert "only since 2026-07-16" in evidence(found, SAFETY)
    assert "line 1 of sessions.jsonl" in evidence(found, "efficiency-kpis")


def test_a_hostile_id_is_cut_and_made_printable_in_evidence(tmp_path: Path) -> None:
    hostile = "p\u202e\n" + "x" * 5000
    path = folder(tmp_path, [session(), session(hostile)], [QUIET])
    text = evidence(scored(path, "s1"), GATES)
    assert len(text) < 400
    assert "\u202e" not in text


def test_unknown_figures_are_null_and_absurd_ones_are_named(tmp_path: Path) -> None:
    record = session(total_waves="many", total_token_input=10**30, total_agents=2**53, effectiveness=...)
    found = scored(folder(tmp_path, [record], [QUIET]))
    assert found.facts.kpis == {
        "duration_seconds": 3600,
        "total_waves": None,
        "total_agents": None,
        "token_input": None,
        "token_output": 200,
        "carryover": None,
    }
    assert "total_waves is no number (string)" in evidence(found, "efficiency-kpis")


@pytest.mark.parametrize(("milliseconds", "seconds"), [(499, 0), (500, 1), (1499, 1), (2500, 3)])
def test_a_derived_duration_rounds_halves_up(tmp_path: Path, milliseconds: int, seconds: int) -> None:
    end = f"2026-08-01T10:00:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}Z"
    assert scored(folder(tmp_path, [session(completed_at=end)], [QUIET])).facts.kpis["duration_seconds"] == seconds


def test_the_newest_record_that_qualifies_is_taken(tmp_path: Path) -> None:
    records = [
        session("old"),
        session("worked", status=...),
        session("idle", status=..., agent_summary={}, effectiveness=...),
        session("left", status="abandoned"),
        session("", status="completed"),
        session(None, status="completed"),
    ]
    resolved = resolve(ledger_of(folder(tmp_path, records, [])), None)
    assert (resolved.line.session_id, resolved.via, resolved.passed_over) == ("worked", "cascade-fallback", 2)
    assert [line.session_id for line in eligible(ledger_of(tmp_path))] == ["old", "worked"]


@pytest.mark.parametrize(
    ("records", "session_id", "reason"),
    [
        ([], None, "no-records"),
        ([session("a")], "A", "not-found"),
        ([session("a", status="abandoned")], None, "none-eligible"),
        ([session("a"), session("a", status="abandoned")], "a", "abandoned"),
        ([session("")], None, "none-eligible"),
    ],
)
def test_why_nothing_can_be_scored_is_said(
    tmp_path: Path, records: list[Any], session_id: str | None, reason: str
) -> None:
    with pytest.raises(SessionResolutionError) as refused:
        resolve(ledger_of(folder(tmp_path, records, [])), session_id)
    assert refused.value.reason == reason


def test_v2_takes_rotated_files_names_their_gaps_and_drops_stubs(tmp_path: Path) -> None:
    stub = session(status="abandoned", _backfill_source="close", effectiveness=...)
    path = folder(tmp_path, [session(), stub], [QUIET])
    archive = path / "_archive" / "events-20260801T090000Z_20260801T103000Z.jsonl"
    archive.parent.mkdir()
    folder(tmp_path / "x", [], [gate("10:05", 1)])
    archive.write_bytes((tmp_path / "x" / "events.jsonl").read_bytes())
    (path / "_archive" / "events-mine.jsonl").write_text("nonsense\n", encoding="utf-8")
    for number in (1, 3):
        (path / f"events.jsonl.{number}").write_text('{"event":"x"}\n', encoding="utf-8")
    ledger = ledger_of(path, "v2")
    assert (ledger.events.gaps, ledger.events.malformed, ledger.dropped_stubs) == (1, 0, 1)
    assert statuses(scored(path, "s1", "v2"))[VERIFICATION] == "fail"
    assert statuses(scored(path, None, "v1"))[VERIFICATION] == "cannot-determine"
