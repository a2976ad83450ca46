"""The example of the project and the digits network against NumPy and Numba: time of a steady call.

    python bench/example.py

Numba is optional (``pip install cuvil[bench]``); without it its column is left out.
"""

from __future__ import annotations

import os
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # let NumPy's OpenBLAS choose its best kernels
os.environ.pop("OPENBLAS_L2_SIZE", None)

import cuvil
import numpy as np
from ratio import interleaved_us, print_table

try:
    import numba
except ImportError:
    numba = None


def matmul_inference(x, w):
    return np.maximum(x @ w, 0.0)


def forward(x, mean, scale, w1, b1, w2, b2):
    h = np.maximum(((x - mean) / scale) @ w1 + b1, 0.0)
    z = h @ w2 + b2
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward_numba(x, mean, scale, w1, b1, w2, b2):
    # Numba has neither keepdims nor a matrix product of non-contiguous arrays.
    h = np.maximum(((x - mean) / scale) @ w1 + b1, np.float32(0.0))
    z = h @ w2 + b2
    out = np.empty_like(z)
    for i in range(z.shape[0]):
        e = np.exp(z[i] - z[i].max())
        out[i] = e / e.sum()
    return out


def peers(fn, args, numba_fn=None, shape_hint=None):
    compiled = cuvil.jit(fn, shape_hint=shape_hint)
    calls = {"numpy": lambda: fn(*args), "cuvil": lambda: compiled(*args)}
    if numba is not None:
        jitted = numba.njit(numba_fn or fn)
        calls["numba"] = lambda: jitted(*args)
    return calls


def main() -> int:
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    rows = {}
    x, w = normal(1, 128), normal(128, 64)
    rows["relu(x @ w), 1x128x64"] = interleaved_us(
        peers(matmul_inference, (x, w), shape_hint={"x": (1, 128), "w": (128, 64)})
    )
    weights = (normal(64), normal(64) + 3, normal(64, 64), normal(64), normal(64, 10), normal(10))
    for batch in (1, 8, 64):
        rows[f"digits network, batch {batch}"] = interleaved_us(
            peers(forward, (normal(batch, 64), *weights), forward_numba)
        )
    print(
        f"NumPy {np.__version__}, Numba {numba.__version__ if numba else '-'}, "
        f"Cuvil {cuvil.__version__}, Python {sys.version.split()[0]}"
    )
    print_table("steady call, median of 15 interleaved rounds", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
