"""The health of a recording as strict JSON; rounds and names, judges nothing.

``measurement.py`` drives it.
"""

from __future__ import annotations

from duplex.intake.echo import Echo
from duplex.intake.health import Health
from duplex.intake.listen import Listening
from duplex.intake.loudness import Loudness
from duplex.metrics.timing_policy import milliseconds
from duplex.values import Json, Side

_SNR_UNKNOWN = {True: "digital silence between words", False: "no pause to measure noise in"}


def health_json(health: Health, heard: Listening) -> dict[str, Json]:
    """Verdict, reasons and remedy first; then the figures they rest on."""
    return {
        "verdict": health.verdict.value,
        "sentence": health.refusal,
        "reasons": [
            {
                "code": reason.code,
                "side": None if reason.side is None else reason.side.label,
                "text": reason.text,
                "remedy": reason.remedy,
            }
            for reason in health.reasons
        ],
        "notes": list(health.notes),
        **{side.label: _side_json(health.sides[side]) for side in Side},
        "balance_db": _round(health.balance_db),
        "channel_correlation": _round(health.likeness, 3),
        "echoes": [_echo_json(echo, heard.rate_hz) for echo in heard.echoes],
        "invalid_samples": heard.repairs.invalid,
        "samples_beyond_full_scale": heard.repairs.beyond,
        "formats": list(heard.formats),
    }


def _side_json(own: Loudness) -> dict[str, Json]:
    silent = own.segments == 0
    return {
        "segments": own.segments,
        "dropped_as_echo": own.segments - own.own_segments,
        "speech_ms": _round(own.speech_ms, 3),
        "longest_segment_ms": _round(own.longest_ms, 3),
        "speech_dbfs": _round(own.speech_dbfs),
        "noise_dbfs": _round(own.noise_dbfs),
        "snr_db": _round(own.snr_db),
        "snr_why_null": None
        if own.snr_db is not None
        else ("no speech" if silent else _SNR_UNKNOWN[own.noise_known]),
        "peak_dbfs": _round(own.peak_dbfs),
        "clipped_share": None if silent else _round(own.clipped_share, 6),
        "crosstalk_db": _round(own.leak_db),
    }


def _echo_json(echo: Echo, rate_hz: int) -> Json:
    return {
        "side": echo.side.label,
        "lag_ms": echo.lag_ms,
        "gain_db": echo.gain_db,
        "segments": [
            {
                "start_ms": milliseconds(copied.span.start, rate_hz),
                "end_ms": milliseconds(copied.span.end, rate_hz),
                "correlation": copied.correlation,
            }
            for copied in echo.segments
        ],
    }


def _round(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)
