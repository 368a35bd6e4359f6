"""The webrtc detector: its filter, ours against the installed one, its failures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import webrtcvad
from scipy import signal

from duplex import _core, detect
from duplex.detect import segments
from duplex.engine import Pcm
from duplex.values import Side, Span
from reference import filter_table

TABLES_HZ = (16_000, 24_000, 48_000)


def speechlike(rate_hz: int, seconds: float, seed: int = 3) -> Pcm:
    """Bursts of a buzzing voice in faint noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(rate_hz * seconds)) / rate_hz
    buzz = sum(np.sin(2 * np.pi * 130 * k * t) / k for k in range(1, 20))
    loud = np.sin(2 * np.pi * 1.3 * t) > 0.1
    return np.array(np.rint(5000 * buzz * loud + rng.normal(0, 20, len(t))), np.int16)


@pytest.mark.parametrize("rate_hz", TABLES_HZ)
def test_the_filter_is_what_its_comment_says(rate_hz: int) -> None:
    taps = filter_table(rate_hz)
    half = len(taps) // 2
    assert taps == taps[::-1]
    assert sum(taps) == 32_768
    assert half % (rate_hz // 8000) == 0
    assert half / rate_hz <= 0.002
    # The largest sum an int32 must hold, with the rounding half added.
    assert sum(abs(tap) for tap in taps) * 32_768 + (1 << 14) < 2**31
    freqs, response = signal.freqz(np.array(taps) / 32_768, worN=1 << 14, fs=rate_hz)
    level_db = 20 * np.log10(np.abs(response) + 1e-12)
    assert level_db[freqs >= 4600].max() <= -60
    assert np.abs(level_db[freqs <= 3400]).max() <= 0.11


def python_decisions(pcm: Pcm, rate_hz: int) -> list[bool]:
    """The same detector input, made with numpy, through the Python call."""
    frame = rate_hz // 100
    narrow = pcm
    if rate_hz != 8000:
        taps = np.array(filter_table(rate_hz), np.int64)
        filtered = (np.convolve(pcm.astype(np.int64), taps, "same") + (1 << 14)) >> 15
        narrow = np.clip(filtered, -32768, 32767).astype(np.int16)[:: rate_hz // 8000]
    vad = webrtcvad.Vad(2)
    return [
        vad.is_speech(narrow[80 * k : 80 * k + 80].tobytes(), 8000)
        for k in range(len(pcm) // frame)
    ]


def joined(decisions: list[bool], frame: int) -> list[Span]:
    edges = np.flatnonzero(np.diff(np.array([False, *decisions, False], np.int8))) * frame
    return [
        Span(start=int(start), end=int(end))
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    ]


@pytest.mark.parametrize("rate_hz", [8_000, *TABLES_HZ])
def test_segments_are_the_python_calls_decisions(rate_hz: int) -> None:
    pcm = speechlike(rate_hz, 6.0)
    expected = joined(python_decisions(pcm, rate_hz), rate_hz // 100)
    assert len(expected) >= 4
    assert segments(pcm, rate_hz, "webrtc") == expected


@pytest.mark.parametrize("rate_hz", TABLES_HZ)
def test_every_build_of_the_kernels_gives_the_same(
    rate_hz: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    # Full scale of random sign is the hardest case for the filter's sums.
    pcm = np.concatenate(
        [speechlike(rate_hz, 3.0), rng.choice([-32_768, 32_767], rate_hz).astype(np.int16)]
    )
    here = segments(pcm, rate_hz, "webrtc")
    monkeypatch.setattr(_core, "WIDE_KERNELS", False)
    assert segments(pcm, rate_hz, "webrtc") == here
    assert here == joined(python_decisions(pcm, rate_hz), rate_hz // 100)


def through_python(pcm: Pcm) -> list[tuple[int, int, int, int]]:
    engine = _core.Engine(24_000, len(pcm), "webrtc", (0, 0), len(pcm), False)
    engine.feed(0, pcm)
    engine.advance(1)
    engine.finish()
    return engine.drain()


def test_without_ours_the_python_call_gives_the_same() -> None:
    pcm = speechlike(24_000, 3.0)
    spans = [
        Span(start=start, end=end)
        for kind, _, start, end in through_python(pcm)
        if kind == _core.SEGMENT_KIND
    ]
    assert spans == segments(pcm, 24_000, "webrtc")


def test_our_detector_stands_for_the_installed_one_here() -> None:
    assert detect.webrtc_backend() == "native"


def hard_signal(kind: str, seconds: int = 130) -> Pcm:
    """8 kHz that overflows, falls silent, drifts, or leaves the detector's memory behind."""
    rng = np.random.default_rng(17)
    count = 8_000 * seconds
    levels = np.repeat(10 ** rng.uniform(-1, 4.6, count // 800 + 1), 800)[:count]
    made: npt.NDArray[np.float64]
    match kind:
        case "full scale of random sign":
            made = rng.choice([-32_768.0, 32_767.0], count)
        case "long steps":
            made = np.repeat(rng.choice([-32_768.0, 0.0, 32_767.0], count // 40), 40)
        case "all levels":
            made = rng.normal(0, 1, count) * levels
        case "barely any":
            made = rng.integers(-2, 3, count).astype(np.float64)
        case "a drifting rumble":
            made = np.cumsum(rng.normal(0, 300, count))
        case _:
            made = speechlike(8_000, seconds) + rng.normal(0, 400, count)
    return np.asarray(np.clip(np.rint(made), -32_768, 32_767), np.int16)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        "full scale of random sign",
        "long steps",
        "all levels",
        "barely any",
        "a drifting rumble",
        "voice in noise",
    ],
)
def test_our_detector_decides_as_the_installed_one(
    kind: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "WIDE_KERNELS", wide and _core.WIDE_KERNELS)
    one, other = hard_signal(kind), hard_signal("all levels")[::-1].copy()
    stream = detect.Stream(8_000, "webrtc")
    found = [*stream.push(one, other), *stream.finish()]
    for side, pcm in zip(Side, (one, other), strict=True):
        spans = [segment.span for segment in found if segment.side is side]
        assert spans == joined(python_decisions(pcm, 8_000), 80)


def test_a_detector_that_fails_is_an_error_and_never_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def __init__(self, mode: int) -> None:
            self.left = 3

        def is_speech(self, buf: bytes, rate: int) -> bool:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("no frame")
            return False

    monkeypatch.setattr(webrtcvad, "Vad", Broken)
    engine = _core.Engine(24_000, 480, "webrtc", (0, 0), 24_000, False)
    engine.advance(1)
    with pytest.raises(RuntimeError, match="refused the frame at sample 720"):
        engine.advance(2)
    with pytest.raises(RuntimeError, match="finished"):
        engine.advance(1)


class Contrary:
    """Says the opposite of the Python call."""

    def __init__(self) -> None:
        self.vad = webrtcvad.Vad(2)

    def is_speech(self, buf: bytes, sample_rate: int) -> bool:
        return not self.vad.is_speech(buf, sample_rate)


def test_a_detector_that_disagrees_with_the_python_call_is_not_used() -> None:
    assert not _core.webrtc_agrees(Contrary())
    assert _core.webrtc_agrees(webrtcvad.Vad(2))
    assert not _core.webrtc_agrees(webrtcvad.Vad(3))


@pytest.mark.parametrize("rate_hz", [8_000, *TABLES_HZ])
def test_an_onset_is_dated_at_the_frame_it_falls_in(rate_hz: int) -> None:
    pcm = np.zeros(rate_hz, np.int16)
    pcm[rate_hz // 2 :] = speechlike(rate_hz, 1.0)[rate_hz // 4 : 3 * rate_hz // 4]
    found = segments(pcm, rate_hz, "webrtc")
    assert found[0].start == rate_hz // 2
