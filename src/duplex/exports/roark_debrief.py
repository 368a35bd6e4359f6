"""A debrief as the ``report`` of Roark's results, field by field."""

from __future__ import annotations

from collections.abc import Sequence

from duplex.debrief import Debrief, Finding, Theme
from duplex.values import Json
from duplex.verdict.ids import stable_id


def debrief_json(debrief: Debrief, run_id: str, generated_at: str) -> dict[str, Json]:
    """The whole report; call ids are those of the report's calls."""

    def ids(calls: Sequence[str]) -> list[Json]:
        return [stable_id("call", run_id, call) for call in calls]

    def findings(found: Sequence[Finding]) -> Json:
        return [
            {"title": one.title, "body": one.body, "callIds": ids(one.call_ids)} for one in found
        ]

    trend = debrief.trend
    return {
        "generatedAt": generated_at,
        "verdict": "PASSED" if debrief.passed else "THRESHOLD_FAILED",
        "verdictSummary": debrief.summary,
        "executiveSummary": {
            "paragraphs": list(debrief.paragraphs),
            "sections": [{"heading": head, "body": body} for head, body in debrief.sections],
        },
        "keyFindings": findings(debrief.findings),
        "wentWell": findings(debrief.went_well),
        "themes": [_theme(theme, ids(theme.call_ids)) for theme in debrief.themes],
        "recommendations": [
            {
                "order": one.order,
                "title": one.title,
                "body": one.body,
                "severity": one.severity,
                "channel": one.channel,
                "currentText": None,
                "suggestedText": None,
                "themeSlugs": list(one.themes),
            }
            for one in debrief.recommendations
        ],
        "trend": None
        if trend is None
        else {
            "baselineRunPlanJobId": stable_id("run", trend.baseline),
            "baselineRunNumber": None,
            "rows": [
                {
                    "checkName": row.check,
                    "previousPassRate": row.previous,
                    "currentPassRate": row.current,
                    "lifecycle": row.lifecycle,
                }
                for row in trend.rows
            ],
        },
    }


def _theme(theme: Theme, calls: list[Json]) -> Json:
    return {
        "slug": theme.slug,
        "title": theme.title,
        "severity": theme.severity,
        "impact": theme.impact,
        "prevalence": theme.prevalence,
        "lifecycle": theme.lifecycle,
        "affectedCallCount": theme.affected,
        "totalCallCount": theme.total,
        "checkNames": list(theme.checks),
        "rootCauseChannel": theme.channel,
        "analysis": theme.analysis,
        "callIds": calls,
    }
