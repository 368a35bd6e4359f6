"""``duplex talk --list-devices``: the sound devices there are, and which are the usual ones.

It opens none of them, and is told apart from the call so that it needs little else.
"""

from __future__ import annotations

import json

from duplex import outlets
from duplex.card.device import Device, Driver
from duplex.errors import InputError
from duplex.screen import plain


def show(driver: Driver, *, as_json: bool) -> int:
    """Print the devices; return the exit code. Raises InputError where there is none."""
    devices = driver.devices()
    if not devices:
        raise InputError("no sound device: this machine has no sound card that can be used")
    if as_json:
        text = json.dumps([_as_json(one) for one in devices])
    else:
        text = "\n".join(_as_text(one) for one in devices)
    outlets.put(text + "\n")
    return 0


def _as_json(one: Device) -> dict[str, object]:
    return {
        "index": one.index,
        "name": one.name,
        "host": one.host,
        "inputs": one.inputs,
        "outputs": one.outputs,
        "rate_hz": one.rate_hz,
        "default_input": one.default_input,
        "default_output": one.default_output,
    }


def _as_text(one: Device) -> str:
    usual = [kind for kind in ("input", "output") if one.is_default(kind)]
    also = f", default {' and '.join(usual)}" if usual else ""
    return plain(
        f"{one.index:>3}  {one.name} ({one.host}): {one.inputs} in, {one.outputs} out, "
        f"{one.rate_hz} Hz{also}"
    )
