"""How attestation and export of a query log compare with their floor and with the same job written without care.

    .venv/bin/python benchmarks/query_log.py [--rows 1000000] [--framing lines array] [--folder DIR]

The floor is hashing the file and parsing every field of it with DuckDB. Every measure runs in a process of its own,
one after the other, on the same invented log. Absolute times move with the machine, and with what else runs on it:
only the ratios within one run count, and on a busy machine only those of processor time. META_EVAL_ENGINE=spark and
META_EVAL_SPARK_MASTER measure the other engine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

from invented_log import AS_OF, write_log

PEER_ROWS = 1_000_000
"""The most rows that the peers are given: they hold the whole log in memory."""


class Peak(threading.Thread):
    """The most memory that this process and its workers held at one time, looked at five times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.kilobytes = 0

    def run(self) -> None:
        """Look, and look again."""
        while True:
            self.kilobytes = max(self.kilobytes, sum(map(_proportional_kilobytes, _family("self"))))
            time.sleep(0.2)


def _family(process: str) -> Iterator[str]:
    """A process and all that it and they have started."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended meanwhile
            for child in children.read_text().split():
                yield from _family(child)


def _proportional_kilobytes(process: str) -> int:
    # A page that two processes share counts half in each, so that the sum is what the machine had to hold.
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measure(what: str, path: Path) -> dict[str, float | int]:
    """Run one measure here, and say what it took."""
    peak = Peak()
    peak.start()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        rows = MEASURES[what](path, Path(scratch))
    wall = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "wall": wall,
        "cpu": sum(usage.ru_utime + usage.ru_stime for usage in used),
        "peak_mb": max(peak.kilobytes, *(usage.ru_maxrss for usage in used)) // 1024,
        "rows": rows,
    }


def _floor(path: Path, _: Path) -> int:
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


def _setting() -> Any:
    from meta_eval.evidence.chronology import instant_ms
    from meta_eval.home import log_engine
    from meta_eval.lanes.production.steps import Setting

    made_at = instant_ms(AS_OF)
    assert made_at is not None
    return Setting(made_at, engine=log_engine())


def _attest(path: Path, scratch: Path) -> int:
    from meta_eval.lanes.production.steps import attest_log

    return int(attest_log(path, _setting(), private=scratch / "private").artifact["result"]["rowCount"])


def _export(path: Path, scratch: Path) -> int:
    from meta_eval.lanes.production.steps import export_questions

    document = {
        "version": 1,
        "environment": "production",
        "source": "https://evidence.metmuseum.org/log",
        "logSha256": path.with_suffix(".sha256").read_text(),
        "exportedAt": AS_OF,
        "operatorCode": "OPS-7Q",
        "questionCollectionApproved": True,
    }
    attestation = scratch / "attestation.json"
    attestation.write_text(json.dumps(document))
    step = export_questions(
        path,
        attestation,
        _setting(),
        key=bytes(range(32)),
        export_file=lambda _: scratch / "export.json",
        private=scratch / "private",
    )
    assert step.artifact["status"] == "ready", step.artifact["blockers"]
    return int(step.artifact["result"]["rowCount"])


def _both(path: Path, scratch: Path) -> int:
    _attest(path, scratch)
    return _export(path, scratch)


def _row_by_row(path: Path, scratch: Path) -> int:
    from query_log_peers import row_by_row

    return row_by_row(path, scratch / "export.json", AS_OF)


def _pandas(path: Path, scratch: Path) -> int:
    from query_log_peers import pandas_pandera

    return pandas_pandera(path, scratch / "export.json", AS_OF)


def _node(path: Path, scratch: Path) -> int:
    script = Path(__file__).with_name("query_log_peer.mjs")
    command = ["node", "--max-old-space-size=8192", str(script), str(path), str(scratch / "export.json"), AS_OF]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


MEASURES: dict[str, Callable[[Path, Path], int]] = {
    "floor": _floor,
    "attest": _attest,
    "export": _export,
    "both": _both,
    "node": _node,
    "row by row": _row_by_row,
    "pandas+pandera": _pandas,
}


def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--framing", nargs="+", choices=("lines", "array"), default=["lines", "array"])
    options.add_argument("--measures", nargs="+", choices=tuple(MEASURES), default=list(MEASURES))
    options.add_argument("--folder", type=Path, help="where the logs are kept for the next run")
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], Path(given.measure[1]))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for shape in given.framing:
            _compare(given.folder or Path(scratch), given.rows, shape, given.measures)


def _compare(folder: Path, rows: int, shape: str, measures: list[str]) -> None:
    path = folder / f"{shape}-{rows}.json"
    if not path.exists():
        write_log(path, rows, shape)
    with path.open("rb") as file:
        path.with_suffix(".sha256").write_text(hashlib.file_digest(file, "sha256").hexdigest())
    print(f"{shape}: {rows:,} rows, {path.stat().st_size / rows:.0f} bytes a row")
    print(f"  {'':15} {'wall s':>8} {'x floor':>8} {'CPU s':>8} {'x floor':>8} {'peak MB':>8} {'rows/s':>9}")
    floor: dict[str, float] = {}
    for what in measures:
        if (what in ("row by row", "pandas+pandera", "node") and rows > PEER_ROWS) or (
            what == "node" and not which("node")
        ):
            continue
        command = [sys.executable, __file__, "--measure", what, str(path)]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        floor = floor or figures
        print(
            f"  {what:15} {figures['wall']:8.2f} {figures['wall'] / floor['wall']:8.1f} "
            f"{figures['cpu']:8.2f} {figures['cpu'] / floor['cpu']:8.1f} "
            f"{figures['peak_mb']:8} {rows / figures['wall']:9,.0f}"
        )


if __name__ == "__main__":
    _main()
