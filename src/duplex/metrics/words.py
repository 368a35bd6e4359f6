"""The words block of one call: how well each side was heard, in words and key values.

What a side said is compared with what the other side's session heard, or with
what ears of ours heard in the audio. Nothing is guessed: a side without words is
null with its reason. The two libraries behind it are imported on use; without
them the block says so. Runs, ``measure`` and ``remeasure`` drive it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from duplex.errors import InputError
from duplex.metrics.word_definitions import WORDS_VERSION
from duplex.participants.live_words import Grouper
from duplex.recording import Recording
from duplex.scenario import Scenario
from duplex.values import Json, Side, Span, Utterance

if TYPE_CHECKING:
    from duplex.metrics.hearing_words import HeardWords, Piece

_PACKAGES = {"jiwer": "jiwer", "whisper_normalizer": "whisper-normalizer"}
_NO_SESSION = "a recording does not tell what a session heard"

TRANSCRIPT = "transcript"
"""Name among the audio heard of words that somebody else's ears wrote down."""

Heard = Mapping[str, Mapping[Side, Sequence[Utterance]]]
"""What ears of ours heard: by the name of the audio and the speaking side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """How one side was heard; ``found`` is None where that is unknown, and ``why`` says so.

    ``text`` is what was heard, whether or not anybody knows what was said.
    """

    speaker: Side
    said_from: str | None = None
    heard_from: str | None = None
    found: HeardWords | None = None
    why: str | None = None
    text: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsBlock:
    """Everything the words block says about one call.

    ``sessions`` is what each side's own session heard of the other, by the
    listening side; ``audio`` what our ears heard, by the name of the audio and
    the speaking side. ``has_keys`` is whether a scenario named key values.
    """

    version: str
    libraries: Mapping[str, str]
    sessions: Mapping[Side, Ears]
    audio: Mapping[str, Mapping[Side, Ears]]
    has_keys: bool = False

    def as_json(self) -> dict[str, Json]:
        """The block under its own names, strict JSON."""
        if not self.libraries:
            why = next(iter(self.sessions.values())).why
            nothing: dict[str, Json] = {"heard_by": None, "from_audio": None}
            unknown: dict[str, Json] = {f"/{name}": why for name in nothing}
            return {
                "words_version": self.version, "libraries": {}, **nothing, "unknown": unknown,
            }  # fmt: skip
        from duplex.metrics.words_json import block_json

        return block_json(self)


def words_of(
    recording: Recording, scenario: Scenario | None = None, audio: Heard | None = None
) -> WordsBlock:
    """Compare what each side of a call said with what the other side heard.

    ``audio`` is what our ears heard of ``"stems"`` or ``"conversation"``; spans
    are samples of the call. Never raises for what a call does not hold.
    """
    if missing := missing_packages():
        return _without(missing)
    known = {} if scenario is None else scenario.simulation.known_facts
    comparer = _Comparer(known)
    said = {side: _said(recording, side) for side in Side}
    return WordsBlock(
        version=WORDS_VERSION,
        libraries=_libraries(),
        sessions={
            side: comparer.session(side, said[side.other], _heard(recording, side)) for side in Side
        },
        audio=comparer.audio(said, audio or {}, recording.rate_hz),
        has_keys=comparer.has_keys,
    )


def words_of_audio(
    audio: Heard,
    rate_hz: int,
    said: Mapping[Side, Sequence[Utterance]] | None = None,
    scenario: Scenario | None = None,
    *,
    said_from: str = "the labels",
) -> WordsBlock:
    """The words of a bare recording; ``said`` are words somebody wrote down, if there are any."""
    if missing := missing_packages():
        return _without(missing)
    comparer = _Comparer({} if scenario is None else scenario.simulation.known_facts)
    told = {side: _Said(_pieces((said or {}).get(side, ()), rate_hz), said_from) for side in Side}
    return WordsBlock(
        version=WORDS_VERSION,
        libraries=_libraries(),
        sessions={side: Ears(speaker=side.other, why=_NO_SESSION) for side in Side},
        audio=comparer.audio(told, audio, rate_hz),
        has_keys=comparer.has_keys,
    )


def missing_packages() -> list[str]:
    """Packages to install before words can be compared; none imported here."""
    return [name for module, name in _PACKAGES.items() if not importlib.util.find_spec(module)]


def pooled(blocks: Sequence[WordsBlock]) -> dict[str, Json]:
    """Errors and key values of several calls: counts summed, then divided.

    A side counts the calls in which it is known. Raises InputError for blocks of
    different versions or libraries, which must not be pooled.
    """
    kinds = {(block.version, *sorted(block.libraries.items())) for block in blocks}
    if len(kinds) > 1:
        raise InputError(f"words of {len(kinds)} different versions or libraries cannot be pooled")
    if not any(block.libraries for block in blocks):
        return {side.label: None for side in Side}
    from duplex.metrics.words_pooling import pooled_ears

    found = {side: [block.sessions[side].found for block in blocks] for side in Side}
    return {
        side.label: pooled_ears([one for one in ears if one is not None])
        for side, ears in found.items()
    }


@dataclass(frozen=True, slots=True)
class _Said:
    """What a side said, by utterance, and who says so; ``known`` that it is the whole."""

    pieces: tuple[Piece, ...]
    source: str
    known: bool = False


class _Comparer:
    """Compares with one normaliser and one set of key values."""

    def __init__(self, known: Mapping[str, str | int | float | bool]) -> None:
        from duplex.metrics.english import EnglishNormaliser
        from duplex.metrics.key_values import key_values

        self._normalise = EnglishNormaliser()
        self._keys = key_values(known, self._normalise)

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    def session(self, listener: Side, said: _Said, heard: tuple[Piece, ...]) -> Ears:
        """What one side's session heard of the other."""
        speaker = listener.other
        if not heard:
            why = f"the {listener.label}'s session gave no transcript of what it heard"
            return Ears(speaker=speaker, why=why)
        return self._ears(speaker, said, heard, f"the {listener.label}'s session")

    def audio(
        self, said: Mapping[Side, _Said], audio: Heard, rate_hz: int
    ) -> dict[str, dict[Side, Ears]]:
        """What our ears heard of each side; hearing nothing is known here."""
        return {
            name: {
                side: self._ears(side, said[side], _pieces(items, rate_hz), _listened(name))
                for side, items in sides.items()
            }
            for name, sides in audio.items()
        }

    def _ears(self, speaker: Side, said: _Said, heard: tuple[Piece, ...], source: str) -> Ears:
        from duplex.metrics.hearing_words import heard_words

        unknown = not said.pieces and not said.known
        return Ears(
            speaker=speaker,
            said_from=None if unknown else said.source,
            heard_from=source,
            found=None if unknown else heard_words(said.pieces, heard, self._keys, self._normalise),
            why=f"nobody told what the {speaker.label} said" if unknown else None,
            text=heard,
        )


def _said(recording: Recording, side: Side) -> _Said:
    """What a side said: its labels, else its session's transcript.

    A side that has neither, nor any voice, is known to have said nothing.
    """
    told = [item for item in recording.spoken_by(side) if item.text.strip()]
    if told:
        sources = sorted({item.source for item in told})
        return _Said(_pieces(told, recording.rate_hz), " and ".join(sources))
    runs = _runs(recording, side)
    silent = not any(segment.side is side for segment in recording.segments)
    return _Said(
        runs,
        "the session's transcript" if runs else "its silence",
        known=silent,
    )


def _runs(recording: Recording, side: Side) -> tuple[Piece, ...]:
    """A session's own transcript, joined where it has no gap."""
    from duplex.metrics.hearing_words import Piece

    grouper, runs = Grouper(), []
    for item in sorted(recording.words(side, "said"), key=lambda item: item.span):
        start_ms, end_ms = recording.ms(item.span.start), recording.ms(item.span.end)
        runs += grouper.add(item.text, start_ms, end_ms)
    return tuple(
        Piece(text=run.text, start_ms=run.start_ms, end_ms=run.end_ms)
        for run in (*runs, *grouper.flush())
    )


def _heard(recording: Recording, side: Side) -> tuple[Piece, ...]:
    heard = recording.words(side, "heard")
    return tuple(_piece(item.text, item.span, recording.rate_hz) for item in heard)


def _pieces(items: Sequence[Utterance], rate_hz: int) -> tuple[Piece, ...]:
    return tuple(_piece(item.text, item.span, rate_hz) for item in items if item.text.strip())


def _piece(text: str, span: Span, rate_hz: int) -> Piece:
    from duplex.metrics.hearing_words import Piece

    return Piece(text=text, start_ms=span.start * 1000 / rate_hz, end_ms=span.end * 1000 / rate_hz)


def _listened(name: str) -> str:
    """Who heard it: a transcript that was given, or our ears on some audio."""
    return "the transcript given" if name == TRANSCRIPT else f"our ears, {name} audio"


def _libraries() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES.values()}


def _without(missing: Sequence[str]) -> WordsBlock:
    """A block that says which packages are missing and nothing else."""
    why = f"not installed: {', '.join(missing)}; install with: pip install {' '.join(missing)}"
    return WordsBlock(
        version=WORDS_VERSION,
        libraries={},
        sessions={side: Ears(speaker=side.other, why=why) for side in Side},
        audio={},
    )
