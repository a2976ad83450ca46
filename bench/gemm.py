"""f32 matrix products on one thread against NumPy's OpenBLAS.

    OPENBLAS_NUM_THREADS=1 python bench/gemm.py

Prints which kernels OpenBLAS chose: beating its generic ones means nothing.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

import cuvil
import numpy as np
from ratio import interleaved_us, print_table

SHAPES = [
    (1, 128, 64),
    (8, 64, 64),
    (32, 64, 128),
    (64, 64, 64),
    (100, 100, 100),
    (256, 256, 256),
    (333, 777, 555),
    (512, 512, 512),
    (128, 768, 768),
    (1024, 1024, 1024),
]


def product(a, b):
    return a @ b


def measure(m: int, k: int, n: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    compiled = cuvil.jit(product)
    return interleaved_us(
        {"numpy": lambda: product(a, b), "cuvil": lambda: compiled(a, b)}, repeats=9, seconds=0.02
    )


def main() -> int:
    cuvil.runtime.set_num_threads(1)
    try:
        from threadpoolctl import threadpool_info

        print("OpenBLAS:", {i.get("architecture") for i in threadpool_info()})
    except ImportError:
        print("OpenBLAS: kernels unknown (threadpoolctl is not installed)")
    rows = {}
    for m, k, n in SHAPES:
        times = measure(m, k, n)
        rows[f"{m}x{k}x{n} ({2 * m * k * n / times['cuvil'] / 1e3:.0f} GFLOP/s)"] = times
    print_table("matrix product, float32, one thread", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
