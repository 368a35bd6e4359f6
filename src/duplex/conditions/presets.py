"""Named conditions as data: a preset is a list of effects with their keys.

The version counts up whenever any entry changes, and stands in every result, so
that two runs with the same name and version had the same line. ``spelling``
reads the table; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = 1
"""Version of the table below."""

Keys = Mapping[str, float | int | str | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A name, what it stands for, and the effects in order with the keys they set."""

    name: str
    says: str
    effects: tuple[tuple[str, Keys], ...] = ()


_TELEPHONY: tuple[str, Keys] = ("telephony", {"law": "mu", "gain": 1.8})


def _environment(name: str, kind: str, says: str) -> Preset:
    return Preset(name=name, says=says, effects=(("noise", {"kind": kind, "gain": 0.1}),))


def _bursty(loss: float) -> tuple[str, Keys]:
    return "packet_loss", {"model": "gilbert_elliott", "loss": loss, "burst_ms": 100}


PRESETS: tuple[Preset, ...] = (
    Preset(name="clean", says="nothing"),
    Preset(
        name="noisy",
        says="white noise of a fixed level",
        effects=(("noise", {"kind": "white", "rms": 1_200}),),
    ),
    Preset(name="telephony", says="a loud telephone line", effects=(_TELEPHONY,)),
    Preset(
        name="background_speech",
        says="somebody talks nearby",
        effects=(("background_speech", {"gain": 0.65}),),
    ),
    Preset(
        name="echo",
        says="the caller's own echo",
        effects=(("echo", {"delay_ms": 120, "gain": 0.35}),),
    ),
    Preset(
        name="packet_loss",
        says="two packets in a row go missing, again and again",
        effects=(("packet_loss", {"model": "fixed_burst", "loss": 0.08, "burst_ms": 40}),),
    ),
    Preset(
        name="realistic",
        says="a telephone call from a place where people are",
        effects=(
            ("noise", {"kind": "white", "rms": 500}),
            ("background_speech", {"gain": 0.4}),
            ("echo", {"delay_ms": 120, "gain": 0.25}),
            _TELEPHONY,
            ("packet_loss", {"model": "fixed_burst", "loss": 0.04, "burst_ms": 20}),
            ("tics", {"kind": "cough", "rate_per_min": 18.75, "every_ms": 3_200, "length_ms": 80}),
            ("side_speech", {"rate_per_min": 13, "every_ms": 4_600, "length_ms": 160}),
        ),
    ),
    Preset(
        name="background_noise",
        says="a café around the caller (LiveKit)",
        effects=(("noise", {"kind": "cafe", "snr": 15}),),
    ),
    Preset(
        name="low_quality_microphone",
        says="a cheap microphone (LiveKit)",
        effects=(
            (
                "microphone",
                {"low_hz": 200, "high_hz": 3_800, "clip": -6, "bits": 12, "agc": True},
            ),
        ),
    ),
    Preset(
        name="lossy",
        says="a bad network (LiveKit)",
        effects=(("packet_loss", {"model": "gilbert_elliott", "loss": 0.05, "burst_ms": 60}),),
    ),
    _environment("airport", "airport", "a hall with announcements (Roark)"),
    _environment("children_playing", "children", "children at play (Roark)"),
    _environment("city", "street", "traffic (Roark)"),
    _environment("coffee_shop", "cafe", "many voices and cups (Roark)"),
    _environment("construction", "construction", "hammers and drills (Roark)"),
    _environment("crying_baby", "crying_baby", "a baby cries (Roark)"),
    _environment("driving", "car", "inside a moving car (Roark)"),
    _environment("library", "library", "almost nothing (Roark)"),
    _environment("office", "office", "typing, air, distant voices (Roark)"),
    _environment("thunderstorm", "thunderstorm", "rain and thunder (Roark)"),
    _environment("train", "train", "inside a train (Roark)"),
    Preset(name="none", says="nothing (Roark)"),
    Preset(
        name="tau_control",
        says="τ-voice's control set",
        effects=(_TELEPHONY, _bursty(0.005)),
    ),
    Preset(
        name="tau_regular",
        says="τ-voice's regular set",
        effects=(
            ("noise", {"kind": "street", "snr": 15, "drift_db": 3}),
            ("bursts", {"rate_per_min": 1, "snr_min": -5, "snr_max": 10}),
            ("microphone", {"low_hz": 0, "high_hz": 0, "muffle_prob": 0.2}),
            _TELEPHONY,
            _bursty(0.02),
            ("tics", {"rate_per_min": 0.7}),
            ("side_speech", {"rate_per_min": 0.7}),
        ),
    ),
)
