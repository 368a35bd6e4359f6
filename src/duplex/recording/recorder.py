"""Writes one call down while it runs: three WAVs, what lines did to it, one file of events.

Everything is buffered and put on disk once a second of audio, sound first, so
a kill costs at most that second and what is there is always whole. It hides
secrets and never changes what was said otherwise. The call loop drives it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from duplex.recording.hiding import hide_again
from duplex.recording.line_stems import LegStems, LegTick, LineStems
from duplex.redact import Redactor
from duplex.run_folder import RunFolder, make_private
from duplex.values import Event, Json
from duplex.wavfile import Pcm, WavWriter, WriteFailed, open_private, write_failed

CONVERSATION = "conversation.wav"
CALLER_SOURCE = "caller_source.wav"
ASSISTANT_SOURCE = "assistant_source.wav"
AUDIO_FILES = (CONVERSATION, CALLER_SOURCE, ASSISTANT_SOURCE)
_AT_ONCE = ("call.started", "fault")
"""Events that are worth a write of their own: no second of audio may follow them."""
_ENVELOPE = ("seq", "at", "received_at", "side", "type")


class CallRecorder:
    """The files of one call below a run's folder, opened new.

    ``legs`` says which legs, (uplink, downlink), have effects and so stems of their own.
    Raises WriteFailed when the disk gives out; what was flushed before stays
    readable, and :meth:`close` then only closes.
    """

    def __init__(
        self,
        folder: str | Path,
        call_id: str,
        *,
        rate_hz: int,
        secrets: Iterable[str] = (),
        redactor: Redactor | None = None,
        legs: tuple[LegStems | None, LegStems | None] = (None, None),
    ) -> None:
        run = RunFolder(Path(folder))
        self.audio_folder = run.audio(call_id)
        self.events_path = run.events(call_id)
        self._redactor = redactor or Redactor(secrets)
        self._rate_hz = rate_hz
        self._flushed_at = 0
        self._failed = False
        make_private(self.audio_folder)
        make_private(self.events_path.parent)
        self._wavs: list[WavWriter] = []
        self._stems: LineStems | None = None
        self._lines = _LineFile(self.events_path)
        try:
            for name, channels in zip(AUDIO_FILES, (2, 1, 1), strict=True):
                self._wavs.append(WavWriter(self.audio_folder / name, rate_hz, channels))
            if any(leg is not None for leg in legs):
                self._stems = LineStems(self.audio_folder, rate_hz, legs)
        except BaseException:
            self._abandon()
            raise

    @property
    def frames(self) -> int:
        """Frames appended to each file so far."""
        return self._wavs[0].frames

    def append(
        self,
        caller_heard_by_assistant: Pcm,
        assistant: Pcm,
        caller_source: Pcm,
        assistant_source: Pcm,
    ) -> None:
        """Append one tick, four int16 arrays of one length at the session rate.

        The first two become ``conversation.wav``: left the caller as the
        assistant heard it, right the assistant as the caller heard it.
        """
        conversation, caller, spoken = self._wavs
        try:
            conversation.append(caller_heard_by_assistant, assistant)
            caller.append(caller_source)
            spoken.append(assistant_source)
        except WriteFailed:
            self._failed = True
            raise

    def append_legs(self, legs: Sequence[LegTick | None]) -> None:
        """Append what lines did in the tick that :meth:`append` was given last."""
        if self._stems is None:
            return
        samples = next((len(leg.noise) for leg in legs if leg is not None), 0)
        try:
            self._stems.append(legs, samples)
        except WriteFailed:
            self._failed = True
            raise

    def event(self, event: Event) -> None:
        """Append one event as a line of strict JSON, secrets hidden."""
        side = None if event.side is None else event.side.label
        record: dict[str, Json] = {
            "seq": event.seq,
            "at": event.at,
            "received_at": event.received_at,
            "side": side,
            "type": event.type,
        }
        for key, value in self._redactor.fields(event.fields).items():
            if key not in _ENVELOPE:
                record[key] = value
        self._lines.append(json.dumps(record, allow_nan=False))
        if event.type in _AT_ONCE:
            self._flush_lines()

    def tick_flush(self, now: int | None = None) -> None:
        """Flush if a second of audio has gone by; ``now`` is a position in samples."""
        position = self.frames if now is None else now
        if position - self._flushed_at >= self._rate_hz:
            self._flushed_at = position
            self.flush()

    def flush(self) -> None:
        """Put everything on disk: sound first, so that no event points past it."""
        try:
            for wav in self._wavs:
                wav.flush()
            if self._stems is not None:
                self._stems.flush()
        except WriteFailed:
            self._failed = True
            raise
        self._flush_lines()

    def close(self) -> None:
        """Flush and close; after a failed write close only. May be called twice."""
        first = not self._failed and not self._lines.closed
        try:
            if first:
                self.flush()
        finally:
            self._abandon()
        if first and self._redactor.private is not None:
            hide_again(self.events_path, self._redactor)

    def __enter__(self) -> CallRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _flush_lines(self) -> None:
        try:
            self._lines.flush()
        except WriteFailed:
            self._failed = True
            raise

    def _abandon(self) -> None:
        for wav in self._wavs:
            wav.abandon()
        if self._stems is not None:
            self._stems.close()
        self._lines.close()


class _LineFile:
    """Whole lines only, also when the disk is full."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_private(path)
        self._pending = bytearray()
        self._size = 0

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def append(self, line: str) -> None:
        self._pending += line.encode("ascii") + b"\n"

    def flush(self) -> None:
        done = 0
        try:
            while done < len(self._pending):
                done += os.pwrite(self._fd, self._pending[done:], self._size + done)
        except OSError as error:
            self._drop_part_line(done)
            raise write_failed(self.path, error) from error
        self._size += done
        self._pending.clear()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _drop_part_line(self, written: int) -> None:
        whole = self._pending.rfind(b"\n", 0, written) + 1
        self._size += whole
        del self._pending[:whole]
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return
