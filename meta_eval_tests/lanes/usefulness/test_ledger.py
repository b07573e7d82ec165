"""The budget: spent and reserved never pass it, nothing is lost, and what is unknown is shown as unknown."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.usefulness import steps
from meta_eval.lanes.usefulness.ledger import Ledger, apply, ledger_of
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.stage import Setting
from meta_eval.lanes.usefulness.studies import Study
from meta_eval_tests.lanes.usefulness.world import START, chained

TERMS = people.budget(enough=True)


def completion(number: int, attempt: int = 1) -> dict[str, Any]:
    return {
        "arm": "assistant",
        "setId": "set-a",
        "questionId": f"q-{number}",
        "attempt": attempt,
        "reservationId": f"r-{number}-{attempt}",
    }


def opened(**changes: Any) -> Ledger:
    return ledger_of(chained("b", [("budget", TERMS | changes)]))


REFUSED: dict[str, list[tuple[str, Any]]] = {
    "meter-reset": [("budget", TERMS)],
    "reservation-id-used": [
        ("reserve", completion(1)),
        ("reserve", completion(2) | {"reservationId": "r-1-1"}),
    ],
    "completion-reserved-twice": [("reserve", completion(1)), ("reserve", completion(1) | {"reservationId": "r-x"})],
    "attempt-beyond-bound": [("reserve", completion(1, 3))],
    "reservation-unknown": [("settle", {"reservationId": "r-9", "amount": "0"})],
    "reservation-already-ended": [
        ("reserve", completion(1)),
        ("settle", {"reservationId": "r-1-1", "amount": "0.01"}),
        ("expire", {"reservationId": "r-1-1"}),
    ],
    "budget-exhausted": [("reserve", completion(1)), ("settle", {"reservationId": "r-1-1", "amount": "99"})],
    "not-an-entry-of-a-ledger": [("refund", {})],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_ledger_refuses(name: str) -> None:
    ledger = opened()
    *good, (event, body) = REFUSED[name]
    for line in good:
        apply(ledger, *line)
    before = (ledger.spent, ledger.reserved, dict(ledger.completions))
    with pytest.raises(UsageError, match=name):
        apply(ledger, event, body)
    assert (ledger.spent, ledger.reserved, dict(ledger.completions)) == before


def test_a_ledger_begins_with_its_budget_and_ends_with_its_plan() -> None:
    with pytest.raises(UsageError, match="ledger-not-opened"):
        apply(Ledger(), "reserve", completion(1))
    small = opened(plannedCompletions=1)
    apply(small, "reserve", completion(1))
    with pytest.raises(UsageError, match="completion-beyond-plan"):
        apply(small, "reserve", completion(2))


def test_the_acceptance_reserve_is_not_for_runs() -> None:
    # 0.25 + 2 x 0.02 spent; 0.31 - 0.29 leaves one reservation of 0.02 under a ceiling of 0.31.
    tight = opened(budget="1.31", acceptanceReserve="1.00")
    apply(tight, "reserve", completion(1))
    with pytest.raises(UsageError, match="budget-exhausted"):
        apply(tight, "reserve", completion(2))


def test_unknown_usage_is_shown_as_unknown_with_its_bound() -> None:
    ledger = opened()
    apply(ledger, "reserve", completion(1))
    apply(ledger, "expire", {"reservationId": "r-1-1"})
    apply(ledger, "reserve", completion(2))
    assert ledger.totals() == {
        "currency": "EUR",
        "budget": "6.50",
        "acceptanceReserve": "1.00",
        "known": "0.25",
        "unknownCount": 3,
        "upperBound": "0.33",  # 0.25 + 3 x 0.02 + one open reservation of 0.02
        "openReservations": 1,
        "overruns": 0,
    }


def test_an_overrun_is_recorded_while_the_budget_covers_it() -> None:
    ledger = opened()
    apply(ledger, "reserve", completion(1))
    apply(ledger, "settle", {"reservationId": "r-1-1", "amount": "0.5"})
    assert (ledger.known, ledger.overruns) == (Decimal("0.75"), 1)


AMOUNTS = st.decimals(min_value=0, max_value=2, places=4, allow_nan=False, allow_infinity=False).map(
    lambda value: format(value, "f")
)


@settings(max_examples=150, deadline=None)
@given(
    budget=AMOUNTS,
    reserve=AMOUNTS,
    bound=AMOUNTS,
    acts=st.lists(
        st.tuples(st.sampled_from(["reserve", "settle", "expire", "crash"]), st.integers(0, 12), AMOUNTS), max_size=60
    ),
)
def test_spent_and_reserved_never_pass_the_budget(
    budget: str, reserve: str, bound: str, acts: list[tuple[str, int, str]]
) -> None:
    terms = TERMS | {"budget": budget, "acceptanceReserve": reserve, "reservation": bound, "spentKnown": "0"}
    terms |= {"spentUnknown": 0}
    lines: list[tuple[str, Any]] = [("budget", terms)]
    ledger, reserved = ledger_of(chained("b", lines)), set()
    for act, number, amount in acts:
        if act == "crash":  # what was in memory is gone; what was written is read again
            again = ledger_of(chained("b", lines))
            assert (again.spent, again.reserved, again.ended) == (ledger.spent, ledger.reserved, ledger.ended)
            ledger = again
            continue
        bodies: dict[str, dict[str, Any]] = {
            "reserve": completion(number),
            "settle": {"reservationId": f"r-{number}-1", "amount": amount},
            "expire": {"reservationId": f"r-{number}-1"},
        }
        try:
            apply(ledger, act, bodies[act])
        except UsageError:
            continue
        lines.append((act, bodies[act]))
        if act == "reserve":
            reserved.add(f"r-{number}-1")
        assert ledger.spent + ledger.reserved <= max(ledger.ceiling, Decimal(0))
        assert ledger.ended.keys() | ledger.open.keys() == reserved
        assert ledger.unknown == sum(value is None for value in ledger.ended.values())


class CrashingRunner(RuleBasedStateMachine):
    """A runner on real files, who dies now and then: between reserving and settling, and in the middle of a line."""

    folder: Path

    @initialize()
    def begin(self) -> None:
        self.number = 0
        self.open: list[str] = []
        self.settled = Decimal(0)
        self.lost = 0
        CrashingRunner.count += 1
        self.place = Study(self.folder, f"s{CrashingRunner.count}").make()
        (self.place.inbox / "budget.json").write_text(json.dumps(TERMS | {"budget": "1.60"}))
        steps.open_ledger(self.place, Setting(START, self.place.name))

    count = 0

    def book(self, event: str, body: Any) -> bool:
        try:
            steps.book(self.place, Setting(START, self.place.name), (event, body))
        except UsageError as error:
            if str(error) != "budget-exhausted":
                raise
            return False
        return True

    @rule()
    def reserve(self) -> None:
        self.number += 1
        if self.book("reserve", completion(self.number)):
            self.open.append(f"r-{self.number}-1")

    @rule(known=st.booleans())
    def end(self, known: bool) -> None:
        if not self.open:
            return
        reservation = self.open[-1]
        body = {"reservationId": reservation}
        if self.book("settle" if known else "expire", {**body, "amount": "0.01"} if known else body):
            self.open.pop()
            self.settled += Decimal("0.01") if known else 0
            self.lost += not known

    @rule()
    def die_in_the_middle_of_a_line(self) -> None:
        with self.place.ledger.path.open("ab") as file:
            file.write(b'{"at":"2026-11-20T09:00:00.000Z","body":{"amou')

    @invariant()
    def nothing_is_lost_and_the_budget_holds(self) -> None:
        if not hasattr(self, "place"):
            return
        again = Study(self.folder, self.place.name)
        ledger = ledger_of(again.ledger.entries())
        assert set(ledger.open) == set(self.open)
        assert ledger.known == Decimal("0.25") + self.settled
        assert ledger.unknown == 2 + self.lost
        assert ledger.spent + ledger.reserved <= ledger.ceiling


def test_a_runner_who_dies_loses_nothing(tmp_path: Path) -> None:
    CrashingRunner.folder = tmp_path
    machine = CrashingRunner.TestCase
    machine.settings = settings(
        max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
    )
    machine("runTest").runTest()


def test_the_meter_cannot_be_reset_on_disk(tmp_path: Path) -> None:
    place = Study(tmp_path, "demo").make()
    source = place.inbox / "budget.json"
    source.write_text(json.dumps(TERMS))
    setting = Setting(START, "demo")
    steps.open_ledger(place, setting)
    steps.open_ledger(place, setting)  # the same terms change nothing
    assert len(place.ledger.entries()) == 1
    source.write_text(json.dumps(TERMS | {"budget": "100"}))
    with pytest.raises(UsageError, match="meter-reset"):
        steps.open_ledger(place, setting)
