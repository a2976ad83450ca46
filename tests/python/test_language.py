"""The Python a compiled function may be written in: each construct does what plain Python does."""

from __future__ import annotations

from collections import namedtuple

import cuvil
import differential as d
import functions
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
SCALE = 2.0
OFFSET = np.full(4, 0.5, np.float32)
Pair = namedtuple("Pair", "lo hi")


def helper(x, factor=3):
    return x * factor


@cuvil.jit
def jitted_helper(x):
    return np.maximum(x, 0) + 1


def conditional_expression(x):
    return (x if x.ndim == 2 else -x) * (1 if x.shape[0] > 2 else 0)


def static_control_flow(x):
    if x.shape[0] > 100:
        return x
    elif x.dtype == np.float32:
        y = x * 2
    else:
        y = x
    for k in range(3):
        if k == 1:
            continue
        y = y + k
    y = y * 10
    n = 0
    while True:
        n += 1
        if n > 4:
            break
    return y + n


def containers(x):
    pair = (x + 1, [x * 2, {"a": x - 1, "b": 4}])
    first, (second, third) = pair
    d1 = {"k": first, **third}
    d1["new"] = second
    head, *rest = [x, x + 1, x + 2]
    parts = [first]
    parts.append(head)
    parts += rest
    return {"sum": sum(parts), "n": len(parts), "d": d1["a"] + d1["b"], "last": parts[-1], "t": (None, True)}


def comprehensions(x):
    squares = [k * k for k in range(5) if k % 2]
    rows = [x[i] * s for i, s in enumerate(squares)]
    table = {f"r{i}": r.sum() for i, r in enumerate(rows)}
    return rows, table, tuple(v for v in squares), {k for k in squares} == {1, 9}


def walrus(x):
    if (n := x.shape[1]) > 3:
        return x[:, : n - 1] + n
    return x


def calls(x):
    return helper(x), helper(x, 4), helper(factor=5, x=x), jitted_helper(x), (lambda v: v - 1)(x)


def globals_and_attributes(x):
    return x * SCALE + OFFSET


def methods(x):
    return (
        x.sum(axis=0),
        x.mean(),
        x.T + 0,
        x.astype(np.int32),
        x.max(axis=1, keepdims=True),
        x.ndim,
        x.shape,
        x.size,
        x.dtype == np.float32,
        x.reshape(2, 6) + 0,
        x.copy(),
        x.clip(-1, 1),
        len(x),
    )


def builtins_over_statics(x):
    total = 0
    for a, b in zip((1, 2, 3), [4, 5, 6], strict=False):
        total += a * b
    for i, v in enumerate(("x", "y")):
        total += i * len(v)
    ok = isinstance(x, np.ndarray) and not isinstance(x, list) and hasattr(x, "shape")
    return x * total + max(1, 2) + min(3, *[1, 5]) + abs(-3) + int(2.7) + float("1.5") + round(2.5), ok


def operators(x):
    i = x.astype(np.int32)
    y = +x - -x * 2 / 3 // 2 % 5 + x**2
    z = (i & 3) | (i << 1) ^ (i >> 1) + ~i
    b = (x > 0) & (x <= 3) | (x != x) ^ (x == 1)
    return y, z, b, x @ x.T, abs(x), divmod(i, 3)


def augmented(x):
    y = x + 0
    y += 1
    y *= x
    y -= 2
    y /= 4
    k = 3
    k **= 2
    return y + k


def namedtuples(x):
    p = Pair(x.min(), x.max())
    return p, p.lo + p.hi, p[1]


def nested_functions(x):
    k = 2

    def inner(v, *more, scale=1.0):
        return v * k * scale + len(more)

    return inner(x) + inner(x, 1, 2, scale=0.5)


def chained_comparison(x):
    n = x.shape[0]
    return x + 1 if 1 < n < 5 else x - 1


def unpack_shape(x):
    rows, cols = x.shape
    return np.ones((cols, rows)) * rows + np.arange(cols)[:, None]


def multiple_results(x):
    return x + 1, x.sum(), 3, "text", None, (x * 2,), [x - 1]


def boolean_statics(x):
    flag = x.ndim == 2 and x.shape[0] == 3 or False
    return x * (not flag) + (5 if flag and True else 7)


def fstrings(x):
    name = f"{'lo' if x.ndim else 'hi'}-{x.ndim:02d}"
    return {name: x + 1}


def starred_call(x):
    args = (x, 7)
    options = {"factor": 2}
    return helper(*args) + helper(x, **options)


FUNCTIONS = [
    conditional_expression,
    static_control_flow,
    containers,
    comprehensions,
    walrus,
    calls,
    globals_and_attributes,
    methods,
    builtins_over_statics,
    operators,
    augmented,
    namedtuples,
    nested_functions,
    chained_comparison,
    unpack_shape,
    functions.docstring_and_assert,
    multiple_results,
    boolean_statics,
    fstrings,
    starred_call,
]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_construct(fn):
    compiled = cuvil.jit(fn)
    for _ in range(2):
        d.check(fn, X, compiled=compiled, tol=(1e-6, 1e-6))


def test_default_keyword_and_star_arguments():
    def fn(x, scale=2.0, *rest, bias=None, **options):
        y = x * scale
        for r in rest:
            y = y + r
        if bias is not None:
            y = y + bias
        return y * options.get("gain", 1)

    compiled = cuvil.jit(fn)
    ones = np.ones(4, np.float32)
    for args, kwargs in (
        ((X,), {}),
        ((X, 3.0), {}),
        ((X, 3.0, ones, ones), {}),
        ((X,), {"bias": ones}),
        ((), {"scale": 0.5, "x": X}),
        ((X,), {"bias": None}),
        ((X,), {"gain": 4}),
    ):
        np.testing.assert_array_equal(compiled(*args, **kwargs), fn(*args, **kwargs))


def test_wrong_arguments_are_pythons_type_errors():
    def fn(x, w, *, k=1):
        return x + w

    compiled = cuvil.jit(fn)
    for args, kwargs in (((), {}), ((X,), {}), ((X, X, X), {}), ((X, X), {"q": 1}), ((X,), {"x": X})):
        with pytest.raises(TypeError) as plain:
            fn(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            compiled(*args, **kwargs)
        assert str(ours.value) == str(plain.value).replace(fn.__qualname__, fn.__qualname__)


def test_methods_of_objects():
    class Layer:
        def __init__(self, w, kind):
            self.w = w
            self.kind = kind

        @cuvil.jit
        def forward(self, x):
            y = x @ self.w
            return np.maximum(y, 0) if self.kind == "relu" else y

    a, b = Layer(np.eye(4, dtype=np.float32), "relu"), Layer(np.eye(4, dtype=np.float32) * 3, "none")
    np.testing.assert_array_equal(a.forward(X), np.maximum(X, 0))
    np.testing.assert_array_equal(b.forward(X), X * 3)
    a.w = np.eye(4, dtype=np.float32) * 10
    np.testing.assert_array_equal(a.forward(X), np.maximum(X * 10, 0))
    a.kind = "none"
    np.testing.assert_array_equal(a.forward(X), X * 10)
    a.w[0, 0] = -1
    np.testing.assert_array_equal(a.forward(X), X @ a.w)


def test_guards_are_checked_at_every_call():
    global SCALE, helper
    factor = 2.0

    def closure(x):
        return x * factor

    def defaulted(x, k=5):
        return x + k

    def through_helper(x):
        return helper(x)

    for fn in (globals_and_attributes, closure, defaulted, through_helper):
        compiled = cuvil.jit(fn)
        np.testing.assert_array_equal(compiled(X), fn(X))
        old_scale, old_helper = SCALE, helper
        try:
            SCALE, factor = -3.0, 7
            defaulted.__defaults__ = (11,)
            helper = lambda x: x - 100
            np.testing.assert_array_equal(compiled(X), fn(X))
        finally:
            SCALE, helper, factor = old_scale, old_helper, 2.0
        np.testing.assert_array_equal(compiled(X), fn(X))


def test_values_that_compare_equal_are_told_apart():
    def fn(x, k):
        return x * k

    compiled = cuvil.jit(fn)
    x = np.array([1, 2], np.int8)
    for k in (1, True, 1.0, np.int64(1), np.float32(1), -0.0, 0.0):
        d.same(fn(x, k), compiled(x, k))


def test_specialisations_of_shape_dtype_and_layout():
    def fn(x):
        return x / 2

    compiled = cuvil.jit(fn)
    for x in (np.array([1, 2], t) for t in (np.int32, np.float32, np.float64, np.float16, np.uint8)):
        d.same(fn(x), compiled(x))
    for x in (np.asfortranarray(np.ones((2, 2), np.float32)), np.ones((4, 4), np.float32)[::2, ::2], 3, 2.5):
        d.same(fn(x), compiled(x))
    many = cuvil.jit(lambda x: x + 1)
    for n in range(2, 40):
        many(np.ones(n))
    assert len(cuvil._cuvil.specialisations(many)) == 2


def test_traced_loop_over_many_iterations():
    def fn(x, n):
        y = x
        for i in range(n):
            y = y * 0.5 + i
            x[i % 3] += 1.0
        return y

    compiled = cuvil.jit(fn)
    for n in (0, 1, 2, 100, 1000):
        d.check(fn, np.linspace(0, 1, 12), n, compiled=compiled, mutates=True)


def test_run_time_integers():
    def fn(x, i, n):
        return x[i], x[i : i + 2] * n, np.zeros(n).sum() + n // 2 + n % 3, x + i * n, n - i

    compiled = cuvil.jit(fn)
    x = np.arange(10.0)
    for i, n in ((0, 3), (5, 4), (7, 2), (-3, 5)):
        d.check(fn, x, i, n, compiled=compiled)
    d.check(fn, x, 10, 2, compiled=compiled)
    d.check(fn, x, -11, 2, compiled=compiled)


def test_metadata_survives():
    def fn(x: np.ndarray, k: int = 2) -> np.ndarray:
        """Doc."""
        return x * k

    import inspect

    compiled = cuvil.jit(fn)
    assert compiled.__wrapped__ is fn
    assert (compiled.__name__, compiled.__doc__, compiled.__qualname__) == (
        fn.__name__,
        fn.__doc__,
        fn.__qualname__,
    )
    assert inspect.signature(compiled) == inspect.signature(fn)
    np.testing.assert_array_equal(compiled(X), X * 2)


def moving_mean(x, k=5):
    out = np.empty(x.shape[0] - k + 1, dtype=x.dtype)
    for i in range(out.shape[0]):
        out[i] = x[i : i + k].mean()
    return out


def test_slices_that_move_with_a_loop():
    compiled = cuvil.jit(moving_mean)
    for n, k in ((40, 5), (40, 7), (41, 7), (20, 20), (20, 1)):
        d.check(moving_mean, np.arange(n, dtype=np.float64) % 7, k, compiled=compiled)

    def short_at_the_ends(x, k):
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = x[max(i - 2, 0) : i + k].sum()
        return out

    for k in (1, 3, 50):
        d.check(short_at_the_ends, np.arange(9.0), k)


# ---- Python's ints do not overflow -----------------------------------------------------------------


def beyond_64_bits(n):
    return n * 2**62 * 4, n + 2**70


def negative(n):
    return -n, abs(n), ~n


def powers(n):
    return n * n * n, n**3, n * n, n * n * n * n * n * n


def sizes(n, x=np.ones((30, 40))):  # noqa: B008
    a, b = x.shape
    return a * b * a * b * a * b * n


@pytest.mark.parametrize("fn", [beyond_64_bits, negative, powers, sizes], ids=lambda f: f.__name__)
def test_large_ints(fn):
    compiled = cuvil.jit(fn, cache=False)
    for n in (3, 5, -(2**63), 2**63 - 1, 2**40, 2**31, 1000, 2**20, 2**63 + 1):
        d.check(fn, n, compiled=compiled)


def factorial(n):
    product = 1
    for i in range(1, n + 1):
        product = product * i
    return product


def decimal(digits):
    total = 0
    for i in range(len(digits)):
        total = total * 10 + int(digits[i])
    return total


@pytest.mark.parametrize(
    ("fn", "arguments"),
    [
        (factorial, [10, 20, 21, 30, 66, 5]),
        (decimal, [np.arange(1, n + 1) % 10 for n in (9, 12, 18, 19, 20, 30)]),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_an_int_that_grows_in_a_loop(fn, arguments):
    """As plain Python while 64 bits hold it; then an error, never a wrong number."""
    compiled = cuvil.jit(fn, cache=False)
    for argument in arguments:
        want = fn(argument)
        if abs(want) < 2**63:
            assert compiled(argument) == want
        else:
            with pytest.raises(cuvil.UnsupportedError, match="beyond 64 bits"):
                compiled(argument)
