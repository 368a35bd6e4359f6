"""Writes the tables of docs/conditions.md and the chart of the beds' spectra.

    python docs/conditions_tables.py

Tables come from the models and presets themselves, figures from the rendered beds;
a test fails when a table is not what this script would write.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from duplex import beds
from duplex.active_level import speech_level
from duplex.conditions import EFFECTS, PRESETS, VERSION, Effect
from duplex.conditions.spelling import bounds, number

DOCS = Path(__file__).parent
PAGE = DOCS / "conditions.md"
CHART = DOCS / "images" / "beds.svg"
RATE_HZ = 24_000
CENTRES_HZ = tuple(50 * 2 ** (k / 3) for k in range(24))

Floats = npt.NDArray[np.float64]


# -- tables --------------------------------------------------------------------


def effects() -> str:
    """Every effect with every key, its bounds and default."""
    lines = ["| effect | key | takes | default | is |", "|---|---|---|---|---|"]
    for kind in EFFECTS:
        title = f"**`{kind.title}`**: {kind.says}"
        if kind.uplink_only:
            title += " (uplink only)"
        for key, field in kind.model_fields.items():
            cells = (title, f"`{key}`", _takes(kind, key), _default(kind, key), field.description)
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
            title = ""
    return "\n".join(lines)


def presets() -> str:
    """Every preset and what it is made of."""
    lines = [f"Version {VERSION} of the table.", "", "| preset | is | made of |", "|---|---|---|"]
    for preset in PRESETS:
        parts = [
            f"`{','.join((name, *(f'{key}={_spelled(value)}' for key, value in keys.items())))}`"
            for name, keys in preset.effects
        ]
        lines.append(f"| `{preset.name}` | {preset.says} | {' + '.join(parts) or 'nothing'} |")
    return "\n".join(lines)


def figures() -> str:
    """What each bed is in numbers."""
    lines = [
        "| bed | is | centroid | crest | P.56 active | strongest modulation |",
        "|---|---|---|---|---|---|",
    ]
    for entry in beds.BEDS:
        pcm = beds.bed(entry.kind, RATE_HZ).samples
        x = pcm.astype(np.float64)
        crest = 20 * np.log10(np.abs(x).max() / np.sqrt((x * x).mean()))
        active = speech_level(pcm, RATE_HZ).active_dbov
        lines.append(
            f"| `{entry.kind}` | {entry.says} | {centroid(x):.0f} Hz | {crest:.0f} dB "
            f"| {active:.1f} dBov | {_rate(modulation(x))} |"
        )
    return "\n".join(lines)


def _takes(kind: type[Effect], key: str) -> str:
    description = str(kind.model_fields[key].description)
    told = bounds(kind, key).removeprefix("a number ").removeprefix("one of: ")
    return "a kind" if told == "a name or a path" and description else told


def _default(kind: type[Effect], key: str) -> str:
    stands = kind().keys().get(key)
    return "–" if stands is None else f"`{_spelled(stands)}`"


def _spelled(value: float | int | str | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else number(value)


# -- figures -------------------------------------------------------------------


def spectrum(x: Floats) -> tuple[Floats, Floats]:
    """Frequencies and mean power of a loop, in windows of 4096 samples that wrap round."""
    size, hop = 4_096, 2_048
    window = np.hanning(size)
    round_trip = np.concatenate((x, x[:size]))
    starts = range(0, len(x) - hop, hop)
    power = np.zeros(size // 2 + 1)
    for start in starts:
        power += np.abs(np.fft.rfft(round_trip[start : start + size] * window)) ** 2
    return np.fft.rfftfreq(size, 1 / RATE_HZ), power / len(starts)


def thirds(x: Floats) -> list[float]:
    """Level of each third of an octave from 50 Hz to 10 kHz, dB against the loudest."""
    hz, power = spectrum(x)
    edge = 2 ** (1 / 6)
    levels = []
    for centre in CENTRES_HZ:
        low, high = centre / edge, centre * edge
        inside = (hz >= low) & (hz < high)
        # Narrow bands hold few lines: their mean, spread over the whole band.
        level = power[inside].mean() if inside.any() else power[np.argmin(np.abs(hz - centre))]
        levels.append(float(level * (high - low)))
    return [10 * float(np.log10(level / max(levels))) for level in levels]


def centroid(x: Floats) -> float:
    """Mean frequency, weighted by power."""
    hz, power = spectrum(x)
    return float((hz * power).sum() / power.sum())


def modulation(x: Floats) -> dict[float, float]:
    """Depth of the envelope's modulation in octave bands from 0.5 to 16 Hz, dB."""
    hop = RATE_HZ // 100
    frames = x[: len(x) // hop * hop].reshape(-1, hop)
    envelope = np.sqrt((frames * frames).mean(axis=1))
    lines = np.abs(np.fft.rfft(envelope / envelope.mean() - 1)) ** 2 / len(envelope) ** 2 * 2
    hz = np.fft.rfftfreq(len(envelope), 0.01)
    found = {}
    for centre in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        inside = (hz >= centre / 2**0.5) & (hz < centre * 2**0.5)
        found[centre] = 10 * float(np.log10(lines[inside].sum()))
    return found


def _rate(depths: dict[float, float]) -> str:
    best = max(depths, key=lambda hz: depths[hz])
    return f"{best:g} Hz, {depths[best]:.0f} dB"


# -- chart ---------------------------------------------------------------------

_WIDTH, _HEIGHT, _COLUMNS = 190, 112, 4
_DEEP = 50.0


def chart() -> str:
    """Small multiples of the beds' spectra, the babble's behind each for comparison."""
    curves = {
        entry.kind: thirds(beds.bed(entry.kind, RATE_HZ).samples.astype(np.float64))
        for entry in beds.BEDS
    }
    rows = -(-len(curves) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH + 40, rows * _HEIGHT + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui,sans-serif" font-size="10" role="img" '
        'aria-label="Long-term spectrum of each noise bed in thirds of an octave">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for place, (kind, levels) in enumerate(curves.items()):
        left = 34 + place % _COLUMNS * _WIDTH
        top = 8 + place // _COLUMNS * _HEIGHT
        out += _panel(kind, levels, curves["babble"], left, top, place)
    caption = "thirds of an octave, dB against the loudest; grey: babble, the spectrum of speech"
    out.append(f'<text x="34" y="{height - 8}" fill="#555">{caption}</text></svg>')
    return "\n".join(out) + "\n"


def _panel(
    kind: str, levels: list[float], speech: list[float], left: int, top: int, place: int
) -> list[str]:
    inner, tall = _WIDTH - 22, _HEIGHT - 34
    out = [f'<g transform="translate({left} {top})">']
    for level in (0, -20, -40):
        y = -level / _DEEP * tall + 14
        out.append(f'<path d="M0 {y:.1f}H{inner}" stroke="#e4e4e4"/>')
        if place % _COLUMNS == 0:
            out.append(f'<text x="-5" y="{y + 3:.1f}" text-anchor="end" fill="#777">{level}</text>')
    for hz, name in ((100, "100"), (1_000, "1k"), (10_000, "10k")):
        x = float(np.log2(hz / 50)) / 7.7 * inner
        out.append(
            f'<text x="{x:.1f}" y="{tall + 27}" text-anchor="middle" fill="#777">{name}</text>'
        )
    for curve, colour, thick in ((speech, "#c9c9c9", 1), (levels, "#0b5fa5", 1.6)):
        points = " ".join(
            f"{k / 3 / 7.7 * inner:.1f},{min(-level, _DEEP) / _DEEP * tall + 14:.1f}"
            for k, level in enumerate(curve)
        )
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thick}"/>'
        )
    out.append(f'<text x="0" y="9" font-weight="600" fill="#222">{kind}</text></g>')
    return out


# -- the page ------------------------------------------------------------------


def filled(page: str) -> str:
    """The page with each block between its marks written anew."""
    for name, made in (("effects", effects), ("presets", presets), ("figures", figures)):
        block = f"<!-- {name} -->\n{made()}\n<!-- end of {name} -->"
        pattern = re.compile(f"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
        assert pattern.search(page), name
        page = pattern.sub(lambda _, text=block: text, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    CHART.write_text(chart(), encoding="utf-8")
