"""A store of many rounds: does a question about one of them stay quick?

    python benchmarks/store_of_rounds.py [--rounds 100] [--cases 100000]

Every round brings the same invented rows (see `store.py`) under artifacts of its own. Loading is timed round by round,
with its publication, so that what a store's size adds shows; then each view answers about one round, in one process.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
from store import drawn, load_round

from meta_eval.lanes.catalogue import evidence_store

# What an analyst asks about one round, and what is asked about all of them.
OF_ONE = (
    "SELECT * FROM recomputed_metrics WHERE round = $round",
    "SELECT m.* FROM recomputed_metrics AS m JOIN current_rounds AS r USING (artifact_digest) WHERE r.round = $round",
    "SELECT * FROM metric_disagreements WHERE round = $round",
    "SELECT why, count(*) FROM failing_cases WHERE round = $round GROUP BY ALL",
    "SELECT * FROM latency_distribution WHERE round = $round",
    "SELECT * FROM reviewer_agreement WHERE round = $round",
)
OF_ALL = ("SELECT * FROM current_rounds", "SELECT * FROM metric_history", "SELECT * FROM latency_distribution")


def main() -> None:
    """Load the rounds, then ask."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--cases", type=int, default=100_000)
    given = parser.parse_args()
    tables = drawn(given.cases)
    with tempfile.TemporaryDirectory() as folder:
        store = evidence_store(Path(folder))
        loads = []
        for number in range(given.rounds):
            started = time.perf_counter()
            load_round(store, tables, f"round-{number:03}")
            loads.append(time.perf_counter() - started)
        fifth = max(1, given.rounds // 5)
        first, last = statistics.median(loads[:fifth]), statistics.median(loads[-fifth:])
        print(f"a load and its publication: {first:.2f} s in the first fifth, {last:.2f} s in the last")
        print(f"the store holds {store.path.stat().st_size / 1e6:,.0f} MB")
        with duckdb.connect(store.analyst_path, read_only=True) as connection:
            for query in (*OF_ONE, *OF_ALL):
                asked = {"round": f"round-{given.rounds // 2:03}"} if "$round" in query else None
                started = time.perf_counter()
                rows = len(connection.execute(query, asked).fetchall())
                print(f"{time.perf_counter() - started:>7.2f} s {rows:>6} rows  {query}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB")


if __name__ == "__main__":
    main()
