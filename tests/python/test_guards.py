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


c = d = e = f = h = None  # what the functions below capture; the tests give them values


class Changing:
    """An object whose state Python's operators and functions look into."""

    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return "c" * self.v

    def __index__(self):
        return self.v

    __int__ = __abs__ = __hash__ = __index__

    def __float__(self):
        return float(self.v)

    def __eq__(self, other):
        return self.v == other

    def __add__(self, other):
        return self.v + other

    def __iter__(self):
        return iter(range(self.v))

    def __contains__(self, item):
        return item == self.v

    def __getitem__(self, k):
        return self.v + k


def with_state():
    user = collections.UserList([1, 2])
    return {
        "object": Changing(1),
        "deque": collections.deque([1, 2]),
        "bytearray": bytearray(b"\1\2"),
        "ordered": collections.OrderedDict({1: 1, 2: 2}),
        "default": collections.defaultdict(int, {1: 1}),
        "counter": collections.Counter([1, 2]),
        "view": {1: 1, 2: 2}.values(),
        "user": user,
        "chain": collections.ChainMap({1: 1}),
        "in a list": [Changing(1)],
        "in a dict": {1: [user]},
    }


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * len(str(c)),
        lambda x: x * len(f"{c}"),
        lambda x: x * int(c),
        lambda x: x * float(c),
        lambda x: x * abs(c),
        lambda x: x * (c + 1),
        lambda x: x * (2 if c == 2 else 3),
        lambda x: x * (2 if 2 in c else 3),
        lambda x: x * sum(c),
        lambda x: x * sum([k for k in c]),
        lambda x: x * len(list(c)),
        lambda x: x * len(sorted(c)),
        lambda x: x * len(set(c)),
        lambda x: x * max(c),
        lambda x: x[c],
        lambda x: x[c:],
        lambda x: x * [1, 2, 3][c],
        lambda x: x * math.floor(c),
        lambda x: x * len(range(c)),
        lambda x: x * c[1],
        lambda x: x * c[0:1][0],
        lambda x: x * np.sum(c),
        lambda x: x + c,
        lambda x: x * (1 if [c] == [2] else 2),
        lambda x: x * len(str((c, 1))),
        lambda x: x * [1, 2, 1].count(c),
    ],
)
@pytest.mark.parametrize("which", list(with_state()))
def test_state_that_no_guard_tells(function, which):
    """What Python's own code makes of an object with a state is refused, or seen to change."""
    c = with_state()[which]
    f = cuvil.jit(type(function)(function.__code__, {**globals(), "c": c}), cache=False)

    def check():
        try:
            want = f.__wrapped__(X)
        except Exception:
            want = None
        try:
            got = f(X)
        except (cuvil.UnsupportedError, TypeError):
            return
        except Exception:
            assert want is None
            return
        assert want is not None
        np.testing.assert_array_equal(got, want)

    check()
    for change in (
        lambda: setattr(c, "v", 2),
        lambda: setattr(c[0], "v", 2),
        lambda: c.append(5),
        lambda: c[1][0].append(5),
        lambda: c.update({7: 7}),
        lambda: c.__setitem__(1, 3),
    ):
        try:
            change()
        except (AttributeError, TypeError, KeyError, IndexError):
            continue
        check()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (2 if c == d else 3),
        lambda x: x * (2 if c is d else 3),
        lambda x: x * (2 if c != None else 3),  # noqa: E711
        lambda x: x * (2 if f == math.sqrt else 3),
        lambda x: x * (2 if e == Mode.A else 3),
        lambda x: x * (2 if e in (Mode.B, Mode.A) else 3),
        lambda x: x * float(h),
    ],
)
def test_objects_that_python_may_compare(function):
    import fractions

    plain = type("Plain", (), {})
    names = {
        "c": plain(),
        "d": plain(),
        "f": math.sqrt,
        "e": Mode.A,
        "Mode": Mode,
        "h": fractions.Fraction(1, 2),
        "math": math,
    }
    agrees(cuvil.jit(type(function)(function.__code__, names), cache=False), X)


class Mode(enum.Enum):
    A = 1
    B = 2


@pytest.mark.parametrize(
    ("function", "first", "then"),
    [
        (lambda x: x[c], None, 1),
        (lambda x: x[c] * 1, ..., 1),
        (lambda x: x[c:] * 1, None, 2),
        (lambda x: x[::c] * 1, None, 2),
        (lambda x: x * len([1, 2, 3][c:]), None, 2),
        (lambda x: x * len((x, x, x)[:c]), None, 2),
        (lambda x: x * len(str(c)), {1, 2}, {1: 1, 2: 2}),
        (lambda x: x * len(str(c)), {1, 2}, frozenset({1, 2})),
        (lambda x: x * (2 if c == [0, 1] else 3), [0, 1], (0, 1)),
        (lambda x: x * (2 if c == [0, 1] else 3), [0, 1], {0: 0, 1: 1}),
        (lambda x: x * sum([k for k in c]), [5, 6], {0: 5, 1: 6}),
        (lambda x: x * sum(c), [5, 6], {0: 5, 1: 6}),
        (lambda x: x * len(str(c)), (0, 1), collections.namedtuple("P", "a b")(0, 1)),
        (lambda x: x * (2 if 5 in c else 3), {1: 1}, [5, 1]),
        (lambda x: x * (2 if 5 in c else 3), {5: 1}, [1, 1, 1, 1, 1, 1]),
        (lambda x: x * len(c), [1, 2], {1: 1, 2: 2}),
    ],
)
def test_another_kind_of_value(function, first, then):
    names = {"c": first}
    f = cuvil.jit(type(function)(function.__code__, names), cache=False)
    agrees(f, X)
    names["c"] = then
    agrees(f, X)


def test_looking_for_a_key_changes_nothing():
    d = collections.defaultdict(list, {1: [1]})
    f = cuvil.jit(lambda x: x * (2 if 5 in d else 3), cache=False)
    with pytest.raises(cuvil.UnsupportedError):
        f(X)
    assert dict(d) == {1: [1]}
