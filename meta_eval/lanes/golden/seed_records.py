"""Seed records: the small world that golden prompts ask about, one object of a collection a line.

A record has the fields under which museums publish their collections (`FIELDS`); others are let be. A claim is that one
field of one record says what it says, and its id names both: `RECORD.maker`. Whatever a record does not state, no claim
can be about.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_eval.evidence.canonical import digest, parse_document, unreadable
from meta_eval.evidence.errors import InputError

FIELDS: Mapping[str, str] = {
    "maker": "creators",
    "made": "creation_date",
    "medium": "medium",
    "gallery": "physical_location",
    "title": "title",
}
"""Claim field to the record's field that states it."""
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")
MOST_RECORDS = 1_000_000


@dataclass(frozen=True)
class SeedRecord:
    """One object: its id, its accession number, and what it states, by claim field."""

    record_id: str
    number: str | None
    states: Mapping[str, str]

    @property
    def title(self) -> str:
        return self.states.get("title", "")

    def claim(self, field: str) -> str:
        """The id of the claim about one field. Raises KeyError where the record does not state it."""
        self.states[field]
        return f"{self.record_id}.{field}"

    @property
    def document(self) -> dict[str, Any]:
        """What of a record counts for the golden set, and for its digest."""
        return {"id": self.record_id, "number": self.number, "states": dict(self.states)}


def read_records(path: Path) -> list[SeedRecord]:
    """The records of a JSON Lines file, in its order.

    Raises:
        InputError: the file cannot be read, or a line is no record; names the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    records: list[SeedRecord] = []
    seen = set[str]()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        record = _record(parse_document(line, source=f"{path}, line {number}"))
        if record is None or record.record_id in seen or len(records) == MOST_RECORDS:
            rule = "a repeated record id" if record else "not a record with an id"
            raise InputError(f"{path}, line {number}", rule, next_step="see data/golden/README.md for the fields")
        seen.add(record.record_id)
        records.append(record)
    if not records:
        raise InputError(str(path), "no record", next_step="give a JSON Lines file, an object of the collection a line")
    return records


def _record(value: Any) -> SeedRecord | None:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or ID.fullmatch(value["id"]) is None:
        return None
    states = {field: text for field, key in FIELDS.items() if (text := _text(value.get(key)))}
    number = value.get("accession_number")
    return SeedRecord(value["id"], number if isinstance(number, str) and number else None, states)


def _text(value: Any) -> str:
    """A field as text; of several makers, their names."""
    if isinstance(value, list):
        names = [entry["name"] for entry in value if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        return ", ".join(names)
    return value.strip() if isinstance(value, str) else ""


def records_digest(records: Iterable[SeedRecord]) -> str:
    """The digest of what records state, in ascending order of id."""
    return digest(sorted((record.document for record in records), key=lambda document: str(document["id"])))


def words(text: str) -> list[str]:
    """The words of a text as they are compared: NFKC, case-folded, letters and digits only."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def jsonl(documents: Sequence[Mapping[str, Any]]) -> bytes:
    """Documents as JSON Lines, in one form, so that a file can be made again to the byte."""
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents).encode()
