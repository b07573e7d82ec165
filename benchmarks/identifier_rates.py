"""How much the identifier screen finds in sentences with invented details, and how much it stops that it must not.

    python benchmarks/identifier_rates.py --data ../shared/data

Prints a table by type of detail, the false positives by kind of question, and microseconds per question.
"""

from __future__ import annotations

import argparse
import json
import timeit
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from meta_eval.evidence.identifiers import contact_rule, may_hold_contact

CONTACT_TYPES = (
    "EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "STREET_ADDRESS",
)  # fmt: skip
# Parts of an address, or a host's name: neither must be caught, and catching them is no fault either.
NEAR_CONTACT_TYPES = ("ZIP_CODE", "DOMAIN_NAME", "US_DRIVER_LICENSE")
SPEED_QUESTIONS = {
    "plain question": "Who painted the portrait that hangs beside the great stair?",
    "with a year": "What was made in Florence between 1883 and 1885?",
    "with an accession number": "Who gave 1985.20.23-24 to the museum?",
    "plain, accented": "Wer malte das Bildnis über der großen Treppe?",
    "with a phone number": "Call me at (202) 555-0123 about the vase",
}


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def recall_by_type(sentences: Iterable[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """For each contact type: sentences flagged, and sentences that hold it."""
    flagged: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for sentence in sentences:
        hit = contact_rule(sentence["text"]) is not None
        for kind in {span["type"] for span in sentence["spans"]} & set(CONTACT_TYPES):
            held[kind] += 1
            flagged[kind] += hit
    return {kind: (flagged[kind], held[kind]) for kind in CONTACT_TYPES}


def contact_free(sentences: Iterable[dict[str, Any]]) -> list[str]:
    """Sentences without a detail of contact kind or near it."""
    kinds = {*CONTACT_TYPES, *NEAR_CONTACT_TYPES}
    return [item["text"] for item in sentences if not kinds & {span["type"] for span in item["spans"]}]


def museum_questions(records: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Questions set from the numbers, dates, sizes and titles of real records."""
    questions: dict[str, list[str]] = {"accession": [], "accession and date": [], "size": [], "title": []}
    for record in records:
        accession = record["accession_number"]
        if accession:
            questions["accession"].append(f"When was {accession} acquired?")
            questions["accession and date"].append(f"Is {accession} from {record['creation_date']}?")
        width, height = record["item_width"], record["item_height"]
        questions["size"].append(f"Is it {width} x {height} in.?")
        if record["title"]:
            questions["title"].append(f"Who made {record['title']}?")
    return questions


def microseconds(question: str) -> float:
    """Time of one `contact_rule`, the best of five rounds."""
    timer = timeit.Timer(lambda: contact_rule(question))
    return min(timer.repeat(repeat=5, number=5000)) / 5000 * 1e6


def _print_rate(label: str, flagged: int, total: int) -> None:
    print(f"{label:<34} {flagged:>6} / {total:<6} {100 * flagged / max(total, 1):7.2f} %")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the three data files")
    parser.add_argument("--show", action="store_true", help="list what was missed and what was flagged")
    options = parser.parse_args()
    sentences = list(read_lines(options.data / "pii-sentences.jsonl"))
    print("found, of sentences that hold it")
    for kind, (flagged, held) in recall_by_type(sentences).items():
        _print_rate(kind, flagged, held)
    harmless = {
        "sentences without contact": contact_free(sentences),
        "CLINC150 requests": [item["query"] for item in read_lines(options.data / "clinc150-queries.jsonl")],
        **museum_questions(read_lines(options.data / "museum-records.jsonl")),
    }
    print("\nstopped, of what is harmless")
    for label, texts in harmless.items():
        stopped = [(rule, text) for text in texts if (rule := contact_rule(text))]
        _print_rate(label, len(stopped), len(texts))
        if options.show:
            print(*(f"    {rule}: {text!r}" for rule, text in stopped), sep="\n")
    if options.show:
        for item in sentences:
            missed = {span["type"] for span in item["spans"]} & set(CONTACT_TYPES)
            if missed and contact_rule(item["text"]) is None:
                print(f"  missed {sorted(missed)}: {item['text']!r}")
    print("\nmicroseconds per question")
    for label, question in SPEED_QUESTIONS.items():
        print(f"{label:<34} {microseconds(question):8.2f}  (prefilter: {may_hold_contact(question)})")


if __name__ == "__main__":
    main()
