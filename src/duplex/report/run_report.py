"""A run for people: one sentence, its calls, then limits, ledger and basis of each.

Pure formatting of results as they stand; what is not known is said with its
reason. ``running.py`` prints the short form, ``--markdown`` the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from duplex.counting import counted
from duplex.report.card_report import card_lines
from duplex.report.figures import duration, spread
from duplex.report.limits import HEADINGS, UNMEASURED, limits
from duplex.report.markdown import cell, section, table
from duplex.report.outcome_report import outcome_markdown
from duplex.report.verdict_report import verdict_markdown
from duplex.results import schema
from duplex.results.run import COLUMNS, headline, rows, work_unseen
from duplex.results.stored import member
from duplex.values import Json

MOST_TOLD = 40
"""Of more calls than this, those that did not pass are told, and so many one by one."""
_FATES = ("attempted", "answered", "late", "unanswered", "censored", "excluded")
_MOST_ROWS = 500
_TIMES = (
    ("heard reply latency", "response_latency"),
    ("time to yield", "time_to_yield"),
    ("first audio", "first_audio_latency"),
)


def short(run: schema.Run) -> tuple[str, ...]:
    """What stands below the table of calls: ledger, words, unseen work, sound cards, basis."""
    return ledger(run), words(run), *unseen_work(run), *card_lines(run), basis(run)


def unseen_work(run: schema.Run) -> tuple[str, ...]:
    """One line if calls passed of which nobody knows whether the task was done, else none."""
    unseen = sum(map(work_unseen, run.results))
    if not unseen:
        return ()
    return (
        f"task: nobody could tell whether it was done in {unseen} of "
        f"{counted(len(run.results), 'call')}: neither a state that the agent tells "
        "(docs/side-channel.md) nor a judge (--judge-model) showed it",
    )


def ledger(run: schema.Run) -> str:
    """What became of all caller turns that were measured, as one line."""
    blocks = [member(member(result.duplex, "timing"), "ledger") for result in run.results]
    known = [block for block in blocks if block]
    if not known:
        return f"ledger: {UNMEASURED}"
    counts = [f"{sum(_whole(block, name) for block in known)} {name}" for name in _FATES]
    without = len(blocks) - len(known)
    missing = f"; {without} of {counted(len(blocks), 'call')} {UNMEASURED}" if without else ""
    return f"ledger: caller turns {', '.join(counts)}{missing}"


def basis(run: schema.Run) -> str:
    """Whose clock, which line, which detector, which policy, as one line."""
    clock = run.run.duplex.get("clock")
    told = {"wall": "the wall clock", "virtual": "virtual time"}.get(str(clock), "unknown clock")
    condition = f"condition {run.run.configuration.audio_condition}"
    rulers = sorted({_ruler(result) for result in run.results})
    return f"basis: {told}, {condition}, {'; '.join(rulers) or UNMEASURED}"


def as_markdown(run: schema.Run) -> str:
    """All of it, of many calls what did not pass; ends with a line break.

    A pipeline's summary holds a megabyte, and a thousand calls told one by one are more.
    """
    every = len(run.results) <= MOST_TOLD
    told = [one for one in run.results if every or one.status != "passed"]
    lines = [f"# {cell(run.run.id)}", "", cell(headline(run)), "", *verdict_markdown(run)]
    listed = [row for row in rows(run) if every or row.status != "passed"][:_MOST_ROWS]
    lines += section("Calls", table(COLUMNS, [row.cells() for row in listed]))
    if not every:
        lines += [_left_out(run, len(listed), len(told)), ""]
    for result in told[:MOST_TOLD]:
        lines += _call(result)
    lines += ["## Basis", "", *(f"- {cell(line)}" for line in short(run))]
    return "\n".join(lines).rstrip() + "\n"


def _left_out(run: schema.Run, listed: int, failed: int) -> str:
    """Which calls the page does not show."""
    passed = len(run.results) - failed
    more = f", nor {failed - listed} that did not pass" if failed > listed else ""
    alone = f"; the first {MOST_TOLD} of these follow" if failed > MOST_TOLD else ""
    return (
        f"Of {counted(len(run.results), 'call')}, {passed} that passed are not listed"
        f"{more}{alone}. All are in results.json and in viewer.html."
    )


def words(run: schema.Run) -> str:
    """How well the assistant heard its callers, as one line; errors and words summed."""
    known = [found for result in run.results if (found := _misheard(result)) is not None]
    if not known:
        return f"words: {UNMEASURED}, nobody told what was said or what was heard"
    wrong, said = (sum(one[at] for one in known) for at in (0, 1))
    errors, words_said = counted(wrong, "error"), counted(said, "caller word")
    return f"words: {errors} in {words_said}, as the assistant heard them"


def _misheard(result: schema.Result) -> tuple[int, int] | None:
    """Word errors and words said to the assistant; None where nobody can tell."""
    ears = member(member(member(result.duplex, "words"), "heard_by"), "assistant")
    errors = member(ears, "wer")
    if not isinstance(errors.get("rate"), int | float):
        return None
    return _whole(errors, "numerator"), _whole(errors, "denominator")


def _call(result: schema.Result) -> Iterator[str]:
    id = member(result.duplex, "case").get("call_id")
    yield f"## {cell(id if isinstance(id, str) else result.scenario_id)}"
    yield ""
    yield from outcome_markdown(result)
    told = member(result.duplex, "checks")
    decided = [
        (
            check.id.replace("_", " "),
            check.status.replace("_", " "),
            "required" if check.required else "",
            str(member(told, check.id).get("reason") or ""),
        )
        for check in result.assessment.checks
    ]
    yield from table(("check", "status", "", "why"), decided)
    yield ""
    timing = member(result.duplex, "timing")
    if not timing:
        why = member(result.duplex, "unknown").get("/duplex/timing")
        yield f"Timing: {UNMEASURED}, {cell(str(why or 'nothing told it'))}"
        yield ""
        return
    yield from table(HEADINGS, [row.cells() for row in limits(timing)])
    yield ""
    yield from table(("time", "p50", "n", "±", ""), _times(timing))
    yield ""
    yield from table(_FATES, [[str(_whole(member(timing, "ledger"), name)) for name in _FATES]])
    yield ""
    wrong = _misheard(result)
    if wrong is not None:
        errors, said = counted(wrong[0], "word error"), counted(wrong[1], "caller word")
        yield f"{errors} in {said}, as the assistant heard them."
        yield ""


def _times(timing: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    reasons = member(timing, "unknown")
    for name, key in _TIMES:
        found = member(timing, key)
        median, width = found.get("p50"), found.get("plus_minus_ms")
        if not isinstance(median, int | float):
            why = reasons.get(f"/{key}", "nothing told it")
            yield name, UNMEASURED, "", "", str(why)
            continue
        known = width if isinstance(width, int | float) else None
        yield name, duration(median), str(_whole(found, "n")), spread(known), ""


def _ruler(result: schema.Result) -> str:
    timing = member(result.duplex, "timing")
    if not timing:
        return "calls without timing"
    deadline = duration(_whole(member(timing, "policy"), "response_deadline_ms"))
    name, version = timing.get("detector"), timing.get("timing_version")
    return f"detector {name}, timing {version}, deadline {deadline}"


def _whole(block: Mapping[str, Json], name: str) -> int:
    value = block.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
