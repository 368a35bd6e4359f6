"""The page in a real browser: it plays, seeks and jumps, and runs nothing but its own script."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import browser
from duplex import viewer
from duplex.values import Json
from viewer_runs import make_run, write_results

BINARY = browser.find()
pytestmark = pytest.mark.skipif(
    BINARY is None, reason="no chromium on PATH: apt-get install chromium"
)

ATTACK = (
    "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=2'>"
    '"><svg onload=window.pwned=3>javascript:window.pwned=4<!--<script>]]>'
    "${window.pwned=5}{{pwned}}\u2028\u202e&lt;b&gt;"
)
KEPT_KEYS = frozenset(
    {"status", "schema_version", "module", "execution_mode", "conversation_audio", "type", "side",
     "conversation_transcript", "termination_reason", "action", "kind", "clock", "outcome"}
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("viewer") / "run_offline_20260801_101500_a1b2c3"
    make_run(made)
    return made


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    return viewer.build(folder)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    assert BINARY is not None
    with browser.browser(BINARY, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(tab: browser.Page, file: Path) -> Iterator[browser.Page]:
    """The first call of the run, whose sound is ready."""
    tab.scheme("light")
    tab.size(1280, 900)
    opened(tab, file)
    yield tab
    assert tab.errors == []


def opened(tab: browser.Page, file: Path, call: int = 1) -> None:
    tab.open(file, f"#call={call}")
    tab.wait("document.getElementById('time').textContent !== ''")


def seconds(tab: browser.Page) -> float:
    """Where playback is, as the page tells it."""
    told = tab.run("Number(document.getElementById('lanes').getAttribute('aria-valuenow'))")
    assert isinstance(told, int | float)
    return told / 1000


def waits_for(tab: browser.Page, low: float, high: float) -> None:
    at = "Number(document.getElementById('lanes').getAttribute('aria-valuenow'))"
    tab.wait(f"{at} >= {low * 1000} && {at} <= {high * 1000}")


def text(tab: browser.Page, selector: str) -> str:
    return str(tab.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def press(tab: browser.Page, selector: str) -> None:
    tab.run(f"document.querySelector({json.dumps(selector)}).click()")


def colours(shot: bytes) -> set[bytes]:
    """The distinct pixels of a PNG whose rows are not filtered away; a rough look at it."""
    assert shot[:8] == b"\x89PNG\r\n\x1a\n"
    packed, at = b"", 8
    while at < len(shot):
        (length,) = struct.unpack(">I", shot[at : at + 4])
        if shot[at + 4 : at + 8] == b"IDAT":
            packed += shot[at + 8 : at + 8 + length]
        at += length + 12
    raw = zlib.decompress(packed)
    return {raw[i : i + 3] for i in range(0, len(raw) - 3, 97)}


# -- hearing -------------------------------------------------------------------------


def test_space_plays_and_pauses_and_the_playhead_moves(page: browser.Page) -> None:
    page.key(" ")
    waits_for(page, 0.3, 60)
    assert text(page, "#play") == "Pause"
    page.key(" ")
    page.wait("document.getElementById('play').textContent === 'Play'")
    stopped = seconds(page)
    assert page.run("new Promise((done) => setTimeout(() => done(true), 150))")
    assert seconds(page) == stopped


def test_a_click_on_the_timeline_seeks_there(page: browser.Page) -> None:
    box = page.run(
        "(() => { const b = document.getElementById('lanes').getBoundingClientRect();"
        " return [b.left, b.top, b.width] })()"
    )
    assert isinstance(box, list)
    left, top, width = (float(str(one)) for one in box)
    page.click(left + width / 2, top + 50)
    total = page.run("Number(document.getElementById('lanes').getAttribute('aria-valuemax'))")
    assert isinstance(total, int | float)
    waits_for(page, total / 2000 - 0.05, total / 2000 + 0.05)


def test_a_line_of_the_transcript_seeks_and_lights_up(page: browser.Page) -> None:
    wanted = page.run("JSON.parse(document.getElementById('call-0').textContent).lines[1].start")
    assert isinstance(wanted, int | float)
    press(page, "#lines li:nth-child(2) button")
    waits_for(page, wanted / 1000 - 0.01, wanted / 1000 + 0.01)
    assert page.run("document.querySelector('#lines li:nth-child(2)').ariaCurrent") == "true"
    assert page.run("document.querySelectorAll('#lines [aria-current=true]').length") == 1


def test_lines_light_up_in_turn_while_it_plays(page: browser.Page) -> None:
    page.run("document.getElementById('speed').value = '2'")
    page.run("document.getElementById('speed').dispatchEvent(new Event('change'))")
    page.key(" ")
    page.wait("document.querySelector('#lines li:nth-child(1)').ariaCurrent === 'true'")
    page.wait("document.querySelector('#lines li:nth-child(2)').ariaCurrent === 'true'")
    assert page.run("document.querySelector('#lines li:nth-child(1)').ariaCurrent") is None


def test_one_side_can_be_heard_alone(page: browser.Page) -> None:
    for key, side in (("c", "Caller"), ("a", "Assistant"), ("b", "Both")):
        page.key(key)
        assert text(page, "[data-solo][aria-pressed=true]") == side
    page.key("c")
    page.key(" ")
    waits_for(page, 0.3, 60)


def test_the_sound_of_one_side_is_that_side_only(page: browser.Page) -> None:
    """What reaches the ears is taken off the graph: tones of 210 and 340 Hz tell the sides."""
    probe = """
      new Promise(async (done) => {
        const call = JSON.parse(document.getElementById('call-0').textContent);
        const line = call.lines.find((one) => one.kind === 'said' && one.side === 'assistant');
        const connect = AudioNode.prototype.connect;
        let ears = null;
        AudioNode.prototype.connect = function (to, ...rest) {
          if (to instanceof AudioDestinationNode) {
            ears = new AnalyserNode(this.context, { fftSize: 2048 });
            connect.call(this, ears);
          }
          return connect.call(this, to, ...rest);
        };
        const loudest = async (side) => {
          document.querySelector(`[data-solo=${side}]`).click();
          document.querySelector('#lines li:nth-child(1) button').click();
          const heard = new Float32Array(2048);
          let peak = 0;
          for (let i = 0; i < 25; i += 1) {
            await new Promise((next) => setTimeout(next, 20));
            ears.getFloatTimeDomainData(heard);
            if (i > 8) peak = Math.max(peak, ...heard.map(Math.abs));
          }
          return peak;
        };
        document.querySelector('[data-solo=assistant]').click();
        document.querySelector('#play').click();
        done([await loudest('assistant'), await loudest('caller')]);
      })
    """
    peaks = page.run(probe)
    assert isinstance(peaks, list)
    assistant, caller = (float(str(peak)) for peak in peaks)
    assert assistant > 0.1
    assert caller < 0.01


# -- finding -------------------------------------------------------------------------


def test_j_and_k_go_from_turn_to_turn(page: browser.Page) -> None:
    starts = page.run(
        "JSON.parse(document.getElementById('call-0').textContent).tracks.turns.map(t => t.start)"
    )
    assert isinstance(starts, list)
    first, second = (float(str(start)) / 1000 for start in starts[:2])
    page.key("j")
    waits_for(page, first - 0.01, first + 0.01)
    page.key("j")
    waits_for(page, second - 0.01, second + 0.01)
    page.key("k")
    waits_for(page, first - 0.01, first + 0.01)


def test_arrows_move_by_a_second_and_stop_at_the_ends(page: browser.Page) -> None:
    page.key("ArrowRight")
    waits_for(page, 0.99, 1.01)
    page.key("ArrowLeft")
    page.key("ArrowLeft")
    waits_for(page, 0, 0)


def test_evidence_of_a_check_jumps_to_its_span(page: browser.Page) -> None:
    find = (
        "JSON.parse(document.getElementById('call-0').textContent).checks"
        ".find(c => c.id === 'grounded_assistant_response').places[0].start"
    )
    wanted = page.run(find)
    assert isinstance(wanted, int | float)
    page.run(
        "[...document.querySelectorAll('.jump')]"
        ".find(b => b.textContent.includes('last tool')).click()"
    )
    waits_for(page, wanted / 1000 - 0.01, wanted / 1000 + 0.01)


def test_scenario_and_sample_can_be_chosen(page: browser.Page) -> None:
    assert text(page, "#samples [aria-pressed=true]") == "✓ sample 1"
    press(page, "#samples button:nth-child(2)")
    assert text(page, "#samples [aria-pressed=true]") == "✓ sample 2"
    assert page.run("location.hash") == "#call=2"
    page.run("document.getElementById('scenario').value = '2'")
    page.run("document.getElementById('scenario').dispatchEvent(new Event('change'))")
    assert text(page, "#sentence").startswith("cut_in failed")
    page.key("]")
    assert text(page, "#sentence").startswith("refused does not count")
    assert page.run("document.getElementById('play').disabled") is True
    assert "assistant_connection" in text(page, "#error")


def test_without_being_asked_it_shows_the_first_call_that_did_not_pass(
    page: browser.Page, file: Path
) -> None:
    page.open(file)
    page.wait("document.getElementById('sentence').textContent.startsWith('cut_in failed')")


def test_a_run_without_calls_says_so(page: browser.Page, tmp_path: Path) -> None:
    write_results(tmp_path, [])
    page.open(viewer.build(tmp_path))
    assert text(page, "#sentence") == "This run holds no call yet."
    assert page.run("document.getElementById('stage').hidden") is True


def test_zoom_keeps_what_was_jumped_to_in_view(page: browser.Page) -> None:
    before = page.run("document.getElementById('window').hidden")
    for _ in range(6):
        page.key("+")
    assert before is True
    assert page.run("document.getElementById('window').hidden") is False
    press(page, "#panels table .go:last-child")
    assert page.run("document.getElementById('playhead').hidden") is False
    page.key("0")
    assert page.run("document.getElementById('window').hidden") is True


def test_a_definition_is_shown_on_hover(page: browser.Page) -> None:
    box = page.run(
        "(() => { const r = [...document.querySelectorAll('.row summary')]"
        ".find(s => s.textContent.startsWith('response latency'));"
        " r.scrollIntoView({ block: 'center', behavior: 'instant' });"
        " const b = r.getBoundingClientRect(); return [b.left + 20, b.top + 5] })()"
    )
    assert isinstance(box, list)
    x, y = (float(str(one)) for one in box)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    page.wait("!document.getElementById('tip').hidden")
    assert text(page, "#tip").startswith("Start of an assistant turn minus the end")


def test_help_opens_and_closes_by_key(page: browser.Page) -> None:
    page.key("?")
    assert page.run("document.getElementById('help').open") is True
    page.key("Escape")
    page.wait("!document.getElementById('help').open")


# -- looks -------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_systems_colours(page: browser.Page, file: Path, scheme: str) -> None:
    page.scheme(scheme)
    opened(page, file)
    shown = page.run("getComputedStyle(document.body).backgroundColor")
    assert isinstance(shown, str)
    red = int(shown.removeprefix("rgb(").split(",")[0])
    assert (red < 64) == (scheme == "dark")
    assert len(colours(page.screenshot())) > 8


@pytest.mark.parametrize("call", [1, 3, 4])
def test_at_400_pixels_nothing_is_cut_off(page: browser.Page, file: Path, call: int) -> None:
    page.size(400, 860, mobile=True)
    opened(page, file, call)
    assert page.run("document.documentElement.scrollWidth") == 400
    assert page.run("parseFloat(getComputedStyle(document.body).fontSize) >= 14") is True


def test_at_400_pixels_no_table_has_to_be_moved_sideways(page: browser.Page, file: Path) -> None:
    for width, stacked in ((400, True), (1280, False)):
        page.size(width, 860, mobile=stacked)
        opened(page, file, 1)
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        boxes = "[...document.querySelectorAll('.scroll')]"
        assert page.run(f"{boxes}.length") == 3, "all calls, limits, turns"
        assert page.run(f"{boxes}.every((box) => box.scrollWidth <= box.clientWidth)") is True
        columns = "getComputedStyle(box.querySelector('td')).display === 'table-cell'"
        assert (
            page.run(f"{boxes}.every((box) => ({columns}) === {str(not stacked).lower()})") is True
        )
    headings = "[...document.querySelectorAll('.scroll td')].map((cell) => cell.dataset.heading)"
    assert page.run(f"{headings}.includes('wanted') && {headings}.includes('latency')") is True


# -- strangers' words ----------------------------------------------------------------


def test_nothing_is_fetched_but_the_page_and_its_own_sound(page: browser.Page) -> None:
    assert page.requests
    assert {request.split(":")[0] for request in page.requests} <= {"file", "blob", "about"}
    assert sum(request.startswith("file:") for request in page.requests) == 1


def test_hostile_text_in_every_field_stays_text(
    tab: browser.Page, folder: Path, tmp_path: Path
) -> None:
    spoilt = tmp_path / "run_<img src=x onerror=window.pwned=6>"
    make_run(spoilt)
    _spoil(spoilt)
    file = viewer.build(spoilt)
    for call in (4, 3, 2, 1):
        opened(tab, file, call)
        scripts = tab.run("document.querySelectorAll('body script').length")
        tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        tab.run("document.querySelectorAll('.jump, .line').forEach((one) => one.click())")
        assert tab.run("window.pwned") is None
        assert tab.errors == []
        # Blocks of four calls and three sounds, one of the run, and the page's own script.
        assert scripts == 4 + 3 + 1 + 1
        assert tab.run("document.querySelectorAll('img, svg, iframe').length") == 0
    assert "<img src=x" in text(tab, "#lines")
    assert "</script><script>" in text(tab, "#sentence")


def test_the_policy_refuses_what_would_be_injected(page: browser.Page) -> None:
    page.run(
        "(() => { const s = document.createElement('script');"
        " try { s.textContent = 'window.pwned = 7' } catch {}"
        " document.body.append(s); })()"
    )
    assert page.run("window.pwned") is None
    refused = page.run(
        "(() => { try { document.body.innerHTML = '<i>x</i>'; return false }"
        " catch { return true } })()"
    )
    assert refused is True
    assert page.errors
    page.errors.clear()


def _spoil(folder: Path) -> None:
    """Put the attack behind every text of results and events that a peer could choose."""
    results = folder / "results.json"
    results.write_text(json.dumps(_spoilt(json.loads(results.read_text()))), encoding="utf-8")
    for log in (folder / "events").iterdir():
        lines = [json.dumps(_spoilt(json.loads(line))) for line in log.read_text().splitlines()]
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _spoilt(value: Json, key: str = "") -> Json:
    if isinstance(value, dict):
        # Where names are free they are a peer's words too.
        free = ATTACK if key in ("checks", "evidence", "arguments", "state") else ""
        return {f"{name}{free}": _spoilt(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_spoilt(item) for item in value]
    if isinstance(value, str) and key not in KEPT_KEYS and value not in ("deterministic", "valid"):
        return f"{value}{ATTACK}"
    return value
