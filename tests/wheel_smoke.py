"""Run from an empty folder in an environment that holds only the wheel: it must work there.

Not collected by pytest; ``.ci/run`` copies it away from the tree and runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import duplex
from duplex.engine import Engine
from duplex.values import Side


def duplex_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "duplex", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def main() -> None:
    assert "site-packages" in (duplex.__file__ or ""), "not the installed package"
    engine = Engine()
    said = np.arange(480, dtype=np.int16)
    engine.feed(Side.CALLER, said)
    engine.advance(1)
    np.testing.assert_array_equal(engine.heard(Side.ASSISTANT), said)

    found = duplex_command("doctor", "--json")
    names = {finding["name"]: finding for finding in json.loads(found.stdout)}
    assert names["compiled core"]["ok"], names
    assert names["webrtc detector"]["ok"], names

    shipped = Path(duplex.__file__ or "").parent / "scenarios"
    static = Path(duplex.__file__ or "").parent / "serve" / "pages" / "static"
    assert {"page.css", "run.js", "live.js", "icon.svg"} <= {one.name for one in static.iterdir()}
    valid = duplex_command("scenario", "validate", str(shipped))
    assert valid.returncode == 0, valid.stderr

    # Without the speech extra: one sentence with the command that installs it.
    refused = duplex_command("run", "--scenario", "restaurant_booking_complete")
    assert refused.returncode == 2, refused
    assert "pip install" in refused.stderr, refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    print("wheel smoke run: passed")


if __name__ == "__main__":
    main()
