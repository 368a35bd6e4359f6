"""Property tests draw the same examples every time, and no machine is too slow for them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("duplex", derandomize=True, deadline=None)
settings.load_profile("duplex")
