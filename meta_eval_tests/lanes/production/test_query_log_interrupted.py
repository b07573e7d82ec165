"""A reading interrupted anywhere leaves whole files only, no process, and nothing that the next run does not remove.

`python -m meta_eval_tests.killed_readings` is the long campaign; here it takes every few instants.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from meta_eval.lanes.production.query_log.workers import Worker
from meta_eval_tests import killed_readings


def test_what_is_interrupted_is_made_good_by_the_next_run() -> None:
    # In a process of its own, as children are forked from it and no thread may be under way then.
    run = subprocess.run(
        [sys.executable, "-m", "meta_eval_tests.killed_readings", "--every", "5", "--times", "6"],
        cwd=Path(killed_readings.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    *_, told = run.stdout.splitlines()
    assert told.endswith("broken 0")
    assert int(told.split()[1]) > 35, "hardly anything was interrupted"


def test_a_half_made_file_and_a_process_left_behind_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killed_readings, "begun", lambda *_: 0)
    monkeypatch.setattr(killed_readings, "ended", lambda _: 2)
    place = killed_readings.Place(tmp_path / "run")
    for folder in (place.root, place.output, place.temporary):
        folder.mkdir()
    (place.root / "said").write_text("Traceback (most recent call last):")
    (place.output / "whole.json").write_bytes(b"{}")
    (place.output / "half.json").write_bytes(b"{")
    (place.output / ".half.json.1-ab.partial").touch()
    (place.temporary / "strange").touch()
    stage = object.__new__(killed_readings.Stage)
    stage.name, stage.code, stage.earlier = "attest", 0, {}
    stage.due = {"whole.json": b"{}", "half.json": b"{}"}
    assert stage.broken(place, 7) == [
        "a traceback",
        "half.json is there and not whole",
        "an unknown temporary file",
        "exit code 7",
        "the next run leaves with 2",
        "after the next run: .half.json.1-ab.partial, half.json",
        "after the next run: temporary files",
    ]
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        assert killed_readings.living(sleeper.pid) == [sleeper.pid]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert killed_readings.living(sleeper.pid) == []


def rows_of(batch: pa.RecordBatch) -> int:
    return batch.num_rows


def test_a_worker_is_deaf_to_ctrl_c_from_its_first_instruction_on_and_its_starter_is_not() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    worker = Worker(rows_of)
    try:
        os.kill(worker._process.pid or 0, signal.SIGINT)  # long before it has imported anything
        assert worker.takes(pa.RecordBatch.from_arrays([pa.array([b"{}", b"{}"])], ["row"]))
        assert worker.result() == 2
    finally:
        worker.close()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
