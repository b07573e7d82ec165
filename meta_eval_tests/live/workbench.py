"""A running `dagster dev` on a home of its own, and questions to its GraphQL interface."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
_RUNS = """query Runs($tags: [ExecutionTag!]) { runsOrError(filter: {tags: $tags}) { ... on Runs { results {
    runId status assetSelection { path } tags { key value } } } } }"""
_SENSOR = """query Ticks($name: String!) { sensorOrError(sensorSelector: {sensorName: $name,
    repositoryName: "__repository__", repositoryLocationName: "meta_eval.definitions"}) { ... on Sensor {
    sensorState { ticks(limit: 50) { status skipReason runIds error { message } } } } } }"""


@dataclass
class Workbench:
    """Where `dagster dev` runs, and on which folders."""

    url: str
    home: Path
    log: Path

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The `data` of an answer. Raises AssertionError where Dagster answers with errors."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(  # noqa: S310 - the address is our own
            f"{self.url}/graphql", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            value = json.load(answer)
        assert "errors" not in value, value["errors"]
        data: dict[str, Any] = value["data"]
        return data

    def runs(self, **tags: str) -> list[dict[str, Any]]:
        """The runs that carry these tags, newest first; `round` and `partition` are Dagster's and our own tags."""
        named = {"round": "meta_eval/round", "partition": "dagster/partition"}
        wanted = [{"key": named[key], "value": value} for key, value in tags.items()]
        found: list[dict[str, Any]] = self.ask(_RUNS, tags=wanted)["runsOrError"]["results"]
        return found

    def ticks(self, sensor: str) -> list[dict[str, Any]]:
        """The last ticks of a sensor, newest first."""
        found: list[dict[str, Any]] = self.ask(_SENSOR, name=sensor)["sensorOrError"]["sensorState"]["ticks"]
        return found


def until(met: Callable[[], Any], *, seconds: float, what: str) -> Any:
    """What `met` returns once it is true. Raises AssertionError, with `what`, where that takes too long."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        value = met()
        if value:
            return value
        time.sleep(1.0)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


def environment(folder: Path) -> Mapping[str, str]:
    """What a process needs to work on this folder's home and on its Dagster instance, made where it is not there."""
    instance = folder / "dagster"
    if not instance.exists():
        instance.mkdir(parents=True)
        shutil.copy(PROJECT / ".dagster_home" / "dagster.yaml", instance)
    return os.environ | {
        "META_EVAL_HOME": str(folder / "home"),
        "DAGSTER_HOME": str(instance),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": str(PROJECT),
    }


@contextmanager
def dagster_dev(folder: Path) -> Iterator[Workbench]:
    """`dagster dev` as `make ui` starts it; ended with all its children."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("dagster")), "dev", "-w", "workspace.yaml", "-p", str(port)]
    bench = Workbench(f"http://127.0.0.1:{port}", folder / "home", folder / "dagster-dev.log")
    with bench.log.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=PROJECT, env=environment(folder), stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: process.poll() is not None or _answers(bench), seconds=120, what="dagster dev answers")
        assert process.poll() is None, bench.log.read_text(encoding="utf-8")[-2000:]
        yield bench
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(bench: Workbench) -> bool:
    try:
        return bool(bench.ask("{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"))
    except OSError:
        return False
