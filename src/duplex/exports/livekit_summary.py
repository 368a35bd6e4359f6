"""The summary of a run in LiveKit's shape: counts, prose with evidence, issues, histories.

Every sentence is the debrief's or a judge's as it stands; what is added is where it can
be read: ``<ref job="SRJ_…" item="item_…">words that were said</ref>``. A reader numbers
nine of them, so there are never more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from duplex.debrief import Debrief, Finding, Theme
from duplex.exports.livekit_chat import Chat, Message
from duplex.exports.livekit_ids import inside, job_id, number, objects, some
from duplex.exports.subject import Subject
from duplex.values import Json
from duplex.verdict.case import Case, RunCases
from duplex.verdict.verdict import Failure, Verdict

_REF = re.compile(r"</?\s*ref\b[^>]*>?|[\x00-\x1f]", re.IGNORECASE)

REFS = 9
_FOR_PROSE = 2
"""References kept for each of the two texts; issues have the rest."""
_POINTS = 3
_WORDS = 80


class Evidence:
    """Finds the words that a claim can be read in, and cites at most so many."""

    def __init__(self, run: RunCases, chats: Mapping[str, Chat]) -> None:
        self._jobs = {case.call_id: job_id(run.run_id, case) for case in run.final}
        self._chats = chats

    def cite(self, call_id: str, at_ms: float | None = None, quote: str | None = None) -> str:
        """A reference to what was said at a time of a call; empty where nothing was."""
        job = self._jobs.get(call_id)
        message = None if job is None else self._message(job, at_ms)
        if message is None:
            return ""
        words = _harmless(quote or _short(message.text))
        return f'<ref job="{job}" item="{message.id}">{words}</ref>' if words else ""

    def _message(self, job: str, at_ms: float | None) -> Message | None:
        chat = self._chats.get(job)
        said = () if chat is None else chat.messages
        if at_ms is None:
            return next((one for one in reversed(said) if one.assistant), None)
        timed = [one for one in said if one.start_ms is not None]
        return min(timed, key=lambda one: _away(one, at_ms), default=None)


def summary_json(
    subject: Subject, verdict: Verdict, chats: Mapping[str, Chat], *, passed: int, failed: int
) -> dict[str, Json]:
    """The whole summary of a run that is over; without a graded call, from its verdict alone."""
    run, debrief = subject.run, subject.debrief
    evidence = Evidence(run, chats)
    if debrief is None:
        told: dict[str, Json] = {
            "toImprove": " ".join(_sentence(one.sentence, "") for one in verdict.failures),
            "issues": [_missed(failure) for failure in verdict.failures],
        }
    else:
        told = {
            "goingWell": " ".join(_cited(_well(run, debrief), evidence, _FOR_PROSE)),
            "toImprove": " ".join(_cited(_improve(run, debrief), evidence, _FOR_PROSE)),
            "issues": list(_issues(debrief, evidence)),
        }
    history: dict[str, Json] = {job: {"items": list(chat.items)} for job, chat in chats.items()}
    return {"passed": passed, "failed": failed, **some(**told), "chatHistory": history}


def _missed(failure: Failure) -> dict[str, Json]:
    """A way in which the run failed, as an issue."""
    label = failure.kind.replace("_", " ").capitalize()
    return some(description=_sentence(failure.sentence, ""), label=label)


_Claim = tuple[str, str, float | None, str | None]
"""A sentence, and call, time and words of its evidence."""


def _cited(claims: Iterator[_Claim], evidence: Evidence, most: int) -> Iterator[str]:
    for text, call_id, at_ms, quote in claims:
        ref = evidence.cite(call_id, at_ms, quote) if most and call_id else ""
        most -= bool(ref)
        yield _sentence(text, ref)


def _well(run: RunCases, debrief: Debrief) -> Iterator[_Claim]:
    for finding in debrief.went_well:
        yield (f"{finding.title}: {_lower(finding.body)}", *_where(finding))
    yield from _judged(run.final, "going_well")


def _improve(run: RunCases, debrief: Debrief) -> Iterator[_Claim]:
    if not debrief.passed:
        yield debrief.summary, "", None, None
    themes = {theme.slug: theme for theme in debrief.themes}
    for advice in debrief.recommendations:
        told = themes.get(advice.themes[0]) if advice.themes else None
        place = ("", None, None) if told is None else _where(told)
        yield (f"{advice.title}. {advice.body}", *place)
    yield from _judged(run.final, "to_improve")


def _judged(cases: Sequence[Case], name: str) -> Iterator[_Claim]:
    """What a judge found, a point of a call each, the first few."""
    found: dict[str, _Claim] = {}
    for case in cases:
        points = objects(inside(case.result.duplex, "judge", name)) if case.counted else []
        for point in points:
            text = point.get("text")
            shown = objects(point.get("evidence"))
            if isinstance(text, str) and text.strip() and shown:
                quote = shown[0].get("quote")
                at_ms = number(shown[0].get("start_ms"))
                words = quote if isinstance(quote, str) else None
                found.setdefault(text.strip(), (text.strip(), case.call_id, at_ms, words))
    yield from list(found.values())[:_POINTS]


def _issues(debrief: Debrief, evidence: Evidence) -> Iterator[dict[str, Json]]:
    left = REFS - 2 * _FOR_PROSE
    for theme in debrief.themes:
        if not theme.affected:
            continue  # It was in the baseline only.
        call_id, at_ms, quote = _where(theme)
        ref = evidence.cite(call_id, at_ms, quote) if left else ""
        left -= bool(ref)
        advice = next((one for one in debrief.recommendations if theme.slug in one.themes), None)
        yield some(
            description=_sentence(theme.analysis, ref),
            suggestion=None if advice is None else advice.body,
            label=theme.title,
        )


def _where(found: Finding | Theme) -> tuple[str, float | None, str | None]:
    """The first place of a finding that can be listened to."""
    span = next((one for one in found.spans if one.start_ms is not None), None)
    if span is not None:
        return span.call_id, span.start_ms, None
    return (found.call_ids[0] if found.call_ids else ""), None, None


def _away(message: Message, at_ms: float) -> float:
    start = message.start_ms or 0.0
    end = start if message.end_ms is None else message.end_ms
    return 0.0 if start <= at_ms <= end else min(abs(start - at_ms), abs(end - at_ms))


def _sentence(text: str, ref: str) -> str:
    """A claim with its evidence before the last full stop."""
    clean = _harmless(text)
    if not ref:
        return clean if clean.endswith((".", "!", "?")) else f"{clean}."
    return f"{clean.rstrip('.')} ({ref})."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _short(text: str) -> str:
    if len(text) <= _WORDS:
        return text
    return text[:_WORDS].rsplit(" ", 1)[0] + " …"


def _harmless(text: str) -> str:
    """Nothing that could pass for a reference of ours."""
    return " ".join(_REF.sub("", text).split())
