"""Functions that assert. They live here because pytest rewrites the asserts of test modules, and the
compiler refuses a function whose code isn't that of its source."""


def docstring_and_assert(x):
    """Doc."""
    assert x.ndim == 2, "two dimensions"
    del_me = 1
    del del_me
    return x + 1


def one_dimension(x):
    assert x.ndim == 1, "one dimension, please"
    return x
