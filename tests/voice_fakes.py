"""A voice's surroundings without speech engines: tones for words, labels for sounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from duplex.clock import VirtualClock, WallClock
from duplex.local.seams import Act, Heard, Note, Pcm, Said, Say, Style, Words
from duplex.local.thinking import ThinkTimes
from duplex.local.voice import LocalVoice
from duplex.values import Side

RATE = 24_000
WORD_MS = 250
LEVEL = 6_000
EXACT = ThinkTimes(jitter=0.0)


def tone(length_ms: int, hz: float = 220.0, level: int = LEVEL) -> Pcm:
    t = np.arange(length_ms * RATE // 1000)
    pcm: Pcm = np.rint(level * np.sin(2 * np.pi * hz * t / RATE)).astype(np.int16)
    return pcm


def syllables(length_ms: int) -> Pcm:
    """A tone with a 40 ms dip four times a second: sound that is no steady noise."""
    out = tone(length_ms)
    for start in range(100, length_ms, 250):
        out[start * RATE // 1000 : (start + 40) * RATE // 1000] //= 300
    return out


def scene(length_ms: int, *spans: tuple[int, int]) -> Pcm:
    """Silence with syllables over ``spans`` (start, end in ms)."""
    out = np.zeros(length_ms * RATE // 1000, np.int16)
    for start, end in spans:
        out[start * RATE // 1000 : end * RATE // 1000] = syllables(end - start)
    return out


class ToneMouth:
    """Every word lasts 250 ms; ``gate`` holds synthesis back until it is set."""

    def __init__(self, *, gate: asyncio.Event | None = None, delay: float = 0.0) -> None:
        self.asked: list[str] = []
        self.styles: list[Style] = []
        self.open = 0
        self._gate = gate
        self._delay = delay

    async def speak(self, text: str, style: Style) -> AsyncIterator[Pcm]:
        self.asked.append(text)
        self.styles.append(style)
        self.open += 1
        try:
            if self._gate is not None:
                await self._gate.wait()
            await asyncio.sleep(self._delay)
            yield tone(WORD_MS * len(text.split()), 330.0)
        finally:
            self.open -= 1

    async def close(self) -> None: ...


class LabelEars:
    """Gives out ``labels`` in turn, whatever it hears; keeps the audio."""

    def __init__(self, *labels: str, gate: asyncio.Event | None = None, delay: float = 0.0) -> None:
        self.heard: list[Pcm] = []
        self._labels = list(labels)
        self._gate = gate
        self._delay = delay

    async def transcribe(self, pcm: Pcm) -> str:
        self.heard.append(pcm)
        label = self._labels.pop(0) if self._labels else "words"
        if self._gate is not None:
            await self._gate.wait()
        await asyncio.sleep(self._delay)
        return label

    async def close(self) -> None: ...


@dataclass
class Script:
    """A brain with prepared answers that logs every call made to it."""

    opens: Sequence[Act] = ()
    answers: list[Sequence[Act]] = field(default_factory=list)
    after_said: list[Sequence[Act]] = field(default_factory=list)
    over: dict[int, Sequence[Act]] = field(default_factory=dict)
    """Acts by the ``speech_ms`` they are given at."""
    log: list[tuple[str, object]] = field(default_factory=list)

    def opening(self) -> Sequence[Act]:
        return self.opens

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        self.log.append(("heard", heard))
        return self.answers.pop(0) if self.answers else ()

    def on_said(self, said: Said) -> Sequence[Act]:
        self.log.append(("said", said))
        return self.after_said.pop(0) if self.after_said else ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        self.log.append(("commentary", text))
        return (Say(text=text),)

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        self.log.append(("quiet", quiet_ms))
        return ()

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        self.log.append(("speech", speech_ms))
        return self.over.pop(speech_ms, ())

    def heard(self) -> list[Heard]:
        return [what for _, what in self.log if isinstance(what, Heard)]

    def said(self) -> list[Said]:
        return [what for _, what in self.log if isinstance(what, Said)]


@dataclass
class Talk:
    """All that a voice did, one after the other."""

    pcm: Pcm
    said: list[Words]
    heard: list[Words]
    delegations: list[int]
    notes: list[Note]
    released: list[int]
    """Ms at the start of the frame each ``said`` piece came in."""

    def of(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note.kind == kind]

    def text(self) -> str:
        return "".join(words.text for words in self.said)

    def level(self, start_ms: int, end_ms: int) -> float:
        part = self.pcm[start_ms * RATE // 1000 : end_ms * RATE // 1000].astype(float)
        return float(np.sqrt(np.mean(part**2)))

    def sounding(self) -> tuple[int, int]:
        """First and last sample that is not silent."""
        loud = np.flatnonzero(np.abs(self.pcm.astype(int)) > 50)
        return int(loud[0]), int(loud[-1])


def make(
    brain: Script,
    ears: LabelEars | None = None,
    mouth: ToneMouth | None = None,
    *,
    seed: int | None = None,
    role: Side = Side.CALLER,
    think: ThinkTimes = EXACT,
    voice: str = "cedar",
) -> LocalVoice:
    return LocalVoice(
        brain,
        ears or LabelEars(),
        mouth or ToneMouth(),
        voice=voice,
        seed=seed,
        role=role,
        think=think,
    )


async def talk(
    voice: LocalVoice, theirs: Pcm, *, chunk: int | Sequence[int] = 480, virtual: bool = True
) -> Talk:
    """Let ``voice`` hear ``theirs`` in chunks (cycled when several) and collect what it does."""
    await voice.begin(VirtualClock(RATE) if virtual else WallClock(RATE))
    result = await more(voice, theirs, chunk=chunk)
    await voice.close()
    return result


async def more(voice: LocalVoice, theirs: Pcm, *, chunk: int | Sequence[int] = 480) -> Talk:
    """Go on with a voice that has begun; nothing is slept for, tasks get a few turns."""
    sizes = [chunk] if isinstance(chunk, int) else list(chunk)
    done = Talk(np.zeros(0, np.int16), [], [], [], [], [])
    parts: list[Pcm] = []
    at = place = 0
    while at < len(theirs):
        part = theirs[at : at + sizes[place % len(sizes)]]
        frame = await voice.frame(part)
        assert len(frame.pcm) == len(part)
        parts.append(frame.pcm)
        done.said += frame.said
        done.released += [at * 1000 // RATE] * len(frame.said)
        done.heard += frame.heard
        done.delegations += frame.delegations
        done.notes += frame.notes
        at, place = at + len(part), place + 1
        for _ in range(4):
            await asyncio.sleep(0)
    done.pcm = np.concatenate(parts)
    return done
