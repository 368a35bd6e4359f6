"""Nothing secret and nothing unwritable reaches a file.

Turns any JSON-like value into strict JSON: secrets are replaced by key name,
by known value and by unmistakable shape; lone surrogates, NaN and bottomless
nesting are made harmless. What the application under test holds (its state, the
arguments and results of its tools, and what is graded of them) is the scenario's
own and must stay gradeable: there a name such as ``token`` hides nothing, only
known values and shapes do, and fields that somebody asked to have hidden become
marks that compare as their values did (``private_fields.py``). It never raises.
The recorder and the run folder drive it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from duplex.private_fields import PrivateFields
from duplex.values import Json

HIDDEN = "[redacted]"
_MAX_DEPTH = 100
_SHORTEST_SECRET = 4
_LONGEST_INTEGER_BITS = 1024
"""Whole numbers beyond what a double can hold are no JSON that others can read."""

_SECRET_KEYS = frozenset(
    {"authorization", "proxyauthorization", "bearer", "cookie", "setcookie", "credentials"}
)
# Compared after lower-casing and dropping "-", "_", " ": "tokens" (a count) stays.
_SECRET_ENDS = ("apikey", "token", "secret", "password", "passwd", "privatekey", "accesskey")
APPLICATIONS_OWN = frozenset(
    {"state", "arguments", "result", "evidence", "initial_state", "known_facts"}
)
_SHAPES = re.compile(
    r"""(?ix)
      \b sk-[a-z0-9_-]{16,}
    | (?<! [a-z0-9_-] ) eyj[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}
    | \b gh[pousr]_[a-z0-9]{20,}
    | \b xox[abeprs]-[a-z0-9-]{10,}
    | \b akia[a-z0-9]{16} \b
    | (?<= \b bearer \s ) (?= \S* \d ) [\w.~+/=-]{8,}
    | (?<= :// ) [^\s/@?\#"'<>]+ (?= @ )
    """
)
_QUERY = re.compile(
    r"(?i)([?&;][\w.-]*(?:key|token|secret|passw(?:or)?d|signature|sig|auth)=)[^&;\s#\"'<>]+"
)
_HEADER = re.compile(
    r"""(?ix)
    ( \b (?:proxy-)?authorization | \b x-api-key | \b api-key | \b (?:set-)?cookie )
    ( ["']? \s* [:=] \s* ["']? (?: (?:bearer|basic|digest|token) \s+ )? )
    ( (?! \[redacted | (?:bearer|basic|digest|token) \s ) [^\s"',;}\]]+ )
    """
)


class Redactor:
    """Cleans values; ``secrets`` are known values to hide wherever they occur.

    ``private`` are the fields that are hidden beside them.
    """

    def __init__(self, secrets: Iterable[str] = (), private: PrivateFields | None = None) -> None:
        self.private = private
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        # A peer may give a secret back the way it stood in an address.
        known |= {quote(secret, safe="") for secret in known}
        # Longest first: a secret that contains another must not leave its rest behind.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """Hide secrets in a text and make it encodable."""
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = self.known(text)
        if "=" in text:
            text = _QUERY.sub(rf"\1{HIDDEN}", text)
        if ":" in text or "=" in text:
            text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
        text = _SHAPES.sub(HIDDEN, text)
        return text if self.private is None else self.private.hide(text)

    def known(self, text: str) -> str:
        """Hide known secrets in a text and change nothing else."""
        return text if self._known is None else self._known.sub(HIDDEN, text)

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
            return int(value) if value.bit_length() <= _LONGEST_INTEGER_BITS else None
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
        try:
            return self.text(str(value))
        except Exception:
            return None  # somebody else's object that cannot even be shown

    def _member(self, key: str, value: object, depth: int, names: bool = True) -> Json:
        names = names and key not in APPLICATIONS_OWN
        if not names:
            if self.private is not None and self.private.covers(key):
                value = self.private.marked(value, _MAX_DEPTH - depth)
            return self._clean(value, depth, names)
        if value is None or isinstance(value, bool) or not is_secret_key(key):
            return self._clean(value, depth, names)
        return HIDDEN


def is_secret_key(key: str) -> bool:
    """Whether a member of this name holds a secret."""
    plain = re.sub(r"[-_\s]", "", key).lower()
    return plain in _SECRET_KEYS or plain.endswith(_SECRET_ENDS)
