"""`meta-eval query` and `meta-eval tables`: the evidence in SQL, and what there is to ask about."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import click

from meta_eval.cli import options
from meta_eval.evidence.files import write_bytes
from meta_eval.evidence.store import ANALYST_NAME
from meta_eval.home import evidence_folder

_SHOWN_ROWS = 200


@click.command("query")
@click.argument("sql")
@click.option("--csv", "form", flag_value="csv", help="Print CSV with a header.")
@click.option("--json", "form", flag_value="json", help="Print a JSON array with one object a row.")
@click.option("--parquet", type=options.FILE, metavar="FILE", help="Write every row to a Parquet file instead.")
def query(sql: str, form: str | None, parquet: Path | None) -> None:
    """Answer a question in SQL from the published evidence.

    The store is opened read-only, with external access and extensions shut: a question can neither read nor write
    another file, nor change a row. `meta-eval tables` lists what there is.
    """
    from meta_eval.evidence import analyst

    rows = analyst.answer(evidence_folder() / ANALYST_NAME, sql)
    if parquet is not None:
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(rows, buffer)
        write_bytes(parquet, buffer.getvalue())
        click.echo(f"{rows.num_rows:,} rows  {parquet}")
    elif form == "csv":
        import pyarrow.csv

        buffer = io.BytesIO()
        pyarrow.csv.write_csv(rows, buffer)
        click.echo(buffer.getvalue().decode(), nl=False)
    elif form == "json":
        click.echo(json.dumps(rows.to_pylist(), default=str, ensure_ascii=False))
    else:
        _print_table(rows)


def _print_table(rows: Any) -> None:
    shown = rows.slice(0, _SHOWN_ROWS).to_pylist()
    names = rows.column_names
    cells = [[_cell(row[name]) for name in names] for row in shown]
    widths = [max(len(name), *(len(row[place]) for row in cells), 0) for place, name in enumerate(names)]
    for line in [list(names), ["-" * width for width in widths], *cells]:
        click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    if rows.num_rows > _SHOWN_ROWS:
        click.echo(f"... {rows.num_rows - _SHOWN_ROWS:,} more rows; --csv, --json or --parquet FILE gives all")


def _cell(value: object) -> str:
    return "" if value is None else str(value)


@click.command("tables")
@click.argument("name", required=False)
@options.as_json
def tables(name: str | None, as_json: bool) -> None:
    """List the tables and views of the evidence store and what a row of each is; with NAME, its columns."""
    from meta_eval.evidence import analyst

    found = [entry for entry in analyst.described(evidence_folder() / ANALYST_NAME) if name in (None, entry["name"])]
    if not found:
        raise click.UsageError(f"no table or view of the name {name}; `meta-eval tables` lists them")
    if as_json:
        click.echo(json.dumps(found))
        return
    for entry in found:
        click.echo(f"{entry['name']:<24} {entry['kind']:<6} {entry['comment']}")
        for column in entry["columns"] if name else []:
            click.echo(f"  {column['column']:<22} {column['type']:<16} {column['comment'] or ''}".rstrip())
