"""The viewer's page, read without a browser: what is in it, and what never can be."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex import viewer
from duplex.errors import DuplexError, InputError
from duplex.results import read_run, schema
from duplex.results.run import headline
from duplex.values import Json, Side
from duplex.viewer import say, sound
from duplex.viewer.page import data
from duplex.viewer.reading import Reasons, clean, number, pretty
from duplex.wavfile import read_wav
from viewer_runs import make_run, write_results

STALE = "the timing block is not measured by this version"


class Parsed(HTMLParser):
    """Every element with its attributes, and what scripts and styles hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self.code: list[str] = []
        self.style = ""
        self.text = ""
        self._inside: tuple[str, dict[str, str | None]] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs)) if tag in ("script", "style") else self._inside
        if tag == "script" and dict(attrs).get("id"):
            self.blocks[str(dict(attrs)["id"])] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.text += data
        elif self._inside[0] == "style":
            self.style += data
        elif self._inside[1].get("id"):
            self.blocks[str(self._inside[1]["id"])] += data
        else:
            self.code.append(data)

    def block(self, name: str) -> dict[str, Json]:
        found = json.loads(self.blocks[name])
        assert isinstance(found, dict)
        return found

    def policy(self) -> str:
        (found,) = (
            a["content"] or "" for t, a in self.elements if t == "meta" and "http-equiv" in a
        )
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("viewer") / "run_offline_20260801_101500_a1b2c3"
    make_run(made)
    viewer.build(made)
    return made


@pytest.fixture(scope="module")
def page(folder: Path) -> Parsed:
    return Parsed((folder / "viewer.html").read_text(encoding="utf-8"))


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may spoil."""
    return Path(shutil.copytree(folder, tmp_path / folder.name))


def results(folder: Path) -> schema.Run:
    return read_run((folder / "results.json").read_text(encoding="utf-8"))


def rebuilt(folder: Path) -> Parsed:
    return Parsed(viewer.build(folder).read_text(encoding="utf-8"))


def rows(call: dict[str, Json], title: str) -> dict[str, dict[str, Json]]:
    """A panel's rows by name."""
    panels = call["panels"]
    assert isinstance(panels, list)
    (panel,) = (p for p in panels if isinstance(p, dict) and p["title"] == title)
    listed = panel["rows"]
    assert isinstance(listed, list)
    return {str(row["name"]): row for row in listed if isinstance(row, dict)}


def entries(call: dict[str, Json], name: str) -> list[dict[str, Json]]:
    found = call[name]
    assert isinstance(found, list)
    return [item for item in found if isinstance(item, dict)]


# -- the page ----------------------------------------------------------------------


def test_only_the_packages_own_script_and_style_may_run(page: Parsed) -> None:
    def digest(content: str) -> str:
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    (code,) = page.code
    policy = page.policy()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest(code)}';" in policy
    assert f"style-src 'sha256-{digest(page.style)}';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_outside_the_page_is_named(page: Parsed) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base"), tag
        for name, value in attributes.items():
            assert name not in ("src", "action", "srcset", "style"), (tag, name)
            assert not name.startswith("on"), (tag, name)
            assert name != "href" or str(value).startswith("#"), (tag, value)
    own = page.code[0] + page.style + page.text
    assert not re.search(r"https?:|//[a-z]|@import|url\(", re.sub(r"(?m)^\s*//.*$", "", own))


def test_the_script_uses_no_sink_that_makes_markup_or_code(page: Parsed) -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|setTimeout"
    assert not re.search(sinks, page.code[0])


def test_it_opens_with_the_sentence_of_the_results(folder: Path, page: Parsed) -> None:
    run = results(folder)
    assert page.block("run")["sentence"] == headline(run)
    assert str(page.block("call-2")["sentence"]).startswith("cut_in failed: ")


def test_two_builds_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = viewer.build(folder, tmp_path / "again.html")
    assert again.read_bytes() == (folder / "viewer.html").read_bytes()


def test_the_page_is_for_its_owner_only(folder: Path) -> None:
    assert (folder / "viewer.html").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in folder.glob(".*")] == []


# -- sound -------------------------------------------------------------------------


def test_the_sound_inside_is_the_recording_sample_by_sample(folder: Path, page: Parsed) -> None:
    content = base64.b64decode(page.blocks["sound-0"])
    samples, rate_hz = soundfile.read(io.BytesIO(content), dtype="int16")
    wav = read_wav(folder / "audio" / "booking.s1" / "conversation.wav")
    assert rate_hz == wav.rate_hz
    np.testing.assert_array_equal(samples, wav.samples)


def test_its_size_is_told(folder: Path, page: Parsed) -> None:
    held = sum(len(base64.b64decode(page.blocks[f"sound-{i}"])) for i in range(3))
    assert f"{say.plain(held / 1e6, 1)} MB of sound inside" in str(page.block("run")["size"])


def test_beyond_the_limit_the_calls_that_passed_go_silent_first(
    folder: Path, page: Parsed, tmp_path: Path
) -> None:
    limit = len(base64.b64decode(page.blocks["sound-2"]))
    built = viewer.build(folder, tmp_path / "page.html", limit=limit)
    page = Parsed(built.read_text(encoding="utf-8"))
    assert "sound-2" in page.blocks
    assert "sound-0" not in page.blocks
    assert "in the run's folder" in str(page.block("call-0")["sound"])
    assert page.block("call-0")["peaks"] is not None


NOISE = np.random.default_rng(3).normal(0, 3_000, (24_000 * 8, 2)).astype(np.int16)


@pytest.mark.parametrize(("share", "rate", "bits"), [
    (1.1, 24_000, 16), (0.8, 16_000, 16), (0.5, 8_000, 16), (0.25, 8_000, 9),
])  # fmt: skip
def test_sound_that_does_not_fit_is_lowered_and_keeps_its_place(
    share: float, rate: int, bits: int
) -> None:
    samples = NOISE.copy()
    samples[::24_000] = 32_767
    limit = int(len(sound.flac(samples, 24_000)) * share)
    found = sound.fitting(samples, 24_000, limit)
    assert found is not None
    assert (found.rate_hz, found.bits) == (rate, bits)
    assert len(found.flac) <= limit
    heard, rate_hz = soundfile.read(io.BytesIO(found.flac), dtype="int16")
    assert rate_hz == rate
    assert len(heard) == len(samples) * rate // 24_000
    for second in range(1, 8):
        around = np.abs(heard[second * rate - 40 : second * rate + 41, 0].astype(np.int32))
        assert abs(int(around.argmax()) - 40) <= 1


def test_sound_that_fits_in_no_form_is_left_out() -> None:
    assert sound.fitting(NOISE, 24_000, 1_000) is None


def test_a_long_recording_is_never_encoded_where_it_cannot_fit() -> None:
    long = np.tile(NOISE, (20, 1))
    whole = len(sound.flac(NOISE, 24_000)) * 20
    found = sound.fitting(long, 24_000, whole // 2)
    assert found is not None
    assert found.rate_hz == 8_000


@pytest.mark.parametrize("length", [0, 1, 119, 120, 121, 24_000, 4_000_037])
def test_an_outline_has_the_loudest_sample_of_every_step(length: int) -> None:
    samples = np.zeros(length, np.int16)
    if length:
        samples[-1] = -32768
    found = sound.outline(samples, 24_000)
    assert len(found.peaks) == -(-length // 120)
    assert set(found.peaks[:-1]) <= {0}
    assert found.peaks[-1:] == (b"\xff" if length else b"")


# -- figures -----------------------------------------------------------------------


def test_latencies_are_printed_as_measured_with_their_width(folder: Path, page: Parsed) -> None:
    timing = results(folder).results[0].duplex["timing"]
    assert isinstance(timing, dict)
    spread, call = timing["response_latency"], page.block("call-0")
    assert isinstance(spread, dict)
    row = rows(call, "Timing")["response latency"]
    assert row["exact"] == str(spread["p50"])
    median, width = number(spread["p50"]), number(spread["plus_minus_ms"])
    assert median is not None
    assert width is not None
    assert row["value"] == f"{say.ms(median)} median, ±{say.ms(width)}, n {spread['n']}"
    assert "Start of an assistant turn" in str(row["meaning"])
    tracks = call["tracks"]
    assert isinstance(tracks, dict)
    turns = timing["turns"]
    assert isinstance(turns, list)
    wanted = [
        (turn["start_ms"], turn["response_latency_ms"])
        for turn in turns
        if isinstance(turn, dict) and isinstance(turn["response_latency_ms"], float)
    ]
    drawn = [(b["end"], b["end"], b["start"]) for b in entries(tracks, "brackets")]
    assert [end for end, _, _ in drawn] == [start for start, _ in wanted]
    for (end, _, start), (_, latency) in zip(drawn, wanted, strict=True):
        assert isinstance(end, float)
        assert isinstance(start, float)
        assert end - start == pytest.approx(latency)


def test_a_null_is_not_known_with_its_reason_and_never_zero(folder: Path, page: Parsed) -> None:
    row = rows(page.block("call-0"), "Timing")["time to yield"]
    assert (row["value"], row["known"]) == ("not known: no barge-in", False)
    silent = page.block("call-3")
    assert {fate["count"] for fate in entries(silent, "ledger")} == {"–"}
    for name, row in rows(silent, "Contract 2.0").items():
        assert str(row["value"]).startswith("not known: "), name


def test_every_value_of_the_timing_block_is_shown_or_drawn(folder: Path, page: Parsed) -> None:
    timing = results(folder).results[2].duplex["timing"]
    assert isinstance(timing, dict)
    call = page.block("call-2")
    shown = {**rows(call, "Timing"), **rows(call, "Instrument and ticks")}
    drawn = {"timing_version", "detector", "policy", "ledger", "turns", "backchannels", "sounds"}
    for name in timing.keys() - drawn - {"segments", "unknown", "turn_taking"}:
        spoken = name.replace("_", " ")
        assert any(row == spoken or row.startswith(f"{spoken} · ") for row in shown), name


def test_without_a_timing_block_the_live_segments_are_drawn_and_named(own: Path) -> None:
    run = results(own)
    bare = []
    for result in run.results:
        ours = {**result.duplex, "timing": None, "unknown": {"/duplex/timing": STALE}}
        bare.append(result.model_copy(update={"duplex": ours}))
    write_results(own, bare)
    call = rebuilt(own).block("call-0")
    assert rows(call, "Timing")["timing"]["value"] == f"not known: {STALE}"
    tracks = call["tracks"]
    assert isinstance(tracks, dict)
    assert tracks["found_by"] == "live detector, not measured again"
    assert len(entries(tracks, "segments")) == 8
    assert entries(tracks, "brackets") == []
    assert call["ledger_note"] == "caller turns, contract 2.0"


def test_overlaps_lie_inside_voice_of_both_sides(page: Parsed) -> None:
    tracks = page.block("call-2")["tracks"]
    assert isinstance(tracks, dict)
    overlaps = entries(tracks, "overlaps")
    assert overlaps
    for side in Side:
        voiced = [s for s in entries(tracks, "segments") if s["side"] == side.label]
        for one in overlaps:
            start, end = number(one["start"]), number(one["end"])
            assert start is not None
            assert end is not None
            assert any(
                (number(s["start"]) or 0) <= start + 0.001
                and end <= (number(s["end"]) or 0) + 0.001
                for s in voiced
            )


# -- words and checks --------------------------------------------------------------


def test_words_placed_after_the_fact_are_labelled_inferred(page: Parsed) -> None:
    said = [line for line in entries(page.block("call-0"), "lines") if line["kind"] == "said"]
    for line in said:
        tags = line["tags"]
        assert isinstance(tags, list)
        assert ("inferred" in tags) == (line["side"] == "assistant")
    assert [line["text"] for line in said][1] == "A table for August seventh, please."


def test_tools_stand_in_the_transcript_with_arguments_and_time(page: Parsed) -> None:
    lines = entries(page.block("call-0"), "lines")
    (booked,) = (line for line in lines if line["text"] == "create_reservation")
    assert booked["kind"] == "tool"
    assert '"guest_name": "Maya"' in str(booked["details"])
    starts = [number(line["start"]) for line in lines]
    assert starts == sorted(s for s in starts if s is not None)


def test_a_checks_evidence_leads_to_its_moment(folder: Path, page: Parsed) -> None:
    found = {check["id"]: check for check in entries(page.block("call-0"), "checks")}
    told = results(folder).results[0].duplex["checks"]
    assert isinstance(told, dict)
    grounded = told["grounded_assistant_response"]
    assert isinstance(grounded, dict)
    evidence = grounded["evidence"]
    assert isinstance(evidence, dict)
    places = entries(found["grounded_assistant_response"], "places")
    assert [place["start"] for place in places] == [
        number(evidence["last_tool_ms"]),
        number(evidence["line_start_ms"]),
    ]
    assert entries(found["delegation_policy"], "places")


def test_lengths_in_evidence_are_no_moments(page: Parsed) -> None:
    checks = {check["id"]: check for check in entries(page.block("call-0"), "checks")}
    heard = checks["assistant_responded"]
    assert "voiced_ms" in str(heard["evidence"])
    (place,) = entries(heard, "places")
    assert str(place["name"]).startswith("first heard ")


# -- what is missing or wrong --------------------------------------------------------


def test_an_infrastructure_error_shows_its_stage_and_what_was_kept(page: Parsed) -> None:
    call = page.block("call-3")
    assert call["error"] == {
        "stage": "assistant_connection",
        "message": "the assistant answered 401",
    }
    assert "kept: 3 events, no audio" in str(call["kept"])
    assert call["mime"] is None
    assert call["peaks"] is None


def test_a_call_without_events_is_shown_from_its_results_and_sound(own: Path) -> None:
    (own / "events" / "cut_in.jsonl").unlink()
    page = rebuilt(own)
    call = page.block("call-2")
    assert "sound-2" in page.blocks
    assert "no events" in str(call["kept"])
    assert entries(call, "turns")
    assert str(own) not in json.dumps(call)


def test_audio_is_only_read_inside_the_runs_folder(own: Path) -> None:
    run = results(own)
    outside = own.parent / "outside.wav"
    shutil.copy(own / "audio" / "cut_in" / "conversation.wav", outside)
    (own / "events" / "cut_in.jsonl").unlink()
    stolen = run.results[2].artifacts.model_copy(
        update={"conversation_audio": "../outside.wav", "conversation_transcript": None}
    )
    write_results(own, [run.results[2].model_copy(update={"artifacts": stolen})])
    page = rebuilt(own)
    assert "sound-0" not in page.blocks
    assert page.block("call-0")["sound"] == "this call left no recording"


def test_a_cut_recording_is_shown_as_far_as_it_goes(own: Path) -> None:
    wav = own / "audio" / "cut_in" / "conversation.wav"
    wav.write_bytes(wav.read_bytes()[: 44 + 4 * 24_000])
    log = own / "events" / "cut_in.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    call = rebuilt(own).block("call-2")
    assert call["duration_ms"] == 1000
    assert "the last line is cut" in str(call["kept"])


@pytest.mark.parametrize(
    "timing",
    [
        {"turns": [None, 3, {"side": 7, "start_ms": "x", "end_ms": 2}], "segments": {"a": 1}},
        {"response_latency": {"p50": "high", "n": None}, "floor": [1], "ledger": []},
        {"turns": [{"side": "caller", "start_ms": 9, "end_ms": 1}], "unknown": 4},
        {"clock": {"late_ticks": {"count": True}}, "awkward_silence": {"spans": [{}]}},
    ],
)
def test_a_timing_block_of_another_shape_is_no_error(own: Path, timing: dict[str, Json]) -> None:
    run = results(own)
    first = run.results[0]
    odd = first.model_copy(update={"duplex": {**first.duplex, "timing": timing}})
    write_results(own, [odd])
    assert rebuilt(own).block("call-0")["sentence"]


def test_a_run_without_results_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no results\.json"):
        viewer.build(tmp_path)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(DuplexError, match=r"schema 2\.0"):
        viewer.build(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        viewer.build(tmp_path / "nowhere")


def test_a_page_that_cannot_be_written_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DuplexError, match="cannot be written"):
        viewer.build(folder, tmp_path / "no" / "such" / "page.html")


def test_the_command_prints_where_the_page_is(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "page.html"
    assert viewer.command(folder / "results.json", output) == 0
    told = capsys.readouterr()
    assert told.out == f"{output}\n"
    assert "MB" in told.err
    assert output.is_file()


# -- text from elsewhere -------------------------------------------------------------


@pytest.mark.parametrize(
    "hostile",
    ["</script>", "<!--<script>", "]]>", "&lt;", "\u2028\u2029", "\ud800", "\x00\x1b[2J", "'\"`"],
)
def test_data_blocks_hold_any_text_and_can_not_be_left(hostile: str) -> None:
    written = data({hostile: [hostile]})
    assert json.loads(written) == {hostile: [hostile]}
    assert written.isascii()
    assert not set("<>&\x00\x1b") & set(written)


def test_shown_text_can_not_turn_a_line_around_and_hides_secrets() -> None:
    assert clean("a\u202eb\u2066c\nd\x07") == "a b c d"
    assert "sk-abcdefghijklmnop1234" not in clean("key sk-abcdefghijklmnop1234")
    assert "hunter2" not in pretty({"password": "hunter2"})


def test_endless_results_are_cut_and_say_so() -> None:
    assert pretty("x" * 100_000).endswith("characters in all")


def test_reasons_come_from_the_nearest_pointer_above() -> None:
    reasons = Reasons({"/a": "far", "/a/b": "near"})
    assert reasons.why("/a/b/c") == "near"
    assert reasons.why("/a/x/y") == "far"
    assert reasons.why("/z", "nobody said") == "nobody said"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0 ms"),
        (5.54, "5.5 ms"),
        (643.4, "643 ms"),
        (-165.167, "−165 ms"),
        (12345.6, "12 346 ms"),
        (-0.04, "0 ms"),
    ],
)
def test_milliseconds_are_told_with_a_true_minus_and_thin_spaces(value: float, told: str) -> None:
    assert say.ms(value).replace(say.THIN, " ") == told


def test_moments_are_told_as_on_a_clock() -> None:
    assert [say.clock(ms) for ms in (0, 7304.9, 61_000, 3_600_000)] == [
        "0:00.00", "0:07.30", "1:01.00", "60:00.00",
    ]  # fmt: skip
