"""Runs the stages of rounds on one persistent Dagster instance, and keeps every report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from meta_eval.defs.line import run_line_on
from meta_eval.defs.production.assets import stage_key
from meta_eval.defs.resources import MetaEvalHome
from meta_eval.lanes.production.stages import advance, stage_named
from meta_eval_tests.defs.people import People, play


@dataclass
class Stagehand:
    """Runs stages of rounds on one persistent instance, and keeps every report."""

    folder: Path
    instance: dg.DagsterInstance
    reports: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def people(self, name: str, **given: Any) -> People:
        return People(self.home, name, **given)

    def run(self, round_name: str, stages: str, as_of: str) -> list[dict[str, Any]]:
        keys = {name: stage_key(name) for name in stages.split()}
        made = run_line_on(self.instance, self.home, round_name, keys, as_of=as_of)
        self.reports.setdefault(round_name, []).extend(made)
        return made

    def advance(self, round_name: str, stages: str, as_of: str) -> None:
        """Stages without Dagster, where a test is about a later one."""
        home = MetaEvalHome(home=str(self.home), as_of=as_of)
        for name in stages.split():
            advance(home.round(round_name), stage_named(name), home.setting(round_name))

    def play(self, people: People, **given: int) -> People:
        play(people, lambda stages, as_of: self.run(people.round, stages, as_of), **given)
        return people

    def metadata(self, stage: str, round_name: str) -> dict[str, Any]:
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=stage_key(stage), asset_partitions=[round_name]), limit=1
        ).records
        materialization = records[0].asset_materialization
        assert materialization is not None
        return dict(materialization.metadata) | {"tags": materialization.tags}


def table(value: Any) -> list[dict[str, Any]]:
    """The rows of a metadata table."""
    return [dict(record.data) for record in value.records]
