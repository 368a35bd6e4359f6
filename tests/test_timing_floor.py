"""Floor algebra against a brute-force oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyannote.core import Annotation, Segment, Timeline

from duplex.metrics.floor import Floor, floor_json, floor_of
from duplex.metrics.intervals import Runs, clip, merge

runs = st.lists(st.tuples(st.integers(-20, 320), st.integers(-20, 320)), max_size=9).map(merge)


def spoken(voice: Runs, duration: int) -> list[bool]:
    return [any(start <= at < end for start, end in voice) for at in range(duration)]


@given(runs, runs, st.integers(0, 300))
def test_the_floor_is_what_counting_samples_gives(a: Runs, b: Runs, duration: int) -> None:
    caller = np.array(spoken(a, duration), dtype=bool)
    assistant = np.array(spoken(b, duration), dtype=bool)
    assert floor_of(a, b, duration) == Floor(
        caller=int((caller & ~assistant).sum()),
        assistant=int((assistant & ~caller).sum()),
        overlap=int((caller & assistant).sum()),
        silence=int((~caller & ~assistant).sum()),
    )


@given(runs, runs, st.integers(0, 300))
def test_swapping_the_sides_swaps_the_floor(a: Runs, b: Runs, duration: int) -> None:
    one, other = floor_of(a, b, duration), floor_of(b, a, duration)
    assert (one.caller, one.assistant) == (other.assistant, other.caller)
    assert (one.overlap, one.silence) == (other.overlap, other.silence)


@settings(max_examples=200)
@given(
    st.tuples(*[st.integers(0, 2_000_000)] * 4),
    st.sampled_from((8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000)),
)
def test_rounded_milliseconds_sum_to_the_call(parts: tuple[int, ...], rate: int) -> None:
    floor = Floor(caller=parts[0], assistant=parts[1], overlap=parts[2], silence=parts[3])
    written = floor_json(floor, rate)
    micros = {name: round(ms * 1000) for name, ms in written.items() if isinstance(ms, float)}
    assert sum(micros.values()) == round(sum(parts) * 1_000_000 / rate)
    for value, part in zip(micros.values(), parts, strict=True):
        assert abs(value - part * 1_000_000 / rate) <= 1


def test_an_empty_call_has_an_empty_floor() -> None:
    assert floor_of((), (), 0).duration == 0


long_runs = st.lists(
    st.tuples(st.integers(-20, 90_000_000), st.integers(0, 200_000)), max_size=40
).map(lambda found: merge([(start, start + length) for start, length in found]))


@settings(max_examples=120, deadline=None)
@given(
    st.one_of(
        st.tuples(runs, runs, st.integers(1, 300)),
        st.tuples(long_runs, long_runs, st.integers(1, 86_400_000)),
    )
)
def test_the_floor_is_that_of_pyannote(talk: tuple[Runs, Runs, int]) -> None:
    a, b, duration = talk
    call = Timeline([Segment(0, duration)])

    def timeline(voice: Runs) -> Timeline:
        return Timeline([Segment(*run) for run in clip(voice, 0, duration)]).support()

    def length(part: Timeline) -> int:
        seconds: float = part.duration()
        return round(seconds)

    caller, assistant = timeline(a), timeline(b)
    both = Annotation()
    for name, side in (("caller", caller), ("assistant", assistant)):
        for part in side:
            both[part, name] = name
    overlap = length(both.get_overlap()) if both else 0
    silence = length(both.get_timeline().support().gaps(support=call)) if both else duration
    found = floor_of(a, b, duration)
    assert (found.overlap, found.silence) == (overlap, silence)
    assert found.caller == length(caller) - overlap
    assert found.assistant == length(assistant) - overlap
