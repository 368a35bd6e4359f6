"""Everything ``measure`` says of one recording: both blocks, health, basis, unknowns.

A value that other layers only format. A refused recording has health and no
numbers; what a bare recording cannot know is null with its reason, never 0.
Measuring drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from duplex.intake.health import Health, Verdict
from duplex.intake.labels import Labels
from duplex.intake.listen import WITNESS_DETECTOR, Listening
from duplex.intake.loudness import agreement
from duplex.metrics.contract import METRICS_VERSION, Settings, contract_metrics
from duplex.metrics.from_recording import contract_of
from duplex.metrics.health_json import health_json
from duplex.metrics.heard import speech_of, timeline_of
from duplex.metrics.of_call import timing_of_heard
from duplex.metrics.responses import Outcome
from duplex.metrics.timeline import metrics_json
from duplex.metrics.timing import TimingBlock, timing
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.words import WordsBlock
from duplex.recording import Recording
from duplex.values import Json, Side

_NOT_ASKED = "nobody asked for words; --words or --transcript does"
_NO_EVENTS = "a recording does not show delegated work"
_NO_LABELS = "nobody labelled backchannels"
_NEEDS_EVENTS = (
    "delegation_active_ms",
    "floor_hold_silence_ms",
    "floor_hold_intervals_ms",
)
_NEEDS_LABELS = (
    "selectivity_backchannel",
    "backchannel_total",
    "backchannel_correct_count",
    "backchannel_error_count",
)
_NO_VALUE = {
    "response_rate": "no caller turn had to be answered",
    "response_latency_ms": "no caller turn was answered",
    "response_latency_mean_s": "no caller turn was answered",
    "interruption_rate": "no caller turn had to be answered",
    "yield_rate": "no barge-in",
    "yield_latency_mean_s": "no barge-in was yielded to",
    "selectivity_backchannel": "no backchannel during assistant speech",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What the numbers rest on, in words: whose clock, what was known, how heard."""

    origin: str
    clock: str
    detector: str
    rate_hz: int
    channels: str
    caller_audio: str
    labels: str | None
    tools_known: bool
    witness: str | None
    agreement: tuple[float | None, float | None]

    def as_json(self) -> dict[str, Json]:
        seen = dict(zip((side.label for side in Side), self.agreement, strict=True))
        rounded: dict[str, Json] = {
            name: None if share is None else round(share, 4) for name, share in seen.items()
        }
        return {
            "origin": self.origin,
            "clock": self.clock,
            "detector": self.detector,
            "rate_hz": self.rate_hz,
            "channels": self.channels,
            "caller_audio": self.caller_audio,
            "labels": self.labels,
            "tools_known": self.tools_known,
            "witness": None if self.witness is None else {"detector": self.witness, **rounded},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One recording measured, or refused: then ``timing`` and ``contract`` are None."""

    file: str
    rate_hz: int
    duration_ms: float
    health: Health
    basis: Basis
    heard: Listening
    contract: dict[str, Json] | None = None
    timing: TimingBlock | None = None
    unknown: dict[str, Json]
    words: WordsBlock | None = None

    @property
    def refused(self) -> bool:
        return self.health.verdict is Verdict.REFUSED

    @property
    def unmeasurable(self) -> int:
        """Answered turns whose latency cannot be given, or only without a known error."""
        if self.timing is None:
            return 0
        responses = self.timing.responses
        known = [
            responses.replies[f.reply]
            for f in responses.fates
            if f.reply is not None and f.outcome in (Outcome.ANSWERED, Outcome.LATE)
        ]
        return sum(reply.latency is None or reply.unreliable for reply in known)

    def as_json(self) -> dict[str, Json]:
        """The object of the interface, strict JSON."""
        block = None if self.timing is None else self.timing.as_json()
        unknown = dict(self.unknown)
        inner = None if block is None else block.get("unknown")
        if isinstance(inner, dict):
            unknown |= {f"/timing{pointer}": reason for pointer, reason in inner.items()}
        words = None if self.words is None else self.words.as_json()
        unknown |= _words_unknown(words, refused=self.refused, why=self.health.refusal)
        return {
            "file": self.file,
            "rate_hz": self.rate_hz,
            "duration_ms": round(self.duration_ms, 3),
            "health": health_json(self.health, self.heard),
            "basis": self.basis.as_json(),
            "contract": None if self.contract is None else dict(self.contract),
            "timing": block,
            "words": words,
            "unknown": unknown,
        }


def _words_unknown(
    words: dict[str, Json] | None, *, refused: bool, why: str | None
) -> dict[str, Json]:
    """Why there are no words, or why those there are have no figures."""
    if words is None:
        return {"/words": why if refused and why else _NOT_ASKED}
    inner = words.get("unknown")
    reasons = inner if isinstance(inner, dict) else {}
    return {f"/words{pointer}": reason for pointer, reason in reasons.items()}


def measure_recording(
    file: str,
    heard: Listening,
    health: Health,
    labels: Labels,
    policy: TimingPolicy | None = None,
) -> Measurement:
    """Measure a recording of which nothing is known but its sound, and labels if any."""
    basis = _basis(
        heard,
        origin="recording",
        clock="the recording's own samples",
        caller_audio="as recorded",
        labels=labels.source,
        tools_known=False,
    )
    if health.verdict is Verdict.REFUSED:
        return _refused(file, heard, health, basis)
    policy = policy or TimingPolicy()
    settings = Settings(response_deadline_ms=policy.response_deadline_ms)
    contract = metrics_json(contract_metrics(timeline_of(heard, labels, settings)))
    blind: dict[str, Json] = dict.fromkeys(_NEEDS_EVENTS, _NO_EVENTS)
    if not any(item.action is not None for item in labels.of(Side.CALLER)):
        blind |= dict.fromkeys(_NEEDS_LABELS, _NO_LABELS)
    unknown: dict[str, Json] = {f"/contract/{name}": reason for name, reason in blind.items()}
    contract |= dict.fromkeys(blind)
    contract["floor_hold_silence_ms"] = {"cumulative": None, "maximum": None}
    return _measured(
        file, heard, health, basis, contract, timing(speech_of(heard, labels), policy), unknown
    )


def measure_call(
    file: str,
    recording: Recording,
    heard: Listening,
    health: Health,
    policy: TimingPolicy | None = None,
) -> Measurement:
    """Measure a call held here: ``heard`` are its two source stems."""
    live = recording.clock == "wall"
    basis = _basis(
        heard,
        origin="live call" if live else "simulated call",
        clock="the call's own samples, on the wall clock" if live else "virtual time",
        caller_audio="source stem, before noise and loss",
        labels="the call's events",
        tools_known=True,
    )
    if health.verdict is Verdict.REFUSED:
        return _refused(file, heard, health, basis)
    policy = policy or TimingPolicy()
    settings = Settings(response_deadline_ms=policy.response_deadline_ms)
    contract = metrics_json(contract_of(recording, settings))
    block = timing_of_heard(recording, heard, policy)
    return _measured(file, heard, health, basis, contract, block, {})


def _measured(
    file: str,
    heard: Listening,
    health: Health,
    basis: Basis,
    contract: dict[str, Json],
    block: TimingBlock,
    unknown: dict[str, Json],
) -> Measurement:
    reasons = dict(_nulls(contract)) | unknown
    return Measurement(
        file=file,
        rate_hz=heard.file_rate_hz,
        duration_ms=heard.duration_ms,
        health=health,
        basis=basis,
        heard=heard,
        contract={"metrics_version": METRICS_VERSION, **contract},
        timing=block,
        unknown=reasons,
    )


def _refused(file: str, heard: Listening, health: Health, basis: Basis) -> Measurement:
    why = health.refusal or "the recording was refused"
    return Measurement(
        file=file,
        rate_hz=heard.file_rate_hz,
        duration_ms=heard.duration_ms,
        health=health,
        basis=basis,
        heard=heard,
        unknown={"/contract": why, "/timing": why},
    )


def _nulls(contract: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, value in contract.items():
        if value is None:
            yield f"/contract/{name}", _NO_VALUE.get(name, "there was nothing to measure")


def _basis(
    heard: Listening,
    *,
    origin: str,
    clock: str,
    caller_audio: str,
    labels: str | None,
    tools_known: bool,
) -> Basis:
    witness = WITNESS_DETECTOR if WITNESS_DETECTOR in heard.segments else None
    if witness == heard.detector:
        witness = None
    agreed = [None if witness is None else agreement(heard, side, witness) for side in Side]
    return Basis(
        origin=origin,
        clock=clock,
        detector=heard.detector,
        rate_hz=heard.rate_hz,
        channels=heard.roles.sentence(),
        caller_audio=caller_audio,
        labels=labels,
        tools_known=tools_known,
        witness=witness,
        agreement=(agreed[0], agreed[1]),
    )
