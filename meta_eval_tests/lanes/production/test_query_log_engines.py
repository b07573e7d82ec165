"""The second engine's own logic, by a session that runs its tasks in this process; Spark itself is in `live`."""

from __future__ import annotations

import gzip
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.errors import InputError, MetaEvalError, UsageError
from meta_eval.home import log_engine
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import spark as spark_module
from meta_eval.lanes.production.query_log.ahead import called_ahead
from meta_eval.lanes.production.query_log.framing import FramingError
from meta_eval.lanes.production.query_log.judging import Job
from meta_eval.lanes.production.query_log.keys import Secrets
from meta_eval.lanes.production.query_log.ranges import Piece
from meta_eval.lanes.production.query_log.reading import ROW_SCHEMA
from meta_eval.lanes.production.query_log.record import rules_digest
from meta_eval.lanes.production.query_log.spark import Spark
from meta_eval.lanes.production.query_log.spark_session import started
from meta_eval_tests.cli.test_production import call
from meta_eval_tests.lanes.production.query_log_world import AS_OF, as_of_ms, good_row, lines, outcomes, scanned
from meta_eval_tests.lanes.production.test_query_log_properties import logs, spellings

CANARY = "zebrafish-canary"
JOB = Job(as_of_ms(), CURRENT_POLICY, Secrets.drawn(), hand_back=True)
ROWS = lines(*map(good_row, range(30))).encode()


@dataclass
class Frame:
    """As much of a DataFrame as the engine asks for."""

    batches: list[pa.RecordBatch]
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None

    def mapInArrow(self, task: Any, schema: str) -> Frame:  # noqa: N802 - Spark's name
        return Frame(self.batches, task)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        assert self.task is not None
        return pa.Table.from_batches(list(self.task(iter(self.batches))), spark_module._answer().schema)


@dataclass
class Session:
    """As much of a SparkSession as the engine asks for; its tasks run in the threads that ask."""

    defaultParallelism: int = 2  # noqa: N815 - Spark's name
    tasks: list[object] = field(default_factory=list)

    @property
    def sparkContext(self) -> Session:  # noqa: N802 - Spark's name
        return self

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        self.tasks.append(start)
        return Frame([pa.RecordBatch.from_pydict({"id": list(range(start, end, step))})])

    def createDataFrame(self, table: pa.Table) -> Frame:  # noqa: N802 - Spark's name
        self.tasks.append(table)
        return Frame(table.to_batches())


def engine(session: Session | None = None, length: int = 1000) -> Spark:
    made: Any = session or Session()
    return Spark(session=made, range_bytes=length, sent_bytes=length)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@settings(max_examples=25, deadline=None)
@given(log=logs(), escaped=st.booleans(), length=st.integers(20, 700))
def test_any_log_in_any_framing_cut_anywhere_has_the_outcomes_it_was_made_with(
    log: tuple[list[Any], list[str]], escaped: bool, length: int
) -> None:
    items, expected = log
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        for name, data in spellings(items, escaped).items():
            there, here = scanned(path, data, engine=engine(length=length)), scanned(path, data)
            assert outcomes(there) == expected, name
            assert (there.receipt, there.byte_count, there.counts) == (here.receipt, here.byte_count, here.counts)
            assert there.newest_asked_at_ms == here.newest_asked_at_ms


def test_lines_are_read_by_ranges_and_arrays_are_sent(log: Path) -> None:
    session = Session()
    scanned(log, ROWS, engine=engine(session))
    assert session.tasks == list(range(-(-len(ROWS) // 1000)))
    for data in (gzip.compress(ROWS), b"[" + ROWS.strip().replace(b"\n", b",") + b"]"):
        session = Session()
        scanned(log, data, engine=engine(session))
        assert len(session.tasks) > 3
        assert all(isinstance(task, pa.Table) for task in session.tasks)


@pytest.mark.parametrize("data", [b"", b'"text"', b"[]", b"[1 2]", b"\x1f\x8bno gzip"])
def test_what_needs_no_spark_starts_none(log: Path, data: bytes) -> None:
    def never(*_: object) -> Any:
        pytest.fail("started Spark")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_module, "started", never)
        if data == b"[]":
            assert scanned(log, data, engine=Spark()).row_count == 0
            return
        with pytest.raises(InputError):
            scanned(log, data, engine=Spark())
        log.unlink()
        with pytest.raises(InputError):
            Spark()(log).judged(JOB, lambda: log.parent)


def test_results_are_taken_in_order_and_few_are_held(log: Path) -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def task(number: int) -> list[dict[str, Any]]:
        with lock:
            begun.append(number)
        time.sleep(0.02 if number % 3 == 0 else 0)
        return [{"number": number}]

    taken = []
    for answers in called_ahead((partial(task, number) for number in range(40)), 4):
        taken.append(answers[0]["number"])
        assert max(begun) <= len(taken) + 4
    assert taken == list(range(40))


def test_no_further_task_is_begun_after_a_fault(log: Path) -> None:
    session = Session()
    with pytest.raises(InputError, match="not UTF-8 at byte 5"):
        scanned(log, b'{"a":\xff}\n' + ROWS * 20, engine=engine(session))
    assert len(session.tasks) < 12


# --- what a task answers ------------------------------------------------------------------------------------


def pieces(*errors: Exception) -> Iterator[Piece]:
    yield Piece(pa.RecordBatch.from_pydict({"row": [b"{}", None]}, ROW_SCHEMA), 0, 2, b"sha")
    for error in errors:
        raise error


@pytest.mark.parametrize(
    ("error", "fault", "at"),
    [
        (FramingError("not UTF-8", 7), "not UTF-8", 7),
        (OSError(5, CANARY), "unreadable", None),
        (ValueError(CANARY), "ended", None),
        (MemoryError(CANARY), "ended", None),
    ],
)
def test_no_exception_leaves_a_task(error: Exception, fault: str, at: int | None) -> None:
    first, last = spark_module._told(pieces(error), JOB, rules_digest())
    assert first.to_pylist()[0]["fault"] is None
    assert {key: value for key, value in last.to_pylist()[0].items() if value is not None} == {
        "fault": fault, **({} if at is None else {"fault_at": at}),
    }  # fmt: skip
    assert first.schema == last.schema


def test_a_machine_of_other_rules_judges_nothing() -> None:
    [answer] = spark_module._told(pieces(), JOB, "another")
    assert answer.to_pylist()[0]["fault"] == "unlike"


class Dying(Session):
    """A session whose every task fails, and says of it what Spark might."""

    def range(self, *_: int) -> Frame:
        raise RuntimeError(CANARY)


def test_what_spark_says_of_a_failed_task_is_not_passed_on(log: Path) -> None:
    with pytest.raises(MetaEvalError, match="a Spark task ended before its work was done") as caught:
        scanned(log, ROWS, engine=engine(Dying()))
    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("change", ["another byte", "fewer bytes", "more bytes"])
def test_a_log_that_is_not_what_the_tasks_read_does_not_pass(
    change: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = spark_module._is_same

    def changed(file: Any, answer: dict[str, Any], receipt: Any) -> bool:
        with log.open("r+b") as writing:
            if change == "fewer bytes":
                writing.truncate(answer["stop"] - 1)
            else:
                writing.seek(answer["stop"] - 2 if change == "another byte" else len(ROWS))
                writing.write(b" ")
        return real(file, answer, receipt)

    monkeypatch.setattr(spark_module, "_is_same", changed)
    with pytest.raises(InputError, match="not the bytes that the tasks read"):
        scanned(log, ROWS, engine=engine(length=10**6))


# --- how it is asked for ------------------------------------------------------------------------------------


def test_engine_is_that_of_the_call_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("META_EVAL_ENGINE", "META_EVAL_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    assert log_engine() is None
    assert log_engine("spark") == Spark("local[*]")
    monkeypatch.setenv("META_EVAL_ENGINE", "spark")
    monkeypatch.setenv("META_EVAL_SPARK_MASTER", "spark://example.test:7077")
    assert log_engine() == Spark("spark://example.test:7077")
    assert log_engine(None, "local[3]") == Spark("local[3]")
    assert log_engine("local") is None
    monkeypatch.setenv("META_EVAL_ENGINE", "sparc")
    with pytest.raises(UsageError, match="local, spark"):
        log_engine()


def test_without_pyspark_the_command_says_what_to_install(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UsageError, match=r"meta-eval\[spark\]"), started("local[1]", log.parent):
        pass
    log.write_bytes(ROWS)
    words = ("attest", "--input", log, "--output", log.parent / "out", "--as-of", AS_OF, "--engine", "spark")
    done = call("production", *words, expect=2)
    assert "the engine spark needs PySpark: pip install 'meta-eval[spark]'" in done.stderr
    assert not (log.parent / "out").exists()
