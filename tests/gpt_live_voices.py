"""Voices for tests: a tone on request, and one that fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duplex.clock import Clock
from duplex.local.seams import VOICE_RATE_HZ, Note, Pcm, VoiceFrame, Words
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import Json


class ToneVoice:
    """Says a tone for ``tone_ms`` when told by commentary; hears by energy.

    The commentary's words become its transcript; ``delegate`` in them begins a
    delegation, ``note`` sends an utterance note. What it heard above a floor is
    told as a transcript once a second.
    """

    def __init__(
        self,
        config: SessionConfig,
        *,
        hz: float = 300.0,
        tone_ms: int = 400,
        wordy: bool = False,
    ) -> None:
        """``wordy``: while it sounds, a word of its own every 200 ms."""
        self.wordy = wordy
        self.config = config
        self.hz = hz
        self.tone_ms = tone_ms
        self.heard: list[Pcm] = []
        self.told: list[tuple[str, str, str | None]] = []
        self.closed = False
        self.begun = False
        self._said_samples = 0
        self._now = 0
        self._left = 0
        self._texts: list[str] = []

    async def begin(self, clock: Clock) -> None:
        self.begun = True

    async def frame(self, pcm: Pcm) -> VoiceFrame:
        self.heard.append(pcm)
        start_ms = self._now * 1000 // VOICE_RATE_HZ
        said: list[Words] = []
        delegations: list[int] = []
        notes: list[Note] = []
        for text in self._texts:
            self._left = self.tone_ms * VOICE_RATE_HZ // 1000
            end_ms = start_ms + self.tone_ms
            said += [Words(text=word, start_ms=start_ms, end_ms=end_ms) for word in text.split()]
            if "delegate" in text:
                delegations.append(start_ms)
            if "note" in text:
                fields: dict[str, Json] = {"text": text, "action": "SPEAK"}
                fields |= {"start_ms": start_ms, "end_ms": end_ms}
                notes.append(Note(kind="utterance", fields=fields))
        self._texts = []
        if self.wordy and self._left and start_ms % 200 == 0:
            said.append(Words(text="on", start_ms=start_ms, end_ms=start_ms + 200))
        out = self._tone(len(pcm))
        self._now += len(pcm)
        return VoiceFrame(
            pcm=out, said=tuple(said), delegations=tuple(delegations), notes=tuple(notes)
        )

    def _tone(self, samples: int) -> Pcm:
        voiced = min(samples, self._left)
        phase = np.arange(self._said_samples, self._said_samples + voiced) / VOICE_RATE_HZ
        tone = np.rint(8000 * np.sin(2 * np.pi * self.hz * phase)).astype(np.int16)
        self._left -= voiced
        self._said_samples += voiced
        return np.concatenate((tone, np.zeros(samples - voiced, np.int16)))

    def commentary(self, text: str, delegation_id: str | None) -> None:
        self.told.append(("commentary", text, delegation_id))
        self._texts.append(text)

    def thinking(self, text: str, delegation_id: str | None) -> None:
        self.told.append(("thinking", text, delegation_id))

    def instruct(self, text: str) -> None:
        self.told.append(("instructions", text, None))

    async def close(self) -> None:
        self.closed = True


class Voices:
    """A voice factory that remembers what it made."""

    def __init__(self, make: Callable[[SessionConfig], ToneVoice] = ToneVoice) -> None:
        self.made: list[ToneVoice] = []
        self._make = make

    def __call__(self, config: SessionConfig, role: str) -> ToneVoice:
        voice = self._make(config)
        self.made.append(voice)
        return voice
