"""Invented questions about invented objects, and invented answers to them, good or bad in a stated way.

Every text says that it is invented. Question number `n` of a set asks about one object: who made it and when; some ask
for what is not public, some for an exact source. An answer's `flaw` is one of `FLAWS`, or none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
HOST = "https://records.museum.example"
FLAWS = ("omission", "false-gap", "citation", "timeout", "maturity", "error")
_COLOURS = "amber azure bronze coral ebony golden ivory jade olive scarlet silver violet".split()
_THINGS = "astrolabe barometer casket ewer goblet hourglass lantern medallion psalter tapestry tile urn".split()
_MAKERS = "Abelard Brandt Corvin Dorset Ekman Faber Galvan Hoorn Ilmari Jansz Keller Lindqvist".split()


def record(seed: int, set_id: str, number: int) -> Row:
    """An invented object. The same seed, set and number give the same object."""
    drawn = hashlib.sha256(f"{seed}/{set_id}/{number}".encode()).digest()
    colour, thing = _COLOURS[number % 12], _THINGS[number // 12 + drawn[0] % 7]
    return {
        "name": f"invented {colour} {thing} {drawn[1]:03d}{number:02d}",
        "maker": f"{_MAKERS[drawn[2] % 12]} the {_MAKERS[drawn[3] % 12]}",
        "year": 1400 + drawn[4] * 2,
        "url": f"{HOST}/{set_id}/objects/{number}",
        "private": number % 12 == 5,
        "limited": number % 5 == 2,
        "navigation": number % 12 == 8,
    }


def question(seed: int, set_id: str, number: int) -> Row:
    """A packet's question about one object, with its oracle."""
    thing = record(seed, set_id, number)
    asked = f"Who made the {thing['name']}, and in which year?"
    clauses = ["maker", "year"]
    if thing["private"]:
        asked, clauses = f"What did the museum pay for the {thing['name']}?", ["price"]
    elif thing["navigation"]:
        asked = f"Which record says who made the {thing['name']}, and in which year?"
    return {
        "questionId": f"{set_id}-{number:02d}",
        "question": asked,
        "clauses": clauses,
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


def delivery(thing: Mapping[str, Any], flaw: str | None) -> Row:
    """A first-visible answer: its status, text, limitations and links."""
    told = gap(thing) if thing["private"] else " ".join(facts(thing))
    limits = [limit(thing)] if thing["limited"] else []
    url = f"{thing['url']}#maker" if thing["year"] % 4 else thing["url"]
    answer: Row = {
        "status": "refused" if thing["private"] else "answered",
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
