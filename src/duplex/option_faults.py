"""What is wrong with an option, in one sentence: the first fault that validation found.

Options of runs and of judges end here; it knows no option.
"""

from __future__ import annotations

from pydantic import ValidationError

from duplex.errors import InputError


def option_fault(error: ValidationError) -> InputError:
    """The first fault as an error that names the option and what it got."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "tuple_type":
        message = "want a list"
    got = "" if not where else f"option {where.replace('_', '-')}: got {first['input']!r}; "
    return InputError(f"{got}{message[:1].lower()}{message[1:]}")
