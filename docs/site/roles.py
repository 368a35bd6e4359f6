"""Docstrings as the site's Markdown: a role such as ``:class:`~duplex.Run``` is its name.

Griffe drives it while it reads the package; no source is changed.
"""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Writes roles as code, by the last part of a dotted name of ours."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(_name, obj.docstring.value)


def _name(found: re.Match[str]) -> str:
    name = found[1].removeprefix("duplex.")
    return f"`{name.rsplit('.', 1)[-1] if found[1] != name else name}`"
