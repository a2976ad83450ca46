"""Movement, creation and contraction against NumPy, and views that stay views."""

import cuvil
import differential as d
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def test_shapes():
    def fn(x):
        return (
            x.reshape(6, 4) + 1,
            x.reshape(-1) * 2,
            x.reshape((4, -1)) - 1,
            x.T + 0,
            x.transpose(1, 2, 0) + 0,
            np.swapaxes(x, 0, 2) + 0,
            np.moveaxis(x, 0, -1) + 0,
            x[None] + 0,
            np.expand_dims(x, (0, 2)) + 0,
            np.squeeze(x[:, :1]) + 0,
            x.ravel() + 0,
            x.flatten(),
            np.broadcast_to(x, (2, 2, 3, 4)) + 0,
            np.atleast_2d(x[0, 0]) + 0,
        )

    rng = np.random.default_rng(1)
    x = d.array(rng, "float32", (2, 3, 4))
    for layout in ("c", "f", "negative", "strided", "misaligned"):
        d.check(fn, d.laid_out(rng, x, layout))


def test_joins():
    def fn(x, y):
        return (
            np.concatenate([x, y]),
            np.concatenate((x, y + 1), axis=1),
            np.stack([x, y]),
            np.stack([x, y], axis=-1),
            np.hstack([x, y]),
            np.vstack([x, y]),
            *np.split(x, 2, axis=1),
            *np.split(x, [1, 3], axis=1),
            np.flip(x),
            np.flip(x, 1),
            np.flipud(x),
            np.fliplr(x),
        )

    rng = np.random.default_rng(2)
    for layout in ("c", "f", "negative", "broadcast"):
        d.check(fn, d.array(rng, "float32", (3, 4), layout), d.array(rng, "float64", (3, 4), layout))


def test_slices():
    def fn(x):
        return (
            x[1:] + 0,
            x[:, ::2] + 0,
            x[::-1, ::-2] + 0,
            x[1:100] + 0,
            x[5:2] + 0,
            x[-1] + 0,
            x[-2:, 1:] + 0,
            x[..., 0] + 0,
            x[None, ..., None] + 0,
            x[0, 1],
            x[-1, -1],
            x[:, None] + 0,
            x[2:0:-1] + 0,
            x[:-1] + x[1:],
        )

    for shape in ((3, 4), (4, 9)):
        d.check(fn, d.array(np.random.default_rng(3), "float32", shape))


@pytest.mark.parametrize("index", [7, -8, (0, 0, 0), (3, 9)])
def test_index_errors(index):
    def fn(x):
        return x[index]

    d.check(fn, np.ones((4, 5)))


def test_creation():
    def fn(x):
        return (
            np.zeros((2, 3)),
            np.ones(4, np.int32),
            np.full((2, 2), 7.5, np.float32),
            np.arange(5),
            np.arange(1, 10, 3),
            np.arange(0.0, 1.0, 0.25),
            np.eye(3),
            np.eye(2, 4, 1),
            np.zeros_like(x),
            np.ones_like(x, dtype=np.int8),
            np.full_like(x, 3),
            np.identity(2),
            np.zeros(x.shape),
            np.arange(x.shape[0]) * x.sum(),
        )

    d.check(fn, np.ones((3, 2), np.float32))


def test_views_stay_views():
    def fn(x):
        return x.T, x[1:], x, x[::-1, 0], x.reshape(-1)

    x = np.arange(12.0).reshape(3, 4)
    results = cuvil.jit(fn)(x)
    for got, want in zip(results, fn(x), strict=True):
        assert np.shares_memory(got, x)
        assert got.strides == want.strides
        np.testing.assert_array_equal(got, want)
    assert results[2] is x


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_mutation(data):
    """Writes through views of an argument, any layout: the argument afterwards is what NumPy leaves."""
    rng = np.random.default_rng(data.draw(d.seeds))
    layout = data.draw(st.sampled_from(["c", "f", "negative", "strided", "misaligned"]))
    x = d.array(rng, "float64", (5, 6), layout)
    y = d.array(rng, "float64", (6,))

    def fn(x, y):
        x[1:] += x[:-1]
        x[:, 0] = 7
        x[::2, 1:3] *= y[1:3]
        row = x[2]
        row -= 1
        z = x.T * 2
        x[...] = x[::-1]
        return z, row + 0

    d.check(fn, x, y, mutates=True)


@pytest.mark.parametrize("dtype", d.ALL)
def test_matmul(dtype):
    def fn(a, b):
        return a @ b, np.matmul(a, b), np.dot(a, b)

    rng = np.random.default_rng(4)
    tol = {"float16": (4e-2, 4e-2), "float32": (2e-5, 2e-5), "float64": (1e-13, 1e-13)}.get(dtype)

    def make(*shape):
        if np.dtype(dtype).kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return d.array(rng, dtype, shape)

    for s, t in (
        ((1, 128), (128, 64)),
        ((7, 5), (5, 3)),
        ((17, 33), (33, 65)),
        ((5,), (5,)),
        ((4, 5), (5,)),
        ((5,), (5, 6)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((1, 1), (1, 1)),
        ((64, 300), (300, 100)),
    ):
        d.check(fn, make(*s), make(*t), tol=tol)


def test_matmul_batches_and_layouts():
    def fn(a, b):
        return a @ b

    rng = np.random.default_rng(5)
    for s, t in (
        ((3, 4, 5), (5, 6)),
        ((2, 1, 4, 5), (3, 5, 6)),
        ((4, 5), (3, 5, 6)),
        ((3, 4, 5), (5,)),
        ((5,), (3, 5, 6)),
    ):
        for la in ("c", "f", "negative", "strided"):
            a = d.laid_out(rng, rng.standard_normal(s), la)
            b = d.laid_out(rng, rng.standard_normal(t), la)
            d.check(fn, a, b, tol=(1e-13, 1e-13))
    a, b = rng.standard_normal((40, 50)), rng.standard_normal((60, 50))
    d.check(lambda a, b: a @ b.T, a, b, tol=(1e-13, 1e-13))
    d.check(lambda a, b: (b @ a.T) * 2 + 1, a, b, tol=(1e-13, 1e-13))


def test_outer_inner():
    def fn(a, b):
        return np.outer(a, b), np.inner(a, a), np.vdot(a, b[:3])

    rng = np.random.default_rng(6)
    d.check(fn, rng.standard_normal(3), rng.standard_normal(4), tol=(1e-14, 1e-14))


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((3,), (4,)), ((2, 3, 4), (3, 4, 5)), ((), (3,))])
def test_matmul_errors(shapes):
    def fn(a, b):
        return a @ b

    d.check(fn, np.ones(shapes[0]), np.ones(shapes[1]))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.concatenate([x, x[::-1]]).reshape(2, -1) if x.shape[1] else x,
        lambda x: np.concatenate([x, x]).ravel(),
        lambda x: np.stack([x, x]).reshape(2, 0),
        lambda x: np.stack([x, x]).reshape(2, 0).sum(axis=1),
        lambda x: np.concatenate([x, x]).ravel().sum(),
        lambda x: (x.T @ x).reshape(-1).prod(),
    ],
)
def test_nothing_is_read_of_an_empty_array(function, shape):
    x = np.ones(shape)
    for _ in range(2):
        got, want = cuvil.jit(function, cache=False)(x), function(x)
        np.testing.assert_array_equal(got, want)
        assert np.shape(got) == np.shape(want)


@pytest.mark.parametrize("function", [np.isnan, np.isinf, np.signbit, lambda x: np.logical_not(x) * 1.0])
@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0] * 9, [[1.0], [2.0]]])
def test_constants_of_zeros(function, values):
    f = cuvil.jit(lambda x: function(x), cache=False)
    for _ in range(5):
        np.testing.assert_array_equal(f(values), function(values))
