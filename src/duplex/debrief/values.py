"""A debrief as values: findings, themes and recommendations, each with its evidence.

Texts are written from numbers by ``writing`` and may be reworded, never the facts
beside them. Shares in per cent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from duplex.verdict.incidents import Severity

Impact = Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"]
Prevalence = Literal["WIDESPREAD", "RECURRING", "ISOLATED"]
Lifecycle = Literal["NEW", "PERSISTENT", "IMPROVING", "FIXED"]
Channel = Literal["PROMPT", "VOICE_CONFIG", "STT", "SPEECH_MODEL", "LLM_MODEL", "INFRA", "EXTERNAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where in which call's audio to listen; ``incident`` is what happened there."""

    call_id: str
    start_ms: float | None
    end_ms: float | None
    incident: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    title: str
    body: str
    call_ids: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Failures that belong together: one kind of incident on one check.

    ``lifecycle`` is None without a baseline; ``channel`` is None where the numbers
    do not tell where the cause lies.
    """

    slug: str
    title: str
    severity: Severity
    impact: Impact
    prevalence: Prevalence
    lifecycle: Lifecycle | None
    affected: int
    total: int
    checks: tuple[str, ...]
    channel: Channel | None
    analysis: str
    call_ids: tuple[str, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    order: int
    title: str
    body: str
    severity: Severity
    channel: Channel | None
    themes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One check in the baseline and now."""

    check: str
    previous: float | None
    current: float | None
    lifecycle: Lifecycle | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    baseline: str
    rows: tuple[TrendRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Debrief:
    """A whole debrief. ``sections`` pairs a heading with a paragraph."""

    passed: bool
    summary: str
    paragraphs: tuple[str, ...]
    sections: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    went_well: tuple[Finding, ...]
    themes: tuple[Theme, ...]
    recommendations: tuple[Recommendation, ...]
    trend: Trend | None
