"""The pages as HTML: what they show, that no text becomes markup, and their policy."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

from duplex.serve.pages import charts, listed
from duplex.serve.pages.charts import Share
from duplex.serve.pages.listed import SHOWN, Chosen
from duplex.serve.pages.markup import Markup, address, document, joined, tag
from duplex.store import Store
from serve_support import AUTH, TOKEN, application, begun, client, held, landed, sounding, stored
from verdict_runs import arms, call

EVIL = (
    '"><script>alert(1)</script><img src=x onerror=y>\u202e</title></textarea>${{7*7}}&lt;b&gt;\n'
)
SLASHLESS = "\"><img src=x onerror='y'>"
FORM = {"content-type": "application/x-www-form-urlencoded"}
HTML = {"accept": "text/html"}


class Parts(HTMLParser):
    """Every tag with its attributes, every link, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src") and value]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    stored(runs, "run_good", call(), day=1)
    stored(runs, "run_bad", call(passed=False), day=2)
    sounding(runs, "run_good", "booking.s1")
    return runs


# -- the list ---------------------------------------------------------------------------


async def test_runs_stand_with_their_verdicts_newest_first(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        text = (await http.get("/")).text
    rows = re.findall(r'<th scope="row">(.*?)</th><td data-name="verdict">(.*?)</td>', text)
    said = [tuple(re.sub("<.*?>", "", cell) for cell in row) for row in rows]
    assert said == [("run_bad", "✕ failed"), ("run_good", "✓ passed")]


async def test_every_link_of_every_page_leads_somewhere(runs: Path) -> None:
    seen: set[str] = set()
    waiting = ["/"]
    async with client(application(runs)[0]) as http:
        while waiting:
            link = waiting.pop().partition("#")[0]
            if link in seen or not link or "run_bad/viewer" in link:
                continue
            seen.add(link)
            answer = await http.get(link)
            assert answer.status_code == 200, link
            if answer.headers["content-type"].startswith("text/html") and "/api/" not in link:
                waiting += Parts(answer.text).links
    assert {"/new", "/sign-in", "/runs/run_bad", "/runs/run_good/calls/booking.s1"} <= seen


async def test_runs_are_narrowed_by_verdict_scenario_agent_and_plan(runs: Path) -> None:
    stored(runs, "run_other", call(scenario="cancel", agent="realtime"), day=3, id="another-plan")
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    names = ("run_bad", "run_good", "run_other", "run_live")

    async def shown(query: str) -> list[bool]:
        answer = await http.get(f"/?{query}")
        assert answer.status_code == 200
        listed = Parts(answer.text.partition('<div class="panel">')[2]).text
        return [name in listed for name in names]

    try:
        async with client(application(runs)[0]) as http:
            assert await shown("") == [True] * 4
            assert await shown("only=failed") == [True, False, False, False]
            assert await shown("only=running") == [False, False, False, True]
            assert await shown("scenario=cancel") == [False, False, True, False]
            assert await shown("agent=realtime") == [False, False, True, False]
            assert await shown("plan=another-plan") == [False, False, True, False]
            assert await shown("scenario=none_such") == [False] * 4
            assert (await http.get("/?only=else")).status_code == 422
    finally:
        lock.release()


async def test_the_trend_of_a_plan_has_a_dot_for_every_settled_run(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        text = (await http.get("/")).text
        one = (await http.get("/?scenario=booking")).text
        none = (await http.get("/?scenario=none_such")).text
    for page in (text, one):
        # A dot for the share, the median and the 95th percentile, each with its run.
        assert page.count('<circle cx="') == 6
        words = "run_good, 2026-11-01: 1 of 1 passed, 100 % (95 % interval 21 to 100 %)"
        assert words in page
    assert "<circle" not in none


def test_a_trend_is_of_one_agent_of_a_plan(runs: Path) -> None:
    row = Store(runs).rows()[0]
    plan = [
        replace(row, id=f"run_{n}", plan_id="demo", agent=agent)
        for n, agent in enumerate(["mine", "local", "local"])
    ]

    def shown(plan_id: str = "", agent: str = "") -> str | None:
        found = listed.trend_of(Chosen(plan=plan_id, agent=agent), plan)
        return None if found is None else found.id

    assert shown() == "run_1"
    assert shown(agent="mine") is None
    assert shown("demo") == "run_0"
    assert shown("demo", "local") == "run_1"
    assert shown("other") is None


def test_a_long_list_has_pages(runs: Path) -> None:
    row = Store(runs).rows()[0]
    many = [replace(row, id=f"run_{n}") for n in range(SHOWN + 3)]

    def page(skip: int) -> str:
        return joined(*listed.content(Chosen(agent=row.agent, skip=skip), many, [], "")).text

    first, second, beyond = page(0), page(SHOWN), page(5 * SHOWN)
    assert f"Runs 1 to {SHOWN} of {SHOWN + 3}." in first
    assert f'href="/?skip={SHOWN}&amp;agent={row.agent}"' in first
    assert "Newer" not in first
    assert first.count("<tr>") == SHOWN + 1
    assert f"Runs {SHOWN + 1} to {SHOWN + 3} of {SHOWN + 3}." in second
    assert f'href="/?agent={row.agent}"' in second
    assert "Older" not in second
    assert f"There are {SHOWN + 3} runs." in beyond


# -- a run and its calls ----------------------------------------------------------------------


async def test_a_run_tells_its_verdict_checks_failures_spread_and_debrief(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    calls = [call(sample=n, passed=n > 1, latencies=(400.0 * n, 2000.0)) for n in (1, 2, 3)]
    stored(runs, "run_a", *calls, day=1, checks=["response_latency.p95 <= 1500ms"])
    stored(runs, "run_b", *calls[1:], day=2)
    async with client(application(runs)[0]) as http:
        text = (await http.get("/runs/run_a")).text
        later = (await http.get("/runs/run_b")).text
        named = (await http.get("/runs/run_a?against=run_b")).text
        wrong = (await http.get("/runs/run_a?against=run_none")).text
    told = Parts(text).text
    assert "Not passed: " in told
    assert "response_latency.p95 <= 1500ms" in told
    assert "0/3" in told
    assert "response latency: 6 values of 3 calls" in told
    assert 'id="debrief"' in text
    assert "No earlier run of this plan is here." in told
    assert "Against run_a" in Parts(later).text
    assert "Against run_b" in Parts(named).text
    assert "there is no such run" in Parts(wrong).text


async def test_a_sweep_is_drawn_with_its_intervals(tmp_path: Path) -> None:
    from duplex.results import schema
    from verdict_runs import run

    values = arms("none", "0")
    calls = [
        call(arm=arm, sample=n, passed=not at or n > 4)
        for at, arm in enumerate(values)
        for n in range(1, 7)
    ]
    runs = tmp_path / "runs"
    (runs / "run_swept").mkdir(parents=True)
    made = run(*calls, arms=values)
    info = made.run.model_copy(update={"id": "run_swept"})
    text = schema.to_json(made.model_copy(update={"run": info}))
    (runs / "run_swept" / "results.json").write_text(text, encoding="utf-8")
    async with client(application(runs)[0]) as http:
        told = (await http.get("/runs/run_swept")).text
    assert "Swept: noisy.snr" in told
    assert "noisy.snr 0: 2 of 6 passed, 33 % (95 % interval 10 to 70 %)" in told
    assert "noisy.snr none (baseline): 6 of 6 passed" in told


async def test_a_run_in_progress_shows_what_has_landed_and_what_goes_on(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    journal = begun(runs, "run_live", ["booking.s1", "booking.s2", "booking.s3"])
    landed(runs, "run_live", journal, call())
    journal.began("booking.s2", 1, "booking.s2")
    journal.close()
    lock = held(runs / "run_live")
    try:
        async with client(application(runs)[0]) as http:
            text = (await http.get("/runs/run_live")).text
            going = await http.get("/runs/run_live/calls/booking.s2")
            waiting = await http.get("/runs/run_live/calls/booking.s3")
    finally:
        lock.release()
    assert "1 of 3 test cases held so far." in text
    assert 'data-status="running"' in text
    assert 'href="/runs/run_live/calls/booking.s2"' in text
    assert 'data-events="/api/runs/run_live/calls/booking.s2/live"' in going.text
    assert waiting.status_code == 404


async def test_a_run_whose_runner_is_gone_says_how_it_goes_on(runs: Path) -> None:
    journal = begun(runs, "run_cut", ["booking"])
    journal.began("booking", 1, "booking.s1")
    journal.close()
    async with client(application(runs)[0]) as http:
        page = (await http.get("/runs/run_cut")).text
    told = Parts(page).text
    assert "Interrupted: 0 of 1 test cases were held" in told
    assert "duplex resume run_cut" in told
    assert "No call came to its end." in told
    assert "Against" not in told
    assert not [one for one in Parts(page).links if one.endswith((".json", ".html"))]


async def test_a_call_that_is_over_is_the_viewer_in_a_sandbox(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        page = await http.get("/runs/run_good/calls/booking.s1?t=1200")
        (source,) = [one for one in Parts(page.text).links if "viewer.html" in one and "#" in one]
        framed = await http.get(source.partition("#")[0])
        missing = await http.get("/runs/run_good/calls/none_such")
        api = await http.get("/api/runs/run_good/calls/none_such/viewer.html")
    assert source.endswith("#call=1&t=1200")
    assert 'sandbox="allow-scripts allow-downloads"' in page.text
    policy = framed.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts allow-downloads;")
    assert "frame-ancestors 'self'" in policy
    assert framed.headers["x-frame-options"] == "SAMEORIGIN"
    assert 'id="call-0"' in framed.text
    assert 'id="call-1"' not in framed.text
    assert missing.status_code == api.status_code == 404


# -- nothing becomes markup ----------------------------------------------------------------


async def test_no_text_of_a_run_becomes_markup(tmp_path: Path) -> None:
    """Every text that files hold, hostile at once, on every page that shows it."""
    runs = tmp_path / "runs"
    worse = [
        call(
            scenario=f"s{EVIL}", sample=n, passed=False, agent=f"a{EVIL}", condition=c, persona=EVIL
        )
        for n, c in ((1, f"c{EVIL}"), (2, "clean"))
    ]
    for day, name in ((1, "run_usual_1"), (2, "run_usual_2")):
        stored(runs, name, call(), call(sample=2, condition="noisy"), day=day)
    for day, name in ((3, "run_evil_1"), (4, "run_evil_2")):
        stored(
            runs,
            name,
            *worse,
            day=day,
            name=EVIL,
            id="evil",
            checks=['Q"&amp;: false_yield.count == 0'],
        )
    stored(runs, "run_slashless", call(scenario=SLASHLESS), day=5)
    (runs / "run_damaged").mkdir()
    (runs / "run_damaged" / "results.json").write_text(f'{{"{"<b>"}": 1', encoding="utf-8")
    kinds = ("/", "/?scenario=" + urlencode({"": f"s{EVIL}"})[1:], "/runs/{}", "/runs/{}?against=" +
             urlencode({"": EVIL})[1:])  # fmt: skip
    usual = {"script", "img", "svg"}
    async with client(application(runs)[0]) as http:
        for kind in kinds:
            text = (await http.get(kind.format("run_evil_2"))).text
            found, plain = Parts(text), Parts((await http.get(kind.format("run_usual_2"))).text)
            assert found.tags.count("script") == plain.tags.count("script")
            assert set(found.tags) - set(plain.tags) <= {"ul", "li", "p", "b", "h3", "ol", "option"}
            assert not {"img", "b<b"} & set(found.tags) - usual
            assert not any(name.startswith("on") for name in found.attributes)
            assert "style" not in found.attributes
            assert "\u202e" not in text
            assert all(link.startswith(("/", "#", "?")) for link in found.links)
            assert "alert(1)" in found.text
        answer = await http.get(address("runs", "run_slashless", "calls", f"{SLASHLESS}.s1"))
        assert answer.status_code == 200
        assert not {"script", "img"} & set(Parts(answer.text).tags)
        odd = await http.get("/sign-in?wrong=" + urlencode({"": EVIL})[1:])
        assert odd.status_code == 422


async def test_a_form_that_is_refused_shows_what_was_filled_in_as_text(runs: Path) -> None:
    fields = {"scenario": EVIL, "assistant": EVIL, "check": EVIL, "samples": EVIL, "data": EVIL}
    async with client(application(runs)[0], **AUTH) as http:
        answer = await http.post("/new", content=urlencode(fields), headers=FORM)
    assert answer.status_code == 422
    found = Parts(answer.text)
    assert not {"script", "img"} & set(found.tags)
    assert "is not a whole number" in found.text


def test_text_is_escaped_and_addresses_stay_here() -> None:
    assert tag("p", EVIL).text.count("<") == 2
    assert tag("a", "x", title=EVIL).text.count('"') == 2
    assert document(EVIL, Markup(""), Markup("")).count("<script") == 0
    assert address("runs", "../..", "é\ud800") == "/runs/..%2F../%C3%A9%3F"
    for place in ("javascript:x", "//elsewhere", "/\\elsewhere", "http://elsewhere"):
        with pytest.raises(AssertionError):
            tag("a", "x", href=place)
    for name in ("onclick", "style"):
        with pytest.raises(AssertionError):
            tag("p", "x", **{name: "x"})


async def test_the_policy_lets_this_servers_files_through_and_nothing_inline(runs: Path) -> None:
    async with client(application(runs)[0]) as http:
        for path in ("/", "/new", "/sign-in", "/runs/run_good", "/runs/run_good/calls/booking.s1"):
            answer = await http.get(path)
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';")
            assert "unsafe" not in policy
            assert "form-action 'self'" in policy
            assert "<style" not in answer.text
            assert not re.search(r"<script(?! src=\"/static/)", answer.text)
        assert (await http.get("/static/..%2Froutes.py")).status_code == 404
        assert (await http.get("/static/nothing.js")).status_code == 404


# -- drawings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, most", [(1.0, 1.0), (1.1, 2.0), (430.0, 500.0), (5000.1, 10_000.0)]
)
def test_an_axis_ends_at_a_round_number(value: float, most: float) -> None:
    assert charts.ceiling(value) == pytest.approx(most)


def test_drawings_hold_whatever_numbers_there_are() -> None:
    nothing = Share(name="x", passed=0, graded=0)
    assert "no call was graded" in charts.shares("t", [nothing], wanted=80).text
    for values in ([-300.0, 0.0, 7.5], [0.0], [1e7, 2.0]):
        text = charts.spread("t", values, [("median", values[0])], 100.0).text
        assert "nan" not in text
        assert "inf" not in text
        heights = [float(one) for one in re.findall(r'height="([\d.-]+)"', text)]
        assert all(height >= 0 for height in heights)


# -- who may do what -----------------------------------------------------------------------------


async def test_the_link_that_brings_the_token_signs_a_browser_in(runs: Path) -> None:
    app, launcher = application(runs)
    async with client(app) as http:
        wrong = await http.get("/?enter=wrong", headers=HTML)
        assert (wrong.status_code, wrong.headers["location"]) == (303, "/sign-in?wrong=1")
        assert "set-cookie" not in wrong.headers
        right = await http.get(f"/?enter={TOKEN}", headers=HTML)
        assert (right.status_code, right.headers["location"]) == (303, "/")
        cookie = right.headers["set-cookie"]
        assert cookie.startswith("duplex_8700=")
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
        assert TOKEN not in cookie
        assert "Sign out" in (await http.get("/")).text
        own = FORM | {"origin": "http://127.0.0.1:8700"}
        begun = await http.post("/new", content="scenario=one&clock=virtual&samples=2", headers=own)
        assert (begun.status_code, begun.headers["location"]) == (303, "/runs/begun_1")
        assert launcher.asked == [{"scenario": ["one"], "clock": "virtual", "samples": 2}]
        left = await http.post("/sign-out", headers=own)
        assert "Max-Age=0" in left.headers["set-cookie"]
        assert (await http.post("/new", content="", headers=own)).status_code == 401


async def test_a_token_that_is_pasted_signs_in_and_a_wrong_one_does_not(runs: Path) -> None:
    async with client(application(runs, bound="0.0.0.0")[0]) as http:
        assert (await http.get("/sign-in")).status_code == 200
        assert (await http.get("/static/page.css")).status_code == 200
        wrong = await http.post("/sign-in", content="token=nope", headers=FORM)
        assert wrong.status_code == 401
        assert "not this server&#x27;s token" in wrong.text
        right = await http.post("/sign-in", content=urlencode({"token": TOKEN}), headers=FORM)
        assert right.status_code == 303
        assert (await http.get("/runs/run_good")).status_code == 200


async def test_elsewhere_a_page_leads_to_where_one_signs_in(runs: Path) -> None:
    async with client(application(runs, bound="0.0.0.0")[0]) as http:
        for path in ("/", "/new", "/runs/run_good", "/runs/run_good/calls/booking.s1"):
            answer = await http.get(path, headers=HTML)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path
        for path in ("/", "/api/runs"):
            assert (await http.get(path)).status_code == 401


@pytest.mark.parametrize(
    "headers, status",
    [
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8700"}, 403),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "http://127.0.0.1:8700"}, 303),
    ],
)
async def test_a_cookie_writes_from_this_servers_pages_only(
    runs: Path, headers: dict[str, str], status: int
) -> None:
    app, launcher = application(runs)
    async with client(app) as http:
        await http.get(f"/?enter={TOKEN}")
        answer = await http.post("/new", content="scenario=one", headers=FORM | headers)
        assert answer.status_code == status
        assert len(launcher.asked) == (status == 303)


async def test_a_strangers_cookie_is_no_ticket_and_no_fault(runs: Path) -> None:
    async with client(application(runs, bound="0.0.0.0")[0]) as http:
        for value in (
            "duplex_8700=x",
            f"duplex_8700={TOKEN}",
            "duplex_1=\x01;=;;",
            'duplex_8700="',
        ):
            answer = await http.get("/api/runs", headers={"cookie": value})
            assert answer.status_code == 401, value


async def test_a_run_is_cancelled_and_held_again_from_its_page(runs: Path) -> None:
    app, launcher = application(runs)
    begun(runs, "run_live", ["booking"]).close()
    lock = held(runs / "run_live")
    try:
        async with client(app, **AUTH) as http:
            assert 'action="/runs/run_live/cancel"' in (await http.get("/runs/run_live")).text
            stop = await http.post("/runs/run_live/cancel")
            assert (stop.status_code, stop.headers["location"]) == (303, "/runs/run_live")
            assert "It was asked to stop." in (await http.get("/runs/run_live")).text
    finally:
        lock.release()
    async with client(app, **AUTH) as http:
        again = await http.post("/runs/run_live/again")
        assert again.headers["location"] == "/runs/begun_1"
        assert launcher.asked == [{"data": "/somewhere/restaurant.json", "clock": "virtual"}]
        lost = await http.post("/runs/run_good/again")
        assert lost.status_code == 400
        assert "kept its options" in lost.text


async def test_what_is_no_form_is_refused(runs: Path) -> None:
    async with client(application(runs)[0], **AUTH) as http:
        kind = {"content-type": "multipart/form-data; boundary=x"}
        assert (await http.post("/new", content=b"--x--", headers=kind)).status_code == 422
        many = "&".join(f"a{n}=1" for n in range(600))
        assert (await http.post("/new", content=many, headers=FORM)).status_code == 422
        assert (await http.post("/new", content=b"\xff=1", headers=FORM)).status_code == 422


async def test_a_page_that_is_refused_is_a_page_for_a_browser_only(runs: Path) -> None:
    (runs / "run_bad" / "results.json").write_text('{"half')
    refused = {
        "/nothing": 404,
        "/runs/lost": 404,
        "/runs/run_good/calls/lost": 404,
        "/runs/run_bad": 409,
        "/?only=nonsense": 422,
        "/api/runs/run_bad/viewer.html": 404,
    }
    async with client(application(runs)[0]) as http:
        for path, status in refused.items():
            answer = await http.get(path, headers=HTML)
            assert answer.status_code == status, path
            assert 'href="/"' in answer.text, path
            assert "style-src 'self'" in answer.headers["content-security-policy"]
            told = (await http.get(path)).json()["message"]
            assert told[1:] in Parts(answer.text).text, path
        for path in ("/v0/projects/x/simulation-runs/lost", "/v1/simulation/plan/jobs/lost"):
            assert "code" in (await http.get(path, headers=HTML)).json()


async def test_whoever_was_signed_in_to_a_server_that_is_gone_signs_in_again(runs: Path) -> None:
    async with client(application(runs)[0], cookie="duplex_8700=of-another-server") as http:
        for path in ("/new", "/runs/run_good/again", "/runs/run_good/cancel"):
            own = {"origin": "http://127.0.0.1:8700"}
            answer = await http.post(path, content="a=1", headers=FORM | HTML | own)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path


async def test_a_button_pressed_twice_begins_one_run(runs: Path) -> None:
    app, launcher = application(runs)
    begin, press = asyncio.Event(), launcher.start

    async def slow(values: Mapping[str, object]) -> str:
        await begin.wait()
        return await press(values)

    launcher.start = slow  # type: ignore[method-assign]
    async with client(app, **AUTH) as http:
        forms = ("scenario=one", "scenario=one", "scenario=two", "scenario=three&samples=0")
        pressed = [
            asyncio.create_task(http.post("/new", content=form, headers=FORM)) for form in forms
        ]
        await asyncio.sleep(0.1)
        begin.set()
        first, second, other, refused = [await one for one in pressed]
        assert first.headers["location"] == second.headers["location"]
        assert other.headers["location"] != first.headers["location"]
        assert (refused.status_code, len(launcher.asked)) == (422, 2)
        later = await http.post("/new", content="scenario=one", headers=FORM)
        assert later.headers["location"] not in (
            first.headers["location"],
            other.headers["location"],
        )
