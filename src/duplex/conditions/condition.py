"""A condition: what a line does to both legs of a call, as one comparable value.

``uplink`` is the way from caller to assistant, ``downlink`` the way back; each
holds its effects in the order in which they compose. ``str`` gives the canonical
spelling, which parses back to an equal value. ``line`` applies it, results carry
its JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from duplex.conditions.effects import Effect
from duplex.conditions.presets import VERSION
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Effects of both legs. Without any the line is clean and changes no sample.

    ``version`` is that of the preset table; ``parts`` is how it was spelled, one
    entry a name, and is no part of the value.
    """

    uplink: tuple[Effect, ...] = ()
    downlink: tuple[Effect, ...] = ()
    version: int = VERSION
    parts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_clean(self) -> bool:
        """Whether the line changes nothing."""
        return not (self.uplink or self.downlink)

    def __str__(self) -> str:
        return " + ".join(self.parts) or "clean"

    def as_json(self, seed: int) -> dict[str, Json]:
        """Every effect with every key that stands, the preset table's version and the seed.

        This is ``audio_realism`` of a result; it is empty for a clean line.
        """
        if self.is_clean:
            return {}
        return {
            "version": self.version,
            "seed": seed,
            "uplink": [_effect(effect) for effect in self.uplink],
            "downlink": [_effect(effect) for effect in self.downlink],
        }


def _effect(effect: Effect) -> Json:
    return {"effect": effect.title, **effect.keys()}


CLEAN = Condition()
"""A line that changes nothing."""
