"""The dimensions that gates do not decide, and the two orders in which a rubric's version scores them.

The session process rubric: `plan-fidelity`, `process-safety` (which v2 defines anew), `guard-friction` (v2 only) and
`efficiency-kpis`. The last two are reported and never graded.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from meta_eval.lanes.sessions.facts import Facts, Guards
from meta_eval.lanes.sessions.fields import counted, number_of, wrong_type
from meta_eval.lanes.sessions.gates import gate_health, verification_evidence
from meta_eval.lanes.sessions.verdicts import Dimension, peers_text, stream_text, verdict, window_text, written

Scorer = Callable[[Facts], Dimension]
PLAN, SAFETY, FRICTION, KPIS = "plan-fidelity", "process-safety", "guard-friction", "efficiency-kpis"
LEAST_COMPLETION = Fraction(4, 5)
GUARDS_SINCE = "2026-07-16"
_DISCLOSURE = (
    f"Guards report their blocks only since {GUARDS_SINCE}: in a session before that day, no block on record does not "
    "mean that none happened."
)


def plan_fidelity(facts: Facts) -> Dimension:
    """Did the session finish what it planned?"""
    line = facts.line
    rate, planned = line.completion_rate, line.planned_issues
    context = (
        f"completion_rate is {written(rate)}, planned_issues {written(planned)}, carryover {written(line.carryover)}, "
        f"carryover_ratio {written(line.carryover_ratio)}."
    )
    value = number_of(rate)
    if value is not None and not isinstance(rate, str):
        # The threshold is the double that a ledger's own 0.8 is, so the comparison is made between doubles.
        status = "pass" if value >= float(LEAST_COMPLETION) else "fail"
        return {**verdict(PLAN, status, f"{context} At least 0.8 passes."), "score": rate}
    expected = number_of(planned)
    if wrong_type(planned) in ("string", "object"):
        status, meaning = "cannot-determine", "planned_issues is no number, so whether anything was planned is unknown"
    elif expected is None or expected == 0:
        status, meaning = "not-applicable", "nothing was planned"
    else:
        status, meaning = "cannot-determine", "issues were planned, and how many were completed is unknown"
    return {**verdict(PLAN, status, f"{context} No usable rate: {meaning}."), "score": None}


def process_safety_v1(facts: Facts) -> Dimension:
    """Did a guard block a command, or an agent spiral?"""
    spiral, told = _spiral(facts)
    if not facts.stream.is_measurable:
        return verdict(SAFETY, "cannot-determine", f"{stream_text(facts)}{told} {_DISCLOSURE}")
    blocked, loops = facts.guards["blocked"], facts.guards["loop_warning"]
    where = f"{window_text(facts)} {stream_text(facts)}{_guards_text(facts.guards, ('blocked', 'loop_warning'))} {told}"
    if facts.is_contaminated:
        where += f" {peers_text(facts)} Counts may hold another session's signals."
    where = f"{where} {_DISCLOSURE}"
    if (spiral is not None and spiral > 0) or blocked:
        return verdict(SAFETY, "fail", where)
    if facts.unplaced_blocked:
        where += f" {facts.unplaced_blocked} blocked command(s) near the window have an instant without an offset."
    if spiral is None or blocked is None or loops is None or facts.unplaced_blocked:
        return verdict(SAFETY, "cannot-determine", where)
    return verdict(SAFETY, "pass", f"{where} A loop warning alone is no failure." if loops else where)


def process_safety_v2(facts: Facts) -> Dimension:
    """Did an agent spiral? A blocked command is the guard at work, and is counted under guard-friction."""
    spiral, told = _spiral(facts)
    if not facts.stream.is_measurable:
        return verdict(SAFETY, "cannot-determine", f"{stream_text(facts)}{told}")
    status = "cannot-determine" if spiral is None else "fail" if spiral > 0 else "pass"
    return verdict(SAFETY, status, f"{stream_text(facts)}{told}")


def _spiral(facts: Facts) -> tuple[int | float | None, str]:
    """The record's own count of spirals: zero where it is missing, None where it is no number."""
    recorded = facts.line.spiral
    told = f"agent_summary.spiral is {written(recorded)}."
    if recorded is None:
        return 0, f"{told} A missing count is no spiral."
    if wrong_type(recorded):
        return None, f"{told} It is not read as one."
    return number_of(recorded), told


def guard_friction(facts: Facts) -> Dimension:
    """How often guards and loop warnings spoke up: reported, never graded."""
    if facts.friction_by is None:
        return verdict(FRICTION, "not-applicable", f"Reported only. {stream_text(facts)}Nothing can be counted.")
    how = "by the raw session id that another event ties to it"
    if facts.friction_by == "time-window":
        how = f"by its window. {window_text(facts)}"
        if facts.is_contaminated:
            how += f" {peers_text(facts)} Counts may hold another session's signals."
    counts = _guards_text(facts.friction, ("blocked", "warned", "loop_warning"))
    return verdict(FRICTION, "not-applicable", f"Reported only. {counts} Attributed {how.rstrip('.')}.")


def _guards_text(guards: Guards, kinds: tuple[str, ...]) -> str:
    names = {"blocked": "blocked command(s)", "warned": "guard warning(s)", "loop_warning": "loop warning(s)"}
    counts = ["an unknown number of" if guards[kind] is None else str(guards[kind]) for kind in kinds]
    told = ", ".join(f"{count} {names[kind]}" for count, kind in zip(counts, kinds, strict=True))
    return f"{told[0].upper()}{told[1:]}."


def efficiency_kpis(facts: Facts) -> Dimension:
    """Cost and time: reported, never graded."""
    told = ", ".join(f"{name} {'unknown' if value is None else written(value)}" for name, value in facts.kpis.items())
    has_duration = counted(facts.line.duration_seconds) is not None
    source = "as recorded" if has_duration else "from the window" if facts.window is not None else "unknown"
    unusable = [
        f"{name} is {written(recorded)}"
        for name in facts.kpis
        if (recorded := getattr(facts.line, name)) is not None and counted(recorded) is None
    ]
    dropped = f" Not taken as figures: {', '.join(unusable)}." if unusable else ""
    # The line pins which record was scored: a session may have many, and a verdict must replay from the same one.
    return verdict(
        KPIS,
        "not-applicable",
        f"Reported only, from line {facts.line.line} of sessions.jsonl. {told}; duration {source}.{dropped}",
    )


SCORERS_V1: tuple[Scorer, ...] = (
    verification_evidence,
    plan_fidelity,
    gate_health,
    process_safety_v1,
    efficiency_kpis,
)
SCORERS_V2: tuple[Scorer, ...] = (
    verification_evidence,
    plan_fidelity,
    gate_health,
    process_safety_v2,
    guard_friction,
    efficiency_kpis,
)
