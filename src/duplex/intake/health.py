"""Whether a recording can be measured: good, usable with care, or refused.

The verdict rests on what the detector saw in this recording, never on a file's
format. Whatever speaks against numbers is a reason with a code and a sentence;
a refusal carries the remedy. Noise must never become somebody's turn: where
speech cannot be told from it, the answer is a refusal. Measuring drives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from duplex.counting import counted
from duplex.intake.echo import Echo
from duplex.intake.listen import Listening
from duplex.intake.loudness import Loudness, loudness_of
from duplex.values import Side

MONO_MIX = 0.97
SHARED = 0.5
REFUSED_SNR_DB, GOOD_SNR_DB = 3.0, 20.0
SILENT_DBFS, LOUD_NOISE_DBFS, QUIET_DBFS = -70.0, -45.0, -43.0
CLIPPED_SHARE = 0.001
INVALID_SHARE = 0.01
UNSCALED_PEAK = 8.0
LEAK_DB = -25.0
BALANCE_DB = 20.0
COPY_GAIN_DB = -6.0
_ENDLESS_MS, _ENDLESS_SHARE = 10_000, 0.8
_LONG_MS, _FLAT_MS, _FLAT_DB = 30_000, 3_000, 6.0
_SOUND_MS = 150
"""As long as speech must be to make a turn."""


class Verdict(StrEnum):
    """What may be done with a recording."""

    GOOD = "good"
    USABLE = "usable"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Something that speaks against the numbers; ``remedy`` only if nothing can be measured."""

    code: str
    text: str
    side: Side | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The verdict with its reasons, the worst first, and what it rests on.

    ``notes`` tell of the files; they do not lower the verdict.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    sides: tuple[Loudness, Loudness]
    balance_db: float | None
    likeness: float | None

    @property
    def refusal(self) -> str | None:
        """What is wrong and what mends it, in one sentence; None unless refused."""
        first = self.reasons[0] if self.reasons else None
        return None if first is None or first.remedy is None else f"{first.text}; {first.remedy}"


def health_of(heard: Listening, *, stems: bool = False) -> Health:
    """Judge a recording by what was heard of it.

    ``stems``: each side is known to be a signal of its own, before any noise, so
    whatever is strange in it is told but refuses nothing.
    """
    sides = (loudness_of(heard, Side.CALLER), loudness_of(heard, Side.ASSISTANT))
    levels = [side.speech_dbfs for side in sides]
    balance = None
    if levels[0] is not None and levels[1] is not None:
        balance = levels[1] - levels[0]
    reasons = [*_of_the_file(heard, sides), *(r for s in Side for r in _of_side(heard, s, sides))]
    if stems:
        reasons = [replace(reason, remedy=None) for reason in reasons]
    if not any(reason.remedy for reason in reasons):
        reasons += _of_both(heard, sides, balance)
    reasons.sort(key=lambda reason: reason.remedy is None)
    verdict = Verdict.GOOD
    if reasons:
        verdict = Verdict.REFUSED if reasons[0].remedy is not None else Verdict.USABLE
    return Health(
        verdict=verdict,
        reasons=tuple(reasons),
        notes=heard.warnings,
        sides=sides,
        balance_db=balance,
        likeness=heard.levels.likeness,
    )


def _of_the_file(heard: Listening, sides: Sequence[Loudness]) -> Iterator[Reason]:
    """What makes the whole recording unfit; at most one refusal, the plainest first."""
    likeness = heard.levels.likeness
    samples = 2 * heard.duration
    if not heard.duration:
        yield Reason(code="empty", text="it holds no audio", remedy="record the call again")
    elif heard.repairs.peak > UNSCALED_PEAK:
        yield Reason(
            code="unscaled",
            text=f"its float samples reach {heard.repairs.peak:.6g} where full scale is 1",
            remedy="scale them to ±1 and save it again",
        )
    elif heard.repairs.invalid > INVALID_SHARE * samples:
        yield Reason(
            code="invalid_samples",
            text=f"{counted(heard.repairs.invalid, 'sample is', 'samples are')} NaN or infinite",
            remedy="save it again from its source",
        )
    elif all(side.loudest_dbfs is None or side.loudest_dbfs < SILENT_DBFS for side in sides):
        yield Reason(
            code="silent",
            text="both channels are silent",
            remedy="check that the call's audio was recorded",
        )
    elif likeness is not None and abs(likeness) >= MONO_MIX:
        yield Reason(
            code="mono_mix",
            text=f"both channels hold the same sound (correlation {likeness:.2f})",
            remedy="export the two sides as separate channels",
        )
    elif (whole := _whole_copy(heard, sides)) is not None:
        yield Reason(
            code="mono_mix",
            text=f"the {whole.side.label}'s channel is the other one, {whole.lag_ms:.0f} ms later",
            remedy="export the two sides as separate channels",
        )
    elif not any(side.segments for side in sides):
        yield Reason(
            code="no_speech",
            text="no speech was found on either channel",
            remedy="check the channels and the recording level",
        )
    if 0 < heard.repairs.invalid <= INVALID_SHARE * samples:
        broken = counted(heard.repairs.invalid, "sample is", "samples are")
        text = f"{broken} NaN or infinite, counted as silence"
        yield Reason(code="invalid_samples", text=text)
    for left in heard.left_out:
        yield Reason(
            code="unequal_length",
            text=f"{left.name} is {left.seconds:.3f} s longer than the other side; what was said "
            "in that part is not measured",
        )


def _of_side(heard: Listening, side: Side, sides: Sequence[Loudness]) -> Iterator[Reason]:
    """What is wrong with one channel."""
    own, name = sides[side], side.label
    if _endless(own, heard.duration_ms):
        yield Reason(
            code="endless_segment",
            side=side,
            text=f"the {name}'s channel is one sound of {own.longest_ms / 1000:.1f} s without a "
            "pause, so noise and speech cannot be told apart",
            remedy="take the channel before noise or music was added, or use another detector",
        )
    elif own.longest_ms >= _LONG_MS:
        yield Reason(
            code="long_segment",
            side=side,
            text=f"one segment of the {name} lasts {own.longest_ms / 1000:.0f} s; steady noise or "
            "music may count as speech",
        )
    noise = own.noise_dbfs
    if not own.segments and noise is not None and noise >= LOUD_NOISE_DBFS:
        yield Reason(
            code="only_noise",
            side=side,
            text=f"the {name}'s channel holds nothing but noise at {noise:.0f} dBFS, so whether "
            "it spoke cannot be told",
            remedy="take a recording with less noise on that channel",
        )
    if own.snr_db is None:
        return
    if own.snr_db < REFUSED_SNR_DB:
        yield Reason(
            code="noise",
            side=side,
            text=f"the {name} is {own.snr_db:.0f} dB above the noise, too little to place speech",
            remedy="take a recording with less noise on that channel",
        )
    elif own.snr_db < GOOD_SNR_DB:
        text = f"the {name} is only {own.snr_db:.0f} dB above the noise: edges are less sure"
        yield Reason(code="noise", side=side, text=text)


def _of_both(
    heard: Listening, sides: Sequence[Loudness], balance: float | None
) -> Iterator[Reason]:
    """What makes numbers less sure without forbidding them."""
    for side in Side:
        yield from _less_sure(side, sides[side])
    for echo in heard.echoes:
        yield Reason(
            code="echo",
            side=echo.side,
            text=f"{len(echo.segments)} segments on the {echo.side.label}'s channel are the "
            f"{echo.side.other.label} heard {echo.lag_ms:.0f} ms later; they do not count",
        )
    for leak in heard.leaks:
        text = (
            f"{len(leak.segments)} segments on the {leak.side.label}'s channel are the "
            f"{leak.side.other.label} heard again at {leak.gain_db:.0f} dB, less than half of the "
            "speech there: they count as its own"
        )
        yield Reason(code="crosstalk", side=leak.side, text=text)
    likeness = heard.levels.likeness
    leaks = any(side.leak_db is not None for side in sides)
    if likeness is not None and abs(likeness) >= SHARED and leaks and not heard.echoes:
        text = f"the channels share much of their sound (correlation {likeness:.2f})"
        yield Reason(code="crosstalk", text=text)
    if balance is not None and abs(balance) > BALANCE_DB:
        quiet = Side.CALLER if balance > 0 else Side.ASSISTANT
        text = f"the {quiet.label} is {abs(balance):.0f} dB quieter than the other side"
        yield Reason(code="balance", side=quiet, text=text)


def _less_sure(side: Side, own: Loudness) -> Iterator[Reason]:
    name = side.label
    if makes_other_sound(own):
        text = (
            f"{own.sound_ms / 1000:.1f} s of sound are on the {name}'s channel and none of it is "
            "speech to this detector, which leaves tones, music and noise out; contract 2.0 and "
            "the rms detector take any sound for voice"
        )
        yield Reason(code="sound_without_speech", side=side, text=text)
    elif not own.segments:
        text = (
            f"no speech was found on the {name}'s channel; whether it was silent or not recorded "
            "cannot be told"
        )
        yield Reason(code="one_sided", side=side, text=text)
    elif not own.own_segments:
        text = f"all speech on the {name}'s channel is the other side's"
        yield Reason(code="one_sided", side=side, text=text)
    if own.clipped_share > CLIPPED_SHARE:
        text = f"{own.clipped_share:.1%} of the {name}'s speech is clipped"
        yield Reason(code="clipping", side=side, text=text)
    if own.speech_dbfs is not None and own.speech_dbfs < QUIET_DBFS:
        text = (
            f"the {name} speaks at {own.speech_dbfs:.0f} dBFS, below the fixed threshold of "
            "contract 2.0"
        )
        yield Reason(code="quiet", side=side, text=text)
    if own.leak_db is not None and own.leak_db > LEAK_DB:
        text = f"the {side.other.label} is heard on the {name}'s channel at {own.leak_db:.0f} dB"
        yield Reason(code="crosstalk", side=side, text=text)


def makes_other_sound(own: Loudness) -> bool:
    """Whether a side is heard, and nothing of it as speech."""
    return not own.segments and own.sound_ms >= _SOUND_MS


def _whole_copy(heard: Listening, sides: Sequence[Loudness]) -> Echo | None:
    """An echo as loud as its source and nothing else on that channel."""
    for echo in heard.echoes:
        if echo.gain_db > COPY_GAIN_DB and not sides[echo.side].own_segments:
            return echo
    return None


def _endless(own: Loudness, duration_ms: float) -> bool:
    """Whether one segment goes on where speech would have paused."""
    flat = own.spread_db is not None and own.spread_db < _FLAT_DB
    fills = own.longest_ms >= _ENDLESS_SHARE * duration_ms
    if fills and own.longest_ms >= (_FLAT_MS if flat else _ENDLESS_MS):
        return True
    return flat and own.longest_ms >= _LONG_MS
