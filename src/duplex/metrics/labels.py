"""Labels for the contract: what a voice said it meant, or what can be inferred.

A label with the caller's own intent is taken as it is. A label that comes from
a transcript is widened to the speech it touches, because captions and sound
never agree to the millisecond, and gets an action from who was speaking. Pure;
``from_recording.py`` drives it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from duplex.application.closing import is_closing
from duplex.metrics.intervals import Runs, merge, run_over
from duplex.values import Action, Span, Utterance

EPISODE_GAP_MS = 500
"""Voiced runs with shorter pauses between them are one episode of speech."""
_BACKCHANNEL = re.compile(
    r"""(?x) (?: \b (?: ah | aha | al\s?right | gotcha | got\ it | hm+ | huh | i\ see | m+ | mhm
    | mm+\ ?hm+ | oh | ok | okay | right | sure | uh\ ?huh | yeah | yep | yup ) \b \ ? ){1,3}"""
)


def widened(utterances: Sequence[Utterance], voiced: Runs, rate_hz: int) -> list[Utterance]:
    """Stretch inferred labels of one side over the speech at their edges.

    ``voiced`` is that side's voice in samples. A label never reaches past its
    neighbours, so no voice is claimed twice.
    """
    episodes = _episodes(voiced, EPISODE_GAP_MS * rate_hz // 1000)
    ordered = sorted(utterances, key=lambda item: item.span)
    made: list[Utterance] = []
    for index, item in enumerate(ordered):
        if item.source == "caller_intent":
            made.append(item)
            continue
        floor = made[-1].span.end if made else 0
        ceiling = ordered[index + 1].span.start if index + 1 < len(ordered) else None
        made.append(replace(item, span=_stretched(item.span, episodes, floor, ceiling)))
    return made


def with_actions(
    labels: Sequence[Utterance], caller: Runs, assistant: Runs, *, closed_by_words: bool = False
) -> list[Utterance]:
    """Give caller labels without an action one, from who was speaking at their start.

    The first is an OPENING. One that begins inside assistant speech is a
    BACKCHANNEL when its words are nothing else, else an INTERRUPT; the rest SPEAK.
    The last is a STOP where its words are what ended the call (``closed_by_words``)
    and ask nothing: a request is never relabelled, whoever ended the call after it.
    """
    made = []
    for index, item in enumerate(labels):
        action = item.action or _action(item, index, caller, assistant)
        made.append(replace(item, action=action))
    inferred = closed_by_words and len(made) > 1 and labels[-1].action is None
    if inferred and made[-1].action is Action.SPEAK and is_closing(made[-1].text):
        made[-1] = replace(made[-1], action=Action.STOP)
    return made


def is_backchannel(text: str) -> bool:
    """Whether the words are an acknowledgement and nothing more."""
    return _BACKCHANNEL.fullmatch(" ".join(re.findall(r"[a-z']+", text.lower()))) is not None


def _action(item: Utterance, index: int, caller: Runs, assistant: Runs) -> Action:
    if index == 0:
        return Action.OPENING
    own = next((run for run in caller if run[1] > item.span.start), None)
    start = item.span.start if own is None else max(own[0], item.span.start)
    if run_over(assistant, start) is not None:
        return Action.BACKCHANNEL if is_backchannel(item.text) else Action.INTERRUPT
    return Action.SPEAK


def _episodes(voiced: Runs, gap: int) -> Runs:
    bridges = [(left[1], right[0]) for left, right in pairwise(voiced) if right[0] - left[1] < gap]
    return merge([*voiced, *bridges])


def _stretched(span: Span, episodes: Runs, floor: int, ceiling: int | None) -> Span:
    touched = [run for run in episodes if run[0] < span.end and run[1] > span.start]
    if not touched:
        return span
    start = min(span.start, max(touched[0][0], floor))
    end = max(span.end, touched[-1][1] if ceiling is None else min(touched[-1][1], ceiling))
    return Span(start=start, end=end)
