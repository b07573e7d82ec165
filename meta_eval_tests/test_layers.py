"""Arrows run down only, and an auditor needs no Dagster."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import meta_eval

PROJECT = Path(__file__).parents[1]
PACKAGE = Path(meta_eval.__file__).parent
FRAMEWORK = ("dagster", "dagster_webserver")


def modules(*rooms: str) -> list[str]:
    return [
        name
        for room in rooms
        for _, name, _ in pkgutil.walk_packages([str(PACKAGE / room)], prefix=f"meta_eval.{room}.")
        if not name.endswith("__main__")
    ]


def test_import_linter_keeps_every_contract() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([str(linter), "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    assert "0 broken" in run.stdout
    assert "0 kept" not in run.stdout


def test_a_command_that_gates_no_table_does_not_wait_for_pandera() -> None:
    code = "import meta_eval.cli.production, sys; print('pandera' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_evidence_lanes_and_cli_import_without_dagster() -> None:
    names = modules("evidence", "lanes", "cli")
    assert len(names) > 20
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {FRAMEWORK!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "[]"), run.stderr[-2000:]


@pytest.mark.parametrize("room", ["evidence", "lanes", "cli"])
def test_no_line_of_a_lower_room_names_dagster(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in FRAMEWORK], path.name


def test_no_lane_imports_another() -> None:
    lanes = [path.name for path in (PACKAGE / "lanes").iterdir() if (path / "__init__.py").exists()]
    assert "production" in lanes
    for lane in lanes:
        for path in (PACKAGE / "lanes" / lane).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [other for other in lanes if other != lane and f"meta_eval.lanes.{other}" in text], path.name


@pytest.mark.parametrize("room", ["evidence", "lanes/production"])
def test_no_stage_reads_the_clock_or_the_environment(room: str) -> None:
    """The clock lives in one function, which only the front doors call."""
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("environ", "getenv", "utcnow", "today"), path.name
                if node.attr == "now":
                    assert path.name == "chronology.py"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "now_ms", path.name
