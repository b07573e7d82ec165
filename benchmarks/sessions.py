"""How `score --all` grows: 1, 4 and 16 times 5,000 sessions over 500,000 events, each in a process of its own.

    .venv/bin/python benchmarks/sessions.py [--sizes 1,4,16] [--folder DIR]

Writes invented, seeded ledgers (about 215 bytes an event, one session in ten beside another) and times reading, scoring
and the append to the journal. The published reference reads both files anew for each session; its cost is recomputed
here from what was measured of it: 3 microseconds an event and 22 microseconds a session, for every session.
Absolute times move with the machine and with whatever else runs on it: the column `per n log n`, of this process's own
CPU time, is the one that must stay level.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

SESSIONS, EVENTS = 5_000, 500_000
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_NAMES = {
    "orchestrator.wave.started": 35,
    "orchestrator.agent.finished": 35,
    "orchestrator.quality_gate.passed": 15,
    "orchestrator.quality_gate.failed": 3,
    "orchestrator.destructive_guard.blocked": 2,
    "orchestrator.destructive_guard.warned": 3,
    "orchestrator.loop.warning": 2,
    "orchestrator.session.started": 5,
}


def _instant(ms: int) -> str:
    at = _BEGIN + timedelta(milliseconds=ms)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def write_ledgers(folder: Path, sessions: int, events: int, seed: int = 7) -> None:
    """Invented: no session ran, and nothing in it was ever reported."""
    chance = random.Random(seed)
    cursor = previous = 0
    with (folder / "sessions.jsonl").open("w", encoding="ascii") as file:
        for number in range(sessions):
            start = cursor + chance.randrange(60_000, 3_600_000)
            if number and chance.random() < 0.1:
                start = max(previous, cursor - 300_000)
            end = start + chance.randrange(600_000, 10_800_000)
            cursor, previous = max(cursor, end), start
            waves = chance.choice([0, 1, 3, 5])
            planned = chance.choice([0, 2, 5, 8])
            done = chance.randrange(planned + 1)
            record = {
                "session_id": f"invented-{number:06d}",
                "started_at": _instant(start),
                "completed_at": _instant(end),
                "status": "abandoned" if chance.random() < 0.1 else "completed",
                "total_waves": waves,
                "total_agents": waves * 4,
                "total_files_changed": chance.choice([0, 3, 17]),
                "total_token_input": chance.randrange(10**6),
                "total_token_output": chance.randrange(10**6),
                "waves": [{"wave": wave + 1, "role": "Impl-Core"} for wave in range(waves)],
                "agent_summary": {"complete": waves * 4, "spiral": int(chance.random() < 0.02)},
                "effectiveness": {
                    "planned_issues": planned,
                    "carryover": planned - done,
                    "completion_rate": done / planned if planned else None,
                },
                "notes": "n" * chance.randrange(200),
            }
            file.write(json.dumps(record) + "\n")
    with (folder / "events.jsonl").open("w", encoding="ascii") as file:
        for at in sorted(chance.randrange(cursor) for _ in range(events)):
            name = chance.choices(list(_NAMES), list(_NAMES.values()))[0]
            event = {"timestamp": _instant(at), "event": name, "schema_version": 1}
            if "quality_gate" in name:
                exit_code = int(name.endswith("failed"))
                event |= {"variant": chance.choice(["baseline", "full-gate"]), "exit_code": exit_code}
            else:
                event |= {"session_id": f"{chance.getrandbits(128):032x}", "detail": "d" * chance.randrange(20, 120)}
            file.write(json.dumps(event) + "\n")


def measure(folder: Path, rubric: str) -> dict[str, float | int]:
    """Read, score and journal one metrics folder in this process."""
    from meta_eval.lanes.sessions import steps
    from meta_eval.lanes.sessions.journal import append
    from meta_eval.lanes.sessions.record import Provenance

    journal = folder / f"eval-{rubric}.jsonl"
    journal.unlink(missing_ok=True)
    start, cpu_start = time.perf_counter(), time.process_time()
    metrics = steps.Metrics.of(folder, journal)
    _, frozen, scored = steps.all_scored(metrics, rubric)
    made = steps.under(frozen, Provenance("2026-08-20T12:00:00.000Z", "", "", "benchmark"))
    append(journal, [session.record(made) for session in scored])
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"wall": wall, "cpu": cpu, "peak_mb": peak, "scored": len(scored)}


def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="1,4,16")
    options.add_argument("--folder", type=Path)
    options.add_argument("--rubric", default="v2")
    options.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.rubric)))
        return
    print(" size  sessions     events   wall s   cpu s  peak MB  per n log n  x reference")
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        for size in map(int, given.sizes.split(",")):
            folder = Path(root) / str(size)
            folder.mkdir()
            write_ledgers(folder, SESSIONS * size, EVENTS * size)
            command = [sys.executable, __file__, "--measure", str(folder), "--rubric", given.rubric]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            n = (SESSIONS + EVENTS) * size
            reference = found["scored"] * (EVENTS * size * 3e-6 + SESSIONS * size * 22e-6)
            level = found["cpu"] / (n * math.log2(n)) * 1e9
            print(
                f"{size:>4}x {SESSIONS * size:>9,} {EVENTS * size:>10,} {found['wall']:>8.1f} {found['cpu']:>7.1f} "
                f"{found['peak_mb']:>8} {level:>9.0f} ns {reference / found['wall']:>11,.0f}x",
                flush=True,
            )


if __name__ == "__main__":
    _main()
