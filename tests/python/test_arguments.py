"""Arrays of every kind, as arguments and captured: taken as they are, or refused by name."""

from __future__ import annotations

import datetime
import warnings

import cuvil
import differential as d
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

X = np.arange(6.0).reshape(2, 3)


def double(x):
    return x * 2


@pytest.fixture(autouse=True, scope="module")
def only_this_process():
    """No code of other tests: what is compiled, and how often, is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE", "0")
        yield


# ---- dtypes that are not compiled ------------------------------------------------------------------

REFUSED = {
    "object": np.array([1, "a", None], object),
    "object number": np.array([1.5, 2.5], object),
    "str": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "void": np.zeros(3, "V5"),
    "datetime": np.array(["2020-01-01"], "M8[D]"),
    "timedelta": np.array([5], "m8[s]"),
    "structured": np.zeros(2, [("a", "f4"), ("b", "i8")]),
    "long double": np.ones(2, np.longdouble),
    "big-endian float": np.ones(2, ">f8"),
    "big-endian int": np.ones(2, ">i4"),
    "swapped by newbyteorder": np.ones(2, np.dtype("u2").newbyteorder()),
    "complex": np.ones(2, np.complex128),
}
SCALARS = {
    "datetime": np.datetime64("2020-01-01"),
    "timedelta": np.timedelta64(5, "s"),
    "str": np.str_("a"),
    "bytes": np.bytes_(b"a"),
    "void": np.zeros(1, [("a", "f4")])[0],
    "long double": np.longdouble(2),
    "complex": np.complex64(2j),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_of_a_dtype_that_is_not_compiled(name):
    x = REFUSED[name]
    compiled = cuvil.jit(double)
    for _ in range(2):
        with pytest.raises((cuvil.DTypeError, cuvil.UnsupportedError)) as info:
            compiled(x)
        text = str(info.value)
        assert "'x'" in text and str(x.dtype) in text and "help:" in text
    d.check(double, X, compiled=compiled)
    with pytest.raises((cuvil.DTypeError, cuvil.UnsupportedError)):  # though code exists by now
        compiled(x)
    assert len(cuvil._cuvil.specialisations(compiled)) == 1


def test_the_remedy_for_byte_order_works():
    x = np.arange(3, dtype=">f4")
    with pytest.raises(cuvil.DTypeError) as info:
        cuvil.jit(double)(x)
    remedy = str(info.value).split("convert it first: ")[1]
    fixed = eval(remedy, {"x": x})
    np.testing.assert_array_equal(cuvil.jit(double)(fixed), [0, 2, 4])


@pytest.mark.parametrize("name", SCALARS)
def test_a_scalar_of_a_dtype_that_is_not_compiled(name):
    compiled = cuvil.jit(double)
    with pytest.raises((cuvil.DTypeError, cuvil.UnsupportedError)) as info:
        compiled(SCALARS[name])
    assert "'x'" in str(info.value) and "scalar" in str(info.value) or "dtype" in str(info.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_captured_array_of_a_dtype_that_is_not_compiled(name):
    w = X

    def fn(x):
        return x + w

    compiled = cuvil.jit(fn)
    d.check(fn, X, compiled=compiled)
    w = REFUSED[name]
    with pytest.raises((cuvil.CuvilError, TypeError)):
        compiled(X)
    w = X * 3
    d.check(fn, X, compiled=compiled)


def test_an_array_that_is_only_handed_through():
    """Objects in containers that the function does not touch come back as they are."""

    def fn(x, extra):
        return x * 2, extra

    compiled = cuvil.jit(fn)
    extra = {"when": datetime.date(2020, 1, 1), "names": ["a", "b"]}
    doubled, same = compiled(X, extra)
    assert same is extra or same == extra


# ---- subclasses of ndarray -----------------------------------------------------------------------


class Tagged(np.ndarray):
    tag = None

    def __array_finalize__(self, obj):
        self.tag = getattr(obj, "tag", None)


SUBCLASSES = {
    "matrix": lambda: np.matrix([[1.0, 2.0], [3.0, 4.0]]),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "recarray": lambda: np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "chararray": lambda: np.char.array(["a", "b"]),
    "own": lambda: np.ones(3).view(Tagged),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", SUBCLASSES)
def test_subclasses_are_refused_by_name(name):
    x = SUBCLASSES[name]()
    compiled = cuvil.jit(double)
    for _ in range(2):
        with pytest.raises(cuvil.UnsupportedError) as info:
            compiled(x)
        assert type(x).__name__ in str(info.value) and "'x'" in str(info.value)
        assert "numpy.asarray(x)" in str(info.value)
    d.check(double, np.ones((2, 2)), compiled=compiled)
    d.check(double, np.ones(3), compiled=compiled)
    with pytest.raises(cuvil.UnsupportedError):
        compiled(x)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_captured_subclasses_are_never_taken_for_arrays():
    w = np.ones((2, 2))

    def fn(x):
        return x * w

    compiled = cuvil.jit(fn)
    x = np.arange(4.0).reshape(2, 2)
    d.check(fn, x, compiled=compiled)
    w = np.matrix([[1.0, 2.0], [3.0, 4.0]])  # * is the matrix product here
    with pytest.raises(cuvil.CuvilError):
        compiled(x)
    w = np.ones((2, 2)) * 5
    d.check(fn, x, compiled=compiled)


class Wrapper:
    """Not an array, but NumPy asks it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "asked"

    def __radd__(self, other):
        return "added"


def test_objects_with_an_array_protocol_are_not_taken_for_arrays():
    def fn(x, y):
        return x + y

    assert fn(X, Wrapper()) == "asked"
    compiled = cuvil.jit(fn)
    try:
        got = compiled(X, Wrapper())
    except cuvil.UnsupportedError:
        got = "asked"
    assert got == "asked"
    d.check(fn, X, X, compiled=compiled)


# ---- memory maps ----------------------------------------------------------------------------------


@pytest.fixture
def mapped(tmp_path):
    def make(mode, shape=(4, 5), dtype="f4"):
        path = tmp_path / f"{mode.replace('+', 'p')}.bin"
        np.arange(np.prod(shape), dtype=dtype).tofile(path)
        return np.memmap(path, dtype, mode, shape=shape)

    return make


MAP_FUNCTIONS = [
    lambda x: x + 1,
    lambda x: x,
    lambda x: x[1:],
    lambda x: x[0],
    lambda x: x[1, 2],
    lambda x: x.T,
    lambda x: x.reshape(-1),
    lambda x: x.T.reshape(-1),
    lambda x: x.ravel(),
    lambda x: x.sum(),
    lambda x: x.sum(axis=0),
    lambda x: x @ x.T,
    lambda x: np.maximum(x, 2),
    lambda x: x > 3,
    lambda x: -x,
    lambda x: np.exp(x),
    lambda x: x.copy(),
    lambda x: np.copy(x),
    lambda x: np.array(x),
    lambda x: np.asarray(x),
    lambda x: np.ascontiguousarray(x),
    lambda x: x.astype(np.float64),
    lambda x: x.astype(np.float32),
    lambda x: np.zeros_like(x),
    lambda x: np.ones_like(x),
    lambda x: np.where(x > 2, x, 0),
    lambda x: np.concatenate([x, x]),
    lambda x: np.stack([x, x]),
    lambda x: np.broadcast_to(x, (2, 4, 5)),
    lambda x: np.flip(x),
    lambda x: np.transpose(x),
    lambda x: np.squeeze(x[:1]),
    lambda x: np.expand_dims(x, 0),
    lambda x: np.clip(x, 1, 3),
    lambda x: x[x.shape[0] - 1 :, ::2],
    lambda x: (x, x[1:], x * 2),
]


def same_but_maps(want, got, x):
    """Views are maps, all else is arrays; values and what shares memory are as in NumPy."""
    if isinstance(want, tuple):
        assert len(want) == len(got)
        for w, g in zip(want, got):
            same_but_maps(w, g, x)
        return
    if isinstance(want, np.ndarray):
        shared = np.shares_memory(want, x)
        assert np.shares_memory(got, x) == shared
        assert type(got) is (np.memmap if shared else np.ndarray)
        assert got.flags.writeable == want.flags.writeable
        want, got = np.asarray(want), np.asarray(got)
    d.same(want, got, ulp=2)


@pytest.mark.parametrize("index", range(len(MAP_FUNCTIONS)))
def test_memory_maps(mapped, index):
    fn = MAP_FUNCTIONS[index]
    x = mapped("r+")
    compiled = cuvil.jit(fn)
    d.check(fn, np.array(x), compiled=compiled, ulp=2)
    same_but_maps(fn(x), compiled(x), x)  # by code made for an array
    d.check(fn, np.array(x), compiled=compiled, ulp=2)
    same_but_maps(fn(x), cuvil.jit(fn)(x), x)
    assert len(cuvil._cuvil.specialisations(compiled)) == 1


def test_captured_memory_maps(mapped):
    w = mapped("r")

    def fn(x):
        return x * w, w[1:]

    compiled = cuvil.jit(fn)
    x = np.ones((4, 5))
    d.check(fn, x, compiled=compiled)
    w = np.array(w)
    d.check(fn, x, compiled=compiled)
    w = mapped("r")
    d.check(fn, x, compiled=compiled)


def test_writes_to_memory_maps(mapped):
    def fn(x):
        x += 1
        x[0] = 7
        return x

    compiled = cuvil.jit(fn)
    x = mapped("r+")
    assert compiled(x) is x
    x.flush()
    want = np.arange(20, dtype="f4").reshape(4, 5) + 1
    want[0] = 7
    np.testing.assert_array_equal(np.fromfile(x.filename, "f4").reshape(4, 5), want)
    private = mapped("c")
    assert compiled(private) is private
    np.testing.assert_array_equal(private, want)
    read_only = mapped("r")
    with pytest.raises(ValueError, match="read-only"):
        compiled(read_only)
    np.testing.assert_array_equal(read_only, np.arange(20).reshape(4, 5))


# ---- ranks and strides -----------------------------------------------------------------------------


def test_ranks():
    compiled = cuvil.jit(double)
    for rank in range(17):
        d.check(double, np.ones((1,) * rank), compiled=compiled)
    for rank in range(1, 17):
        d.check(double, np.arange(2.0).reshape((1,) * (rank - 1) + (2,)), compiled=cuvil.jit(double))
    for rank in (17, 32):
        with pytest.raises(cuvil.UnsupportedError, match=f"{rank} dimensions"):
            compiled(np.ones((1,) * rank))
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(cuvil.UnsupportedError, match="64 dimensions"):
            compiled(np.ones((1,) * 64))
    w = np.ones((1,) * 30)
    with pytest.raises(cuvil.CuvilError):
        cuvil.jit(lambda x: x + w)(1.0)


def test_zero_dimensional_arrays():
    functions = [
        lambda x: x,
        lambda x: x + 1,
        lambda x: x[()],
        lambda x: x[...],
        lambda x: x.sum(),
        lambda x: x * np.ones(3),
        lambda x: x.reshape(1),
        lambda x: x[None],
        lambda x: np.sqrt(x),
        lambda x: x.T,
        lambda x: (x, x * x, -x),
        lambda x: x.copy(),
        lambda x: x.shape,
        lambda x: np.asarray(x) + np.asarray(2),
    ]
    for fn in functions:
        compiled = cuvil.jit(fn)
        for x in (np.array(2.5), np.array(3), np.array(True), np.array(2.5, np.float16)):
            d.check(fn, x, compiled=compiled)
    for fn in functions[:6]:
        compiled = cuvil.jit(fn)
        for x in (
            np.float64(2.5),
            np.array(2.5),
            np.float32(1),
            np.array(1, "f4"),
            np.bool_(True),
            np.int8(3),
        ):
            d.check(fn, x, compiled=compiled)
        for x in (np.float64(2.5), np.array(2.5)):  # both by then have code
            d.check(fn, x, compiled=compiled)

    def write(x):
        x[...] = 5
        x += 1
        return x

    d.check(write, np.array(1.0), mutates=True)
    d.check(write, np.array(1, np.int8), mutates=True)


def test_scalars_as_arguments():
    def fn(x, k):
        return x + k, k, x * k

    compiled = cuvil.jit(fn)
    for x in (np.ones(2, np.float32), np.ones(2, np.int8), np.float32(2), np.int16(2)):
        for k in (
            np.float64(2),
            np.float32(2),
            np.float16(2),
            np.int8(2),
            np.uint64(2),
            np.bool_(True),
            2,
            2.5,
            True,
        ):
            d.check(fn, x, k, compiled=compiled)
    scalar = np.float32(7)
    assert compiled(X, scalar)[1] is scalar


def test_more_than_2_to_the_31_elements_behind_strides():
    def check(fn, x, compiled=None):  # never copies the argument
        d.same(fn(x), (compiled or cuvil.jit(fn))(x))

    big = np.broadcast_to(np.float32(3), (2**16, 2**17))
    wide = np.lib.stride_tricks.as_strided(np.arange(4.0), (2**40, 4), (0, 8))

    def corner(x):
        return x[-1, -3:], x[:: 2**14, 5].sum(), x.shape, x.size, x.ndim

    compiled = cuvil.jit(corner)
    check(corner, big, compiled=compiled)
    check(lambda x: x[2**39, 1:], wide)
    check(lambda x: x.shape[0] * 2, wide)
    check(lambda x: x[5:7] + 1, wide)

    far = np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (2**45,))[:1]
    check(double, far)
    empty = np.lib.stride_tricks.as_strided(np.zeros(1), (0, 2**40), (2**42, 8))
    check(double, empty[:, :3])
    check(lambda x: x.sum(), empty)
    check(lambda x: x.shape, empty)


def test_huge_results_are_memory_errors():
    wide = np.broadcast_to(np.float32(3), (2**20, 2**30))
    compiled = cuvil.jit(double)
    for _ in range(2):
        with pytest.raises(MemoryError):
            double(wide)
        with pytest.raises(MemoryError) as info:
            compiled(wide)
        assert isinstance(info.value, (cuvil.OutOfMemoryError, MemoryError))
    d.check(double, X, compiled=compiled)


@given(data=st.data())
def test_any_layout(data):
    """Every layout against code that was made for others."""
    x = d.array(
        np.random.default_rng(data.draw(d.seeds)),
        data.draw(st.sampled_from(["float32", "int16", "float64"])),
        data.draw(d.shapes),
        data.draw(d.layouts),
    )
    d.check(double, x, compiled=DOUBLE)
    if x.ndim:
        d.check(last_half, x, compiled=LAST_HALF)


def last_half(x):
    return x[x.shape[0] // 2 :], x.T


DOUBLE, LAST_HALF = cuvil.jit(double), cuvil.jit(last_half)


def test_flags_that_numpy_sets_from_memory():
    """One-element and empty arrays are both C and F; strides of axes of size 1 mean nothing."""
    compiled = cuvil.jit(lambda x: x.T + 1)
    for shape in ((1, 5), (5, 1), (1, 1), (0, 3), (3, 0)):
        base = np.ones(shape)
        for x in (
            base,
            base.T.copy().T,
            np.lib.stride_tricks.as_strided(base, shape, (1000, 8) if shape[0] == 1 else base.strides),
        ):
            d.check(lambda x: x.T + 1, x, compiled=compiled)


def test_read_only_and_writeable():
    def write(x):
        x[0] = 1
        return x

    compiled = cuvil.jit(write)
    x = np.zeros(3)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for _ in range(2):
        assert compiled(x) is x
        with pytest.raises(ValueError, match="read-only"):
            compiled(frozen)
        assert not frozen.any()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(x)


def test_numpy_scalars_are_not_written():
    def write(x):
        x[...] = 1
        return x

    d.check(write, np.float64(2))
    d.check(lambda x: x[0], np.float64(2))

    def add(x):
        x += 1
        return x

    k = np.float64(2)
    assert cuvil.jit(add)(k) == 3 and k == 2


def test_warnings_of_numpy_are_not_needed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = cuvil.jit(lambda x: x / 0)(np.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(got, [np.inf, np.nan, -np.inf])
