"""Programs in which views or memory were once taken for something else, each as short as it can be."""

from __future__ import annotations

import warnings

import cuvil
import differential as d
import numpy as np
import pytest


def write_into_a_concatenation(a, b):
    t = np.concatenate([a, b], axis=1)
    t[0] = t[-1]
    t[::-1] = t
    return t


def view_made_before_a_write(a, b):
    t = b[2:]
    b[:-1] = b[1:]
    return np.flip(t, 1)


def write_into_a_reshape(a, b):
    t = a.reshape(-1, 3)
    t[0] = t[-1]
    return t, t.T


def reshape_of_a_flip(a, b):
    t = np.flip(b, 1)
    s = t.reshape(t.shape[1], t.shape[0])
    b[0, 0] = 7
    return s, s.sum(axis=0)


def reshape_to_sizes_that_may_be_equal(a, b):
    t = b.reshape(b.shape[1], b.shape[0])
    t += 1
    return t


def ravel_of_even_gaps(a, b):
    return a[:, ::2].ravel(), a.ravel(), b.T.ravel()


def order_through_a_loop(a, b):
    for i in range(len(b)):
        b = b - i
    return b.ravel(), b.T.ravel(), b


def write_into_a_carried_array(a, b):
    c = b
    for i in range(len(b)):
        c = c - i
    r = c.ravel()
    r[0] = 5
    return c, r


def order_of_rows_stored_in_a_loop(a, b):
    for i in range(len(b)):
        b[i] = b[i] - i
    return b * 2, b.ravel(), b


def copies_in_a_loop(a, b):
    for i in range(len(b)):
        b = b.copy() + i
    return b.ravel(), b


PROGRAMS = [
    order_through_a_loop,
    write_into_a_carried_array,
    order_of_rows_stored_in_a_loop,
    copies_in_a_loop,
    write_into_a_concatenation,
    view_made_before_a_write,
    write_into_a_reshape,
    reshape_of_a_flip,
    reshape_to_sizes_that_may_be_equal,
    ravel_of_even_gaps,
]


@pytest.mark.parametrize("layout", ["c", "f", "negative", "strided"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_views(fn, layout):
    """One function for all sizes: from the second call on they are symbolic."""
    compiled = cuvil.jit(fn)
    rng = np.random.default_rng(5)
    for rows, columns in ((6, 6), (3, 9), (6, 9), (9, 9), (9, 3)):
        base = np.arange(float(rows * columns)).reshape(rows, columns)
        args = [d.laid_out(rng, base, layout), d.laid_out(rng, -base, layout)]
        d.check(fn, *args, compiled=compiled)


@pytest.mark.parametrize("index", [[1, 2], [0], [], {0}, [True, False, True, False], np.array([1, 2])])
def test_a_list_is_no_tuple_of_indices(index):
    x = np.arange(24.0).reshape(4, 6)

    def f(x):
        return x[index]

    try:
        want = f(x)
    except IndexError:
        with pytest.raises((IndexError, cuvil.UnsupportedError)):
            cuvil.jit(f, cache=False)(x)
        return
    try:
        got = cuvil.jit(f, cache=False)(x)
    except cuvil.UnsupportedError:
        return
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 300),
        ("u1", -1),
        ("i1", 128),
        ("i4", 2**31),
        ("i8", 2**63),
        ("u8", -1),
        ("i8", np.nan),
        ("i4", np.inf),
        ("u1", -np.inf),
        ("i8", 1e30),
        ("u1", 255),
        ("i1", -128),
        ("i8", 2.7),
        ("i4", -2.7),
        ("f4", 300),
        ("f4", np.nan),
        ("?", 3),
    ],
)
@pytest.mark.parametrize("where", [0, slice(None), slice(1, 3)])
def test_numbers_that_a_dtype_cannot_hold(dtype, value, where):
    def constant(x):
        x[where] = value
        return x

    def given(x, v):
        x[where] = v
        return x

    for f, args in ((constant, ()), (given, (value,))):
        x = np.ones(4, dtype)
        try:
            want, error = f(x.copy(), *args), None
        except (OverflowError, ValueError) as e:
            want, error = None, e
        g = cuvil.jit(f, cache=False)
        if error is not None:
            with pytest.raises(type(error)):
                g(x, *args)
            np.testing.assert_array_equal(x, np.ones(4, dtype))
        else:
            np.testing.assert_array_equal(g(x, *args), want)


def test_dicts_and_sets_are_no_arrays():
    for function in (
        lambda x: x * {1: 2},
        lambda x: np.exp({1.0: 2}),
        lambda x: x + {1},
        lambda x: np.sum({1: 2}) + x,
    ):
        with pytest.raises((TypeError, cuvil.UnsupportedError)):
            cuvil.jit(function, cache=False)(np.ones(2))


# What comes back: the argument itself, a view of it, or something of its own.
HANDED_THROUGH = [
    lambda x: np.atleast_1d(x),
    lambda x: np.atleast_2d(x),
    lambda x: np.atleast_3d(x),
    lambda x: np.broadcast_arrays(x),
    lambda x: np.broadcast_arrays(x, x),
    lambda x: np.broadcast_arrays(x, 1),
    lambda x: np.linalg.matrix_transpose(x),
    lambda x: np.matrix_transpose(x),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: np.transpose(x),
    lambda x: x.swapaxes(0, 0),
    lambda x: np.moveaxis(x, 0, 0),
    lambda x: x.astype(x.dtype),
    lambda x: x.astype(x.dtype, copy=False),
    lambda x: x.astype(x.dtype, order="C", copy=False),
    lambda x: np.array(x),
    lambda x: np.array(x, copy=None),
    lambda x: np.array(x, copy=False),
    lambda x: np.array(x, copy=None, ndmin=3),
    lambda x: np.array(x, copy=False, order="F"),
    lambda x: np.array(x, copy=None, order="F"),
    lambda x: np.array(x.T, copy=None, order="C"),
    lambda x: np.array([x], copy=None),
    lambda x: np.asarray(x),
    lambda x: np.asarray(x.T, order="F"),
    lambda x: np.asarray(x, order="F"),
    lambda x: np.asarray(x, order="C"),
    lambda x: np.asarray(x, order="A"),
    lambda x: np.asarray(x, x.dtype),
    lambda x: np.asarray(x, copy=True),
    lambda x: np.asarray(x, copy=False),
    lambda x: np.asarray([x]),
    lambda x: np.ascontiguousarray(x),
    lambda x: np.ascontiguousarray(x.T),
    lambda x: x.conj(),
    lambda x: x.conjugate(),
    lambda x: np.conj(x),
    lambda x: np.real(x),
    lambda x: x.real,
    lambda x: np.float64(x),
    lambda x: np.float32(x),
    lambda x: np.int64(x),
    lambda x: np.bool_(x),
    lambda x: np.squeeze(x),
    lambda x: x.squeeze(),
    lambda x: np.squeeze(x, ()),
    lambda x: x.squeeze(axis=()),
    lambda x: np.ravel(x),
    lambda x: x.ravel(),
    lambda x: x.flatten(),
    lambda x: np.reshape(x, x.shape),
    lambda x: x.reshape(-1),
    lambda x: np.expand_dims(x, ()),
    lambda x: np.expand_dims(x, 0),
    lambda x: np.broadcast_to(x, x.shape),
    lambda x: x[:1],
    lambda x: x[...],
    lambda x: x[()],
    lambda x: np.copy(x),
    lambda x: x.copy(),
    lambda x: np.full_like(x, x),
    lambda x: np.where(True, x, x),
    lambda x: np.sum(x, axis=()),
    lambda x: np.hsplit(x, 1),
    lambda x: np.tile(x, 1),
    lambda x: np.repeat(x, 1),
    lambda x: np.roll(x, 0),
    lambda x: np.concatenate([x]),
    lambda x: np.stack([x]),
    lambda x: (x, x),
]

ARGUMENTS = {
    "c": np.arange(6.0).reshape(2, 3),
    "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(12.0).reshape(2, 6)[:, ::2],
    "row": np.arange(3.0),
    "column": np.ones((3, 1)),
    "one": np.ones((1, 1)),
    "rank 0": np.array(2.0),
    "empty": np.ones((0, 3)),
    "int64": np.arange(4),
    "float32": np.ones(3, np.float32),
    "bool": np.array([True]),
}


def relation(result, x):
    if isinstance(result, (tuple, list)):
        return type(result), [relation(item, x) for item in result]
    if not isinstance(result, np.ndarray):
        return type(result)
    kind = "itself" if result is x else "a view" if np.may_share_memory(result, x) else "its own"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # np.broadcast_arrays: "will not be writeable in future"
        return kind, result.flags.writeable, result.shape


@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_what_comes_back(kind, writeable):
    """With one size, then with symbolic ones."""
    for fn in HANDED_THROUGH:
        compiled = cuvil.jit(fn, cache=False)
        sizes = [ARGUMENTS[kind]]
        if sizes[0].ndim and sizes[0].size > 1:
            sizes.append(
                np.concatenate([sizes[0]] * 2)[::2] if kind == "strided" else sizes[0].repeat(2, axis=0)
            )
        for base in sizes:
            x = base.view()
            x.flags.writeable = writeable
            outcome, want = d.outcome(fn, (x,))
            got_outcome, got = d.outcome(compiled, (x,))
            assert outcome == got_outcome, (cuvil.explain(compiled), want, got)
            if outcome == "value":
                assert relation(got, x) == relation(want, x), fn.__code__.co_consts
            else:
                assert isinstance(got, type(want)), (want, got)
