"""What a person sees in the web page of a running `dagster dev`, through a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from meta_eval.lanes.production.stages import STAGES
from meta_eval_tests.live.workbench import Workbench, until

_PARTITIONS = """{ assetNodeOrError(assetKey: {path: ["production", "log_attestation"]}) {
    ... on AssetNode { partitionKeys } } }"""
GROUP = "/locations/__repository__@meta_eval.definitions/asset-groups/{}/lineage"


def partitions(bench: Workbench) -> list[str]:
    keys: list[str] = bench.ask(_PARTITIONS)["assetNodeOrError"]["partitionKeys"]
    return keys


def test_the_graph_shows_every_stage_in_its_group(bench: Workbench, page: Page) -> None:
    for group, names in (
        ("production", [stage.name for stage in STAGES]),
        ("sessions", ["ledger", "scored_sessions", "journal", "trend"]),
        ("usefulness", ["declared_study", "acceptance"]),
    ):
        page.goto(bench.url + GROUP.format(group))
        for name in names:
            expect(page.get_by_text(name, exact=True).first).to_be_visible()


def test_a_broken_round_shows_its_failed_blocking_check_its_blockers_and_nothing_downstream(
    bench: Workbench, page: Page
) -> None:
    page.goto(f"{bench.url}/assets/production/assembled_bundle?view=partitions&partition=broken")
    expect(page.get_by_text("citation-not-decided", exact=True).first).to_be_visible()
    expect(page.get_by_text("return observations and reviews to their authors").first).to_be_visible()
    page.goto(f"{bench.url}/assets/production/assembled_bundle?view=checks&checkDetail=every_gate_passed")
    expect(page.get_by_text("This is a blocking asset check")).to_be_visible()
    expect(page.get_by_text("Failed", exact=True).first).to_be_visible()
    page.goto(f"{bench.url}/assets/production/production_metrics?view=partitions&partition=broken")
    expect(page.get_by_text(re.compile(r"^Missing \(\d+\)$"))).to_be_visible()
    expect(page.get_by_text("Materialized", exact=True)).to_have_count(0)
    assert not (bench.home / "rounds" / "broken" / "artifacts" / "production-metrics").exists()


def test_materializing_a_round_in_the_page_turns_it_green_and_draws_its_verdict(bench: Workbench, page: Page) -> None:
    # A round of the terminal becomes a partition with the first look of a sensor.
    until(lambda: "ready" in partitions(bench), seconds=90, what="inbox_sensor adds the round")
    page.goto(bench.url + GROUP.format("production"))
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_text("Select a partition or create one").click()
    page.keyboard.type("ready")
    page.get_by_role("menuitem").get_by_text("ready", exact=True).first.click()
    page.get_by_text("Launch runs to materialize").click()  # closes the list
    page.get_by_role("button", name=re.compile("^Launch")).click()
    until(
        lambda: any(
            run["status"] == "SUCCESS" and len(run["assetSelection"] or []) != 1
            for run in bench.runs(partition="ready")
        ),
        seconds=300,
        what="the round comes through",
    )
    for stage in STAGES:
        page.goto(f"{bench.url}/assets/production/{stage.name}?view=partitions&partition=ready")
        expect(page.get_by_text("Materialized", exact=True).first).to_be_visible()
        expect(page.get_by_text("Unsynced")).to_have_count(0)
    expect(page.get_by_text("at least 9/10").first).to_be_visible()
    chart = page.get_by_text(re.compile("precision +█+"))
    expect(chart.first).to_be_visible()
    assert "met" in chart.first.inner_text()
