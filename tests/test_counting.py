"""One of a thing is told as one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import duplex
from duplex.counting import counted, times

ROOT = Path(duplex.__file__).parent
# A count and a noun in the plural, written into one text: wrong as soon as there is one of it.
PLURAL = re.compile(
    r"^ (errors|words|calls|turns|scenarios|files|events|devices|paths|cells|entries|values|"
    r"checks|packets|labels|recordings|caller words|caller turns|word errors|caller labels)\b"
)
ALWAYS_SEVERAL = {
    ("measuring.py", "recordings"),  # none or several, where one was wanted
    ("wording.py", "recordings"),
}


def test_one_is_told_as_one() -> None:
    assert [counted(n, "call") for n in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
    assert counted(1, "sample is", "samples are") == "1 sample is"
    assert counted(3, "reply", "replies") == "3 replies"
    assert [times(n) for n in (1, 2, 3)] == ["once", "twice", "3 times"]


def _texts(path: Path) -> list[str]:
    """Nouns that stand right behind a value in a formatted text."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                match = PLURAL.match(str(text.value))
                if match:
                    found.append(f"{ast.unparse(value.value)} {match.group(1)}")
    return found


def test_no_report_writes_a_plural_behind_a_count_by_hand() -> None:
    looked = [
        p for name in ("report", "results", "viewer", "cli") for p in (ROOT / name).rglob("*.py")
    ]
    looked += [ROOT / f"{name}.py" for name in ("measuring", "remeasuring", "running", "doctor")]
    wrong = {
        (path.name, found)
        for path in looked
        for found in _texts(path)
        if (path.name, found.split()[-1]) not in ALWAYS_SEVERAL
    }
    assert wrong == set()
