"""One HTML page from its parts: markup, style, script and blocks of data.

Nothing untrusted ever becomes markup: data stands in blocks of a type no
browser runs, with every character that could end one escaped, and the policy
in the page's head lets only the script and style of this package through, by
their hashes. It reads package files only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator
from importlib.resources import files

from duplex.values import Json

SCRIPTS = (
    "page.js",
    "gestures.js",
    "timeline.js",
    "player.js",
    "transcript.js",
    "panels.js",
    "main.js",
)
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def data(value: Json) -> str:
    """Strict JSON in ASCII that may stand in a script block of any type."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(
        _ESCAPES
    )


def begin(title: str) -> Iterator[str]:
    """Everything up to where data goes."""
    style = _asset("page.css")
    markup = _asset("page.html")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script())}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{markup}\n"
    )


def block(name: str, value: Json) -> str:
    """A block of JSON; ``name`` is ours."""
    return f'<script type="application/json" id="{name}">{data(value)}</script>\n'


def sound_block(name: str, content: bytes) -> Iterator[str]:
    """A block of base64, in pieces."""
    yield f'<script type="text/plain" id="{name}">'
    size = 3 << 18
    for start in range(0, len(content), size):
        yield base64.b64encode(content[start : start + size]).decode("ascii")
    yield "</script>\n"


def end() -> str:
    return f"<script>{script()}</script>\n</body>\n</html>\n"


def script() -> str:
    """All script of the page, in one scope of its own."""
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def policy(style: str, code: str) -> str:
    """The Content-Security-Policy: our script, our style, our sound, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(code)}'",
            f"style-src '{_hash(style)}'",
            "media-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _asset(name: str) -> str:
    return files("duplex.viewer").joinpath(name).read_text(encoding="utf-8").strip()
