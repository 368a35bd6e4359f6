"""The pytest plugin: a marked test gets its call, a wrong mark is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from plan_runs import options

pytest_plugins = ["pytester"]


def mark(folder: Path, factory: str, **more: object) -> str:
    given = options(folder, factory, scenario=("restaurant_booking_complete",), **more)
    given.pop("out")
    told = {name: str(v) if isinstance(v, Path) else v for name, v in given.items()}
    return f"@pytest.mark.duplex(**{told!r})"


def held(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makepyfile(f"import pytest\n{body}\n")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    # Loaded by name, so that it is tried also where the package is not installed anew.
    plugins = ("-p", "no:duplex", "-p", "duplex.pytest_plugin", "-p", "no:cacheprovider")
    return pytester.runpytest_inprocess(*plugins)


def test_a_marked_test_gets_its_call_and_its_numbers(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    done = held(
        pytester,
        f"""
{mark(tmp_path, "answers")}
def test_it(duplex_call):
    assert duplex_call.result.duplex["outcome"] == "counted"
    assert duplex_call.reading("response_latency.p50") < 1500
    duplex_call.check("response_latency.p50 <= 1500ms")
    assert duplex_call.reading("time_to_yield") is None
    assert (duplex_call.folder / "results.json").exists()
""",
    )
    done.assert_outcomes(passed=1)


def test_a_check_that_fails_fails_the_test_with_its_value(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    done = held(
        pytester,
        f"""
{mark(tmp_path, "slow")}
def test_it(duplex_call):
    duplex_call.check("response_latency.p50 <= 1s")
""",
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*response_latency.p50 <= 1000ms: 1*ms*"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def test_it(duplex_call): pass", "*wants @pytest.mark.duplex*"),
        ("@pytest.mark.duplex('x')\ndef test_it(duplex_call): pass", "*by name only*"),
        (
            "@pytest.mark.duplex(scenario='nowhere')\ndef test_it(duplex_call): pass",
            "*no scenario*",
        ),
        ("@pytest.mark.duplex(colour='red')\ndef test_it(duplex_call): pass", "*colour*"),
    ],
)
def test_a_wrong_mark_is_one_sentence(pytester: pytest.Pytester, body: str, said: str) -> None:
    done = held(pytester, body)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([said])


def test_tests_without_a_call_notice_nothing(pytester: pytest.Pytester) -> None:
    held(pytester, "def test_it(): pass").assert_outcomes(passed=1)
