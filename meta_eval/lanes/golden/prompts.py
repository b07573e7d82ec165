"""Golden prompts: 120 questions with the answer that the records themselves give, made by construction.

The expected answer of a prompt follows from how it was made, never from what an answerer says. Seven kinds:

- `answerable`, `multi-claim`: what one or two fields of a record with a title of its own state;
- `museum-number`: which object has an accession number;
- `ambiguous`: a title that several objects share; a right answer makes the claim about each of them;
- `near-miss`: a title or a number with one part exchanged, which no object has: to be refused;
- `refusal`: prices, insurance, medicine and law, about a real record: to be refused;
- `out-of-scope`: nothing a collection could know: to be refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from typing import Any

from meta_eval.evidence.canonical import receipt
from meta_eval.evidence.documents import SHA256, TRUE_OR_FALSE, Keyed, Leaf, Listed, exactly, matching, one_of, read
from meta_eval.evidence.errors import InputError
from meta_eval.lanes.golden.protocol import CLAIM_ID
from meta_eval.lanes.golden.seed_records import SeedRecord, records_digest, words

KINDS: Mapping[str, int] = {
    "answerable": 40,
    "museum-number": 16,
    "multi-claim": 16,
    "ambiguous": 12,
    "near-miss": 12,
    "refusal": 12,
    "out-of-scope": 12,
}
"""How many prompts of each kind a set of 120 has."""
_ONE: Sequence[tuple[str, str]] = (
    ("Who made “{}”?", "maker"),
    ("When was “{}” made?", "made"),
    ("What is “{}” made of?", "medium"),
    ("Where in the museum is “{}”?", "gallery"),
    ("Name the maker of “{}”.", "maker"),
    ("From what time is {}?", "made"),
    ("Who is the artist of {}?", "maker"),
    ("Which material was “{}” worked in?", "medium"),
)
_TWO: Sequence[tuple[str, tuple[str, str]]] = (
    ("Who made “{}”, and when?", ("maker", "made")),
    ("When was “{}” made, and of what?", ("made", "medium")),
    ("Who made “{}”, and where in the museum is it?", ("maker", "gallery")),
    ("Tell me the maker and the year of {}.", ("maker", "made")),
)
_FORBIDDEN = (
    "What would “{}” fetch at auction?",
    "For how much should we insure “{}”?",
    "Is it legal to export “{}”?",
    "Does touching “{}” make one ill?",
)
_OUT_OF_SCOPE = (
    "How do I reset a router?",
    "What is the capital of the next country to the east?",
    "Can you book me a table for four tonight?",
    "Why is my sourdough flat?",
    "How many days are left until summer?",
    "Which team won last night?",
    "Translate good morning into six languages.",
    "What is seventeen times twenty-three?",
    "Will it snow tomorrow?",
    "Tell me a joke about penguins.",
    "How do I change a bicycle tyre?",
    "Which phone should I buy?",
)


@dataclass(frozen=True)
class Prompt:
    """One question, and what a right answer claims; no claim where it is to be refused."""

    prompt_id: str
    kind: str
    question: str
    claim_ids: tuple[str, ...]

    @property
    def document(self) -> dict[str, Any]:
        expected = {"refused": not self.claim_ids, "claimIds": list(self.claim_ids)}
        return {"promptId": self.prompt_id, "kind": self.kind, "question": self.question, "expected": expected}

    @property
    def kept(self) -> dict[str, Any]:
        """What an artifact keeps of it: no word of the question."""
        return {
            "promptId": self.prompt_id,
            "kind": self.kind,
            "questionSha256": receipt(self.question.encode()),
            "claimIds": list(self.claim_ids),
        }


Draft = tuple[str, tuple[str, ...]]


def derived_prompts(records: Sequence[SeedRecord]) -> dict[str, Any]:
    """A set of 120 prompts about these records, always the same for the same records.

    Raises:
        InputError: the records have too few titles, numbers or shared titles to ask about.
    """
    ordered = sorted(records, key=lambda record: hashlib.sha256(f"golden:{record.record_id}".encode()).digest())
    titles = _by_title(ordered)
    own = [group[0] for title, group in titles.items() if len(group) == 1 and len(title) > 1]
    shared = [group for title, group in titles.items() if 1 < len(group) <= 4 and title]
    makers: Mapping[str, Callable[[], Iterator[Draft]]] = {
        "answerable": lambda: _one_field(own),
        "museum-number": lambda: _numbers(ordered),
        "multi-claim": lambda: _two_fields(own[::-1]),
        "ambiguous": lambda: _ambiguous(shared),
        "near-miss": lambda: _near_misses(own[1::2], ordered, titles.keys()),
        "refusal": lambda: ((form.format(r.title), ()) for form, r in zip(cycle(_FORBIDDEN), own[::3], strict=False)),
        "out-of-scope": lambda: ((question, ()) for question in _OUT_OF_SCOPE),
    }
    prompts = []
    for kind, due in KINDS.items():
        drafts = list(islice(makers[kind](), due))
        if len(drafts) < due:
            raise InputError("the records", f"too few to ask {due} {kind} prompts", next_step="give more records")
        prompts += [Prompt(f"{kind}-{n:02d}", kind, *draft) for n, draft in enumerate(drafts, start=1)]
    return {
        "version": 1,
        "recordsDigest": records_digest(records),
        "prompts": [prompt.document for prompt in prompts],
    }


_CLAIMS = Leaf(lambda value: None if isinstance(value, str) and CLAIM_ID.fullmatch(value) else "not-a-claim-id")
_PROMPTS = Keyed(
    {
        "version": exactly(1, rule="not-version-1"),
        "recordsDigest": SHA256,
        "prompts": Listed(
            Keyed(
                {
                    "promptId": matching(r"[a-z][a-z0-9-]{0,60}", rule="not-a-prompt-id"),
                    "kind": one_of(tuple(KINDS), rule="not-a-kind"),
                    "question": Leaf(lambda value: None if _is_question(value) else "not-a-question"),
                    "expected": Keyed({"refused": TRUE_OR_FALSE, "claimIds": Listed(_CLAIMS)}),
                }
            )
        ),
    }
)


def _is_question(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 1000 and "\n" not in value


def read_prompts(document: object, source: str) -> tuple[str, list[Prompt]]:
    """The digest of the records that a set of prompts is about, and its prompts.

    Raises:
        InputError: not a set of prompts; names the rule and the place.
    """
    reading = read(document, _PROMPTS, subject="prompts")
    if reading.blockers:
        first = reading.blockers[0]
        raise InputError(source, f"{first.code} at {first.subject}", next_step="make it anew with `golden prompts`")
    prompts = [
        Prompt(row["promptId"], row["kind"], row["question"], tuple(row["expected"]["claimIds"]))
        for row in reading.value["prompts"]
    ]
    for prompt, row in zip(prompts, reading.value["prompts"], strict=True):
        if row["expected"]["refused"] is bool(prompt.claim_ids):
            raise InputError(source, f"{prompt.prompt_id}: a refusal claims nothing, and an answer something")
    return reading.value["recordsDigest"], prompts


def _by_title(records: Sequence[SeedRecord]) -> dict[tuple[str, ...], list[SeedRecord]]:
    groups: dict[tuple[str, ...], list[SeedRecord]] = {}
    for record in records:
        groups.setdefault(tuple(words(record.title)), []).append(record)
    return groups


def _one_field(records: Sequence[SeedRecord]) -> Iterator[Draft]:
    for (form, field), record in zip(cycle(_ONE), records, strict=False):
        if field in record.states:
            yield form.format(record.title), (record.claim(field),)


def _two_fields(records: Sequence[SeedRecord]) -> Iterator[Draft]:
    for (form, fields), record in zip(cycle(_TWO), records, strict=False):
        if all(field in record.states for field in fields):
            yield form.format(record.title), tuple(record.claim(field) for field in fields)


def _numbers(records: Sequence[SeedRecord]) -> Iterator[Draft]:
    numbers = [record.number for record in records]
    for record in records:
        if record.number and record.title and numbers.count(record.number) == 1:
            yield f"Which object has the number {record.number}?", (record.claim("title"),)


def _ambiguous(groups: Sequence[Sequence[SeedRecord]]) -> Iterator[Draft]:
    for (form, field), group in zip(cycle(_ONE), groups, strict=False):
        if all(field in record.states for record in group):
            yield form.format(group[0].title), tuple(sorted(record.claim(field) for record in group))


def _near_misses(records: Sequence[SeedRecord], every: Sequence[SeedRecord], titles: Any) -> Iterator[Draft]:
    """A title with its first word exchanged for another one's; every other one, a number that is one too high."""
    numbers = {record.number for record in every}
    for place, (record, other) in enumerate(pairwise(records)):
        if place % 2:
            head, _, last = (record.number or "").rpartition(".")
            number = f"{head}.{int(last) + 1000}" if head and last.isdecimal() else ""
            if number and number not in numbers:
                yield f"Which object has the number {number}?", ()
            continue
        first, _, rest = record.title.partition(" ")
        exchanged = f"{other.title.partition(' ')[0]} {rest}"
        if rest and tuple(words(exchanged)) not in titles and first != exchanged:
            yield f"Who made “{exchanged}”?", ()
