"""Whether words end a conversation: thanks or a farewell, with nothing asked beside them.

A request that comes with a goodbye is a request. Pure; who ends calls, and who labels
what was said in them, go by it.
"""

from __future__ import annotations

import re

from duplex.application.words import bare, clean, is_farewell, is_thanks, questions

_WISH = re.compile(
    r"\b(?:(?:i|we)(?:'d| would) (?:also |still |rather )?(?:like|love|prefer|want)|"
    r"(?:i|we) (?:also |still |just )?(?:need|want|wish)|(?<!you )also|instead|one more thing|"
    r"please (?:also )?(?:add|book|cancel|change|check|do not|don't|have|keep|let|make|move|put|"
    r"remove|reserve|send|set|tell|text|update)|(?:add|change|cancel|move|make) (?:it|that|this|"
    r"the|my|our|a)|not (?:right|correct)|wrong|actually|hold on)\b"
)

_SETTLED = re.compile(
    r"\b(?:all|everything|what) (?:that )?(?:i|we) (?:need|want|wish|wanted)(?:ed)?(?: to \w+)?\b"
)
"""Wishes spoken of because they are fulfilled."""


def is_closing(text: str) -> bool:
    """Whether the speaker ends the conversation, with nothing asked, wished or put right."""
    if not (is_farewell(text) or is_thanks(text)):
        return False
    rest = _SETTLED.sub(" ", clean(text).lower())
    return not questions(rest) and not _WISH.search(bare(rest))
