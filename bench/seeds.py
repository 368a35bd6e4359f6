"""Hold a scenario with many seeds in virtual time and print how often it passes.

    python bench/seeds.py [--scenario ID] [--seeds 20] [--data PATH] [--out DIR]

Wording, pauses, pace, pitch and thinking jitter differ from seed to seed; what is
heard differs with them. Exit code 1 when fewer than 95 % pass.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from duplex.options import make
from duplex.runner import Runner

WANTED = 0.95


async def one(scenario: str, seed: int, data: Path | None, out: Path) -> bool:
    """Hold one call, print its line, and tell whether it passed."""
    values: dict[str, object] = {"scenario": [scenario], "clock": "virtual", "seed": seed}
    finished = await Runner(make(values | {"out": out, "data": data})).run()
    (result,) = finished.run.results
    failed = ", ".join(result.observability.completion.failed_checks)
    speed = finished.run.run.duplex["speed"]
    assert isinstance(speed, dict)
    print(f"seed {seed:>3}  {result.status:<7} {speed['call']:>6}×  {failed}", flush=True)
    return result.status == "passed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="restaurant_booking_complete")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        passed = [
            asyncio.run(one(given.scenario, seed, given.data, out)) for seed in range(given.seeds)
        ]
    print(f"{given.scenario}: {sum(passed)} of {len(passed)} seeds passed")
    return 0 if sum(passed) >= WANTED * len(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
