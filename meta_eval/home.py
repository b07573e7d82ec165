"""Where rounds and evidence live: `META_EVAL_HOME`, or the `data` folder of the project. Only front doors ask."""

from __future__ import annotations

import os
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]


def home_folder() -> Path:
    """The folder that holds rounds, studies, ledgers and evidence."""
    named = os.environ.get("META_EVAL_HOME")
    if named:
        return Path(named).expanduser().absolute()
    # An installed package has no project around it; then the folder that one works in is the project.
    project = _CHECKOUT if (_CHECKOUT / "pyproject.toml").exists() else Path.cwd()
    return project / "data"


def rounds_folder() -> Path:
    """The folder with one folder for each round."""
    return home_folder() / "rounds"


def evidence_folder() -> Path:
    """The folder of the evidence store and its published copy."""
    return home_folder() / "evidence"


def golden_runs_folder() -> Path:
    """The folder that holds the verdicts of golden runs."""
    return home_folder() / "golden-runs"
