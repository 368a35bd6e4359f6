"""A run with everything in it: made-up calls, measured, judged and debriefed as real ones are.

Lines are placed by hand, so what an export must say of them is known; every block is
made by whoever makes it in a run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from booking_call import Log, booking
from duplex.exports.subject import Subject, subject_of
from duplex.grading import Evidence
from duplex.grading.judging import Judgement, case_of, decide, read_vote
from duplex.metrics.claims import claims_of
from duplex.metrics.timing import timing
from duplex.metrics.transcript import transcripts
from duplex.metrics.words import words_of
from duplex.recording import Recording
from duplex.results import CallFigures, Result, Run, build_result, build_run
from duplex.results.observed import Basis
from duplex.run_folder import RunFolder
from duplex.scenario import Scenario
from duplex.scenario.model import ApplicationStart
from duplex.scenario_files import written
from duplex.values import Json
from duplex.verdict.criteria import pinned
from judge_cases import asked
from judge_fakes import part, praise, shown
from results_support import CONFIGURATION
from viewer_runs import ASSISTANT, BOOKING, CALLER, CUT_IN, Line, add_call, records, refused

REPEATED = (
    *BOOKING[:-2],
    Line(side=ASSISTANT, gap_ms=1900, text="So that is Maya, two people, at seven?"),
    Line(side=CALLER, gap_ms=640, text="Yes, Maya, two people, at seven.", action="SPEAK"),
    *BOOKING[-2:],
)
"""A booking in which both sides say the key values twice."""
STARTED = "2026-08-01T00:00:02.000Z"
HEARD = {"August seventh": "August eleventh"}
"""What ears make of words in the first call of a run."""
CI = {
    "provider": "github_actions",
    "commit_sha": "0123abc",
    "ref": "refs/pull/7/merge",
    "pull_request": "7",
    "run_url": "https://example.org/runs/1",
    "actor": "maya",
}
STAGES = {"asr_final": 200, "first_token": 450, "first_sentence": 600, "first_byte": 700}
"""When the agent says each stage was over, in ms after the end of the caller's turn."""
CLAIMED_MS = 640


def subject(folder: Path) -> Subject:
    """The whole run, and its files in ``folder``."""
    return subject_of(full(folder))


def full(folder: Path) -> Run:
    """Two samples of a booking, the second failed, and a call that could not be held."""
    folder.mkdir(parents=True, exist_ok=True)
    results = [
        held(folder, 1, REPEATED, condition="noisy,snr=10", garbled=True),
        held(folder, 2, CUT_IN, condition="clean", good=False),
        _about(refused(folder, "lost.s1"), 1, "lost.s1", "clean"),
    ]
    return run_of(folder, results, samples=2, pass_rate=0.5)


def held(
    folder: Path,
    sample: int,
    lines: Sequence[Line],
    *,
    condition: str = "clean",
    good: bool = True,
    garbled: bool = False,
    told: bool = True,
) -> Result:
    """One call: its files, and its result; ``told`` is whether the agent tells of its timing."""
    call_id = f"restaurant_booking_complete.s{sample}"
    log, speech = add_call(folder, call_id, lines, booked=good)
    block = timing(speech).as_json()
    _hear(log, lines, garbled)
    _write_events(folder, call_id, log, _claims(block) if told else [])
    recording = Recording.load(folder, call_id)
    evidence = Evidence.from_recording(recording)
    claims, _ = claims_of(recording, block)
    result = build_result(
        scenario(),
        evidence,
        CallFigures(
            timing=block,
            judgement=_judgement(evidence, good),
            extra={"claims": claims, "words": words_of(recording, scenario()).as_json()},
        ),
        basis=Basis(),
        conversation_audio=f"audio/{call_id}/conversation.wav",
        sample=sample,
    )
    run = RunFolder(folder)
    run.write_json(run.transcript(call_id), transcripts(recording))
    return _about(result, sample, call_id, condition)


def scenario() -> Scenario:
    """What the calls are about: the booking, with a state that it begins with."""
    start = ApplicationStart(initial_state={"open": True})
    return booking().model_copy(update={"application": start, "tags": ("booking", "team=voice")})


def run_of(folder: Path, results: Sequence[Result], **plan: Json) -> Run:
    """These calls as a finished run; ``plan`` overrides what its plan says."""
    told: dict[str, Json] = {
        "id": "00000000-0000-5000-8000-000000000000",
        "name": "restaurant",
        "status": "completed",
        "created_at": "2026-08-01T00:00:00.000Z",
        "started_at": "2026-08-01T00:00:01.000Z",
        "ended_at": "2026-08-01T00:02:00.000Z",
        "expected": len(results),
        "pass_rate": 1.0,
        "criteria": [one.as_json() for one in pinned(["response_latency.max <= 1s"])],
        "ci": dict(CI),
        **plan,
    }
    dataset = folder.parent / "scenarios.json"
    dataset.write_text(written([scenario()]), encoding="utf-8")
    return build_run(
        results,
        run_id=folder.name,
        execution_mode="offline",
        dataset=str(dataset),
        configuration=CONFIGURATION,
        duplex={"plan": told},
    )


def _about(result: Result, sample: int, call_id: str, condition: str) -> Result:
    about: dict[str, Json] = {
        "call_id": call_id,
        "attempt": 1,
        "final": True,
        "seed": 6 + sample,
        "condition": condition,
        "persona": "default",
        "agent": "support-agent",
        "arm": None,
        "started_at": STARTED,
        "ended_at": "2026-08-01T00:01:00.000Z",
    }
    return result.model_copy(update={"duplex": result.duplex | {"case": about}})


def _hear(log: Log, lines: Sequence[Line], garbled: bool) -> None:
    """Each side hears what the other says, and the assistant not always rightly."""
    spoken = [event for event in log.events() if event.type == "utterance"]
    for event, line in zip(spoken, lines, strict=True):
        text = line.text
        for said, heard in HEARD.items() if garbled and line.side is CALLER else ():
            text = text.replace(said, heard)
        start, end = event.fields["start"], event.fields["end"]
        at_ms = event.at * 1000 // 24_000
        log.add(
            at_ms, line.side.other, "transcript",
            direction="heard", text=text, start=start, end=end,
        )  # fmt: skip


def _claims(block: dict[str, Json]) -> list[dict[str, Json]]:
    """The agent tells when its stages were over, and a latency of its own, for every reply."""
    turns = block["turns"]
    assert isinstance(turns, list)
    found: list[dict[str, Json]] = []
    for turn in turns:
        assert isinstance(turn, dict)
        answers, start = turn.get("answers"), turn["start_ms"]
        if not isinstance(answers, int):
            continue
        request = turns[answers]
        assert isinstance(request, dict)
        end = request["end_ms"]
        assert isinstance(end, float | int)
        assert isinstance(start, float | int)
        at = round(start * 24)
        for kind, after in STAGES.items():
            found.append({"at": at, "kind": kind, "moment": round((end + after) * 24), "ms": None})
        found.append({"at": at, "kind": "latency", "moment": at, "ms": CLAIMED_MS})
    return found


def _write_events(folder: Path, call_id: str, log: Log, claims: list[dict[str, Json]]) -> None:
    envelope: dict[str, Json] = {"received_at": None, "side": "assistant", "type": "claim"}
    lines = [*records(log), *({"seq": 1000 + n, **envelope, **c} for n, c in enumerate(claims))]
    lines.sort(key=lambda one: (one["type"] == "call.ended", one["at"]))
    path = RunFolder(folder).events(call_id)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _judgement(evidence: Evidence, good: bool) -> Judgement:
    case = case_of(booking(), evidence)
    answer = praise(*shown(asked(case)))
    if not good:
        turns = [one for one in case.turns if one.who == "assistant"]
        quoted: Json = [{"turn": turns[-1].number, "quote": turns[-1].text}]
        part(answer, "flags", "information_loss").update(present=True, evidence=quoted)
        answer["to_improve"] = [{"text": "It books nothing.", "evidence": quoted}]
        scores = answer["conciseness"]
        assert isinstance(scores, list)
        first = scores[0]
        assert isinstance(first, dict)
        first["score"] = 0.5
    return decide("judge-1", case, [read_vote(json.dumps(answer), case)])
