"""The sessions lane in Dagster: a ledger from its folder to its trend, what stops it, and when the sensor asks."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

dg = pytest.importorskip("dagster")

from meta_eval.defs.resources import MetaEvalHome  # noqa: E402
from meta_eval.defs.sessions import checks as session_checks  # noqa: E402
from meta_eval.defs.sessions import growth, sessions_lane  # noqa: E402
from meta_eval.defs.sessions.assets import key  # noqa: E402
from meta_eval.defs.sessions.jobs import score_ledger_job  # noqa: E402
from meta_eval.defs.sessions.sensors import ledger_sensor  # noqa: E402
from meta_eval.evidence.artifacts import Blocker  # noqa: E402
from meta_eval.evidence.store import EvidenceStore  # noqa: E402
from meta_eval.lanes.sessions import evidence_rows  # noqa: E402
from meta_eval.lanes.sessions.journal import read_journal  # noqa: E402
from meta_eval.lanes.sessions.ledgers import Kept, LedgerFolder  # noqa: E402

DEMO = Path(__file__).resolve().parents[2] / "data" / "sessions-demo"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SECOND = 1_000_000_000


class Line:
    """A home folder with ledgers, and a Dagster instance that keeps what ran."""

    def __init__(self, folder: Path, instance: Any) -> None:
        self.home, self.instance = folder / "home", instance

    def ledger(self, name: str) -> Path:
        return Path(shutil.copytree(DEMO, self.home / "ledgers" / name))

    def run(self, name: str, *assets: str, as_of: str = "2026-08-20T12:00:00.000Z", rubric: str | None = None) -> Any:
        if not self.instance.has_dynamic_partition("ledgers", name):
            self.instance.add_dynamic_partitions("ledgers", [name])
        home = dg.Definitions(resources={"home": MetaEvalHome(home=str(self.home), as_of=as_of)})
        job = dg.Definitions.merge(sessions_lane, home).resolve_job_def(score_ledger_job.name)
        config: dict[str, Any] = dict(QUIET)
        if rubric is not None:
            steps = ("ledger", "scored_sessions", "journal")
            config["ops"] = {f"sessions__{step}": {"config": {"rubric": rubric}} for step in steps}
        return job.execute_in_process(
            instance=self.instance,
            partition_key=name,
            asset_selection=[key(asset) for asset in assets] or None,
            run_config=config,
            raise_on_error=False,
        )

    def tick(self, cursor: str | None = None) -> Any:
        context = dg.build_sensor_context(instance=self.instance, cursor=cursor)
        return ledger_sensor(context, home=MetaEvalHome(home=str(self.home)))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Line(tmp_path, instance)


def checks(result: Any) -> dict[str, bool]:
    return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}


def metadata(result: Any, asset: str) -> dict[str, Any]:
    (made,) = (
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key == key(asset)
    )
    return dict(made.metadata)


def test_a_ledger_goes_from_its_folder_to_its_trend_and_every_check_blocks(line: Line) -> None:
    line.ledger("demo")
    result = line.run("demo")
    assert result.success
    assert checks(result) == {
        "both_ledgers_keep_their_contract": True,
        "every_gate_passed": True,
        "artifact_rebuilds_from_its_replay": True,
        "sql_agrees_with_python": True,
        "journal_holds_every_verdict": True,
    }
    specs = [spec for asset in sessions_lane.assets or () for spec in getattr(asset, "check_specs", ())]
    assert len(specs) == 5
    assert all(spec.blocking for spec in specs)
    assert metadata(result, "scored_sessions")["dagster/row_count"].value == 10
    assert len(read_journal(line.home / "ledgers" / "demo" / "eval.jsonl").records) == 10
    store = EvidenceStore(line.home / "evidence", [])
    assert store.rows("SELECT count(*) FROM session_dimensions") == [(60,)]


def test_the_same_ledger_again_makes_nothing_new_and_a_grown_one_only_what_changed(line: Line) -> None:
    folder = line.ledger("demo")
    line.run("demo")
    again = line.run("demo", as_of="2026-08-21T12:00:00.000Z")
    assert metadata(again, "scored_sessions")["reused"].value is True
    assert metadata(again, "journal")["written now"].value == 0
    with (folder / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            '{"session_id":"demo-new","status":"completed","started_at":"2026-08-12","completed_at":"2026-08-13"}\n'
        )
    grown = line.run("demo", as_of="2026-08-22T12:00:00.000Z")
    assert metadata(grown, "journal")["written now"].value == 1
    assert len(LedgerFolder(line.home / "ledgers", "demo").artifact_files("v2")) == 2


def test_both_rubrics_live_in_one_journal(line: Line) -> None:
    line.ledger("demo")
    assert line.run("demo", rubric="v1").success
    assert line.run("demo", rubric="v2").success
    records = read_journal(line.home / "ledgers" / "demo" / "eval.jsonl").records
    assert [record["rubric_version"] for record in records] == ["rubric-v1"] * 10 + ["rubric-v2"] * 10


def test_a_ledger_with_nothing_to_score_leaves_its_blockers_and_stops_the_line(line: Line) -> None:
    folder = line.ledger("idle")
    (folder / "sessions.jsonl").write_text('{"session_id":"a","status":"abandoned"}\n', encoding="utf-8")
    result = line.run("idle")
    assert not result.success
    assert checks(result)["every_gate_passed"] is False
    (path,) = LedgerFolder(line.home / "ledgers", "idle").artifact_files("v2")
    assert [each["code"] for each in json.loads(path.read_bytes())["blockers"]] == ["no-eligible-session"]
    assert not (folder / "eval.jsonl").exists()
    alone = line.run("idle", "journal")
    assert not alone.success
    assert not (folder / "eval.jsonl").exists()


def test_a_forged_artifact_is_not_taken_into_the_journal(line: Line) -> None:
    folder = line.ledger("demo")
    line.run("demo", "ledger", "scored_sessions")
    (path,) = LedgerFolder(line.home / "ledgers", "demo").artifact_files("v2")
    path.chmod(0o600)
    path.write_text(path.read_text(encoding="utf-8").replace('"fail"', '"pass"', 1), encoding="utf-8")
    assert not line.run("demo", "journal").success
    assert not (folder / "eval.jsonl").exists()


def test_no_session_id_and_no_evidence_reaches_dagsters_log(line: Line) -> None:
    folder = line.ledger("demo")
    with (folder / "sessions.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"session_id":"canary-id","status":"completed","notes":"canary-note"}\n')
    results = [line.run("demo")]
    (folder / "sessions.jsonl").unlink()
    results.append(line.run("demo"))
    told = "".join(str(event) for result in results for event in result.all_events)
    told += "".join(str(entry) for result in results for entry in line.instance.all_logs(result.run_id))
    assert "canary" not in told
    assert "demo-red-gates" not in told


def test_a_verdict_that_sql_finds_otherwise_fails_the_agreement_and_so_do_no_rows(line: Line) -> None:
    line.ledger("demo")
    kept = LedgerFolder(line.home / "ledgers", "demo").keep_scored("v2", 1_787_000_000_000)
    tables = dict(evidence_rows.tables_of(kept.artifact))
    honest = EvidenceStore(line.home / "honest", [evidence_rows.SCHEMA])
    honest.load(kept.artifact, tables)
    assert session_checks.agreement(kept.artifact, honest).passed
    empty = EvidenceStore(line.home / "empty", [evidence_rows.SCHEMA])
    empty.load(kept.artifact, {})
    assert not session_checks.agreement(kept.artifact, empty).passed
    rows = tables["session_dimensions"].to_pylist()
    rows[0]["status"] = "fail" if rows[0]["status"] != "fail" else "pass"
    schema = tables["session_dimensions"].schema
    tables["session_dimensions"] = tables["session_dimensions"].from_pylist(rows, schema=schema)
    forged = EvidenceStore(line.home / "forged", [evidence_rows.SCHEMA])
    forged.load(kept.artifact, tables)
    assert not session_checks.agreement(kept.artifact, forged).passed
    silent = {**kept.artifact, "result": {**kept.artifact["result"], "verdicts": []}}
    assert not session_checks.agreement(silent | {"digest": "0" * 64}, empty).passed


def test_the_other_checks_fail_where_what_they_check_does(line: Line) -> None:
    folder = line.ledger("demo")
    line.run("demo")
    journal = read_journal(folder / "eval.jsonl")
    assert session_checks.journal_complete(journal, journal.records, []).passed
    assert not session_checks.journal_complete(journal, journal.records, journal.records[:1]).passed
    assert not session_checks.journal_complete(journal, [], []).passed
    assert session_checks.contracts_hold([]).passed
    assert not session_checks.contracts_hold([Blocker("repeated", "session_records.line")]).passed
    kept = LedgerFolder(line.home / "ledgers", "demo").keep_scored("v2", 1_787_000_000_000)
    assert session_checks.replays(kept).passed
    assert not session_checks.replays(Kept({**kept.artifact, "digest": "0" * 64}, kept.path, reused=False)).passed
    assert not session_checks.replays(Kept(kept.artifact, kept.path.with_name("gone.json"), reused=False)).passed


def age(folder: Path, seconds: int) -> None:
    for file in folder.iterdir():
        then = file.stat().st_mtime - seconds
        os.utime(file, (then, then))


def test_the_sensor_asks_once_for_a_grown_ledger_and_not_for_a_touched_one(line: Line) -> None:
    folder = line.ledger("demo")
    (line.home / "ledgers" / "Not A Ledger").mkdir()
    age(folder, 60)
    first = line.tick()
    (request,) = first.run_requests
    assert (request.partition_key, request.run_key.startswith("demo:")) == ("demo", True)
    assert [each.partition_keys for each in first.dynamic_partitions_requests] == [["demo"]]
    second = line.tick(first.cursor)
    assert second.run_requests == []
    assert "name is no ledger's" in second.skip_reason.skip_message
    age(folder, 5)
    touched = line.tick(second.cursor)
    assert touched.run_requests == []
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    growing = line.tick(touched.cursor)
    assert growing.run_requests == []  # it may still be growing
    settled = line.tick(growing.cursor)
    assert [each.run_key for each in settled.run_requests] != [request.run_key]
    assert len(settled.run_requests) == 1


def test_one_ledger_that_cannot_be_read_stops_no_other() -> None:
    def version_of(name: str) -> str:
        if name == "bad":
            raise OSError
        return "v"

    found = {name: growth.Found("s", 0) for name in ("bad", "good")}
    tick = growth.look(found, "not a cursor", now_ns=60 * SECOND, version_of=version_of)
    assert tick.run_keys == {"good": "good:v"}
    assert tick.messages == ["bad: its ledgers cannot be read; check their permissions"]
    again = growth.look(found, tick.cursor, now_ns=60 * SECOND, version_of=version_of)
    assert (again.run_keys, len(again.messages)) == ({}, 1)
