"""A query log's reading interrupted at every instant: whole files only, and nothing that the next run does not remove.

    python -m meta_eval_tests.killed_readings [--every 1] [--times 100]

The program's own `production attest` and `production export` run in children of this process, as a log large enough for
a record and for files of digests and cases. A child of one process is interrupted just before each change that it makes
to a folder (with `--every 7` before every seventh), and children of two processes at random instants, `--times` in all.
After each the folders may hold files that are whole and temporary ones; the next run must give the very bytes of a run
that nothing disturbed, and leave no temporary file and no process. Prints `interruptions N broken M` last.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from meta_eval.cli import main as front_door
from meta_eval.cli import production as _imported_before_the_children_are_made  # noqa: F401
from meta_eval.lanes.production import steps
from meta_eval.lanes.production.query_log import cases, duplicates, keys, scan
from meta_eval.lanes.production.query_log.spill import PREFIX
from meta_eval_tests.lanes.production.query_log_world import AS_OF, good_row, lines

STAGES = ("attest", "export")
_CHANGES = {"os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_LOOKS = 1500
Tree = dict[str, bytes]


class Place(NamedTuple):
    """The folders of one run."""

    root: Path

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"

    def words(self, stage: str) -> list[str]:
        words = ["production", stage, "--input", str(self.root / "log"), "--output", str(self.output)]
        words += ["--as-of", AS_OF]
        return words + (["--attestation", str(self.root / "attestation.json")] if stage == "export" else [])

    def held(self) -> Tree:
        return {str(path.relative_to(self.output)): path.read_bytes() for path in _files(self.output)}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- a child --------------------------------------------------------------------------------------------------


def as_if_large(processes: int) -> None:
    """Have this process treat any log as one that is too large to hold."""
    steps.LARGE_LOG = scan.LARGE_LOG = 0
    duplicates._HELD, duplicates._SHARES = 16, 2
    by_two_digits = cases._shares
    cases.HELD_BYTES, cases._SHARES, cases._shares = 0, 4, lambda lines: by_two_digits(lines) // 64
    steps.processes_for = lambda _: processes
    # Drawn anew for each reading otherwise; here a whole record is known by its bytes.
    keys.Secrets.drawn = classmethod(lambda cls: cls("0123456789abcdef", "fedcba9876543210"))
    # A killed process loses nothing that it has handed to the system, so nothing need reach the disk here.
    os.fsync = lambda _: None


def begun(place: Place, stage: str, *, processes: int = 1, prepare: Callable[[], None] = lambda: None) -> int:
    """A child that runs a stage in a session of its own; what it prints goes to the file `said`."""
    told, tells = os.pipe()
    child = os.fork()
    if child:
        os.close(tells)
        os.read(told, 1)  # a group of its own is there to be signalled
        os.close(told)
        return child
    try:
        os.close(told)
        os.setsid()
        said = os.open(place.root / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        tempfile.tempdir = str(place.temporary)
        as_if_large(processes)
        sys.argv = ["meta-eval", *place.words(stage)]
        os.close(tells)
        prepare()
        front_door.main()
    except SystemExit as leaving:
        os._exit(leaving.code if isinstance(leaving.code, int) else 3)
    except BaseException as error:
        os.write(2, f"Traceback of {type(error).__name__}, which left the program\n".encode())
        os._exit(4)
    os._exit(0)


def interrupted_before(change: int, number: int) -> Callable[[], None]:
    """Prepare a child to get a signal just before its n-th change to a folder."""

    def prepare() -> None:
        seen = 0

        def met() -> None:
            nonlocal seen
            seen += 1
            if seen == change + 1:
                signal.raise_signal(number)

        def audit(event: str, words: tuple[Any, ...]) -> None:
            if event in _CHANGES or (event == "open" and isinstance(words[2], int) and words[2] & _WRITES):
                met()

        os.fsync = lambda _: met()
        sys.addaudithook(audit)

    return prepare


def ended(child: int) -> int:
    """How a child left: its exit code, or a signal's number below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- what must hold ------------------------------------------------------------------------------------------


class Stage:
    """A stage, the folder as it is before, and what a run that nothing disturbs makes of it."""

    def __init__(self, name: str, before: Place, scratch: Path) -> None:
        self.name, self._before, self._scratch, self._number = name, before, scratch, 0
        place = self.place()
        self.earlier = place.held()
        start = time.monotonic()
        self.code = ended(begun(place, name, processes=2))
        self.takes = time.monotonic() - start
        if self.code not in (0, 1):
            raise RuntimeError(f"{name} does not run: {(place.root / 'said').read_text()}")
        self.due = place.held()
        self.made = place

    def place(self) -> Place:
        """A fresh copy of the folders as they are before the stage."""
        self._number += 1
        root = self._scratch / f"{self.name}-{self._number}"
        shutil.copytree(self._before.root, root)
        return Place(root)

    def broken(self, place: Place, code: int) -> list[str]:
        """What is wrong after an interruption, and after the run that follows it."""
        wrong = []
        # Of a program that was not asked but killed, a process that was just being started may complain.
        if code >= 0 and b"Traceback" in (place.root / "said").read_bytes():
            wrong.append("a traceback")
        for name, data in place.held().items():
            temporary = Path(name).name.startswith(".") and name.endswith(".partial")
            if not temporary and data not in (self.due.get(name), self.earlier.get(name)):
                wrong.append(f"{name} is there and not whole")
        if any(not entry.name.startswith(PREFIX) for entry in place.temporary.iterdir()):
            wrong.append("an unknown temporary file")
        if code >= 0 and code not in (1, self.code):
            wrong.append(f"exit code {code}")
        if (again := ended(begun(place, self.name))) != self.code:
            wrong.append(f"the next run leaves with {again}")
        held = place.held()
        if held != self.due:
            odd = {name for name in held.keys() | self.due.keys() if held.get(name) != self.due.get(name)}
            wrong.append(f"after the next run: {', '.join(sorted(odd))}")
        if any(place.temporary.iterdir()):
            wrong.append("after the next run: temporary files")
        shutil.rmtree(place.root)
        return wrong


def prepared(folder: Path, rows: int) -> list[Stage]:
    """The stages, each with the folders as the one before it leaves them."""
    root = folder / "before"
    place = Place(root)
    for path in (root, place.output, place.output / "private", place.temporary):
        path.mkdir(mode=0o700)
    key = place.output / "private" / steps.KEY_NAME
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    log = [good_row(number, question=f"question {number % (rows - 9)}") for number in range(rows)]
    (root / "log").write_text(lines(*log, good_row(0, outcome="failed"), "not JSON"))
    attest = Stage("attest", place, folder)
    template = json.loads((attest.made.output / "attestation-template.json").read_bytes())
    template |= {"environment": "production", "source": "https://evidence.metmuseum.org/log", "operatorCode": "OPS-7Q"}
    template |= {"exportedAt": AS_OF, "questionCollectionApproved": True}
    (attest.made.root / "attestation.json").write_text(json.dumps(template))
    export = Stage("export", attest.made, folder)
    if attest.code or export.code or "private/question-export.json" not in export.due:
        raise RuntimeError("the stages are not ready, so that there is little to interrupt")
    return [attest, export]


def at_each_change(stage: Stage, number: int, every: int) -> tuple[int, list[str]]:
    """Interrupt the stage before its changes to a folder, one child a change; how many, and what was wrong."""
    wrong: list[str] = []
    change = done = 0
    while True:
        place = stage.place()
        code = ended(begun(place, stage.name, prepare=interrupted_before(change, number)))
        if code == stage.code:
            shutil.rmtree(place.root)
            return done, wrong
        wrong += [f"{stage.name}, {signal.Signals(number).name} before change {change}: {fault}"
                  for fault in stage.broken(place, code)]  # fmt: skip
        change, done = change + every, done + 1


def at_random(stage: Stage, number: int, chance: random.Random) -> list[str]:
    """Interrupt the stage, run by two processes, once."""
    place = stage.place()
    child = begun(place, stage.name, processes=2)
    after = chance.uniform(0, stage.takes)
    time.sleep(after)
    # A key press reaches every process of the group; what ends one process reaches the one that the operator sees.
    (os.killpg if number == signal.SIGINT else os.kill)(child, number)
    code = ended(child)
    wrong = [] if no_process_is_left(child) else ["a process outlives the one that started it"]
    return [
        f"{stage.name}, two processes, {signal.Signals(number).name} after {after:.3f} s: {fault}"
        for fault in wrong + stage.broken(place, code)
    ]


def no_process_is_left(group: int) -> bool:
    """Whether every process of a group has ended, after a while of waiting; one left is killed."""
    for _ in range(_LOOKS):  # and not until an instant: a machine that stands still for a while is no fault
        if not living(group):
            return True
        time.sleep(0.02)
    for process in living(group):
        os.kill(process, signal.SIGKILL)
    return False


def living(group: int) -> list[int]:
    """The processes of a group but for those that have ended and wait for their status to be read."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it went meanwhile
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def main() -> int:
    """Interrupt, and tell; 0 where everything held."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--rows", type=int, default=80, help="of the log; from 60 on the stages are ready")
    asked = parser.parse_args()
    chance, done, wrong = random.Random(17), 0, list[str]()  # noqa: S311 - any instants will do
    with tempfile.TemporaryDirectory() as name:
        stages = prepared(Path(name), asked.rows)
        for stage in stages:
            for number in (signal.SIGKILL, signal.SIGINT):
                times, faults = at_each_change(stage, number, asked.every)
                click.echo(f"{stage.name}: {number.name} before {times} changes to a folder, {len(faults)} faults")
                done, wrong = done + times, wrong + faults
        for time_ in range(asked.times):
            number = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[time_ // 2 % 3]
            wrong += at_random(stages[time_ % 2], number, chance)
            done += 1
    for fault in wrong:
        click.echo(fault)
    click.echo(f"interruptions {done} broken {len(wrong)}")
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
