"""Debian's Chromium, headless and silent: it asks nobody but the page under test."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched(playwright: Playwright) -> Browser:
    """The browser. Raises RuntimeError, with what to do, where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise RuntimeError("no chromium on this machine; `apt-get install -y chromium` brings it")
    return playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
