"""Questions about invented objects, and invented answers to them, good or bad in a stated way.

Question number `n` of a set asks about one object: who made it and when; some ask for what is not public, some for an
exact source. Which objects there are and what an answerer says to a question is the caller's (`Objects`): this lane
knows no other, so the terminal hands in another lane's records and answerer. An answer's `flaw` is one of `FLAWS`, or
none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
HOST = "https://records.museum.example"
FLAWS = ("omission", "false-gap", "citation", "timeout", "maturity", "error")
_COLOURS = "amber azure bronze coral ebony golden ivory jade olive scarlet silver violet".split()
_THINGS = "astrolabe barometer casket ewer goblet hourglass lantern medallion psalter tapestry tile urn".split()
_MAKERS = "Abelard Brandt Corvin Dorset Ekman Faber Galvan Hoorn Ilmari Jansz Keller Lindqvist".split()


@dataclass(frozen=True)
class Objects:
    """What a rehearsal asks about, and what the first answerer says.

    Attributes:
        thing: the object of a set and number: `name`, `maker`, `year`.
        stated: which of `maker` and `year` the answerer states for a question; nothing where it refuses.
    """

    thing: Callable[[str, int], Row]
    stated: Callable[[str], frozenset[str]]

    def record(self, set_id: str, number: int) -> Row:
        """An object with what a question about it needs to know."""
        return {
            **self.thing(set_id, number),
            "url": f"{HOST}/{set_id}/objects/{number}",
            "alias": number % 4 != 0,
            "private": number % 12 == 5,
            "limited": number % 5 == 2,
            "navigation": number % 12 == 8,
        }


def own_objects(seed: int) -> Objects:
    """Objects drawn here, and an answerer that knows each of them. The same seed gives the same ones."""

    def thing(set_id: str, number: int) -> Row:
        drawn = hashlib.sha256(f"{seed}/{set_id}/{number}".encode()).digest()
        colour, kind = _COLOURS[number % 12], _THINGS[number // 12 + drawn[0] % 7]
        return {
            "name": f"invented {colour} {kind} {drawn[1]:03d}{number:02d}",
            "maker": f"{_MAKERS[drawn[2] % 12]} the {_MAKERS[drawn[3] % 12]}",
            "year": str(1400 + drawn[4] * 2),
        }

    return Objects(thing, lambda asked: frozenset() if asked.startswith("What did") else frozenset(("maker", "year")))


def asked(thing: Mapping[str, Any]) -> str:
    """The question about an object."""
    if thing["private"]:
        return f"What did the museum pay for the {thing['name']}?"
    if thing["navigation"]:
        return f"Which record says who made the {thing['name']}, and in which year?"
    return f"Who made the {thing['name']}, and in which year?"


def question(thing: Mapping[str, Any], set_id: str, number: int) -> Row:
    """A packet's question about one object, with its oracle."""
    return {
        "questionId": f"{set_id}-{number:02d}",
        "question": asked(thing),
        "clauses": ["price"] if thing["private"] else ["maker", "year"],
        "exactSourceNavigation": thing["navigation"],
        "oracle": {
            "facts": [] if thing["private"] else facts(thing),
            "sources": [
                {
                    "url": thing["url"],
                    "passage": f"Invented record: {' '.join(facts(thing))}",
                    "aliases": [f"{thing['url']}#maker"],
                }
            ],
            "limits": [limit(thing)] if thing["limited"] else [],
            "unavailable": [gap(thing)] if thing["private"] else [],
        },
        "provenance": "Invented for a rehearsal, from an invented record.",
    }


def facts(thing: Mapping[str, Any]) -> list[str]:
    return [f"It was made by {thing['maker']}.", f"It dates from {thing['year']}."]


def limit(thing: Mapping[str, Any]) -> str:
    return f"The attribution to {thing['maker']} rests on style alone."


def gap(thing: Mapping[str, Any]) -> str:
    return f"The price of the {thing['name']} is not public."


def delivery(thing: Mapping[str, Any], stated: frozenset[str], flaw: str | None) -> Row:
    """A first-visible answer: its status, text, limitations and links.

    Args:
        stated: which of `maker` and `year` the answerer states; nothing where it refuses.
        flaw: how the answer is spoilt on its way to the visitor.
    """
    known = [fact for field, fact in zip(("maker", "year"), facts(thing), strict=True) if field in stated]
    told = " ".join(known) or gap(thing)
    limits = [limit(thing)] if thing["limited"] else []
    url = f"{thing['url']}#maker" if thing["alias"] else thing["url"]
    answer: Row = {
        "status": "answered" if known else "refused",
        "answer": f"{told} The record of the object is public.",
        "limitations": limits,
        "links": [{"claim": told, "url": url}],
    }
    if flaw in ("timeout", "error"):
        return {"status": flaw, "answer": None, "limitations": [], "links": []}
    if flaw == "false-gap" or (flaw is not None and thing["private"]):
        return {
            "status": "evidence-gap",
            "answer": "Nothing is known about this object.",
            "limitations": [],
            "links": [],
        }
    if flaw == "citation":
        answer["links"] = [{"claim": told, "url": f"{HOST}/elsewhere"}]
    elif flaw == "maturity" and limits:
        answer["limitations"] = []
    elif flaw is not None:
        answer["answer"] = f"{facts(thing)[0]} The record of the object is public."
    return answer
