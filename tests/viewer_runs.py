"""Run folders for the viewer's tests: three made-up calls, with sound, events and results.

Nothing is held: lines are placed where the table says, so the page's content is
known. ``voice`` may be replaced by one that speaks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from booking_call import BOOKED, RATE_HZ, SLOT, Log, booking
from duplex.grading import Evidence
from duplex.metrics.contract import ContractMetrics, Label, LabelledTimeline, contract_metrics
from duplex.metrics.live_facts import ClockFacts, LiveFacts, ReplyArrival
from duplex.metrics.speech import EdgeError, Speech, SpokenSegment
from duplex.metrics.timing import timing
from duplex.recording import CallRecorder
from duplex.results import CallFigures, build_result, build_run, schema
from duplex.results.observed import Basis
from duplex.run_folder import RunFolder
from duplex.values import Action, Json, Side, Span, Utterance
from duplex.wavfile import Pcm
from results_support import CONFIGURATION

CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT
Voice = Callable[[Side, str], Pcm]


def tone(side: Side, text: str) -> Pcm:
    """A tone as long as the words would take; its pitch tells the side."""
    length = max(len(text), 8) * RATE_HZ // 40
    wave = 8000 * np.sin(2 * np.pi * (210 + 130 * side) * np.arange(length) / RATE_HZ)
    return np.round(wave).astype(np.int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a made-up call, ``gap_ms`` after the line before it ended (may be negative)."""

    side: Side
    gap_ms: int
    text: str
    action: str | None = None
    nested: bool = False
    """It does not move the point from which the next gap counts."""


BOOKING = (
    Line(side=ASSISTANT, gap_ms=500, text="Good evening, this is the restaurant."),
    Line(side=CALLER, gap_ms=620, text="A table for August seventh, please.", action="OPENING"),
    Line(side=ASSISTANT, gap_ms=843, text="Gladly. Under what name, and for how many people?"),
    Line(side=CALLER, gap_ms=-1100, text="Mm-hm.", action="BACKCHANNEL", nested=True),
    Line(side=CALLER, gap_ms=700, text="For two, under Maya, at seven.", action="SPEAK"),
    Line(side=ASSISTANT, gap_ms=-180, text="Let me look that up for you."),
    Line(side=ASSISTANT, gap_ms=1900, text="Your table is booked for Maya, two people, at seven."),
    Line(side=CALLER, gap_ms=640, text="Thank you, goodbye.", action="STOP"),
)
CUT_IN = (
    Line(side=ASSISTANT, gap_ms=500, text="Good evening, this is the restaurant."),
    Line(
        side=CALLER, gap_ms=700, text="A table for three on August tenth, please.", action="OPENING"
    ),
    Line(
        side=ASSISTANT, gap_ms=3400, text="Certainly, that was a table for three people on August"
    ),
    Line(side=CALLER, gap_ms=-900, text="No wait, five people please.", action="INTERRUPT"),
    Line(side=ASSISTANT, gap_ms=1200, text="Five people then. Under what name?"),
    Line(side=CALLER, gap_ms=900, text="Daniel. Hello?", action="SPEAK"),
)


def add_call(
    folder: Path, call_id: str, lines: Iterable[Line], *, voice: Voice = tone, booked: bool = True
) -> tuple[Log, Speech]:
    """Write events and WAVs of one call; return its log and what its timing is made of."""
    placed = _placed(lines, voice)
    end = max(at + len(pcm) for _, at, pcm in placed) + 2 * RATE_HZ
    log = _log(placed, booked)
    log.end(end * 1000 // RATE_HZ)
    stems = {side: np.zeros(end, np.int16) for side in Side}
    for line, at, pcm in placed:
        stems[line.side][at : at + len(pcm)] = pcm
    with CallRecorder(folder, call_id, rate_hz=RATE_HZ) as recorder:
        caller, assistant = stems[CALLER], stems[ASSISTANT]
        recorder.append(caller, assistant, caller, assistant)
        for event in log.events():
            recorder.event(event)
    return log, _speech(placed, end)


def result_of(log: Log, call_id: str, speech: Speech, sample: int = 1) -> schema.Result:
    """The result as the runner would write it, timing block included."""
    evidence = Evidence.from_events(log.events())
    block = timing(speech, facts=_facts(speech))
    return build_result(
        booking(),
        evidence,
        CallFigures(audio=_contract(evidence), timing=block.as_json()),
        basis=Basis(),
        conversation_audio=f"audio/{call_id}/conversation.wav",
        conversation_transcript=f"audio/{call_id}/conversation.transcript.txt",
        sample=sample,
    )


def refused(folder: Path, call_id: str) -> schema.Result:
    """A call whose assistant could not be reached: events, and no audio."""
    log = Log()
    fields: dict[str, Json] = {"stage": "assistant_connection", "code": "401", "fatal": True}
    log.add(0, ASSISTANT, "fault", message="the assistant answered 401", **fields)
    log.end(0, "error")
    path = RunFolder(folder).events(call_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in records(log)), encoding="utf-8")
    unheard = {"/duplex/timing": "the call left no recording to measure"}
    result = build_result(
        booking(), Evidence.from_events(log.events()), CallFigures(unknown=unheard), basis=Basis()
    )
    return result.model_copy(update={"scenario_id": call_id})


def records(log: Log) -> list[dict[str, Json]]:
    """Events as the lines of their file."""
    return [
        {
            "seq": event.seq,
            "at": event.at,
            "received_at": None,
            "side": None if event.side is None else event.side.label,
            "type": event.type,
            **event.fields,
        }
        for event in log.events()
    ]


def write_results(folder: Path, results: Iterable[schema.Result]) -> schema.Run:
    run = build_run(
        list(results),
        run_id=folder.name,
        execution_mode="offline",
        dataset="scenarios",
        configuration=CONFIGURATION,
        duplex={"clock": "virtual", "detector": "edge", "transport_ms": 20},
    )
    RunFolder(folder).write_json(folder / "results.json", run.model_dump(mode="json"))
    return run


def make_run(folder: Path, *, voice: Voice = tone) -> schema.Run:
    """A run of four calls: two samples of one scenario, one failed, one refused."""
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for sample in (1, 2):
        call_id = f"booking.s{sample}"
        log, speech = add_call(folder, call_id, BOOKING, voice=voice)
        results.append(result_of(log, call_id, speech, sample))
    log, speech = add_call(folder, "cut_in", CUT_IN, voice=voice, booked=False)
    failed = result_of(log, "cut_in", speech)
    results.append(failed.model_copy(update={"scenario_id": "cut_in"}))
    results.append(refused(folder, "refused"))
    return write_results(folder, results)


Placed = list[tuple[Line, int, Pcm]]


def _placed(lines: Iterable[Line], voice: Voice) -> Placed:
    placed: Placed = []
    free = 0
    for line in lines:
        pcm = voice(line.side, line.text)
        start = max(free + line.gap_ms * RATE_HZ // 1000, 0)
        placed.append((line, start, pcm))
        if not line.nested:
            free = start + len(pcm)
    return placed


def _log(placed: Placed, booked: bool) -> Log:
    log = Log(versions={"duplex-voice": "0.1.0"}).state(0, {})
    for line, at, pcm in placed:
        start, end = at * 1000 // RATE_HZ, (at + len(pcm)) * 1000 // RATE_HZ
        source = "transcript" if line.side is ASSISTANT else "caller_intent"
        log.add(end, line.side, "segment", detector="rms", start=at, end=at + len(pcm))
        log.add(
            end, line.side, "utterance", text=line.text, action=line.action, source=source,
            start=at, end=at + len(pcm),
        )  # fmt: skip
        if booked and line.text.startswith("Let me look"):
            _work(log, start + 200)
    if booked:
        log.add(end, CALLER, "caller.finished", outcome="completed")
    return log


def _work(log: Log, at: int) -> None:
    log.add(at, ASSISTANT, "delegation.created", delegation_id="d1", target="client")
    log.tool(at + 250, "c1", "check_availability", {**SLOT})
    log.tool(at + 900, "c2", "create_reservation", {**SLOT, "guest_name": "Maya"})
    log.state(at + 1100, BOOKED)
    log.add(at + 1500, ASSISTANT, "delegation.closed", delegation_id="d1", ok=True)


def _speech(placed: Placed, end: int) -> Speech:
    edge = EdgeError(plus_minus_ms=5.5)
    found: dict[Side, list[SpokenSegment]] = {side: [] for side in Side}
    labels = []
    for line, at, pcm in placed:
        loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > 150)
        start, stop = at + int(loud[0]), at + int(loud[-1]) + 1
        found[line.side].append(SpokenSegment(start=start, end=stop, onset=edge, offset=edge))
        if line.action is not None:
            labels.append(
                Utterance(
                    side=line.side,
                    text=line.text,
                    span=Span(start=at, end=at + len(pcm)),
                    action=Action[line.action],
                    source="caller_intent",
                )
            )
    return Speech(
        rate_hz=RATE_HZ,
        duration=end,
        caller=tuple(found[CALLER]),
        assistant=tuple(found[ASSISTANT]),
        labels=tuple(labels),
        tick_ms=2.5,
        detector="edge",
    )


def _facts(speech: Speech) -> LiveFacts:
    replies = []
    for segment in speech.assistant:
        heard = segment.start * 1000 / RATE_HZ
        replies.append(
            ReplyArrival(
                heard_at=segment.start,
                first_byte_ms=heard - 140,
                first_audio_ms=heard - 120,
                hold_ms=100.0,
                wait_ms=-9.5,
            )
        )
    clock = ClockFacts(late_ticks=0, late_p99_ms=0.0, late_max_ms=0.0, idle_samples=480)
    return LiveFacts(tick=480, replies=tuple(replies), clock=clock)


def _contract(evidence: Evidence) -> ContractMetrics:
    labels = {
        side: [
            Label(
                start_ms=line.start_ms,
                end_ms=line.end_ms,
                action=line.action or "",
                voiced=((line.start_ms, line.end_ms),),
            )
            for line in evidence.lines(side)
        ]
        for side in Side
    }
    return contract_metrics(
        LabelledTimeline(
            caller_turns=labels[CALLER],
            assistant_turns=labels[ASSISTANT],
            observation_end_ms=evidence.duration_ms,
        )
    )
