"""Headless Chromium, driven through a pipe by the DevTools protocol: no driver and no package but the browser itself."""
from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def executable() -> str | None:
    """The browser: what CHROMIUM names, or the first of the usual names on the path."""
    return os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


READY = "document.body && document.body.dataset.ready"
"""What a page of ours says once it has drawn itself."""
needed = pytest.mark.skipif(executable() is None, reason="no Chromium here; `make browser` installs one on Debian")


class Browser:
    """One page of a headless browser. Sizes are CSS pixels, times seconds."""

    def __init__(self, program: str, folder: str, width: int, height: int) -> None:
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            f"--user-data-dir={folder}", f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank",
        ]
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        line = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "chromium", *command], pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._held, self._session = 0, b"", ""
        target = next(t for t in self._send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.errors: list[str] = []

    def set_color_scheme(self, scheme: str) -> None:
        """Prefer light or dark colors in the pages that are opened later, without animations."""
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self._send("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str, ready: str, timeout: float = 30.0) -> None:
        """Goes to `url` and waits until the expression `ready` is true."""
        self._send("Page.navigate", url=url)
        self.wait(ready, timeout)

    def wait(self, expression: str, timeout: float = 10.0) -> None:
        """Waits until the expression is true. Raises TimeoutError."""
        end = time.monotonic() + timeout
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} within {timeout} s; {self.errors}")
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page. Raises AssertionError where it throws."""
        result = self._send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"].get("exception", {}).get("description", result)
        return result["result"].get("value")

    def click(self, x: float, y: float) -> None:
        """Clicks at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Presses a key, by its DevTools name, `Escape`, or a character."""
        text = {"text": key} if len(key) == 1 else {}
        self._send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path) -> None:
        """Saves what the window shows as a PNG."""
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        try:
            self._session = ""
            self._send("Browser.close")
        except (OSError, EOFError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"].get("exception", {}).get("description", str(answer)))
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            if not select.select([self._in], [], [], 60)[0]:
                raise EOFError("the browser does not answer")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise EOFError("the browser has ended")
            self._held += part
        result, _, self._held = self._held.partition(b"\0")
        return json.loads(result)  # type: ignore[no-any-return]


@contextmanager
def browser(program: str, width: int = 1440, height: int = 900) -> Iterator[Browser]:
    """A browser for the block."""
    with tempfile.TemporaryDirectory(prefix="torchspore-chromium-", ignore_cleanup_errors=True) as folder:
        opened = Browser(program, folder, width, height)
        try:
            yield opened
        finally:
            opened.close()
