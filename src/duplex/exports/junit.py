"""A run as JUnit XML, which every continuous integration reads.

A test suite is a scenario (in an arm), a test case one of its calls; a call that
failed is a failure with its checks, one that does not count is an error, one that
was not held is skipped. The run's own verdict is a suite of its own, so a share
that was missed fails the build by name. Text a peer said is kept harmless.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict

from duplex.exports.subject import Subject
from duplex.screen import plain
from duplex.verdict.case import Case
from duplex.verdict.criteria import TASK, Criterion
from duplex.verdict.incidents import failed_checks
from duplex.verdict.verdict import Verdict


def junit(subject: Subject) -> str:
    """The whole document."""
    root = ET.Element("testsuites", name=_text(subject.run.run_id))
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in subject.run.final:
        groups[case.scenario if case.arm is None else f"{case.scenario} {case.arm.key}"].append(
            case
        )
    for name, cases in groups.items():
        suite = _suite(root, name, len(cases))
        for case in cases:
            _case(suite, case, subject.criteria)
        _count(suite)
    if subject.verdict is not None:
        _verdict(root, subject.verdict)
    _total(root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, tests: int) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=_text(name), tests=str(tests))


def _case(suite: ET.Element, case: Case, criteria: tuple[Criterion, ...]) -> None:
    seconds = (case.duration_ms or 0) / 1000
    element = ET.SubElement(
        suite,
        "testcase",
        classname=_text(case.scenario),
        name=_text(case.call_id),
        time=f"{seconds:.3f}",
    )
    properties = ET.SubElement(element, "properties")
    for name, value in (
        ("condition", case.condition),
        ("seed", str(case.seed)),
        ("agent", case.agent),
        ("audio", case.result.artifacts.conversation_audio or ""),
    ):
        ET.SubElement(properties, "property", name=name, value=_text(value))
    error = case.result.error
    if case.outcome == "not_run":
        said = error.message if error is not None else "it was not held"
        ET.SubElement(element, "skipped", message=_text(said))
    elif not case.counted:
        told = (
            ("error", "the call does not count") if error is None else (error.stage, error.message)
        )
        ET.SubElement(element, "error", type=_text(told[0]), message=_text(told[1]))
    elif case.passed is False:
        lines = _reasons(case, criteria)
        failure = ET.SubElement(element, "failure", message=_text("; ".join(lines)))
        failure.text = "\n".join(map(_text, lines))


def _reasons(case: Case, criteria: tuple[Criterion, ...]) -> list[str]:
    """Every check the call failed, with why."""
    names = {one.id: one.name for one in criteria}
    found = []
    for outcome in case.checks:
        if outcome.passed is not False:
            continue
        if outcome.id == TASK:
            found += [f"{id}: {why}" for id, why in failed_checks(case.result)] or ["task failed"]
        else:
            found.append(f"{names.get(outcome.id, outcome.id)}: {outcome.reason}")
    return found


def _verdict(root: ET.Element, verdict: Verdict) -> None:
    suite = _suite(root, "verdict", 1)
    element = ET.SubElement(suite, "testcase", classname="verdict", name="run", time="0.000")
    if not verdict.passed:
        said = "; ".join(failure.sentence for failure in verdict.failures)
        failure = ET.SubElement(element, "failure", message=_text(said))
        failure.text = "\n".join(_text(one.sentence) for one in verdict.failures)
    _count(suite)


def _count(suite: ET.Element) -> None:
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
    seconds = sum(float(case.get("time", "0")) for case in suite.findall("testcase"))
    suite.set("time", f"{seconds:.3f}")


def _total(root: ET.Element) -> None:
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")


def _text(text: str) -> str:
    """What XML can hold, on one line."""
    return plain(text)
