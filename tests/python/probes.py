"""Nine programs which prove that no format needs to change later.

Run as a script it is one half of a probe: ``probes.py compile DIR`` compiles and saves each artifact,
``probes.py replay DIR`` runs the saved bytes in a process that has no compiler.
Each probe is a function that builds its inputs afresh, drives the compiled function, and compares with
the plain one.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

import cuvil
import numpy as np
from cuvil import _cuvil

f4 = np.float32


def example(x, w):
    return np.maximum(x @ w, 0.0)


def carried(x, n):
    total = np.zeros_like(x)
    for i in range(n):
        total = total * 0.5 + x * i
    return total


def overlap(a):
    a[1:] += a[:-1]


def view(x):
    return x.T


def symbolic(x):
    return x * 2.0 + x.sum()


WEIGHTS = np.arange(8, dtype=f4)


def captured(x):
    return x + WEIGHTS


def failing(a, indices):
    for i in range(indices.shape[0]):
        a[indices[i]] = i + 1.0


def host(a, b):
    return np.linalg.solve(a, b) * 2.0


def parallel(x):
    return np.exp(x) * 2.0 + 1.0


Jit = Callable[..., Any]


def run_example(jit: Jit) -> None:
    f = jit(example, shape_hint={"x": (1, 128), "w": (128, 64)})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 128)).astype(f4)
    w = rng.standard_normal((128, 64)).astype(f4)
    got = f(x, w)
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64), 0)
    n, u = 128, 2.0**-24
    bound = n * u / (1 - n * u) * (np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64))
    assert got.dtype == f4 and got.shape == (1, 64)
    assert np.all(np.abs(got - exact) <= bound)


def run_carried(jit: Jit) -> None:
    f = jit(carried)
    for n in (0, 3, 50):
        x = np.linspace(-1, 1, 33)
        np.testing.assert_array_equal(f(x, n), carried(x, n))


def run_overlap(jit: Jit) -> None:
    f = jit(overlap)
    a = np.arange(1.0, 101.0)
    b = a.copy()
    assert f(a) is None
    overlap(b)
    np.testing.assert_array_equal(a, b)


def run_view(jit: Jit) -> None:
    f = jit(view)
    x = np.arange(6.0).reshape(2, 3)
    t = f(x)
    assert t.shape == (3, 2) and np.shares_memory(t, x)
    x[1, 2] = 99
    assert t[2, 1] == 99
    np.testing.assert_array_equal(t, x.T)


def run_symbolic(jit: Jit) -> None:
    f = jit(symbolic, shape_hint={"x": ("n",)})
    for n in (7, 9):
        x = np.arange(n, dtype=f4)
        np.testing.assert_array_equal(f(x), symbolic(x))
    assert len(_cuvil.specialisations(f)) == 1


def run_captured(jit: Jit) -> None:
    global WEIGHTS
    f = jit(captured)
    x = np.ones(8, f4)
    WEIGHTS = np.arange(8, dtype=f4)
    np.testing.assert_array_equal(f(x), captured(x))
    WEIGHTS[2] = -7
    np.testing.assert_array_equal(f(x), captured(x))
    assert f(x)[2] == -6
    WEIGHTS = np.full(8, 5, f4)
    np.testing.assert_array_equal(f(x), captured(x))
    assert len(_cuvil.specialisations(f)) == 1


def run_failing(jit: Jit) -> None:
    f = jit(failing)
    a = np.zeros(4)
    try:
        f(a, np.array([1, 3, 9, 0]))
    except IndexError as error:
        assert "index 9 is out of bounds for axis 0 with size 4" in str(error)
    else:
        raise AssertionError("no IndexError")
    np.testing.assert_array_equal(a, [0, 1, 0, 2])
    f(a, np.array([0, -1, 2, 1]))
    np.testing.assert_array_equal(a, [1, 4, 3, 2])


def run_host(jit: Jit) -> None:
    f = jit(host)
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    b = np.array([3.0, 5.0])
    np.testing.assert_array_equal(f(a, b), host(a, b))
    try:
        f(np.zeros((2, 2)), b)
    except np.linalg.LinAlgError:
        pass
    else:
        raise AssertionError("no LinAlgError")
    np.testing.assert_array_equal(f(a, b), host(a, b))


def run_parallel(jit: Jit) -> None:
    f = jit(parallel)
    x = np.linspace(-3, 3, 1 << 20)
    results = []
    for threads in (1, 2):
        cuvil.runtime.set_num_threads(threads)
        results.append(f(x))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], parallel(x), rtol=1e-15, atol=0)


PROBES: dict[str, Callable[[Jit], None]] = {
    "example": run_example,
    "carried": run_carried,
    "overlap": run_overlap,
    "view": run_view,
    "symbolic": run_symbolic,
    "captured": run_captured,
    "failing": run_failing,
    "host": run_host,
    "parallel": run_parallel,
}


def main(mode: str, name: str, folder: pathlib.Path) -> None:
    made: list[Any] = []

    def compile_fresh(fn, **options):
        made.append(cuvil.jit(fn, **options))
        return made[-1]

    def from_bytes(fn, **options):
        compiled = cuvil.jit(fn, **options)
        files = sorted(folder.glob(f"{name}.*.artifact"))
        assert files, f"no artifact of {name}"
        for file in files:
            _cuvil.load_artifact(compiled, file.read_bytes())
        return compiled

    if mode == "compile":
        PROBES[name](compile_fresh)
        for f in made:
            for k, data in enumerate(_cuvil.artifact_bytes(f)):
                (folder / f"{name}.{k}.artifact").write_bytes(data)
    else:
        PROBES[name](from_bytes)
        maps = pathlib.Path("/proc/self/maps").read_text()
        assert "libcuvil_" not in maps, "the compiler library was loaded"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
