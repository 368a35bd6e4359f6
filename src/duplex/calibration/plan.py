"""Conversations planted sample by sample, with everything true of them written down.

Both sides are one stream from sample 0 with a noise floor between the turns, never digital
silence. Scenes follow each other: replies from 500 ms early to 4 s late, barge-ins that are
yielded to or talked over, backchannels and coughs that are taken rightly or wrongly. No
start lies on a 10 ms grid. It knows no detector and no call; the paths drive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from duplex.calibration.clips import RATE_HZ, Floats
from duplex.calibration.stimuli import Said, Talker, cough
from duplex.metrics.intervals import Run, Runs, merge
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.voices import VoiceKind
from duplex.values import Action, Side, Span, Utterance

Pcm = npt.NDArray[np.int16]
Place = Callable[[int], int]
"""From where a turn's start, or end, was planted to where it was played."""

FLOOR_DBFS = -75.0
LEVELS_DBFS = (-32.0, -20.0)
"""Active speech levels that sides are placed at."""
GRID = RATE_HZ // 100
TAIL_S = 3.0
"""Quiet at the end: long enough for every verdict on what came last."""


class Scene(StrEnum):
    """What happens next in a conversation."""

    REPLY = "reply"
    EARLY = "early"
    YIELD = "yield"
    TALK_OVER = "talk_over"
    BACKCHANNEL = "backchannel"
    BACKCHANNEL_STOP = "backchannel_stop"
    TIC = "tic"
    TIC_REACT = "tic_react"


SCENES: tuple[Scene, ...] = (
    *(Scene.REPLY,) * 6,
    *(Scene.EARLY,) * 3,
    *(Scene.YIELD,) * 2,
    Scene.TALK_OVER,
    Scene.BACKCHANNEL,
    Scene.BACKCHANNEL_STOP,
    Scene.TIC,
    Scene.TIC_REACT,
)
"""One conversation, in an order that is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueYield:
    """A barge-in: the caller turn, where the assistant's speech ended, whether it gave way."""

    turn: int
    stop: int
    yielded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueEvent:
    """A backchannel or tic and whether the assistant reacted as it should not have."""

    kind: VoiceKind
    span: Run
    error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """All that is true of a conversation, in samples.

    ``pairs`` are (caller turn, assistant turn that answers it); ``voice`` is all sound of a
    side that counts as voice, coughs included.
    """

    turns: dict[Side, Runs]
    pairs: tuple[tuple[int, int], ...]
    yields: tuple[TrueYield, ...]
    events: tuple[TrueEvent, ...]
    voice: dict[Side, Runs]

    def with_assistant_moved(self, start: Place, end: Place) -> Truth:
        """The truth of a call in which the assistant's turns were played elsewhere."""

        def moved(runs: Runs) -> Runs:
            return tuple((start(run[0]), end(run[1])) for run in runs)

        return Truth(
            turns=self.turns | {Side.ASSISTANT: moved(self.turns[Side.ASSISTANT])},
            pairs=self.pairs,
            yields=tuple(self._yield_moved(y, end(y.stop)) for y in self.yields),
            events=self.events,
            voice=self.voice | {Side.ASSISTANT: moved(self.voice[Side.ASSISTANT])},
        )

    def _yield_moved(self, known: TrueYield, stop: int) -> TrueYield:
        """The same barge-in with a stop that was heard later: it may have come too late."""
        onset = self.turns[Side.CALLER][known.turn][0]
        in_time = stop - onset <= TimingPolicy().yield_window_ms * RATE_HZ // 1000
        return TrueYield(turn=known.turn, stop=stop, yielded=known.yielded and in_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Two streams of speech alone, float at their levels, and their truth."""

    speech: dict[Side, Floats]
    levels: dict[Side, float]
    truth: Truth
    utterances: tuple[Utterance, ...]
    sounds: tuple[tuple[str, Span], ...]

    @property
    def length(self) -> int:
        return len(self.speech[Side.CALLER])


def plan(
    caller: Talker,
    assistant: Talker,
    rng: np.random.Generator,
    scenes: Sequence[Scene] = SCENES,
    turn_s: Sequence[float] = (0.3, 0.8, 1.5, 2.5),
) -> Conversation:
    """Plant one conversation of ``scenes`` in drawn order; ``turn_s`` are caller turns' lengths."""
    order = [scenes[i] for i in rng.permutation(len(scenes))]
    return _Script(caller, assistant, rng, turn_s).played(order)


def pcm_of(x: Floats) -> Pcm:
    """Round to int16, full scale 1.0."""
    scaled = x * np.float32(32768)
    np.rint(scaled, out=scaled)
    np.clip(scaled, -32768, 32767, out=scaled)
    return scaled.astype(np.int16)


def with_floor(x: Floats, rng: np.random.Generator) -> Floats:
    """Put a line's own noise under a channel."""
    start = int(rng.integers(len(_floor()) // 2))
    piece = _floor()[start : start + len(_floor()) // 2]
    return x + np.resize(piece, len(x))


@cache
def _floor() -> Floats:
    """Two minutes of it, made once."""
    floor = np.random.default_rng(5).standard_normal(120 * RATE_HZ, dtype=np.float32)
    return floor * np.float32(10 ** (FLOOR_DBFS / 20))


@dataclass(slots=True)
class _Script:
    """Writes one conversation scene by scene.

    ``_now`` is where the last voice ended, ``_owing`` whether the last caller turn waits
    for its answer still.
    """

    caller: Talker
    assistant: Talker
    rng: np.random.Generator
    turn_s: Sequence[float]
    _now: int = 0
    _owing: bool = True
    _placed: dict[Side, list[tuple[int, Said]]] = field(
        default_factory=lambda: {side: [] for side in Side}
    )
    _turns: dict[Side, list[Run]] = field(default_factory=lambda: {side: [] for side in Side})
    _pairs: list[tuple[int, int]] = field(default_factory=list)
    _yields: list[TrueYield] = field(default_factory=list)
    _events: list[TrueEvent] = field(default_factory=list)
    _labels: list[Utterance] = field(default_factory=list)
    _sounds: list[tuple[str, Span]] = field(default_factory=list)

    def played(self, scenes: Sequence[Scene]) -> Conversation:
        for scene in scenes:
            self._play(scene)
        length = -(-(self._now + int(TAIL_S * RATE_HZ)) // RATE_HZ) * RATE_HZ
        levels = {side: 10 ** (self.rng.uniform(*LEVELS_DBFS) / 20) for side in Side}
        return Conversation(
            speech={side: self._rendered(side, length, levels[side]) for side in Side},
            levels=levels,
            truth=Truth(
                turns={side: tuple(self._turns[side]) for side in Side},
                pairs=tuple(self._pairs),
                yields=tuple(self._yields),
                events=tuple(self._events),
                voice={
                    side: merge((at, at + len(said.samples)) for at, said in self._placed[side])
                    for side in Side
                },
            ),
            utterances=tuple(self._labels),
            sounds=tuple(self._sounds),
        )

    def _play(self, scene: Scene) -> None:
        match scene:
            case Scene.REPLY:
                self._ask()
                self._answer(self._delay())
            case Scene.EARLY:
                self._early()
            case Scene.YIELD:
                self._yield()
            case Scene.TALK_OVER:
                self._talk_over()
            case Scene.BACKCHANNEL | Scene.BACKCHANNEL_STOP:
                self._small(VoiceKind.BACKCHANNEL, error=scene is Scene.BACKCHANNEL_STOP)
            case Scene.TIC | Scene.TIC_REACT:
                error = scene is Scene.TIC_REACT
                if self.rng.integers(2) and not self._owing:
                    self._cough_in_silence(error=error)
                else:
                    self._small(VoiceKind.TIC, error=error)

    # -- scenes -------------------------------------------------------------

    def _ask(self, seconds: float | None = None) -> Run:
        wanted = float(self.rng.choice(self.turn_s)) if seconds is None else seconds
        said = self.caller.turn(wanted, self.rng)
        return self._caller_turn(self._later(0.55, 1.6), said, Action.SPEAK)

    def _answer(self, delay: int, seconds: float | None = None) -> Run:
        """The assistant answers the last caller turn ``delay`` samples after its end."""
        wanted = float(self.rng.choice((0.8, 1.5, 2.5))) if seconds is None else seconds
        said = self.assistant.turn(wanted, self.rng)
        return self._answered(self._off_grid(self._turns[Side.CALLER][-1][1] + delay), said)

    def _early(self) -> None:
        start, end = self._ask()
        lead = min(int(self.rng.uniform(0.001, 0.5) * RATE_HZ), (end - start) // 2)
        said = self.assistant.turn(1.5, self.rng)
        while len(said.samples) < lead + int(0.4 * RATE_HZ):
            said = self.assistant.turn(1.5, self.rng)
        self._answered(self._off_grid(end - lead), said)

    def _long_answer(self) -> tuple[int, Said, int]:
        """An answer of 6 s, not placed yet: where it starts, itself, where one may cut in."""
        end = self._ask()[1]
        said = self.assistant.turn(6.0, self.rng)
        while len(said.samples) < 5 * RATE_HZ:
            more = self.assistant.turn(3.0, self.rng)
            gap = np.zeros(RATE_HZ // 10, np.float32)
            said = Said(samples=np.concatenate((said.samples, gap, more.samples)), tail=more.tail)
        start = self._off_grid(end + self._delay())
        return start, said, self._off_grid(start + int(self.rng.uniform(0.6, 1.6) * RATE_HZ))

    def _yield(self) -> None:
        start, said, onset = self._long_answer()
        cut = said.until(onset + int(self.rng.uniform(0.15, 1.8) * RATE_HZ) - start)
        stop = self._answered(start, cut)[1]
        length = (stop - onset) / RATE_HZ + float(self.rng.uniform(0.35, 0.9))
        words = self.caller.turn(length, self.rng)
        while len(words.samples) < (stop - onset) + int(0.3 * RATE_HZ):
            more = self.caller.turn(length, self.rng)
            gap = np.zeros(RATE_HZ // 10, np.float32)
            words = Said(samples=np.concatenate((words.samples, gap, more.samples)))
        self._caller_turn(onset, words, Action.INTERRUPT)
        turn = len(self._turns[Side.CALLER]) - 1
        self._yields.append(TrueYield(turn=turn, stop=stop, yielded=True))
        self._answer(max(self._delay(), int(0.15 * RATE_HZ)))

    def _talk_over(self) -> None:
        start, said, onset = self._long_answer()
        words = self.caller.turn(0.8, self.rng).until(RATE_HZ)
        cut = said.until(onset + int(self.rng.uniform(2.3, 3.2) * RATE_HZ) - start)
        stop = self._answered(start, cut)[1]
        self._caller_turn(onset, words, Action.INTERRUPT)
        turn = len(self._turns[Side.CALLER]) - 1
        self._yields.append(TrueYield(turn=turn, stop=stop, yielded=False))
        self._owing = True

    def _small(self, kind: VoiceKind, *, error: bool) -> None:
        """A backchannel or a cough in assistant speech, which goes on, or stops for it."""
        start, said, onset = self._long_answer()
        goes_on = (0.25, 0.75) if error else (1.5, 2.2)
        cut = said.until(onset + int(self.rng.uniform(*goes_on) * RATE_HZ) - start)
        stop = self._answered(start, cut)[1]
        if kind is VoiceKind.TIC:
            span = self._cough(onset)
        else:
            length = int(self.rng.uniform(0.2, 0.6) * RATE_HZ)
            words = self.caller.turn(length / RATE_HZ, self.rng).until(length)
            span = self._caller_voice(onset, words, Action.BACKCHANNEL)
        self._events.append(TrueEvent(kind=kind, span=span, error=error))
        self._now = max(stop, span[1]) + (int(0.7 * RATE_HZ) if error else 0)

    def _cough_in_silence(self, *, error: bool) -> None:
        span = self._cough(self._later(0.7, 1.2))
        self._events.append(TrueEvent(kind=VoiceKind.TIC, span=span, error=error))
        if not error:
            self._now = span[1] + int(1.8 * RATE_HZ)
            return
        start = self._off_grid(span[1] + int(self.rng.uniform(0.4, 1.4) * RATE_HZ))
        said = self.assistant.turn(1.2, self.rng)
        self._placed[Side.ASSISTANT].append((start, said))
        # No caller turn lies between: it goes on with what it was saying.
        begun = self._turns[Side.ASSISTANT][-1][0]
        self._turns[Side.ASSISTANT][-1] = (begun, start + len(said.samples))
        self._now = start + len(said.samples)

    # -- placing ------------------------------------------------------------

    def _caller_turn(self, at: int, said: Said, action: Action) -> Run:
        span = self._caller_voice(at, said, action)
        self._turns[Side.CALLER].append(span)
        return span

    def _caller_voice(self, at: int, said: Said, action: Action) -> Run:
        self._placed[Side.CALLER].append((at, said))
        end = at + len(said.samples)
        self._labels.append(
            Utterance(
                side=Side.CALLER,
                text=f"planted {len(self._labels) + 1}",
                span=Span(start=at, end=end),
                action=action,
                source="caller_intent",
            )
        )
        self._now = max(self._now, end)
        return at, end

    def _answered(self, at: int, said: Said) -> Run:
        self._placed[Side.ASSISTANT].append((at, said))
        span = (at, at + len(said.samples))
        self._turns[Side.ASSISTANT].append(span)
        caller, assistant = (len(self._turns[side]) - 1 for side in Side)
        self._pairs.append((caller, assistant))
        self._now = max(self._now, span[1])
        self._owing = False
        return span

    def _cough(self, at: int) -> Run:
        said = Said(samples=cough(self.rng))
        self._placed[Side.CALLER].append((at, said))
        span = (at, at + len(said.samples))
        self._sounds.append(("tic", Span(start=span[0], end=span[1])))
        self._now = max(self._now, span[1])
        return span

    def _later(self, least_s: float, most_s: float) -> int:
        return self._off_grid(self._now + int(self.rng.uniform(least_s, most_s) * RATE_HZ))

    def _delay(self) -> int:
        """0 to 4 s, seven of ten below 1.5 s."""
        bounds = (0.0, 1.5) if self.rng.uniform() < 0.7 else (1.5, 4.0)
        return int(self.rng.uniform(*bounds) * RATE_HZ)

    def _off_grid(self, at: int) -> int:
        return at + int(self.rng.integers(1, GRID)) if at % GRID == 0 else at

    def _rendered(self, side: Side, length: int, level: float) -> Floats:
        x = np.zeros(length, np.float32)
        for at, said in self._placed[side]:
            first = max(0, at - len(said.head))
            whole = np.concatenate((said.head[: at - first], said.samples, said.tail))
            whole = whole[: length - first]
            x[first : first + len(whole)] += whole * np.float32(level)
        return x
