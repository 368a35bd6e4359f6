"""One call as the page shows it: a JSON object ready to draw, and its sound.

A call that left no events, or no audio, is shown with what there is and the
reason for the rest. Files are only read inside the run's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from duplex.counting import counted
from duplex.errors import DuplexError
from duplex.grading import Evidence
from duplex.inputs import is_file
from duplex.recording import Recording
from duplex.report.limits import limits
from duplex.results import schema
from duplex.results.run import headline
from duplex.results.stored import call_id
from duplex.values import Json
from duplex.viewer import contract, say, sound, timeline
from duplex.viewer.checks import checks, steps
from duplex.viewer.claims import claim_rows
from duplex.viewer.judge_rows import judge_note, judge_rows
from duplex.viewer.lines import lines
from duplex.viewer.outcome_rows import agenda, agenda_note, outcome_rows
from duplex.viewer.reading import Reasons, clean, members, number
from duplex.viewer.rows import Row, instrument_rows, ledger, not_known, timing_rows
from duplex.viewer.words_rows import word_rows
from duplex.wavfile import Pcm, read_wav


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPage:
    """What the page holds of one call; no ``samples``: there is no sound, ``view`` says why."""

    view: dict[str, Json]
    samples: Pcm | None
    rate_hz: int


def call_page(folder: Path, run: schema.Run, index: int) -> CallPage:
    """Read one call of a run and lay it out."""
    result = run.results[index]
    recording, lost = _recording(folder, result)
    samples, rate_hz, silent = _audio(folder, result, recording)
    document = members(result.model_dump(mode="json"))
    evidence = Evidence() if recording is None else Evidence.from_recording(recording)
    length = 0.0 if samples is None else len(samples) * 1000 / rate_hz
    duration = length or number(members(document.get("duplex")).get("duration_ms")) or 0.0
    about = _About(run=run, index=index, document=document, evidence=evidence, duration=duration)
    view = {
        **about.head(),
        **about.body(recording),
        "kept": _kept(recording, lost, samples, rate_hz),
        "sound": silent,
        "peaks": None if samples is None else sound.outlines_json(samples, rate_hz),
    }
    return CallPage(view=view, samples=samples, rate_hz=rate_hz)


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """Everything of a call but its sound."""

    run: schema.Run
    index: int
    document: Mapping[str, Json]
    evidence: Evidence
    duration: float

    @property
    def ours(self) -> Mapping[str, Json]:
        return members(self.document.get("duplex"))

    @property
    def timing(self) -> Mapping[str, Json]:
        return members(self.ours.get("timing"))

    @property
    def words(self) -> Mapping[str, Json]:
        return members(self.ours.get("words"))

    def head(self) -> dict[str, Json]:
        result = self.run.results[self.index]
        alone = self.run.model_copy(
            update={
                "results": [result],
                "summary": self.run.summary.model_copy(update={"total": 1}),
            }
        )
        error: Json = None
        if result.error is not None:
            error = {"stage": clean(result.error.stage), "message": clean(result.error.message)}
        return {
            "sentence": clean(headline(alone)),
            "title": clean(result.title),
            "status": result.status,
            "error": error,
            "duration_ms": self.duration,
            "rationale": clean(result.assessment.rationale),
        }

    def body(self, recording: Recording | None) -> dict[str, Json]:
        spoken = timeline.voices(self.timing, recording)
        return {
            "tracks": timeline.tracks(self.timing, spoken, self.evidence, self.duration),
            "lines": lines(
                self.evidence, recording, self.timing, spoken, self.duration, self.words
            ),
            "checks": checks(self.document, self.evidence, self.duration),
            "agenda": agenda(self.ours),
            "agenda_note": agenda_note(self.ours),
            "steps": steps(self.document),
            "limits": self._limits(),
            "turns": timeline.turn_rows(self.timing),
            **self._ledger(),
            "panels": self._panels(),
        }

    def _limits(self) -> Json:
        """The limits of the policy: cells under their headings, and whether each is met."""
        rows = limits(self.timing) if self.timing else []
        return [{"cells": [clean(cell) for cell in row.cells()], "met": row.met} for row in rows]

    def _ledger(self) -> dict[str, Json]:
        audio = members(members(self.document.get("metrics")).get("audio"))
        fates, counted_by = ledger(self.timing, audio)
        unmeasured = not any(fate.known for fate in fates)
        reasons = Reasons(self.ours.get("unknown"))
        why = reasons.why("/metrics/audio/response_opportunities/caller_turn_count")
        return {
            "ledger": [
                {"name": fate.name, "count": fate.count, "known": fate.known} for fate in fates
            ],
            "ledger_note": f"not known: {why}" if unmeasured else f"caller turns, {counted_by}",
        }

    def _panels(self) -> list[Json]:
        metrics = members(self.document.get("metrics"))
        reasons = Reasons(self.ours.get("unknown"))
        timing = timing_rows(self.timing) or [
            not_known("timing", reasons.why("/duplex/timing", "this run was not measured so"))
        ]
        basis = contract.basis_rows(self._run, self.document, self.timing)
        # Whose clock and which detector are told even while the panel is closed.
        told = " · ".join(row.value for row in basis[:2] if row.known)
        claims = claim_rows(self.ours.get("claims"))
        judge = self.ours.get("judge")
        judged = judge_rows(judge, self.ours.get("unknown"))
        became = outcome_rows(self.ours)
        claimed = [_panel("Claims", "the agent's own, beside what was heard", claims)]
        return [
            _panel("Basis", told, basis),
            _panel("Timing", "as heard, with the error of the ruler", timing),
            *([_panel("Outcome", "whose fault, and who ended it", became)] if became else ()),
            *([_panel("Judge", judge_note(judge), judged)] if judged else ()),
            *(claimed if claims else ()),
            _panel(
                "Contract 2.0",
                "for comparison with the public harness",
                contract.audio_rows(metrics, reasons),
            ),
            _panel("Words", "who heard whom how well", word_rows(self.words)),
            _panel("Task and use", "", contract.task_rows(metrics, reasons)),
            _panel("Instrument and ticks", "", instrument_rows(self.timing)),
        ]

    @property
    def _run(self) -> Mapping[str, Json]:
        return members(self.run.run.model_dump(mode="json"))


def _panel(title: str, note: str, rows: list[Row]) -> Json:
    return {"title": title, "note": note, "rows": [row.as_json() for row in rows]}


def _recording(folder: Path, result: schema.Result) -> tuple[Recording | None, str]:
    """The recording, or the reason why there is none."""
    name = call_id(folder, result)
    try:
        return Recording.load(folder, name), ""
    except DuplexError as error:
        return None, clean(str(error)).replace(str(folder), folder.name)


def _audio(
    folder: Path, result: schema.Result, recording: Recording | None
) -> tuple[Pcm | None, int, str]:
    """Both channels and their rate, or no samples and the reason."""
    try:
        if recording is not None:
            samples, rate_hz = recording.conversation(), recording.rate_hz
        else:
            path = _inside(folder, result.artifacts.conversation_audio)
            if path is None:
                return None, 0, "this call left no recording"
            wav = read_wav(path)
            samples, rate_hz = wav.samples, wav.rate_hz
    except DuplexError as error:
        return None, 0, clean(str(error)).replace(str(folder), folder.name)
    if not len(samples):
        return None, 0, "the recording holds no audio"
    if samples.shape[1] != 2:
        return None, 0, f"the recording has {counted(samples.shape[1], 'channel')}, wanted 2"
    return samples, rate_hz, ""


def _inside(folder: Path, relative: str | None) -> Path | None:
    """A file of the run by its path in results.json; None when it leads elsewhere."""
    if relative is None:
        return None
    path = (folder / relative).resolve()
    return path if path.is_relative_to(folder.resolve()) and is_file(path) else None


def _kept(recording: Recording | None, lost: str, samples: Pcm | None, rate_hz: int) -> list[Json]:
    """What there is of the call on disk, and what is damaged."""
    sounding = "no audio"
    if samples is not None:
        sounding = f"{say.plain(len(samples) / rate_hz, 1)} s of audio"
    if recording is None:
        return [f"kept: {sounding}, no events ({lost})"]
    return [
        f"kept: {counted(len(recording.events), 'event')}, {sounding}",
        *map(clean, recording.damage),
    ]


def selector(run: schema.Run) -> list[Json]:
    """The calls of a run for the selector: scenario, sample, status."""
    return [
        {
            "scenario": clean(result.scenario_id),
            "sample": _sample(result),
            "status": result.status,
        }
        for result in run.results
    ]


def _sample(result: schema.Result) -> str:
    """Which sample of its scenario this is, and which attempt at it."""
    attempt = number(result.duplex.get("attempt"))
    again = f", attempt {say.plain(attempt)}" if attempt is not None and attempt > 1 else ""
    return say.whole(result.duplex.get("sample")) + again
