"""The built-in answerer: plain retrieval with BM25, the same on every machine. A baseline, and no good one on purpose.

It reads which fields a question asks for, finds the records whose titles fit best, and claims those fields. It refuses
where a word forbids it, no field is asked for, or too little of the question is in the title. Scores are compared to
six decimals and ties go by record id, so that no order of floating-point sums, of hashing or of files decides.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from meta_eval.lanes.golden.seed_records import SeedRecord, words

Answer = dict[str, Any]
"""`{refused, claims: [{claimId, citations}], latencyMs}`, what every answerer gives."""

CITED = "https://golden.example/records/"
_COVERED = 0.75
"""So much of a question's own words must be in a title."""
_MOST_CLAIMED = 4
_FORBIDDEN = frozenset("auction fetch price worth cost insure insurance insured legal law medicine ill".split())
_ASKED: Mapping[str, re.Pattern[str]] = {
    "maker": re.compile(r"\bwho\b|\bmaker\b|\bartist\b"),
    "made": re.compile(r"\bwhen\b|\byear\b"),
    "medium": re.compile(r"\bmade of\b|\bof what\b|\bmaterial\b"),
    "gallery": re.compile(r"\bwhere\b|\bgallery\b"),
}
_NUMBER = re.compile(r"\b\d+(?:\.\d+)+\b")
_PASSED_OVER = frozenset(
    "a an and at by for from in into is it of on or the to was what when where which who with made make museum object "
    "number has have how do does name maker artist tell me year material worked gallery".split()
)


class BuiltInAnswerer:
    """Answers questions about some records. Built once, then asked as often as you like."""

    def __init__(self, records: Iterable[SeedRecord]) -> None:
        import bm25s  # half of the start-up; who runs another answerer does not wait for it

        self._records = sorted(records, key=lambda record: record.record_id)
        self._titles = [_own_words(record.title) or words(record.title) or [""] for record in self._records]
        self._index = bm25s.BM25(method="lucene", dtype="float64")
        self._index.index(self._titles, show_progress=False)
        self._vocabulary = {word for title in self._titles for word in title}
        self._by_number: dict[str, list[SeedRecord]] = {}
        for record in self._records:
            if record.number:
                self._by_number.setdefault(record.number, []).append(record)

    def answer(self, question: str) -> Answer:
        """The answer to one question. Whatever the question is, there is one."""
        started = time.perf_counter()
        claims = [
            {"claimId": record.claim(field), "citations": [f"{CITED}{record.record_id}"]}
            for record, field in self._claims(question)
        ]
        elapsed = round((time.perf_counter() - started) * 1000, 3)
        return {"refused": not claims, "claims": claims, "latencyMs": elapsed}

    def _claims(self, question: str) -> list[tuple[SeedRecord, str]]:
        asked = words(question)
        if not _FORBIDDEN.isdisjoint(asked):
            return []
        if (number := _NUMBER.search(question)) is not None:
            return [(record, "title") for record in self._by_number.get(number.group(), []) if record.title]
        title, around = _parts(question)
        fields = [field for field, cue in _ASKED.items() if cue.search(around)]
        found = self._found(_own_words(title))
        return [(record, field) for record in found for field in fields if field in record.states]

    def _found(self, own: Sequence[str]) -> list[SeedRecord]:
        """The best records, all of them that score alike, where enough of the words is in their titles."""
        known = [word for word in own if word in self._vocabulary]
        if not known or len(known) < _COVERED * len(own):
            return []
        scores = self._index.get_scores(known)
        best = round(float(scores.max()), 6)
        places = [place for place, score in enumerate(scores) if round(float(score), 6) == best]
        fits = [place for place in places if len(set(own) & set(self._titles[place])) >= _COVERED * len(set(own))]
        return [self._records[place] for place in fits[:_MOST_CLAIMED]]


def _parts(question: str) -> tuple[str, str]:
    """What stands between quotation marks and what stands around it; without any, the whole question twice."""
    quoted = re.search(r"“(.+)”|\"(.+)\"", question)
    if quoted is None:
        return question, question.casefold()
    return quoted.group(1) or quoted.group(2), question.replace(quoted.group(), " ").casefold()


def _own_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in _PASSED_OVER]
