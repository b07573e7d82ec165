"""Spark in local mode, alive: the outcomes, errors and bytes of this machine's own reading, and nothing on the console.

Needs Java 17 or newer, and the package index for the environment of `requirements-spark.lock`. The tasks run in that
environment. The driver is this process, which takes from there PySpark alone: that tasks and driver have the
same rules, which every scan checks, so holds the lock to the versions of `requirements.lock`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import InputError, MetaEvalError
from meta_eval.lanes.production import steps
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import OUTCOMES, Engine, scan_log
from meta_eval.lanes.production.query_log import spark as spark_module
from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.record import Binding, fitting
from meta_eval.lanes.production.query_log.spark import Spark
from meta_eval.lanes.production.query_log.spark_session import started
from meta_eval.lanes.production.query_log.spill import PREFIX
from meta_eval_tests.lanes.production.query_log_generated import PLAIN, expected, framings
from meta_eval_tests.lanes.production.query_log_generated import every_kind as every_generated_kind
from meta_eval_tests.lanes.production.query_log_world import (
    AS_OF,
    KEY,
    NAMED,
    as_of_ms,
    cases_of,
    compact,
    good_consent,
    good_row,
    lines,
)
from meta_eval_tests.lanes.production.test_query_log_properties import SHAPES, TEXTS, logs, spellings

PROJECT = Path(__file__).resolve().parents[2]
CANARY = "zebrafish-canary"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment of the lock, and of nothing else."""
    folder = tmp_path_factory.mktemp("spark") / "venv"
    uv, made = Path(sys.executable).parent / "uv", folder / "bin" / "python"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    lock = PROJECT / "requirements-spark.lock"
    subprocess.run([uv, "pip", "install", "-q", "--python", made, "--require-hashes", "-r", lock], check=True)
    return made


@pytest.fixture(scope="module")
def spark(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """One session for all tests, with ranges so short that most lines lie across two of them."""
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    with pytest.MonkeyPatch.context() as patch:
        # Last, so that PySpark alone comes from there.
        patch.setattr(sys, "path", [*sys.path, str(packages)])
        patch.setenv("PYTHONPATH", str(PROJECT))
        patch.setenv("PYSPARK_PYTHON", str(python))
        with started("local[2]", tmp_path_factory.mktemp("local")) as session:
            yield Spark(session=session, range_bytes=1000, sent_bytes=2000)


@dataclass(frozen=True)
class Found:
    """All that a scan tells, so that two can be compared."""

    log: dict[str, Any]
    cases: list[dict[str, str]]


def found(path: Path, engine: Engine | None, **options: Any) -> Found | str:
    """What a scan finds, or the error that it ends in."""
    options = {"as_of_ms": as_of_ms(), "policy": CURRENT_POLICY, "pseudonyms": NAMED, "work_dir": path.parent} | options
    try:
        with scan_log(path, engine=engine, **options) as scan:
            told = dict(vars(scan.log), outcomes=[OUTCOMES[code] for code in scan.log.outcomes])
            return Found(told, cases_of(scan))
    except MetaEvalError as error:
        return str(error)


def every_kind() -> list[tuple[object, Callable[[str], str] | None]]:
    """Rows of every outcome, of every malformed shape and text, in the form that `spellings` takes."""
    early = good_consent(recordedAt="2026-10-01T00:00:00Z")
    kinds: list[dict[str, Any]] = [
        {"consent": None}, {"consent": good_consent(contract="v0")}, {"outcome": "failed"},
        {"askedAt": "2026-11-30T00:00:00.001Z"}, {"askedAt": "2026-10-25T23:59:59.999Z", "consent": early},
        {"question": "write to visitor@example.org"}, {"question": " ?？"}, {"question": "x" * 1001},
        {"question": "誰が描いたか"}, {"question": "WHO painted  invented picture 1"}, {"queryId": "query-2"},
    ]  # fmt: skip
    rows = [good_row(1), *(good_row(100 + n, **kind) for n, kind in enumerate(kinds)), *map(good_row, range(2, 40))]
    items: list[tuple[object, Callable[[str], str] | None]] = [(row, None) for row in rows]
    items += [(shape(good_row(200 + n)), None) for n, shape in enumerate(SHAPES)]
    items += [(good_row(300 + n), text) for n, text in enumerate(TEXTS)]
    return [items[at] for at in [0, *np.random.default_rng(3).permutation(np.arange(1, len(items)))]]


SPELLINGS = spellings(every_kind(), escaped=False)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_log_of_every_kind_is_found_the_same(name: str, spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(SPELLINGS[name])
    here = found(path, None)
    assert isinstance(here, Found)
    assert {name for name, count in here.log["counts"].items() if count} == set(OUTCOMES)
    assert found(path, spark) == here


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), escaped=st.booleans(), length=st.integers(100, 700), data=st.data())
def test_any_log_in_any_framing_cut_anywhere_is_found_the_same(
    log: tuple[list[Any], list[str]], escaped: bool, length: int, data: st.DataObject, spark: Spark, tmp_path: Path
) -> None:
    items, outcomes = log
    written = spellings(items, escaped)
    path = tmp_path / "log"
    path.write_bytes(written[data.draw(st.sampled_from(sorted(written)))])
    there = found(path, replace(spark, range_bytes=length, sent_bytes=length))
    assert isinstance(there, Found)
    assert there.log["outcomes"] == outcomes
    assert there == found(path, None)


def test_every_generated_kind_has_the_outcome_that_it_was_made_for(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log"
    for name, carried, data in framings(every_generated_kind(PLAIN)):
        path.write_bytes(data)
        there = found(path, replace(spark, range_bytes=20_000, sent_bytes=20_000))
        assert isinstance(there, Found), name
        assert there.log["outcomes"] == expected(carried).outcomes, name
        assert there == found(path, None), name


def test_a_line_across_several_ranges_and_an_over_long_one(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        lines(
            good_row(1),
            good_row(2, meta="x" * 5000),
            compact(good_row(3)) + " " * 3000,
            good_row(4, meta="x" * ROW_LIMIT),
            good_row(5),
        )
    )
    here = found(path, None)
    assert isinstance(here, Found)
    assert here.log["outcomes"] == ["eligible", "eligible", "eligible", "malformed", "eligible"]
    assert found(path, replace(spark, range_bytes=100_000)) == here
    path.write_text(lines(good_row(1), good_row(2, meta="x" * 5000), good_row(3)))
    assert found(path, spark) == found(path, None)


ROWS = lines(*map(good_row, range(30))).encode()


@pytest.mark.parametrize(
    "data",
    [
        ROWS + b'{"cut',
        ROWS + b'\n\xef\xbb\xbf {"cut' + b"x" * 3000,
        b'{"cut',
        ROWS[:3000] + b"\xff" + ROWS[3000:6000] + b"\xfe" + ROWS[6000:],
        ROWS + b'{"a":"\xe2\x82',
        ROWS + b'{"a":"\xe2\x82"}\n{"cut',
        b"", b" \n", b"\xef\xbb\xbf", b'"text"', ROWS.decode().encode("utf-16"), b'{\x00"', b'{"rows":[' + ROWS + b"]}",
        b"[" + ROWS + b"]", b'[{"a":1}', gzip.compress(ROWS)[:-9], gzip.compress(ROWS + b"\xff"), b"\x1f\x8bno gzip",
    ],
)  # fmt: skip
def test_what_is_no_log_ends_in_the_same_error(data: bytes, spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    assert found(path, spark) == found(path, None)
    assert found(tmp_path / "absent", spark) == found(tmp_path / "absent", None)
    assert list(tmp_path.glob(f"{PREFIX}*")) == []


def attestation(path: Path, template: dict[str, Any]) -> Path:
    document = template | {
        "environment": "production",
        "source": "https://evidence.metmuseum.org/log",
        "operatorCode": "OPS-7Q",
    }
    document |= {"exportedAt": written_instant(as_of_ms()), "questionCollectionApproved": True}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("framing", ["lines", "array", "gzip"])
def test_artifacts_record_and_export_are_the_same_bytes(
    framing: str, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "LARGE_LOG", 0)
    rows = [
        good_row(n, question=f"question {n % 70}", outcome="failed" if n % 9 == 0 else "answered") for n in range(99)
    ]
    text = compact(rows) if framing == "array" else lines(*rows, "not JSON")
    path, made = tmp_path / "log", {}
    path.write_bytes(gzip.compress(text.encode()) if framing == "gzip" else text.encode())

    def exported(name: str, engine: Engine | None, private: Path) -> tuple[steps.Step, bytes]:
        file = tmp_path / f"{name}.json"
        step = steps.export_questions(
            path,
            attestation(tmp_path / "attestation.json", made[private.name].papers["attestation-template.json"]),
            steps.Setting(as_of_ms() + 1000, engine=engine),
            key=KEY,
            export_file=lambda _: file,
            private=private,
        )
        return step, file.read_bytes()

    records = {}
    for name, engine in (("here", None), ("there", spark)):
        private = tmp_path / name
        made[name] = steps.attest_log(path, steps.Setting(as_of_ms(), engine=engine), private=private)
        record = fitting(
            private / "query-log.record", byte_count=path.stat().st_size, as_of_ms=as_of_ms(), policy=CURRENT_POLICY
        )
        assert record is not None
        outcomes, asked, *keys = (
            np.concatenate(column)
            for column in zip(
                *((rows.outcomes, rows.asked_at_ms, rows.id_keys, rows.question_keys) for rows in record), strict=True
            )
        )
        # Keys are under secrets of their own, so what they say is which rows are alike.
        alike = [np.unique(key, axis=0, return_index=True, return_inverse=True)[1:] for key in keys]
        firsts = [first[inverse].tolist() for first, inverse in alike]
        records[name] = (record.binding, outcomes.tolist(), asked.tolist(), firsts)
    assert made["there"] == made["here"]
    assert records["there"] == records["here"]
    assert isinstance(records["here"][0], Binding)

    here = exported("export here", None, tmp_path / "here")
    assert here[0].artifact["status"] == "ready"
    assert exported("export there", spark, tmp_path / "there") == here
    # A record that was kept over there serves here.
    monkeypatch.setattr(steps, "scan_log", lambda *_, **__: pytest.fail("scanned anew"))
    assert exported("export with its record", None, tmp_path / "there") == here


def test_progress_is_told_in_rows_and_bytes(spark: Spark, tmp_path: Path) -> None:
    path, told = tmp_path / "log", []
    path.write_bytes(ROWS)
    for data in (ROWS, gzip.compress(ROWS)):
        path.write_bytes(data)
        told.clear()
        found(path, spark, on_rows=lambda rows, read: told.append((rows, read)))
        assert told == sorted(told)
        assert len(told) > 1
        assert told[-1] == (30, len(data))


# --- what goes wrong ----------------------------------------------------------------------------------------


def _dies(batches: Iterator[Any]) -> Iterator[Any]:
    os._exit(9)
    yield


def _tells(batches: Iterator[Any]) -> Iterator[Any]:
    raise ValueError(CANARY)
    yield


@pytest.mark.parametrize("task", [_dies, _tells])
@pytest.mark.parametrize("data", [ROWS, b"[" + ROWS.rstrip().replace(b"\n", b",") + b"]"])
def test_a_task_that_dies_ends_in_our_own_error(
    task: Callable[..., Any], data: bytes, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    for name in ("_range_task", "_batch_task"):
        monkeypatch.setattr(spark_module, name, lambda *_: task)
    said = found(path, spark)
    assert isinstance(said, str)
    assert "a Spark task ended before its work was done" in said
    assert CANARY not in said
    assert "".join(capfd.readouterr()) == ""
    assert list(tmp_path.glob(f"{PREFIX}*")) == []


def test_an_exception_in_a_task_does_not_leave_it(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(ROWS)
    assert "a Spark task ended" in str(found(path, spark, as_of_ms=CANARY))


def test_machines_of_other_rules_are_refused(spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(ROWS)
    monkeypatch.setattr(spark_module, "rules_digest", lambda: "0" * 64)
    assert "a machine of the cluster has other rules" in str(found(path, spark))


@pytest.mark.parametrize("change", ["another row", "more rows"])
def test_a_log_that_changes_while_it_is_read_does_not_pass(
    change: str, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(ROWS)
    real, hashed = spark_module._is_same, []

    def changed(file: Any, answer: dict[str, Any], receipt: Any) -> bool:
        # After the task has read a piece, and before its receipt is made.
        with path.open("r+b") as log:
            if change == "more rows":
                log.seek(0, 2)
                log.write(b'{"a":1}\n')
            elif not hashed:
                log.seek(answer["start"] + 15)
                log.write(b"9")
        hashed.append(answer)
        return real(file, answer, receipt)

    monkeypatch.setattr(spark_module, "_is_same", changed)
    with (
        pytest.raises(InputError, match="not the bytes that the tasks read"),
        scan_log(path, as_of_ms=as_of_ms(), policy=CURRENT_POLICY, engine=spark),
    ):
        pass


# --- the command --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terminal:
    """The command in the environment of the lock, with a home and a place for temporary files of its own."""

    python: Path
    folder: Path
    before: str = ""
    """What is done in the command's process before it runs."""

    def __call__(self, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        (temporary := self.folder / "tmp").mkdir(exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        kept |= {"PYTHONPATH": str(PROJECT), "TMPDIR": str(temporary), "META_EVAL_HOME": str(self.folder / "home")}
        return subprocess.run(
            [self.python, "-c", f"{self.before}\nfrom meta_eval.cli.main import main\nmain()", "production", *words],
            capture_output=True, text=True, cwd=self.folder, timeout=300, env=kept | environment,
        )  # fmt: skip


@pytest.fixture
def terminal(python: Path, tmp_path: Path) -> Terminal:
    return Terminal(python, tmp_path)


def test_the_command_says_the_same_with_either_engine_and_shows_nothing(terminal: Terminal) -> None:
    log = terminal.folder / "log.jsonl"
    log.write_text(lines(*(good_row(n, question=f"Who is {CANARY} {n}?", queryId=f"{CANARY}-{n}") for n in range(60))))
    said: dict[str, list[Any]] = {"local": [], "spark": []}
    (key := terminal.folder / "key").write_bytes(KEY)
    key.chmod(0o600)
    for engine, results in said.items():
        output = terminal.folder / engine
        common = ("--input", log, "--as-of", AS_OF, "--json", "--output", output)
        environment = {"META_EVAL_ENGINE": engine, "META_EVAL_SPARK_MASTER": "local[2]"}
        attested = terminal("attest", *common, **environment)
        assert (attested.returncode, attested.stderr) == (0, "")
        template = json.loads((output / "attestation-template.json").read_text())
        document = attestation(terminal.folder / "attestation.json", template)
        words = ("export", "--attestation", document, "--pseudonym-key", key, "--engine", engine)
        exported = terminal(*words, *common, "--as-of", AS_OF)
        assert (exported.returncode, exported.stderr) == (0, "")
        assert CANARY not in attested.stdout + exported.stdout
        assert CANARY in (output / "private" / "question-export.json").read_text()
        results += [json.loads(done.stdout) | {"files": None} for done in (attested, exported)]
    assert said["spark"] == said["local"]
    assert sorted(entry.name for entry in terminal.folder.iterdir()) == [
        "attestation.json", "key", "local", "log.jsonl", "spark", "tmp",
    ]  # fmt: skip
    assert [entry.name for entry in (terminal.folder / "tmp").iterdir() if not entry.name.startswith("hsperf")] == []


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ((), {"JAVA_HOME": "/no/java"}, "Spark did not start: it needs Java 17 or newer"),
        (("--spark-master", "no-such-master"), {}, "Spark did not start"),
    ],
)
def test_spark_that_does_not_start_says_what_it_needs(
    options: tuple[str, ...], environment: dict[str, str], message: str, terminal: Terminal
) -> None:
    log = terminal.folder / "log.jsonl"
    log.write_text(lines(good_row(1, question=CANARY)))
    words = ("attest", "--input", log, "--as-of", AS_OF, "--output", terminal.folder / "out", "--engine", "spark")
    done = terminal(*words, *options, **environment)
    assert done.returncode == 2
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert not (terminal.folder / "out").exists()


KILLS_SPARK = """
import os
from meta_eval.lanes.production.query_log import spark

def task(batches):
    with open(f"/proc/{os.getppid()}/stat") as daemon:
        os.kill(int(daemon.read().split()[3]), 9)
    yield

spark._range_task = lambda *_: task
"""


def test_spark_that_is_killed_ends_in_one_line(terminal: Terminal) -> None:
    log = terminal.folder / "log.jsonl"
    log.write_text(lines(good_row(1, question=CANARY)))
    words = ("attest", "--input", log, "--as-of", AS_OF, "--output", terminal.folder / "out", "--engine", "spark")
    done = replace(terminal, before=KILLS_SPARK)(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("meta-eval: a Spark task ended before its work was done")
    assert done.stderr.count("\n") == 1
    assert not (terminal.folder / "out").exists()
    assert [entry.name for entry in (terminal.folder / "tmp").iterdir() if not entry.name.startswith("hsperf")] == []
