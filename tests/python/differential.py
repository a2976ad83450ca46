"""The differential harness: what a compiled function returns is what plain NumPy returns.

``check(fn, *args)`` runs ``fn`` plain and compiled on equal copies of the arguments and compares dtype,
shape, kind (array or scalar), values, the arguments afterwards, and exceptions. The strategies below
draw arrays of every dtype, layout and size; the other test modules build on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cuvil
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
FLOATS = ["float16", "float32", "float64"]
ALL = BOOL + INTS + FLOATS

LAYOUTS = ("c", "f", "negative", "strided", "broadcast", "misaligned", "readonly")


# ---- arrays --------------------------------------------------------------------------------------


def specials(dtype: np.dtype) -> np.ndarray:
    """Values at which an element-wise function is most likely to go wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        raw = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, -1, -2, -3]
        return np.array([v for v in raw if info.min <= v <= info.max], dtype)
    f = np.finfo(dtype)
    raw = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        1.5,
        -1.5,
        2.5,
        -2.5,
        3.7,
        -3.7,
        100.25,
        np.inf,
        -np.inf,
        np.nan,
        f.max,
        f.min,
        f.tiny,
        -f.tiny,
        f.smallest_subnormal,
        f.eps,
    ]
    return np.array(raw).astype(dtype)


def values(rng: np.random.Generator, dtype: np.dtype, n: int) -> np.ndarray:
    """``n`` values, specials mixed with random ones of several magnitudes."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -20), min(info.max, 20), n, endpoint=True)
        wide = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        out = np.where(rng.random(n) < 0.5, small.astype(dtype), wide)
    else:
        out = (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3, n)).astype(dtype)
    s = specials(dtype)
    where = rng.random(n) < 0.3
    return np.where(where, s[rng.integers(0, len(s), n)], out).astype(dtype)


def laid_out(rng: np.random.Generator, base: np.ndarray, layout: str) -> np.ndarray:
    """``base`` (or an array of its shape) in another memory layout."""
    if layout == "f":
        return np.asfortranarray(base)
    if layout == "negative" and base.ndim:
        axis = int(rng.integers(base.ndim))
        return np.flip(np.flip(base, axis).copy(), axis)
    if layout == "strided" and base.ndim:
        wide = np.zeros([2 * n + 1 for n in base.shape], base.dtype)
        view = wide[tuple(slice(1, 2 * n + 1, 2) for n in base.shape)]
        view[...] = base
        return view
    if layout == "broadcast" and base.ndim:
        axis = int(rng.integers(base.ndim))
        if base.shape[axis] == 0:
            return base
        return np.broadcast_to(base.take([0], axis), base.shape)
    if layout == "misaligned":
        raw = np.zeros(base.nbytes + 1, np.uint8)
        view = raw[1:].view(base.dtype).reshape(base.shape)
        view[...] = base
        return view
    if layout == "readonly":
        base = base.copy()
        base.flags.writeable = False
    return base


def array(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], layout: str = "c") -> np.ndarray:
    """A random array of the given dtype, shape and layout."""
    n = int(np.prod(shape, dtype=np.int64))
    return laid_out(rng, values(rng, np.dtype(dtype), n).reshape(shape), layout)


dtypes = st.sampled_from(ALL)
layouts = st.sampled_from(LAYOUTS)
shapes = st.one_of(
    st.sampled_from([(), (0,), (1,), (3, 0), (5,), (67,), (2, 3), (4, 17), (2, 3, 5)]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7),
)
seeds = st.integers(0, 2**32 - 1)


# ---- comparison ----------------------------------------------------------------------------------


class Mismatch(AssertionError):
    pass


def ulps(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; 0 where both are NaN, infinite where one is."""
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[want.dtype.itemsize]

    def ordered(x: np.ndarray) -> np.ndarray:
        i = x.view(bits).astype(object)
        lowest = int(np.iinfo(bits).min)
        return np.where(i < 0, lowest - i, i)

    distance = np.abs(ordered(want) - ordered(got)).astype(float)
    nan = np.isnan(want), np.isnan(got)
    distance = np.where(nan[0] & nan[1], 0.0, np.where(nan[0] ^ nan[1], np.inf, distance))
    return distance


def same(
    want: Any, got: Any, ulp: float = 0, tol: tuple[float, float] | None = None, path: str = "result"
) -> None:
    """Raise Mismatch unless ``got`` is what plain Python gave."""
    if isinstance(want, (list, tuple)):
        if type(got) is not type(want) or len(got) != len(want):
            raise Mismatch(f"{path}: expected {type(want).__name__}[{len(want)}], got {got!r}")
        for k, (w, g) in enumerate(zip(want, got, strict=True)):
            same(w, g, ulp, tol, f"{path}[{k}]")
        return
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(want) != list(got):
            raise Mismatch(f"{path}: expected keys {list(want)}, got {got!r}")
        for k in want:
            same(want[k], got[k], ulp, tol, f"{path}[{k!r}]")
        return
    if type(want) is not type(got):
        raise Mismatch(f"{path}: expected a {type(want).__name__}, got a {type(got).__name__}: {got!r}")
    if not isinstance(want, (np.ndarray, np.generic)):
        if want is got or want == got or (want != want and got != got):
            return
        raise Mismatch(f"{path}: expected {want!r}, got {got!r}")
    w, g = np.asarray(want), np.asarray(got)
    if w.dtype != g.dtype or w.shape != g.shape:
        raise Mismatch(f"{path}: expected {w.dtype}{w.shape}, got {g.dtype}{g.shape}")
    if w.dtype.kind == "f":
        if tol is not None:
            ok = np.isclose(g.astype(float), w.astype(float), rtol=tol[0], atol=tol[1], equal_nan=True)
        elif ulp:
            ok = ulps(np.ascontiguousarray(w), np.ascontiguousarray(g)).reshape(w.shape) <= ulp
        else:
            ok = ((w == g) & (np.signbit(w) == np.signbit(g))) | (np.isnan(w) & np.isnan(g))
    else:
        ok = w == g
    if not np.all(ok):
        bad = np.argwhere(~np.asarray(ok))[0] if w.ndim else ()
        where = tuple(int(i) for i in bad)
        raise Mismatch(
            f"{path}: at {where} expected {w[where]!r}, got {g[where]!r} "
            f"({np.sum(~np.asarray(ok))} of {w.size} differ)"
        )


def duplicate(arg: Any) -> Any:
    """A copy with the same layout (strides, alignment, writeability)."""
    if not isinstance(arg, np.ndarray) or arg.base is None:
        return arg.copy(order="K") if isinstance(arg, np.ndarray) and arg.flags.writeable else arg
    if not arg.flags.writeable:
        return arg
    root = arg
    while isinstance(root.base, np.ndarray):
        root = root.base
    twin = root.copy(order="K")
    offset = arg.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    if twin.strides != root.strides:
        return arg.copy()
    return np.ndarray(
        arg.shape,
        arg.dtype,
        buffer=twin.reshape(-1).view(np.uint8).data
        if twin.flags.c_contiguous
        else twin.T.reshape(-1).view(np.uint8).data,
        offset=offset,
        strides=arg.strides,
    )


def arrays_in(result: Any) -> list[np.ndarray]:
    """The arrays of a result, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [a for item in result for a in arrays_in(item)]
    return [result] if isinstance(result, np.ndarray) else []


def same_sharing(want: Any, got: Any, plain: tuple[Any, ...], compiled: tuple[Any, ...]) -> None:
    """Raise Mismatch unless results are arguments, views of arguments, and writable, as in plain Python."""
    for k, (w, g) in enumerate(zip(arrays_in(want), arrays_in(got), strict=True)):
        if w.flags.writeable != g.flags.writeable:
            raise Mismatch(f"array {k} of the result: writeable is {g.flags.writeable}")
        for i, (x, y) in enumerate(zip(plain, compiled, strict=True)):
            if not isinstance(x, np.ndarray):
                continue
            if (w is x) != (g is y):
                raise Mismatch(f"array {k} of the result is {'not ' if w is x else ''}argument {i}")
            if np.may_share_memory(w, x) != np.may_share_memory(g, y):
                raise Mismatch(f"array {k} of the result: sharing with argument {i} differs")
    wanted, gotten = arrays_in(want), arrays_in(got)
    for k in range(len(wanted)):
        for i in range(k):
            if (wanted[k] is wanted[i]) != (gotten[k] is gotten[i]):
                raise Mismatch(f"arrays {i} and {k} of the result: whether they are one differs")
            if np.may_share_memory(wanted[k], wanted[i]) != np.may_share_memory(gotten[k], gotten[i]):
                raise Mismatch(f"arrays {i} and {k} of the result: whether they share memory differs")


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return "value", fn(*args)
        except Exception as error:  # noqa: BLE001 - the exception is the outcome
            return "error", error


def check(
    fn: Callable[..., Any],
    *args: Any,
    ulp: float = 0,
    tol: tuple[float, float] | None = None,
    compiled: Callable[..., Any] | None = None,
    mutates: bool = True,
) -> None:
    """Assert that the compiled function does what the plain one does.

    ``ulp`` or ``tol`` (rtol, atol) loosen the comparison of floats where the order of evaluation is free.
    ``compiled`` is an already decorated function, so that several calls share specialisations.
    """
    jitted = compiled if compiled is not None else cuvil.jit(fn)
    if mutates:
        for_plain = tuple(duplicate(a) for a in args)
        for_compiled = tuple(duplicate(a) for a in args)
    else:
        for_plain = for_compiled = args
    kind, want = outcome(fn, for_plain)
    got_kind, got = outcome(jitted, for_compiled)
    if kind == "error":
        if got_kind != "error":
            raise Mismatch(f"expected {type(want).__name__}: {want}; got {got!r}")
        expected = next(
            c for c in type(want).__mro__ if c.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg")
        )
        if not isinstance(got, expected):
            raise Mismatch(f"expected {type(want).__name__}: {want}; got {type(got).__name__}: {got}")
        return
    if got_kind == "error":
        raise Mismatch(f"expected {want!r}; got {type(got).__name__}: {got}") from got
    same(want, got, ulp, tol)
    if mutates:
        same(list(for_plain), list(for_compiled), ulp, tol, "arguments")
        same_sharing(want, got, for_plain, for_compiled)
