"""The evidence store: row-level evidence in DuckDB, one writer at a time, whole bundles only.

Source: the evidence contract. Rows are loaded through Arrow in one transaction an artifact; an artifact whose digest
is there already is a no-op. Only one process may hold a DuckDB file for writing, so writers take turns by a lock
file, wait with back-off, and end with a clear error. After each load a read-only copy is published under a stable
name by an atomic rename, so that analysts neither block the pipeline nor see half a bundle.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from meta_eval.evidence.artifacts import Artifact, made_at_ms
from meta_eval.evidence.errors import StoreBusyError, StoreError
from meta_eval.evidence.files import private_folder, remove_partials

STORE_NAME = "evidence.duckdb"
ANALYST_NAME = "analyst.duckdb"
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_ROWS_AT_A_TIME = 65_536
_SHARED_SCHEMA = Path(__file__).with_name("store.sql")

Tables = Mapping[str, pa.Table]


class EvidenceStore:
    """The store in one folder.

    Args:
        folder: where `evidence.duckdb` and the published `analyst.duckdb` live.
        schemas: the lanes' SQL files, which make their tables and views.
        patience_s: how long a writer waits for its turn.
    """

    def __init__(self, folder: Path, schemas: Sequence[Path], *, patience_s: float = 60.0) -> None:
        self.folder = folder
        self.path = folder / STORE_NAME
        self.analyst_path = folder / ANALYST_NAME
        self._schemas = (_SHARED_SCHEMA, *schemas)
        self._patience_s = patience_s

    def load(self, artifact: Artifact, tables: Tables) -> bool:
        """Load an artifact's rows; False where its digest is there already.

        Args:
            artifact: a verified artifact.
            tables: by table name, its rows with the table's columns by name, without `artifact_digest`.

        Raises:
            StoreBusyError: another process held the store for longer than our patience.
            StoreError: the rows do not fit the tables.
        """
        with self._writing() as connection:
            try:
                connection.execute("BEGIN")
                self._prepare(connection)
                known = connection.execute(
                    "SELECT 1 FROM artifacts WHERE artifact_digest = ?", [artifact["digest"]]
                ).fetchall()
                if not known:
                    _insert_all(connection, artifact, tables)
                connection.execute("COMMIT")
            except duckdb.Error as error:
                raise self._unfit(error) from None
            finally:
                connection.close()
            if not known or not self._is_published(artifact["digest"]):
                self._publish()
        return not known

    def rebuild(self, artifacts: Iterable[tuple[Artifact, Tables]]) -> int:
        """Make the store anew from verified artifacts, put it in the old one's place, and publish it.

        Returns how many artifacts it holds. The old store stays until the new one is whole.

        Raises:
            StoreBusyError, StoreError: as for `load`.
        """
        private_folder(self.folder)
        deadline = time.monotonic() + self._patience_s
        with self._turn(deadline):
            fresh = self.folder / f".{STORE_NAME}.{os.getpid()}.partial"
            fresh.unlink(missing_ok=True)
            loaded = 0
            try:
                with contextlib.closing(duckdb.connect(fresh)) as connection:
                    connection.execute("BEGIN")
                    self._prepare(connection)
                    for artifact, tables in artifacts:
                        _insert_all(connection, artifact, tables)
                        loaded += 1
                    connection.execute("COMMIT")
                fresh.chmod(0o600)
                self.path.with_name(f"{STORE_NAME}.wal").unlink(missing_ok=True)
                fresh.replace(self.path)
            except duckdb.Error as error:
                raise self._unfit(error) from None
            finally:
                for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
                    left.unlink(missing_ok=True)
            self._publish()
        return loaded

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the tables and views, and see that every load that is on record is there in full.

        Raises:
            StoreError: the store holds fewer or more rows than its artifacts brought.
        """
        for schema in self._schemas:
            connection.execute(schema.read_text(encoding="utf-8"))
        tables = connection.execute("SELECT DISTINCT table_name FROM loads ORDER BY 1").fetchall()
        for (name,) in tables:
            short = connection.execute(
                f"SELECT 1 FROM loads LEFT JOIN (SELECT artifact_digest, count(*) AS held FROM {name} GROUP BY ALL) "  # noqa: S608
                "USING (artifact_digest) WHERE table_name = ? AND row_count <> coalesce(held, 0) LIMIT 1",
                [name],
            ).fetchall()
            if short:
                raise StoreError(
                    f"{self.path}: {name} does not hold the rows that its artifacts brought; "
                    "run meta-eval rebuild-store to make it anew from the artifacts"
                )

    def _unfit(self, error: duckdb.Error) -> StoreError:
        # DuckDB quotes values in its messages, so only the kind of error is passed on.
        return StoreError(f"{self.path}: rows do not fit the store ({type(error).__name__})")

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Read from the published copy; an empty store has no rows to read.

        Raises:
            StoreError: nothing has been published yet.
        """
        if not self.analyst_path.exists():
            raise StoreError(f"{self.analyst_path}: nothing has been published; load an artifact first")
        with contextlib.closing(duckdb.connect(self.analyst_path, read_only=True)) as connection:
            return connection.execute(sql, list(parameters)).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        private_folder(self.folder)
        deadline = time.monotonic() + self._patience_s
        with self._turn(deadline):
            yield self._connected(deadline)

    @contextlib.contextmanager
    def _turn(self, deadline: float) -> Iterator[None]:
        descriptor = os.open(self.folder / f"{STORE_NAME}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for pause in _pauses(deadline):
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(pause)
            else:
                raise self._busy()
            yield
        finally:
            os.close(descriptor)

    def _connected(self, deadline: float) -> duckdb.DuckDBPyConnection:
        for pause in _pauses(deadline):
            try:
                connection = duckdb.connect(self.path)
            except duckdb.IOException as error:
                if "lock" not in str(error):
                    raise StoreError(
                        f"{self.path}: cannot be opened as an evidence store; "
                        "move it away and run meta-eval rebuild-store to make it anew from the artifacts"
                    ) from None
                time.sleep(pause)
            else:
                self.path.chmod(0o600)
                return connection
        raise self._busy()

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.path}: another process held the evidence store for {self._patience_s:g} s; "
            "close what has it open (a DuckDB shell, a stuck run) and try again"
        )

    def _is_published(self, artifact_digest: str) -> bool:
        # A writer that was killed between its commit and its publication left a copy without this artifact.
        with contextlib.suppress(StoreError, duckdb.Error):
            return bool(self.rows("SELECT 1 FROM artifacts WHERE artifact_digest = ?", [artifact_digest]))
        return False

    def _publish(self) -> None:
        remove_partials(self.folder)
        partial = self.analyst_path.with_name(f".{ANALYST_NAME}.{os.getpid()}.partial")
        try:
            shutil.copyfile(self.path, partial)
            partial.chmod(0o600)
            partial.replace(self.analyst_path)
        finally:
            partial.unlink(missing_ok=True)


def _pauses(deadline: float) -> Iterator[float]:
    """Growing pauses until the deadline; at least one try."""
    pause = _FIRST_PAUSE_S
    yield pause
    while time.monotonic() < deadline:
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        yield pause


def _insert_all(connection: duckdb.DuckDBPyConnection, artifact: Artifact, tables: Tables) -> None:
    """An artifact's rows, and how many they were."""
    whole = _shared_tables(artifact) | dict(tables)
    for name, rows in whole.items():
        _insert(connection, name, rows, artifact["digest"])
    counts = [{"table_name": name, "row_count": rows.num_rows} for name, rows in whole.items()]
    columns = {"table_name": pa.string(), "row_count": pa.int64()}
    _insert(connection, "loads", arrow_rows(counts, columns), artifact["digest"])


def _insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, artifact_digest: str) -> None:
    keyed = rows.append_column("artifact_digest", pa.repeat(pa.scalar(artifact_digest), rows.num_rows))
    connection.register("incoming", keyed)
    connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")  # noqa: S608 - a table name of ours
    connection.unregister("incoming")


def _shared_tables(artifact: Artifact) -> dict[str, pa.Table]:
    inputs = [
        {"name": name, "kind": kind, "sha256": value}
        for name, entry in artifact["inputs"].items()
        for kind, value in entry.items()
    ]
    return {
        "artifacts": pa.table(
            {
                "round": pa.array([artifact["round"]], pa.string()),
                "artifact": [artifact["artifact"]],
                "evidence_class": [artifact["evidenceClass"]],
                "environment": pa.array([artifact["environment"]], pa.string()),
                "status": [artifact["status"]],
                "policy_digest": [artifact["policyDigest"]],
                "made_at": pa.array([made_at_ms(artifact)], pa.timestamp("ms")),
            }
        ),
        "artifact_inputs": arrow_rows(inputs, {"name": pa.string(), "kind": pa.string(), "sha256": pa.string()}),
        "blockers": arrow_rows(
            artifact["blockers"], {"code": pa.string(), "subject": pa.string(), "count": pa.int64()}
        ),
    }


def arrow_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Rows as an Arrow table with exactly these columns and types, also where there are none.

    Taken in batches, so that a generator of many rows never stands in memory as Python objects.
    """
    schema, waiting, batches = pa.schema(list(columns.items())), iter(rows), []
    while batch := list(itertools.islice(waiting, _ROWS_AT_A_TIME)):
        arrays = [pa.array([row[name] for row in batch], kind) for name, kind in columns.items()]
        batches.append(pa.record_batch(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)
