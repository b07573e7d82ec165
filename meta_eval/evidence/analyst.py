"""The analyst's door to the evidence: the published copy, read-only, with everything else shut.

Source: the evidence contract. A question in SQL may read the evidence and nothing else: no other file, no network, no
extension, no attached database, no variable of this process, and no setting that could open one of these again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from meta_eval.evidence.errors import StoreError, UsageError

_SHUT: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


@contextlib.contextmanager
def published(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked-down connection to the published copy.

    Raises:
        StoreError: nothing has been published, or what is there is no store.
    """
    if not path.exists():
        raise StoreError(f"{path}: nothing has been published; run a stage with --round, or materialize one")
    try:
        connection = duckdb.connect(path, read_only=True, config=_SHUT)
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot be opened as a published store ({type(error).__name__})") from None
    with contextlib.closing(connection):
        yield connection


def answer(path: Path, sql: str) -> pa.Table:
    """The rows of one question in SQL.

    Raises:
        UsageError: the SQL is refused; the message is DuckDB's, since both question and evidence are the asker's.
        StoreError: nothing has been published.
    """
    with published(path) as connection:
        try:
            relation = connection.sql(sql)
            return pa.table({"result": []}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"the question was refused: {str(error).splitlines()[0]}") from None


def described(path: Path) -> list[dict[str, Any]]:
    """Every table and view of the store: its name, kind, comment, and columns with type and comment."""
    with published(path) as connection:
        rows = connection.execute(
            "SELECT table_name, 'table', comment FROM duckdb_tables() WHERE NOT internal "
            "UNION ALL SELECT view_name, 'view', comment FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        ).fetchall()
    by_table: dict[str, list[dict[str, Any]]] = {}
    for table, name, kind, comment in columns:
        by_table.setdefault(table, []).append({"column": name, "type": kind, "comment": comment})
    return [
        {"name": name, "kind": kind, "comment": comment, "columns": by_table.get(name, [])}
        for name, kind, comment in rows
    ]
