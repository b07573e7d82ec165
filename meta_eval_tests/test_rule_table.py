"""The table of production rules cannot rot: what it names exists, and no rule lacks its code or its test."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
TABLE = PROJECT / "docs" / "production-rules.md"
CODE, TESTS = PROJECT / "meta_eval", PROJECT / "meta_eval_tests"


def rows() -> list[tuple[str, list[str], list[str]]]:
    """Each rule with what enforces it and what breaks it."""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] not in ("rule", "---"):
            code, tests = ([name.strip("`") for name in cell.split("<br>") if name] for cell in cells[1:])
            found.append((cells[0], code, tests))
    return found


@lru_cache(maxsize=64)
def defined(path: Path) -> frozenset[str]:
    """The functions and classes of a file, methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(names)


@lru_cache(maxsize=64)
def broken_in(path: Path) -> frozenset[str]:
    """What a test file runs: its tests, and the breaks that its table of breaks holds."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if node.name.startswith("test_") or any(text.startswith("BREAKS(") for text in decorators):
                names.add(node.name)
    return frozenset(names)


def test_there_is_a_table() -> None:
    assert len(rows()) > 50
    assert "## Not built yet" not in TABLE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("rule", "code", "tests"), rows(), ids=[row[0][:60] for row in rows()])
def test_a_rule_has_code_that_enforces_it_and_a_test_that_breaks_it(
    rule: str, code: list[str], tests: list[str]
) -> None:
    assert rule
    assert code
    assert tests
    for name in code:
        path, _, item = name.partition("::")
        assert item in defined(CODE / path), name
    for name in tests:
        path, _, item = name.partition("::")
        assert (len(broken_in(TESTS / path)) > 5) if item == "*" else (item in broken_in(TESTS / path)), name


def test_each_check_of_the_contracts_is_in_the_table() -> None:
    named = {name for _, code, _ in rows() for name in code}
    contracts = "lanes/production/contracts.py"
    checks = {name for name in defined(CODE / contracts) if "." in name}
    assert sorted(check for check in checks if f"{contracts}::{check}" not in named) == []
