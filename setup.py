"""Build the one extension, ``duplex._core``; the only place with compiler directives.

``DUPLEX_DEBUG=1`` turns bounds and overflow checks on and optimisation down.
"""

import os
import sys

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("DUPLEX_DEBUG") == "1"
MSVC = sys.platform == "win32"

# -ffp-contract=off: no fused multiply-add, so every CPU gives the same bytes.
FLAGS = [] if MSVC else ["-O1" if DEBUG else "-O3", "-g", "-ffp-contract=off"]
LIBRARIES = ["dl"] if sys.platform.startswith("linux") else []

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


def extensions() -> list[Extension]:
    core = Extension(
        "duplex._core",
        ["src/duplex/_core.pyx"],
        include_dirs=[np.get_include(), "src/duplex"],
        depends=["src/duplex/_kernels.h", "src/duplex/_fir.h"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS,
        libraries=LIBRARIES,
    )
    return list(cythonize([core], compiler_directives=DIRECTIVES))


if __name__ == "__main__":
    setup(ext_modules=extensions())
