"""Of several errors at once, the one to tell: calls side by side may fail together.

It decides nothing about a run and hides nothing of ours; whoever waits for a group of
tasks drives it.
"""

from __future__ import annotations

from collections.abc import Iterator

from duplex.errors import DuplexError, InputError
from duplex.inputs import reason


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception to tell of several: ours first, the system's in our words."""
    found = list(_leaves(errors))
    ours = [error for error in found if isinstance(error, DuplexError)]
    if ours:
        return ours[0]
    if isinstance(found[0], OSError):
        return InputError(f"{found[0].filename or 'the run'}: {reason(found[0])}")
    return found[0]


def _leaves(errors: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
