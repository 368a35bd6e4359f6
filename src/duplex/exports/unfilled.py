"""Published fields that an export never fills, each with the reason, shape by shape.

Data only. A message that is listed stands for everything below it. A test walks what is
published and finds every field either filled in some run or here, and never both;
``docs/exports.md`` shows the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_PROJECT = "runs here belong to a folder and to nobody's project"
_NO_TOKEN_RATE = "no agent tells how fast its model writes"
_NO_LANGUAGE = "no run says which language was spoken"
_ELSEWHERE = "a baseline may lie in another folder, where nobody counts its runs"
_NO_PROMPT = "the debrief is written from numbers and sees no prompt"

UNFILLED: Mapping[str, Mapping[str, str]] = {
    "roark": {
        "data.calls[].values[].participantRole": "a metric's name says whose it is",
        "data.calls[].values[].reasoning": "a value that was measured has no reasoning",
        "data.comparison.baselineRun.runNumber": _ELSEWHERE,
        "data.debrief.errorMessage": "writing from numbers does not fail",
        "data.debrief.report.recommendations[].currentText": _NO_PROMPT,
        "data.debrief.report.recommendations[].suggestedText": _NO_PROMPT,
        "data.debrief.report.trend.baselineRunNumber": _ELSEWHERE,
    },
    "livekit": {
        "run.projectId": _NO_PROJECT,
        "run.agentDescription": "nothing describes the agent; its name stands in agentName",
        "run.summaryZstd": "the summary stands beside the run, unpacked",
        "run.jobs[].roomName": "a call here has no room",
        "run.jobs[].failureReason": "an agent that could not be reached is no verdict on it: "
        "its job is cancelled and error says why",
        "run.jobs[].metrics.callerLanguage": _NO_LANGUAGE,
        "run.jobs[].metrics.callerListenLanguage": _NO_LANGUAGE,
        "run.jobs[].metrics.llm.tokensPerSecond": _NO_TOKEN_RATE,
        "run.jobs[].metrics.turns[].llmTps": _NO_TOKEN_RATE,
        "run.metrics.llm.tokensPerSecond": _NO_TOKEN_RATE,
        "summary.chatHistory.*.items[].agentHandoff": "one agent is under test; work that it "
        "delegates is a function call",
        "summary.chatHistory.*.items[].agentConfigUpdate": "no agent tells what it is "
        "configured with",
        "summary.chatHistory.*.items[].message.transcriptConfidence": "no session tells how "
        "sure it was of its words",
        "summary.chatHistory.*.items[].message.metrics.endOfTurnDelay": "no agent tells when it "
        "took a turn to be over",
        "summary.chatHistory.*.items[].message.metrics.onUserTurnCompletedDelay": "no agent "
        "tells of its own hooks",
        "summary.chatHistory.*.items[].message.metrics.llmNodeTps": _NO_TOKEN_RATE,
    },
}
