"""The page at ``/``: what it lists, that nothing in it becomes markup, and its policy."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from duplex.serve.page import SHOWN, document
from duplex.store import Row, Store
from serve_support import application, begun, client, held, sounding, stored
from verdict_runs import call


class Parts(HTMLParser):
    """Every tag, every link, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_good", call(), day=1)
    stored(runs, "run_bad", call(passed=False), day=2)
    sounding(runs, "run_good", "booking.s1")
    return runs


def row(runs: Path) -> Row:
    return Store(runs).rows()[0]


async def test_runs_stand_with_their_verdicts_newest_first(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        text = (await http.get("/")).text
    rows = re.findall(r'data-name="run">([^<]*)<.*?data-name="verdict">(.*?)</td>', text)
    assert [name for name, _ in rows] == ["run_bad", "run_good"]
    assert [re.sub("<.*?>", "", said) for _, said in rows] == ["failed", "passed"]


async def test_every_link_of_a_finished_run_leads_somewhere(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        links = Parts((await http.get("/")).text).links
        mine = [link for link in links if "run_bad" not in link]
        assert len(mine) == 5
        for link in mine:
            assert (await http.get(link)).status_code == 200, link


async def test_failed_runs_and_those_in_progress_can_be_had_alone(runs: Path) -> None:
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    try:
        async with client(application(runs)[0]) as http:
            failed = Parts((await http.get("/?only=failed")).text).text
            running = Parts((await http.get("/?only=running")).text).text
            assert (await http.get("/?only=else")).status_code == 422
    finally:
        lock.release()
    assert [name in failed for name in ("run_bad", "run_good", "run_live")] == [True, False, False]
    assert [name in running for name in ("run_bad", "run_good", "run_live")] == [False, False, True]


async def test_the_policy_lets_the_one_style_through_and_nothing_else(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        answer = await http.get("/")
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not {"script", "img", "form", "iframe"} & set(Parts(answer.text).tags)


def test_no_text_of_a_run_becomes_markup(runs: Path) -> None:
    evil = '"><script>alert(1)</script><a href=javascript:x onclick=y>'
    made = replace(row(runs), id=evil, agent=evil, condition=evil, problem=evil, created_at=evil)
    found, usual = Parts(document([made], "all")), Parts(document([row(runs)], "all"))
    assert found.tags == usual.tags
    assert not any(link.startswith("javascript") for link in found.links)


def test_a_folder_without_runs_and_one_with_many_say_so(runs: Path) -> None:
    assert "No run is here." in document([], "all")
    many = document([row(runs)] * (SHOWN + 1), "all")
    assert f"The newest {SHOWN} of {SHOWN + 1} runs." in many
    assert many.count('data-name="run"') == SHOWN


async def test_off_loopback_the_page_needs_the_token(runs: Path) -> None:
    async with client(application(runs, bound="0.0.0.0")[0]) as http:
        assert (await http.get("/")).status_code == 401
