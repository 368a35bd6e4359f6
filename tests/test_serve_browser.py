"""The page in a real browser: a run begun, watched, opened, heard and compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import browser
from duplex.values import Json
from duplex.wavfile import write_wav
from plan_runs import options
from serve_support import stored
from verdict_runs import call

BINARY = browser.find()
pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(BINARY is None, reason="no chromium on PATH: apt-get install chromium"),
]
SECONDS = 12
LONG = "run_with_a_name_of_one_long_word_and_a_date_20261201"
MANY_TABS = 80


class Server:
    """A server in a process of its own, with runs of two plans in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given = wanted(folder)
        for day in (1, 2, 3):
            calls = [call(sample=n, passed=n < 4 or day > 1) for n in range(1, 5)]
            checks = ["response_latency.p95 <= 1500ms"]
            stored(folder / "runs", f"{LONG}_{day}", *calls, day=day, checks=checks)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duplex", "serve", "--runs", str(folder / "runs")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.token = self.process.stderr.readline().removeprefix("token: ").strip()
        self.link = self.process.stderr.readline().removeprefix("page: ").strip()

    def held(self) -> str:
        """Hold a run of the plan in virtual time; its id."""
        auth = {"authorization": f"Bearer {self.token}"}
        body = {"options": self.given | {"clock": "virtual"}}
        answer = httpx.post(f"{self.url}/api/runs", json=body, headers=auth, timeout=60)
        id = str(answer.json()["id"])
        httpx.get(f"{self.url}/api/runs/{id}/events", timeout=60)
        return id


def wanted(folder: Path) -> dict[str, object]:
    """Options of a run of one scenario: a caller that speaks every two seconds, an agent."""
    given = options(folder, max_duration_seconds=SECONDS, scenario=["restaurant_booking_complete"])
    (folder / "caller.wav").unlink()
    t = np.arange(24_000 * SECONDS) / 24_000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1) * (t % 2 < 0.8)
    write_wav(folder / "caller.wav", np.rint(4_000 * voice * gate).astype(np.int16), 24_000)
    del given["out"]
    return {name: str(one) if isinstance(one, Path) else one for name, one in given.items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("served"))
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[browser.Page]:
    """A browser that is signed in."""
    assert BINARY is not None
    with browser.browser(BINARY, tmp_path_factory.mktemp("profile")) as page:
        page.size(1200, 900)
        page.visit(server.link)
        page.wait("location.pathname === '/' && location.search === ''")
        assert "Sign out" in text(page, "header")
        yield page


def text(tab: browser.Page, selector: str) -> str:
    return str(tab.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def to(tab: browser.Page, selector: str) -> None:
    """Come to an element by the tabulator alone."""
    for _ in range(MANY_TABS):
        tab.key("Tab")
        if tab.run(f"document.activeElement.matches({json.dumps(selector)})"):
            ring = tab.run("getComputedStyle(document.activeElement).outlineStyle")
            assert ring != "none", f"{selector} does not show that it has the focus"
            return
    raise AssertionError(f"the tabulator never comes to {selector}")


def filled(tab: browser.Page, name: str, value: str) -> None:
    to(tab, f"[name={name}]")
    tab.run("document.activeElement.select && document.activeElement.select()")
    tab.type(value)


def test_by_keyboard_a_run_is_begun_watched_opened_heard_and_compared(
    tab: browser.Page, server: Server
) -> None:
    before = server.held()
    tab.visit(f"{server.url}/new")
    to(tab, "[value=restaurant_booking_complete]")
    tab.key(" ")
    for name in ("assistant", "caller"):
        filled(tab, name, str(server.given[name]))
    to(tab, "[name=first_speaker]")
    tab.key("t")
    filled(tab, "max_duration_seconds", str(SECONDS))
    filled(tab, "data", str(server.given["data"]))
    to(tab, "button.main")
    tab.key("Enter")
    tab.wait("location.pathname.startsWith('/runs/') || document.querySelector('[role=alert]')")
    assert tab.run("document.querySelector('[role=alert]')?.textContent") is None
    tab.loaded()

    # The run goes on: the page renews itself until the call can be watched.
    tab.wait("document.querySelector('#calls a[href*=\"/calls/\"]') !== null")
    run = str(tab.run("location.pathname"))
    to(tab, "#calls td a")
    tab.key("Enter")
    tab.wait("location.pathname.includes('/calls/')")
    tab.loaded()
    watched(tab)

    to(tab, "#over a")
    tab.key("Enter")
    tab.wait("document.querySelector('iframe') !== null")
    with tab.frame("viewer.html") as viewer:
        viewer.wait(
            "document.readyState === 'complete' && document.getElementById('play') !== null"
        )
        viewer.wait("document.getElementById('time').textContent !== ''")
        assert (
            viewer.run("location.origin") == viewer.run("'null'") or viewer.run("origin") == "null"
        )
        viewer.run("document.getElementById('play').click()")
        at = "Number(document.getElementById('lanes').getAttribute('aria-valuenow'))"
        viewer.wait(f"{at} > 200")
        assert viewer.errors == []

    tab.visit(f"{server.url}{run}")
    assert tab.run("document.getElementById('head').dataset.status") == "completed"
    assert f"Against {before}" in text(tab, "#comparison")
    assert "pair" in text(tab, "#comparison")
    to(tab, "[name=against]")
    to(tab, "#comparison button")
    tab.key("Enter")
    tab.wait("location.search.startsWith('?against=')")
    assert tab.errors == []


def watched(tab: browser.Page) -> None:
    """What a call in progress shows while it goes on, and that it can be heard."""
    tab.wait("/speak/.test(document.getElementById('who').textContent)")
    tab.wait("document.querySelectorAll('#replies li').length > 0")
    assert "ms ±" in text(tab, "#replies li")
    assert tab.run("document.getElementById('none')") is None
    to(tab, "#listen")
    tab.key(" ")
    tab.wait("document.getElementById('sound').currentTime > 0.2")
    assert text(tab, "#listen") == "Stop listening"
    tab.wait("!document.getElementById('over').hidden")
    assert text(tab, "#over") == "The call is over. Open the recording"
    tab.wait("document.getElementById('who').textContent === 'over'")
    levels = "[...document.querySelectorAll('.lane i')].every((one) => one.style.width === '0%')"
    assert tab.run(levels)
    floor = [text(tab, f"#share-{name}") for name in ("caller", "assistant")]
    assert all(float(one.split()[1]) > 1 for one in floor), floor
    assert tab.run("document.querySelectorAll('#replies li').length >= 2")
    assert tab.errors == []


UNNAMED = """
[...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, iframe")]
  .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.title))
  .filter((one) => !(one.labels && one.labels.length))
  .map((one) => one.outerHTML)
"""
PLACES = ("/", "/new", "/sign-in", f"/runs/{LONG}_3", f"/runs/{LONG}_3/calls/booking.s1")


@pytest.mark.parametrize("place", PLACES)
def test_it_fits_a_narrow_screen_in_the_dark(tab: browser.Page, server: Server, place: str) -> None:
    grounds: list[Json] = []
    for scheme, width in (("light", 400), ("dark", 400), ("dark", 320)):
        tab.scheme(scheme)
        tab.size(width, 800, mobile=True)
        tab.visit(f"{server.url}{place}")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), (place, width)
        grounds.append(tab.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]
    assert tab.errors == []
    assert all(url.startswith(server.url) for url in tab.requests), tab.requests
    tab.scheme("light")
    tab.size(1200, 900)


def test_what_is_read_aloud_has_a_name(tab: browser.Page, server: Server) -> None:
    """Every control and frame has one, every page one first heading, and a way to skip."""
    for place in PLACES:
        tab.visit(f"{server.url}{place}")
        unnamed = tab.run(UNNAMED)
        assert unnamed == [], place
        assert tab.run("document.querySelectorAll('h1').length") == 1
        to(tab, "a.skip")
        tab.key("Enter")
        tab.wait("document.activeElement.id === 'content'")
