"""Programs on which compilers have gone wrong, each shorter than its lesson."""

from __future__ import annotations

import cuvil
import differential as d
import numpy as np
import pytest

f4 = np.float32


def test_arguments_that_overlap_on_the_second_call_only():
    def fn(x, y):
        x *= 2
        return x + y

    compiled = cuvil.jit(fn)
    np.testing.assert_array_equal(compiled(np.ones(4), np.ones(4)), fn(np.ones(4), np.ones(4)))
    base, twin = np.ones(8), np.ones(8)
    with pytest.warns(cuvil.CuvilPerformanceWarning):
        got = compiled(base[:4], base[2:6])
    np.testing.assert_array_equal(got, fn(twin[:4], twin[2:6]))
    np.testing.assert_array_equal(base, twin)
    same, other = np.ones(4), np.ones(4)
    np.testing.assert_array_equal(compiled(same, same), fn(other, other))
    np.testing.assert_array_equal(same, other)


def test_results_of_two_calls_are_two_arrays():
    compiled = cuvil.jit(lambda x: np.tanh(x) * 2)
    a = compiled(np.array([1.0, 2.0]))
    keep = a.copy()
    b = compiled(np.array([3.0, 4.0]))
    np.testing.assert_array_equal(a, keep)
    assert not np.shares_memory(a, b)


def test_two_lambdas_on_one_line():
    f, g = cuvil.jit(lambda x: x + 1), cuvil.jit(lambda x: x * 10)
    x = np.array([1.0])
    assert f(x) == 2 and g(x) == 10 and f(x) == 2


def test_closures_of_one_factory():
    def make(k):
        def fn(x):
            return x + k

        return cuvil.jit(fn)

    fs = [make(k) for k in (1.0, 2.0, 5)]
    x = np.array([1.0])
    assert [float(f(x)[0]) for f in fs] == [2.0, 3.0, 6.0]


def test_reading_old_values_after_a_write():
    def fn(x):
        old = x[1:] + 0
        view = x[::-1]
        x[0] = 100
        late = view * 2
        x[...] = late
        return old, late, x[0]

    d.check(fn, np.arange(5.0), mutates=True)


def test_an_error_keeps_earlier_writes_and_no_later_ones():
    def fn(a, i):
        a[0] = 1
        a[1] = 2
        a[i] = 3
        a[2] = 4
        return a

    compiled = cuvil.jit(fn)
    a = np.zeros(4)
    compiled(a, 3)
    b = np.zeros(4)
    with pytest.raises(IndexError):
        compiled(b, 9)
    assert b[2] == 0 and b[3] == 0


def test_softmax_and_layer_norm():
    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def layer_norm(x, g, b):
        mean = x.mean(axis=-1, keepdims=True)
        var = x.var(axis=-1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-5) * g + b

    rng = np.random.default_rng(0)
    for shape in ((1, 10), (7, 33), (64, 128)):
        x = rng.standard_normal(shape).astype(f4)
        d.check(softmax, x, tol=(1e-5, 1e-7))
        d.check(
            layer_norm, x, rng.standard_normal(shape[1]).astype(f4), np.zeros(shape[1], f4), tol=(1e-4, 1e-5)
        )


def test_threads_that_make_the_first_call_together():
    import threading

    compiled = cuvil.jit(lambda x: np.sin(x) * 2 + x)
    xs = [np.full(50, float(k)) for k in range(8)]
    out = [None] * 8
    gate = threading.Barrier(8)

    def work(k):
        gate.wait()
        out[k] = compiled(xs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(8):
        np.testing.assert_allclose(out[k], np.sin(xs[k]) * 2 + xs[k], rtol=1e-14)
    assert len(cuvil._cuvil.specialisations(compiled)) == 1
