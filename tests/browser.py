"""A headless Chromium for tests, driven over the DevTools protocol.

It opens local files and servers on this machine only. Everything it logs, throws or
asks the network for is kept, so that a test can say that there was none.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

from duplex.values import Json

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 30.0
KEY_CODES = {"Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Enter": 13}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-port=0",
)


def find() -> str | None:
    """The browser on PATH."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection, tools: str) -> None:
        self._socket = socket
        self._tools = tools
        self._sent = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Json) -> dict[str, Json]:
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while True:
            message: Json = json.loads(self._socket.recv(timeout=PATIENCE))
            if dig(message, "id") != self._sent:
                self._note(message)
                continue
            result = dig(message, "result")
            if not isinstance(result, dict):
                raise AssertionError(f"{method}: {message}")
            return result

    def open(self, path: Path, fragment: str = "") -> None:
        """Show a file and wait until its script has run."""
        self.errors.clear()
        self.requests.clear()
        # A change of the fragment alone would not load the page again.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def visit(self, url: str) -> None:
        """Show a page of a server and wait until its scripts have run."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=url)
        self.loaded()

    def loaded(self) -> None:
        """Wait for the page that is on its way."""
        self.wait("document.readyState === 'complete' && location.protocol === 'http:'")

    @contextmanager
    def frame(self, part: str) -> Iterator[Page]:
        """The sandboxed frame whose address holds ``part``, as a page of its own."""
        end = time.monotonic() + PATIENCE
        while not (found := [one for one in _targets(self._tools) if part in str(one["url"])]):
            assert time.monotonic() < end, f"no frame holds {part}"
            time.sleep(0.05)
        with connect(str(found[0]["webSocketDebuggerUrl"]), max_size=None) as socket:
            yield Page(socket, self._tools)

    def run(self, expression: str) -> Json:
        """Evaluate in the page; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(str(answer["exceptionDetails"]))
        return dig(answer, "result", "value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(expression):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {expression}; errors {self.errors}")
            time.sleep(0.02)

    def type(self, text: str) -> None:
        """Put text where the focus is."""
        self.call("Input.insertText", text=text)

    def key(self, key: str) -> None:
        # The browser's own reactions (Escape closes a dialog) go by the key's code.
        more: dict[str, Json] = {"text": key}
        if len(key) > 1:
            more = {"windowsVirtualKeyCode": KEY_CODES[key]}
        if key == "Enter":
            more |= {"text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def scheme(self, name: str) -> None:
        features: list[Json] = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, *, whole: bool = False) -> bytes:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(str(shot["data"]))

    def _note(self, message: Json) -> None:
        """Keep what went wrong and what was asked for."""
        params = dig(message, "params")
        method = dig(message, "method")
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params))
        elif method == "Log.entryAdded" and dig(params, "entry", "level") == "error":
            self.errors.append(str(dig(params, "entry", "text")))
        elif method == "Runtime.consoleAPICalled" and dig(params, "type") == "error":
            self.errors.append(json.dumps(params))
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"a dialog was opened: {dig(params, 'message')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(str(dig(params, "request", "url")))


def dig(value: Json, *names: str) -> Json:
    """The member of a member; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@contextmanager
def browser(binary: str, profile: Path) -> Iterator[Page]:
    """Start a browser with a fresh profile; it ends with the block."""
    process = subprocess.Popen(
        [binary, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        tools = _tools(profile, process)
        tab = next(one for one in _targets(tools) if one["type"] == "page")
        with connect(str(tab["webSocketDebuggerUrl"]), max_size=None) as socket:
            yield Page(socket, tools)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _targets(tools: str) -> list[dict[str, Json]]:
    """Frames, then tabs."""
    with urlopen(tools, timeout=PATIENCE) as answer:
        found: list[dict[str, Json]] = json.load(answer)
    return sorted(found, key=lambda one: one["type"] != "iframe")


def _tools(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the browser lists its tabs, once the first is there."""
    port_file = profile / "DevToolsActivePort"
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        lines = port_file.read_text().splitlines() if port_file.exists() else []
        if len(lines) == 2:
            tools = f"http://127.0.0.1:{lines[0]}/json/list"
            if any(one["type"] == "page" for one in _targets(tools)):
                return tools
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} did not come up within {PATIENCE:.0f} s")
