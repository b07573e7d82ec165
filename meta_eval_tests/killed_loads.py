"""Loads killed at random instants: the store opens each time, holds whole bundles only, and goes on by itself.

    python -m meta_eval_tests.killed_loads [--times 200]

A child loads one bundle after another; it is killed with SIGKILL at a random instant, then this process loads one more
with no manual step. Each table must hold, for each artifact, all of its rows or none, and the published copy must be
the store's. Prints `kills N lost M` last.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.lanes.catalogue import evidence_store, tables_of
from meta_eval_tests.lanes.production.broken import SMALL_POLICY, whole

ROWS = {"traces": 6, "emitted_claims": 4, "citation_decisions": 4, "artifacts": 1}
CHILD = """
import sys
from pathlib import Path
from meta_eval_tests.killed_loads import another, load
number = int(sys.argv[2])
another(number)
print("ready", flush=True)
while True:
    number += 1
    load(Path(sys.argv[1]), another(number))
"""


def another(number: int) -> Artifact:
    """A bundle like the others under a digest of its own."""
    bundle = dict(whole(cases=6, answerable=4, policy=SMALL_POLICY).bundle)
    bundle["round"] = f"round-{number}"
    bundle["digest"] = digest_of(bundle)
    return bundle


def load(folder: Path, bundle: Artifact) -> None:
    """Load a bundle into the store of a folder."""
    evidence_store(folder).load(bundle, tables_of(bundle))


def broken_bundles(path: Path) -> int:
    """How many artifacts a store holds in part."""
    with duckdb.connect(path, read_only=True) as connection:
        return sum(
            connection.execute(
                f"SELECT count(*) FROM artifacts LEFT JOIN (SELECT artifact_digest, count(*) AS held FROM {table} "  # noqa: S608
                "GROUP BY ALL) USING (artifact_digest) WHERE coalesce(held, 0) <> ?",
                [due],
            ).fetchall()[0][0]
            for table, due in ROWS.items()
        )


def main() -> int:
    """Run the kills; 0 where nothing was lost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=200)
    times = parser.parse_args().times
    choose, lost, before = random.Random(11), 0, 0  # noqa: S311 - any instants will do
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kill in range(times):
            words = [sys.executable, "-c", CHILD, str(folder), str(1000 * (kill + 1))]
            child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            if child.stdout is None or child.stdout.readline() != "ready\n":
                raise RuntimeError("the child did not start")
            time.sleep(choose.uniform(0, 0.4))
            child.kill()
            child.wait()
            load(folder, another(kill))
            with duckdb.connect(folder / "analyst.duckdb", read_only=True) as connection:
                held = connection.execute("SELECT count(*) FROM artifacts").fetchall()[0][0]
            lost += broken_bundles(folder / "evidence.duckdb") + (held <= before)
            before = held
        print(f"{before} bundles in the store, loaded by {times} children that were killed and by this process")
    print(f"kills {times} lost {lost}")
    return 0 if lost == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
