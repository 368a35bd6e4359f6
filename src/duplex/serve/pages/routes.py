"""The paths of the page: what is shown at each, and what a form sent to one does.

Whether somebody may read or write at all is the door's to say; a form needs the cookie
that the door has looked at. Nothing here is part of the described interface.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Path, Query, Request, Response

from duplex.serve.calls_api import call_of
from duplex.serve.launching import Launcher
from duplex.serve.library import Library
from duplex.serve.pages import begin, listed, one_call, one_run, sign_in
from duplex.serve.pages.begin import Fields
from duplex.serve.pages.frame import STATIC, page, signed_in, static
from duplex.serve.pages.listed import Chosen, Only
from duplex.serve.pages.markup import address, tag
from duplex.serve.pages.once import Once
from duplex.serve.pages.trends import Trends
from duplex.serve.plans import again
from duplex.serve.refusals import Refusal
from duplex.serve.tickets import Tickets, no_cookie
from duplex.stopping import ask_to_stop

RunId = Annotated[str, Path(alias="run", max_length=200)]
_Text = Annotated[str, Query(max_length=300)]


def routes(library: Library, launcher: Launcher, tickets: Tickets) -> APIRouter:
    """The page over one library."""
    api = APIRouter(include_in_schema=False)
    _signing(api, tickets)
    _reading(api, library)
    _changing(api, library, launcher)
    return api


def _signing(api: APIRouter, tickets: Tickets) -> None:
    @api.get("/static/{name}")
    def file(name: str) -> Response:
        if name not in STATIC:
            raise Refusal(404, "file_not_found", "there is no such file")
        return static(name)

    @api.get("/sign-in")
    def form(request: Request, wrong: bool = False) -> Response:
        return page(request, "Sign in", *sign_in.content(wrong=wrong))

    @api.post("/sign-in")
    async def enter(request: Request) -> Response:
        token = next(iter((await _fields(request)).get("token", ())), "")
        if not tickets.is_token(token):
            return page(request, "Sign in", *sign_in.content(wrong=True), status=401)
        cookie = tickets.cookie(request.headers.get("host", ""))
        return _to("/", cookie=cookie)

    @api.post("/sign-out")
    def leave(request: Request) -> Response:
        return _to("/", cookie=no_cookie(request.headers.get("host", "")))


def _reading(api: APIRouter, library: Library) -> None:
    trends = Trends(library)

    @api.get("/")
    def runs(
        request: Request,
        only: Annotated[Only, Query()] = "all",
        scenario: _Text = "",
        agent: _Text = "",
        plan: _Text = "",
        skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        chosen = Chosen(only=only, scenario=scenario, agent=agent, plan=plan, skip=skip)
        rows = library.rows()
        newest = listed.trend_of(chosen, rows)
        # A plan may be held with one agent after another; a trend is of one of them.
        only_agent = agent if newest is None else newest.agent
        among = [
            row
            for row in rows
            if (newest is None or row.plan_id == newest.plan_id)
            and (not scenario or scenario in row.scenarios)
            and only_agent in ("", row.agent)
        ]
        points = trends.points(among, scenario or None) if newest or scenario else []
        name = scenario if newest is None else listed.plan_name(newest)
        return page(request, "Runs", *listed.content(chosen, rows, points, name))

    @api.get("/new")
    def new(request: Request) -> Response:
        fields: Fields = {}
        return page(request, "New run", *begin.form(fields, may=signed_in(request)))

    @api.get("/runs/{run}")
    def run(request: Request, run: RunId, against: _Text = "") -> Response:
        row = library.by_id(run)
        found = one_run.content(library, row, against or None, may=signed_in(request))
        crumbs = [("Runs", "/"), (row.id, address("runs", row.id))]
        return page(request, row.id, *found, crumbs=crumbs, script="run.js")

    @api.get("/runs/{run}/calls/{call}")
    def call(
        request: Request,
        run: RunId,
        call: Annotated[str, Path(max_length=200)],
        t: Annotated[int | None, Query(ge=0, le=86_400_000)] = None,
    ) -> Response:
        row = library.by_id(run)
        seen = library.seen(row)
        place = address("runs", row.id)
        crumbs = [("Runs", "/"), (row.id, place), (call, address("runs", row.id, "calls", call))]
        if any(name == call for _, _, name in seen.in_progress()):
            content = one_call.live(row.id, call)
            return page(request, call, *content, crumbs=crumbs, script="live.js")
        call_of(library, row, call)
        names = [case.call_id for case in library.subject(row).run.cases]
        found = one_call.over(row, call, names, t)
        return page(request, call, *found, crumbs=crumbs, wide=True)


def _changing(api: APIRouter, library: Library, launcher: Launcher) -> None:
    once = Once()

    @api.post("/new")
    async def started(request: Request) -> Response:
        fields = await _fields(request)

        async def begun() -> str:
            return await launcher.start(begin.options_of(fields))

        try:
            id = await once.begun("/new", await request.body(), begun)
        except Refusal as refusal:
            content = begin.form(fields, may=True, problem=refusal.message)
            return page(request, "New run", *content, status=refusal.status)
        library.changed()
        return _to(address("runs", id))

    @api.post("/runs/{run}/again")
    async def held_again(request: Request, run: RunId) -> Response:
        row = library.by_id(run)

        async def begun() -> str:
            return await launcher.start(again(library, [row]))

        try:
            id = await once.begun(row.id, b"", begun)
        except Refusal as refusal:
            back = tag("a", "Back to the run", href=address("runs", row.id))
            said = tag("p", refusal.message, class_="error", role="alert")
            return page(request, row.id, said, back, status=refusal.status)
        library.changed()
        return _to(address("runs", id))

    @api.post("/runs/{run}/cancel")
    def cancel(run: RunId) -> Response:
        row = library.by_id(run)
        if row.status == "running":
            ask_to_stop(library.place(row))
        return _to(address("runs", row.id))


async def _fields(request: Request) -> Fields:
    """The fields of a form that was sent; raises Refusal when it is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(422, "not_a_form", f'content type "{kind[:60]}" is not a form\'s')
    try:
        text = (await request.body()).decode("utf-8")
        return parse_qs(text, keep_blank_values=True, max_num_fields=500)
    except ValueError:
        raise Refusal(422, "not_a_form", "the form cannot be read") from None


def _to(place: str, cookie: str | None = None) -> Response:
    headers = {"location": place} if cookie is None else {"location": place, "set-cookie": cookie}
    return Response(status_code=303, headers=headers)
