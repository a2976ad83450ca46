"""What a call costs: nanoseconds for 1 to 8 arguments, 1 and 3 results, scalars, against peers.

    python bench/dispatch.py

The work is next to nothing (arrays of 8 elements), so that binding, matching, guards and making results are
what is timed. Numba and JAX are optional.
"""

from __future__ import annotations

import importlib.util
import os

os.environ.setdefault("CUVIL_CACHE", "0")

import cuvil
import numpy as np
from ratio import interleaved_us

X = np.arange(8, dtype=np.float32)


def one(a):
    return a + a


def two(a, b):
    return a + b


def four(a, b, c, d):
    return a + b + c + d


def eight(a, b, c, d, e, f, g, h):
    return a + b + c + d + e + f + g + h


def three_results(a):
    return a + a, a - a, a * a


def scalars(a, k):
    return a * k


def captured(a):
    return a + X


PROGRAMS = {
    "1 argument": (one, (X,)),
    "2 arguments": (two, (X, X.copy())),
    "4 arguments": (four, tuple(X.copy() for _ in range(4))),
    "8 arguments": (eight, tuple(X.copy() for _ in range(8))),
    "3 results": (three_results, (X,)),
    "NumPy scalar, Python float": (scalars, (np.float32(2), 3.5)),
    "a captured array": (captured, (X.copy(),)),
}


def peers_of(function, args):
    """Name to a call without arguments, compiled and checked."""
    peers = {"numpy": lambda: function(*args)}
    compiled = cuvil.jit(function)
    peers["cuvil"] = lambda: compiled(*args)
    if importlib.util.find_spec("numba"):
        import numba

        jitted = numba.njit(function)
        peers["numba"] = lambda: jitted(*args)
    if importlib.util.find_spec("jax"):
        import jax

        traced = jax.jit(function)
        peers["jax"] = lambda: traced(*args)
    want = function(*args)
    for call in peers.values():
        np.testing.assert_allclose(np.asarray(call()), np.asarray(want), rtol=1e-5)
    return peers


def main() -> None:
    """Measure and print the table."""
    rows = {}
    for name, (function, args) in PROGRAMS.items():
        rows[name] = interleaved_us(peers_of(function, args))
    names = list(next(iter(rows.values())))
    print("a call, ns; medians of interleaved rounds")
    print(" " * 28 + "".join(f"{n:>10}" for n in names) + f"{'/ numpy':>10}{'/ numba':>10}")
    for name, times in rows.items():
        ratio = "".join(
            f"{times['cuvil'] / times[peer]:>10.2f}" if peer in times else f"{'-':>10}"
            for peer in ("numpy", "numba")
        )
        print(f"{name:<28}" + "".join(f"{times[n] * 1e3:>10.0f}" for n in names) + ratio)


if __name__ == "__main__":
    main()
