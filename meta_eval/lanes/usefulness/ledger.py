"""The budget ledger: what was reserved, what was spent, what is unknown, in exact decimals.

Source: the usefulness contract, budget. A ledger is a register whose first entry states the budget. Every completion
is reserved at its conservative bound before it is asked for; a reservation ends settled, with what it cost or with
its cost unknown, or expired. Unknown usage counts at its bound. `spent + reserved` never passes the budget less the
retained acceptance reserve, also when a process dies between reserving and settling: what it reserved stays reserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.register import Entry

Completion = tuple[str, str, str, int]


@dataclass
class Ledger:
    """Where a ledger stands."""

    terms: Mapping[str, Any] = field(default_factory=dict)
    open: dict[str, Decimal] = field(default_factory=dict)
    known: Decimal = Decimal(0)
    unknown: int = 0
    unknown_bound: Decimal = Decimal(0)
    overruns: int = 0
    ended: dict[str, str | None] = field(default_factory=dict)
    completions: dict[Completion, str] = field(default_factory=dict)
    reservations: dict[str, Completion] = field(default_factory=dict)

    @property
    def spent(self) -> Decimal:
        """Known costs, and unknown ones at their bound."""
        return self.known + self.unknown_bound

    @property
    def reserved(self) -> Decimal:
        return sum(self.open.values(), Decimal(0))

    @property
    def ceiling(self) -> Decimal:
        """What runs may use: the budget without what is retained for acceptance."""
        return Decimal(self.terms["budget"]) - Decimal(self.terms["acceptanceReserve"])

    @property
    def bound(self) -> Decimal:
        return Decimal(self.terms["reservation"])

    def totals(self) -> dict[str, Any]:
        """As reports show them."""
        return {
            "currency": self.terms["currency"],
            "budget": self.terms["budget"],
            "acceptanceReserve": self.terms["acceptanceReserve"],
            "known": amount_text(self.known),
            "unknownCount": self.unknown,
            "upperBound": amount_text(self.spent + self.reserved),
            "openReservations": len(self.open),
            "overruns": self.overruns,
        }


def amount_text(value: Decimal) -> str:
    """An amount as a plain decimal, without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def opening_of(terms: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The first entry of a ledger."""
    return "budget", dict(terms)


def ledger_of(entries: Sequence[Entry]) -> Ledger:
    """Where a ledger stands after its entries.

    Raises:
        UsageError: an entry that no ledger would have taken, by its rule's name.
    """
    ledger = Ledger()
    for entry in entries:
        apply(ledger, entry["event"], entry["body"])
    return ledger


def apply(ledger: Ledger, event: str, body: Mapping[str, Any]) -> None:
    """Take one entry. Raises UsageError, and leaves the ledger as it was, where a rule forbids it."""
    if event == "budget":
        _begin(ledger, body)
    elif not ledger.terms:
        raise UsageError("ledger-not-opened")
    elif event == "reserve":
        _reserve(ledger, body)
    elif event in ("settle", "expire"):
        _end(ledger, body["reservationId"], body["amount"] if event == "settle" else None)
    else:
        raise UsageError("not-an-entry-of-a-ledger")


def _begin(ledger: Ledger, terms: Mapping[str, Any]) -> None:
    if ledger.terms:
        raise UsageError("meter-reset")
    ledger.terms = dict(terms)
    ledger.known, ledger.unknown = Decimal(terms["spentKnown"]), terms["spentUnknown"]
    ledger.unknown_bound = ledger.unknown * ledger.bound


def _reserve(ledger: Ledger, body: Mapping[str, Any]) -> None:
    completion = (body["arm"], body["setId"], body["questionId"], body["attempt"])
    reservation = body["reservationId"]
    if reservation in ledger.reservations:
        raise UsageError("reservation-id-used")
    if completion in ledger.completions:
        raise UsageError("completion-reserved-twice")
    if not 1 <= body["attempt"] <= ledger.terms["mostAttempts"]:
        raise UsageError("attempt-beyond-bound")
    if len(ledger.completions) >= ledger.terms["plannedCompletions"]:
        raise UsageError("completion-beyond-plan")
    if ledger.spent + ledger.reserved + ledger.bound > ledger.ceiling:
        raise UsageError("budget-exhausted")
    ledger.open[reservation] = ledger.bound
    ledger.completions[completion] = reservation
    ledger.reservations[reservation] = completion


def _end(ledger: Ledger, reservation: str, amount: str | None) -> None:
    if reservation in ledger.ended:
        raise UsageError("reservation-already-ended")
    if reservation not in ledger.open:
        raise UsageError("reservation-unknown")
    held = ledger.open[reservation]
    if amount is not None:
        # A bound that proved too low is taken only while the budget still covers it: never more than there is.
        if ledger.spent + ledger.reserved - held + Decimal(amount) > ledger.ceiling:
            raise UsageError("budget-exhausted")
        ledger.known += Decimal(amount)
        ledger.overruns += Decimal(amount) > held
    else:
        ledger.unknown += 1
        ledger.unknown_bound += held
    del ledger.open[reservation]
    ledger.ended[reservation] = amount
