"""Arguments are bound to parameters as Python binds them: values, order, and Python's own TypeErrors."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import itertools
import pickle
import weakref

import cuvil
import differential as d
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

X = np.arange(4.0)
Y = X * 10
Z = X - 3


@pytest.fixture(autouse=True, scope="module")
def only_this_process():
    """No code of other tests: what is compiled, and how often, is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE", "0")
        yield


# ---- every signature against every way to call it ----------------------------------------------------


def none():
    return 5


def one(a):
    return (a * 2,)


def two(a, b):
    return a * 2, b - 1


def defaults(a, b=2.5, c=X):
    return a * 2, b, c + 1


def all_defaults(a=Y, b=3, c=None):
    return a * 2, b, c


def keyword_only(a, *, b, c=7):
    return a * 2, b - 1, c


def keyword_only_defaults(a, *, b=1.5, c=Y):
    return a * 2, b, c * 2


def keyword_only_gap(*, a=1, b, c=3):
    return a, b, c


def positional_only(a, b=Z, /):
    return a * 2, b + 1


def all_kinds(a, b=4, /, c=5.5, *d, e, k=Y, **options):
    return a * 2, b, c, d, e, k + 1, options


def star(*args):
    return args, len(args)


def star_first(a, *args):
    y = a * 2
    for x in args:
        y = y + x
    return y


def star_keyword(*args, k, m=2):
    return args, k, m


def double_star(**options):
    return options


def name_of_positional_only_in_options(a, /, **options):
    return a * 2, options


def both_stars(a, *args, **options):
    return a + 1, args, list(options), options


def twenty(
    a, b, c, d=0, e=1, f=2, g=3, h=4, i=5, j=6, k=7, ll=8, m=9, n=10, o=11, p=12, q=13, r=14, s=15, *, t=16
):
    return a + 1, b, c, d, e, f, g, h, i, j, k, ll, m, n, o, p, q, r, s, t


def unicode_names(é, ß=2, *, 名=3):
    return é * 2, ß, 名


SIGNATURES = [
    none,
    one,
    two,
    defaults,
    all_defaults,
    keyword_only,
    keyword_only_defaults,
    keyword_only_gap,
    positional_only,
    all_kinds,
    star,
    star_first,
    star_keyword,
    double_star,
    name_of_positional_only_in_options,
    both_stars,
    twenty,
    unicode_names,
]
VALUES = [X, Y, Z, 3, 4.5, None]


def outcome(fn, args, kwargs):
    try:
        return "value", fn(*args, **kwargs)
    except Exception as error:
        return "error", error


def same_call(fn, compiled, args, kwargs):
    kind, want = outcome(fn, args, kwargs)
    got_kind, got = outcome(compiled, args, kwargs)
    assert got_kind == kind, (args, kwargs, want, got)
    if kind == "value":
        d.same(want, got)
        return
    assert type(got) is type(want), (args, kwargs, want, got)
    assert str(got) == str(want)


@pytest.mark.parametrize("fn", SIGNATURES, ids=lambda f: f.__name__)
def test_signature(fn):
    compiled = cuvil.jit(fn)
    names = ["a", "b", "c", "e", "k", "unknown"]
    sets = [()] + [(n,) for n in names] + [("b", "a"), ("a", "b"), ("c", "b"), ("e", "k"), ("z", "e")]
    for count, keywords in itertools.product(range(6), sets):
        args = tuple(VALUES[:count])
        kwargs = {name: VALUES[(count + i) % 3] for i, name in enumerate(keywords)}
        same_call(fn, compiled, args, kwargs)


@pytest.mark.parametrize("fn", [all_kinds, twenty, unicode_names], ids=lambda f: f.__name__)
def test_names_of_a_wide_signature(fn):
    compiled = cuvil.jit(fn)
    parameters = inspect.signature(fn).parameters
    for name in parameters:
        same_call(fn, compiled, (X, 1, 2), {name: 8})
        same_call(fn, compiled, (X,), {name: 8, "e": 1, "b": 2, "c": 3})
        same_call(fn, compiled, (), {other: 9 for other in parameters if other != name})
    same_call(fn, compiled, (X, *range(30)), {})
    same_call(fn, compiled, tuple([X] * 19), {"t": Y})


@given(data=st.data())
def test_random_calls(data):
    fn = data.draw(st.sampled_from(SIGNATURES))
    compiled = COMPILED[fn]
    args = tuple(data.draw(st.lists(st.sampled_from([X, Y, 7]), max_size=4)))
    names = data.draw(st.lists(st.sampled_from("abcdektz"), unique=True, max_size=3))
    same_call(fn, compiled, args, {name: 7 for name in names})


COMPILED = {fn: cuvil.jit(fn) for fn in SIGNATURES}


def test_more_arguments_than_fit_the_stack():
    compiled = cuvil.jit(both_stars)
    same_call(both_stars, compiled, tuple(X + i for i in range(40)), {})
    options = {f"k{i}": X * i for i in range(40)}
    same_call(both_stars, compiled, (X,), options)
    same_call(both_stars, compiled, (X, Y), dict(reversed(options.items())))


def test_order_of_keywords_is_kept():
    compiled = cuvil.jit(double_star)
    for names in itertools.permutations("pqr"):
        want = {name: X for name in names}
        got = compiled(**want)
        assert list(got) == list(names)


def test_keywords_that_are_no_strings():
    for fn in (one, double_star):
        compiled = cuvil.jit(fn)
        same_call(fn, compiled, (), {1: X})
        same_call(fn, compiled, (X,), {None: X})

    class Name(str):
        pass

    compiled = cuvil.jit(both_stars)
    same_call(both_stars, compiled, (), {Name("a"): X})
    same_call(both_stars, compiled, (X,), {Name("other"): X})


def test_keywords_with_a_name_that_is_not_interned():
    compiled = cuvil.jit(defaults)
    name = "".join(["", "b"])
    same_call(defaults, compiled, (X,), {name: Y})
    same_call(both_stars, cuvil.jit(both_stars), (), {"".join(["", "a"]): Y, "\ud800": X})


def test_an_error_binds_nothing():
    """A call that Python refuses compiles nothing and leaves the function as it was."""
    compiled = cuvil.jit(two)
    for args, kwargs in (((), {}), ((X,), {}), ((X, X, X), {}), ((X,), {"a": X}), ((X, X), {"q": X})):
        same_call(two, compiled, args, kwargs)
    assert cuvil._cuvil.specialisations(compiled) == []
    same_call(two, compiled, (X, Y), {})


def test_defaults_are_those_of_the_call():
    def fn(x, k=2, *, m=3):
        return x * k + m

    compiled = cuvil.jit(fn)
    same_call(fn, compiled, (X,), {})
    fn.__defaults__ = (5,)
    same_call(fn, compiled, (X,), {})
    compiled.__defaults__ = (X,)
    assert fn.__defaults__[0] is X
    same_call(fn, compiled, (X,), {})
    fn.__defaults__ = None
    same_call(fn, compiled, (X,), {})
    fn.__kwdefaults__ = {"m": Y}
    same_call(fn, compiled, (X, 2), {})
    fn.__kwdefaults__["m"] = 9
    same_call(fn, compiled, (X, 2), {})
    del fn.__kwdefaults__["m"]
    same_call(fn, compiled, (X, 2), {})
    fn.__kwdefaults__ = None
    same_call(fn, compiled, (X, 2), {})
    fn.__defaults__ = (1, 2)
    same_call(fn, compiled, (), {"m": 1})


def test_a_default_array_is_shared_between_calls():
    def fn(x, seen=np.zeros(4)):
        seen += x
        return seen

    compiled = cuvil.jit(fn)
    first = compiled(X)
    assert first is fn.__defaults__[0]
    np.testing.assert_array_equal(compiled(X), 2 * X)


def test_code_that_is_replaced():
    def fn(a, b=1):
        return a * b

    def other(b, *, a):
        return b - a

    compiled = cuvil.jit(fn)
    np.testing.assert_array_equal(compiled(X, Y), X * Y)
    fn.__code__ = other.__code__
    fn.__defaults__ = None
    same_call(other, compiled, (X,), {"a": Y})
    with pytest.raises(TypeError):
        compiled(X, Y)
    compiled.__code__ = one.__code__
    same_call(one, compiled, (X,), {})


# ---- methods and descriptors ----------------------------------------------------------------------------


class Layer:
    """What a class can do with a compiled function."""

    gain = 2.0

    def __init__(self, w):
        self.w = w

    @cuvil.jit
    def forward(self, x, scale=1.0):
        return x * self.w * scale

    @staticmethod
    @cuvil.jit
    def static(x, k=3):
        return x * k

    @classmethod
    @cuvil.jit
    def of_class(cls, x):
        return x * cls.gain

    @property
    @cuvil.jit
    def doubled(self):
        return self.w * 2

    @cuvil.jit
    def __call__(self, x):
        return x + self.w

    @cuvil.jit
    def __add__(self, other):
        return self.w + other

    @cuvil.jit
    def __getitem__(self, index):
        return self.w[index]

    @functools.cached_property
    @cuvil.jit
    def cached(self):
        return self.w * 7


class Wide(Layer):
    gain = 5.0

    @cuvil.jit
    def forward(self, x, scale=1.0):
        return x - self.w


def test_methods():
    layer, other = Layer(Y), Layer(Z)
    for obj in (layer, other, layer):
        d.same(X * obj.w, obj.forward(X))
        d.same(X * obj.w * 2.0, obj.forward(X, scale=2.0))
        d.same(X * obj.w, Layer.forward(obj, X))
        d.same(X * obj.w, type(obj).__dict__["forward"].__get__(obj, Layer)(X))
        d.same(X + obj.w, obj(X))
        d.same(obj.w + X, obj + X)
        d.same(obj.w[2], obj[2])
        d.same(obj.w * 2, obj.doubled)
        d.same(obj.w * 7, obj.cached)
        assert obj.cached is obj.cached
    bound = layer.forward
    assert bound.__self__ is layer and bound.__func__ is Layer.__dict__["forward"]
    layer.w = Z * 2
    d.same(X * layer.w, bound(X))


def test_methods_of_one_class_share_code():
    class Model:
        def __init__(self, w):
            self.w = w

        @cuvil.jit
        def forward(self, x):
            return x * self.w

    for k in range(5):
        d.same(X * (Y + k), Model(Y + k).forward(X))
    assert len(cuvil._cuvil.specialisations(Model.forward)) == 1


def test_static_and_class_methods():
    layer, wide = Layer(Y), Wide(Y)
    for owner in (Layer, layer, Wide, wide):
        d.same(X * 3, owner.static(X))
        d.same(X * 4, owner.static(X, k=4))
    d.same(X * 2.0, Layer.of_class(X))
    d.same(X * 2.0, layer.of_class(X))
    d.same(X * 5.0, Wide.of_class(X))
    d.same(X * 5.0, wide.of_class(X))
    Layer.gain = 3.0
    try:
        d.same(X * 3.0, Layer.of_class(X))
    finally:
        Layer.gain = 2.0
    d.same(X - Y, wide.forward(X))


def test_method_errors_are_pythons():
    class Model:
        @cuvil.jit
        def forward(self, x, *, k=1):
            return x * k

    plain = Model.forward.__wrapped__
    model = Model()
    for args, kwargs in (((), {}), ((X, X), {}), ((X,), {"q": 1}), ((X,), {"x": X}), ((X,), {"self": 1})):
        with pytest.raises(TypeError) as want:
            plain(model, *args, **kwargs)
        with pytest.raises(TypeError) as got:
            model.forward(*args, **kwargs)
        assert str(got.value) == str(want.value)
    with pytest.raises(TypeError) as want:
        plain()
    with pytest.raises(TypeError) as got:
        Model.forward()
    assert str(got.value) == str(want.value)


def test_jit_above_staticmethod_says_what_to_do():
    for kind in (staticmethod, classmethod):
        with pytest.raises(cuvil.UnsupportedError, match=f"put @{kind.__name__} above"):
            cuvil.jit(kind(one))
    with pytest.raises(cuvil.UnsupportedError, match="bound method"):
        cuvil.jit(Layer(X).__init__)


def test_jit_of_a_compiled_function():
    compiled = cuvil.jit(cuvil.jit(two))
    assert compiled.__wrapped__ is two
    same_call(two, compiled, (X, Y), {})


def test_descriptor_protocol():
    compiled = cuvil.jit(one)
    assert compiled.__get__(None, int) is compiled
    d.same((X * 2,), compiled.__get__(X)())
    with pytest.raises(TypeError):
        compiled.__get__()

    class Slots:
        __slots__ = ("w",)

        @cuvil.jit
        def scale(self, x):
            return x * self.w

    s = Slots()
    s.w = 3
    d.same(X * 3, s.scale(X))
    s.w = Y
    d.same(X * Y, s.scale(X))
    del s.w
    with pytest.raises(AttributeError):
        s.scale(X)


def test_tools_of_the_standard_library():
    compiled = cuvil.jit(defaults)
    d.same(defaults(X, 3), functools.partial(compiled, b=3)(X))
    d.same(defaults(X, 3), functools.partial(compiled, X)(3))

    @functools.wraps(compiled)
    def around(*args):
        return compiled(*args)

    assert around.__name__ == "defaults" and around.__wrapped__ is compiled
    assert inspect.signature(cuvil.jit(keyword_only)) == inspect.signature(keyword_only)
    assert inspect.unwrap(around) is defaults
    assert list(map(cuvil.jit(star_first), [X, Y]))[1][1] == 20
    assert callable(compiled) and copy.copy(compiled) is compiled and copy.deepcopy(compiled) is compiled
    assert weakref.ref(compiled)() is compiled
    assert {compiled: 1}[compiled] == 1

    class Base(abc.ABC):
        @abc.abstractmethod
        @cuvil.jit
        def forward(self, x):
            return x * 2

        part = functools.partialmethod(forward, X)

    with pytest.raises(TypeError, match="abstract"):
        Base()

    class Derived(Base):
        @cuvil.jit
        def forward(self, x):
            return super(Derived, self).forward(x) + 1

    assert Derived.__mro__[1].forward.__isabstractmethod__


@cuvil.jit
def importable(x):
    return x * 2


def test_pickle():
    assert pickle.loads(pickle.dumps(importable)) is importable
    assert pickle.loads(pickle.dumps(Layer.forward)) is Layer.forward
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(cuvil.jit(lambda x: x))


def test_attributes_are_the_functions_own():
    def fn(x):
        "Doc."
        return x * 2

    fn.tag = 5
    compiled = cuvil.jit(fn)
    assert compiled.tag == 5
    compiled.other = 6
    assert compiled.__dict__ == {"tag": 5, "other": 6} and not hasattr(fn, "other")
    compiled.__name__ = "renamed"
    compiled.__doc__ = "New."
    assert fn.__name__ == "renamed" and fn.__doc__ == "New."
    assert fn.__module__ == compiled.__module__ == __name__
    assert compiled.__globals__ is fn.__globals__ and compiled.__closure__ is fn.__closure__
    assert "test_attributes_are_the_functions_own" in repr(compiled)
    with pytest.raises(AttributeError):
        compiled.nothing
    with pytest.raises(AttributeError):
        compiled.__wrapped__ = 3
    with pytest.raises(TypeError):
        del compiled.__name__
    with pytest.raises(TypeError):
        compiled.__code__ = 3
    np.testing.assert_array_equal(compiled(X), X * 2)


# ---- compile() and get_compiled_module() bind alike -------------------------------------------------------


def test_compile_binds_like_a_call():
    for args, kwargs in (((X,), {"q": 1}), ((), {}), ((X, X, X), {}), ((), {"a": X})):
        with pytest.raises(TypeError) as want:
            two(*args, **kwargs)
        if not kwargs:
            with pytest.raises(TypeError) as got:
                cuvil.compile(two, args)
            assert str(got.value) == str(want.value)
            if args:
                with pytest.raises(TypeError) as got:
                    cuvil.get_compiled_module(cuvil.jit(two), *args)
                assert str(got.value) == str(want.value)
        elif not args:
            with pytest.raises(TypeError) as got:
                cuvil.compile(two, kwargs)
            assert str(got.value) == str(want.value)
    with pytest.raises(TypeError, match="keywords must be strings"):
        cuvil.compile(both_stars, {1: X})
    compiled = cuvil.compile(defaults, {"a": X})
    assert len(cuvil._cuvil.specialisations(compiled)) == 1
    same_call(defaults, compiled, (X,), {})
    assert len(cuvil._cuvil.specialisations(compiled)) == 1


def test_compile_does_not_run_the_function():
    def fn(x, out):
        out += x
        return out

    out = np.zeros(4)
    compiled = cuvil.compile(fn, (X, out))
    assert not out.any()
    compiled(X, out)
    np.testing.assert_array_equal(out, X)


def test_compile_from_hints_of_positional_only_parameters():
    def fn(x, /, y, *, z):
        return x + y + z

    hint = {name: ((4,), "f8") for name in "xyz"}
    compiled = cuvil.compile(fn, shape_hint=hint)
    assert len(cuvil._cuvil.specialisations(compiled)) == 1
    d.same(X + Y + Z, compiled(X, Y, z=Z))
    assert len(cuvil._cuvil.specialisations(compiled)) == 1
