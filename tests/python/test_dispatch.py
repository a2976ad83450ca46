"""Which compiled code a call runs: specialisations, guards on captured state, threads, what is kept alive."""

from __future__ import annotations

import collections
import enum
import gc
import os
import subprocess
import sys
import threading
import types
import warnings
import weakref

import cuvil
import differential as d
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def count(compiled):
    return len(cuvil._cuvil.specialisations(compiled))


def plain_and_compiled(fn, compiled, *args, **kwargs):
    """Both on the same arguments, which neither writes to."""
    want, got = fn(*args, **kwargs), compiled(*args, **kwargs)
    d.same(want, got)
    return got


@pytest.fixture(autouse=True, scope="module")
def only_this_process():
    """No code of other tests: what is compiled, and how often, is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE", "0")
        yield


# ---- specialisations --------------------------------------------------------------------------------


def test_one_per_dtype():
    def fn(x):
        return x + x

    compiled = cuvil.jit(fn)
    for _ in range(2):
        for name in d.ALL:
            plain_and_compiled(fn, compiled, np.ones(4, name))
    assert count(compiled) == len(d.ALL)
    for alias in (np.longlong, np.ulonglong, np.intp, np.uintp):  # the same element, another type number
        plain_and_compiled(fn, compiled, np.ones(4, alias))
    assert count(compiled) == len(d.ALL)


def test_one_per_rank_and_layout():
    def fn(x):
        return x * 2

    compiled = cuvil.jit(fn)
    base = np.arange(64.0).reshape(4, 4, 4)
    layouts = [
        base,
        base.T,
        base[::2, ::2, ::2],
        base[:, ::-1],
        base.transpose(1, 0, 2),
        base[..., :1],
        base[0],
    ]
    layouts += [base[0, 0], base[0, 0, 0], np.array(2.0), 2.0, 2, True, np.float64(2.0)]
    for _ in range(2):
        for x in layouts:
            plain_and_compiled(fn, compiled, x)
    assert count(compiled) <= len(layouts)
    before = count(compiled)
    for x in layouts:
        plain_and_compiled(fn, compiled, x)
    assert count(compiled) == before


def test_symbolic_sizes_are_one_artifact():
    def fn(x, y):
        return (x * y + 1).sum(axis=0)

    compiled = cuvil.jit(fn)
    for n in (3, 4, 5, 7, 64, 100, 3):
        plain_and_compiled(fn, compiled, np.ones((n, 4)), np.full((n, 4), 2.0))
    assert count(compiled) == 2
    for n in (0, 1):  # never symbolic
        plain_and_compiled(fn, compiled, np.ones((n, 4)), np.ones((n, 4)))
    plain_and_compiled(fn, compiled, np.ones((5, 4)), np.ones((1, 4)))
    plain_and_compiled(fn, compiled, np.ones((5, 4)), np.ones(4))


def test_every_axis_may_become_symbolic():
    def fn(x):
        return x.T + 1

    compiled = cuvil.jit(fn)
    rng = np.random.default_rng(0)
    for _ in range(30):
        plain_and_compiled(fn, compiled, np.ones(tuple(rng.integers(2, 9, 3))))
    assert count(compiled) <= 4


def test_a_storm_of_shapes_ends_in_symbols():
    def fn(x, w):
        return np.maximum(x @ w, 0)

    compiled = cuvil.jit(fn)
    for n in range(2, 60):
        plain_and_compiled(fn, compiled, np.ones((n, 8)), np.ones((8, n)))
    assert count(compiled) == 2


def test_sizes_that_were_equal_and_no_longer_are():
    def fn(x, y):
        return x.sum() + y.sum()

    compiled = cuvil.jit(fn)
    for m, n in ((3, 3), (4, 4), (5, 6), (7, 2), (2, 2)):
        plain_and_compiled(fn, compiled, np.ones(m), np.ones(n))

    def add(x, y):
        return x + y

    compiled = cuvil.jit(add)
    for m, n in ((3, 3), (4, 4), (5, 5)):
        plain_and_compiled(add, compiled, np.ones(m), np.ones(n))
    for _ in range(2):
        with pytest.raises(ValueError, match="could not be broadcast|operands"):
            compiled(np.ones(5), np.ones(6))
        plain_and_compiled(add, compiled, np.ones(6), np.ones(6))


def test_more_kinds_of_arguments_than_are_kept():
    def fn(x, mode):
        return x * len(mode)

    compiled = cuvil.jit(fn)
    with pytest.warns(cuvil.CuvilPerformanceWarning, match="too many"):
        for k in range(80):
            plain_and_compiled(fn, compiled, X, f"mode{k}" * (k + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain_and_compiled(fn, compiled, X, "another")  # warned once
        plain_and_compiled(fn, compiled, X, "mode0")
    assert count(compiled) == 64


def test_branches_on_sizes_and_ints():
    def fn(x, n):
        if x.shape[0] > 5:
            return x * 2
        if n > 3:
            return x + n
        return x - n

    compiled = cuvil.jit(fn)
    for _ in range(2):
        for size in (2, 3, 5, 6, 9):
            for n in (0, 3, 4, 10):
                plain_and_compiled(fn, compiled, np.ones(size), n)


# ---- aliases between arguments ----------------------------------------------------------------------


def shift_in(a, b):
    a[1:] = b[:-1] * 2
    return a.sum()


def accumulate(a, b):
    a += b
    b -= 1
    return a * 2


def swap(a, b):
    t = a.copy()
    a[:] = b
    b[:] = t
    return a - b


@pytest.mark.filterwarnings("ignore::cuvil.CuvilPerformanceWarning")
@pytest.mark.parametrize("fn", [shift_in, accumulate, swap], ids=lambda f: f.__name__)
def test_arguments_that_share_memory(fn):
    views = {
        "disjoint": lambda m: (m[:8], m[8:16]),
        "same object": lambda m: (m[:8],) * 2,
        "same view": lambda m: (m[:8], m[:8]),
        "shifted": lambda m: (m[:8], m[1:9]),
        "shifted back": lambda m: (m[1:9], m[:8]),
        "interleaved": lambda m: (m[:16:2], m[1:16:2]),
        "reversed": lambda m: (m[:8], m[:8][::-1]),
        "strided over": lambda m: (m[:8], m[:16:2]),
        "inside": lambda m: (m[:8], m[2:3]) if fn is accumulate else (m[:8], m[2:10]),
        "another dtype": lambda m: (m[:8], m[:8].view(np.int64)),
    }
    compiled = cuvil.jit(fn)
    for _ in range(2):
        for name, take in views.items():
            m, n = np.arange(1.0, 21.0), np.arange(1.0, 21.0)
            try:
                want = fn(*take(m))
            except Exception as error:
                with pytest.raises(type(error)):
                    compiled(*take(n))
            else:
                d.same(want, compiled(*take(n)), path=name)
            d.same(m, n, path=name)
    assert count(compiled) <= 8


def test_every_pair_of_views_that_share_memory():
    """All the ways in which two views of one short block can lie, with one compiled function."""

    def fn(a, b):
        a[:] = b + 1
        return b * 2

    compiled = cuvil.jit(fn)
    slices = [slice(i, i + s * 4 - (s > 1), s) for i in range(4) for s in (1, 2)]
    slices += [slice(9, 9 - 4 * s, -s) for s in (1, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p in slices:
            for q in slices:
                m, n = np.arange(12.0), np.arange(12.0)
                d.same(fn(m[p], m[q]), compiled(n[p], n[q]), path=f"{p} {q}")
                d.same(m, n, path=f"{p} {q}")


def test_overlap_is_no_reason_to_give_up():
    """Calls with arrays that overlap run as plain Python; others keep their compiled code."""

    def fn(a, b):
        a += b
        return a

    compiled = cuvil.jit(fn)
    with pytest.warns(cuvil.CuvilPerformanceWarning, match="overlap"):
        for _ in range(5):
            m, n = np.ones(10), np.ones(10)
            d.same(fn(m[:8], m[1:9]), compiled(n[:8], n[1:9]))
    with pytest.warns(cuvil.CuvilPerformanceWarning) as seen:
        other = cuvil.jit(fn)
        for _ in range(5):
            m = np.ones(10)
            d.same(fn(m.copy(), m.view(np.int64)), other(m, m.view(np.int64)))
    assert "overlap" in str(seen[0].message)
    for each in (compiled, other):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plain_and_compiled(lambda a, b: a + b, each, np.ones(10), np.ones(10))
            plain_and_compiled(lambda a, b: a + b, each, np.ones(10, np.float32), np.ones(10, np.float32))


W = np.arange(8.0)


def test_arguments_that_share_memory_with_captured_arrays():
    def fn(x):
        x[1:] = W[:-1]
        x += W
        return W * 2

    compiled = cuvil.jit(fn)
    original = W.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            for take in (lambda: np.zeros(8), lambda: W, lambda: W[:], lambda: W[::-1], lambda: W.view()):
                W[:] = original
                want = fn(take()), W.copy()
                W[:] = original
                d.same(want, (compiled(take()), W.copy()))
    W[:] = original


def test_captured_arrays_that_share_memory():
    block = np.arange(10.0)
    a, b = block[:8], block[8:]

    def fn(x):
        a[: x.size] += x
        return b * 2

    compiled = cuvil.jit(fn)
    x = np.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain_and_compiled(lambda x: b * 2, compiled, x)
        b = block[1:3]
        np.testing.assert_array_equal(compiled(x), (block[1:3]) * 2)
        assert block[0] == 2 and block[1] == 3
        b = a
        np.testing.assert_array_equal(compiled(x), a * 2)


# ---- guards -----------------------------------------------------------------------------------------

SCALE = 2.0
TABLE = {"w": np.ones(4, np.float32), "k": 2, "inner": {"deep": 3}}
LIST = [1, 2.5, np.ones(4, np.float32)]
settings = types.SimpleNamespace(gain=1.5, w=np.ones(4, np.float32), inner=types.SimpleNamespace(k=3))
module = types.ModuleType("settings_module")
module.rate = 0.5
module.weights = np.ones(4, np.float32)


def helper(x):
    return x * SCALE


def outer(x):
    return helper(x) + 1


def minus_scale(x):
    return x - SCALE


def half(x):
    return x / 2


class Config:
    level = 3
    table = {"a": 1}

    @property
    def computed(self):
        return self.level * 10

    @staticmethod
    def apply(x):
        return x + 1


config = Config()

READERS = {
    "global": lambda x: x * SCALE,
    "helper": lambda x: helper(x),
    "helper of a helper": lambda x: outer(x),
    "dict item": lambda x: x * TABLE["w"] + TABLE["k"],
    "nested dict": lambda x: x * TABLE["inner"]["deep"],
    "list item": lambda x: x * LIST[0] + LIST[2] - LIST[-2],
    "length": lambda x: x * len(LIST) + len(TABLE),
    "loop over a list": lambda x: sum([x * v for v in LIST]),
    "attribute": lambda x: x * settings.gain + settings.w,
    "nested attribute": lambda x: x * settings.inner.k,
    "module attribute": lambda x: x * module.rate + module.weights,
    "getattr": lambda x: x * getattr(settings, "extra", 7.0),
    "hasattr": lambda x: x * 2 if hasattr(settings, "extra") else x,
    "in": lambda x: x + 1 if "extra" in TABLE else x,
    "class attribute": lambda x: x * config.level + Config.level,
    "property": lambda x: x * config.computed,
    "static method": lambda x: config.apply(x),
    "builtin": lambda x: x * max(3, 2),
}

CHANGES = [
    ("SCALE = 3.5", "SCALE = 2.0"),
    ("SCALE = 2", "SCALE = 2.0"),
    ("SCALE = np.float64(2.0)", "SCALE = 2.0"),
    ("SCALE = np.arange(4, dtype=np.float32)", "SCALE = 2.0"),
    ("old = helper.__code__; helper.__code__ = minus_scale.__code__", "helper.__code__ = old"),
    ("old = helper; helper = minus_scale", "helper = old"),
    ("old = helper; helper = cuvil.jit(half)", "helper = old"),
    ("old = outer.__code__; outer.__code__ = helper.__code__", "outer.__code__ = old"),
    ("TABLE['w'] = np.full(4, 5, np.float32)", "TABLE['w'] = np.ones(4, np.float32)"),
    ("TABLE['w'] = np.full((3, 1), 5.0)", "TABLE['w'] = np.ones(4, np.float32)"),
    ("TABLE['w'][1] = -7", "TABLE['w'][1] = 1"),
    ("TABLE['k'] = True", "TABLE['k'] = 2"),
    ("TABLE['inner']['deep'] = 4", "TABLE['inner']['deep'] = 3"),
    ("TABLE['inner'] = {'deep': 8}", "TABLE['inner'] = {'deep': 3}"),
    ("TABLE['extra'] = 1", "del TABLE['extra']"),
    ("LIST[0] = 9", "LIST[0] = 1"),
    ("LIST.append(4)", "LIST.pop()"),
    ("LIST.insert(0, 4)", "del LIST[0]"),
    ("LIST[2][...] = 3", "LIST[2][...] = 1"),
    ("settings.gain = -1.0", "settings.gain = 1.5"),
    ("settings.w = settings.w * 3", "settings.w = settings.w / 3"),
    ("settings.w *= 3", "settings.w /= 3"),
    ("settings.extra = 11", "del settings.extra"),
    ("settings.inner.k = 5", "settings.inner.k = 3"),
    ("settings.inner = types.SimpleNamespace(k=2.5)", "settings.inner = types.SimpleNamespace(k=3)"),
    ("module.rate = 4", "module.rate = 0.5"),
    ("module.weights = np.zeros((3, 4))", "module.weights = np.ones(4, np.float32)"),
    ("config.level = 8", "del config.level"),
    ("Config.level = 8", "Config.level = 3"),
    ("Config.computed = property(lambda self: 5)", "Config.computed = COMPUTED"),
    ("Config.apply = staticmethod(half)", "Config.apply = staticmethod(APPLY)"),
    ("max = min", "del max"),
]
COMPUTED, APPLY = Config.computed, Config.apply


@pytest.mark.parametrize("name", READERS)
def test_captured_state_is_read_at_every_call(name):
    fn = READERS[name]
    compiled = cuvil.jit(fn)
    plain_and_compiled(fn, compiled, X)
    for change, undo in CHANGES:
        exec(change, globals())
        try:
            plain_and_compiled(fn, compiled, X)
        finally:
            exec(undo, globals())
        plain_and_compiled(fn, compiled, X)
    assert count(compiled) <= 12


@pytest.mark.parametrize(
    "remove, restore",
    [
        ("old = SCALE; del globals()['SCALE']", "SCALE = old"),
        ("old = helper; del globals()['helper']", "helper = old"),
        ("old = TABLE.pop('w')", "TABLE['w'] = old"),
        ("old = settings.gain; del settings.gain", "settings.gain = old"),
        ("old = LIST[:]; LIST.clear()", "LIST[:] = old"),
        ("old = module.rate; del module.rate", "module.rate = old"),
    ],
)
def test_captured_state_that_goes_away(remove, restore):
    for name in ("global", "helper", "dict item", "attribute", "list item", "module attribute"):
        fn = READERS[name]
        compiled = cuvil.jit(fn)
        plain_and_compiled(fn, compiled, X)
        exec(remove, globals())
        try:
            kind, want = d.outcome(fn, (X,))
            got_kind, got = d.outcome(compiled, (X,))
            assert kind == got_kind, (name, want, got)
            if kind == "error":
                assert type(got) is type(want), (name, got, want)
                assert str(got).splitlines()[0] == str(want), (name, got, want)
        finally:
            exec(restore, globals())
        plain_and_compiled(fn, compiled, X)


def test_closure_cells():
    k, w = 2, np.ones(4, np.float32)

    def fn(x):
        return x * k + w

    compiled = cuvil.jit(fn)
    plain_and_compiled(fn, compiled, X)
    for k in (3, 3.0, True, np.int8(3), X[0], None, -0.0):
        kind, want = d.outcome(fn, (X,))
        got_kind, got = d.outcome(compiled, (X,))
        assert kind == got_kind
        if kind == "value":
            d.same(want, got)
        else:
            assert type(want) is type(got)
    k = 1
    w[2] = 9
    plain_and_compiled(fn, compiled, X)
    w = np.ones((3, 1))
    plain_and_compiled(fn, compiled, X)
    del w
    with pytest.raises(NameError):
        compiled(X)
    w = 0
    plain_and_compiled(fn, compiled, X)


def test_functions_from_one_factory_differ():
    def make(k):
        @cuvil.jit
        def fn(x):
            return x * k

        return fn

    for k, fn in [(k, make(k)) for k in (1, 2, 3.5)]:
        d.same(X * k, fn(X))


def test_a_helper_with_a_closure_and_defaults():
    def make(k):
        def scale(x, by=2, *, plus=0):
            return x * k * by + plus

        return scale

    scale = make(3)

    def fn(x):
        return scale(x) + 1

    compiled = cuvil.jit(fn)
    plain_and_compiled(fn, compiled, X)
    scale = make(5)
    plain_and_compiled(fn, compiled, X)
    scale.__defaults__ = (7,)
    plain_and_compiled(fn, compiled, X)
    scale.__kwdefaults__["plus"] = 100
    plain_and_compiled(fn, compiled, X)
    scale = lambda x: x
    plain_and_compiled(fn, compiled, X)


def test_a_captured_array_that_changes_in_kind():
    w = np.ones(4, np.float32)

    def fn(x):
        return x + w

    compiled = cuvil.jit(fn)
    wide = np.arange(8, dtype=np.float32)
    for w in (
        w,
        wide[:4],
        wide[::2],
        wide[3::-1],
        np.ones(4),
        np.ones(4, np.int8),
        np.ones((3, 4), np.float32),
        np.ones((3, 1), np.float32),
        np.array(2.0),
        np.float32(2),
        2,
        2.5,
        np.broadcast_to(np.float32(3), (3, 4)),
        np.asfortranarray(X),
        X,
    ):
        plain_and_compiled(fn, compiled, X)
        plain_and_compiled(fn, compiled, X)


def test_captured_ints_of_any_size():
    n = 3

    def fn(x):
        return x * n

    compiled = cuvil.jit(fn)
    for n in (3, 4, 10**6):
        plain_and_compiled(fn, compiled, X)
    for n in (2**31, 2**63 - 1, 2**63, 10**30, -(10**30)):
        kind, want = d.outcome(fn, (np.arange(3),))
        got_kind, got = d.outcome(compiled, (np.arange(3),))
        assert kind == got_kind, (n, want, got)
        if kind == "value":
            d.same(want, got)


def test_self_is_told_apart_by_its_attributes():
    class Model:
        def __init__(self, mode, w):
            self.mode, self.w = mode, w

        @cuvil.jit
        def forward(self, x):
            return x * self.w if self.mode == "mul" else x + self.w

    ones = np.ones(4, np.float32)
    models = [
        Model("mul", ones),
        Model("add", ones * 2),
        Model("mul", ones * 3),
        Model("add", 4),
        Model("mul", X),
    ]
    for _ in range(2):
        for m in models:
            d.same(Model.forward.__wrapped__(m, X), m.forward(X))
    models[0].mode = "add"
    d.same(X + ones, models[0].forward(X))
    models[0].__class__ = type("Other", (Model,), {"w": property(lambda self: 5.0)})
    d.same(X + 5.0, models[0].forward(X))
    assert count(Model.forward) <= 6


# ---- arguments that are no arrays -------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Bits(enum.Flag):
    A = 1
    B = 2


Point = collections.namedtuple("Point", "x y")


def test_static_arguments():
    def fn(x, how):
        if how is None:
            return x
        if how == "neg":
            return -x
        if how is Color.RED:
            return x * 2
        if how == Level.HIGH:
            return x * 3
        if how == Bits.A | Bits.B:
            return x * 4
        if how == (1, "a", None):
            return x * 5
        if how is ...:
            return x * 6
        if how is np.float32:
            return x * 7
        if how == b"bytes":
            return x * 8
        if how is int:
            return x * 9
        return x * 10

    compiled = cuvil.jit(fn)
    hows = [None, "neg", "other", Color.RED, Color.BLUE, Level.LOW, Level.HIGH, Bits.A, Bits.A | Bits.B]
    hows += [(1, "a", None), (1, "a", False), ..., np.float32, np.float64, b"bytes", int, NotImplemented]
    hows += [True, 2, "\ud800", "", "é", (), ((1, (2,)),), frozenset({1, 2}), slice(1, 2), range(3), 2j]
    for _ in range(2):
        for how in hows:
            plain_and_compiled(fn, compiled, X, how)


def test_static_arguments_that_are_used():
    def reduce(x, axis, dtype):
        return x.sum(axis=axis, dtype=dtype)

    compiled = cuvil.jit(reduce)
    for _ in range(2):
        for axis in (0, 1, -1, None, (0, 1), (1,), ()):
            for dtype in (None, np.float64, np.dtype("float32"), "f8", np.dtype("float16"), float, int):
                d.check(reduce, X, axis, dtype, compiled=compiled, tol=(1e-3, 1e-3))

    def index(x, at):
        return x[at]

    compiled = cuvil.jit(index)
    for _ in range(2):
        for at in (
            1,
            -1,
            slice(1, None),
            slice(None, None, -1),
            (0, slice(1, 3)),
            ...,
            None,
            (..., 1),
            (None, 2),
        ):
            plain_and_compiled(index, compiled, X, at)


def test_unhashable_arguments():
    def fn(x, axes, options):
        y = np.transpose(x, axes)
        for name in options:
            y = y * options[name]
        return y

    compiled = cuvil.jit(fn)
    for _ in range(2):
        for axes in ([0, 1], [1, 0], (1, 0)):
            for options in ({}, {"a": 2}, {"a": 3}, {"b": 2.5, "a": 2}, {"a": X.T.copy() if axes[0] else X}):
                plain_and_compiled(fn, compiled, X, axes, options)

    axes = [0, 1]
    plain_and_compiled(fn, compiled, X, axes, {})
    axes.reverse()
    plain_and_compiled(fn, compiled, X, axes, {})

    def weights(x, layers):
        for w, b in layers:
            x = x @ w + b
        return x

    compiled = cuvil.jit(weights)
    eye = np.eye(4, dtype=np.float32)
    layers = [(eye, eye[0]), (eye * 2, 1.0)]
    plain_and_compiled(weights, compiled, X, layers)
    layers[1] = (eye * 3, 2.0)
    plain_and_compiled(weights, compiled, X, layers)
    layers.append((eye, eye[1]))
    plain_and_compiled(weights, compiled, X, layers)
    layers[0][0][0, 0] = 9
    plain_and_compiled(weights, compiled, X, tuple(layers))


def test_named_tuples_and_functions_as_arguments():
    def fn(x, p, f):
        return f(x * p.x + p.y), p

    compiled = cuvil.jit(fn)

    def make(k):
        return lambda x: x - k

    for _ in range(2):
        for p in (Point(1, 2), Point(1.0, X), Point(X, 3)):
            for f in (make(1), make(2), np.negative, abs, cuvil.jit(make(5))):
                plain_and_compiled(fn, compiled, X, p, f)


def test_huge_python_ints():
    def fn(x, n):
        return x * (n % 7), n // 3, n

    compiled = cuvil.jit(fn)
    x = np.arange(3)
    for _ in range(2):
        for n in (5, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**40, -(10**40), 10**5000):
            plain_and_compiled(fn, compiled, x, n)

    def add(x, n):
        return x + n

    compiled = cuvil.jit(add)
    for t in (np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64):
        for n in (1, 127, 128, 255, 256, -1, -129, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40, 10**400):
            d.check(add, np.ones(3, t), n, compiled=compiled)


class Celsius(float):
    def __mul__(self, other):
        return "hot"

    __rmul__ = __mul__


class Count(int):
    def __add__(self, other):
        return "many"

    __radd__ = __add__


class Real(np.float64):
    def __mul__(self, other):
        return "real"

    __rmul__ = __mul__


class Text(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def test_subclasses_of_numbers_are_not_taken_for_numbers():
    def mul(x, k):
        return k * x

    def add(x, k):
        return k + x

    def compare(x, k):
        return x if k == "no" else -x

    for fn, k in ((mul, Celsius(2)), (add, Count(2)), (mul, Real(2)), (compare, Text("yes"))):
        compiled = cuvil.jit(fn)
        for base in (float, int, np.float64, str):
            if isinstance(k, base):
                plain_and_compiled(fn, compiled, X, base(k))
                break
        want = fn(X, k)
        try:
            got = compiled(X, k)
        except cuvil.CuvilError:
            continue
        d.same(want, got)


# ---- errors leave everything as it was -----------------------------------------------------------------


def test_an_error_in_the_middle():
    def fn(x, index):
        x[0] = 5
        x[index] = 7
        x[1] = 9
        return x * 2

    compiled = cuvil.jit(fn)
    for _ in range(3):
        for index in (2, 99, 3, -99):
            d.check(fn, np.zeros(4), index, compiled=compiled, mutates=True)
    x = np.zeros(4)
    with pytest.raises(IndexError):
        compiled(x, 99)
    np.testing.assert_array_equal(x, [5, 0, 0, 0])


def test_an_error_of_user_code_in_a_guard():
    class Moody:
        fails = None

        @property
        def w(self):
            if self.fails:
                raise self.fails
            return 2.0

    moody = Moody()

    def fn(x):
        return x * moody.w

    compiled = cuvil.jit(fn)
    plain_and_compiled(fn, compiled, X)
    for error in (OSError("disk"), KeyboardInterrupt(), AttributeError("w"), KeyError("k"), TypeError("t")):
        moody.fails = error
        with pytest.raises(type(error)) as got:
            compiled(X)
        assert got.value is error or str(got.value) == str(error)
        moody.fails = None
        plain_and_compiled(fn, compiled, X)


def test_an_error_while_compiling():
    def fn(x, y):
        return x @ y

    compiled = cuvil.jit(fn)
    for _ in range(3):
        with pytest.raises(ValueError):
            compiled(np.ones((2, 3)), np.ones((2, 3)))
        with pytest.raises(cuvil.DTypeError):
            compiled(np.array(["a"]), X)
    assert count(compiled) == 0
    plain_and_compiled(fn, compiled, np.ones((2, 3)), np.ones((3, 2)))


def test_recursion_through_a_compiled_function():
    @cuvil.jit
    def fn(x, n):
        return x if n == 0 else fn(x, n - 1) * 2

    kind, got = d.outcome(fn, (X, 3))
    assert kind == "value" or isinstance(got, cuvil.UnsupportedError), got
    if kind == "value":
        d.same(X * 8, got)


def test_user_code_in_guards_may_call_compiled_code():
    """Reading what a function relies on may run compiled functions, even this one, or replace its code."""

    class Model:
        depth = 0

        @property
        def w(self):
            if self.depth == 0:
                return 2.0
            self.depth -= 1
            try:
                return float(compiled(X)[0, 0]) * 0 + 2.0
            finally:
                self.depth += 1

        @property
        def again(self):
            if self.depth:
                fn.__defaults__ = (self.depth,)
            return 1.0

    model = Model()

    def fn(x, k=1):
        return x * model.w * model.again * k

    compiled = cuvil.jit(fn)
    for depth in (0, 1, 2, 0, 3):
        model.depth = depth
        got = compiled(X, 1)
        np.testing.assert_array_equal(got, X * 2)


def test_user_code_in_a_guard_may_use_another_specialisation():
    """The call that asked goes on with the specialisation whose guards it checked."""

    class Model:
        calls = ()

        @property
        def w(self):
            calls, self.calls = self.calls, ()
            for x in calls:
                compiled(x)
            return 2.0

    model = Model()

    def fn(x):
        return (x * model.w, x.sum(), x.reshape(-1))

    compiled = cuvil.jit(fn)
    inputs = (X, X.astype(np.float32), np.arange(3.0), np.ones((2, 3, 4), np.int32))
    for x in inputs:
        plain_and_compiled(fn, compiled, x)
    for x in inputs:
        for other in inputs:
            compiled(x)  # the latest
            model.calls = (other,)
            d.same(fn(x), compiled(x))


def test_code_that_is_replaced_twice():
    def free(x):
        return x + settings.gain

    replaced = cuvil.jit(free)
    plain_and_compiled(free, replaced, X)
    free.__code__ = half.__code__
    d.same(X / 2, replaced(X))
    free.__code__ = minus_scale.__code__
    d.same(X - SCALE, replaced(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child():
    """It runs code of its parent, and compiles its own, with threads of its own."""

    def fn(x):
        return np.exp(x @ x.T).sum(axis=0)

    compiled = cuvil.jit(fn)
    big = np.full((300, 300), 0.01)
    want = compiled(big)
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(compiled(big), want)
            same = same and np.array_equal(cuvil.jit(fn)(big), want)
            same = same and np.array_equal(compiled(np.zeros((3, 3))), np.full(3, 3.0))
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(compiled(big), want)


# ---- threads --------------------------------------------------------------------------------------------


def in_threads(n, work):
    """Run ``work(k)`` on n threads that start together; raise the first error."""
    barrier, errors, results = threading.Barrier(n), [], [None] * n

    def run(k):
        try:
            barrier.wait()
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a call hangs"
    if errors:
        raise errors[0]
    return results


def test_first_calls_of_many_threads_compile_once():
    def fn(x):
        return np.exp(x) * 2 + x.sum(axis=1, keepdims=True)

    for _ in range(5):
        compiled = cuvil.jit(fn)
        for got in in_threads(8, lambda k: compiled(X)):
            np.testing.assert_allclose(got, fn(X), rtol=1e-5)
        assert count(compiled) == 1


def test_threads_with_arguments_of_different_kinds():
    def fn(x, k):
        return x * k + 1

    compiled = cuvil.jit(fn)
    types_ = ["float32", "float64", "int32", "uint8"]

    def work(k):
        x = np.arange(3 + k, dtype=types_[k % 4])
        for _ in range(50):
            d.same(fn(x, 2), compiled(x, 2))

    in_threads(8, work)
    assert count(compiled) <= 8


def test_threads_that_fail_while_others_compile():
    def fn(x, y):
        return x + y

    compiled = cuvil.jit(fn)

    def work(k):
        for _ in range(20):
            if k % 2:
                with pytest.raises(ValueError):
                    compiled(np.ones(3), np.ones(4))
            else:
                d.same(np.full(3, 2.0), compiled(np.ones(3), np.ones(3)))

    in_threads(6, work)


def test_many_calls_of_many_threads():
    def fn(x, w):
        return np.maximum(x @ w, 0).sum(axis=0)

    compiled = cuvil.jit(fn)
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal((64, 64)) for _ in range(6)]
    wants = [fn(x, x) for x in xs]

    def work(k):
        for _ in range(200):
            np.testing.assert_allclose(compiled(xs[k], xs[k]), wants[k], rtol=1e-9, atol=1e-9)

    in_threads(6, work)


def test_calls_while_the_captured_state_changes():
    scale = 1.0

    def fn(x):
        return x * scale

    compiled = cuvil.jit(fn)
    compiled(X)
    stop = threading.Event()

    def change():
        nonlocal scale
        while not stop.is_set():
            scale = 2.0 if scale == 1.0 else 1.0

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(300):
            got = compiled(X)
            assert np.array_equal(got, X) or np.array_equal(got, X * 2)
    finally:
        stop.set()
        changer.join()


def test_functions_that_inline_each_other_compile_on_two_threads():
    @cuvil.jit
    def a(x):
        return np.sin(x) + 1

    @cuvil.jit
    def b(x):
        return a(x) * 2

    @cuvil.jit
    def c(x):
        return b(a(x))

    results = in_threads(6, lambda k: (a, b, c)[k % 3](X))
    np.testing.assert_allclose(results[2], c.__wrapped__(X), rtol=1e-5)


# ---- what is kept alive -----------------------------------------------------------------------------


def references(*objects):
    gc.collect()
    return [sys.getrefcount(o) for o in objects]


def test_references_of_arguments_and_results():
    w = np.ones(4, np.float32)
    label = "a label that is not interned " + str(X.size)

    def fn(x, mode, k, options):
        return x, x[1:], x * w, mode, k, options["b"]

    compiled = cuvil.jit(fn)
    x, k, options = X.copy(), 10**6 + X.size, {"b": X.copy()}
    compiled(x, label, k, options)
    before = references(x, w, label, k, options, options["b"], fn, None, compiled)
    for _ in range(50):
        result = compiled(x, label, k, options)
    made = result[2]
    del result
    held = sys.getrefcount(made)  # by `made` and by the call
    del made
    assert held == 2
    after = references(x, w, label, k, options, options["b"], fn, None, compiled)
    assert [b - a for a, b in zip(before, after)][:7] == [0] * 7


def test_references_on_error_paths():
    w = np.ones(4, np.float32)

    def fn(x, y, i):
        z = x * w + y
        z[i] = 3
        return z[i], y

    compiled = cuvil.jit(fn)
    x, y, bad, text = X.copy(), X.copy(), np.ones((7, 7)), np.array(["a"])
    compiled(x, y, 1)

    def provoke():
        for args in ((x, y, 99), (x, bad, 1), (x, text, 1), (x,), (x, y, 1, 2), (x, y, "a"), (None, y, 1)):
            kind, error = d.outcome(compiled, args)
            assert kind == "error", args
            del error

    provoke()
    before = references(x, y, bad, text, w, compiled, fn)
    for _ in range(20):
        provoke()
    assert references(x, y, bad, text, w, compiled, fn) == before


def test_nothing_of_a_call_is_kept():
    def fn(x, model, options, items):
        return x * model.w + options["w"] + items[0]

    class Model:
        pass

    compiled = cuvil.jit(fn)
    model, x, options, items = Model(), X.copy(), {"w": X.copy()}, [X.copy()]
    model.w = X.copy()
    dead = [weakref.ref(o) for o in (model, x, model.w, options["w"], items[0])]
    result = compiled(x, model, options, items)
    dead.append(weakref.ref(result))
    del model, x, options, items, result
    gc.collect()
    assert [r() is None for r in dead] == [True] * 6


def test_a_function_that_nobody_uses_is_freed():
    class Model:
        def __init__(self):
            self.w = X.copy()

            @cuvil.jit
            def forward(x):
                return x * self.w

            self.forward = forward

    model = Model()
    model.forward(X)
    dead = [weakref.ref(o) for o in (model, model.w, model.forward)]
    del model
    gc.collect()
    assert [r() is None for r in dead] == [True] * 3


def test_views_keep_their_base():
    def fn(x):
        return x[1:], x.T

    compiled = cuvil.jit(fn)
    x = X.copy()
    alive = weakref.ref(x)
    view, turned = compiled(x)
    del x
    gc.collect()
    assert alive() is not None and view.base is alive()
    del view, turned
    gc.collect()
    assert alive() is None


MEMORY = """
import gc, sys, warnings
import numpy as np, cuvil
warnings.simplefilter("ignore")

def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096

w = np.ones(64)
{body}

for _ in range(2000):
    step()
cuvil.runtime.wait_for_compilation()
gc.collect()
before = rss()
for _ in range(20000):
    step()
gc.collect()
grown = rss() - before
assert grown < 600_000, grown
"""

STEPS = {
    "values": """
f = cuvil.jit(lambda x, k: (x * w + k, x[1:], x.sum(), {"a": [x, k]}))
x = np.ones(64)
def step():
    f(x, 3.5)
""",
    "errors of the binder": """
f = cuvil.jit(lambda x, y: x + y)
def step():
    try:
        f(w)
    except TypeError:
        pass
""",
    "errors of compiled code": """
@cuvil.jit
def f(x, i):
    return x[i], x * 2
f(w, 1)
def step():
    try:
        f(w, 1000)
    except IndexError:
        pass
""",
    "plain because of overlap": """
@cuvil.jit
def f(a, b):
    a += b
    return a
m = np.zeros(65)
def step():
    f(m[:-1], m[1:])
""",
    "keywords and defaults": """
@cuvil.jit
def f(x, *args, k=w, **options):
    return x + k + options["b"], args
def step():
    f(w, 1, 2, b=2.5)
""",
    "symbolic sizes": """
f = cuvil.jit(lambda x: np.exp(x) @ x)
xs = [np.ones(n) for n in range(2, 40)]
at = 0
def step():
    global at
    at += 1
    f(xs[at % 38])
""",
    "guards that change": """
scale = 1.0
f = cuvil.jit(lambda x: x * scale)
def step():
    global scale
    scale = 3.0 - scale
    f(w)
""",
    "methods": """
class Model:
    def __init__(self):
        self.w = np.ones(64)
    @cuvil.jit
    def forward(self, x):
        return x * self.w
def step():
    Model().forward(w)
""",
}


@pytest.mark.parametrize("name", STEPS)
def test_memory_does_not_grow(name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MEMORY.replace("{body}", STEPS[name]))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
