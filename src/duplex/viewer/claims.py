"""What an agent claims of its own timing, as a panel: each claim beside what was heard.

Rows come from ``results[].duplex.claims`` as they stand; nothing is computed here.
A call without claims has no panel.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import compact, number, objects
from duplex.viewer.rows import Row

_STAGES = {
    "asr_final_ms": "words final",
    "first_token_ms": "first token",
    "first_sentence_ms": "first sentence",
    "first_byte_ms": "first byte",
}
_MEANING = (
    "What the agent said of this reply over the side channel; stages count from the end of the "
    "caller's turn. Heard is measured in the recording."
)


def claim_rows(claims: Json) -> list[Row]:
    """A row for each reply with a claim."""
    return [_row(one) for one in objects(claims)]


def _row(claim: Mapping[str, Json]) -> Row:
    start = number(claim.get("start_ms"))
    told = [
        f"{name} {say.ms(value)}"
        for name, value in (
            ("claimed", number(claim.get("claimed_latency_ms"))),
            ("heard", number(claim.get("heard_latency_ms"))),
            ("the assistant's own", number(claim.get("assistant_own_ms"))),
        )
        if value is not None
    ]
    stages = [
        f"{name} {say.ms(value)}"
        for key, name in _STAGES.items()
        if (value := number(claim.get(key))) is not None
    ]
    return Row(
        name="reply" if start is None else f"reply at {say.clock(start)}",
        value=" · ".join(told) or "claimed stages only",
        details=tuple(stages),
        exact="" if claim.get("difference_ms") is None else compact(claim["difference_ms"]),
        meaning=_MEANING,
        source="side channel",
    )
