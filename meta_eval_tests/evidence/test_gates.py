"""The one gate: nothing in the environment switches it off, nothing empty passes, no value leaves it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.typing import Series

import meta_eval
from meta_eval.evidence.artifacts import at_least
from meta_eval.evidence.gates import gate, table
from meta_eval.lanes.production import contracts

PACKAGE = Path(meta_eval.__file__).parent


class Rows(pa.DataFrameModel):
    """A contract with one rule of each kind."""

    key: Series[str] = pa.Field(unique=True)
    count: Series[pd.Int64Dtype]
    flag: Series[pd.BooleanDtype] = pa.Field(nullable=True)

    class Config:
        strict = True
        coerce = False

    @pa.check("count", name="count-too-small")
    def counts_are_positive(cls, counts: pd.Series) -> Any:  # noqa: N805
        return counts > 0

    @pa.dataframe_check(name="flag-on-a-nine")
    def no_nine_is_flagged(cls, frame: pd.DataFrame) -> Any:  # noqa: N805
        return ~((frame["count"] == 9) & frame["flag"].fillna(False))


def rows(*entries: tuple[Any, Any, Any]) -> list[dict[str, Any]]:
    return [dict(zip(("key", "count", "flag"), entry, strict=True)) for entry in entries]


def found(entries: list[dict[str, Any]], **given: Any) -> set[tuple[str, str, int]]:
    blockers = gate(Rows, table(Rows, entries), subject="rows", least_rows=given.pop("least_rows", 1), **given)
    return {(blocker.code, blocker.subject, blocker.count) for blocker in blockers}


def test_a_good_table_passes() -> None:
    assert found(rows(("a", 1, True), ("b", 9, None))) == set()


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (rows(("a", 0, None), ("b", -1, None), ("c", 1, None)), {("count-too-small", "rows.count", 2)}),
        (rows(("a", 9, True)), {("flag-on-a-nine", "rows", 1)}),
        (rows(("a", 9, True), ("b", 9, True)), {("flag-on-a-nine", "rows", 2)}),
        (rows(("a", 1, None), ("a", 1, None)), {("repeated", "rows.key", 2)}),
        (rows(("a", None, None)), {("value-missing", "rows.count", 1)}),
        (
            rows((None, 1, None), (None, 0, None)),
            {("value-missing", "rows.key", 2), ("count-too-small", "rows.count", 1)},
        ),
    ],
)
def test_each_rule_is_named_with_its_place_and_the_number_of_rows(entries: Any, expected: set[Any]) -> None:
    found_now = found(entries)
    assert {entry for entry in found_now if entry[0] != "repeated"} | (found_now & expected) == expected


def test_refused_values_that_are_reported_already_are_not_reported_again() -> None:
    entries = rows(("a", None, None), ("b", None, None), ("c", 1, None))
    assert found(entries, excused={"count": 2}) == set()
    assert found(entries, excused={"count": 1}) == {("value-missing", "rows.count", 1)}
    assert found(entries, excused={"count": 9}) == set()
    assert found(entries) == {("value-missing", "rows.count", 2)}


def test_an_empty_table_is_refused_unless_it_may_be_empty() -> None:
    assert found([]) == {("too-few-rows", "rows", 0)}
    assert found([], least_rows=0) == set()
    assert found(rows(("a", 1, None)), least_rows=2) == {("too-few-rows", "rows", 1)}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (lambda good: good.assign(extra=1), {("unknown-column", "rows", 1)}),
        (lambda good: good.drop(columns="count"), {("missing-column", "rows", 1)}),
        (lambda good: good.assign(count="1"), {("wrong-type", "rows.count", 1)}),
    ],
)
def test_a_frame_of_another_make_is_refused(frame: Any, expected: set[Any]) -> None:
    broken = frame(table(Rows, rows(("a", 1, None))))
    got = {(b.code, b.subject, b.count) for b in gate(Rows, broken, subject="rows", least_rows=1)}
    assert expected <= got


def test_no_value_is_in_a_blocker() -> None:
    entries = rows(("canary-1", 0, None), ("canary-1", -77, None), (None, 9, True))
    text = json.dumps([blocker.document for blocker in gate(Rows, table(Rows, entries), subject="rows", least_rows=9)])
    assert "canary" not in text
    assert "-77" not in text


@pytest.mark.parametrize(("found_count", "blocked"), [(49, True), (50, False), (51, False)])
def test_a_threshold_reports_the_number_found(found_count: int, blocked: bool) -> None:
    blockers = at_least(found_count, 50, code="too-few-cases", subject="x")
    assert [blocker.count for blocker in blockers] == ([found_count] if blocked else [])


PROBE = """
import sys
from meta_eval_tests.valid_world import World, blockers
from meta_eval_tests.lanes.production.broken import papers
broken = papers()
broken.observed(0)["refused"] = True
broken.observed(1)["claims"] *= 2
broken.reviewed(2)["decisions"] = []
print(sorted(blockers(broken.assembled())))
"""


def test_nothing_in_the_environment_switches_validation_off() -> None:
    outputs = set()
    for variables in (
        {},
        {"PANDERA_VALIDATION_ENABLED": "False"},
        {"PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY"},
        {"PANDERA_VALIDATION_ENABLED": "False", "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY"},
    ):
        run = subprocess.run(
            [sys.executable, "-c", PROBE], env=os.environ | variables, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert outputs == {
        (
            "[('citation-not-decided', 'citation_decisions', 1), ('emitted-claim-repeated', 'traces', 1), "
            "('refusal-with-claims', 'traces', 1)]\n"
        )
    }


# --- every contract is strict ------------------------------------------------------------------------------------

MODELS = [
    model
    for _, model in inspect.getmembers(contracts, inspect.isclass)
    if issubclass(model, pa.DataFrameModel) and model not in (pa.DataFrameModel, contracts.Contract)
]
MAY_BE_NULL = {("Reviews", "since_trace_ms"): "a review of a case without a trace, which is reported as coverage"}


def test_there_are_contracts_to_scan() -> None:
    assert {model.__name__ for model in MODELS} >= {"Labels", "Traces", "Reviews", "CaseCoverage"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_contract_is_strict_coerces_nothing_and_never_only_warns(model: Any) -> None:
    schema = model.to_schema()
    assert schema.strict is True
    assert schema.coerce is False
    columns = schema.columns
    assert not [name for name, column in columns.items() if column.coerce or not column.required]
    assert {name for name, column in columns.items() if column.nullable} == {
        column for owner, column in MAY_BE_NULL if owner == model.__name__
    }
    checks = [*schema.checks, *(check for column in columns.values() for check in column.checks)]
    assert not [check.name for check in checks if check.raise_warning]
    assert all(check.name for check in checks), "an unnamed check would name its blocker after a function"


def test_the_only_validate_call_of_the_package_is_the_gate() -> None:
    calls = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "validate"
        # `full` is a parameter of Arrow's arrays, which check their own bytes, and of nothing in Pandera.
        if [keyword.arg for keyword in node.keywords] != ["full"]
    ]
    assert calls == ["evidence/gates.py"]
    options = inspect.getsource(gate)
    assert not [word for word in ("head=", "tail=", "sample=", "inplace=") if word in options]
