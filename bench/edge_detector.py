"""The edge detector by itself: its header compiled alone, called from Python.

So a change of the detector can be judged before the core is built. The package never reads it;
``edge_study.py`` drives it.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from duplex.calibration.clips import RATE_HZ

HEADER = Path(__file__).resolve().parent.parent / "src" / "duplex" / "_edge.h"

SHIM = r"""
#include <stdlib.h>
int run(const int16_t *x, int64_t n, int rate, int64_t chunk, int64_t *out, int most)
{
    edge_t *e = malloc(sizeof *e);
    edge_segment s;
    int64_t i = 0;
    int k = 0, more = 1;
    edge_init(e, rate);
    while (more) {
        if (i < n) i += (int64_t)edge_push(e, x + i, (size_t)(n - i < chunk ? n - i : chunk));
        else { edge_finish(e); more = 0; }
        while (edge_pop(e, &s)) if (k < most) {
            int64_t *o = out + 5 * k++;
            o[0] = s.start; o[1] = s.end;
            o[2] = s.start_deficit; o[3] = s.end_deficit; o[4] = s.flags;
        }
    }
    free(e);
    return k;
}
"""


class Detector:
    """The header, compiled alone; calling it gives rows of start, end, two deficits and flags."""

    def __init__(self, header: Path = HEADER) -> None:
        folder = Path(tempfile.mkdtemp(prefix="edge-study-"))
        source, library = folder / "edge.c", folder / "edge.so"
        source.write_text(f'#include "{header.resolve()}"\n{SHIM}')
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True)
        self._run = ctypes.CDLL(str(library)).run
        self._run.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int,
        ]

    def __call__(self, x: np.ndarray, rate_hz: int = RATE_HZ, chunk: int = 480) -> np.ndarray:
        out = np.zeros((len(x) // (rate_hz // 5) + 8, 5), np.int64)
        n = self._run(x.ctypes.data, len(x), rate_hz, chunk, out.ctypes.data, len(out))
        return out[:n]
