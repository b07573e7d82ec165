"""How the query-log scan compares with its floor: hashing the file and parsing every field of it.

    .venv/bin/python benchmarks/query_log.py [--rows 1000000] [--folder DIR]

Writes an invented, seeded log with every outcome (about 335 bytes a row) as JSON Lines and as an array, then runs
each measure in a process of its own. Absolute times move with the machine: only the ratios within one run count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
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
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(invented_rows(rows)):
            file.write(("[" if number == 0 else ",") + text if shape == "array" else text + "\n")
        file.write("]" if shape == "array" else "")


def measure(what: str, path: Path, processes: int) -> dict[str, float | int]:
    """Run one measure here, and say how long it took and how much memory it held."""
    start = time.perf_counter()
    result = _floor(path) if what == "floor" else _scan(path, processes, keep=what == "export")
    wall = time.perf_counter() - start
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # The largest worker's peak stands for each of them: an upper bound of the sum.
    peak = own.ru_maxrss + (workers.ru_maxrss * processes if processes > 1 else 0)
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (own, workers))
    return {"wall": wall, "cpu": cpu, "peak_mb": peak // 1024, "rows": result}


def _floor(path: Path) -> int:
    import duckdb

    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")
    names = ("queryId", "question", "askedAt", "outcome", "consent")
    columns = ", ".join(f"{name}: 'JSON'" for name in names)
    touched = ", ".join(f"count({name})" for name in names)
    shape = "array" if path.name.startswith("array") else "newline_delimited"
    # ignore_errors is what lets a reader of columns pass over the malformed rows.
    query = (
        f"SELECT count(*), {touched} FROM read_json('{path}', columns={{{columns}}}, format='{shape}', "
        "records=true, ignore_errors=true)"
    )
    return int(duckdb.execute(query).fetchall()[0][0])


def _scan(path: Path, processes: int, *, keep: bool) -> int:
    from meta_eval.evidence.chronology import instant_ms
    from meta_eval.lanes.production.policy import CURRENT_POLICY
    from meta_eval.lanes.production.query_log import scan_log

    as_of_ms = instant_ms(AS_OF)
    assert as_of_ms is not None
    with scan_log(path, as_of_ms=as_of_ms, policy=CURRENT_POLICY, processes=processes, keep_questions=keep) as scanned:
        if keep:
            assert sum(batch.num_rows for batch in scanned.eligible()) == scanned.log.counts["eligible"]
        print(json.dumps(scanned.log.counts), file=sys.stderr)
        return scanned.log.row_count


def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--folder", type=Path, help="where the logs are kept for the next run")
    options.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        what, path, processes = given.measure
        print(json.dumps(measure(what, Path(path), int(processes))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        _compare(given.folder or Path(scratch), given.rows)


def _compare(folder: Path, rows: int) -> None:
    for shape in ("lines", "array"):
        path = folder / f"{shape}-{rows}.json"
        if not path.exists():
            write_log(path, rows, shape)
        print(f"{shape}: {rows:,} rows, {path.stat().st_size / rows:.0f} bytes a row")
        floor = 0.0
        for what, processes in (("floor", 1), ("attest", 1), ("attest", 2), ("export", 2)):
            command = [sys.executable, __file__, "--measure", what, str(path), str(processes)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            figures = json.loads(done.stdout)
            floor = floor or figures["wall"]
            print(
                f"  {what:7} {processes} process(es): {figures['wall']:6.2f} s, "
                f"{figures['wall'] / floor:5.1f}x the floor, "
                f"{figures['cpu']:6.2f} s CPU, peak {figures['peak_mb']} MB"
            )


if __name__ == "__main__":
    _main()
