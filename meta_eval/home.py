"""Where rounds and evidence live: `META_EVAL_HOME`, or the `data` folder of the project. Only front doors ask.

`META_EVAL_ARTIFACTS` may name another root for the artifacts of rounds, and for nothing else. `META_EVAL_ENGINE` may
name another engine for query logs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from meta_eval.evidence.artifact_roots import ArtifactRoot, artifact_root_at
from meta_eval.evidence.errors import UsageError

if TYPE_CHECKING:
    from meta_eval.lanes.production.query_log import Engine

ENGINES = ("local", "spark")
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


def studies_folder() -> Path:
    """The folder with one folder for each study."""
    return home_folder() / "studies"


def evidence_folder() -> Path:
    """The folder of the evidence store and its published copy."""
    return home_folder() / "evidence"


def golden_runs_folder() -> Path:
    """The folder that holds the verdicts of golden runs."""
    return home_folder() / "golden-runs"


def artifact_root(rounds: Path | None = None, url: str | None = None) -> ArtifactRoot:
    """Where the artifacts of rounds lie: under a URL given, or that of `META_EVAL_ARTIFACTS`, or in their folders.

    Raises:
        UsageError: not a URL that artifacts can lie under.
    """
    return artifact_root_at(url or os.environ.get("META_EVAL_ARTIFACTS"), rounds or rounds_folder())


def log_engine(name: str | None = None, spark_master: str | None = None) -> Engine | None:
    """Who reads query logs: as given, or by `META_EVAL_ENGINE` and `META_EVAL_SPARK_MASTER`; None is this machine.

    Raises:
        UsageError: no engine has that name.
    """
    engine = name or os.environ.get("META_EVAL_ENGINE") or "local"
    if engine not in ENGINES:
        raise UsageError(f"no engine of that name in META_EVAL_ENGINE; the engines are {', '.join(ENGINES)}")
    if engine == "local":
        return None
    from meta_eval.lanes.production.query_log.spark import Spark

    return Spark(spark_master or os.environ.get("META_EVAL_SPARK_MASTER") or "local[*]")
