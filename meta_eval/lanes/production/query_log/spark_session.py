"""A Spark session for one scan: private, silent, and gone with the scan.

Source: the house's rule that questions stay in private folders and out of every log. What Spark and its workers write
to the console is discarded, as a failing task's trace may quote what it worked on.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meta_eval.evidence.errors import MetaEvalError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST_END_S = 20
_FIRST_ON_PATH = "python3"
"""What PySpark takes for the tasks where nobody has told it which Python: seldom the one that runs this."""


@contextmanager
def started(master: str, folder: Path) -> Iterator[SparkSession]:
    """A session under `master`; what Spark writes on this machine goes to `folder`.

    Raises:
        UsageError: PySpark is not installed.
        MetaEvalError: Spark did not start.
    """
    with ExitStack() as stack:
        stack.enter_context(_interrupts_kept())
        try:
            from pyspark import SparkConf, SparkContext
            from pyspark.java_gateway import launch_gateway
            from pyspark.sql import SparkSession
        except ImportError:
            raise UsageError("the engine spark needs PySpark: pip install 'meta-eval[spark]'") from None
        stack.enter_context(_py4j_silent())
        conf = SparkConf().setAll(list(_settings(master, folder).items()))
        try:
            gateway = launch_gateway(conf, {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
            stack.callback(_end, gateway, SparkContext)
            session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            # It too would print a trace.
            session.sparkContext._accumulatorServer.handle_error = lambda *_: None
        except Exception:  # Py4J's and Spark's own, which quote the machine's paths
            raise MetaEvalError(
                "Spark did not start: it needs Java 17 or newer (JAVA_HOME or the PATH) and a master that answers"
            ) from None
        stack.callback(_stop, session)
        if master.startswith("local") and session.sparkContext.pythonExec == _FIRST_ON_PATH:
            session.sparkContext.pythonExec = sys.executable
        yield session


def _settings(master: str, folder: Path) -> dict[str, str]:
    settings = {
        "spark.master": master,
        "spark.app.name": "meta_eval",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "ERROR",
        # Answers that do not fit in memory are written to the machines' local folders: not in clear.
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if master.startswith("local"):
        # No port is open to the network.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


@contextmanager
def _py4j_silent() -> Iterator[None]:
    """Of a JVM that is no more Py4J logs traces, some of them as root; the error that ends the scan says what to do."""

    def others(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    root.addFilter(others)
    own.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.removeFilter(others)
        own.setLevel(level)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Spark takes Ctrl-C over as it starts; it is given back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(session: SparkSession) -> None:
    # A JVM that was killed cannot be asked to stop.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()


def _end(gateway: Any, context: Any) -> None:
    """End the JVM, which would otherwise stay until this process ends, with the folder of this scan as its own."""
    with suppress(Exception):
        gateway.shutdown()
    if gateway.proc is not None:
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(_LONGEST_END_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
    if context._gateway is gateway:
        context._gateway = context._jvm = None
