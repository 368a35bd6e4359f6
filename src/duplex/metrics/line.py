"""What the lines of a call did, worked out from its folder: SNR, loss, bursts, sounds.

The condition is read from the call's first event, every figure from the stems and
the mask, so that a stored call tells the same as a running one. A clean call has
none; what cannot be worked out is null with a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duplex import conditions
from duplex.audio_truth import leg_truth
from duplex.conditions import Condition, Effect
from duplex.errors import InputError
from duplex.recording import Recording
from duplex.recording.line_stems import LEGS, read_mask, read_noise
from duplex.values import Json, Side, Span


def condition_of(recording: Recording) -> Condition:
    """The condition a call was held under; raises InputError for one no longer known."""
    return conditions.parse(recording.condition or ())


def line_of(recording: Recording) -> tuple[dict[str, Json] | None, str | None]:
    """``results[].duplex.line`` of a call, or None and why."""
    try:
        condition = condition_of(recording)
        if condition.is_clean:
            return None, "the line was clean"
        told: dict[str, Json] = {
            "condition": str(condition),
            "realism": dict(recording.realism),
        }
        for side, effects in zip(Side, (condition.uplink, condition.downlink), strict=True):
            told[LEGS[side]] = _leg(recording, side, effects) if effects else None
    except InputError as error:
        return None, str(error)
    return told, None


def _leg(recording: Recording, side: Side, effects: Sequence[Effect]) -> dict[str, Json]:
    folder, rate_hz = recording.audio_folder, recording.rate_hz
    sounds = [sound for sound in recording.line_sounds if sound.side is side]
    truth = leg_truth(
        effects,
        recording.source(side),
        read_noise(folder, side, recording.duration),
        rate_hz,
        mask=read_mask(folder, side),
        sounds=[Span(start=sound.span.start, end=sound.span.end) for sound in sounds],
    )
    return {
        **truth.as_json(),
        "sounds": dict(Counter(sound.kind for sound in sounds)),
        "delay_ms": _delay_ms(recording, side),
    }


def _delay_ms(recording: Recording, side: Side) -> float:
    """The longest time the line held its speaker back."""
    longest = max((item.samples for item in recording.delays if item.side is side), default=0)
    return round(longest * 1000 / recording.rate_hz, 3)
