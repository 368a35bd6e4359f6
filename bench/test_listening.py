"""What listening costs: the edge detector beside webrtc, and measuring beside real time.

Both detectors run inside the same engine, turn by turn in one process, so the
ratio holds on a busy machine; the multiples of real time are of this run's CPU.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import soundfile

from conftest import Bench, cpu_seconds, paired
from duplex import _core
from duplex.detect import Stream, webrtc_backend
from duplex.intake import Labels, health_of, listen, open_sides
from duplex.metrics.measurement import measure_recording
from test_core import ASSISTANT, CALLER, RATE_HZ, SECONDS

EDGE_LIMIT = 2.5
WIDE_GAIN = 1.3
TIMES_REAL = {("rms",): 1_500.0, ("rms", "webrtc"): 600.0}
"""By what listens beside edge; the contract's rms always does."""
REPEATS = 20


def hear(detector: str) -> None:
    stream = Stream(RATE_HZ, detector)
    stream.push(CALLER, ASSISTANT)
    stream.finish()


@pytest.mark.skipif(webrtc_backend() != "native", reason="webrtc runs as Python here")
def test_edge_costs_little_more_than_webrtc(bench: Bench) -> None:
    pair = paired(lambda: hear("webrtc"), lambda: hear("edge"), bench.rounds)
    bench.time(lambda: hear("edge"))
    each_us = pair.two / (2 * SECONDS * 100) * 1e6
    bench.report(
        "edge against webrtc, 10 ms of one side",
        f"{pair.ratio:.2f}x, {each_us:.2f} us",
        f"<= {EDGE_LIMIT:g}x",
        pair.ratio <= EDGE_LIMIT,
        ratio=pair.ratio,
        edge_us=each_us,
    )
    if bench.fixture.enabled:
        assert pair.ratio <= EDGE_LIMIT


@pytest.mark.skipif(
    not _core.WIDE_KERNELS, reason="no kernels for this processor but the plain ones"
)
def test_both_sides_in_one_vector_take_less_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(_core, "WIDE_KERNELS", False)
            hear("edge")

    pair = paired(lambda: hear("edge"), plain, bench.rounds)
    bench.time(lambda: hear("edge"))
    each = 2 * SECONDS * RATE_HZ
    bench.report(
        "edge without AVX2 / with it",
        f"{pair.ratio:.2f}x, {each / pair.one / 1e6:.0f} M samples/s",
        f">= {WIDE_GAIN:g}x",
        pair.ratio >= WIDE_GAIN,
        ratio=pair.ratio,
        samples_per_s=each / pair.one,
    )


@pytest.mark.parametrize("also", TIMES_REAL, ids=["edge", "edge+webrtc"])
def test_measuring_runs_many_times_faster_than_the_sound(
    also: tuple[str, ...], bench: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "call.wav"
    both = np.stack([np.tile(CALLER, REPEATS), np.tile(ASSISTANT, REPEATS)], axis=1)
    soundfile.write(path, both, RATE_HZ)

    def measure() -> None:
        with ExitStack() as stack:
            heard = listen(open_sides((path,), None, stack), "edge", also)
        measure_recording("call", heard, health_of(heard), Labels())

    measure()
    spent = min(cpu_seconds(measure) for _ in range(bench.rounds))
    bench.time(measure)
    times = SECONDS * REPEATS / spent
    bench.report(
        f"measuring with {' + '.join(('edge', *also))}",
        f"{times:.0f}x real time",
        f">= {TIMES_REAL[also]:.0f}x",
        times >= TIMES_REAL[also],
        times_real=times,
    )
