"""Whose events are these: windows, the sessions that overlap them, and what falls inside.

The session process rubric, attribution. Both indexes sort once; then a window's peers and counts are found by
bisection, so that S sessions over E events cost (S + E) log(S + E), not S times E.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from meta_eval.lanes.sessions.lines import SessionLine
from meta_eval.lanes.sessions.signals import GUARDS, Signal

Window = tuple[int, int]


class PeerIndex:
    """Every window of the ledger, by start, under a tree of the latest end.

    A peer overlaps strictly: it starts before the window ends and ends after the window starts. Windows that merely
    touch do not overlap. The rule is applied to the instants as recorded, also where a peer ends before it starts.
    """

    def __init__(self, lines: Iterable[SessionLine]) -> None:
        bounded = [line for line in lines if line.started_ms is not None and line.ended_ms is not None]
        self._lines = sorted(bounded, key=lambda line: (line.started_ms or 0, line.line))
        self._starts = [line.started_ms or 0 for line in self._lines]
        self._size = 1 << max(len(self._lines) - 1, 0).bit_length()
        floor = min((line.ended_ms or 0 for line in self._lines), default=0) - 1
        leaves = [line.ended_ms or 0 for line in self._lines] + [floor] * (self._size - len(self._lines))
        self._latest = [floor] * self._size + leaves
        for node in range(self._size - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])

    def overlapping(self, window: Window, session_id: str) -> Iterator[SessionLine]:
        """Records of other sessions that overlap a window, by start."""
        start, end = window
        before = bisect_left(self._starts, end)
        stack = [(1, 0, self._size)]
        while stack:
            node, low, high = stack.pop()
            if low >= before or self._latest[node] <= start:
                continue
            if high - low > 1:
                middle = (low + high) // 2
                stack += [(2 * node + 1, middle, high), (2 * node, low, middle)]
            elif self._lines[low].session_id != session_id:
                yield self._lines[low]

    def peers(self, window: Window, session_id: str) -> list[str]:
        """The ids of all peers, each once, in the ledger's order."""
        found = sorted(self.overlapping(window, session_id), key=lambda line: line.line)
        return list(dict.fromkeys(line.owner for line in found))


def _instants(signals: Iterable[Signal]) -> array[int]:
    return array("q", (signal.at_ms or 0 for signal in signals))


class SignalIndex:
    """The stream's signals by instant, with running totals.

    Of raw ids only those that are asked about are counted: a stream may have as many as it has guards, and nearly all
    are nobody's.
    """

    def __init__(self, signals: Sequence[Signal], raw_ids: Collection[str] = ()) -> None:
        # Equal instants stay in the order of reading. Arrays, for a stream may hold millions of signals.
        timed = sorted((s for s in signals if s.at_ms is not None), key=lambda s: s.at_ms or 0)
        self._timed, self._timed_at = timed, _instants(timed)
        gates = [s for s in timed if s.outcome is not None]
        self._gates = _instants(gates)
        self._red = array("q", accumulate((s.outcome == "red" for s in gates), initial=0))
        self._odd = array("q", accumulate((s.outcome == "odd" for s in gates), initial=0))
        self._full = [s for s in gates if s.kind == "full_gate"]
        self._full_at = _instants(self._full)
        self._guards = {kind: _instants(s for s in timed if s.kind == kind) for kind in GUARDS}
        self._by_raw_id: dict[str, dict[str, int]] = {}
        for signal in signals:
            if signal.raw_id in raw_ids and signal.raw_id is not None:
                counts = self._by_raw_id.setdefault(signal.raw_id, dict.fromkeys(GUARDS, 0))
                counts[signal.kind] += 1
        self.kinds = {signal.kind for signal in signals}
        self._spans: dict[str, tuple[list[int], list[int]]] = {}
        for kind in self.kinds:
            spans = [signal.span for signal in signals if signal.kind == kind and signal.span is not None]
            self._spans[kind] = sorted(start for start, _ in spans), sorted(end for _, end in spans)

    def gates(self, window: Window) -> tuple[int, int, int]:
        """Gates inside a window, its bounds included: all, red, odd."""
        low, high = bisect_left(self._gates, window[0]), bisect_right(self._gates, window[1])
        if low >= high:
            return 0, 0, 0
        return high - low, self._red[high] - self._red[low], self._odd[high] - self._odd[low]

    def last_full_gates(self, window: Window) -> tuple[int, list[Signal]]:
        """How many full gates a window holds, and those at the last instant among them."""
        low, high = bisect_left(self._full_at, window[0]), bisect_right(self._full_at, window[1])
        if low >= high:
            return 0, []
        first = bisect_left(self._full_at, self._full_at[high - 1], low, high)
        return high - low, self._full[first:high]

    def guards(self, window: Window) -> dict[str, int]:
        """Guards and loop warnings inside a window, by kind."""
        return {
            kind: max(bisect_right(times, window[1]) - bisect_left(times, window[0]), 0)
            for kind, times in self._guards.items()
        }

    def guards_of(self, raw_ids: Iterable[str]) -> dict[str, int]:
        """Guards and loop warnings that carry one of these raw ids, whenever they were."""
        found = [self._by_raw_id[raw_id] for raw_id in raw_ids if raw_id in self._by_raw_id]
        return {kind: sum(counts[kind] for counts in found) for kind in GUARDS}

    def unplaced(self, window: Window, kind: str) -> int:
        """Signals of a kind that may lie inside or outside, as their instants say no zone."""
        starts, ends = self._spans.get(kind, ([], []))
        return bisect_right(starts, window[1]) - bisect_left(ends, window[0])

    def inside(self, window: Window) -> Sequence[Signal]:
        """Every signal inside a window, by instant."""
        low, high = bisect_left(self._timed_at, window[0]), bisect_right(self._timed_at, window[1])
        return self._timed[low:high]

    def first_guards(self, window: Window) -> list[tuple[str, int]]:
        """The first guard or loop warning of each kind inside a window, with its instant."""
        found = []
        for kind, times in self._guards.items():
            low = bisect_left(times, window[0])
            if low < len(times) and times[low] <= window[1]:
                found.append((kind, times[low]))
        return found
