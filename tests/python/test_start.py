"""Starting: what a process finds of another's work, and the ways in which programs are started.

Each program here is a process of its own. tests/python/test_cache.py has the cache itself: damaged files,
directories that cannot be trusted, eviction.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile

import cuvil
import pytest
from test_cache import files, run, start, write


@pytest.fixture
def cache(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("CUVIL_CACHE", "1")
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(path))
    return path


# Ends a program: `f` gives what plain Python gives; prints how many specialisations came from the cache.
CHECK = """
def same(got, want):
    if isinstance(want, (tuple, list)):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, (np.ndarray, np.generic)):
        ok = type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
        return ok and got.tobytes() == want.tobytes()
    return type(got) is type(want) and got == want

def check(f, *args, **kwargs):
    got, want = f(*args, **kwargs), f.__wrapped__(*args, **kwargs)
    assert same(got, want), (got, want, cuvil.explain(f))
"""
HITS = "print(cuvil.cache.info().hits)\n"


def program(path, text, *, ends=HITS):
    """A program whose text may use ``check(f, *args)``; it prints its hits."""
    head = "import os, sys, numpy as np, cuvil\n" + CHECK
    path.write_text(head + textwrap.dedent(text) + textwrap.dedent(ends))
    return path


# ---- importing ----------------------------------------------------------------------------------------


def test_import_adds_only_its_own_modules(tmp_path):
    path = write(
        tmp_path / "p.py",
        """
        import sys, numpy
        had = set(sys.modules)
        import cuvil
        print(*sorted(set(sys.modules) - had))
        """,
    )
    new = run(path)[0].split()
    assert "cuvil._cuvil" in new
    # What costs next to nothing, or is there already whichever NumPy it is.
    cheap = {"__future__", "types", "collections.abc"}
    foreign = [name for name in new if name.partition(".")[0] != "cuvil" and name not in cheap]
    assert not foreign, foreign


def test_no_module_that_import_adds_is_heavy(tmp_path):
    path = write(tmp_path / "p.py", "import numpy\nimport cuvil\n")
    best: dict[str, float] = {}
    # Bytecode is there when users import it, whatever this environment does about writing any.
    env = {"PYTHONPYCACHEPREFIX": str(tmp_path / "pyc"), "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(5):  # the best of 5: other processes disturb single ones
        names = []
        for line in run(path, "-X", "importtime", env=env)[1].splitlines():
            self_us, _, name = line.removeprefix("import time:").split("|")
            if self_us.strip().isdigit():
                names.append((name.strip(), int(self_us) / 1000))
        # A module is listed when it is done: all after NumPy is Cuvil's doing.
        done = [name for name, _ in names].index("numpy")
        for name, ms in names[done + 1 :]:
            best[name] = min(ms, best.get(name, ms))
    assert "cuvil" in best and "cuvil._cuvil" in best
    heavy = {name: ms for name, ms in best.items() if ms > 3}
    assert not heavy, heavy


# ---- sources that move, change and go away ----------------------------------------------------------


def test_an_edited_helper_compiles_again_and_a_comment_does_not(cache, tmp_path):
    helper = tmp_path / "helper.py"
    path = program(
        tmp_path / "p.py",
        """
        import helper
        f = cuvil.jit(lambda x: helper.scaled(x) + 1)
        x = np.arange(4.0)
        check(f, x)
        print(f(x)[1], end=" ")
        """,
    )

    def edit(text, age):
        """Times differ by minutes: Python itself asks them whether its .pyc is of this text."""
        helper.write_text(text)
        os.utime(helper, (1e9 + age, 1e9 + age))
        return run(path)[0]

    text = "def scaled(x):\n    return x * 2\n"
    assert edit(text, 0) == "3.0 0"
    assert edit(text, 1000) == "3.0 1"  # the same bytes, another time
    assert edit("# A comment.\n\n" + text.replace("2\n", "2  # twice\n"), 2000) == "3.0 1"
    assert edit(text.replace("2", "5"), 3000) == "6.0 0"
    assert edit(text, 4000) == "3.0 1"


def test_errors_name_the_line_that_a_comment_moved(cache, tmp_path):
    text = """
        import traceback
        @cuvil.jit
        def f(x, k):
            # first
            return x[k] + 1
        f(np.arange(4.0), 1)
        try:
            f(np.arange(4.0), 7)
        except IndexError as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            print(place.lineno, place.line, end=" ")
        """
    path = program(tmp_path / "p.py", text)
    line = path.read_text().splitlines().index("    return x[k] + 1") + 1
    assert run(path)[0] == f"{line} return x[k] + 1 0"
    program(path, text.replace("# first", "# first\n            # second"))
    assert run(path)[0] == f"{line + 1} return x[k] + 1 1"
    program(path, text.replace("        @cuvil.jit", "        # above\n        @cuvil.jit"))
    assert run(path)[0] == f"{line + 1} return x[k] + 1 1"


MODEL = """
import cuvil, numpy as np

def helper(x):
    return np.tanh(x)

@cuvil.jit
def f(x, scale=2.0, *, shift=1):
    "What -OO leaves out."
    return helper(x) * scale + shift
"""
CALLS_MODEL = """
import model
x = np.arange(4.0)
check(model.f, x)
check(model.f, x, 3.0)
check(model.f, x=x, scale=3.0)
check(model.f, shift=2, x=x)
"""


def test_without_sources_and_elsewhere_it_is_found(cache, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    write(place / "model.py", MODEL)
    path = program(tmp_path / "p.py", CALLS_MODEL)
    paths = [str(place), os.environ.get("PYTHONPATH", "")]
    env = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    assert run(path, env=env)[0] == "0"
    hits = run(path, env=env)[0]
    assert int(hits) >= 1
    compileall = [sys.executable, "-m", "compileall", "-q", "-b", str(place)]
    subprocess.run(compileall, check=True, cwd=tmp_path)
    (place / "model.py").unlink()
    shutil.rmtree(place / "__pycache__", ignore_errors=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env["CUVIL_COMPILER_PATH"] = "/nonexistent"
    assert run(path, env=env, cwd=elsewhere)[0] == hits
    # Moved: the .pyc still names the place where it was compiled.
    place.rename(elsewhere / "place")
    env["PYTHONPATH"] = env["PYTHONPATH"].replace(str(place), str(elsewhere / "place"))
    assert run(path, env=env, cwd=elsewhere)[0] == hits


def test_without_sources_and_cache_it_says_so(cache, tmp_path):
    write(tmp_path / "model.py", MODEL)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", "model.py"], check=True, cwd=tmp_path)
    (tmp_path / "model.py").unlink()
    path = program(
        tmp_path / "p.py",
        """
        import model
        try:
            model.f(np.ones(3))
        except cuvil.UnsupportedError as error:
            assert "source of function `f`" in str(error) and "help:" in str(error)
            print("refused", end=" ")
        """,
    )
    assert run(path)[0] == "refused 0"


def test_a_relative_script_that_changes_directory(cache, tmp_path):
    (tmp_path / "other").mkdir()
    program(
        tmp_path / "p.py",
        """
        os.chdir("/")
        f = cuvil.jit(lambda x: x * 2)
        check(f, np.arange(4.0))
        """,
    )
    assert run("p.py", cwd=tmp_path)[0] == "0"
    assert run("p.py", cwd=tmp_path)[0] == "1"
    assert run("../p.py", cwd=tmp_path / "other", env={"CUVIL_COMPILER_PATH": "/nonexistent"})[0] == "1"


@pytest.mark.parametrize("first", ["", "-O", "-OO"])
def test_asserts_are_of_the_interpreter_that_runs(cache, tmp_path, first):
    path = program(
        tmp_path / "p.py",
        """
        @cuvil.jit
        def f(x):
            "Documentation."
            assert x.ndim == 2, "rank"
            return x + (1 if __debug__ else 5)
        for x in (np.ones((2, 2)), np.ones(3)):
            try:
                check(f, x)
                print(f(x).flat[0], end=" ")
            except AssertionError as error:
                assert str(error) == "rank"
                print("asserted", end=" ")
        """,
        ends="",
    )
    want = {"": "2.0 asserted", "-O": "6.0 6.0", "-OO": "6.0 6.0"}
    for flag in [first, "", "-O", "-OO", ""]:
        assert run(path, *[flag] * bool(flag))[0] == want[flag]


@pytest.mark.parametrize(
    "before, after",
    [
        ("x + 1", "x + 2"),
        ("x + 1", "x + 1.0"),
        ("x + 1", "x - 1"),
        ("x * 0.0", "x * -0.0"),
        ("x + (1, 2)", "x + (1.0, 2.0)"),
        ("x + 1", "x\n\ndef g(x):\n    return x + 1"),
        ("x + helper(x)", "x - helper(x)"),
        ("x + 1", None),
    ],
)
def test_a_file_edited_after_import_never_gives_other_code(cache, tmp_path, before, after):
    text = "def helper(x):\n    return x * 3\n\ndef f(x):\n    return {}\n"
    (tmp_path / "model.py").write_text(text.format(before))
    path = program(
        tmp_path / "p.py",
        """
        import model
        x = np.array([-1, 2])
        edited = os.environ["EDITED"]
        if edited:
            open(model.__file__, "w").write(edited)
        else:
            os.remove(model.__file__)
        f = cuvil.jit(model.f)
        try:
            check(f, x)
        except cuvil.UnsupportedError as error:
            assert "source" in str(error) and "model.py" in str(error) and "import" in str(error)
        """,
    )
    run(path, env={"EDITED": text.format(after) if after else ""})
    # Nothing wrong is left in the cache for those who come after, with either text.
    for k, now in enumerate([before, after or before]):
        (tmp_path / "model.py").write_text(text.format(now))
        os.utime(tmp_path / "model.py", (1e9 + 1000 * k,) * 2)  # Python compares times, too
        run(path, env={"EDITED": text.format(now)})


def test_a_helper_edited_after_import_never_gives_other_code(cache, tmp_path):
    helper = "def helper(x):\n    return x * {}\n"
    (tmp_path / "helper.py").write_text(helper.format(3))
    path = program(
        tmp_path / "p.py",
        """
        import helper
        open(helper.__file__, "w").write(open(helper.__file__).read().replace("3", "4"))
        f = cuvil.jit(lambda x: helper.helper(x))
        try:
            check(f, np.arange(4.0))
        except cuvil.UnsupportedError as error:
            assert "source" in str(error) and "helper.py" in str(error)
            print("refused", end=" ")
        """,
    )
    assert run(path)[0] == "refused 0"


def test_defaults_and_keywords_of_a_warm_start(cache, tmp_path):
    write(tmp_path / "model.py", MODEL)
    path = program(tmp_path / "p.py", CALLS_MODEL)
    run(path)
    made = len(files(cache))
    assert int(run(path, env={"CUVIL_COMPILER_PATH": "/nonexistent"})[0]) == made


# ---- what a function relies on, in another process ------------------------------------------------

# Name: a value of V, another value, and what defines `f` by it.
KINDS = {
    "list as a whole": ("[3, 2]", "[3, 4]", "f = cuvil.jit(lambda x: x * sorted(V)[0])"),
    "global int": ("2", "3", "f = cuvil.jit(lambda x: x * V)"),
    "global int of many digits": ("2**100", "2**101", "f = cuvil.jit(lambda x: x * float(V))"),
    "global float": ("2.5", "3.5", "f = cuvil.jit(lambda x: x * V)"),
    "global str": ("'a'", "'b'", "f = cuvil.jit(lambda x: x * 2 if V == 'a' else x)"),
    "global bool": ("True", "False", "f = cuvil.jit(lambda x: x * 2 if V else x)"),
    "global None": ("None", "0", "f = cuvil.jit(lambda x: x * 2 if V is None else x * V)"),
    "global tuple": ("(1, 2)", "(1, 3)", "f = cuvil.jit(lambda x: x * V[0] + V[1])"),
    "global slice": ("slice(0, 2)", "slice(0, 3)", "f = cuvil.jit(lambda x: x[V])"),
    "global list": ("[1, 2]", "[1, 2, 3]", "f = cuvil.jit(lambda x: x * V[0] + len(V))"),
    "global dict": ("{'a': 1}", "{'a': 2}", "f = cuvil.jit(lambda x: x * V['a'])"),
    "True and 1": ("True", "1", "f = cuvil.jit(lambda x: x.astype('i1') * V)"),
    "1 and 1.0": ("1", "1.0", "f = cuvil.jit(lambda x: x.astype('i4') * V)"),
    "True and 1.0 in a tuple": ("(True,)", "(1.0,)", "f = cuvil.jit(lambda x: x.astype('i4') * V[0])"),
    "0.0 and -0.0": ("0.0", "-0.0", "f = cuvil.jit(lambda x: x * V)"),
    "1.0 and nan": ("1.0", "float('nan')", "f = cuvil.jit(lambda x: x * V)"),
    "np.float32 scalar": ("np.float32(0.1)", "np.float32(0.2)", "f = cuvil.jit(lambda x: x * V)"),
    "scalars of two types": ("np.float32(0.5)", "np.float64(0.5)", "f = cuvil.jit(lambda x: x * V)"),
    "scalar and float": ("0.5", "np.float64(0.5)", "f = cuvil.jit(lambda x: x * V)"),
    "dtype": ("np.dtype('f4')", "np.dtype('f8')", "f = cuvil.jit(lambda x: x.astype(V))"),
    "class of a dtype": ("np.float32", "np.float64", "f = cuvil.jit(lambda x: x.astype(V))"),
    "attribute of a dtype": (
        "np.dtype('f4')",
        "np.dtype('f8')",
        "f = cuvil.jit(lambda x: x * np.finfo(V).eps if x.dtype == V else x * V.itemsize)",
    ),
    "shape of an array": (
        "[[1.0, 2], [3, 4]]",
        "[[1.0], [2], [3], [4]]",
        "W = np.array(V)\nf = cuvil.jit(lambda x: x.reshape(W.shape) + W)",
    ),
    "dtype of an array": ("'f4'", "'f8'", "W = np.arange(4, dtype=V)\nf = cuvil.jit(lambda x: x * W)"),
    "strides of an array": (
        "0",
        "(slice(None), 1)",
        "W = np.arange(16.0).reshape(4, 4)[V]\nf = cuvil.jit(lambda x: x * W)",
    ),
    "number of arrays in a list": (
        "[2.0, 3.0]",
        "[2.0, 3.0, 4.0]",
        """
        W = [np.full(4, v) for v in V]
        @cuvil.jit
        def f(x):
            for w in W:
                x = x * w
            return x
        """,
    ),
    "attribute of a module": (
        "2",
        "3",
        "m = types.ModuleType('m')\nm.k = V\nf = cuvil.jit(lambda x: x * m.k)",
    ),
    "module replaced": (
        "np",
        "types.SimpleNamespace(sqrt=np.square)",
        "f = cuvil.jit(lambda x: V.sqrt(x))",
    ),
    "constant of NumPy": ("3.14", "3.0", "np.pi = V\nf = cuvil.jit(lambda x: x * np.pi)"),
    "name of a function of NumPy": ("np.maximum", "np.minimum", "f = cuvil.jit(lambda x: V(x, 2))"),
    "name of a builtin": ("0", "1", "if V:\n    len = lambda x: 7\nf = cuvil.jit(lambda x: x * len(x))"),
    "function": ("plus", "minus", "f = cuvil.jit(lambda x: V(x, 2 * x))"),
    "function with parameters in another order": (
        "minus",
        "minus_swapped",
        "f = cuvil.jit(lambda x: V(x, 2 * x))",
    ),
    "method of a class": (
        "plus",
        "minus",
        "class C:\n    m = V\no = C()\nf = cuvil.jit(lambda x: C.m(x, 2 * x))",
    ),
    "default of a function": ("2", "3", "def h(x, k=V):\n    return x * k\nf = cuvil.jit(lambda x: h(x))"),
    "keyword default of a function": (
        "2",
        "3",
        "def h(x, *, k=V):\n    return x * k\nf = cuvil.jit(lambda x: h(x))",
    ),
    "closure of a function": ("times(2)", "times(3)", "f = cuvil.jit(lambda x: V(x))"),
    "closure cell": ("2", "3", "f = cuvil.jit(times(V))"),
    "default argument": ("(2, 2)", "(4, 1)", "@cuvil.jit\ndef f(x, k=V):\n    return x.reshape(k)"),
    "keyword default argument": (
        "(2, 2)",
        "(4, 1)",
        "@cuvil.jit\ndef f(x, *, k=V):\n    return x.reshape(k)",
    ),
    "attribute of an object": (
        "2",
        "3",
        "o = types.SimpleNamespace(k=V)\nf = cuvil.jit(lambda x: x * o.k)",
    ),
    "attribute that may be missing": (
        "{}",
        "{'k': 1}",
        "o = types.SimpleNamespace(**V)\nf = cuvil.jit(lambda x: x * 2 if hasattr(o, 'k') else x)",
    ),
    "attribute of a class": (
        "2",
        "3",
        "class C:\n    k = V\no = C()\nf = cuvil.jit(lambda x: x * o.k + C.k)",
    ),
    "attribute of a base class": (
        "2",
        "3",
        "class B:\n    k = V\nclass C(B):\n    pass\no = C()\nf = cuvil.jit(lambda x: x * o.k)",
    ),
    "property": (
        "2",
        "3",
        "class C:\n    p = property(lambda self: V)\no = C()\nf = cuvil.jit(lambda x: x * o.p)",
    ),
    "bound method": (
        "2",
        "3",
        """
        class C:
            def __init__(self, k):
                self.k = k
            def m(self, x):
                return x * self.k
        m = C(V).m
        f = cuvil.jit(lambda x: m(x))
        """,
    ),
    "value of an enum": ("2", "3", "E = enum.Enum('E', {'A': V})\nf = cuvil.jit(lambda x: x * E.A.value)"),
    "item of a named tuple": ("'a b'", "'b a'", "o = pair(V)(1, 2)\nf = cuvil.jit(lambda x: x * o.a)"),
    "fields of a named tuple": (
        "'a b'",
        "'b a'",
        "Pair = pair(V)\nf = cuvil.jit(lambda x: Pair(x, 2 * x).a)",
    ),
    "default of a named tuple": (
        "1",
        "2",
        "Pair = pair('a b', V)\nf = cuvil.jit(lambda x: x * Pair(x).b)",
    ),
    "base of a class": (
        "()",
        "(int,)",
        "C = type('C', V, {})\no = C()\nf = cuvil.jit(lambda x: x * 2 if isinstance(o, int) else x)",
    ),
    "base of a class that is asked": (
        "()",
        "(int,)",
        "C = type('C', V, {})\nf = cuvil.jit(lambda x: x * 2 if issubclass(C, int) else x)",
    ),
    "name of a class": (
        "'C'",
        "'Longer'",
        "C = type('C', (), {})\nC.__name__ = V\no = C()\nf = cuvil.jit(lambda x: x * len(type(o).__name__))",
    ),
    "order of a dict": (
        "{'a': 1, 'b': 2}",
        "{'b': 2, 'a': 1}",
        """
        @cuvil.jit
        def f(x):
            for k in V:
                x = x * V[k] + 1
            return x
        """,
    ),
    "order of a set": (
        "1",
        "2",
        """
        @cuvil.jit
        def f(x):
            for k in {V, 8, 3}:
                x = x * k + 1
            return x
        """,
    ),
}

# Here another value is no reason to compile again: it is read at each call.
READ_AT_EACH_CALL = {
    "array": ("[1.0, 2, 3, 4]", "[4.0, 3, 2, 1]", "W = np.array(V)\nf = cuvil.jit(lambda x: x * W)"),
    "argument with a default": ("2", "3", "@cuvil.jit\ndef f(x, k=V):\n    return x * k"),
    "array as a default": (
        "[1.0, 2]",
        "[3.0, 4]",
        "@cuvil.jit\ndef f(x, k=np.array(V)):\n    return x[:2] * k",
    ),
}

# Only the process that compiled can check these: never a hit.
IN_MEMORY_ONLY = {
    "whether objects can be called": (
        "{}",
        "{'__call__': plus}",
        "C = type('C', (), V)\no = C()\nf = cuvil.jit(lambda x: x * 2 if callable(o) else x)",
    ),
    "int of a subclass": (
        "2",
        "3",
        "E = enum.IntEnum('E', {'A': V})\nf = cuvil.jit(lambda x: x * E.A)",
    ),
    "float of a subclass": (
        "2.1",
        "3.1",
        "o = type('Float', (float,), {})(V)\nf = cuvil.jit(lambda x: x * o)",
    ),
    "set": ("'abc'", "'abcd'", "W = set(V)\nf = cuvil.jit(lambda x: x * 2 if 'd' in W else x)"),
    "member of an enum": (
        "1",
        "2",
        "E = enum.Enum('E', 'A B')\no = E(V)\nf = cuvil.jit(lambda x: x * 2 if o is E.A else x)",
    ),
    "text of a member of an enum": (
        "1",
        "222",
        "E = enum.Enum('E', {'a' * V: V})\no = E(V)\nf = cuvil.jit(lambda x: x * len(f'{o}'))",
    ),
}

HELPERS = """
import collections, enum, types

def plus(x, y):
    return x + y

def minus(x, y):
    return x - y

def minus_swapped(y, x):
    return x - y

def times(k):
    return lambda x: x * k

def pair(fields, *defaults):
    return collections.namedtuple("Pair", fields, defaults=defaults, module=__name__)
"""


@pytest.fixture(scope="module")
def hits_of(tmp_path_factory):
    """Of each kind: the hits of four processes with the value, the other one, and both again; or an error.

    All kinds are modules that a few processes import, one after another: starting one takes longer than
    what it is started for.
    """
    place = tmp_path_factory.mktemp("kinds")
    kinds = {**KINDS, **READ_AT_EACH_CALL, **IN_MEMORY_ONLY}
    for k, (value, other, define) in enumerate(kinds.values()):
        head = f"V = {value} if os.environ['WHICH'] == '0' else {other}\n"
        text = HELPERS + head + textwrap.dedent(define) + "\nx = np.arange(1, 5, dtype=np.float32)\n"
        program(place / f"kind_{k}.py", text, ends="")
    path = program(
        place / "p.py",
        """
        for k in range(int(os.environ["KINDS"])):
            os.environ["CUVIL_CACHE_DIR"] = os.path.join(os.environ["CACHES"], str(k))  # some have equal code
            before = cuvil.cache.info().hits
            try:
                kind = __import__(f"kind_{k}")
                check(kind.f, kind.x)
                print(cuvil.cache.info().hits - before)
            except Exception as error:
                print(repr(error))
            np.pi = 3.14
        """,
        ends="",
    )
    env = {"CUVIL_CACHE": "1", "CACHES": str(place / "caches"), "KINDS": str(len(kinds))}
    lines = [run(path, env={**env, "WHICH": which})[0].splitlines() for which in "0101"]
    return dict(zip(kinds, zip(*lines, strict=True), strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_another_process_with_another_value_compiles(hits_of, name):
    assert hits_of[name] == ("0", "0", "1", "1")


@pytest.mark.parametrize("name", READ_AT_EACH_CALL)
def test_another_process_reads_another_value(hits_of, name):
    assert hits_of[name] == ("0", "1", "1", "1")


@pytest.mark.parametrize("name", IN_MEMORY_ONLY)
def test_what_another_process_cannot_check_is_compiled_there(hits_of, name):
    assert hits_of[name] == ("0", "0", "0", "0")


@pytest.mark.parametrize(
    "patch, function",
    [
        ("np.maximum = np.minimum", "np.maximum(x, 2)"),
        ("np.sum = np.max", "np.sum(x)"),
        ("np.clip = lambda x, a, b: x + a", "np.clip(x, 0, 1)"),
        ("math.sqrt = lambda v: v", "x * math.sqrt(4.0)"),
        ("builtins.abs = lambda v: v", "abs(-x)"),
    ],
)
def test_a_function_that_was_patched_before_the_first_call(cache, tmp_path, patch, function):
    text = f"""
        import builtins, math
        if "PATCH" in os.environ:
            {patch}
        f = cuvil.jit(lambda x: {function})
        try:
            check(f, np.arange(1, 5, dtype=np.float32))
        except cuvil.UnsupportedError:
            print("refused", end=" ")
        """
    path = program(tmp_path / "p.py", text)
    assert run(path)[0] == "0"
    assert run(path, env={"PATCH": "1"})[0] in ("0", "refused 0")
    assert run(path)[0] == "1"
    # And with no cache at all.
    assert run(path, env={"PATCH": "1", "CUVIL_CACHE": "0"})[0] in ("0", "refused 0")


def test_the_order_of_a_frozenset_is_of_the_process(cache, tmp_path):
    text = """
        W = frozenset(["a", "bb", "ccc", "dddd"])
        @cuvil.jit
        def f(x):
            for k in W:
                x = x * len(k) + 1
            return x
        check(f, np.arange(4.0))
        """
    path = program(tmp_path / "p.py", text, ends="")
    for seed in "0", "1", "2":  # Python's own seed of the hashes of str
        run(path, env={"PYTHONHASHSEED": seed})


def test_true_and_1_as_arguments_are_different(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        f = cuvil.jit(lambda x, k: x * k)
        g, h, i = cuvil.jit(lambda x: x * True), cuvil.jit(lambda x: x * 1), cuvil.jit(lambda x: x * 1.0)
        values = [True, 1, 1.0, np.True_, np.int64(1), np.float32(1), np.float64(1), 2, 2.0]
        for x in np.ones(3, np.int8), np.ones(3, np.float32), np.int8(1):
            for k in reversed(values) if "BACK" in os.environ else values:
                check(f, x, k)
            for constant in g, h, i:
                check(constant, x)
        print(cuvil.cache.info().misses, end=" ")
        """,
    )
    misses, hits = map(int, run(path)[0].split())
    assert hits == 0 and misses >= 3 * 7 + 9
    assert run(path, env={"BACK": "1"})[0] == f"0 {misses}"


# What ends a program that hangs.
WATCH = "import faulthandler\nfaulthandler.dump_traceback_later(5, exit=True)\n"

# A module that calls its own function while it is imported, and is imported by a program.
CALLS_ITSELF = """
import cuvil, numpy as np

class Settings:
    scale = 2.0

{define}
x = np.arange(4.0)
np.testing.assert_array_equal(f(x), f.__wrapped__(x))
"""


@pytest.mark.parametrize(
    "define",
    [
        "f = cuvil.jit(lambda x: x * 2)",
        "def g(x):\n    return x + 1\nf = cuvil.jit(lambda x: g(x))",
        "f = cuvil.jit(lambda x: x * Settings.scale)",
    ],
    ids=["nothing", "function", "class"],
)
def test_a_call_while_its_module_is_imported(cache, tmp_path, define):
    write(tmp_path / "model.py", CALLS_ITSELF.format(define=define))
    path = tmp_path / "p.py"
    path.write_text(WATCH + "import cuvil, model\n" + HITS)
    assert run(path)[0] == "0"
    assert run(path)[0] == "1"


# ---- where it starts ------------------------------------------------------------------------------


ONE_CALL = "f = cuvil.jit(lambda x, y: np.maximum(x @ y, 0))\ncheck(f, np.ones((3, 3)), np.ones((3, 3)))\n"


@pytest.mark.parametrize("path", ["", None, "/nonexistent"])
def test_no_program_of_the_system_is_needed(cache, tmp_path, path):
    p = program(tmp_path / "p.py", ONE_CALL)
    for hits in "0", "1":
        assert run(p, env={"PATH": path}) == (hits, "")


def test_a_home_that_cannot_be_made_is_one_warning(tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        for k in range(3):
            f = cuvil.jit([lambda x: x + 1, lambda x: x + 2, lambda x: x + 3][k])
            check(f, np.arange(4.0))
        """,
    )
    env = {"CUVIL_CACHE": None, "CUVIL_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": "/proc/nowhere"}
    out, error = run(path, env=env)
    assert out == "0" and error.count("CuvilPerformanceWarning") == 1 and "/proc/nowhere" in error


def test_without_home_the_cache_is_where_xdg_says(tmp_path):
    path = program(tmp_path / "p.py", ONE_CALL)
    env = {
        "CUVIL_CACHE": None,
        "CUVIL_CACHE_DIR": None,
        "HOME": None,
        "XDG_CACHE_HOME": str(tmp_path / "xdg"),
    }
    for hits in "0", "1":
        assert run(path, env=env) == (hits, "")
    assert len(files(tmp_path / "xdg" / "cuvil")) == 1


def test_one_cpu(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        f = cuvil.jit(lambda x, y: np.maximum(x @ y, 0).sum(axis=0))
        for n in (3, 400):
            x = np.arange(n * n, dtype=np.float64).reshape(n, n) % 7
            check(f, x, x)
        assert cuvil.runtime.num_threads() == 1
        """,
    )
    path.write_text("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + path.read_text())
    assert run(path)[0] == "0"
    assert int(run(path)[0]) >= 1


def test_a_frozen_application(cache, tmp_path):
    """What freezers do: ``sys.frozen`` is set, and there are no sources, only a .pyc."""
    write(tmp_path / "model.py", MODEL)
    path = program(tmp_path / "p.py", CALLS_MODEL)
    path.write_text("import sys\nsys.frozen, sys._MEIPASS = True, '/nonexistent'\n" + path.read_text())
    assert run(path)[0] == "0"
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", "model.py"], check=True, cwd=tmp_path)
    (tmp_path / "model.py").unlink()
    assert int(run(path)[0]) == len(files(cache))


@pytest.mark.parametrize("kind", ["py", "pyc"])
def test_a_module_in_a_zip_file(cache, tmp_path, kind):
    """Found in the cache by its code; compiled there, or refused with the reason."""
    (tmp_path / "plain").mkdir()
    write(tmp_path / "plain" / "model.py", MODEL)
    compileall = [sys.executable, "-m", "compileall", "-q", "-b", "model.py"]
    subprocess.run(compileall, check=True, cwd=tmp_path / "plain")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as app:
        app.write(tmp_path / "plain" / f"model.{kind}", f"model.{kind}")
    path = program(
        tmp_path / "p.py",
        """
        sys.path.insert(0, os.environ["PLACE"])
        import model
        assert os.environ["PLACE"] in model.__file__
        x = np.arange(4.0)
        try:
            check(model.f, x)
        except cuvil.UnsupportedError as error:
            assert "source of function `f` was not found" in str(error) and "help:" in str(error)
            print("refused", end=" ")
        """,
    )
    zipped, plain = {"PLACE": str(tmp_path / "app.zip")}, {"PLACE": str(tmp_path / "plain")}
    cold = run(path, env=zipped)[0]
    assert cold in ("0", "refused 0")
    if cold == "refused 0":
        assert run(path, env=plain)[0] == "0"
    assert run(path, env=zipped)[0] == "1"


# ---- many at once -----------------------------------------------------------------------------------


def many_functions(n):
    """The text of n small functions, no two alike, and a call of each."""
    lines = ["functions = []"]
    for k in range(n):
        lines += [f"@cuvil.jit\ndef f{k}(x):\n    return x * {k}.5 + {k}", f"functions.append(f{k})"]
    return "\n".join([*lines, "x = np.arange(4.0)", "for f in functions:", "    check(f, x)\n"])


@pytest.mark.slow
def test_sixteen_processes_fill_one_cache(cache, tmp_path):
    path = program(tmp_path / "p.py", many_functions(20))
    processes = [start(path) for _ in range(16)]
    for process in processes:
        out, error = process.communicate(timeout=300)
        assert process.returncode == 0 and not error, error
        assert 0 <= int(out) <= 20
    left = [p for p in cache.rglob("*") if p.is_file()]
    assert sorted(left) == files(cache) and len(left) == 20  # all whole, nothing of writers left
    assert run(path)[0] == "20"


@pytest.mark.slow
def test_a_thousand_functions_are_all_found(cache, tmp_path):
    path = program(tmp_path / "p.py", many_functions(1000))
    assert run(path)[0] == "0"
    assert run(path, env={"CUVIL_COMPILER_PATH": "/nonexistent"})[0] == "1000"


def test_threads_share_a_compile_and_a_hit(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        import threading
        from cuvil import _cuvil
        @cuvil.jit
        def f(x):
            return np.exp(x) * 2 + x.sum()
        x = np.arange(4.0)
        barrier, wrong = threading.Barrier(16), []
        def work():
            barrier.wait()
            got = f(x)
            if not np.allclose(got, f.__wrapped__(x)):
                wrong.append(got)
        threads = [threading.Thread(target=work) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong
        (row,) = _cuvil.specialisations(f)
        info = cuvil.cache.info()
        print(row["calls"], info.misses, info.hits, info.entries)
        """,
        ends="",
    )
    assert run(path)[0] == "16 1 0 1"
    assert run(path)[0] == "16 0 1 1"


def test_a_forked_child_reads_and_fills_the_cache(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
        f, g, h = (cuvil.jit(lambda x: x * 2), cuvil.jit(lambda x: x * 3), cuvil.jit(lambda x: x * 4))
        x = np.arange(4.0)
        check(f, x)
        children = []
        for k in range(4):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    for function in f, g, h:
                        check(function, x)
                    check(f, x.astype(np.float32))
                    cuvil.runtime.wait_for_compilation()
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        for function in f, g, h:
            check(function, x)
        check(f, x.astype(np.float32))
        """,
    )
    assert run(path)[0] == "3"  # what the children compiled
    assert run(path)[0] == "4"
    assert sorted(p for p in cache.rglob("*") if p.is_file()) == files(cache)


MAKE = """
def make(k):
    def f(x):
        return x * k + k
    return cuvil.jit(f)
x = np.arange(4.0)
"""


def test_functions_at_exit_compile(tmp_path):
    path = program(
        tmp_path / "p.py",
        MAKE
        + """
import atexit
@atexit.register  # runs last
def late():
    for k in range(20):
        check(make(k), x)
    print("late", flush=True)
check(make(30), x)
""",
        ends="",
    )
    for interpret in None, "0":
        assert run(path, env={"CUVIL_CACHE": "0", "CUVIL_INTERPRET": interpret}) == ("late", "")


def test_a_fork_and_the_end_do_not_wait_for_threads_that_compile_on(tmp_path):
    path = program(
        tmp_path / "p.py",
        MAKE
        + """
import itertools, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
def work(first):
    for k in itertools.count(first):
        make(k)(x)
for n in range(3):
    threading.Thread(target=work, args=(10_000 * n,), daemon=True).start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    check(make(7), x)
    cuvil.runtime.wait_for_compilation()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("end", flush=True)
""",
        ends="",
    )
    assert run(path, env={"CUVIL_CACHE": "0"}) == ("end", "")


def test_what_compiles_before_a_fork_does_not_wait_for_itself(tmp_path):
    path = program(
        tmp_path / "p.py",
        MAKE
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
os.register_at_fork(before=lambda: check(make(3), x))  # runs last, its machine code is waited for
check(make(1), x)
child = os.fork()
if child == 0:
    check(make(5), x)
    os._exit(0)
print(os.waitpid(child, 0)[1])
""",
        ends="",
    )
    assert run(path, env={"CUVIL_CACHE": "0", "CUVIL_INTERPRET": "0"}) == ("0", "")


@pytest.mark.parametrize("body", ["x * settings.n", "x * 2 + len(str(settings.n))"])
def test_an_interrupt_while_a_call_compiles_is_raised(tmp_path, body):
    path = program(
        tmp_path / "p.py",
        f"""
        import signal
        class Settings:
            @property
            def n(self):
                os.kill(os.getpid(), signal.SIGINT)
                return 3
        settings = Settings()
        @cuvil.jit
        def f(x):
            return {body}
        try:
            f(np.arange(4.0))
        except KeyboardInterrupt:
            print("interrupted")
        """,
        ends="",
    )
    assert run(path, env={"CUVIL_CACHE": "0"}) == ("interrupted", "")


def test_python_runs_while_compiled_code_does(tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        import threading, time
        cuvil.runtime.set_num_threads(1)
        @cuvil.jit
        def work(x, n):
            for i in range(n):
                x = np.tanh(x)
            return x
        x = np.ones(100_000)
        work(x, 2)
        start = time.perf_counter()
        work(x, 10)
        n = int(10 * 0.3 / (time.perf_counter() - start)) + 1  # for 0.3 s
        count, spans = 0, []
        def call():
            before = count, time.perf_counter()
            work(x, n)
            spans.append((count - before[0], time.perf_counter() - before[1]))
        thread = threading.Thread(target=call)
        start = time.perf_counter()
        while time.perf_counter() - start < 0.1:  # how fast this loop is alone
            count += 1
        alone = count / 0.1
        thread.start()
        while thread.is_alive():
            time.perf_counter()
            count += 1
        ((counted, seconds),) = spans
        print(counted / (alone * seconds))
        """,
        ends="",
    )
    # With the GIL held it would be 5 ms of the 300, the interval of a switch.
    assert float(run(path)[0]) > 0.1


def test_a_value_of_the_calling_thread(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        import threading
        local = threading.local()
        local.k = 2.0
        check(cuvil.jit(lambda x: x * local.k), np.arange(4.0))
        """,
        ends="",
    )
    run(path)


def test_a_lock_that_the_caller_holds(cache, tmp_path):
    path = program(
        tmp_path / "p.py",
        """
        import threading
        class Settings:
            lock = threading.RLock()
            @property
            def scale(self):
                with self.lock:
                    return 2.0
        settings = Settings()
        f = cuvil.jit(lambda x: x * settings.scale)
        with settings.lock:
            check(f, np.arange(4.0))
        """,
        ends="",
    )
    path.write_text(WATCH + path.read_text())
    run(path)


# ---- large functions and small stacks -----------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        " + ".join(["x"] * 300),
        "(" * 90 + "x" + " + x)" * 90,
        "np.tanh(" * 80 + "x" + ")" * 80,
        "-" * 80 + "x",
        "[" * 80 + "x" + "]" * 80 + "[0]" * 80,
    ],
    ids=["sum", "parentheses", "calls", "signs", "lists"],
)
def test_a_thread_with_a_small_stack_compiles(cache, tmp_path, expression):
    path = program(
        tmp_path / "p.py",
        f"""
        import threading
        threading.stack_size(512 * 1024)
        @cuvil.jit
        def f(x):
            return {expression}
        def work():
            x = np.ones(3)
            np.testing.assert_allclose(f(x), f.__wrapped__(x), rtol=1e-12)
            print("done", end=" ")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    )
    assert run(path)[0] == "done 0"
    assert run(path)[0] == "done 1"


@pytest.mark.parametrize("kernels", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_function_of_many_kernels(tmp_path, kernels):
    body = "".join(f"    s{k} = x.sum()\n    x = x * 0.5 + s{k} * 0.01\n" for k in range(kernels // 2))
    path = program(
        tmp_path / "p.py",
        "@cuvil.jit\ndef f(x):\n"
        + body
        + "    return x\n"
        + "x = np.arange(8.0)\n"
        + "np.testing.assert_allclose(f(x), f.__wrapped__(x), rtol=1e-12)\n"
        + "print(len(cuvil.get_compiled_module(f).dump_schedule().kernels))\n",
        ends="",
    )
    assert int(run(path)[0]) > 0.9 * kernels


@pytest.mark.slow
def test_a_chain_of_twenty_thousand_operations(tmp_path):
    chain = "".join(f"    x = x * 0.5 + {k}\n" for k in range(10_000))
    ends = """
        x = np.arange(8.0)
        try:
            np.testing.assert_array_equal(f(x), f.__wrapped__(x))
        except cuvil.UnsupportedError:
            pass
        """
    path = program(tmp_path / "p.py", "@cuvil.jit\ndef f(x):\n" + chain + "    return x\n", ends=ends)
    run(path)


# ---- beside another LLVM ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["cuvil, llvmlite.binding", "llvmlite.binding, cuvil"])
def test_beside_llvmlite(tmp_path, order):
    pytest.importorskip("llvmlite")
    path = write(
        tmp_path / "p.py",
        f"""
        import ctypes, numpy as np
        import {order}
        from llvmlite import binding

        def theirs():
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            text = "define i32 @twice(i32 %a) {{ %b = add i32 %a, %a ret i32 %b }}"
            machine = binding.Target.from_default_triple().create_target_machine()
            engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
            engine.finalize_object()
            twice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(engine.get_function_address("twice"))
            assert twice(21) == 42

        def ours(k):
            x = np.arange(4.0)
            f = cuvil.jit([lambda x: np.tanh(x) * 2, lambda x: np.sqrt(x).sum()][k])
            np.testing.assert_allclose(f(x), f.__wrapped__(x), rtol=1e-12)

        calls = [lambda: ours(0), theirs, lambda: ours(1), theirs]
        for call in calls if "{order}".startswith("cuvil") else reversed(calls):
            call()
        print("done")
        """,
    )
    assert run(path)[0] == "done"


@pytest.mark.parametrize("order", ["cuvil, torch", "torch, cuvil"])
def test_beside_torch(tmp_path, order):
    if not importlib.util.find_spec("torch"):
        pytest.skip("torch is not installed")
    path = write(
        tmp_path / "p.py",
        f"""
        import numpy as np
        import {order}

        f = cuvil.jit(lambda x, w: np.maximum(x @ w, 0))
        x, w = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
        for k in range(2):
            want = torch.relu(torch.from_numpy(x) @ torch.from_numpy(w)).numpy()
            np.testing.assert_array_equal(f(x, w), want)
            cuvil.runtime.wait_for_compilation()
        print("done")
        """,
    )
    assert run(path)[0] == "done"


def test_no_symbol_of_llvm_is_visible():
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    here = os.path.dirname(cuvil.__file__)
    libraries = [os.path.join(here, name) for name in os.listdir(here) if name.endswith(".so")]
    assert len(libraries) == 3
    for library in libraries:
        nm = ["nm", "-D", "--defined-only", library]
        symbols = subprocess.run(nm, capture_output=True, text=True, check=True).stdout.splitlines()
        assert symbols and not [line for line in symbols if "llvm" in line.lower()], library
