"""What earlier studies have exposed: which of them bind a study, and the texts of their questions that are at hand.

Source: the usefulness contract, custody register. The registers say what was exposed, by digest; the texts come from
retained packets and public exports, and count only where a register knows their digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.errors import MetaEvalError
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness import wording
from meta_eval.lanes.usefulness.stage import Row
from meta_eval.lanes.usefulness.studies import Study


def bound_studies(place: Study) -> list[Study]:
    """The studies whose exposed questions are not fresh here: this one first, and every earlier one that binds it.

    Among studies in production those are all others; a rehearsal, whose questions are invented, names those that it
    follows.
    """
    declared: Row = next((entry["body"] for entry in place.register.entries() if entry["event"] == "declared"), {})
    if declared.get("environment") != "production":
        names = [name for name in declared.get("follows") or [] if name != place.name]
        return [place, *(Study(place.folder.parent, name) for name in names)]
    folders = sorted(path for path in place.folder.parent.glob("*/register.jsonl") if path.parent != place.folder)
    others = [Study(place.folder.parent, path.parent.name) for path in folders]
    return [place, *(other for other in others if _environment(other) == "production")]


def other_registers(bound: Sequence[Study]) -> list[list[Entry]]:
    """The entries of every bound study but the first, which is the study itself."""
    return [other.register.entries() for other in bound[1:]]


def _environment(other: Study) -> str | None:
    first = other.register.entries()[:1]
    return first[0]["body"].get("environment") if first else None


def exposed_texts(bound: Iterable[Study]) -> dict[str, str]:
    """The exposed questions that are still at hand, from retained packets and public exports."""
    texts: dict[str, str] = {}
    for other in bound:
        for path in sorted([*(other.private / "kept").glob("*.json"), *other.export.glob("*.json")]):
            try:
                value, _ = read_document(path)
            except MetaEvalError:
                continue
            texts |= wording.normalised_by_digest(_questions(value))
    return texts


def _questions(value: Any) -> list[str]:
    """The questions in a packet or an export; none in any other document."""
    held = value.get("replay", value) if isinstance(value, dict) else {}
    rows = held.get("questions") if isinstance(held, dict) else None
    found = [row.get("question") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [question for question in found if isinstance(question, str)]
