"""One response on its way out: its items, its audio in deltas, its account of tokens.

Audio leaves as soon as it is made, in deltas of a fixed length, with the words of
each piece before its sound. It knows nothing of turns or brains; the talk drives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from duplex.local.seams import VOICE_RATE_HZ, Mouth, Pcm, Style
from duplex.local.speech import split
from duplex.protocols.gpt_live import estimate_tokens
from duplex.protocols.realtime_server import RealtimeMachine
from duplex.resample import Resampler
from duplex.values import Json

DELTA = VOICE_RATE_HZ // 5
"""Samples of one delta (200 ms)."""
AUDIO_TOKEN_MS = 50
"""Speech that counts as one output token."""

Emit = Callable[[str], None]


class Reply:
    """See the module; between construction and the response's end."""

    def __init__(self, machine: RealtimeMachine, emit: Emit) -> None:
        self.item_id = ""
        """The item that is being spoken, or was last."""
        self.calls = 0
        self.output: list[Json] = []
        self._machine = machine
        self._emit = emit
        self._index = -1
        self._words = ""
        self._spoken = 0
        self._text_tokens = 0
        self._open = False

    def begin_item(self) -> str:
        """Declare the next message and return its id."""
        self.item_id = self._machine.new_item(audio=True)
        self._index += 1
        self._words, self._open = "", True
        self._emit(self._machine.say_item(self._item("in_progress"), self._index, done=False))
        self._emit(self._machine.say_part(self.item_id, self._index, "", done=False))
        return self.item_id

    async def speak(self, text: str, mouth: Mouth, style: Style) -> AsyncIterator[int]:
        """Speak the declared message; yield the samples (24 kHz) of each piece that was sent."""
        rate_hz = self._machine.settings.said.rate_hz
        rate = Resampler(VOICE_RATE_HZ, rate_hz) if rate_hz != VOICE_RATE_HZ else None
        pieces = split(text, style.pace)
        for place, (words, gap) in enumerate(pieces):
            said = " ".join(words)
            self._say(said if place == 0 else f" {said}")
            async for pcm in mouth.speak(said, style):
                self._send(rate.push(pcm) if rate else pcm)
                self._spoken += len(pcm)
                yield len(pcm)
            if place + 1 < len(pieces):
                silence: Pcm = np.zeros(gap, np.int16)
                self._send(rate.push(silence) if rate else silence)
                yield gap
        if rate is not None:
            self._send(rate.finish())
        self._end_item()

    def call(self, call_id: str, name: str, arguments: str) -> None:
        """Add a function call."""
        self._index += 1
        self.calls += 1
        item_id = self._machine.new_item()
        item: dict[str, Json] = {
            "id": item_id,
            "object": "realtime.item",
            "type": "function_call",
            "call_id": call_id,
            "name": name,
        }
        begun = item | {"status": "in_progress", "arguments": ""}
        done = item | {"status": "completed", "arguments": arguments}
        self._emit(self._machine.say_item(begun, self._index, done=False))
        self._emit(self._machine.say_call(item_id, self._index, call_id, name, arguments))
        self._emit(self._machine.say_item(done, self._index, done=True))
        self._text_tokens += estimate_tokens(arguments)
        self.output.append(done)

    def broken_off(self) -> list[Json]:
        """The response is cancelled: end what is open and return its items."""
        if self._open:
            self._open = False
            self.output.append(self._item("incomplete"))
            done = self._item("incomplete")
            self._emit(self._machine.say_item(done, self._index, done=True))
        return self.output

    def usage(self) -> Json:
        """Tokens of the output by the service's published rule; nobody counts the input's."""
        audio = -(-self._spoken * 1000 // VOICE_RATE_HZ // AUDIO_TOKEN_MS)
        details: Json = {"audio_tokens": audio, "text_tokens": self._text_tokens}
        return {
            "output_tokens": audio + self._text_tokens,
            "output_token_details": details,
        }

    def _say(self, words: str) -> None:
        self._words += words
        self._text_tokens += estimate_tokens(words)
        self._emit(self._machine.say_words(self.item_id, self._index, words, whole=False))

    def _send(self, pcm: Pcm) -> None:
        for at in range(0, len(pcm), DELTA):
            part = pcm[at : at + DELTA]
            self._emit(self._machine.say_audio(self.item_id, self._index, part))

    def _end_item(self) -> None:
        self._open = False
        machine, item_id = self._machine, self.item_id
        self._emit(machine.say_audio_done(item_id, self._index))
        self._emit(machine.say_words(item_id, self._index, self._words, whole=True))
        self._emit(machine.say_part(item_id, self._index, self._words, done=True))
        item = self._item("completed")
        self.output.append(item)
        self._emit(machine.say_item(item, self._index, done=True))

    def _item(self, status: str) -> dict[str, Json]:
        content: Json = [{"type": "output_audio", "transcript": self._words}]
        return {
            "id": self.item_id,
            "object": "realtime.item",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content if self._words else [],
        }
