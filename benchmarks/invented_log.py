"""An invented, seeded query log with every outcome in it, about 310 bytes a row, as JSON Lines or as an array."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

AS_OF = "2026-11-30T00:00:00.000Z"
_WORDS = (
    "which paintings drawings vases prints from the invented collection are on show in the east west wing this "
    "season who made them when did they enter and what does label say about their frame paper glaze origin"
).split()
_ACCENTED = ["Gemälde", "café", "œuvre", "Straße", "浮世絵", "ｗｉｄｅ", "Ökonomie", "señora"]
_KINDS = ["malformed", "no-consent", "wrong-contract", "failed", "future", "stale", "contact", "blank", "long", "good"]
_WEIGHTS = [20, 220, 10, 60, 10, 180, 40, 3, 7, 450]


def _spelled(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _instant(chance: random.Random, day: int, month: int = 11) -> str:
    second = chance.randrange(86_400)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"2026-{month:02d}-{day:02d}T{clock}.{chance.randrange(1000):03d}Z"


def invented_rows(count: int, seed: int = 7) -> Iterator[str]:
    """The rows' JSON text. Invented: no person asked any of these questions."""
    chance = random.Random(seed)
    contract = {"contract": "research-ai-evaluation-v1", "granted": True}
    for number in range(count):
        kind = chance.choices(_KINDS, _WEIGHTS)[0]
        words = chance.choices(_WORDS, k=17)
        if chance.random() < 0.14:
            words[3] = chance.choice(_ACCENTED)
        if chance.random() < 0.1:
            # The contact screen looks longer at text with digits, so their share decides what it costs.
            words[5] = str(chance.randrange(1500, 2027))
        words[0] = _spelled(number if chance.random() < 0.75 else number % 5000)
        question = f"Demo {' '.join(words)}?"
        asked = _instant(chance, chance.randrange(1, 30))
        row: dict[str, Any] = {
            "queryId": f"invented-{number:012d}",
            "question": question,
            "askedAt": asked,
            "outcome": chance.choice(["answered", "answered", "refused"]),
            "consent": contract | {"recordedAt": f"{asked[:11]}00:00:00.000Z"},
        }
        yield _as_kind(kind, row, chance)


def _as_kind(kind: str, row: dict[str, Any], chance: random.Random) -> str:
    if kind == "no-consent":
        row["consent"] = chance.choice([None, row["consent"] | {"granted": False}])
    elif kind == "wrong-contract":
        row["consent"] = row["consent"] | {"contract": "research-ai-evaluation-v0"}
    elif kind == "failed":
        row["outcome"] = "failed"
    elif kind == "future":
        row["askedAt"] = _instant(chance, 5, 12)
    elif kind == "stale":
        row["askedAt"] = _instant(chance, chance.randrange(1, 25), 10)
        row["consent"] = row["consent"] | {"recordedAt": "2026-09-01T00:00:00.000Z"}
    elif kind == "contact":
        row["question"] += chance.choice([" Write to visitor@example.org", " ｕｓｅｒ＠ｅｘａｍｐｌｅ．ｏｒｇ"])
    elif kind == "blank":
        row["question"] = " ?! "
    elif kind == "long":
        row["question"] *= 9
    elif kind == "malformed":
        return _malformed(row, chance)
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _malformed(row: dict[str, Any], chance: random.Random) -> str:
    """Broken in a way that DuckDB reads past in an array too, as the floor must finish (so no lone surrogate)."""
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return chance.choice(
        [
            "null",
            text[:-1] + ',"outcome":"answered"}',
            text[:-1] + ',"latencyMs":NaN}',
            text[:-1] + ',"Question":"?"}',
            text.replace('.000Z"', '"'),
            text.replace('"granted":true', '"granted":1'),
        ]
    )


def write_log(path: Path, rows: int, shape: str) -> None:
    """Write a log of `rows` rows; `shape` is "lines" or "array"."""
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(invented_rows(rows)):
            file.write(("[" if number == 0 else ",") + text if shape == "array" else text + "\n")
        file.write("]" if shape == "array" else "")
