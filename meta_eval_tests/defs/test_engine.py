"""Which engine reads a round's query log: the resource's, or that of the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.evidence.errors import UsageError
from meta_eval.lanes.production.query_log.spark import Spark


def test_a_stage_runs_under_the_engine_of_the_resource_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("META_EVAL_ENGINE", "META_EVAL_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    home = str(tmp_path)
    assert MetaEvalHome(home=home).setting("april").engine is None
    there = MetaEvalHome(home=home, engine="spark", spark_master="local[2]")
    assert there.setting("april").engine == Spark("local[2]")
    monkeypatch.setenv("META_EVAL_ENGINE", "spark")
    assert MetaEvalHome(home=home).setting("april").engine == Spark("local[*]")
    assert MetaEvalHome(home=home, engine="local").setting("april").engine is None
    with pytest.raises(UsageError):
        MetaEvalHome(home=home, engine="sparc").setting("april")
