"""Gates: the one place where a table meets its Pandera contract. Fail-closed, redacted, never sampled.

Source: the evidence contract, and the measured traps of Pandera. Environment variables can switch Pandera's
validation off or skip its value checks, an empty table passes every check, and a report holds the offending
values. So this module holds the only `validate` call, pins validation on, refuses too few rows itself, and turns
every failure into a blocker: the check's name is the rule, the table and column are the subject, and a count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.config import ValidationDepth, config_context

from meta_eval.evidence.artifacts import Blocker, merged

# What Pandera calls its own checks, and the rule that each stands for.
_BUILT_IN = {
    "not_nullable": "value-missing",
    "field_uniqueness": "repeated",
    "multiple_fields_uniqueness": "repeated",
    "column_in_schema": "unknown-column",
    "column_in_dataframe": "missing-column",
}


def table(model: type[pa.DataFrameModel], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a frame with exactly the model's columns and types. Nothing is coerced: the documents' reader has
    checked each value's type, and a None stays a null that the gate counts."""
    columns: dict[str, Any] = {}
    for name, column in model.to_schema().columns.items():
        values = [row[name] for row in rows]
        columns[name] = pd.array(values, dtype=str(column.dtype))  # type: ignore[call-overload]
    return pd.DataFrame(columns)


def gate(
    model: type[pa.DataFrameModel],
    frame: pd.DataFrame,
    *,
    subject: str,
    least_rows: int,
    excused: Mapping[str, int] | None = None,
) -> list[Blocker]:
    """The blockers that a table earns under its contract; an empty list means it passed.

    Args:
        subject: the table's name, which opens every blocker's subject.
        least_rows: fewer rows than this are refused; 0 says that an empty table is a fair state.
        excused: by column, how many nulls the documents' reader has already reported as refused values.
    """
    blockers = []
    if len(frame) < least_rows:
        blockers.append(Blocker("too-few-rows", subject, len(frame)))
    try:
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            model.to_schema().validate(frame, lazy=True)
    except pa.errors.SchemaErrors as errors:
        blockers += _redacted(errors.failure_cases, subject, excused or {})
    return merged(blockers)


def _redacted(failures: pd.DataFrame, subject: str, excused: Mapping[str, int]) -> list[Blocker]:
    """Failure cases without their values: rule, place and count."""
    blockers = []
    # A check over the whole row is reported once for each of its columns: count rows, not reports.
    places = failures.assign(column=failures["column"].where(failures["schema_context"] == "Column"))
    for (context, column, check), rows in places.groupby(
        ["schema_context", "column", "check"], dropna=False, sort=True
    ):
        named_column = context == "Column" and isinstance(column, str)
        rule = _BUILT_IN.get(str(check), str(check))
        if rule.startswith("dtype("):
            rule = "wrong-type"
        count = rows["index"].nunique() or len(rows)
        if rule == "value-missing" and named_column:
            count -= excused.get(str(column), 0)
            if count <= 0:
                continue
        blockers.append(Blocker(rule, f"{subject}.{column}" if named_column else subject, count))
    return blockers
