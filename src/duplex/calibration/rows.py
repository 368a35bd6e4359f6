"""The rows of the calibration table, as data: stimuli, what is done to which channel, goals.

A row's channel is changed by a ``Degrade``, any function of a whole channel, so that every
audio condition there is, or will be, makes a row of its own (:func:`condition_rows`). Goals
are those of the design; noise nobody promised anything for is reported without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from duplex.calibration.clips import Floats
from duplex.calibration.goals import COVERED, NO_MISS, Goal, latency
from duplex.calibration.matching import Metric
from duplex.calibration.noise import Noises
from duplex.calibration.plan import SCENES, Scene
from duplex.calibration.stimuli import Stimuli
from duplex.conditions import CLEAN, Condition

TURNS_S = (0.3, 0.8, 1.5, 2.5)
SHORT_TURNS_S = (0.22, 0.25, 0.3, 0.4)
SHORT_SCENES = (*(Scene.REPLY,) * 12, *(Scene.EARLY,) * 4)
BRIEF_SCENES = (
    *(Scene.REPLY,) * 3,
    *(Scene.EARLY,) * 2,
    Scene.YIELD,
    Scene.TALK_OVER,
    Scene.BACKCHANNEL,
    Scene.BACKCHANNEL_STOP,
    Scene.TIC,
)
LIVE_SCENES = (*(Scene.REPLY,) * 6, Scene.EARLY, Scene.YIELD, Scene.BACKCHANNEL, Scene.TIC)


class Degrade(Protocol):
    """Does to a whole channel what a line, a room or a microphone would."""

    def __call__(self, channel: Floats, level: float, rng: np.random.Generator) -> Floats:
        """A channel of the same length; ``level`` is the RMS of its active speech."""


class Route(StrEnum):
    """How a row's conversations are held."""

    VIRTUAL = "virtual"
    ARRIVAL = "virtual, playout hold"
    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One condition. ``uplink`` and ``line`` are what the assistant hears; no stem changes.

    ``uplink`` is put on the recorded line after the call, ``line`` is the engine's own.
    ``caller`` and ``assistant`` change what that side sends, and so what is measured.
    ``noisy`` rows are pooled to see that the ± is no wider than it need be.
    """

    name: str
    stimuli: Stimuli
    route: Route = Route.VIRTUAL
    caller: Degrade | None = None
    assistant: Degrade | None = None
    uplink: Degrade | None = None
    line: Condition = CLEAN
    scenes: Sequence[Scene] = SCENES
    turn_s: Sequence[float] = TURNS_S
    goals: tuple[Goal, ...] = ()
    noisy: bool = False

    @property
    def key(self) -> str:
        """What names the row in every output and seeds its conversations."""
        return f"{self.route} / {self.stimuli} / {self.name}"


SHARP_GOALS = (*latency(2, None, 10), COVERED, NO_MISS)
STEM_GOALS = (
    *latency(None, None, 8),
    Goal(metric=Metric.ASSISTANT_START, figure="p95_ms", limit=8),
    COVERED,
    NO_MISS,
)
SPEECH_GOALS: dict[float | None, tuple[Goal, ...]] = {
    None: latency(3, None, 8),
    20: latency(5, None, 20),
    10: latency(None, 15, 100),
}


def added(noises: Noises, kind: str, snr: float) -> Degrade:
    """Noise at ``snr`` dB below the active speech of a channel."""

    def degrade(channel: Floats, level: float, rng: np.random.Generator) -> Floats:
        gain = np.float32(level * 10 ** (-snr / 20))
        return channel + noises.cut(kind, len(channel), rng) * gain

    return degrade


def short_rows(noises: Noises) -> list[Row]:
    """The few rows of the short form: nothing to install, the same to the bit every time."""
    white, pink = added(noises, "white", 20), added(noises, "pink", 20)
    sharp = Stimuli.SHARP
    rows = [
        Row(name="clean", stimuli=sharp, goals=SHARP_GOALS),
        Row(name="white 20 dB", stimuli=sharp, caller=white, goals=SHARP_GOALS, noisy=True),
        Row(name="pink 20 dB", stimuli=sharp, caller=pink, goals=SHARP_GOALS, noisy=True),
        Row(name="duplex calls, uplink white 20 dB", stimuli=sharp, uplink=white, goals=STEM_GOALS),
        Row(name="100 ms deltas, jitter", stimuli=sharp, route=Route.ARRIVAL, goals=SHARP_GOALS),
    ]
    return [replace(row, scenes=BRIEF_SCENES) for row in rows]


def sharp_rows(noises: Noises) -> list[Row]:
    """Sharp-edged stimuli: goals from clean to 10 dB."""
    rows = [Row(name="clean", stimuli=Stimuli.SHARP, goals=SHARP_GOALS)]
    for kind in ("white", "pink"):
        for snr in (30, 20, 10):
            rows.append(_noisy(noises, Stimuli.SHARP, kind, snr, SHARP_GOALS))
    return [
        *rows,
        Row(
            name="100 ms deltas, jitter",
            stimuli=Stimuli.SHARP,
            route=Route.ARRIVAL,
            goals=SHARP_GOALS,
        ),
    ]


def speech_rows(noises: Noises) -> list[Row]:
    """Natural speech: goals for white and pink noise on the caller's channel."""
    clean = (*SPEECH_GOALS[None], COVERED, NO_MISS)
    rows = [Row(name="clean", stimuli=Stimuli.SPEECH, goals=clean)]
    for kind in ("white", "pink"):
        for snr in (30, 20, 10, 5, 0):
            goals = (*SPEECH_GOALS.get(snr, ()), COVERED)
            rows.append(
                _noisy(noises, Stimuli.SPEECH, kind, snr, (*goals, NO_MISS) if snr >= 10 else goals)
            )
    rows += [
        Row(name=f"{kind} {snr} dB", stimuli=Stimuli.SPEECH, caller=added(noises, kind, snr))
        for kind in ("babble", "car")
        for snr in (20, 10, 0)
    ]
    for kind, snr in (("white", 20), ("white", 10), ("pink", 10)):
        both = added(noises, kind, snr)
        rows.append(
            Row(
                name=f"{kind} {snr} dB, both sides",
                stimuli=Stimuli.SPEECH,
                caller=both,
                assistant=both,
            )
        )
    rows += [
        Row(
            name=f"duplex calls, uplink {kind} {snr} dB",
            stimuli=Stimuli.SPEECH,
            uplink=added(noises, kind, snr),
            goals=STEM_GOALS,
        )
        for kind, snr in (("white", 20), ("white", 0), ("babble", 10))
    ]
    return [
        *rows,
        Row(
            name="100 ms deltas, jitter",
            stimuli=Stimuli.SPEECH,
            route=Route.ARRIVAL,
            goals=clean,
        ),
        Row(name="uncut clips, clean", stimuli=Stimuli.UNCUT),
        Row(
            name="uncut clips, white 20 dB",
            stimuli=Stimuli.UNCUT,
            caller=added(noises, "white", 20),
        ),
        *_short_turns(noises),
    ]


def live_rows() -> list[Row]:
    """Over a real socket, on the wall clock."""
    return [
        Row(
            name="clean",
            stimuli=Stimuli.SPEECH,
            route=Route.LIVE,
            scenes=LIVE_SCENES,
            turn_s=(0.3, 0.8, 1.2),
            goals=(*SPEECH_GOALS[None], COVERED, NO_MISS),
        )
    ]


def condition_rows(name: str, degrade: Degrade, line: Condition) -> list[Row]:
    """Both rows of an audio condition: as received, and as the line of duplex's own call."""
    return [
        Row(name=name, stimuli=Stimuli.SPEECH, caller=degrade),
        Row(
            name=f"duplex calls, uplink {name}",
            stimuli=Stimuli.SPEECH,
            line=line,
            goals=STEM_GOALS,
        ),
    ]


def _noisy(noises: Noises, stimuli: Stimuli, kind: str, snr: int, goals: tuple[Goal, ...]) -> Row:
    return Row(
        name=f"{kind} {snr} dB",
        stimuli=stimuli,
        caller=added(noises, kind, snr),
        goals=goals,
        noisy=True,
    )


def _short_turns(noises: Noises) -> list[Row]:
    """Turns of 200 to 400 ms: none may be missed down to 10 dB."""
    degraded = [
        ("clean", None),
        ("white 20 dB", added(noises, "white", 20)),
        ("white 10 dB", added(noises, "white", 10)),
        ("pink 10 dB", added(noises, "pink", 10)),
    ]
    return [
        Row(
            name=f"turns of 0.2 to 0.4 s, {name}",
            stimuli=Stimuli.SHORT,
            caller=degrade,
            scenes=SHORT_SCENES,
            turn_s=SHORT_TURNS_S,
            goals=(NO_MISS, COVERED),
        )
        for name, degrade in degraded
    ]
