"""Nothing secret and nothing unwritable reaches a file.

Turns any JSON-like value into strict JSON: secrets are replaced by key name,
by known value and by unmistakable shape; lone surrogates, NaN and bottomless
nesting are made harmless. What the application under test holds (its state, the
arguments and results of its tools, and what is graded of them) is the scenario's
own and must stay gradeable: there a name such as ``token`` hides nothing, only
known values and shapes do. It never raises. The recorder and the run folder
drive it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from duplex.values import Json

HIDDEN = "[redacted]"
_MAX_DEPTH = 100
_SHORTEST_SECRET = 4

_SECRET_KEYS = frozenset(
    {"authorization", "proxyauthorization", "bearer", "cookie", "setcookie", "credentials"}
)
# Compared after lower-casing and dropping "-", "_", " ": "tokens" (a count) stays.
_SECRET_ENDS = ("apikey", "token", "secret", "password", "passwd", "privatekey", "accesskey")
_APPLICATIONS_OWN = frozenset({"state", "arguments", "result", "evidence"})
_SHAPES = re.compile(
    r"""(?ix)
      \b sk-[a-z0-9_-]{16,}
    | \b eyj[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}
    | (?<= \b bearer \s ) (?= \S* \d ) [\w.~+/=-]{8,}
    | (?<= :// ) [^\s/@:]+ : [^\s/@]+ (?= @ )
    """
)
_QUERY = re.compile(r"(?i)([?&](?:api[-_]?key|key|(?:access[-_]?)?token|secret)=)[^&\s#]+")


class Redactor:
    """Cleans values; ``secrets`` are known values to hide wherever they occur."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        # Longest first: a secret that contains another must not leave its rest behind.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """Hide secrets in a text and make it encodable."""
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if "=" in text:
            text = _QUERY.sub(rf"\1{HIDDEN}", text)
        return _SHAPES.sub(HIDDEN, text)

    def json(self, value: object) -> Json:
        """Return ``value`` as strict JSON without secrets."""
        return self._clean(value, 0)

    def fields(self, fields: Mapping[str, Json]) -> dict[str, Json]:
        """Clean the members of an object, looking at their names too."""
        return {self.text(key): self._member(key, value, 1) for key, value in fields.items()}

    def _clean(self, value: object, depth: int, names: bool = True) -> Json:
        """``names``: whether a member's name can make it a secret."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if depth >= _MAX_DEPTH:
            return None
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._member(str(key), item, depth + 1, names)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean(item, depth + 1, names) for item in value]
        return self.text(str(value))

    def _member(self, key: str, value: object, depth: int, names: bool = True) -> Json:
        names = names and key not in _APPLICATIONS_OWN
        if not names or value is None or isinstance(value, bool) or not is_secret_key(key):
            return self._clean(value, depth, names)
        return HIDDEN


def is_secret_key(key: str) -> bool:
    """Whether a member of this name holds a secret."""
    plain = re.sub(r"[-_\s]", "", key).lower()
    return plain in _SECRET_KEYS or plain.endswith(_SECRET_ENDS)
