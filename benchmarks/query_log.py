"""How attestation and export of a query log compare with their floor and with the same job written without care.

    .venv/bin/python benchmarks/query_log.py [--rows 1000000] [--framing lines array] [--folder DIR]

The floor is hashing the file and parsing every field of it with DuckDB, a process for each. Every measure is a fresh
process, timed as a whole (its start and imports included), on the same invented log; the measures take turns, and each
figure is the median of its runs. Absolute times move with the machine, and with what else runs on it: only the ratios
within one run count, and on a busy machine only those of processor time. META_EVAL_ENGINE=spark and
META_EVAL_SPARK_MASTER measure the other engine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from invented_log import AS_OF, write_log

PEERS = ("node", "row by row", "pandas+pandera")
STEPS = ("attest", "export")
"""A peer does both too, each from the log: between them a person attests to what the first one told."""
PEER_ROWS = 1_000_000
"""The most rows that the peers are given: they hold the whole log in memory."""


class Peak(threading.Thread):
    """The most memory that this process and its workers held at one time, looked at twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.kilobytes = 0

    def run(self) -> None:
        """Look, and look again."""
        while True:
            self.kilobytes = max(self.kilobytes, sum(map(_proportional_kilobytes, _family("self"))))
            time.sleep(0.5)


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


def measure(what: str, path: Path) -> int:
    """Run one measure here, and say the most kilobytes that it held."""
    peak = Peak()
    peak.start()
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        MEASURES[what](path, Path(scratch))
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(peak.kilobytes, *used)


def _hash(path: Path, _: Path) -> None:
    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")


def _parse(path: Path, _: Path) -> None:
    import duckdb

    names = ("queryId", "question", "askedAt", "outcome", "consent")
    columns = ", ".join(f"{name}: 'JSON'" for name in names)
    touched = ", ".join(f"count({name})" for name in names)
    shape = "array" if path.name.startswith("array") else "newline_delimited"
    # ignore_errors is what lets a reader of columns pass over the malformed rows.
    query = (
        f"SELECT count(*), {touched} FROM read_json('{path}', columns={{{columns}}}, format='{shape}', "
        "records=true, ignore_errors=true)"
    )
    duckdb.execute(query).fetchall()


def _setting() -> Any:
    from meta_eval.evidence.chronology import instant_ms
    from meta_eval.home import log_engine
    from meta_eval.lanes.production.steps import Setting

    made_at = instant_ms(AS_OF)
    assert made_at is not None
    return Setting(made_at, engine=log_engine())


def _attest(path: Path, scratch: Path) -> None:
    from meta_eval.lanes.production.steps import attest_log

    attest_log(path, _setting(), private=scratch / "private")


def _export(path: Path, scratch: Path) -> None:
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


def _both(path: Path, scratch: Path) -> None:
    _attest(path, scratch)
    _export(path, scratch)


def _row_by_row(path: Path, scratch: Path) -> None:
    from query_log_peers import row_by_row

    for _ in STEPS:
        row_by_row(path, scratch / "export.json", AS_OF)


def _pandas(path: Path, scratch: Path) -> None:
    from query_log_peers import pandas_pandera

    for _ in STEPS:
        pandas_pandera(path, scratch / "export.json", AS_OF)


def _node(path: Path, scratch: Path) -> None:
    script = Path(__file__).with_name("query_log_peer.mjs")
    command = ["node", "--max-old-space-size=8192", str(script), str(path), str(scratch / "export.json"), AS_OF]
    for _ in STEPS:
        subprocess.run(command, check=True, capture_output=True)


MEASURES: dict[str, Callable[[Path, Path], None]] = {
    "hash": _hash,
    "parse": _parse,
    "attest": _attest,
    "export": _export,
    "both": _both,
    "node": _node,
    "row by row": _row_by_row,
    "pandas+pandera": _pandas,
}
FLOOR = ("hash", "parse")


class Run(NamedTuple):
    """What one process took, or the medians of several."""

    wall: float
    cpu: float
    peak_mb: float


def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--framing", nargs="+", choices=("lines", "array"), default=["lines", "array"])
    others = [what for what in MEASURES if what not in FLOOR]
    options.add_argument("--measures", nargs="*", choices=others, default=others, help="beside the floor")
    options.add_argument("--runs", type=int, default=3, help="of each measure; a peer has one (default: 3)")
    options.add_argument("--folder", type=Path, help="where the logs are kept for the next run")
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(measure(given.measure[0], Path(given.measure[1])))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for shape in given.framing:
            path = _log(given.folder or Path(scratch), given.rows, shape)
            measures = [what for what in given.measures if _can_run(what, given.rows)]
            _show(path, given.rows, _measured(path, measures, given.runs))


def _log(folder: Path, rows: int, shape: str) -> Path:
    path = folder / f"{shape}-{rows}.json"
    if not path.exists():
        write_log(path, rows, shape)
    with path.open("rb") as file:
        path.with_suffix(".sha256").write_text(hashlib.file_digest(file, "sha256").hexdigest())
    return path


def _can_run(what: str, rows: int) -> bool:
    return what not in PEERS or (rows <= PEER_ROWS and (what != "node" or which("node") is not None))


def _measured(path: Path, measures: list[str], runs: int) -> dict[str, Run]:
    """The medians of each measure."""
    found: dict[str, list[Run]] = {what: [] for what in (*FLOOR, *measures)}
    for turn in range(runs):
        for what, figures in found.items():
            if turn == 0 or what not in PEERS:
                figures.append(_run(what, path))
    return {what: Run(*map(statistics.median, zip(*figures, strict=True))) for what, figures in found.items()}


def _run(what: str, path: Path) -> Run:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, __file__, "--measure", what, str(path)]
    surroundings = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # as the command's front door has it
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=surroundings).stdout
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, int(told) / 1024)


def _show(path: Path, rows: int, found: dict[str, Run]) -> None:
    parts = [found.pop(what) for what in FLOOR]
    floor = Run(sum(part.wall for part in parts), sum(part.cpu for part in parts), max(part.peak_mb for part in parts))
    print(f"{path.stem}: {rows:,} rows, {path.stat().st_size / rows:.0f} bytes a row")
    print(f"  {'':15} {'wall s':>8} {'x floor':>8} {'CPU s':>8} {'x floor':>8} {'peak MB':>8} {'rows/s':>9}")
    for what, run in {"floor": floor, **found}.items():
        print(
            f"  {what:15} {run.wall:8.2f} {run.wall / floor.wall:8.1f} {run.cpu:8.2f} {run.cpu / floor.cpu:8.1f} "
            f"{run.peak_mb:8.0f} {rows / run.wall:9,.0f}"
        )


if __name__ == "__main__":
    _main()
