"""Does the assistant stop for its own echo? Only asked where the line is known to echo.

Each stretch of assistant speech that goes on while its echo comes back is an
opportunity. It stopped for the echo when it stopped within the window after the
echo began, stayed quiet, and then went on by itself, though the caller had made
no sound and no tool was at work. A stop after which the caller speaks may be the
end of a short answer: it is never counted, either way. ``timing.py`` drives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from duplex.metrics.intervals import Run, Runs, clip, merge
from duplex.metrics.speech import Speech
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.turns import Talk, joined_runs
from duplex.values import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoHeard:
    """One stretch of assistant speech that heard itself, from ``start`` on.

    ``stop`` is where it ended; ``error`` whether it stopped for its echo, None
    when that could not be told.
    """

    start: int
    stop: int
    error: bool | None


def echoes_of(talk: Talk, speech: Speech, policy: TimingPolicy) -> tuple[EchoHeard, ...]:
    """Look at every stretch of assistant speech; none where no echo is known."""
    if speech.echo_delay is None:
        return ()
    quiet = samples(policy.resume_ms, talk.rate_hz)
    window = samples(policy.false_yield_window_ms, talk.rate_hz)
    runs = joined_runs(talk.heard(Side.ASSISTANT), quiet)
    heard = merge(
        [
            *((voice.start, voice.end) for voice in talk.voices[Side.CALLER]),
            *((sound.span.start, sound.span.end) for sound in speech.sounds),
        ]
    )
    found = []
    for run, following in pairwise([*runs, None]):
        assert run is not None
        start = run[0] + speech.echo_delay
        if start < run[1]:
            short = run[1] - start <= window
            error = _for_echo(run, following, heard, speech.tools) if short else False
            found.append(EchoHeard(start=start, stop=run[1], error=error))
    return tuple(found)


def _for_echo(run: Run, following: Run | None, caller: Runs, tools: Runs) -> bool | None:
    """Whether a stop was for nothing but the echo; None where something else may explain it."""
    if following is None:
        return None
    explained = clip(caller, run[0], following[0]) or clip(merge(tools), run[1], following[0])
    return None if explained else True
