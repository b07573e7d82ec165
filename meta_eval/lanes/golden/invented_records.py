"""The invented collection of the golden set: 220 objects that exist nowhere, drawn from word lists by a fixed rule.

Nothing here is a real object, maker or gift. `data/golden/records.jsonl` is `invented_records()` written out; a test
holds the two together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

RECORDS = 220
_SHARED_TITLES = 12
"""So many titles belong to two objects each, so that a question about them is ambiguous."""
_SUBJECTS = (
    "Heron Kettle Lantern Orchard Ferry Loom Quarry Beacon Harvest Aviary Cloister Foundry Regatta Almanac Bridge "
    "Granary Pavilion Hourglass Meadow Compass Carnival Lighthouse"
).split()
_SETTINGS = (
    "at Dusk|in Fog|under Snow|after the Flood|before Rain|by the Weir|with Two Figures|in Blue and Grey|"
    "near Ostermoor|on Market Day|at Low Tide|with a Red Door|in Moonlight|beside the Canal|for a Bookplate"
).split("|")
_MAKERS = (
    "Ilvane Torrick|Maubert Quill|Oda Fenwarden|Teskel Brandry|Rosamer Vint|Callus Overmere|Pell Adderstone|"
    "Yewen Marlick|Brisca Thornaby|Ansgrel Holt|Vesper Lindqua|Doran Ashwater|Imke Sollaver|Corvin Tamsett|"
    "Nerys Palgrove|Hobart Winslade-Roe|Sunniva Arkle|Tobiah Grell|Melusa Hartnoy|Ferris Okendale"
).split("|")
_MEDIA = (
    "oil on canvas|etching on laid paper|watercolour over graphite|wood engraving|glazed stoneware|cast bronze|"
    "silver gelatin print|pieced cotton|blown glass|carved walnut|lithograph|chased silver"
).split("|")
_DEPARTMENTS = ("Fine Arts", "Decorative Arts and Design", "Photography", "Works on Paper")


def invented_records() -> list[dict[str, Any]]:
    """The records, in ascending order of id."""
    titles = _titles()
    return [_record(number, title) for number, title in enumerate(titles, start=1)]


def _titles() -> list[str]:
    every = sorted(
        (f"{one} {other}" for one in _SUBJECTS for other in _SETTINGS), key=lambda title: _draw(title, "order")
    )
    distinct = every[: RECORDS - _SHARED_TITLES]
    return [*distinct, *distinct[:_SHARED_TITLES]]


def _record(number: int, title: str) -> dict[str, Any]:
    record_id = f"invented-{number:04d}"
    year = 1790 + _draw(record_id, "year") % 170
    gallery = _draw(record_id, "gallery") % 5
    return {
        "id": record_id,
        "title": title,
        "creation_date": f"c. {year}" if _draw(record_id, "circa") % 4 == 0 else str(year),
        "medium": _pick(_MEDIA, record_id, "medium"),
        "accession_number": f"{1900 + number % 97}.{1 + number % 31}.{number}",
        "credit_line": "Invented for the golden set; no such gift was ever made",
        "department": _pick(_DEPARTMENTS, record_id, "department"),
        "physical_location": "Not on View" if gallery == 0 else f"Gallery {gallery}",
        "creators": [{"name": _pick(_MAKERS, record_id, "maker")}],
    }


def _pick(options: Sequence[str], *parts: str) -> str:
    return options[_draw(*parts) % len(options)]


def _draw(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256(":".join(("golden", *parts)).encode()).digest()[:8], "big")
