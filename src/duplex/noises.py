"""``duplex noise``: every sound a condition can put on a line, listed, rendered, heard.

stdout is the list or nothing, stderr is talk. It renders what ``beds`` has and
changes no level; the command line drives it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from duplex import beds
from duplex.beds import files
from duplex.conditions import PRESETS
from duplex.errors import InputError, MissingExtra
from duplex.screen import plain
from duplex.values import Json
from duplex.wavfile import write_wav

Pcm = npt.NDArray[np.int16]

_GAP_S = 0.5
_VOICES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """One thing to hear: its name, the effect it belongs to, what it is."""

    name: str
    effect: str
    says: str
    loop_s: int | None
    render: Callable[[int], Pcm]

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "effect": self.effect,
            "is": self.says,
            "level_dbov": beds.LEVEL_DBOV,
            "loop_ms": None if self.loop_s is None else self.loop_s * 1000,
            "presets": list(_presets(self.name)),
        }


def sounds() -> list[Sound]:
    """Everything there is, in the order of the effects."""
    found = [_bed(entry.kind, entry.says) for entry in beds.BEDS]
    found.append(
        Sound(
            name="background_speech",
            effect="background_speech",
            says=f"{_VOICES} people talk, without a word",
            loop_s=beds.LOOP_S,
            render=lambda rate_hz: beds.background_speech(_VOICES, rate_hz).samples,
        )
    )
    makers = (
        ("bursts", beds.BURSTS, beds.bursts),
        ("tics", beds.TICS, beds.tics),
        ("side_speech", beds.SIDE_SPEECH, beds.side_speech),
    )
    for effect, entries, takes in makers:
        found += [_takes(entry, effect, takes) for entry in entries]
    return found


def command(
    name: str | None,
    *,
    out: Path | None,
    play: bool,
    rate_hz: int,
    as_json: bool,
    console: Console,
) -> int:
    """List all sounds, or write and play one; returns the exit code."""
    if name is None:
        if out is not None or play:
            raise InputError("noise: got no name, wanted one to write or play (see duplex noise)")
        _list(as_json)
        return 0
    sound = _named(name)
    if out is None and not play:
        print(json.dumps(sound.as_json()) if as_json else _line(sound, len(sound.name)))
        return 0
    pcm = sound.render(rate_hz)
    if not pcm.any():
        console.print(f"{plain(name)} is silent: mixing it in has no effect")
    if out is not None:
        write_wav(out, pcm, rate_hz)
        console.print(f"{plain(str(out))}: {len(pcm) / rate_hz:.1f} s at {rate_hz} Hz")
    if play:
        _play(pcm, rate_hz)
    return 0


def _bed(kind: str, says: str, loop_s: int | None = beds.LOOP_S) -> Sound:
    return Sound(
        name=kind,
        effect="noise",
        says=says,
        loop_s=loop_s,
        render=lambda rate_hz: beds.bed(kind, rate_hz).samples,
    )


def _takes(
    entry: beds.ClipEntry, effect: str, takes: Callable[[str, int], tuple[beds.Clip, ...]]
) -> Sound:
    def render(rate_hz: int) -> Pcm:
        gap = np.zeros(int(_GAP_S * rate_hz), np.int16)
        parts = [part for clip in takes(entry.kind, rate_hz) for part in (clip.samples, gap)]
        return np.concatenate(parts)

    return Sound(name=entry.kind, effect=effect, says=entry.says, loop_s=None, render=render)


def _named(name: str) -> Sound:
    """A sound by its own name, by a preset that is one bed, or a file."""
    if files.is_file(name):
        return _bed(name, "a file, made a loop", None)
    wanted = name.lower().replace("-", "_")
    known = sounds()
    for sound in known:
        if wanted == sound.name or wanted in _presets(sound.name):
            return sound
    names = ", ".join(sound.name for sound in known)
    raise InputError(f'noise "{name}" does not exist, wanted a sound file or one of: {names}')


def _presets(kind: str) -> list[str]:
    """Presets that are nothing but this bed."""
    return [
        preset.name
        for preset in PRESETS
        if len(preset.effects) == 1
        and preset.effects[0][0] == "noise"
        and preset.effects[0][1].get("kind") == kind
    ]


def _list(as_json: bool) -> None:
    known = sounds()
    if as_json:
        print(json.dumps([sound.as_json() for sound in known]))
        return
    width = max(len(sound.name) for sound in known)
    effect = ""
    for sound in known:
        if sound.effect != effect:
            effect = sound.effect
            print(f"{effect}:")
        print(f"  {_line(sound, width)}")
    print(f"every sound has an rms of {beds.LEVEL_DBOV:.0f} dBov; a WAV can stand for any bed")


def _line(sound: Sound, width: int) -> str:
    length = "single sounds" if sound.loop_s is None else f"{sound.loop_s} s loop"
    presets = _presets(sound.name)
    also = f" (preset {', '.join(presets)})" if presets else ""
    return f"{sound.name:{width}}  {length:13}  {sound.says}{also}"


def _play(pcm: Pcm, rate_hz: int) -> None:
    """Play to the default device and wait; one sentence where there is none."""
    try:
        import sounddevice
    except (ImportError, OSError):
        raise MissingExtra(
            "noise --play: PortAudio is missing; install it (Debian: apt-get install "
            "libportaudio2, macOS: brew install portaudio), or write a file with --out"
        ) from None
    try:
        sounddevice.play(pcm, rate_hz, blocking=True)
    except sounddevice.PortAudioError as error:
        raise InputError(
            f"noise --play: no output device can be used ({str(error).splitlines()[0]}); "
            "write a file with --out"
        ) from None
