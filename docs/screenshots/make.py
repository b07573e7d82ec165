"""Makes the screenshots of the operator's handbook anew: `make screenshots`.

Two rehearsals are played in a home of their own, `dagster dev` is started on it, and a headless browser looks.
Everything in the pictures is invented, and no path of the machine is in them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from meta_eval_tests.live.chromium import launched
from meta_eval_tests.live.workbench import Workbench, dagster_dev, environment, until

FOLDER = Path(__file__).resolve().parent
GROUP = "/locations/__repository__@meta_eval.definitions/asset-groups/production/lineage"
METRICS, BUNDLE = "/assets/production/production_metrics", "/assets/production/assembled_bundle"
# A picture, its address, and a text that tells that the page has loaded.
PICTURES = (
    ("asset-graph", GROUP, "production_metrics"),
    ("verdict", f"{METRICS}?view=partitions&partition=demo", "at least 9/10"),
    ("blocked", f"{BUNDLE}?view=partitions&partition=demo-broken", "citation-not-decided"),
    ("failed-check", f"{BUNDLE}?view=checks&checkDetail=every_gate_passed", "citation-not-decided"),
    ("inputs", "/assets/production/inbox/labels", "sha256"),
    ("runs", "/runs", "Failure"),
    ("automation", "/automation", "inbox_sensor"),
)


def main() -> None:
    expect.set_options(timeout=30_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _rehearse(folder, "demo")
        _rehearse(folder, "demo-broken", "--break", "citation-not-decided")
        with dagster_dev(folder) as bench, sync_playwright() as playwright:
            until(lambda: bench.ticks("inbox_sensor"), seconds=90, what="inbox_sensor looks")
            browser = launched(playwright)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            for name, address, text in PICTURES:
                _take(bench, page, name, address, text)
            browser.close()


def _rehearse(folder: Path, name: str, *words: str) -> None:
    program = str(Path(sys.executable).with_name("meta-eval"))
    done = subprocess.run(
        [program, "rehearse", "--round", name, *words], env=environment(folder), check=False, stdout=subprocess.DEVNULL
    )
    assert done.returncode == (1 if words else 0), name


def _take(bench: Workbench, page: Page, name: str, address: str, text: str) -> None:
    page.goto(bench.url + address)
    expect(page.get_by_text(text).first).to_be_visible()
    page.wait_for_timeout(1500)  # what is drawn after the text
    page.screenshot(path=FOLDER / f"{name}.png")
    print(name)


if __name__ == "__main__":
    main()
