"""The facts of one session: everything that its verdicts follow from, and nothing else.

The session process rubric. A count is None where it cannot be had. Where a window is unmeasurable, a stream that holds
no signal of a kind at all still says zero: whatever the window was, none fell inside.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice

from meta_eval.lanes.sessions.fields import counted
from meta_eval.lanes.sessions.ledger import Ledger
from meta_eval.lanes.sessions.lines import SessionLine
from meta_eval.lanes.sessions.signals import GUARDS, KINDS, Stream
from meta_eval.lanes.sessions.windows import PeerIndex, SignalIndex, Window

MOST_PEERS_NAMED = 5
_MOST_PEERS_LOOKED_AT = 64
Guards = dict[str, int | None]


@dataclass(frozen=True)
class Facts:
    """What the scorers read."""

    line: SessionLine
    stream: Stream
    window: Window | None
    peers: tuple[str, ...]  # the first few, by start
    more_peers: bool
    gates: int | None
    red_gates: int
    odd_gates: int
    full_gates: int | None
    last_full_at_ms: int | None
    last_full_outcomes: tuple[str, ...]  # distinct outcomes at the last instant
    unplaced_gates: int  # may lie inside: their instants say no zone
    unplaced_full_gates: int
    unplaced_blocked: int
    guards: Guards  # by window
    friction: Guards  # by session id where it is tied, else by window
    friction_by: str | None  # "session-id" or "time-window"; None where the stream is unmeasurable
    stream_kinds: tuple[str, ...]  # the kinds of signals that the stream holds anywhere

    @property
    def is_contaminated(self) -> bool:
        return bool(self.peers)

    @property
    def kpis(self) -> dict[str, int | float | None]:
        """The KPI block: figures as recorded, and the duration from the window where none is recorded."""
        line = self.line
        duration = counted(line.duration_seconds)
        if duration is None and self.window is not None:
            duration = (self.window[1] - self.window[0] + 500) // 1000  # halves round up
        return {
            "duration_seconds": duration,
            "total_waves": counted(line.total_waves),
            "total_agents": counted(line.total_agents),
            "token_input": counted(line.token_input),
            "token_output": counted(line.token_output),
            "carryover": counted(line.carryover),
        }


class FactFinder:
    """Facts of any session of a ledger, over indexes that are built once."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.peer_index = PeerIndex(ledger.lines)
        self._signals = SignalIndex(ledger.events.signals, ledger.events.ties.keys())
        self._kinds = tuple(sorted(self._signals.kinds))
        self._raw_ids: defaultdict[str, list[str]] = defaultdict(list)
        for raw_id, session_ids in ledger.events.ties.items():
            for session_id in session_ids:
                self._raw_ids[session_id].append(raw_id)

    def facts_of(self, line: SessionLine) -> Facts:
        window, stream = line.window, self.ledger.events
        peers, more = self._peers(line, window)
        gates, red, odd = self._gates(window)
        full, last_at, outcomes = self._full_gates(window)
        guards = self._guards(window)
        friction, friction_by = self._friction(line, guards)
        unplaced = {kind: self._signals.unplaced(window, kind) if window else 0 for kind in KINDS}
        return Facts(
            line=line,
            stream=stream,
            window=window,
            peers=peers,
            more_peers=more,
            gates=gates,
            red_gates=red,
            odd_gates=odd,
            full_gates=full,
            last_full_at_ms=last_at,
            last_full_outcomes=outcomes,
            unplaced_gates=unplaced["gate"] + unplaced["full_gate"],
            unplaced_full_gates=unplaced["full_gate"],
            unplaced_blocked=unplaced["blocked"],
            guards=guards,
            friction=friction,
            friction_by=friction_by,
            stream_kinds=self._kinds,
        )

    def _peers(self, line: SessionLine, window: Window | None) -> tuple[tuple[str, ...], bool]:
        """A few names are enough: one peer contaminates as much as a hundred, and all would cost S times S."""
        if window is None:
            return (), False
        found = self.peer_index.overlapping(window, line.session_id or "")
        looked_at = list(islice(found, _MOST_PEERS_LOOKED_AT + 1))
        names = list(dict.fromkeys(peer.owner for peer in looked_at))
        more = len(names) > MOST_PEERS_NAMED or len(looked_at) > _MOST_PEERS_LOOKED_AT
        return tuple(names[:MOST_PEERS_NAMED]), more

    def _gates(self, window: Window | None) -> tuple[int | None, int, int]:
        if self.ledger.events.state == "unreadable":
            return None, 0, 0
        if window is None:
            return None if self._signals.kinds & {"gate", "full_gate"} else 0, 0, 0
        return self._signals.gates(window)

    def _full_gates(self, window: Window | None) -> tuple[int | None, int | None, tuple[str, ...]]:
        if self.ledger.events.state == "unreadable":
            return None, None, ()
        if window is None:
            return None if "full_gate" in self._signals.kinds else 0, None, ()
        count, last = self._signals.last_full_gates(window)
        outcomes = tuple(sorted({signal.outcome or "" for signal in last}))
        return count, last[0].at_ms if last else None, outcomes

    def _guards(self, window: Window | None) -> Guards:
        if not self.ledger.events.is_measurable:
            return dict.fromkeys(GUARDS)
        if window is None:
            return {kind: None if kind in self._signals.kinds else 0 for kind in GUARDS}
        return dict(self._signals.guards(window))

    def _friction(self, line: SessionLine, by_window: Guards) -> tuple[Guards, str | None]:
        if not self.ledger.events.is_measurable:
            return by_window, None
        raw_ids = self._raw_ids.get(line.session_id or "", [])
        if raw_ids:
            return dict(self._signals.guards_of(raw_ids)), "session-id"
        return by_window, "time-window"
