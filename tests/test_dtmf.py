"""Keys in telephone audio: every key is heard once, and nothing else is one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from duplex.protocols import g711
from duplex.protocols.dtmf import HIGH_HZ, KEYS, LOW_HZ, RATE_HZ, KeyEar
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm_bytes import Pcm

ALL = "".join(KEYS)


def press(key: str, ms: int = 80, level: float = 4_000.0, twist_db: float = 0.0) -> Pcm:
    row = next(row for row in KEYS if key in row)
    low, high = LOW_HZ[KEYS.index(row)], HIGH_HZ[row.index(key)]
    t = np.arange(ms * RATE_HZ // 1000) / RATE_HZ
    other = level * 10 ** (twist_db / 20)
    tones = level * np.sin(2 * np.pi * low * t) + other * np.sin(2 * np.pi * high * t + 1)
    pcm: Pcm = np.clip(np.rint(tones), -32_768, 32_767).astype(np.int16)
    return pcm


def keys(pcm: Pcm) -> str:
    ear = KeyEar()
    return "".join(ear.hear(pcm[at : at + 160]) for at in range(0, len(pcm) - 159, 160))


def quiet(ms: int) -> Pcm:
    return np.zeros(ms * RATE_HZ // 1000, np.int16)


@pytest.mark.parametrize("shift", [0, 37, 80, 123])
def test_every_key_is_heard_once_wherever_it_falls(shift: int) -> None:
    parts = [np.zeros(shift, np.int16)]
    for key in ALL:
        parts += [press(key), quiet(60)]
    assert keys(np.concatenate(parts)) == ALL


def test_a_key_is_heard_through_mu_law_noise_and_unequal_tones() -> None:
    noise = np.random.default_rng(3).normal(0, 200, 1_280)
    for key in ALL:
        for twist in (-6.0, 0.0, 4.0):
            sound = np.clip(press(key, 160, twist_db=twist) + noise, -32_768, 32_767)
            told = g711.decode(g711.encode(sound.astype(np.int16), "mu"), "mu")
            assert keys(told) == key, (key, twist)


def test_a_long_press_is_one_key_and_two_presses_are_two() -> None:
    assert keys(press("5", 2_000)) == "5"
    assert keys(np.concatenate((press("5"), quiet(60), press("5")))) == "55"


@pytest.mark.parametrize(
    "sound",
    [
        quiet(1_000),
        press("5", 20),
        press("5", 400, level=60),
        press("5", 400, twist_db=15),
        np.rint(8_000 * np.sin(np.arange(8_000) * 0.6)).astype(np.int16),
        np.random.default_rng(1).integers(-9_000, 9_000, 16_000).astype(np.int16),
    ],
    ids=["silence", "too short", "too faint", "one tone", "a whistle", "noise"],
)
def test_what_is_no_key_is_not_taken_for_one(sound: Pcm) -> None:
    assert keys(sound) == ""


def test_voices_are_not_taken_for_keys() -> None:
    t = np.arange(RATE_HZ * 20) / RATE_HZ
    pitch = 110 + 60 * np.sin(2 * np.pi * 0.3 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE_HZ
    voice = sum(np.sin(k * phase) / k for k in range(1, 22))
    gate = np.clip(np.sin(2 * np.pi * 3.3 * t) + 0.6, 0, 1)
    assert keys(np.rint(4_000 * voice * gate).astype(np.int16)) == ""


def test_a_stream_tells_of_a_key_after_the_audio_that_held_it() -> None:
    stream = MediaStream(StreamIds.drawn(7))
    messages = list(stream.opening())
    sound = np.concatenate((quiet(40), press("9", 80), quiet(40)))
    for at in range(0, len(sound), 160):
        frame = sound[at : at + 160]
        messages += [stream.audio(frame), *stream.beside(frame)]
    told = [json.loads(one) for one in messages[1:]]
    assert [one["event"] for one in told].count("dtmf") == 1
    assert [int(one["sequenceNumber"]) for one in told] == list(range(1, len(told) + 1))
    (key,) = [one for one in told if one["event"] == "dtmf"]
    assert key["dtmf"] == {"track": "inbound_track", "digit": "9"}
