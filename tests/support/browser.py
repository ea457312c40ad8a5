"""A headless Chromium, driven over its DevTools protocol through a pipe: no driver, no port, no network.

The protocol: https://chromedevtools.github.io/devtools-protocol/. With --remote-debugging-pipe the browser reads commands
from its file descriptor 3 and writes answers and events to 4, JSON each, ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Path of the browser, or None if none is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class NoAnswer(AssertionError):
    """The browser has exited, or doesn't answer."""


def start_browser(program: str, folder: Path, waits: tuple[float, ...] = (20, 60, 120)) -> Browser:
    """A browser with a new profile in `folder`. A machine that others share may stand still for a while (in CI one that
    had started said nothing for a minute), so that one that hasn't answered after so many seconds is given up, and
    another is started.

    Raises:
        NoAnswer: after the last one; it ends with what the browsers wrote to standard error.
    """
    log, failure = folder / "errors.txt", "none was started"
    for n, seconds in enumerate(waits):
        browser = Browser(program, folder / f"profile{n}", log, seconds)
        try:
            browser.attach()
        except BaseException as error:
            browser.close()
            if not isinstance(error, NoAnswer):
                raise
            failure = str(error)
        else:
            browser.timeout = max(waits)
            return browser
    raise NoAnswer(f"{failure}, {len(waits)} times: {log.read_text(errors='replace')[-2000:]}")


class Browser:
    """One tab. `requests`: addresses that pages requested; `complaints`: exceptions and refused requests."""

    def __init__(self, program: str, profile: Path, log: Path, timeout: float):
        self.timeout, self.requests, self.complaints = timeout, [], []
        self._next, self._rest, self._answers = 0, b"", {}
        self._session: str | None = None
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        command = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
            "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        # descriptors 3 and 4 of the browser, whatever their numbers are here
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                ["bash", "-c", shell, "browser", *command], pass_fds=(theirs_in, theirs_out),
                stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
            )  # fmt: skip
        for descriptor in (theirs_in, theirs_out):
            os.close(descriptor)

    def attach(self) -> None:
        """Attaches to the tab with which the browser starts."""
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- what a person does ----------------------------------------------------------------------------------

    def open(self, page: Path, width: int = 1280, dark: bool = False, height: int = 900) -> None:
        """Opens a file and waits until its script has finished."""
        self.size(width, height)
        self._call("Emulation.setEmulatedMedia", features=[_feature(dark)])
        self._call("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def size(self, width: int, height: int = 900) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )  # fmt: skip

    def value(self, expression: str) -> Any:
        """Value of an expression in the page."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        until = time.monotonic() + self.timeout
        while not self.value(expression):
            assert time.monotonic() < until, f"never true: {expression}; {self.complaints}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Clicks in the middle of an element."""
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        """Presses a key, such as "ArrowDown", "Tab" or "Enter"."""
        text = {"Enter": "\r", " ": " "}.get(name)
        codes = {"Enter": 13, " ": 32, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36}  # fmt: skip
        more = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=codes[name], **more)

    def screenshot(self, file: Path) -> None:
        """A picture of the whole page."""
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self._call("Page.printToPDF", printBackground=False)["data"])

    # --- the protocol ----------------------------------------------------------------------------------------

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._to, data) :]
        except BrokenPipeError:
            raise NoAnswer("the browser has ended") from None
        until = time.monotonic() + self.timeout
        while self._next not in self._answers:
            self._read(until - time.monotonic())
        answer = self._answers.pop(self._next)
        assert "error" not in answer, (method, answer["error"])
        found: dict[str, Any] = answer["result"]
        return found

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._from], [], [], max(0.0, seconds))
        if not ready:
            raise NoAnswer("the browser doesn't answer")
        data = os.read(self._from, 1 << 20)
        if not data:
            raise NoAnswer("the browser has ended")
        *messages, self._rest = (self._rest + data).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self._event(message["method"], message["params"])

    def _event(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"].get("exception", {}).get("description", "thrown"))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])


def _feature(dark: bool) -> dict[str, str]:
    return {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
