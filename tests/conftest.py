"""What all tests share: examples that are drawn alike every time, long files first.

No machine is too slow for a property test. The files that hold whole spoken calls or start
many processes are dealt out first, so that no worker is left alone with one at the end.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("duplex", derandomize=True, deadline=None)
settings.load_profile("duplex")

LONG = (
    "local_call",
    "run_stopped",
    "serve_live",
    "model_calls",
    "runs",
    "twilio_calls",
    "fault_commands",
    "talk_sound",
    "serve_browser",
    "serve_load",
    "beds",
    "laws",
    "run_hardening",
    "fault_table",
    "fault_calls",
    "tutorial",
    "serve_setting",
    "realtime_calls",
    "voice_engines",
    "brains_calls",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in LONG)
