"""The indexes against the plain definition: every pair compared, every event looked at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_eval.lanes.sessions.instants import instant_ms, zoneless_span
from meta_eval.lanes.sessions.lines import session_line
from meta_eval.lanes.sessions.signals import GUARDS, Signal
from meta_eval.lanes.sessions.windows import PeerIndex, SignalIndex

INSTANTS = st.integers(0, 30)
WINDOWS = st.lists(st.tuples(st.sampled_from("abcd"), INSTANTS, INSTANTS), max_size=12)
SIGNALS = st.lists(
    st.tuples(INSTANTS, st.sampled_from(["gate", "full_gate", *GUARDS]), st.sampled_from(["green", "red", "odd"])),
    max_size=20,
)


def written(seconds: int) -> str:
    return f"2026-08-01T10:00:{seconds:02d}.000Z"


@given(windows=WINDOWS, own=st.tuples(INSTANTS, INSTANTS))
def test_peers_are_those_of_every_pair_compared(windows: list[Any], own: tuple[int, int]) -> None:
    lines = [
        session_line(number, {"session_id": name, "started_at": written(start), "completed_at": written(end)})
        for number, (name, start, end) in enumerate(windows, start=1)
    ]
    start, end = sorted(own)
    window = (instant_ms(written(start)) or 0, instant_ms(written(end)) or 0)
    expected = dict.fromkeys(name for name, s, e in windows if name != "a" and s < end and start < e)
    assert PeerIndex(lines).peers(window, "a") == list(expected)


@given(signals=SIGNALS, own=st.tuples(INSTANTS, INSTANTS))
def test_counts_are_those_of_every_event_looked_at(signals: list[Any], own: tuple[int, int]) -> None:
    made = [
        Signal(at, kind, outcome if "gate" in kind else None, None, None, line, 0)
        for line, (at, kind, outcome) in enumerate(signals)
    ]
    start, end = sorted(own)
    inside = [signal for signal in made if start <= (signal.at_ms or 0) <= end]
    gates = [signal for signal in inside if signal.outcome is not None]
    index = SignalIndex(made)
    reds, odds = (sum(signal.outcome == outcome for signal in gates) for outcome in ("red", "odd"))
    assert index.gates((start, end)) == (len(gates), reds, odds)
    full = [signal for signal in gates if signal.kind == "full_gate"]
    last = max((signal.at_ms or 0 for signal in full), default=None)
    count, found = index.last_full_gates((start, end))
    assert count == len(full)
    assert sorted(s.line for s in found) == sorted(s.line for s in full if s.at_ms == last)
    assert index.guards((start, end)) == {kind: sum(s.kind == kind for s in inside) for kind in GUARDS}
    assert sorted(s.line for s in index.inside((start, end))) == sorted(s.line for s in inside)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01", 0),
        ("1970", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-02T00:59:00+23:59", 3_600_000),
        ("1970-01-01T00:00:00.9999999999Z", 999),  # cut, never rounded
        ("1970-01-01T00:00:00", None),
        ("1970-01-01T00:00:00+0000", None),
        ("1970-02-30T00:00:00Z", None),
        ("1970-01-01T24:00:00Z", None),
        ("1970-01-01T00:00:60Z", None),
        ("1970-01-01t00:00:00z", None),
        ("1970-01T00:00:00Z", None),
        (" 1970-01-01", None),
        ("0000-01-01", None),
        (0, None),
        (True, None),
        ("1" * 10_000, None),
    ],
)
def test_an_instant_is_what_every_reader_reads_alike(text: Any, expected: int | None) -> None:
    assert instant_ms(text) == expected


def test_only_an_instant_that_lacks_nothing_but_its_zone_may_be_anywhere() -> None:
    hour = 3_600_000
    for text in ("1970-01-01 10:00", "1970-01-01T10:00:00.5", "1970/1/1", "01/01/1970 10:00:00"):
        assert zoneless_span(text) == (-14 * hour, 38 * hour - 1)
    for text in ("1970-01-01T10:00:00Z", "1970-01-01", "noon", "1970/13/01", "", None, 12):
        assert zoneless_span(text) is None
