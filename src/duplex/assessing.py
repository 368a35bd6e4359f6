"""One call's result from its files: measured, graded, and written into the call's own folder.

It holds no call and keeps no list; what it says of a call follows from the
recording and the scenario alone. A call that was never held has a result too,
which says so. The runner drives it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from duplex.grading.evidence import Evidence
from duplex.grading.judging import JudgeCase, Judgement, case_of
from duplex.grading.own_checks import OwnCheck, checked_call, run_own
from duplex.metrics.card import card_of
from duplex.metrics.claims import claims_of
from duplex.metrics.contract import Settings
from duplex.metrics.from_recording import contract_of
from duplex.metrics.line import line_of
from duplex.metrics.of_call import interrupted_of, timing_of_call
from duplex.metrics.relay import NEVER_CUT
from duplex.metrics.ticks import ticks_of
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.transcript import transcript_text, transcripts
from duplex.metrics.words import words_of
from duplex.options import PERSON, RunOptions
from duplex.recording import Recording
from duplex.results import schema
from duplex.results.agenda import agenda_seen
from duplex.results.build import CallFigures, build_result
from duplex.results.completion import BY_OBSERVER, BY_WORDS, completion_of
from duplex.results.observed import Basis, validity
from duplex.results.outcome import Failing, failure
from duplex.run_folder import RunFolder
from duplex.scenario import Scenario
from duplex.values import Json

NOT_HELD = Failing(stage="not_run", message="the run was over before this call was held")


def assess(
    folder: RunFolder,
    options: RunOptions,
    scenario: Scenario,
    basis: Basis,
    judgement: Judgement | None = None,
    own: Sequence[OwnCheck] = (),
    *,
    call_id: str | None = None,
    sample: int = 1,
    about: Callable[[str], Mapping[str, Json]] | None = None,
) -> schema.Result:
    """Measure and grade a call that was held; write its own folder whole.

    ``judgement`` is what a judge made of its :func:`to_judge`, ``own`` are the user's
    checks. ``call_id`` names its files (its scenario's id if None), and ``about`` tells
    ``duplex.case`` once the call's outcome is known.
    """
    call_id = call_id or scenario.id
    recording = Recording.load(folder.path, call_id)
    evidence = Evidence.from_recording(recording)
    settings = Settings(response_deadline_ms=options.response_deadline_ms)
    audio = folder.audio(call_id)
    words = audio / "conversation.transcript.txt"
    heard = recording.duration > 0
    line, why = line_of(recording)
    timing = _timing(recording, options) if heard else None
    claims, unclaimed = claims_of(recording, timing)
    result = build_result(
        scenario,
        evidence,
        CallFigures(
            audio=contract_of(recording, settings) if heard else None,
            response_deadline_ms=settings.response_deadline_ms,
            timing=timing,
            extra={
                "completion": completion_of(recording.events),
                "agenda": _agenda(scenario, evidence, basis),
                "words": words_of(recording, scenario).as_json(),
                "line": line,
                "claims": claims,
                "interrupted_replies": _cuts(recording),
                **_card(recording, timing),
            },
            unknown={"/duplex/timing": "no sound was recorded"}
            | ({"/duplex/line": why} if why else {})
            | ({"/duplex/claims": unclaimed} if unclaimed else {})
            | ({"/duplex/interrupted_replies": NEVER_CUT} if _cuts(recording) is None else {}),
            judgement=judgement,
            own=run_own(own, checked_call(scenario, evidence, timing)),
        ),
        basis=basis,
        conversation_audio=folder.relative(audio / "conversation.wav"),
        conversation_transcript=folder.relative(words),
        sample=sample,
    )
    if about is not None:
        result.duplex["case"] = dict(about(str(result.duplex.get("outcome"))))
    folder.write_text(words, transcript_text(recording))
    folder.write_json(folder.transcript(call_id), transcripts(recording))
    folder.write_json(audio / "conversation.result.json", result.model_dump(mode="json"))
    if options.ticks:
        ticks = ticks_of(recording, options.tick_ms)
        lines = "".join(json.dumps(tick, allow_nan=False) + "\n" for tick in ticks)
        folder.write_text(audio / "ticks.jsonl", lines)
    return result


def to_judge(folder: RunFolder, call_id: str, scenario: Scenario, basis: Basis) -> JudgeCase | None:
    """What a judge is to be asked about a call; None for one that does not count."""
    recording = Recording.load(folder.path, call_id)
    evidence = Evidence.from_recording(recording)
    if failure(evidence, validity(evidence, basis).reason) is not None:
        return None
    return case_of(scenario, evidence)


def _agenda(scenario: Scenario, evidence: Evidence, basis: Basis) -> list[Json]:
    """What was seen of each agenda item; nothing where no words show the caller."""
    seen = agenda_seen(scenario, evidence, follows=basis.caller_tells_agenda)
    return [one.as_json() for one in seen or ()]


def _cuts(recording: Recording) -> list[Json] | None:
    """Replies of the assistant that were cut; None where its protocol does not tell."""
    cuts = interrupted_of(recording)
    if cuts is None:
        return None
    return [{"heard_ms": cut.heard_ms, "received_ms": cut.received_ms} for cut in cuts]


def _card(recording: Recording, timing: Mapping[str, Json] | None) -> dict[str, Json]:
    """What a person's sound card did; nothing for any other caller."""
    card = card_of(recording, timing)
    return {} if card is None else {"card": card}


def not_held(
    options: RunOptions,
    scenario: Scenario,
    basis: Basis,
    why: str | None = None,
    *,
    sample: int = 1,
    about: Mapping[str, Json] | None = None,
) -> schema.Result:
    """The result of a call that was asked for and never begun; ``why`` if not by the user."""
    result = build_result(
        scenario,
        Evidence(),
        CallFigures(response_deadline_ms=options.response_deadline_ms),
        basis=basis,
        failing=NOT_HELD if why is None else Failing(stage="not_run", message=why),
        sample=sample,
    )
    if about is not None:
        result.duplex["case"] = dict(about)
    return result


def basis_of(options: RunOptions, *, recorded: bool) -> Basis:
    """Who held a call, in the words of the contract; ``recorded``: a WAV was the caller."""
    policy = BY_OBSERVER if options.observed else BY_WORDS
    return replace(_who_called(options, recorded=recorded), completion_policy=policy)


def _who_called(options: RunOptions, *, recorded: bool) -> Basis:
    far = options.agent.label
    if recorded:
        return Basis(
            audio_source=f"recording_{far}",
            caller_mode="recording",
            attribution="audio" if options.caller_is_wav else "scenario_text",
            validity_scope="recorded_caller",
            caller_tells_agenda=False,
        )
    if options.caller == PERSON:
        return Basis(
            audio_source=f"person_{far}",
            caller_mode=PERSON,
            attribution="audio",
            validity_scope="person",
            caller_tells_agenda=False,
        )
    if options.caller == "scripted":
        return Basis(
            audio_source=f"scripted_{far}",
            caller_mode="scripted",
            validity_scope="scripted_caller",
            caller_tells_agenda=False,
        )
    if options.caller == "local":
        # A model that thinks for the voice says what it likes of its agenda: it is looked up.
        return Basis(
            audio_source="dual_local" if far == "local" else f"local_{far}",
            caller_tells_agenda=options.simulator_brain_model is None,
        )
    near = options.caller.replace("-", "_")
    source = f"dual_{far}" if far == near else f"{near}_{far}"
    return Basis(
        audio_source=source,
        caller_mode=options.caller,
        attribution="post_hoc_audio_and_transcript",
        validity_scope="caller_responses_delegation"
        if options.simulator_backend_model
        else "frontend_only_caller_delegation",
        caller_tells_agenda=False,
    )


def _timing(recording: Recording, options: RunOptions) -> Mapping[str, Json]:
    policy = TimingPolicy(response_deadline_ms=options.response_deadline_ms)
    return timing_of_call(recording, policy=policy).as_json()
