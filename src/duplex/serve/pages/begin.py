"""The form that begins a run, and the options that a filled one stands for.

What it does not ask has the default of ``duplex run``. It judges no value itself: the
launcher refuses what cannot be used, and the form is shown again with that sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duplex import scenario as scenarios
from duplex.agents import FORMS, NAMED
from duplex.conditions import PRESETS
from duplex.errors import DuplexError
from duplex.options import CALLERS, RunOptions
from duplex.run_results import data_path
from duplex.serve.pages.markup import Child, Markup, tag
from duplex.serve.pages.words import options
from duplex.serve.refusals import Refusal

Fields = Mapping[str, Sequence[str]]
_CLOCKS = (
    ("wall", "wall: in real time, to be watched"),
    ("virtual", "virtual: as fast as it goes"),
)
_FIRST = (
    ("", "as the scenario says"),
    ("caller", "the caller"),
    ("assistant", "the assistant"),
)
_WHOLE = ("samples", "concurrency", "seed")
_REAL = ("pass_rate", "max_duration_seconds")
_TEXT = ("clock", "assistant", "caller", "data", "sweep", "first_speaker", "run_name")
_LINES = ("check",)


def options_of(fields: Fields) -> dict[str, object]:
    """The options of a form; raises Refusal for a number that is none."""
    given: dict[str, object] = {}
    chosen = [one for one in fields.get("scenario", ()) if one]
    condition = [one for one in fields.get("condition", ()) if one and one != "clean"]
    condition += _lines(fields, "conditions")
    for name, found in (("scenario", chosen), ("condition", condition)):
        if found:
            given[name] = found
    for name in _TEXT:
        if value := _first(fields, name):
            given[name] = value
    for name in (*_WHOLE, *_REAL):
        if value := _first(fields, name):
            given[name] = _number(name, value)
    for name in _LINES:
        if lines := _lines(fields, name):
            given[name] = lines
    return given


def form(fields: Fields, *, may: bool, problem: str | None = None) -> list[Child]:
    """The page's content; ``fields`` are what was filled in, ``may`` whether it can be sent."""
    return [
        tag("h1", "New run"),
        tag("p", problem, class_="error", role="alert") if problem else None,
        None if may else _sign_in_first(),
        tag("form", _fields(fields), _send(may), method="post", action="/new", class_="grid panel"),
    ]


def _sign_in_first() -> Markup:
    link = tag("a", "Sign in", href="/sign-in")
    return tag("p", link, " with the token to begin a run.", class_="error")


def _send(may: bool) -> Markup:
    button = tag("button", "Begin the run", class_="main", disabled=not may)
    return tag("div", button, class_="all")


def _fields(fields: Fields) -> list[Child]:
    presets = [(one.name, f"{one.name}: {one.says}") for one in PRESETS]
    parties = [("assistant", (*NAMED,), FORMS), ("caller", CALLERS[:-1], CALLERS[-1])]
    return [
        _scenarios(fields),
        *(_party(fields, name, names, more) for name, names, more in parties),
        _choice(fields, "condition", "Condition", presets, "What the line and the room do."),
        _lines_field(fields, "conditions", "Further conditions", "One a line: noisy,snr=10"),
        _choice(fields, "clock", "Clock", _CLOCKS, None),
        _choice(fields, "first_speaker", "Who speaks first", _FIRST, None),
        _input(fields, "samples", "Samples of each scenario", type="number", min=1, max=10_000),
        _input(fields, "concurrency", "Calls side by side", type="number", min=1, max=8),
        _input(fields, "pass_rate", "Share of samples that must pass", type="number", min=0, max=1,
               step="any"),
        _input(fields, "max_duration_seconds", "Longest call, seconds", type="number", min=0,
               step="any"),
        _input(fields, "sweep", "Sweep", hint="PROPERTY=VALUE,VALUE…, such as noisy.snr=none,10,0"),
        _lines_field(fields, "check", "Checks", "One a line: response_latency.p95 <= 1500ms"),
        _input(fields, "run_name", "Name", maxlength=64),
        _input(fields, "data", "Scenario files", hint="A file or a folder; empty: the default."),
    ]  # fmt: skip


def _scenarios(fields: Fields) -> Markup:
    """A box for every scenario; none ticked means all."""
    chosen = set(fields.get("scenario", ()))
    try:
        found = scenarios.load(data_path(RunOptions())).scenarios
        names = {one.id: one.title for one in found}
    except DuplexError:
        names = {}
    names |= {one: "" for one in sorted(chosen - set(names)) if one}
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name="scenario", value=id, checked=id in chosen),
            tag("span", id, tag("small", f" {title}", class_="muted") if title else None),
        )
        for id, title in names.items()
    ]
    hint = tag("small", "None ticked: all of them." if boxes else "Those of the files below.")
    return tag("fieldset", tag("legend", "Scenarios"), boxes, hint, class_="all")


def _party(fields: Fields, name: str, names: Sequence[str], more: str) -> Markup:
    known = [tag("option", value=one) for one in names]
    return _labelled(
        name.capitalize(),
        tag(
            "input",
            name=name,
            value=_first(fields, name) or "local",
            list=f"{name}s",
            autocomplete="off",
            maxlength=500,
        ),
        tag("datalist", known, id=f"{name}s"),
        tag("small", f"{', '.join(names)}; or {more}"),
    )


def _choice(
    fields: Fields, name: str, words: str, values: Sequence[tuple[str, str]], hint: str | None
) -> Markup:
    given = options(values, _first(fields, name))
    return _labelled(words, tag("select", given, name=name), _hint(hint))


def _input(
    fields: Fields, name: str, words: str, hint: str | None = None, **about: str | int
) -> Markup:
    default = RunOptions.model_fields[name].default
    given = {"maxlength": 300, **about} if "type" not in about else about
    box = tag(
        "input",
        name=name,
        value=_first(fields, name) or None,
        placeholder=None if default is None else str(default),
        autocomplete="off",
        **given,
    )
    return _labelled(words, box, _hint(hint))


def _lines_field(fields: Fields, name: str, words: str, hint: str) -> Markup:
    lines = _lines(fields, name)
    # Lines are kept apart by a reference, since text in markup is one line.
    content: list[Child] = [[one, Markup("&#10;")] for one in lines]
    return _labelled(
        words, tag("textarea", content, name=name, rows=2, maxlength=4000), _hint(hint)
    )


def _labelled(words: str, *content: Child) -> Markup:
    return tag("label", tag("span", words), *content)


def _hint(words: str | None) -> Markup | None:
    return None if words is None else tag("small", words)


def _first(fields: Fields, name: str) -> str:
    return next(iter(fields.get(name, ())), "").strip()


def _lines(fields: Fields, name: str) -> list[str]:
    return [one.strip() for one in _first(fields, name).splitlines() if one.strip()]


def _number(name: str, text: str) -> int | float:
    try:
        return int(text) if name in _WHOLE else float(text)
    except ValueError:
        want = "a whole number" if name in _WHOLE else "a number"
        message = f'{name} "{text[:40]}" is not {want}'
        raise Refusal(422, "option_not_usable", message, param=name) from None
