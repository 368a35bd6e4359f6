"""Mutants of the compiled engine: one changed line each, for the tests of the laws.

All mutants live in one extra extension, built once from ``_core.pyx`` and ``_playout.pxd``: each
mutated line stands beside the true one and a module-level number picks which
of the two runs. ``load`` builds it when it is missing or stale and imports it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import runpy
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "duplex"
FOLDER = ROOT / "build" / "mutants"
NAME = "_core_mutants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One line of the engine and what it is changed to."""

    law: str
    line: str
    becomes: str


MUTANTS = (
    Mutant(
        law="chunk",
        line="p.queued += n",
        becomes="p.queued = max(p.queued, n)",
    ),
    Mutant(
        law="tick",
        line="if self.position == self.decided + self.frame + self.ahead and self._decide() < 0:",
        becomes="if (self.position >= self.decided + self.frame or done == n) "
        "and self._decide() < 0:",
    ),
    Mutant(
        law="tick_size",
        line="ear.energy += duplex_energy_of(self.wide, pcm, n)",
        becomes="ear.energy = max(ear.energy, duplex_energy_of(self.wide, pcm, n))",
    ),
    Mutant(
        law="tick_size_of_holds",
        line="if self.position % self.block == 0:",
        becomes="if done == 0:",
    ),
    Mutant(law="conservation", line="p.discarded += n", becomes="p.discarded += n - 1"),
    Mutant(
        law="partition",
        line="self.partition[holder] += end - start",
        becomes="self.partition[holder] += self.frame",
    ),
    Mutant(
        law="symmetry",
        line="if not (holder >> side) & 1:",
        becomes="if not holder & 1:",
    ),
    Mutant(
        law="silence",
        line="loud = ear.energy >= <uint64_t>VOICED_RMS * VOICED_RMS * <uint64_t>n",
        becomes="loud = ear.energy >= 0",
    ),
    Mutant(
        law="alone",
        line="memcpy(out, p.data + at, first * sizeof(int16_t))",
        becomes="memcpy(out, p.data + at, (first - 1) * sizeof(int16_t))",
    ),
    Mutant(law="no_invented_silence", line="p.underrun += n", becomes="p.idle += n"),
    Mutant(
        law="runs_dry_in_speech",
        line="p.in_speech = voiced_before(p)",
        becomes="p.in_speech = p.started",
    ),
    Mutant(
        law="hold_in_silence",
        line="if excess < least or voiced_before(p):",
        becomes="if excess < least:",
    ),
    Mutant(
        law="hold_follows_arrival",
        line="if voiced_before(p):",
        becomes="if False:",
    ),
    Mutant(
        law="replay",
        line="holder |= answer << side",
        becomes="holder |= (answer * (self.rings[side].state == PLAYING)) << side",
    ),
)


def mutated(source: str) -> str:
    """Return the engine's source with every mutant in it, switched by ``mutant``."""
    lines = source.splitlines()
    for number, mutant in enumerate(MUTANTS, start=1):
        found = [k for k, line in enumerate(lines) if line.strip() == mutant.line]
        assert len(found) == 1, (mutant.law, mutant.line, found)
        indent = lines[found[0]][: -len(mutant.line)]
        if mutant.line.endswith(":"):
            test = mutant.line.removeprefix("if ").removesuffix(":")
            other = mutant.becomes.removeprefix("if ").removesuffix(":")
            lines[found[0]] = (
                f"{indent}if (mutant != {number} and ({test})) "
                f"or (mutant == {number} and ({other})):"
            )
        else:
            lines[found[0]] = (
                f"{indent}if mutant == {number}:\n{indent}    {mutant.becomes}\n"
                f"{indent}else:\n{indent}    {mutant.line}"
            )
    switch = "\n\ncdef int mutant = 0\n\n\ndef choose(int number):\n"
    switch += "    global mutant\n    mutant = number\n"
    first = next(k for k, line in enumerate(lines) if line.startswith("cdef enum:"))
    # Before the first use, and clear of the comment above the enum.
    return "\n".join([*lines[: first - 1], switch, *lines[first - 1 :]]) + "\n"


def with_playout(engine: str) -> str:
    """Return the engine's source with that of its playout in place of the import of it."""
    playout = (SOURCES / "_playout.pxd").read_text()
    start = engine.index("from duplex._playout cimport (")
    end = engine.index(")\n", start) + 2
    return engine[:start] + playout[playout.index("from libc") :] + engine[end:]


def load() -> ModuleType:
    """Build the mutants if they are not there yet, and import them."""
    source = mutated(with_playout((SOURCES / "_core.pyx").read_text()))
    kernels = [path.read_text() for path in sorted(SOURCES.glob("_*.h"))]
    kernels += [path.read_text() for path in sorted(SOURCES.glob("_*.pxd"))]
    kernels += [path.read_text() for path in sorted(SOURCES.glob("_webrtc_*.c"))]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    key = hashlib.sha256("\0".join([source, *kernels, suffix]).encode()).hexdigest()[:16]
    target = FOLDER / key / f"{NAME}{suffix}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        (target.parent / f"{NAME}.pyx").write_text(source)
        command = [sys.executable, __file__, str(target.parent)]
        done = subprocess.run(
            command, cwd=target.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    spec = importlib.util.spec_from_file_location(NAME, target)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(folder: Path) -> None:
    """Compile the mutants in ``folder``, quickly rather than well."""
    # Imported by name: neither package has types, and only this process needs them.
    setuptools = importlib.import_module("setuptools")
    cython = importlib.import_module("Cython.Build")
    project = runpy.run_path(str(ROOT / "setup.py"))
    extension = setuptools.Extension(
        NAME,
        [f"{NAME}.pyx", *map(str, SOURCES.glob("_webrtc_*.c"))],
        include_dirs=[np.get_include(), str(SOURCES)],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[] if project["MSVC"] else ["-O0", "-w"],
    )
    setuptools.setup(
        name=NAME,
        ext_modules=cython.cythonize(
            [extension],
            include_path=[str(SOURCES.parent)],
            compiler_directives=project["DIRECTIVES"],
        ),
        script_args=["build_ext", "--build-lib", str(folder), "--build-temp", str(folder)],
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
