"""Reductions against NumPy: axes, keepdims, dtypes, ddof, empty input, accuracy."""

import math

import cuvil
import differential as d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

EXACT = ["min", "max", "argmin", "argmax", "any", "all"]
SUMS = ["sum", "prod", "mean", "var", "std"]
# Relative tolerance of sums, whose order is free; zero for what is exact.
RTOL = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-14}


def tolerance(name, dtype):
    if name in EXACT:
        return None
    kind = np.dtype(dtype).kind
    rtol = RTOL.get(dtype, 1e-13)
    return (rtol, rtol) if kind == "f" or name in ("mean", "var", "std") else None


def well_scaled(rng, dtype, shape, layout="c"):
    """Values whose sums neither cancel badly nor overflow."""
    dtype = np.dtype(dtype)
    base = rng.uniform(0.5, 2.0, shape) if dtype.kind == "f" else rng.integers(0, 5, shape)
    return d.laid_out(rng, base.astype(dtype), layout)


@pytest.mark.parametrize("dtype", d.ALL)
@pytest.mark.parametrize("name", EXACT + SUMS)
def test_axes(name, dtype):
    reduce = getattr(np, name)

    def make(**options):
        def fn(x):
            return reduce(x, **options)

        return fn

    rng = np.random.default_rng(5)
    tol = tolerance(name, dtype)
    x = well_scaled(rng, dtype, (3, 5, 9))
    some = [{}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": 2, "keepdims": True}, {"keepdims": True}]
    if not name.startswith("arg"):
        some += [{"axis": (0, 2)}, {"axis": (-1, 0), "keepdims": True}, {"axis": ()}]
    for options in some:
        fn = make(**options)
        compiled = cuvil.jit(fn)
        for layout in ("c", "f", "negative", "strided"):
            d.check(fn, d.laid_out(rng, x, layout), tol=tol, compiled=compiled)
    plain = make()
    d.check(plain, well_scaled(rng, dtype, ()), tol=tol)
    d.check(plain, well_scaled(rng, dtype, (1,)), tol=tol)
    d.check(plain, well_scaled(rng, dtype, (1000,)), tol=tol)
    for axis in (None, 0, 1):
        d.check(make(axis=axis), np.zeros((0, 3), dtype), tol=tol)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", d.FLOATS)
def test_special_values(name, dtype):
    method = name

    def fn(x):
        return getattr(x, method)(), getattr(x, method)(axis=0), getattr(x, method)(axis=1)

    rng = np.random.default_rng(6)
    for _ in range(20):
        d.check(fn, d.array(rng, dtype, (5, 37)))
    ties = np.array([[1, 3, 3, 1], [3, 1, 1, 3], [-0.0, 0.0, 0.0, -0.0]], dtype)
    d.check(fn, ties)


def test_methods_and_options():
    def fn(x):
        return (
            x.sum(axis=1, dtype=np.float32),
            x.mean(dtype=np.float64),
            np.var(x, ddof=1),
            np.std(x, axis=0, ddof=1),
            x.prod(axis=-1),
            np.amax(x, axis=0),
            np.ptp(x),
        )

    d.check(fn, well_scaled(np.random.default_rng(7), "float64", (6, 11)), tol=(1e-6, 1e-7))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_is_accurate(dtype):
    compiled = cuvil.jit(lambda x: x.sum())
    x = np.full(2**20 + 3, 0.1, dtype)
    exact = math.fsum(map(float, x))
    error = abs(float(compiled(x)) - exact)
    assert error <= max(abs(float(x.sum()) - exact), 2e-7 * exact if dtype == "float32" else 1e-15 * exact)


def test_bad_axis():
    def fn(x):
        return x.sum(axis=3)

    def twice(x):
        return x.sum(axis=(0, 0))

    d.check(fn, np.ones((2, 2)))
    d.check(twice, np.ones((2, 2)))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_fused(data):
    """Prologue and epilogue around a reduction, any layout."""
    shape = data.draw(d.shapes.filter(lambda s: len(s) > 0))
    rng = np.random.default_rng(data.draw(d.seeds))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = well_scaled(rng, data.draw(st.sampled_from(["float32", "float64"])), shape, data.draw(d.layouts))

    def fn(x):
        m = (x * 2 + 1).sum(axis=axis, keepdims=True)
        return m, x - m, np.sqrt(m) * 0.5

    d.check(fn, x, tol=(1e-5, 1e-4))


def test_count_nonzero():
    def fn(x):
        n = np.count_nonzero(x)
        return np.count_nonzero(x, axis=0), np.count_nonzero(x, keepdims=True), np.int8(1) + n

    x = np.array([[0, 1, 2], [0, 0, 3]])
    for dtype in d.ALL:
        d.check(fn, x.astype(dtype))
    n = cuvil.jit(lambda x: np.count_nonzero(x))(x)
    assert type(n) is np.int64 and n == 3


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (0, 0, 2), (2, 0, 3)])
@pytest.mark.parametrize("name", EXACT + SUMS)
def test_empty(name, shape):
    for axis in (None, *range(len(shape))):
        for keepdims in (False, True):

            def fn(x):
                return getattr(np, name)(x, axis=axis, keepdims=keepdims)

            d.check(fn, np.zeros(shape))
