"""The asset graph as a small golden file, and the rules that every definition keeps.

`META_EVAL_REBUILD=1 pytest meta_eval_tests/defs/test_asset_graph.py` writes the file anew; review its diff.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

import meta_eval.defs
from meta_eval.definitions import defs
from meta_eval.defs.line import default_dagster_home
from meta_eval.lanes.production import contracts
from meta_eval.lanes.production.rounds import INBOX
from meta_eval.lanes.production.stages import READINESS, STAGES

GOLDEN = Path(__file__).parents[1] / "asset_graph.txt"
PROJECT = Path(__file__).parents[2]
GRAPH = defs.resolve_asset_graph()


def drawn() -> Iterator[str]:
    for key in sorted(GRAPH.get_all_asset_keys()):
        node = GRAPH.get(key)
        partitions = (
            node.partitions_def.name if isinstance(node.partitions_def, dg.DynamicPartitionsDefinition) else "-"
        )
        made_by = "people" if node.is_external else "pool " + ",".join(sorted(node.pools or ()))
        yield f"{key.to_user_string()} (group {node.group_name}, partitions {partitions}, {made_by})"
        yield from (f"    needs {parent.to_user_string()}" for parent in sorted(node.parent_keys))
        for check in sorted(node.check_keys, key=lambda one: one.name):
            blocking = "blocking" if GRAPH.get_check_spec(check).blocking else "NOT BLOCKING"
            yield f"    check {check.name} ({blocking})"
    repository = defs.get_repository_def()
    yield from (f"job {name}" for name in sorted(repository.job_names) if not name.startswith("__"))
    yield from (f"sensor {one.name}" for one in sorted(repository.sensor_defs, key=lambda one: one.name))
    yield from (f"schedule {one.name} {one.cron_schedule}" for one in repository.schedule_defs)


def test_the_graph_is_the_one_on_file() -> None:
    text = "\n".join(drawn()) + "\n"
    if os.environ.get("META_EVAL_REBUILD"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150


def test_every_stage_and_every_input_is_an_asset() -> None:
    keys = {key.to_user_string() for key in GRAPH.get_all_asset_keys() if key.path[0] == "production"}
    stages = {f"production/{stage.name}" for stage in (*STAGES, READINESS)}
    assert stages | {f"production/inbox/{name}" for name in INBOX} == keys


def test_every_check_is_blocking_and_every_stage_has_its_gates_and_its_replay_checked() -> None:
    checks = GRAPH.asset_check_keys
    assert all(GRAPH.get_check_spec(check).blocking for check in checks)
    for stage in (*STAGES, READINESS):
        names = {check.name for check in checks if check.asset_key.path[-1] == stage.name}
        assert {"every_gate_passed", "artifact_rebuilds_from_its_replay"} <= names


def test_no_check_is_written_with_a_lesser_severity() -> None:
    folder = Path(inspect.getfile(meta_eval.defs)).parent
    assert not [file.name for file in folder.rglob("*.py") if "AssetCheckSeverity.WARN" in file.read_text("utf-8")]


def test_no_asset_is_automated_so_none_can_be_asked_for_past_a_failed_check() -> None:
    assert [key for key in GRAPH.get_all_asset_keys() if GRAPH.get(key).automation_condition is not None] == []


def test_every_asset_tells_what_it_is_and_names_its_contract() -> None:
    for key in GRAPH.get_all_asset_keys():
        node, lane = GRAPH.get(key), key.path[0]
        named = re.findall(r"`(docs/[a-z-]+\.md)`", node.description or "")
        assert named, key
        assert all((PROJECT / document).exists() for document in named), key
        assert (node.owners, bool(node.kinds), node.tags["lane"]) == (["team:evidence"], True, lane)
        if node.is_external and lane == "production":
            assert all(f"inbox/{file}`" in (node.description or "") for file in INBOX[key.path[-1]])


def test_the_catalogue_shows_the_columns_that_the_gate_demands() -> None:
    schema = GRAPH.get(dg.AssetKey(["production", "assembled_bundle"])).metadata["dagster/column_schema"]
    assert [column.name for column in schema.columns] == list(contracts.Traces.to_schema().columns)
    receipts = next(column for column in schema.columns if column.name == "trace_sha256")
    assert receipts.constraints.unique
    assert "trace-not-after-freeze" in str(schema)


def test_no_module_of_defs_defers_annotations() -> None:
    """Dagster reads the annotation of `context` when it imports the module."""
    for file in Path(inspect.getfile(meta_eval.defs)).parent.rglob("*.py"):
        imports = [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
        assert "__future__" not in {node.module for node in imports}, file.name


def test_the_checked_in_instance_limits_the_store_to_one_writer(tmp_path: Path) -> None:
    config = (default_dagster_home() / "dagster.yaml").read_text(encoding="utf-8")
    (tmp_path / "dagster.yaml").write_text(config, encoding="utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        pools = instance.get_concurrency_config().pool_config
        assert (pools.default_pool_limit, str(pools.pool_granularity)) == (1, "PoolGranularity.OP")
        assert not instance.telemetry_enabled
    assert str(PROJECT) not in config
