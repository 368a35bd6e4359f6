"""Every bed and clip is there, level, seamless and the same whoever renders it."""

from __future__ import annotations

import pytest

from duplex import beds
from duplex.conditions.effects import BURST_KINDS, NOISE_KINDS, TIC_KINDS


def test_every_kind_a_condition_may_name_can_be_rendered() -> None:
    assert tuple(entry.kind for entry in beds.BEDS) == NOISE_KINDS
    assert ("any", *(entry.kind for entry in beds.BURSTS)) == BURST_KINDS
    assert ("any", *(entry.kind for entry in beds.TICS)) == TIC_KINDS


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_a_bed_is_a_loop_of_half_a_minute_at_one_level(kind: str) -> None:
    bed = beds.bed(kind, 8_000)
    assert bed.seconds == beds.LOOP_S
    assert not bed.silent
