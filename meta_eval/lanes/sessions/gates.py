"""The two dimensions that quality gates decide: `verification-evidence` and `gate-health`.

The session process rubric, first and third check; both are the same in v1 and v2. Each function is the rubric's table
in its order, and its evidence says every number that the verdict follows from.
"""

from __future__ import annotations

from meta_eval.lanes.sessions.facts import Facts
from meta_eval.lanes.sessions.fields import number_of, shown
from meta_eval.lanes.sessions.verdicts import Dimension, peers_text, stream_text, verdict, window_text, written

VERIFICATION, GATE_HEALTH = "verification-evidence", "gate-health"


def verification_evidence(facts: Facts) -> Dimension:
    """Did the quality gates of the session's window run, and pass?"""
    files = facts.line.files_changed
    changed = f"total_files_changed is {written(files)}"
    if facts.is_contaminated:
        return verdict(VERIFICATION, "cannot-determine", _shared(facts))
    if facts.gates is None:
        return verdict(
            VERIFICATION, "cannot-determine", f"{_unplaced(facts, 'quality gates')} {changed}; it is not consulted."
        )
    where = f"{window_text(facts)} {stream_text(facts)}".rstrip()
    if facts.unplaced_gates and not facts.red_gates:
        return verdict(VERIFICATION, "cannot-determine", f"{where} {_zoneless(facts.unplaced_gates, 'quality gate')}")
    if facts.gates == 0:
        unchanged = number_of(files) == 0
        status = "not-applicable" if unchanged else "cannot-determine"
        meaning = (
            "no file changed, so there was nothing to verify" if unchanged else "whether files were verified is unknown"
        )
        return verdict(VERIFICATION, status, f"{where} No quality gate lies inside. {changed}: {meaning}.")
    green = facts.gates - facts.red_gates - facts.odd_gates
    counts = (
        f"{facts.gates} quality gate(s) lie inside: {green} with exit_code 0, {facts.red_gates} with another or none"
    )
    if facts.odd_gates:
        counts += f", {facts.odd_gates} whose exit_code is a list or an object"
    status = "fail" if facts.red_gates else "cannot-determine" if facts.odd_gates else "pass"
    return verdict(VERIFICATION, status, f"{where} {counts}. No other session overlaps.")


def gate_health(facts: Facts) -> Dimension:
    """Was the last full gate of the session's window green?"""
    if facts.is_contaminated:
        return verdict(GATE_HEALTH, "cannot-determine", _shared(facts))
    if facts.full_gates is None:
        return verdict(GATE_HEALTH, "cannot-determine", _unplaced(facts, "full gates"))
    where = f"{window_text(facts)} {stream_text(facts)}".rstrip()
    if facts.unplaced_full_gates:
        return verdict(GATE_HEALTH, "cannot-determine", f"{where} {_zoneless(facts.unplaced_full_gates, 'full gate')}")
    if facts.full_gates == 0:
        status, waves = _waves(facts)
        return verdict(GATE_HEALTH, status, f"{where} No full gate lies inside. {waves}.")
    last = _last_text(facts)
    status = "cannot-determine"
    if len(facts.last_full_outcomes) == 1:
        status = {"green": "pass", "red": "fail"}.get(facts.last_full_outcomes[0], status)
    return verdict(
        GATE_HEALTH, status, f"{where} {facts.full_gates} full gate(s) lie inside; {last}. No other session overlaps."
    )


def _last_text(facts: Facts) -> str:
    """What the full gates at the last instant say."""
    meaning = {
        "green": "exit_code 0",
        "red": "an exit_code other than 0, or none",
        "odd": "an exit_code that is no number",
    }
    told = " and also ".join(meaning[outcome] for outcome in facts.last_full_outcomes)
    return f"the last, at {written(facts.last_full_at_ms, instant=True)}, has {told}"


def _waves(facts: Facts) -> tuple[str, str]:
    """Whether waves ran, for a window without a full gate."""
    total, count = facts.line.total_waves, facts.line.wave_count
    listed = "waves is missing or no list" if count is None else f"waves lists {count}"
    told = f"total_waves is {written(total)} and {listed}"
    number = number_of(total)
    if facts.line.all_housekeeping:
        return "not-applicable", f"{told}, each of them the coordinator's own Housekeeping wave: no full gate is due"
    if number == 0 or count == 0:
        return "not-applicable", f"{told}: no wave ran, so no full gate is due"
    if count is None and number is None:
        return "not-applicable", f"{told}: nothing says that a wave ran, so no full gate is due"
    return "cannot-determine", f"{told}: waves ran, and their gate is unknown"


def _shared(facts: Facts) -> str:
    return f"{window_text(facts)} {peers_text(facts)} No gate can be told to be this session's."


def _unplaced(facts: Facts, what: str) -> str:
    if facts.stream.state == "unreadable":
        return f"The event stream is unreadable ({shown(facts.stream.fault)}): {what} cannot be counted."
    return f"{window_text(facts)} The stream holds {what}, and none can be placed in or out of it."


def _zoneless(count: int, what: str) -> str:
    return f"{count} {what}(s) near it have an instant without an offset: inside for one reader, outside for another."
