"""``duplex measure``: open what was named, hear it, judge it, measure it, print it.

It decides nothing about numbers: intake judges the input, metrics measure,
reports format. A refused recording is told in one sentence on stderr and stops
no other. stdout is data, stderr is talk.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from duplex.counting import counted
from duplex.detect import DETECTORS
from duplex.errors import DuplexError, InputError
from duplex.intake import MAIN_DETECTOR, Labels, Roles, health_of, listen, open_sides, told
from duplex.intake import read_labels as read_label_file
from duplex.intake.listen import CONTRACT_DETECTOR, WITNESS_DETECTOR
from duplex.metrics import timeline as timelines
from duplex.metrics.measurement import Measurement, measure_call, measure_recording
from duplex.metrics.of_call import hear_call
from duplex.metrics.timing_policy import TimingPolicy
from duplex.recording import Recording
from duplex.report import measure_csv, measure_markdown, measure_report
from duplex.screen import paper, plain
from duplex.takes import Take, takes
from duplex.wording import Wording

if TYPE_CHECKING:
    from duplex.notebook.metrics import Measured

__all__ = ["MAIN_DETECTOR", "command", "measure"]

COMPUTED, INCOMPLETE, COULD_NOT = 0, 1, 2


def measure(
    *paths: str | Path,
    channels: str | None = None,
    labels: str | Path | None = None,
    detector: str = MAIN_DETECTOR,
    witness: bool = True,
    policy: TimingPolicy | None = None,
    words: bool = False,
    transcript: str | Path | None = None,
    ears_model: str | Path | None = None,
) -> Measured:
    """Measure one recording: a file of two channels, two of one, or a call's folder.

    ``channels`` is ``"caller,assistant"`` or ``"assistant,caller"``, ``labels`` a
    file of Audacity labels, RTTM or our JSON. Without ``witness`` no second detector
    says how far it agrees. ``words`` lets the embedded ears (extra
    ``local``) hear what was said, which must not be asked inside a running event
    loop; ``transcript`` is a file of labels with the words somebody wrote down. A
    refused recording comes back with its health and without numbers.

    Raises:
        InputError: there is no such recording, or it cannot be read.
        MissingExtra: ``words`` are asked for and ``local`` is not installed.
    """
    from duplex.notebook.metrics import Measured

    found = takes([Path(path) for path in paths])
    if len(found) != 1:
        raise InputError(f"{len(found)} recordings were named, wanted one")
    wording = Wording(
        ears=words,
        transcript=None if transcript is None else Path(transcript),
        model=None if ears_model is None else Path(ears_model),
    )
    options = _Options(channels, labels, detector, policy, wording, witness=witness)
    options.check(found)
    return Measured.of(options.measure(found[0]))


def command(
    paths: Sequence[Path],
    *,
    timeline: Path | None = None,
    channels: str | None = None,
    labels: Path | None = None,
    detector: str = MAIN_DETECTOR,
    witness: bool = True,
    wording: Wording | None = None,
    as_json: bool = False,
    csv: bool = False,
    markdown: bool = False,
    console: Console,
) -> int:
    """Measure everything that was named and print it; return the exit code.

    0 when all could be measured, 2 when none, 1 when some. Raises DuplexError
    for options that cannot be used.
    """
    if timeline is not None:
        _check_alone(paths, timeline)
        for item in timelines.measure_file(timeline):
            print(json.dumps(item, allow_nan=False))
        return COMPUTED
    if not paths:
        raise InputError("nothing to measure: name a recording, a call's folder or --timeline FILE")
    if as_json + csv + markdown > 1:
        raise InputError("--json, --csv and --markdown exclude each other")
    found = takes(paths)
    options = _Options(channels, labels, detector, None, wording or Wording(), witness=witness)
    options.check(found)
    outcome = _Outcome(total=len(found))
    measured = _measured(found, options, outcome, console)
    if csv:
        measure_csv.write_csv(measured, sys.stdout)
    else:
        for one in measured:
            _print(one, as_json=as_json, markdown=markdown)
    return outcome.code


class _Options:
    """How to measure, checked once for all recordings."""

    def __init__(
        self,
        channels: str | None,
        labels: str | Path | None,
        detector: str,
        policy: TimingPolicy | None,
        wording: Wording,
        *,
        witness: bool,
    ) -> None:
        self._roles = None if channels is None else told(channels)
        self._labels = None if labels is None else Path(labels)
        self._detector = detector
        self._witnesses = (WITNESS_DETECTOR,) if witness else ()
        self._policy = policy
        self._wording = wording

    def check(self, found: Sequence[Take]) -> None:
        """Refuse options that do not fit what was named."""
        if self._detector not in DETECTORS:
            names = ", ".join(DETECTORS)
            raise InputError(f'detector "{self._detector}" is not one of {names}')
        if self._labels is not None and len(found) > 1:
            raise InputError(f"labels belong to one recording, {len(found)} were named")
        if self._labels is not None and found[0].call_id is not None:
            raise InputError("a call has labels of its own; measure its conversation.wav instead")
        self._wording.check(found)

    def measure(self, take: Take) -> Measurement:
        """Measure one recording."""
        if take.run_dir is not None and take.call_id is not None:
            return self._call(take, Recording.load(take.run_dir, take.call_id))
        also = (CONTRACT_DETECTOR, *self._witnesses)
        with ExitStack() as stack:
            sides = open_sides(take.files, self._roles, stack)
            labels = self._labelled(sides.rate_hz, sides.roles)
            heard = listen(sides, self._detector, also)
            roles = sides.roles
        if take.note is not None:
            heard = replace(heard, warnings=(take.note, *heard.warnings))
        health = health_of(heard)
        found = measure_recording(take.name, heard, health, labels, self._policy)
        if not self._wording.asked or found.refused:
            return found
        with ExitStack() as stack:
            again = open_sides(take.files, roles, stack)
            return replace(found, words=self._wording.of_recording(again, heard, labels))

    def _call(self, take: Take, recording: Recording) -> Measurement:
        heard = hear_call(recording, self._detector, self._witnesses)
        health = health_of(heard, stems=True)
        found = measure_call(take.name, recording, heard, health, self._policy)
        if not self._wording.asked or found.refused:
            return found
        return replace(found, words=self._wording.of_call(recording, heard))

    def _labelled(self, rate_hz: int, roles: Roles) -> Labels:
        return Labels() if self._labels is None else read_label_file(self._labels, rate_hz, roles)


class _Outcome:
    """How many recordings could be measured."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._computed = 0

    def computed(self) -> None:
        self._computed += 1

    @property
    def code(self) -> int:
        if self._computed == self._total:
            return COMPUTED
        return INCOMPLETE if self._computed else COULD_NOT


def _measured(
    found: Sequence[Take], options: _Options, outcome: _Outcome, console: Console
) -> Iterator[Measurement]:
    """One after the other; what cannot be measured is said and left behind."""
    for number, take in enumerate(found, start=1):
        shown = f"measuring {plain(take.name)} ({number} of {len(found)})"
        try:
            with console.status(shown) if console.is_terminal else nullcontext():
                one = options.measure(take)
        except DuplexError as error:
            _say(str(error))
            continue
        if one.refused:
            _say(f"{take.name}: {one.health.refusal}")
        else:
            outcome.computed()
            if len(found) > 1 and not console.is_terminal:
                console.print(f"{plain(take.name)}: measured ({number} of {len(found)})")
        yield one


def _print(one: Measurement, *, as_json: bool, markdown: bool) -> None:
    """One JSON object a line, or text; a refusal has been said already."""
    if as_json:
        print(json.dumps(one.as_json(), allow_nan=False))
    elif markdown:
        print(measure_markdown.as_markdown(one))
    elif not one.refused:
        out = paper()
        out.print(measure_report.as_text(one))


def _say(text: str) -> None:
    print(f"duplex: {plain(text)}", file=sys.stderr)


def _check_alone(paths: Sequence[Path], timeline: Path) -> None:
    if paths:
        raise InputError(
            f"--timeline {timeline} stands alone, {counted(len(paths), 'path')} came with it"
        )
