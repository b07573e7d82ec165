"""A real browser for tests: Chromium, driven over its own pipe, without any further library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
).split()


class Browser:
    """One page. `requests` lists every URL that the page asked for, other than the file and the data of a download."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()

        def place_pipes() -> None:
            # Chromium reads commands from descriptor 3 and writes answers to 4.
            spare_read, spare_write = os.dup(to_read), os.dup(to_write)
            os.dup2(spare_read, 3)
            os.dup2(spare_write, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            preexec_fn=place_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            data = os.read(self._from, 1 << 16)
            if not data:
                raise RuntimeError("the browser has gone")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(message["params"]))
        return message

    def open(self, page: Path) -> None:
        self.send("Page.navigate", url=page.as_uri())
        for _ in range(200):
            if self.run("document.readyState === 'complete' && !!document.querySelector('header')"):
                return
            time.sleep(0.05)
        raise RuntimeError("the page did not load")

    def run(self, script: str) -> Any:
        """What an expression gives in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, code: str, key: str, *, alt: bool = False, text: str | None = None) -> None:
        """One key, as a person presses it."""
        common = {"code": code, "key": key, "modifiers": 1 if alt else 0, "windowsVirtualKeyCode": _KEYS.get(code, 0)}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def downloaded(self, name: str) -> Any:
        path = self.downloads / name
        for _ in range(200):
            if path.exists() and path.stat().st_size:
                return json.loads(path.read_bytes())
            self.run("1")
            time.sleep(0.05)
        raise RuntimeError("nothing was saved")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._to)
        os.close(self._from)


_KEYS = {"Tab": 9, "Space": 32, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "KeyX": 88, "KeyY": 89, "KeyS": 83}
