"""One test for each message a user can meet: class, file, line, caret, what was found, what to do."""

from __future__ import annotations

import datetime
import gc
import inspect

import cuvil
import functions
import numpy as np
import pytest

X = np.ones((2, 3), np.float32)


def raises(fn, args, error, *texts, plain_also=True, **options):
    """Call compiled ``fn``; check class and text, location, and that the function is usable afterwards."""
    compiled = cuvil.jit(fn, **options)
    with pytest.raises(error) as info:
        compiled(*args)
    text = str(info.value)
    for t in texts:
        assert t in text, text
    if isinstance(info.value, cuvil.CuvilError):
        assert __file__ in text, text
        lines = text.splitlines()
        caret = next(i for i, line in enumerate(lines) if line.strip() and set(line.strip()) <= {"^", "~"})
        source = lines[caret - 1]
        assert any(source.strip() in line for line in inspect.getsource(fn).splitlines()), text
        first, count = fn.__code__.co_firstlineno, len(inspect.getsource(fn).splitlines())
        assert any(f"{__file__}:{n}:" in text for n in range(first, first + count)), text
    with pytest.raises(error):  # still the same error, not a broken state
        compiled(*args)
    return text


# ---- arrays that are not numbers -------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        np.array([object()]),
        np.array(["a"]),
        np.array([datetime.date(2020, 1, 1)], "M8[D]"),
        np.zeros(2, [("a", "f4")]),
    ],
    ids=["object", "str", "datetime", "structured"],
)
def test_dtype_of_an_argument(x):
    def fn(x):
        return x

    compiled = cuvil.jit(lambda x: x * 2)
    with pytest.raises(cuvil.DTypeError) as info:
        compiled(x)
    assert "x" in str(info.value) and str(x.dtype) in str(info.value)
    assert isinstance(info.value, TypeError)
    np.testing.assert_array_equal(compiled(np.ones(2)), [2, 2])


def test_write_to_a_read_only_array():
    def fn(a):
        a[0] = 1

    a = np.zeros(3)
    a.flags.writeable = False
    raises(fn, (a,), ValueError, "read-only")
    assert a[0] == 0


# ---- shapes ------------------------------------------------------------------------------------------


def test_shapes_that_do_not_broadcast():
    def fn(a, b):
        return a + b

    text = raises(fn, (np.ones((2, 3)), np.ones((2, 4))), cuvil.ShapeError, "(2,3)", "(2,4)", "return a + b")
    assert "^" in text
    assert issubclass(cuvil.ShapeError, ValueError)


def test_shapes_that_do_not_multiply():
    def fn(a, b):
        return a @ b

    raises(fn, (np.ones((2, 3)), np.ones((4, 5))), cuvil.ShapeError, "(2,3)", "(4,5)")


def test_reshape_to_another_size():
    def fn(a):
        return a.reshape(5, 2)

    raises(fn, (X,), ValueError, "(2,3)")


def test_shape_of_a_store():
    def fn(a, b):
        a[0] = b

    raises(fn, (np.ones((2, 3)), np.ones(4)), ValueError)


# ---- hints -------------------------------------------------------------------------------------------


def test_hint_with_an_unknown_name():
    with pytest.raises((TypeError, ValueError, cuvil.CuvilError)) as info:

        @cuvil.jit(shape_hint={"y": (2, 3)})
        def fn(x):
            return x

    assert "'y'" in str(info.value) and "x" in str(info.value)


@pytest.mark.parametrize("shape", [(2.5,), "abc", (2, -3), 7, (None, [1])])
def test_hint_that_is_no_shape(shape):
    with pytest.raises((TypeError, ValueError, cuvil.CuvilError)) as info:
        cuvil.jit(lambda x: x, shape_hint={"x": shape})
    assert "x" in str(info.value)


def test_hint_of_another_rank():
    compiled = cuvil.jit(lambda x: x * 2, shape_hint={"x": (2, 3, 4)})
    with pytest.raises(cuvil.ShapeError) as info:
        compiled(X)
    assert "x" in str(info.value) and "3" in str(info.value) and "2" in str(info.value)


def test_hint_of_another_size_runs():
    compiled = cuvil.jit(lambda x: x * 2, shape_hint={"x": (2, 3)})
    np.testing.assert_array_equal(compiled(np.ones((5, 7))), np.full((5, 7), 2.0))


# ---- what is not compiled ------------------------------------------------------------------------------


def data_branch(x):
    if x.sum() > 0:
        return x
    return -x


def data_while(x):
    while x.sum() < 10:
        x = x * 2
    return x


def printing(x):
    print(x)
    return x + 1


def fancy(x):
    return x[x > 0]


def with_statement(x):
    with np.errstate(all="ignore"):
        return x / 0


def try_statement(x):
    try:
        return x + 1
    except ValueError:
        return x


def importing(x):
    import math

    return x * math.pi


def class_statement(x):
    class A:
        pass

    return x


def global_statement(x):
    global X
    X = 3
    return x


def unknown_function(x):
    return np.fft.fft(x)


def yield_in_lambda(x):
    f = lambda: (yield)
    return x


@pytest.mark.parametrize(
    "fn",
    [
        data_branch,
        data_while,
        printing,
        fancy,
        with_statement,
        try_statement,
        class_statement,
        global_statement,
        unknown_function,
        yield_in_lambda,
    ],
    ids=lambda f: f.__name__,
)
def test_unsupported(fn):
    text = raises(fn, (X,), cuvil.UnsupportedError)
    assert len(text.splitlines()) >= 3


def generator(x):
    yield x


async def coroutine(x):
    return x


async def async_generator(x):
    yield x


class Model:
    pass


@pytest.mark.parametrize("thing", [generator, coroutine, async_generator, Model, 3, np.add, len], ids=repr)
def test_what_cannot_be_decorated(thing):
    with pytest.raises((cuvil.UnsupportedError, TypeError)) as info:
        cuvil.jit(thing)
    assert str(info.value)


def test_options_are_checked():
    for options in (
        {"device": "gpu"},
        {"precision": "fast"},
        {"autotune": "maybe"},
        {"memory": "huge"},
        {"strict": 3},
        {"shape_hint": [1]},
        {"unknown": 1},
    ):
        with pytest.raises((TypeError, ValueError, cuvil.CuvilError)):
            cuvil.jit(lambda x: x, **options)


# ---- Python's own exceptions ------------------------------------------------------------------------------


def test_names():
    def fn(x):
        return x + undefined_name  # noqa: F821

    raises(fn, (X,), NameError, "undefined_name")


def test_unbound_local():
    def fn(x):
        if x.ndim > 5:
            y = x
        return y

    raises(fn, (X,), UnboundLocalError, "y")


def test_attributes():
    def fn(x):
        return x.nonsense

    raises(fn, (X,), AttributeError, "nonsense")


def test_module_attributes():
    def fn(x):
        return np.nonsense(x)

    raises(fn, (X,), AttributeError, "nonsense")


def test_raise_keeps_class_and_text():
    def fn(x, n):
        if n < 0:
            raise ValueError(f"n must not be negative, got {n}")
        return x * n

    compiled = cuvil.jit(fn)
    with pytest.raises(ValueError, match="n must not be negative, got -1"):
        compiled(X, -1)
    np.testing.assert_array_equal(compiled(X, 2), X * 2)


def test_assert_keeps_its_text():
    raises(functions.one_dimension, (X,), AssertionError, "one dimension, please")


def test_call_with_wrong_arguments_inside():
    def helper(a, b):
        return a + b

    def fn(x):
        return helper(x)

    raises(fn, (X,), TypeError, "missing 1 required positional argument: 'b'")


def test_zero_division():
    def fn(x):
        return x + 1 // 0

    raises(fn, (X,), ZeroDivisionError)


def test_bool_minus_bool():
    def fn(a, b):
        return a - b

    raises(fn, (np.array([True]), np.array([True])), TypeError, "subtract")


def test_integer_to_a_negative_power():
    def fn(a, b):
        return a**b

    raises(lambda a: a**-1, (np.array([1, 2]),), ValueError, "negative integer power")
    raises(fn, (np.array([1, 2]), np.array([1, -2])), ValueError, "negative integer power")


def test_python_int_out_of_bounds():
    def fn(x):
        return x + 300

    raises(fn, (np.array([1, 2], np.uint8),), OverflowError, "300", "uint8")


def test_empty_maximum():
    def fn(x):
        return x.max()

    raises(fn, (np.zeros(0),), ValueError, "zero-size array")


def test_recursion_without_end():
    def fn(x):
        return fn_again(x)

    def fn_again(x):
        return fn(x)

    raises(fn, (X,), (RecursionError, cuvil.UnsupportedError))


def test_traced_variable_that_changes_shape_in_a_loop():
    def fn(x, n):
        for i in range(n):
            x = x[1:]
        return x

    raises(fn, (np.ones(100), 50), cuvil.UnsupportedError, "x")


def test_errors_do_not_leak():
    def fn(a, b):
        return a + b

    compiled = cuvil.jit(fn)

    def provoke():
        for _ in range(50):
            try:
                compiled(np.ones((2, 3)), np.ones((2, 4)))
            except ValueError:
                pass
            try:
                compiled(np.ones(3))
            except TypeError:
                pass

    provoke()
    gc.collect()
    before = len(gc.get_objects())
    provoke()
    gc.collect()
    assert len(gc.get_objects()) - before < 50
