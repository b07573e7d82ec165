"""The table of rules and the frozen rubric cannot rot: what they name exists, and says what the code says."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import lru_cache
from pathlib import Path

import pytest

from meta_eval.lanes.usefulness.policy import CURRENT_POLICY
from meta_eval.lanes.usefulness.rubric import CRITERIA, DEFECTS

PROJECT = Path(__file__).parents[3]
TABLE, RUBRICS = PROJECT / "docs" / "usefulness-rules.md", PROJECT / "rubrics"
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
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(names)


def test_there_is_a_table() -> None:
    assert len(rows()) > 45


@pytest.mark.parametrize(("rule", "code", "tests"), rows(), ids=[row[0][:60] for row in rows()])
def test_a_rule_has_code_that_enforces_it_and_a_test_that_breaks_it(
    rule: str, code: list[str], tests: list[str]
) -> None:
    assert rule
    assert code
    assert tests
    for folder, names in ((CODE, code), (TESTS, tests)):
        for name in names:
            path, _, item = name.partition("::")
            assert item in defined(folder / path), name
    assert all(name.partition("::")[2].startswith("test_") for name in tests)


def test_every_gate_of_the_lane_is_in_the_table() -> None:
    named = {name for _, code, _ in rows() for name in code}
    for module in ("packets", "opening", "freeze", "budget", "scoring", "adjudication", "unblinding", "acceptance"):
        assert any(name.startswith(f"lanes/usefulness/{module}.py::") for name in named), module


def test_the_locked_policy_and_rubric_say_what_the_code_says() -> None:
    lock = (RUBRICS / "rubrics.lock").read_text(encoding="utf-8")
    for name in ("usefulness-v1.json", "usefulness-v1.md"):
        assert f"{hashlib.sha256((RUBRICS / name).read_bytes()).hexdigest()}  {name}" in lock.splitlines()
    assert json.loads((RUBRICS / "usefulness-v1.json").read_bytes()) == CURRENT_POLICY.document
    text = (RUBRICS / "usefulness-v1.md").read_text(encoding="utf-8")
    for name, words in CRITERIA.items():
        assert f"(`{name}`). {words}" in text
    assert all(f"| `{name}` |" in text for name in DEFECTS)
