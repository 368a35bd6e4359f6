"""One call's result measured again: new figures in the place of the old, the rest as it was.

Reads the call's folder and its old result; holds no call, writes no file. What
the folder cannot give any more becomes null with its reason, never the old
figure: figures of two rulers never stand side by side in one block. Verdict,
task and use rest on events and on the live detector, and are carried over.
``remeasuring.py`` drives it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from duplex.counting import counted
from duplex.errors import DuplexError, InputError
from duplex.intake.listen import MAIN_DETECTOR, Listening
from duplex.metrics.claims import claims_of
from duplex.metrics.contract import Settings
from duplex.metrics.from_recording import contract_of
from duplex.metrics.of_call import hear_call, timing_of_heard
from duplex.metrics.timing_policy import TIMING_VERSION, TimingPolicy
from duplex.metrics.word_definitions import WORDS_VERSION
from duplex.metrics.words import WordsBlock, words_of
from duplex.recording import Recording
from duplex.results import schema
from duplex.results.build import AUDIO_REASONS, audio_metrics
from duplex.results.stored import call_id, member
from duplex.results.unknown import explain
from duplex.scenario import Scenario
from duplex.values import Json, Side

Listener = Callable[[Recording, Listening, Scenario | None], WordsBlock]
"""Ears of ours: what they make of a call that was heard, its scenario's key values counted."""
_FLOOR_HOLD = "/metrics/audio/floor_hold_silence_ms"
_CHANGED = (
    "the run's own ruler gives other figures than the run has: files have changed, or the "
    "program since"
)
_NO_WORK = "the events no longer hold the work that the result lists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """What a call was, or is to be, measured with; ``version`` None when nobody said."""

    version: str | None
    detector: str
    policy: TimingPolicy
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: schema.Result) -> Ruler:
        """The ruler a result was made with; raises InputError for a damaged one."""
        timing = member(result.duplex, "timing")
        stored = member(timing, "policy")
        known = {field.name for field in dataclasses.fields(TimingPolicy)}
        values: dict[str, int] = {}
        for name, value in stored.items():
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"timing policy {name} is {value!r}, wanted a whole number")
            values[name] = value
        values.setdefault("response_deadline_ms", result.metrics.audio.response_deadline_ms)
        detector, version = timing.get("detector"), timing.get("timing_version")
        return cls(
            version=version if isinstance(version, str) else None,
            detector=detector if isinstance(detector, str) else MAIN_DETECTOR,
            policy=TimingPolicy(**{name: values[name] for name in known & values.keys()}),
            notes=_policy_notes(stored.keys(), known) if stored else (),
        )

    def changed(self, detector: str | None, policy: Mapping[str, int]) -> Ruler:
        """This ruler by today's rules, with what is to differ."""
        return Ruler(
            version=TIMING_VERSION,
            detector=detector or self.detector,
            policy=replace(self.policy, **policy),
        )

    def same_as(self, other: Ruler) -> bool:
        """Whether figures of both may be compared as they are."""
        mine, theirs = (replace(one, notes=()) for one in (self, other))
        return mine == theirs and not self.notes and not other.notes

    def as_json(self) -> dict[str, Json]:
        return {
            "timing_version": self.version,
            "detector": self.detector,
            "policy": self.policy.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Remeasured:
    """One call before and after; ``why`` says why it could not be measured again.

    ``held`` is False for a call that left no sound to measure, then as now.
    ``repeats``: whether the old ruler gives the old figures again; None where
    that cannot be asked, because another version made them. ``words`` are those heard
    anew, None where nobody asked for them.
    """

    was: schema.Result
    now: schema.Result
    old: Ruler
    new: Ruler
    measured: bool
    held: bool = True
    why: str = ""
    repeats: bool | None = None
    notes: tuple[str, ...] = ()
    words: WordsBlock | None = None


def remeasure_call(
    folder: Path,
    result: schema.Result,
    detector: str | None,
    policy: Mapping[str, int],
    scenario: Scenario | None = None,
    ears: Listener | None = None,
) -> Remeasured:
    """Measure one call of a run again.

    ``scenario`` names the key values, where words have to be compared again;
    ``ears`` hear the words anew.
    Raises InputError for a stored policy that is damaged; a call whose files are
    gone comes back unmeasured.
    """
    old = Ruler.of(result)
    new = old.changed(detector, policy)
    held = _was_held(result)
    try:
        recording = Recording.load(folder, call_id(folder, result))
        if not recording.duration:
            raise InputError("no sound was recorded")
        also = () if old.detector == new.detector else (old.detector,)
        heard = hear_call(recording, new.detector, also)
    except DuplexError as error:
        if held and not isinstance(error, InputError):
            raise
        why = str(error).replace(f"{folder}/", "")
        return _unmeasured(result, old, new, why if held else "the call was not held", held)
    return _measured(_Call(recording, heard, old, new, result), scenario, ears)


@dataclass(frozen=True, slots=True)
class _Call:
    recording: Recording
    heard: Listening
    old: Ruler
    new: Ruler
    result: schema.Result

    def audio(self, ruler: Ruler) -> schema.AudioMetrics:
        deadline = ruler.policy.response_deadline_ms
        settings = Settings(response_deadline_ms=deadline)
        return audio_metrics(contract_of(self.recording, settings), deadline)

    def timing(self, ruler: Ruler) -> dict[str, Json]:
        heard = replace(self.heard, detector=ruler.detector)
        return timing_of_heard(self.recording, heard, ruler.policy).as_json()

    @property
    def repeats(self) -> bool | None:
        """Whether the folder still gives the figures that the result has."""
        if self.old.version != TIMING_VERSION or self.old.notes:
            return None
        same = self.timing(self.old) == self.result.duplex.get("timing")
        return same and self.audio(self.old) == self.result.metrics.audio

    @property
    def work_is_missing(self) -> bool:
        """Whether the result tells of work that the events do not hold."""
        seen = self.result.observability
        tools = len(self.recording.tool_calls) < len(seen.tools.executed)
        mine = [one for one in self.recording.delegations if one.side is not Side.CALLER]
        return tools or len(mine) < seen.interaction.delegations


def _measured(call: _Call, scenario: Scenario | None, ears: Listener | None) -> Remeasured:
    audio, timing = call.audio(call.new), call.timing(call.new)
    reasons = dict(AUDIO_REASONS)
    if call.work_is_missing:
        nothing = schema.Extent(cumulative=None, maximum=None)
        audio = audio.model_copy(update={"floor_hold_silence_ms": nothing})
        reasons[_FLOOR_HOLD] = _NO_WORK
    repeats = call.repeats
    notes = (*call.old.notes, *call.recording.damage, *_missing(call))
    if repeats is False:
        notes += (_CHANGED,)
    words = None if ears is None else ears(call.recording, call.heard, scenario)
    ours: dict[str, Json] = {
        **call.result.duplex,
        "timing": timing,
        **_claims(call, timing),
        "words": _told_words(call, scenario) if words is None else words.as_json(),
        "remeasured_from": {**call.old.as_json(), "repeats": repeats, "notes": list(notes)},
    }
    now = _replaced(call.result, audio, ours, reasons)
    return Remeasured(
        was=call.result,
        now=now,
        old=call.old,
        new=call.new,
        measured=True,
        repeats=repeats,
        notes=notes,
        words=words,
    )


def _unmeasured(result: schema.Result, old: Ruler, new: Ruler, why: str, held: bool) -> Remeasured:
    reason = f"not measured again: {why}" if held else why
    ours: dict[str, Json] = {
        **result.duplex,
        "timing": None,
        "remeasured_from": {**old.as_json(), "repeats": None, "notes": [*old.notes, reason]},
    }
    audio = audio_metrics(None, new.policy.response_deadline_ms)
    now = _replaced(result, audio, ours, {"/metrics/audio": reason, "/duplex/timing": reason})
    return Remeasured(was=result, now=now, old=old, new=new, measured=False, held=held, why=why)


def _replaced(
    result: schema.Result,
    audio: schema.AudioMetrics,
    ours: dict[str, Json],
    reasons: Mapping[str, str],
) -> schema.Result:
    """The result with new figures; reasons of what was carried over stay."""
    metrics = result.metrics.model_copy(update={"audio": audio})
    kept = {
        pointer: why
        for pointer, why in member(result.duplex, "unknown").items()
        if not pointer.startswith(("/metrics/audio", "/duplex/timing"))
    }
    found = explain({"metrics": {"audio": audio.model_dump()}}, reasons)
    if ours["timing"] is None:
        found["/duplex/timing"] = reasons["/duplex/timing"]
    ours["unknown"] = {**found, **kept}
    return result.model_copy(update={"metrics": metrics, "duplex": ours})


def _was_held(result: schema.Result) -> bool:
    """Whether the run measured anything of this call."""
    counted = result.metrics.audio.response_opportunities.caller_turn_count
    return counted is not None or isinstance(result.duplex.get("timing"), dict)


def _claims(call: _Call, timing: Mapping[str, Json]) -> dict[str, Json]:
    """An agent's claims beside what is heard now, where the run kept any."""
    if call.result.duplex.get("claims") is None:
        return {}
    return {"claims": claims_of(call.recording, timing)[0]}


def _told_words(call: _Call, scenario: Scenario | None) -> Json:
    """Sessions' words depend on no detector and no policy: kept while their version holds."""
    before = call.result.duplex.get("words")
    if isinstance(before, dict) and before.get("words_version") == WORDS_VERSION:
        return before
    return words_of(call.recording, scenario).as_json()


def _missing(call: _Call) -> tuple[str, ...]:
    """What the events lack that the result shows they once held."""
    found = []
    labelled = sum(call.result.observability.interaction.caller_actions.values())
    told = len(call.recording.spoken_by(Side.CALLER))
    if told < labelled:
        found.append(
            f"the events hold {told} of {counted(labelled, 'caller label')}, the rest of the turns "
            "is inferred"
        )
    if call.work_is_missing:
        found.append(f"{_NO_WORK}: turns that waited for tools are judged as if they did not")
    return tuple(found)


def _policy_notes(stored: Iterable[str], known: set[str]) -> tuple[str, ...]:
    """What of a stored policy this version does not have, and the other way round."""
    named = set(stored)
    gone, new = sorted(named - known), sorted(known - named)
    notes = []
    if gone:
        notes.append(f"the run's policy names {', '.join(gone)}, which this version does not have")
    if new:
        notes.append(f"the run's policy lacks {', '.join(new)}: today's values are used")
    return tuple(notes)
