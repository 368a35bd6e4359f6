"""What models have used: tokens by model and host, over all calls of a run.

Whoever asks a model adds what the answer says; an answer without counts is counted as
one. It knows no prices and keeps nothing of what was said. Everybody who shares a
limiter shares its meter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from duplex.protocols.model_values import Tokens


@dataclass(slots=True)
class Used:
    """What one model of one host was asked for; ``uncounted`` answers told no tokens."""

    answers: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def add(self, tokens: Tokens | None) -> None:
        self.answers += 1
        if tokens is None or tokens.input_tokens is None or tokens.output_tokens is None:
            self.uncounted += 1
            return
        self.input_tokens += tokens.input_tokens
        self.cached_tokens += tokens.cached_tokens or 0
        self.output_tokens += tokens.output_tokens


@dataclass(slots=True)
class Meter:
    """Counts by (host, model); hosts are URLs' own, without scheme and user."""

    used: dict[tuple[str, str], Used] = field(default_factory=dict)

    def add(self, host: str, model: str, tokens: Tokens | None) -> None:
        self.used.setdefault((host, model), Used()).add(tokens)
