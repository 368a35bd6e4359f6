"""The page at ``/``: runs with their verdicts, made on the server, without a script.

Everything that is not this file's own text is escaped; the policy lets the one style
through by its hash and nothing else. It formats rows and computes nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from duplex.serve.library import Library
from duplex.store import Row

SHOWN = 200
Only = Literal["all", "failed", "running"]
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #0a7d34; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --good: #5fd38d; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.4rem; }
nav a { display: inline-block; margin-right: 1rem; padding: .25rem 0; }
nav a[aria-current] { font-weight: 700; text-decoration: none; }
a:focus-visible { outline: 3px solid; outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .6rem .4rem 0; text-align: left; }
td { vertical-align: top; }
td[data-name=run], td[data-name=agent], td[data-name=condition] { overflow-wrap: anywhere; }
.passed { color: var(--good); font-weight: 700; }
.failed { color: var(--bad); font-weight: 700; }
@media (max-width: 48rem) {
  thead { clip-path: inset(50%); height: 1px; overflow: hidden; position: absolute; width: 1px; }
  td { overflow-wrap: anywhere; }
  tr { border-bottom: 2px solid var(--line); display: block; padding: .5rem 0; }
  td { border: 0; display: block; padding: .1rem 0; }
  td::before { content: attr(data-name) ": "; opacity: .75; }
}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_COLUMNS = ("run", "when", "status", "verdict", "score", "calls", "agent", "condition", "look")
_NAMES: dict[Only, str] = {"all": "All", "failed": "Failed", "running": "In progress"}


def routes(library: Library) -> APIRouter:
    """The page over one library."""
    api = APIRouter(include_in_schema=False)

    @api.get("/")
    def runs(only: Annotated[Only, Query()] = "all") -> Response:
        found = [row for row in library.rows() if _fits(row, only)]
        body = document(found, only).encode("utf-8", "replace")
        headers = {"content-security-policy": _POLICY}
        return Response(body, media_type="text/html; charset=utf-8", headers=headers)

    return api


def document(rows: Sequence[Row], only: Only) -> str:
    """The whole page."""
    links = "".join(
        f'<a href="/?only={name}"{" aria-current=page" if name == only else ""}>{label}</a>'
        for name, label in _NAMES.items()
    )
    head = "".join(f'<th scope="col">{name.capitalize()}</th>' for name in _COLUMNS)
    body = "".join(map(_row, rows[:SHOWN]))
    more = f"<p>The newest {SHOWN} of {len(rows)} runs.</p>" if len(rows) > SHOWN else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Runs – duplex</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>Runs</h1><nav aria-label="Which runs">{links}</nav></header>'
        f"<main>{table if rows else '<p>No run is here.</p>'}</main></body></html>\n"
    )


def _fits(row: Row, only: Only) -> bool:
    return only == "all" or (row.passed is False if only == "failed" else row.status == "running")


def _row(row: Row) -> str:
    verdict = {True: "passed", False: "failed", None: "–"}[row.passed]
    place = f"/api/runs/{quote(row.id, safe='')}"
    cells = (
        escape(row.id),
        escape(row.created_at[:16].replace("T", " ")) or "–",
        escape(row.problem or row.status.replace("_", " ")),
        f'<span class="{verdict}">{verdict}</span>' if row.passed is not None else verdict,
        "–" if row.score is None else f"{row.score:.1f}",
        f"{row.passed_calls}/{row.total or row.expected}",
        escape(row.agent),
        escape(row.condition),
        _links(row, place),
    )
    return "<tr>{}</tr>".format(
        "".join(
            f'<td data-name="{name}">{cell}</td>'
            for name, cell in zip(_COLUMNS, cells, strict=True)
        )
    )


def _links(row: Row, place: str) -> str:
    """Where a run can be looked at; names tell the runs apart for whoever hears them."""
    if row.status == "damaged":
        return "–"
    offered = [("report.md", "report")]
    offered += [] if row.status == "running" else [("viewer.html", "page")]
    return " ".join(
        f'<a href="{place}/{file}" aria-label="{label} of {escape(row.id)}">{label}</a>'
        for file, label in offered
    )
