"""What a specialisation relies on, one kind at a time: another value is never answered with the old code."""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import math

import cuvil
import numpy as np
import pytest

X = np.arange(1, 5, dtype=np.float32)


def agrees(f, *args):
    got, want = f(*args), f.__wrapped__(*args)
    np.testing.assert_array_equal(got, want)
    assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize(
    ("where", "name", "other", "function"),
    [
        (np, "maximum", np.minimum, lambda x: np.maximum(x, 2)),
        (np, "sum", np.max, lambda x: np.sum(x)),
        (np, "abs", np.negative, lambda x: np.abs(x)),
        (np, "clip", lambda x, a, b: x + a, lambda x: np.clip(x, 2, 3)),
        (math, "sqrt", lambda v: v, lambda x: x * math.sqrt(4.0)),
        (builtins, "abs", lambda v: v, lambda x: abs(-x)),
        (builtins, "max", builtins.min, lambda x: x * max(1, 2)),
    ],
    ids=["maximum", "sum", "abs", "clip", "sqrt", "builtin abs", "builtin max"],
)
def test_patched_functions(monkeypatch, where, name, other, function):
    f = cuvil.jit(function)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, other)
        agrees(f, X)
    agrees(f, X)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, other)
        agrees(f, X)
    agrees(cuvil.jit(function), X)


class Wrapper:
    """All that a function of NumPy says about itself, said by an object of another class."""

    __name__ = __qualname__ = "sum"
    __module__ = "numpy"

    def __call__(self, x):
        return x + 1


@pytest.mark.parametrize("other", [Wrapper(), functools.partial(np.sum, axis=0)])
def test_objects_in_the_place_of_functions(monkeypatch, other):
    f = cuvil.jit(lambda x: np.sum(x))
    monkeypatch.setattr(np, "sum", other)
    try:
        agrees(f, X)
    except cuvil.UnsupportedError:
        pass
    monkeypatch.undo()
    agrees(f, X)


def test_all_names_of_a_function():
    for function in (
        lambda x: np.abs(x) + np.absolute(x),
        lambda x: np.mod(x, 3) + np.remainder(x, 2),
        lambda x: np.round(x) + np.around(x),
        lambda x: np.max(x) + np.amax(x) + np.min(x) + np.amin(x),
        lambda x: np.linalg.norm(x[:, None], axis=1),
    ):
        agrees(cuvil.jit(function), X)


@pytest.mark.filterwarnings("ignore::cuvil.CuvilPerformanceWarning")
def test_a_wrapper_that_bears_the_name_of_what_it_wraps(monkeypatch):
    original = np.sum

    @functools.wraps(original)
    def doubled(x):
        return original(x) * 2

    monkeypatch.setattr(np, "sum", doubled)
    f = cuvil.jit(lambda x: np.sum(x))
    try:
        agrees(f, X)
    except cuvil.UnsupportedError:
        pass  # the original is not found where it was


Pair = collections.namedtuple("Pair", "a b", defaults=(1,))


def test_fields_and_defaults_of_named_tuples(monkeypatch):
    f = cuvil.jit(lambda x: Pair(x).b * x + Pair(x, 3).a)
    agrees(f, X)
    monkeypatch.setitem(globals(), "Pair", collections.namedtuple("Pair", "a b", defaults=(2,)))
    agrees(f, X)
    monkeypatch.setitem(globals(), "Pair", collections.namedtuple("Pair", "b a", defaults=(5,)))
    f2 = cuvil.jit(lambda x: Pair(x, 2 * x).a)
    agrees(f2, X)


def test_truth_of_objects():
    class Plain:
        pass

    class Decides:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            return self.value

    class Sized:
        def __len__(self):
            return 0

    plain, decides, sized = Plain(), Decides(True), Sized()
    agrees(cuvil.jit(lambda x: x * 2 if plain else x), X)
    for o in decides, sized:
        f = cuvil.jit(lambda x, o=o: x * 2 if o else x)
        with pytest.raises(cuvil.UnsupportedError, match="defines __bool__ or __len__") as caught:
            f(X)
        assert "compare an attribute" in str(caught.value)
    filled = {1, 2}
    f = cuvil.jit(lambda x: x * 2 if filled else x)
    agrees(f, X)
    filled.clear()
    agrees(f, X)


def test_the_order_of_a_dict():
    scales = {"a": 2, "b": 3}

    @cuvil.jit
    def f(x):
        for key in scales:
            x = x * scales[key] + 1
        return x

    agrees(f, X)
    scales["a"] = scales.pop("a")  # moved to the end
    agrees(f, X)
    scales["c"] = 7
    agrees(f, X)


def test_sets_are_sets():
    numbers, names = {8, 3, 1}, frozenset(["a", "bb", "ccc"])
    agrees(cuvil.jit(lambda x: x * len({1, 1}) + sum({2, 2})), X)
    agrees(cuvil.jit(lambda x: x * len({k // 2 for k in range(6)})), X)

    @cuvil.jit
    def f(x):
        for k in {8, 3, 1}:
            x = x * k + 1
        for k in numbers:
            x = x * k + 1
        for k in names:
            x = x * len(k) + 1
        return x * 2 if 3 in numbers else x

    agrees(f, X)
    numbers.remove(3)
    agrees(f, X)
    numbers.add(16)
    agrees(f, X)
    with pytest.raises(cuvil.UnsupportedError, match="a set of values that are known at run time only"):
        cuvil.jit(lambda n: np.ones(3) * len({n, 2}))(5)


class Shade(enum.IntEnum):
    DARK = 2


class Real(float):
    pass


@pytest.mark.parametrize("k", [Shade.DARK, Real(2.5)], ids=["int", "float"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8"])
def test_numbers_of_a_subclass(k, dtype):
    x = np.arange(4).astype(dtype)
    agrees(cuvil.jit(lambda x: x * k), x)
    agrees(cuvil.jit(lambda x: np.maximum(x, k) + x), x)
    agrees(cuvil.jit(lambda x: x * (k + 1)), x)  # Python's own arithmetic
    agrees(cuvil.jit(lambda x, k: x - k), x, k)


def test_numbers_of_a_subclass_where_numpy_does_not_look():
    f = cuvil.jit(lambda a, n: (a * Shade.DARK, n * Shade.DARK, Shade.DARK - a))
    assert f(1.5, 7) == (3.0, 14, 0.5) and [type(v) for v in f(1.5, 7)] == [float, int, float]
    axis = enum.IntEnum("Axis", {"ROWS": 0, "COLUMNS": 1})
    x = np.arange(6.0).reshape(2, 3)
    agrees(cuvil.jit(lambda x: x.sum(axis=axis.COLUMNS) + x.reshape(3, axis.COLUMNS + 1)[0, 0]), x)


def test_lists_and_dicts_used_whole():
    values, table = [3, 1, 2], {"a": [1, 2]}
    f = cuvil.jit(lambda x: x * sorted(values)[0] + len(str(table)))
    agrees(f, X)
    values[1] = 9
    agrees(f, X)
    table["a"].append(100)
    agrees(f, X)
    values.append(0)
    agrees(f, X)
    twin = [3, 9, 2, 0]
    g = cuvil.jit(lambda x: x * 2 if values is twin else x)
    agrees(g, X)


def test_length_of_objects():
    class Sized:
        n = 3

        def __len__(self):
            return self.n

    o = Sized()
    with pytest.raises(cuvil.UnsupportedError, match="whose class defines __len__"):
        cuvil.jit(lambda x: x * len(o))(X)


def test_tuples_of_other_classes(monkeypatch):
    monkeypatch.setitem(globals(), "held", Pair(2, 3))

    @cuvil.jit
    def f(x):
        for k in held:  # noqa: F821
            x = x * k + 1
        return x + len(held)  # noqa: F821

    agrees(f, X)
    monkeypatch.setitem(globals(), "held", collections.namedtuple("Pair", "a b c")(2, 3, 4))
    agrees(f, X)


def test_bases_and_names_of_classes():
    class Base:
        pass

    class Other(Base):
        pass

    o = Other()
    f = cuvil.jit(lambda x: x * (2 if isinstance(o, Base) else 3) + len(type(o).__name__))
    agrees(f, X)
    Other.__name__ = "Renamed"
    agrees(f, X)
    o.__class__ = type("Third", (), {})
    agrees(f, X)
    agrees(cuvil.jit(lambda x: x * 2 if issubclass(Other, Base) else x), X)
    agrees(cuvil.jit(lambda x: x * 2 if callable(o) else x), X)
