"""Which assistant a run calls: what ``--assistant`` may say, read into one value.

One row for each kind of agent, and what the rest of a run must know of it: whether
it can wait for a virtual clock, whether it needs a key, whose application it
has. It opens nothing; ``options.py`` refuses what it cannot read, ``ends.py``
builds the participant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from duplex.errors import InputError
from duplex.protocols.pcm import format_of

FORMS = "twilio:ws://…, twilio:wss://…, ws://…, wss://…, module:factory, file.py:factory"
"""The spellings that carry an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One kind of assistant, and where it is.

    ``target`` is the address or the ``module:factory``; empty for named kinds.
    ``label`` is how a result's ``audio_source`` calls it. ``keyed``: it needs
    ``OPENAI_API_KEY``. ``hosted``: its session is given instructions and its work is
    done by the application of the run. ``paced``: its participant queues what it says
    itself, so that the engine keeps none of it waiting.
    """

    kind: str
    label: str
    target: str = ""
    lock_step: bool = False
    keyed: bool = False
    hosted: bool = False
    paced: bool = False


_GPT_LIVE = Agent(kind="gpt-live", label="gpt_live", keyed=True, hosted=True)
NAMED: dict[str, Agent] = {
    "local": Agent(kind="local", label="local", lock_step=True, hosted=True),
    "gpt-live": _GPT_LIVE,
    "client": _GPT_LIVE,
    "realtime": Agent(kind="realtime", label="realtime", keyed=True, hosted=True, paced=True),
}
_TWILIO = Agent(kind="twilio", label="twilio", paced=True)
_PCM = Agent(kind="pcm", label="pcm", paced=True)
_PYTHON = Agent(kind="python", label="python", lock_step=True, paced=True)


def parse(text: str) -> Agent:
    """Read ``--assistant``; raises InputError that lists what it may say."""
    if text in NAMED:
        return NAMED[text]
    kind, _, rest = text.partition(":")
    if kind == "twilio":
        return replace(_TWILIO, target=_websocket(text, rest))
    if kind in ("ws", "wss"):
        url = _websocket(text, text)
        format_of(url)
        return replace(_PCM, target=url)
    module, colon, factory = text.rpartition(":")
    if colon and module and factory.isidentifier() and "://" not in text:
        return replace(_PYTHON, target=text)
    raise InputError(f'assistant "{text}" is none of: {", ".join(NAMED)}, {FORMS}')


def _websocket(text: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
        good = good and not parts.fragment
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise InputError(f'assistant "{text}" has no websocket address, want ws://host… or wss://…')
    return url
