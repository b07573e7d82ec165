"""The endings that a rehearsal can show, each by how many answers of each arm are good in each set.

`useful` gives by set the numbers of good answers of baseline and candidate. The candidate's good answers begin
`SHIFT` questions later than the baseline's, so every ending has recoveries and losses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SHIFT = 3
SETS = ("set-a", "set-b")
ARMS = ("baseline", "candidate")


@dataclass(frozen=True)
class Scenario:
    """One ending: what is good, what is broken, and the status and stage that it ends with."""

    useful: dict[str, tuple[int, int]] = field(default_factory=lambda: {"set-a": (40, 46), "set-b": (42, 45)})
    breaks: str | None = None
    ends: str = "rehearsed"
    at: str = "usefulness-acceptance"


SCENARIOS = {
    "accepted": Scenario(),
    "short-of-41": Scenario({"set-a": (36, 40), "set-b": (40, 45)}, ends="failed"),
    "no-gain": Scenario({"set-a": (43, 43), "set-b": (44, 44)}, ends="failed"),
    "lower-in-one-set": Scenario({"set-a": (42, 48), "set-b": (44, 43)}, ends="failed"),
    "tampered-score": Scenario(breaks="tampered-score", ends="blocked"),
    "reused-packet": Scenario(breaks="reused-packet", ends="blocked", at="sealed-packet"),
    "over-budget": Scenario(breaks="over-budget", ends="blocked", at="budget-preflight"),
}


def flawed(scenario: Scenario, set_id: str, arm: str, number: int) -> bool:
    """Whether an arm's answer to a question of a set is one of the bad ones."""
    good = scenario.useful[set_id][ARMS.index(arm)]
    first = SHIFT if arm == "candidate" else 0
    return not first <= number < first + good
