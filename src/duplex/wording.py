"""What ``measure`` and ``remeasure`` are asked to do about words, and the doing of it.

Words come from the embedded ears, from a transcript somebody has, or both; what
was said comes from labels, a call's events, or else the transcript. Without any
of these there are words and no figures. Timing never depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from duplex.errors import DuplexError, InputError
from duplex.intake import Labels
from duplex.intake import read_labels as read_label_file
from duplex.intake.listen import Listening
from duplex.intake.two_sides import TwoSides
from duplex.local.transcribing import in_words
from duplex.metrics.of_call import stems
from duplex.metrics.words import TRANSCRIPT, Heard, WordsBlock, words_of, words_of_audio
from duplex.recording import Recording
from duplex.results.stored import load_results, scenarios_of
from duplex.scenario import Scenario
from duplex.takes import Take
from duplex.values import Side, Span, Utterance


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """``ears``: let the embedded ones hear it; ``model`` is the user's own for them."""

    ears: bool = False
    transcript: Path | None = None
    model: Path | None = None

    @property
    def asked(self) -> bool:
        return self.ears or self.transcript is not None

    def check(self, found: Sequence[Take]) -> None:
        """Refuse what does not fit what was named."""
        if self.model is not None and not self.ears:
            raise InputError("an ears model was given, and nobody asked for words (--words)")
        if self.transcript is None:
            return
        if len(found) > 1:
            raise InputError(f"a transcript belongs to one recording, {len(found)} were named")
        if found[0].call_id is not None:
            raise InputError(
                "a call has words of its own; measure its conversation.wav with a transcript"
            )

    def of_recording(self, sides: TwoSides, heard: Listening, labels: Labels) -> WordsBlock:
        """Words of a bare recording; ``sides`` are opened anew and read to their end."""
        rate_hz = sides.rate_hz
        audio: dict[str, Mapping[Side, Sequence[Utterance]]] = {}
        said, source = _texts(labels), "the labels"
        if self.transcript is not None:
            told = _texts(read_label_file(self.transcript, rate_hz, sides.roles))
            if not any(told.values()):
                raise InputError(f"transcript {self.transcript} holds no words")
            if self.ears and not any(said.values()):
                said, source = told, "the transcript given"
            else:
                audio[TRANSCRIPT] = told
        if self.ears:
            audio["conversation"] = self._hear(sides, heard)
        return words_of_audio(audio, rate_hz, said, said_from=source)

    def of_call(
        self, recording: Recording, heard: Listening, scenario: Scenario | None = None
    ) -> WordsBlock:
        """Words of a call held here: what its sessions told and our ears heard of the stems."""
        with stems(recording) as sides:
            found = self._hear(sides, heard)
        # Ears may hear at another rate than the call was held at.
        audio: Heard = {"stems": _moved(found, heard.rate_hz, recording.rate_hz)}
        return words_of(recording, scenario or _scenario(recording), audio)

    def _hear(self, sides: TwoSides, heard: Listening) -> dict[Side, tuple[Utterance, ...]]:
        speech = {side: [found.span for found in heard.own_speech(side)] for side in Side}
        return in_words(sides, speech, self.model)


def _scenario(recording: Recording) -> Scenario | None:
    """The call's scenario, which names its key values; None where nothing tells it any more."""
    if recording.scenario_id is None:
        return None
    try:
        run = load_results(recording.run_dir / "results.json")
    except DuplexError:
        return None
    return scenarios_of(run).get(recording.scenario_id)


def _texts(labels: Labels) -> dict[Side, tuple[Utterance, ...]]:
    return {side: tuple(item for item in labels.of(side) if item.text.strip()) for side in Side}


def _moved(
    found: Mapping[Side, Sequence[Utterance]], from_hz: int, to_hz: int
) -> dict[Side, tuple[Utterance, ...]]:
    def at(position: int) -> int:
        return position * to_hz // from_hz

    return {
        side: tuple(
            replace(item, span=Span(start=at(item.span.start), end=at(item.span.end)))
            for item in items
        )
        for side, items in found.items()
    }
