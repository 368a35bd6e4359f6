"""Conversations of real speech with the timing of ITU-T P.59, whose truth is known exactly.

Clips are cut where they can be heard (5 ms windows above −45 dBFS) and levelled
afterwards, so what is planted begins and ends where it was placed. The speech
is a folder of clips, a Debian package of telephone prompts, or the embedded voices.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from duplex.active_level import speech_level
from duplex.local.engines import SpeechEngines
from duplex.local.seams import Style
from duplex.resample import resample
from duplex.values import Side
from duplex.wavfile import read_wav

RATE = 24_000
Pcm = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]

SPEECH_FOLDER = os.environ.get("DUPLEX_SPEECH", "/usr/share/asterisk/sounds")
"""Clips of one speaker a folder; the default is where Debian puts its prompts."""
SINGLE_TALK_TO_SILENCE = 0.6
MUTUAL_SILENCE_S, DOUBLE_TALK_S = 0.456, 0.226
"""Means of the exponential pauses and overlaps of P.59."""
SHORTEST_S, LONGEST_S = 1.2, 4.0
LEVEL_DBOV = -26.0
FLOOR_DBOV = -75.0

_WINDOW = RATE // 200
_AUDIBLE = 32768 * 10 ** (-45 / 20)
_LONGEST_HOLE = 24
_SPEAKERS, _CLIPS = 6, 10
_SENTENCES = (
    "My name is Maya Brown and I am calling about a table.",
    "Would you like to sit outside in the garden?",
    "There will be four of us on Friday evening.",
    "We are fully booked until a quarter past eight.",
    "Could you bring a chair for a small child?",
    "I will write that down under your name.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spurt:
    """One planted clip: who says it, and its first and last sample (half-open)."""

    side: Side
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Both sides of a conversation, and what is true of it; ``spurts`` are in order."""

    sides: tuple[Pcm, Pcm]
    spurts: tuple[Spurt, ...]

    @property
    def latencies(self) -> list[tuple[int, float]]:
        """Assistant starts that follow the caller: (sample, ms from the caller's end)."""
        pairs = zip(self.spurts, self.spurts[1:], strict=False)
        return [
            (after.start, (after.start - before.end) * 1000 / RATE)
            for before, after in pairs
            if (before.side, after.side) == (Side.CALLER, Side.ASSISTANT)
        ]


def folder_speakers() -> list[list[Pcm]]:
    """Clips of speakers in the folder; empty when there is none."""
    homes = sorted({path.parent.resolve() for path in Path(SPEECH_FOLDER).rglob("*.wav")})
    found: list[list[Pcm]] = []
    for home in homes:
        clips: list[Pcm] = []
        for path in sorted(home.glob("*.wav")):
            if len(clips) < _CLIPS and path.stat().st_size < 1 << 20:
                wav = read_wav(path)
                clips += usable(resample(wav.channel(0), wav.rate_hz, RATE))
        if len(clips) == _CLIPS:
            found.append(clips)
        if len(found) == _SPEAKERS:
            break
    return found


async def embedded_speakers() -> list[list[Pcm]]:
    """Clips of the two embedded voices; raises MissingExtra where they are not installed."""
    speakers = []
    async with await SpeechEngines.open() as engines:
        for voice in ("cedar", "marin"):
            clips: list[Pcm] = []
            for text in _SENTENCES:
                spoken = [part async for part in engines.mouth.speak(text, Style(voice=voice))]
                clips += usable(np.concatenate(spoken))
            speakers.append(clips)
    return speakers


def usable(pcm: Pcm) -> list[Pcm]:
    """The clip cut to what can be heard and levelled, if it is unbroken and of a fit length."""
    count = len(pcm) // _WINDOW
    windows = pcm[: count * _WINDOW].astype(np.float64).reshape(count, _WINDOW)
    loud = np.flatnonzero(np.sqrt((windows**2).mean(axis=1)) > _AUDIBLE)
    if len(loud) < 2 or np.diff(loud).max() > _LONGEST_HOLE:
        return []
    cut = pcm[loud[0] * _WINDOW : (loud[-1] + 1) * _WINDOW]
    level = speech_level(cut, RATE).active_dbov
    if level is None or not SHORTEST_S <= len(cut) / RATE <= LONGEST_S:
        return []
    levelled = cut * 10 ** ((LEVEL_DBOV - level) / 20)
    return [np.clip(np.rint(levelled), -32768, 32767).astype(np.int16)]


def planted(speakers: list[list[Pcm]], *, seed: int, spurts: int) -> list[tuple[Spurt, Pcm]]:
    """Place ``spurts`` clips by turns of P.59; no speaker is heard on both sides.

    An overlap always ends with the floor passed on.
    """
    random = np.random.default_rng(seed)
    voices = [[clip for clips in speakers[side::2] for clip in clips] for side in Side]
    found: list[tuple[Spurt, Pcm]] = []
    side, position = Side.CALLER, RATE
    for _ in range(spurts):
        clip = voices[side][random.integers(len(voices[side]))]
        start = _off_the_grid(position)
        found.append((Spurt(side=side, start=start, end=start + len(clip)), clip))
        side, position = _next(random, found[-1][0])
    return found


def dialogue(
    speakers: list[list[Pcm]], *, seed: int, spurts: int, snr_db: float | None = None
) -> Dialogue:
    """A planted conversation with white noise on the caller's channel.

    ``snr_db`` is against the active speech level; without it both sides have the
    same faint noise floor.
    """
    placed = planted(speakers, seed=seed, spurts=spurts)
    random = np.random.default_rng(seed)
    duration = max(spurt.end for spurt, _ in placed) + 2 * RATE
    noisy = FLOOR_DBOV if snr_db is None else LEVEL_DBOV - snr_db
    channels = []
    for who, level in ((Side.CALLER, noisy), (Side.ASSISTANT, FLOOR_DBOV)):
        channel: Floats = random.normal(0, 32768 * 10 ** (level / 20), duration)
        for spurt, clip in placed:
            if spurt.side is who:
                channel[spurt.start : spurt.end] += clip
        channels.append(np.clip(np.rint(channel), -32768, 32767).astype(np.int16))
    return Dialogue(sides=(channels[0], channels[1]), spurts=tuple(spurt for spurt, _ in placed))


def _next(random: np.random.Generator, last: Spurt) -> tuple[Side, int]:
    """Who speaks next, and from which sample."""
    if random.random() < SINGLE_TALK_TO_SILENCE:
        silence = random.exponential(MUTUAL_SILENCE_S)
        if random.random() < 0.5:
            return last.side.other, last.end + round(min(silence, 2.5) * RATE)
        # Less than 320 ms of one's own silence is a breath, and no second spurt.
        return last.side, last.end + round(min(0.32 + silence, 2.5) * RATE)
    overlap = min(random.exponential(DOUBLE_TALK_S), 0.4)
    return last.side.other, last.end - round(overlap * RATE)


def _off_the_grid(position: int) -> int:
    """The position, moved off every multiple of 10 ms."""
    return position + 37 if position % (RATE // 100) == 0 else position
