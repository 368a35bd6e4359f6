"""Build the line of one leg from the effects of a condition.

It turns decibels, milliseconds and names into the plain numbers that ``_line`` runs
on, all rounded before use. It never touches audio and decides nothing while a call
runs; the engine and ``duplex degrade`` are given what it builds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from duplex import beds
from duplex._line import Line as Line
from duplex._line import stream_key
from duplex.conditions import (
    AcousticEcho,
    BackgroundSpeech,
    Bursts,
    Echo,
    Effect,
    Microphone,
    Network,
    Noise,
    PacketLoss,
    Reverb,
    SideSpeech,
    Telephony,
    Tics,
)
from duplex.errors import InputError
from duplex.line_filters import butterworth, decimator, looked_ahead, rounded
from duplex.line_material import (
    DRAWS,
    arrivals,
    chance,
    clips,
    drift,
    gain_for,
    rounded32,
)
from duplex.line_material import sounds as sounds

RATES_HZ = (8_000, 16_000, 24_000, 48_000)
"""Rates a line can have: those that a telephone's 8 kHz divides and the detectors hear."""
EXPECTED_RMS = rounded(32768 * 10 ** (beds.LEVEL_DBOV / 20))
"""RMS of active speech, as every speaker but a live one is levelled."""
STREAMS = {
    title: number
    for number, title in enumerate(
        (
            "noise",
            "bursts",
            "background_speech",
            "echo",
            "acoustic_echo",
            "reverb",
            "microphone",
            "telephony",
            "packet_loss",
            "network",
            "tics",
            "side_speech",
        )
    )
}
"""Each effect's own stream of random numbers; a number never changes its effect."""

LAWS = ("mu", "a")
"""G.711's laws by the kernels' numbers; mu-law as the ITU's tools decide it."""

_WHITE_RMS = math.sqrt((65536**2 - 1) / 3)
_LEVELS = 256
_JITTERS = 1_024
_QUIET_BLOCKS = 15
_HOLD_MS, _HOLD_BOUNDS_MS = 120, (20, 400)
_PACKET_MS = 20
_MUFFLED_HZ = 1_500
# Mutually prime, in units of 1/48 ms, so that no two repeat together.
_ROOM_48 = (487, 601, 743, 887, 1049, 1213, 1429, 1621)

Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A caller's sound or a burst that a line added: ``[start, end)`` at the session rate."""

    effect: str
    kind: str
    start: int
    end: int


def build_line(
    effects: Sequence[Effect],
    *,
    rate_hz: int,
    seed: int,
    leg: int = 0,
    live: bool = False,
    speaker_dbov: float | None = None,
    kernels: str | None = None,
) -> Line | None:
    """Return the line of one leg, None when ``effects`` is empty: a clean leg is no line.

    ``leg`` is 0 for the way from the caller, 1 for the way back; each has its own
    random numbers. ``speaker_dbov`` is the active level of a speaker who was not brought
    to the usual one. ``live``: nobody knows it beforehand, so what is relative to the
    speaker follows the measured level.

    Raises:
        InputError: the rate, a sound or a combination that cannot be had.
    """
    if not effects:
        return None
    if rate_hz not in RATES_HZ:
        wanted = ", ".join(map(str, RATES_HZ))
        raise InputError(f"condition: a rate of {rate_hz} Hz, wanted one of {wanted} Hz")
    try:
        line = Line(rate_hz, _speaker_rms(speaker_dbov), live, kernels)
        for effect in effects:
            key = stream_key(seed % DRAWS, leg, STREAMS[effect.title])
            _ADD[type(effect)](line, effect, key, live)
    except ValueError as error:
        raise InputError(f"condition: {error}") from error
    return line


def _speaker_rms(level_dbov: float | None) -> float:
    if level_dbov is None:
        return EXPECTED_RMS
    return rounded(32768 * 10 ** (level_dbov / 20))


def labels(line: Line, effects: Sequence[Effect]) -> list[Label]:
    """Return the sounds that ended on ``line`` since the last call, in order of their ends."""
    names = {number: title for title, number in STREAMS.items()}
    of_title = {effect.title: effect for effect in effects}
    return [
        Label(
            effect=names[number],
            kind=clips(of_title[names[number]], line.rate_hz)[clip].kind,
            start=start,
            end=end,
        )
        for number, clip, start, end in line.labels()
    ]


# ---- one function an effect ----


def _noise(line: Line, effect: Noise, key: int, live: bool) -> None:
    follows = live and effect.rms is None
    if effect.rms is not None:
        wanted = effect.rms
    elif effect.gain is not None:
        wanted = effect.gain * line.level
    else:
        assert effect.snr is not None
        wanted = line.level * 10 ** (-effect.snr / 20)
    factors = drift(effect.drift_db, line.rate_hz, key) if effect.drift_db else None
    if effect.kind == "white":
        line.add_bed(key, None, rounded32(wanted / _WHITE_RMS), factors, follows)
        return
    loop = beds.bed(effect.kind, line.rate_hz).samples
    line.add_bed(key, loop, gain_for(loop, wanted), factors, follows)


def _background(line: Line, effect: BackgroundSpeech, key: int, live: bool) -> None:
    gain = effect.gain
    if gain is None:
        assert effect.snr is not None
        gain = 10 ** (-effect.snr / 20)
    loop = beds.background_speech(effect.voices, line.rate_hz).samples
    line.add_bed(key, loop, gain_for(loop, gain * line.level), None, live)


def _bursts(line: Line, effect: Bursts, key: int, live: bool) -> None:
    span = effect.snr_max - effect.snr_min
    levels = [effect.snr_min + span * (k + 0.5) / _LEVELS for k in range(_LEVELS)]
    loud = line.level / EXPECTED_RMS
    gains = [rounded(loud * 10 ** (-level / 20)) for level in levels]
    line.add_sounds(
        key,
        STREAMS[effect.title],
        sounds(effect, line.rate_hz),
        gains,
        arrivals(effect.rate_per_min),
        0,
        live,
    )


def _own_sounds(line: Line, effect: Tics | SideSpeech, key: int, live: bool) -> None:
    every = 0 if effect.every_ms is None else line.rate_hz * effect.every_ms // 1000
    line.add_sounds(
        key,
        STREAMS[effect.title],
        sounds(effect, line.rate_hz),
        [rounded(line.level / EXPECTED_RMS)] * _LEVELS,
        arrivals(effect.rate_per_min),
        every,
        live,
        _QUIET_BLOCKS,
    )


def _echo(line: Line, effect: Echo, key: int, live: bool) -> None:
    delay = line.rate_hz * effect.delay_ms // 1000
    line.set_echo(delay, rounded(effect.gain), rounded(effect.decay))


def _acoustic(line: Line, effect: AcousticEcho, key: int, live: bool) -> None:
    delay = line.rate_hz * effect.delay_ms // 1000
    line.set_acoustic(delay, rounded(effect.gain), rounded(effect.decay))


def _reverb(line: Line, effect: Reverb, key: int, live: bool) -> None:
    delays = [unit * line.rate_hz // 48_000 for unit in _ROOM_48]
    rt60 = line.rate_hz * effect.rt60_ms / 1000
    gains = [rounded(10 ** (-3 * delay / rt60)) for delay in delays]
    line.set_reverb(delays, gains, rounded(10 ** (effect.drr / 10)), math.ceil(rt60 * 1.2))


def _microphone(line: Line, effect: Microphone, key: int, live: bool) -> None:
    rate = line.rate_hz
    band = []
    if effect.low_hz:
        band += butterworth(2, effect.low_hz, rate, "high")
    if effect.high_hz and effect.high_hz < rate / 2:
        band += butterworth(2, effect.high_hz, rate, "low")
    line.set_microphone(
        [looked_ahead(section) for section in band],
        [looked_ahead(section) for section in butterworth(4, _MUFFLED_HZ, rate, "low")],
        key,
        chance(effect.muffle_prob),
        rounded(10 ** (effect.level_db / 20)),
        effect.agc,
        round(effect.dc * 32768),
        round(32768 * 10 ** (effect.clip / 20)) if effect.clip else 32768,
        effect.bits,
    )


@cache
def _telephone_band() -> list[tuple[tuple[float, ...], float, float]]:
    return [
        looked_ahead(section)
        for section in (
            *butterworth(4, 300, 8_000, "high"),
            *butterworth(4, 3_400, 8_000, "low"),
        )
    ]


def _telephony(line: Line, effect: Telephony, key: int, live: bool) -> None:
    down = decimator(line.rate_hz)
    line.set_telephony(
        down.factor,
        down.taps,
        down.phases,
        _telephone_band(),
        rounded(effect.gain),
        LAWS.index(effect.law),
    )


def _packet_loss(line: Line, effect: PacketLoss, key: int, live: bool) -> None:
    packet = line.rate_hz * effect.packet_ms // 1000
    loss, packets = effect.loss, effect.burst_ms / effect.packet_ms
    if effect.model == "iid":
        model, burst, to_bad, to_good = 1, 1, loss, 1.0
    elif effect.model == "fixed_burst":
        burst = round(packets)
        # A burst and the least one packet after it that comes through make a cycle.
        model, to_bad, to_good = 2, loss / (burst * (1 - loss)), 1.0
    else:
        model, burst, to_good = 3, 1, 1 / packets
        to_bad = to_good * loss / (1 - loss)
    line.set_loss(
        key,
        model,
        packet,
        burst,
        chance(to_bad),
        chance(to_good),
        chance(loss if model == 3 else to_bad),
        effect.concealment != "none",
    )


def _network(line: Line, effect: Network, key: int, live: bool) -> None:
    per_ms = line.rate_hz / 1000
    # Equal shares of an exponential distribution, each at its middle.
    jitters = [
        round(-math.log(1 - (k + 0.5) / _JITTERS) * effect.jitter_ms * per_ms)
        for k in range(_JITTERS)
    ]
    stalls = 1 - math.exp(-effect.stalls_per_min / 60 * _PACKET_MS / 1000)
    least, most = (round(bound * per_ms) for bound in _HOLD_BOUNDS_MS)
    line.set_network(
        key,
        round(_PACKET_MS * per_ms),
        round(effect.base_ms * per_ms),
        jitters,
        chance(effect.reorder),
        chance(stalls),
        round(effect.stall_ms * per_ms),
        round(_HOLD_MS * per_ms),
        (least, most),
    )


_ADD: dict[type[Effect], Callable[..., None]] = {
    Noise: _noise,
    Bursts: _bursts,
    BackgroundSpeech: _background,
    Echo: _echo,
    AcousticEcho: _acoustic,
    Reverb: _reverb,
    Microphone: _microphone,
    Telephony: _telephony,
    PacketLoss: _packet_loss,
    Network: _network,
    Tics: _own_sounds,
    SideSpeech: _own_sounds,
}
