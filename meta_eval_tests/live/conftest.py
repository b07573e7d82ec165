"""A real browser for the tests on the running thing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from meta_eval_tests.live import rounds
from meta_eval_tests.live.chromium import launched
from meta_eval_tests.live.workbench import Workbench, dagster_dev


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = launched(playwright)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own for each test: nothing that one test clicked away is remembered by the next."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    made = context.new_page()
    # An instance of older settings greets a newcomer with a form.
    made.add_locator_handler(made.get_by_role("button", name="Skip"), lambda button: button.click())
    yield made
    context.close()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """`dagster dev` on three rounds; then files are dropped, so that its sensors work while pages are looked at."""
    folder = tmp_path_factory.mktemp("live")
    rounds.prepare(folder)
    with dagster_dev(folder) as made:
        rounds.drop_reviews(made.home)
        rounds.drop_burst(made.home)
        yield made
