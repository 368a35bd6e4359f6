"""Ids become file names that no system mistakes and no two ids share; text becomes cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from duplex.application.bounds import CHARACTERS, DEPTH, VALUES, unbearable
from duplex.application.tools import Tool, Toolbox
from duplex.cli.shell import talk
from duplex.report.markdown import cell
from duplex.report.spreadsheet import text_cell
from duplex.run_folder import safe_name
from duplex.values import Json

HOSTILE = [
    *(
        "..",
        ".",
        "",
        "../../etc/passwd",
        "a/b",
        "a\\b",
        "C:evil",
        "a\x00b",
        "nul",
        "CON",
        "aux.txt",
    ),
    *(
        "COM1",
        "LPT9.wav",
        "prn.",
        "trailing.",
        "trailing ",
        ".hidden",
        "a" * 300,
        "\ud800",
        "ẞ",
        "ß",
    ),
    *("~", "a:b", "a*b", "CONIN", "-rf", "$(id)", "a\nb", "\u202eabc"),
]


@pytest.mark.parametrize("one", HOSTILE)
def test_a_hostile_id_is_a_harmless_name(one: str) -> None:
    name = safe_name(one)
    assert name
    assert len(name) <= 112
    assert name.isascii()
    assert not set(name) & set('/\\:*?"<>| \x00\n')
    assert name.strip(".") == name
    assert name.partition(".")[0].upper() not in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9"}
    assert safe_name(name) == name, "a name is its own name"


@given(st.lists(st.text(max_size=8), unique=True, max_size=6))
def test_no_two_ids_share_a_name(ids: list[str]) -> None:
    assert len({safe_name(one) for one in ids}) == len(ids)


def test_hostile_ids_that_look_alike_do_not_collide() -> None:
    assert len({safe_name(one).lower() for one in HOSTILE}) == len(HOSTILE)


# -- cells ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1", "\n=1", "-2+3", "=-1"]
)
def test_what_a_spreadsheet_would_run_is_text(text: str) -> None:
    assert text_cell(text).startswith("'")


@pytest.mark.parametrize(
    "text", ["-5", "+1.5", "-0.5e3", "12", "7%", "-.5", "a=b", "x@y", "", "ok"]
)
def test_numbers_and_plain_text_stay_as_they_are(text: str) -> None:
    assert text_cell(text) == text


@given(st.text(max_size=20))
def test_no_cell_runs_or_moves_a_terminal(text: str) -> None:
    found = text_cell(text)
    assert found.isprintable()
    out = io.StringIO()
    csv.writer(out).writerow([found])
    ((back,),) = csv.reader(io.StringIO(out.getvalue()), strict=True) or (("",),)
    assert back == found
    if back.strip()[:1] in ("=", "+", "-", "@"):
        float(back.strip().removesuffix("%"))


def test_a_terminals_sequences_and_markup_do_not_pass_a_report() -> None:
    text = "\x1b]0;owned\x07\x1b[31m<b>|[x](http://y)`\u202e"
    assert cell(text) == "\\]0;owned\\[31m\\<b\\>\\|\\[x\\](http://y)\\`"


def test_no_line_for_people_moves_their_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = talk()
    console.print("a\x1b[31mb\nc\x9b2J")
    console.print(Text("x\x1b]0;y\x07z\u202e", style="bold"), end="!\n")
    assert capsys.readouterr().err == "a[31mb\nc2J\nx]0;yz!\n"


# -- arguments of tools -----------------------------------------------------


def deep(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"a": "x" * (CHARACTERS + 1)}, "characters"),
        ({"a": list(range(VALUES + 1))}, "values"),
        ({"a": deep(DEPTH + 1)}, "deep"),
        ({"a": deep(100_000)}, "deep"),
        ({"a": float("nan")}, "not finite"),
        ({"a": [float("inf")]}, "not finite"),
    ],
)
def test_arguments_beyond_bearing_never_reach_a_tool(arguments: dict[str, Json], why: str) -> None:
    ran: list[Json] = []
    schema: dict[str, Json] = {"type": "object", "properties": {}, "additionalProperties": True}
    tool = Tool(name="t", description="", parameters=schema, run=lambda _, **a: ran.append(1))
    outcome = Toolbox([tool], {}).run("t", arguments)
    assert outcome.status == "failed"
    assert why in (outcome.error or "")
    assert not outcome.broke
    assert not ran
    assert unbearable({"a": deep(DEPTH - 3)}) is None


def test_many_faults_are_told_in_few_words() -> None:
    schema: dict[str, Json] = {"type": "object", "properties": {}}
    tool = Tool(name="t", description="", parameters=schema, run=lambda _: None)
    outcome = Toolbox([tool], {}).run("t", {f"{n}" + "x" * 400: 1 for n in range(50)})
    assert outcome.error is not None
    assert outcome.error.endswith("and 40 more")
    assert len(outcome.error) < 4_000
