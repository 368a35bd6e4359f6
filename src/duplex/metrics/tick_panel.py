"""The eight τ-voice quantities at 200 ms ticks, for comparison with its leaderboard.

Definitions are those of tau2-bench's interaction metrics 1.1, its quirks kept:
segments are touching voiced ticks, one silent tick is a yield, a last turn that
nobody answers counts nowhere, and of sounds outside a caller segment while the
assistant speaks only errors count. The timing block is what we think is right;
this panel must never feed it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from duplex.metrics.intervals import Run, Runs, clip, merge
from duplex.metrics.speech import SoundKind, Speech
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.turns import Talk
from duplex.metrics.voices import VoiceKind
from duplex.values import Json, Side

_YIELD_S = 2.0
_SOUND_S = 1.0
_RESPONSE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TickTrack:
    """A call in ticks: who speaks in which, and what the caller's speech was.

    ``backchannels`` are the first ticks of caller segments that are one;
    ``tics`` and ``side_speech`` are runs of ticks.
    """

    tick_s: float
    caller: Runs
    assistant: Runs
    ticks: int
    backchannels: frozenset[int] = frozenset()
    tics: Runs = ()
    side_speech: Runs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TickPanel:
    """The panel: latencies in seconds, counts behind the rates."""

    response_latencies_s: tuple[float, ...]
    no_response: int
    yield_latencies_s: tuple[float, ...]
    no_yield: int
    agent_interruptions: int
    backchannels: tuple[int, int]
    tics: tuple[int, int]
    side_speech: tuple[int, int]
    """Correct and all, of each kind."""

    def as_json(self) -> dict[str, Json]:
        """The eight by their leaderboard names, and the counts."""
        responses = len(self.response_latencies_s)
        total = responses + self.no_response
        yields = len(self.yield_latencies_s)
        return {
            "L_R": _mean(self.response_latencies_s),
            "L_Y": _mean(self.yield_latencies_s),
            "R_R": _share(responses, total),
            "R_Y": _share(yields, yields + self.no_yield),
            "I_A": _share(self.agent_interruptions, total),
            "S_BC": _share(*self.backchannels),
            "S_VT": _share(*self.tics),
            "S_ND": _share(*self.side_speech),
            "counts": {
                "response_total": total,
                "yield_total": yields + self.no_yield,
                "agent_interrupts_count": self.agent_interruptions,
                "backchannel_total": self.backchannels[1],
                "vocal_tic_total": self.tics[1],
                "non_directed_total": self.side_speech[1],
            },
        }


def ticks_of(talk: Talk, speech: Speech, policy: TimingPolicy) -> TickTrack:
    """Lay a call on the panel's grid; a tick that holds any voice is voiced."""
    tick = samples(policy.panel_tick_ms, talk.rate_hz)
    caller = talk.heard(Side.CALLER)
    runs = merge(_ticks(tick, voice.start, voice.end) for voice in caller)
    first_voice = {}
    for voice in reversed(caller):
        first_voice[_run_at(runs, voice.start // tick)[0]] = voice.kind
    sounds: dict[SoundKind, list[Run]] = {kind: [] for kind in SoundKind}
    for sound in speech.sounds:
        if sound.span.length:
            sounds[sound.kind].append(_ticks(tick, sound.span.start, sound.span.end))
    for voice in caller:
        if voice.kind in (VoiceKind.TIC, VoiceKind.SIDE_SPEECH):
            kind = SoundKind.TIC if voice.kind is VoiceKind.TIC else SoundKind.SIDE_SPEECH
            sounds[kind].append(_ticks(tick, voice.start, voice.end))
    return TickTrack(
        tick_s=policy.panel_tick_ms / 1000,
        caller=runs,
        assistant=merge(_ticks(tick, v.start, v.end) for v in talk.heard(Side.ASSISTANT)),
        ticks=-(-talk.duration // tick),
        backchannels=frozenset(
            start for start, kind in first_voice.items() if kind is VoiceKind.BACKCHANNEL
        ),
        tics=merge(sounds[SoundKind.TIC]),
        side_speech=merge(sounds[SoundKind.SIDE_SPEECH]),
    )


def panel_of(track: TickTrack) -> TickPanel:
    """Compute the panel."""
    if track.caller and track.caller[-1] == (track.ticks - 1, track.ticks):
        track = _without_last_tick(track)
    caller = track.caller
    latencies, no_response = _responses(track, caller)
    counts = _Counts(track)
    for start, end in caller:
        counts.segment(start, end)
    for kind, runs in (("tic", track.tics), ("side", track.side_speech)):
        for start, end in runs:
            if not _overlaps(caller, start, end):
                counts.outside(kind, start, end)
    return TickPanel(
        response_latencies_s=tuple(latencies),
        no_response=no_response,
        yield_latencies_s=tuple(counts.yields),
        no_yield=counts.no_yield,
        agent_interruptions=sum(_covers(caller, start) for start, _ in track.assistant),
        backchannels=(counts.right["backchannel"], counts.all["backchannel"]),
        tics=(counts.right["tic"], counts.all["tic"]),
        side_speech=(counts.right["side"], counts.all["side"]),
    )


def _without_last_tick(track: TickTrack) -> TickTrack:
    """A caller that hangs up leaves one voiced tick, which is no speech."""
    ticks = track.ticks - 1
    assistant = clip(track.assistant, 0, ticks)
    return replace(track, caller=track.caller[:-1], assistant=assistant, ticks=ticks)


def _responses(track: TickTrack, caller: Sequence[Run]) -> tuple[list[float], int]:
    """Latencies of the turns that were answered, and how many were not."""
    valid = [
        (start, end)
        for start, end in caller
        if start not in track.backchannels and not _covers(track.assistant, end)
    ]
    latencies: list[float] = []
    missed = 0
    for index, (_, end) in enumerate(valid):
        reply = _start_from(track.assistant, end)
        following = valid[index + 1][0] if index + 1 < len(valid) else None
        if reply is not None and (following is None or reply <= following):
            latencies.append((reply - end) * track.tick_s)
        elif following is not None:
            missed += 1
    return latencies, missed


class _Counts:
    """Yields and selectivity, counted segment by segment."""

    def __init__(self, track: TickTrack) -> None:
        self._track = track
        self._window = {
            "yield": int(_YIELD_S / track.tick_s),
            "sound": int(_SOUND_S / track.tick_s),
            "response": int(_RESPONSE_S / track.tick_s),
        }
        self.yields: list[float] = []
        self.no_yield = 0
        self.all = {"backchannel": 0, "tic": 0, "side": 0}
        self.right = dict(self.all)

    def segment(self, start: int, end: int) -> None:
        """A run of voiced caller ticks."""
        kind = self._kind(start, end)
        if not _covers(self._track.assistant, start):
            if kind in ("tic", "side"):
                self._sound(kind, not self._answered(start, end))
        elif kind == "yield":
            quiet = self._quiet(start, self._window["yield"])
            if quiet is None:
                self.no_yield += 1
            else:
                self.yields.append((quiet - start) * self._track.tick_s)
        else:
            self._sound(kind, self._quiet(start, self._window["sound"]) is None)

    def outside(self, kind: str, start: int, end: int) -> None:
        """A sound in no caller segment: while the assistant speaks only errors count."""
        if not _covers(self._track.assistant, start):
            self._sound(kind, not self._answered(start, end))
        elif _run_at(self._track.assistant, start)[1] - start <= self._window["sound"]:
            self._sound(kind, False)

    def _kind(self, start: int, end: int) -> str:
        if start in self._track.backchannels:
            return "backchannel"
        if _overlaps(self._track.tics, start, end):
            return "tic"
        return "side" if _overlaps(self._track.side_speech, start, end) else "yield"

    def _sound(self, kind: str, right: bool) -> None:
        self.all[kind] += 1
        self.right[kind] += right

    def _quiet(self, start: int, window: int) -> int | None:
        """First tick without the assistant in the window; the end of the call is none."""
        end = _run_at(self._track.assistant, start)[1]
        return end if end < min(start + window, self._track.ticks) else None

    def _answered(self, start: int, end: int) -> bool:
        reply = _start_from(self._track.assistant, start)
        return reply is not None and reply <= end + self._window["response"]


def _ticks(tick: int, start: int, end: int) -> Run:
    return start // tick, -(-end // tick)


def _run_at(runs: Sequence[Run], at: int) -> Run:
    """The run that holds ``at``; there must be one."""
    run = runs[bisect_left(runs, at + 1, key=lambda run: run[0]) - 1]
    assert run[0] <= at < run[1], (run, at)
    return run


def _covers(runs: Sequence[Run], at: int) -> bool:
    index = bisect_left(runs, at + 1, key=lambda run: run[0]) - 1
    return index >= 0 and at < runs[index][1]


def _overlaps(runs: Sequence[Run], start: int, end: int) -> bool:
    index = bisect_left(runs, end, key=lambda run: run[0]) - 1
    return index >= 0 and runs[index][1] > start


def _start_from(runs: Sequence[Run], at: int) -> int | None:
    index = bisect_left(runs, at, key=lambda run: run[0])
    return runs[index][0] if index < len(runs) else None


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return round(sum(listed) / len(listed), 4) if listed else None


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
