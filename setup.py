"""Build the extensions; the only place with compiler directives.

``DUPLEX_DEBUG=1`` turns bounds and overflow checks on and optimisation down. The
scenarios at the top of the tree are copied into the package, so that an
installed ``duplex`` has them too.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("DUPLEX_DEBUG") == "1"
MSVC = sys.platform == "win32"

# -ffp-contract=off: no fused multiply-add, so every CPU gives the same bytes.
FLAGS = [] if MSVC else ["-O1" if DEBUG else "-O3", "-g", "-ffp-contract=off"]

DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "embedsignature": False,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "overflowcheck": DEBUG,
    "cdivision": True,
    "auto_pickle": False,
}


def extension(name: str, *sources: str) -> Extension:
    """One compiled module; a change of any header rebuilds it."""
    folder = Path("src/duplex")
    return Extension(
        f"duplex.{name}",
        [f"src/duplex/{source}" for source in (f"{name}.pyx", *sources)],
        include_dirs=[np.get_include(), "src/duplex"],
        depends=sorted(str(path) for end in ("*.h", "*.pxd") for path in folder.glob(end)),
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS,
    )


def extensions() -> list[Extension]:
    modules = [
        # Kernels are compiled for any processor and again for newer ones.
        extension("_core", "_webrtc_baseline.c", "_webrtc_v3.c"),
        extension("_line", "_chain_baseline.c", "_chain_v3.c"),
        extension("_synth"),
    ]
    return list(cythonize(modules, compiler_directives=DIRECTIVES))


class BuildWithScenarios(build_py):
    """Copies ``scenarios/`` beside the modules; an editable build reads the tree itself."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "duplex" / "scenarios"
        target.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path("scenarios").glob("*.json")):
            shutil.copyfile(file, target / file.name)


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_py": BuildWithScenarios})
