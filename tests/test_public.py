"""What ``from duplex import …`` offers is there, typed and documented."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import duplex
from duplex.run_folder import RunFolder


def test_every_public_name_exists_and_is_documented() -> None:
    for name in duplex.__all__:
        value = getattr(duplex, name)
        assert inspect.getdoc(value), name
    assert sorted(duplex.__all__) == duplex.__all__


def test_all_and_the_homes_of_names_agree() -> None:
    assert set(duplex.__all__) == set(duplex._HOMES)


def test_importing_duplex_imports_nothing_heavy() -> None:
    program = "import duplex, sys; print([m for m in ('numpy', 'pydantic') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_distributions() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    named = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    assert duplex.__version__ == named


def test_submodules_stay_reachable_beside_the_names() -> None:
    from duplex import run_folder

    assert run_folder.RunFolder is RunFolder
