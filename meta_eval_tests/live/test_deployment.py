"""The example of `deploy/`, alive: PostgreSQL, Redis, a Celery worker and an S3 server, and a round through them all.

Needs Debian's `postgresql` and `redis-server`, and the package index for the environment of `deploy/requirements.lock`.
The worker and the one who starts runs are processes of their own, which share PostgreSQL, the broker, the
bucket and one private home folder; the auditor's home holds nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from meta_eval_tests import object_storage
from meta_eval_tests.cli.test_production import VERDICT

PROJECT = Path(__file__).resolve().parents[2]
PASSWORD = "invented-for-this-test"  # noqa: S105


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of the example's lock, and of nothing else."""
    folder = tmp_path_factory.mktemp("deployed") / "venv"
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    lock = PROJECT / "deploy" / "requirements.lock"
    subprocess.run(
        [uv, "pip", "install", "-q", "--python", folder / "bin" / "python", "--require-hashes", "-r", lock], check=True
    )
    return folder


@pytest.fixture(scope="module")
def environment(venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("machines")
    dagster_home = folder / "dagster"
    dagster_home.mkdir()
    shutil.copy(PROJECT / "deploy" / "dagster.yaml", dagster_home)
    postgres, redis = free_port(), free_port()
    with object_storage.s3_server() as endpoint, postgres_server(postgres), redis_server(redis, folder):
        yield {
            "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "HOME": str(folder),
            "DAGSTER_HOME": str(dagster_home),
            "DAGSTER_PG_HOST": "127.0.0.1",
            "DAGSTER_PG_PORT": str(postgres),
            "DAGSTER_PG_USERNAME": "dagster",
            "DAGSTER_PG_PASSWORD": PASSWORD,
            "DAGSTER_PG_DB": "dagster",
            "META_EVAL_BROKER": f"redis://127.0.0.1:{redis}/0",
            "META_EVAL_HOME": str(folder / "home"),
            "META_EVAL_ARTIFACTS": f"s3://{object_storage.BUCKET}/team",
            **object_storage.environment(endpoint),
        }


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def postgres_server(port: int) -> Iterator[None]:
    """A PostgreSQL of our own under the account that Debian made for it: the server refuses to run as root."""
    [binaries] = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
    as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder = subprocess.run([*as_owner, "mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip()
    password = Path(folder) / "password"
    subprocess.run([*as_owner, "tee", password], input=PASSWORD, text=True, check=True, stdout=subprocess.DEVNULL)
    data = f"{folder}/data"
    made = [*as_owner, binaries / "initdb", "-D", data, "-U", "dagster", "--auth=scram-sha-256", f"--pwfile={password}"]
    subprocess.run([*made, "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    control = [*as_owner, binaries / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
    try:
        subprocess.run([*control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        login = {**os.environ, "PGPASSWORD": PASSWORD}
        where = ["-h", "127.0.0.1", "-p", str(port), "-U", "dagster"]
        subprocess.run([binaries / "createdb", *where, "dagster"], check=True, env=login)
        yield
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL, cwd="/")
        subprocess.run([*as_owner, "rm", "-rf", folder], cwd="/")


@contextmanager
def process(*words: str | Path, log: Path, environment: dict[str, str] | None = None) -> Iterator[None]:
    """A process in the background, in a group of its own, ended with all that it started."""
    with log.open("wb") as out:
        started = subprocess.Popen(
            list(map(str, words)), stdout=out, stderr=out, env=environment, cwd=PROJECT, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(started.pid, signal.SIGTERM)
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)


@contextmanager
def redis_server(port: int, folder: Path) -> Iterator[None]:
    words = ("redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", folder)
    with process(*words, log=folder / "redis.log"):
        wait(lambda: socket.create_connection(("127.0.0.1", port), timeout=1).close(), OSError)
        yield


def wait(ready: Callable[[], object], *not_yet: type[Exception], most_s: float = 60) -> None:
    deadline = time.monotonic() + most_s
    while True:
        try:
            return void(ready())
        except not_yet:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def void(_: object) -> None:
    return None


def call(*words: str | Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=environment, cwd=PROJECT, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_workspace_loads(venv: Path, environment: dict[str, str]) -> None:
    call(venv / "bin/dagster", "definitions", "validate", "-w", "deploy/workspace.yaml", environment=environment)


def test_a_round_goes_through_all_machines_and_a_stranger_verifies_it(
    venv: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    worker = (venv / "bin/dagster-celery", "worker", "start", "-A", "dagster_celery.app", "-y", "deploy/celery.yaml")
    with process(*worker, "--", "--concurrency=2", log=log, environment=environment):
        told = json.loads(
            call(
                venv / "bin/python", "-m", "meta_eval_tests.live.celery_round", str(VERDICT), environment=environment
            ).splitlines()[-1]
        )
    assert told == {
        "good": True,
        "verdict": "rehearsed",
        "storage": "PostgresEventLogStorage",
        "runs": ["SUCCESS"] * 5,
    }
    assert "execute_plan" in log.read_text()  # the steps were the worker's
    stranger = {**environment, "META_EVAL_HOME": str(tmp_path / "stranger")}
    verify = (venv / "bin/python", "-c", "from meta_eval.cli.main import main; main()", "verify", "--all")
    assert call(*verify, environment=stranger).endswith("7 verified, 0 refused\n")
    for text in (log.read_text(), *(path.read_text() for path in tmp_path.glob("*.log"))):
        assert PASSWORD not in text
        assert object_storage.SECRET not in text
