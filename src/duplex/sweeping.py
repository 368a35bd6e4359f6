"""``--sweep PROPERTY=VALUE,VALUE…``: one call setting varied, everything else held.

A property is a condition (``condition``), one key of an effect or a preset
(``noisy.snr``), a caller level (``persona.interruptions``), or one of the options
that choose a voice, a model or a party. The first value is the baseline. Values
that hold commas are parted by ``|``. What a value is laid over stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from duplex import conditions
from duplex.errors import InputError
from duplex.options import RunOptions, make
from duplex.scenario import Scenario
from duplex.scenario.options import DuplexOptions, PersonaLevels
from duplex.verdict.case import Arm

OPTIONS = (
    "assistant",
    "audio_format",
    "backend_model",
    "brain_model",
    "caller",
    "delegation",
    "model",
    "simulator_brain_model",
    "simulator_model",
    "simulator_voice",
    "turn_detection",
    "voice",
)
"""Options that can be swept."""
_PERSONA = "persona."
_NONE = ("none", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A sweep as it was asked for: its property and its arms, the baseline first."""

    property: str
    arms: tuple[Arm, ...]

    def given_by(self, options: RunOptions) -> str | None:
        """The option that says already what is swept; None where none does.

        A key of an effect is laid over the conditions that are given.
        """
        name = self.property if self.property in (*OPTIONS, "condition") else None
        return f"--{name.replace('_', '-')}" if name in options.model_fields_set and name else None

    def options(self, arm: Arm, options: RunOptions) -> RunOptions:
        """The run's options in this arm."""
        given = {name: getattr(options, name) for name in options.model_fields_set}
        given.pop("sweep", None)
        if self.property in OPTIONS:
            given[self.property] = arm.value
        elif not self.property.startswith(_PERSONA):
            given.pop("condition", None)  # the arm's scenarios say the whole line
        try:
            return make(given)
        except InputError as error:
            raise InputError(f"sweep {arm.key}: {error}") from None

    def scenario(self, arm: Arm, scenario: Scenario, options: RunOptions) -> Scenario:
        """A scenario as this arm holds it."""
        if self.property in OPTIONS:
            return scenario
        own = scenario.duplex
        if self.property.startswith(_PERSONA):
            level = PersonaLevels.model_validate({self.property[len(_PERSONA) :]: arm.value})
            changed = DuplexOptions(persona=level).over(own)
        else:
            base = options.condition or own.conditions or ()
            changed = own.model_copy(update={"conditions": _line(self.property, arm.value, base)})
        return scenario.model_copy(update={"duplex": changed})


def parse(text: str) -> Swept:
    """Read a sweep; raise InputError that says what is wrong with it."""
    name, equals, listed = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not name:
        raise InputError(f'sweep "{text}": want PROPERTY=VALUE,VALUE…')
    mark = "|" if "|" in listed else ","
    values = [value.strip() for value in listed.split(mark)]
    if not all(values):
        raise InputError(f'sweep "{text}": a value is empty')
    if len(values) < 2:
        raise InputError(f'sweep "{text}": one value, want two or more')
    twice = next((value for at, value in enumerate(values) if value in values[:at]), None)
    if twice is not None:
        raise InputError(f'sweep "{text}": value "{twice}" is there twice')
    _known(name, values, text)
    _apart(name, values, text)
    arms = tuple(
        Arm(key=f"{name}={value}", value=value, label=f"{name} {value}", baseline=at == 0)
        for at, value in enumerate(values)
    )
    return Swept(property=name, arms=arms)


def _known(name: str, values: Sequence[str], text: str) -> None:
    """Refuse a property or a value that does not exist."""
    if name in OPTIONS:
        return
    for value in values:
        try:
            if name.startswith(_PERSONA):
                PersonaLevels.model_validate({name[len(_PERSONA) :]: value})
            else:
                _line(name, value, ())
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "extra_forbidden":
                levels = ", ".join(f"{_PERSONA}{level}" for level in PersonaLevels.model_fields)
                raise InputError(f'sweep "{text}": want one of {levels}') from None
            raise InputError(f'sweep "{text}": value "{value}": {first["msg"]}') from None
        except InputError as error:
            raise InputError(f'sweep "{text}": {error}') from None


def _apart(name: str, values: Sequence[str], text: str) -> None:
    """Refuse two spellings of one line: they would be tested as if they differed."""
    if name in OPTIONS or name.startswith(_PERSONA):
        return
    lines: dict[str, str] = {}
    for value in values:
        same = lines.setdefault(str(conditions.parse(_line(name, value, ()))), value)
        if same != value:
            raise InputError(f'sweep "{text}": values "{same}" and "{value}" are the same')


def _line(name: str, value: str, base: Sequence[str]) -> tuple[str, ...]:
    """The conditions of an arm: in place of ``base``, or laid over it."""
    if name == "condition":
        found: tuple[str, ...] = (value,)
    elif value in _NONE:
        found = tuple(base)
    else:
        effect, dot, key = name.rpartition(".")
        if not dot:
            raise InputError(
                f'"{name}" is no property; want condition, EFFECT.KEY, persona.LEVEL or one of '
                f"{', '.join(OPTIONS)}"
            )
        found = (*base, f"{effect},{key}={value}")
    conditions.parse(found)
    return found
