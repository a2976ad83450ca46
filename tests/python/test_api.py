"""The public interface: options, what can be looked at, and what results are."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import cuvil
import differential as d
import numpy as np
import pytest
from cuvil import _cuvil
from cuvil.module import Buffer, CompiledModule, Kernel, MemoryPlan, Schedule

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def layer(x, w):
    return np.maximum(x @ w, 0) * 2 + 1


def python(*arguments, **environment):
    """Runs a fresh interpreter; variables of Cuvil come from `environment` only."""
    kept = ("CUVIL_CACHE", "CUVIL_CACHE_DIR")
    variables = {k: v for k, v in os.environ.items() if k in kept or not k.startswith("CUVIL_")}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=variables | environment,
        cwd="/",  # not beside the sources of the package
    )


@pytest.fixture(autouse=True, scope="module")
def only_this_process():
    """No code of other tests: what is compiled, and how often, is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUVIL_CACHE", "0")
        yield


# ---- options -----------------------------------------------------------------------------------------


def test_decorator_forms():
    @cuvil.jit
    def bare(x):
        return x * 2

    @cuvil.jit()
    def called(x):
        return x * 2

    @cuvil.jit(shape_hint={"x": (3, 4)}, strict=True, cache=False, device="cpu")
    def with_options(x):
        return x * 2

    for fn in (bare, called, with_options, cuvil.jit(lambda x: x * 2), cuvil.compile(bare.__wrapped__)):
        assert isinstance(fn, _cuvil.CompiledFunction)
        np.testing.assert_array_equal(fn(X), X * 2)
    with pytest.raises(TypeError):
        cuvil.jit(bare, {"x": (3, 4)})
    with pytest.raises(TypeError):
        cuvil.jit(fn=bare)


@pytest.mark.parametrize(
    "options",
    [
        {"device": "auto"},
        {"device": "cpu"},
        {"precision": "strict"},
        {"strict": True},
        {"strict": False},
        {"cache": True},
        {"cache": False},
        {"background": False},
        {"background": True},
        {"memory": "fast"},
        {"autotune": "off"},
        {"target_cpu": None},
        {"target_cpu": "x86-64-v2"},
        {"target_cpu": "x86-64-v3"},
        {"profile_hooks": ()},
        {"profile_hooks": []},
        {"shape_hint": None},
        {"shape_hint": {}},
    ],
    ids=repr,
)
def test_values_of_options(options):
    compiled = cuvil.jit(layer, **options)
    np.testing.assert_allclose(compiled(X, X.T), layer(X, X.T), rtol=1e-5)


@pytest.mark.parametrize(
    "options, error",
    [
        ({"device": "cuda"}, cuvil.UnsupportedError),
        ({"device": "cuda:1"}, cuvil.UnsupportedError),
        ({"device": "gpu"}, ValueError),
        ({"device": None}, ValueError),
        ({"device": 3}, ValueError),
        ({"device": ["cpu"]}, ValueError),
        ({"device": X}, ValueError),
        ({"precision": "mixed"}, cuvil.UnsupportedError),
        ({"precision": "fast"}, ValueError),
        ({"precision": None}, ValueError),
        ({"precision": X}, ValueError),
        ({"background": 0}, ValueError),
        ({"memory": "small"}, cuvil.UnsupportedError),
        ({"memory": 3}, ValueError),
        ({"autotune": "on"}, cuvil.UnsupportedError),
        ({"autotune": True}, ValueError),
        ({"strict": 1}, ValueError),
        ({"strict": "yes"}, ValueError),
        ({"cache": None}, ValueError),
        ({"target_cpu": 3}, ValueError),
        ({"target_cpu": ""}, ValueError),
        ({"target_cpu": "a\0b"}, ValueError),
        ({"profile_hooks": (print,)}, cuvil.UnsupportedError),
        ({"profile_hooks": print}, TypeError),
        ({"profile_hooks": (1,)}, TypeError),
        ({"unknown": 1}, TypeError),
    ],
    ids=repr,
)
def test_values_that_options_do_not_take(options, error):
    with pytest.raises(error) as info:
        cuvil.jit(layer, **options)
    assert next(iter(options)) in str(info.value)
    with pytest.raises(error):
        cuvil.jit(**options)
    with pytest.raises(error):
        cuvil.compile(layer, (X, X.T), **options)


def test_a_cpu_that_does_not_exist():
    compiled = cuvil.jit(layer, target_cpu="pentium-9000")
    for _ in range(2):
        with pytest.raises(cuvil.UnsupportedError, match="pentium-9000"):
            compiled(X, X.T)


def test_a_cpu_that_this_machine_is_not():
    extensions = cuvil.runtime.list_devices()[0].vector_extensions
    if "avx512bf16" in extensions and "avx512f" in extensions:
        target = "x86-64-v3"
        compiled = cuvil.jit(layer, target_cpu=target)
        np.testing.assert_allclose(compiled(X, X.T), layer(X, X.T), rtol=1e-5)
        assert "zmm" not in cuvil.get_compiled_module(compiled).asm()
    else:
        with pytest.raises(cuvil.DeviceError, match="this machine"):
            cuvil.jit(layer, target_cpu="sapphirerapids")(X, X.T)


# ---- shape_hint ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint, error",
    [
        ({"x": 7}, cuvil.ShapeError),
        ({"x": "abc"}, cuvil.ShapeError),
        ({"x": None}, cuvil.ShapeError),
        ({"x": (2.5,)}, cuvil.ShapeError),
        ({"x": (-2,)}, cuvil.ShapeError),
        ({"x": (True,)}, cuvil.ShapeError),
        ({"x": ("",)}, cuvil.ShapeError),
        ({"x": (None, [1])}, cuvil.ShapeError),
        ({"x": (2**63,)}, cuvil.ShapeError),
        ({"x": (10**30,)}, cuvil.ShapeError),
        ({"x": ((2, 3), "no dtype")}, cuvil.ShapeError),
        ({"x": ((2, 3), 5)}, cuvil.ShapeError),
        ({"x": ((2, 3), "f4,(")}, cuvil.ShapeError),
        ({"x": ((2, 3), (4, 5))}, cuvil.ShapeError),
        ({"x": ((2, 3), "U5")}, cuvil.DTypeError),
        ({"x": ((2, 3), object)}, cuvil.DTypeError),
        ({"x": ((2, 3), ">f8")}, cuvil.DTypeError),
        ({"x": ((2, 3), [("a", "f4")])}, cuvil.DTypeError),
        ({"y": (2, 3)}, cuvil.ShapeError),
        ({3: (2, 3)}, cuvil.ShapeError),
        ({"args": (2, 3)}, cuvil.ShapeError),
        ({"options": (2, 3)}, cuvil.ShapeError),
        ([("x", (2, 3))], TypeError),
        ("x", TypeError),
    ],
    ids=repr,
)
def test_hints_that_are_none(hint, error):
    def fn(x, *args, **options):
        return x

    with pytest.raises(error) as info:
        cuvil.jit(fn, shape_hint=hint)
    text = str(info.value)
    assert "shape_hint" in text and (not isinstance(hint, dict) or repr(next(iter(hint))) in text)
    with pytest.raises(error):
        cuvil.jit(shape_hint=hint)(fn)


@pytest.mark.parametrize(
    "hint",
    [
        (3, 4),
        [3, 4],
        (None, 4),
        (-1, -1),
        ("n", 4),
        ("n", "m"),
        ("n", "n"),
        (np.int64(3), 4),
        (5, 6),
        ((3, 4), "f4"),
        ([3, 4], np.float32),
        ((None, "n"), np.dtype("f4")),
        ((3, 4), None),
    ],
    ids=repr,
)
def test_hints_that_are_taken(hint):
    def fn(x):
        return x * 2 + x.sum()

    compiled = cuvil.jit(fn, shape_hint={"x": hint})
    for shape in ((3, 4), (5, 4), (6, 6), (1, 4), (0, 4), (2, 3)):
        x = np.ones(shape, np.float32)
        d.check(fn, x, compiled=compiled, ulp=2)


def test_hints_decide_what_is_compiled():
    def count(hint, shapes):
        compiled = cuvil.jit(lambda x: x + 1, shape_hint=hint)
        for shape in shapes:
            d.same(np.full(shape, 2.0), compiled(np.ones(shape)))
        return len(_cuvil.specialisations(compiled))

    assert count({"x": (None, 4)}, [(3, 4), (5, 4), (7, 4)]) == 1
    assert count({"x": ("n", "m")}, [(3, 4), (5, 6), (7, 7)]) == 1
    assert count({"x": ("n", "n")}, [(3, 3), (5, 5), (7, 7)]) == 1
    assert count({"x": ("n", "n")}, [(3, 3), (5, 6)]) == 2  # contradicts, and runs
    assert count({"x": (3, 4)}, [(3, 4), (3, 4)]) == 1
    assert count({"x": (3, 4)}, [(3, 4), (5, 6), (7, 8)]) == 2
    assert count(None, [(3, 4), (5, 4), (7, 4)]) == 2


def test_names_of_hints_tie_arguments_together():
    compiled = cuvil.jit(lambda x, y: x + y, shape_hint={"x": ("n",), "y": ("n",)})
    for n in (3, 4, 9):
        compiled(np.ones(n), np.ones(n))
    assert len(_cuvil.specialisations(compiled)) == 1
    d.same(np.full(5, 2.0), compiled(np.ones(5), np.ones(1)))


def test_hints_of_another_rank_or_dtype():
    compiled = cuvil.jit(lambda x: x * 2, shape_hint={"x": ((3, 4), "f4")})
    for _ in range(2):
        with pytest.raises(cuvil.ShapeError, match=r"'x' has 1 axis, its shape_hint has 2"):
            compiled(np.ones(3, np.float32))
        with pytest.raises(cuvil.DTypeError, match=r"'x' is of dtype float64, its shape_hint says float32"):
            compiled(np.ones((3, 4)))
        compiled(X)
    for scalar in (2, 2.5, None):  # no arrays: the hint says nothing about them
        try:
            compiled(scalar)
        except TypeError:
            assert scalar is None
    assert cuvil.jit(lambda x: x * 2, shape_hint={"x": ((2,), np.longlong)})(np.ones(2, np.int64))[0] == 2


def test_a_hint_is_of_the_parameter_not_of_an_option():
    """``x`` may be the name of a positional-only parameter and of an item of ``**options``."""

    def fn(x, /, **options):
        return x * 2, options["x"] + 1

    compiled = cuvil.jit(fn, shape_hint={"x": (3, 4)})
    d.same(fn(X, x=np.ones(5)), compiled(X, x=np.ones(5)))


# ---- looking inside --------------------------------------------------------------------------------------


def test_compiled_module():
    compiled = cuvil.jit(layer)
    with pytest.raises(ValueError, match="has not been compiled"):
        cuvil.get_compiled_module(compiled)
    module = cuvil.get_compiled_module(compiled, X, X.T)
    assert isinstance(module, CompiledModule)
    assert module.signature == "x: float32[3, 4], w: float32[4, 3] F"
    assert repr(module) == "<CompiledModule of layer(x: float32[3, 4], w: float32[4, 3] F)>"
    assert _cuvil.specialisations(compiled)[0]["calls"] == 0
    compiled(X, X.T)
    compiled(X.astype(np.float64), X.T.astype(np.float64))
    assert "float64" in cuvil.get_compiled_module(compiled).signature  # the last run
    assert [m.signature for m in module.specialisations][0] == module.signature
    assert len(module.specialisations) == 2
    assert all(name and milliseconds >= 0 for name, milliseconds in module.stages)
    compiled(X, X.T)
    assert "float32" in cuvil.get_compiled_module(compiled).signature
    for wrong in (layer, None, 3):
        with pytest.raises(TypeError, match="cuvil.jit"):
            cuvil.get_compiled_module(wrong)
        with pytest.raises(TypeError, match="cuvil.jit"):
            cuvil.get_compiled_module(wrong, X)
        with pytest.raises(TypeError, match="cuvil.jit"):
            cuvil.explain(wrong)


def test_schedule_and_memory_plan():
    def fn(x, w):
        y = x @ w
        z = y - y.max(axis=1, keepdims=True)
        return np.exp(z) @ w.T

    compiled = cuvil.jit(fn)
    module = cuvil.get_compiled_module(compiled, X, X.T.copy())
    schedule = module.dump_schedule()
    assert isinstance(schedule, Schedule) and schedule.kernels
    assert repr(schedule) == f"<Schedule of {len(schedule.kernels)} kernels>"
    for kernel in schedule.kernels:
        assert isinstance(kernel, Kernel) and kernel.name in str(schedule)
        assert kernel.ops and kernel.writes and all(isinstance(n, (int, str)) for n in kernel.shape)
    assert any("matmul" in kernel.ops for kernel in schedule.kernels)
    plan = module.memory_plan()
    assert isinstance(plan, MemoryPlan) and str(plan)
    assert 0 <= plan.lower_bound_bytes <= plan.arena_bytes <= plan.lower_bound_bytes * 1.02 + 64 * 4
    for buffer in plan.buffers:
        assert isinstance(buffer, Buffer) and buffer.start <= buffer.end
        if buffer.scope == "arena":
            assert 0 <= buffer.offset and buffer.offset + buffer.size <= plan.arena_bytes
    placed = [b for b in plan.buffers if b.scope == "arena"]
    for a in placed:
        for b in placed:
            apart = a.end <= b.start or b.end <= a.start
            assert a is b or apart or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert plan.svg().startswith("<svg") and plan.svg().endswith("</svg>")
    assert plan.k >= 0


def test_texts(tmp_path):
    compiled = cuvil.jit(layer)
    module = cuvil.get_compiled_module(compiled, X, X.T)
    assert module.ir().startswith("func @layer(%x: f32[3, 4] ") and "matmul" in module.ir()
    assert "define" in module.llvm_ir() and "target triple" in module.llvm_ir()
    assert re.search(r"\bret", module.asm())
    module.save_ir(tmp_path / "layer.cir")
    assert (tmp_path / "layer.cir").read_text() == module.ir()
    assert len(_cuvil.specialisations(compiled)) == 1  # asking for texts compiles nothing new
    compiled(np.ones((5, 4), np.float32), X.T)
    symbolic = cuvil.get_compiled_module(compiled)
    assert "s0" in symbolic.signature
    assert "%x: f32[3, 4]" not in symbolic.ir().splitlines()[0]


def test_texts_do_not_need_the_arguments_any_more():
    def fn(x, params, items, mode, activation, k):
        y = x @ params["w"] + params["b"] if mode == "dense" else x
        for item in items:
            y = y + item
        return activation(y) * k

    compiled = cuvil.jit(fn)

    def call():
        params = {"w": X.T.copy(), "b": np.ones(3, np.float32)}
        compiled(X, params, [np.ones(3), 2.0], "dense", np.tanh, 3)

    call()
    module = cuvil.get_compiled_module(compiled)
    assert "matmul" in module.ir() and "tanh" in module.ir()
    assert "define" in module.llvm_ir()


def test_texts_for_objects_that_are_gone():
    compiled = cuvil.jit(lambda x, f: f(x))
    compiled(X, lambda x: x * 2)
    with pytest.raises(ReferenceError, match="argument 'f' is gone"):
        cuvil.get_compiled_module(compiled).ir()
    again = lambda x: x * 2
    module = cuvil.get_compiled_module(compiled, X, again)
    del again
    assert "mul" in module.ir()


def test_explain():
    compiled = cuvil.jit(layer)
    assert cuvil.explain(compiled) == "layer: 0 specialisations"
    compiled(X, X.T)
    compiled(X.astype("f8"), X.T.astype("f8"))
    compiled(np.ones((5, 4), np.float32), X.T)
    lines = cuvil.explain(compiled).splitlines()
    assert lines[0] == "layer: 3 specialisations"
    text = "\n".join(lines)
    assert "made because: first call; " in text and "1 call" in text
    assert "argument 'x' is of another kind, dtype, rank, layout or value" in text
    assert "axis 0 of 'x' has another size" in text


GAIN = 2.0
W = np.ones(4, np.float32)


def test_explain_names_what_a_function_relies_on():
    global GAIN

    class Model:
        def __init__(self):
            self.bias = X
            self.kind = "relu"

    model = Model()

    def fn(x, scale=3):
        y = x * GAIN + W
        if model.kind == "relu":
            y = np.maximum(y, 0)
        return y + model.bias

    compiled = cuvil.jit(fn)
    compiled(X)
    text = cuvil.explain(compiled)
    for line in ("GAIN == 2.0", "model.kind == 'relu'", "W is an array of float32", "model.bias is an array"):
        assert f"relies on: {line}" in text, text
    GAIN = 3.0
    try:
        compiled(X)
        assert "made because: no longer true: GAIN == 2.0" in cuvil.explain(compiled)
    finally:
        GAIN = 2.0


# ---- runtime -----------------------------------------------------------------------------------------------


def test_devices():
    devices = cuvil.runtime.list_devices()
    cpu = devices[0]
    assert cpu.kind == "cpu" and cpu.index == 0 and cpu.name
    assert 1 <= cpu.cores <= cpu.threads == len(os.sched_getaffinity(0))
    assert cpu.memory_bytes > 2**28 and cpu.l1_data_bytes >= 0
    assert cpu.name in str(cpu) and "GiB" in str(cpu)
    assert all(device.kind == "cuda" and device.sm >= 30 and device.name for device in devices[1:])
    fake = cuvil.runtime.Device("cuda", 1, "H200", memory_bytes=2**37, sm=90)
    assert str(fake) == "cuda:1  H200, sm_90, 128.0 GiB"


def test_number_of_threads():
    before = cuvil.runtime.num_threads()
    try:
        for n in (1, 2, 1024):
            cuvil.runtime.set_num_threads(n)
            assert cuvil.runtime.num_threads() == n
        for wrong in (0, -1, 1025, 2**70, True, 2.0, "2", None):
            with pytest.raises(ValueError, match="from 1 to 1024"):
                cuvil.runtime.set_num_threads(wrong)
        assert cuvil.runtime.num_threads() == 1024
        big = np.random.default_rng(0).standard_normal((400, 400))
        results = []
        for n in (1, 2, 3, 8):
            cuvil.runtime.set_num_threads(n)
            results.append(cuvil.jit(lambda x: np.exp(x @ x.T).sum(axis=0))(big))
        assert all(np.array_equal(results[0], r) for r in results)
    finally:
        cuvil.runtime.set_num_threads(before)


# ---- environment ------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np, cuvil

@cuvil.jit
def layer(x, w):
    return np.maximum(x @ w, 0) * 2

class Model:
    @cuvil.jit
    def forward(self, x):
        return x + 1

print(layer(np.ones((2, 3)), np.ones((3, 2))).sum(), Model().forward(np.ones(2)).sum())
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_dump_of_the_graph(program, tmp_path):
    target = tmp_path / "made" / "here"
    done = python(program, CUVIL_DUMP_IR="1", CUVIL_DUMP_DIR=str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, "24.0 4.0\n", "")
    assert [p.name for p in target.iterdir()] == ["cuvil_ir.dot"]
    text = (target / "cuvil_ir.dot").read_text()
    assert text.startswith("digraph") and text.count("{") == text.count("}")


def test_dump_into_the_working_directory(program, tmp_path):
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "CUVIL_DUMP_DIR"} | {"CUVIL_DUMP_IR": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cuvil_ir.dot").exists()


def test_dump_of_everything(program, tmp_path):
    target = tmp_path / "all"
    done = python(program, CUVIL_DUMP_IR="all", CUVIL_DUMP_DIR=str(target))
    assert done.returncode == 0 and done.stdout == "24.0 4.0\n", done.stderr
    names = sorted(p.name for p in target.iterdir())
    assert "cuvil_ir.dot" in names
    for function in ("layer", "Model.forward"):
        for ending in ("code.ll", "code.s", "schedule.dot", "ir.cir"):
            assert f"{function}.{ending}" in names, names
        passes = [n for n in names if re.fullmatch(re.escape(function) + r"\.ir\.\d\d\..+\.cir", n)]
        assert len(passes) >= 3, names
    assert all((target / name).stat().st_size for name in names)
    assert "define" in (target / "layer.code.ll").read_text()


def test_a_dump_that_cannot_be_written_says_where(program, tmp_path):
    (tmp_path / "file").write_text("")
    done = python(program, CUVIL_DUMP_IR="1", CUVIL_DUMP_DIR=str(tmp_path / "file"))
    assert done.returncode != 0 and str(tmp_path / "file") in done.stderr


def test_disable(program):
    done = python(
        "-c",
        "import cuvil; f = cuvil.jit(lambda x, *, k=2: (x, k)); print(f([1]), f('a', k=3))",
        CUVIL_DISABLE="1",
    )
    assert done.stdout == "([1], 2) ('a', 3)\n", done.stderr
    done = python(program, CUVIL_DISABLE="1")
    assert done.stdout == "24.0 4.0\n", done.stderr


@pytest.mark.parametrize(
    "variable, value", [("CUVIL_NUM_THREADS", "many"), ("CUVIL_DUMP_IR", "some"), ("CUVIL_DISABLE", "maybe")]
)
def test_variables_that_hold_nonsense(program, variable, value):
    done = python(program, **{variable: value})
    assert done.returncode != 0 and variable in done.stderr and value in done.stderr


def test_threads_from_the_environment():
    done = python("-c", "import cuvil; print(cuvil.runtime.num_threads())", CUVIL_NUM_THREADS="3")
    assert done.stdout == "3\n", done.stderr


def test_command_line():
    done = python("-m", "cuvil")
    assert done.returncode == 0, done.stderr
    assert f"cuvil {cuvil.__version__} (build {_cuvil.build_id})" in done.stdout
    assert f"LLVM {_cuvil.llvm_version}, NumPy {np.__version__}" in done.stdout
    assert str(cuvil.runtime.list_devices()[0]) in done.stdout
    for variable, explanation in _cuvil.knobs():
        assert variable in done.stdout and explanation in done.stdout
    assert python("-m", "cuvil", "--version").stdout == f"cuvil {cuvil.__version__}\n"
    wrong = python("-m", "cuvil", "nonsense")
    assert wrong.returncode == 2 and "usage: python -m cuvil" in wrong.stderr
    assert python("-m", "cuvil", CUVIL_NUM_THREADS="3").stdout.count("3 ") >= 1


def test_everything_that_is_exported_exists():
    for module in (cuvil, cuvil.errors, cuvil.runtime, cuvil.module):
        for name in module.__all__:
            assert getattr(module, name) is not None and (
                name.startswith("_") or getattr(module, name).__doc__
            )
    for name in cuvil.errors.__all__:
        error = getattr(cuvil, name)
        assert issubclass(error, (cuvil.CuvilError, UserWarning))


def test_import_is_light():
    """Importing Cuvil loads no more of the standard library than NumPy does, and no compiler."""
    listing = "print([m for m in ('inspect', 'ast', 'linecache', 'cuvil.module') if m in sys.modules])"
    done = python("-c", f"import sys, cuvil; {listing}")
    plain = python("-c", f"import sys, numpy; {listing}")
    assert done.returncode == 0 and done.stdout == plain.stdout
    opened = python("-c", "import cuvil; print('libcuvil_' in open('/proc/self/maps').read())")
    assert opened.stdout == "False\n"


# ---- interpreted first, machine code later --------------------------------------------------------


def test_compile_waits_for_machine_code(monkeypatch):
    monkeypatch.setenv("CUVIL_INTERPRET", "auto")
    f = cuvil.compile(lambda x: np.tanh(x) * 2, (np.ones(5),))
    (row,) = _cuvil.specialisations(f)
    assert not row["interpreted"] and row["code_bytes"] > 0 and row["calls"] == 0
    assert {"trace", "interpreter", "codegen"} <= {name for name, _ in row["stages"]}


def test_a_first_call_is_interpreted_and_later_ones_are_not(monkeypatch):
    x = np.linspace(-3, 3, 1000)
    monkeypatch.setenv("CUVIL_INTERPRET", "1")
    interpreted = cuvil.jit(lambda x: np.exp(x) / np.exp(x).sum())
    first = interpreted(x)
    assert _cuvil.specialisations(interpreted)[0]["interpreted"]
    assert "interpreted until" in cuvil.explain(interpreted)
    monkeypatch.setenv("CUVIL_INTERPRET", "0")
    compiled = cuvil.jit(lambda x: np.exp(x) / np.exp(x).sum())
    assert compiled(x).tobytes() == first.tobytes()  # the same bits
    assert not _cuvil.specialisations(compiled)[0]["interpreted"]
    monkeypatch.setenv("CUVIL_INTERPRET", "auto")
    f = cuvil.jit(lambda x: np.exp(x) / np.exp(x).sum())
    assert f(x).tobytes() == first.tobytes()
    cuvil.runtime.wait_for_compilation()
    assert f(x).tobytes() == first.tobytes()
    (row,) = _cuvil.specialisations(f)
    assert not row["interpreted"] and row["calls"] == 2


def test_long_calls_wait_for_machine_code(monkeypatch):
    monkeypatch.setenv("CUVIL_INTERPRET", "auto")
    f = cuvil.jit(lambda x: np.sin(x).sum())
    f(np.ones(20_000_000, np.float32))
    assert not _cuvil.specialisations(f)[0]["interpreted"]


def test_background(tmp_path):
    program = tmp_path / "p.py"
    program.write_text(
        """
import sys, threading, numpy as np, cuvil

@cuvil.jit(shape_hint={"x": ((4, 3), "float32"), "w": ((3, 2), "float32")}, background=True)
def f(x, w):
    return np.maximum(x @ w, 0) + later()

def later():
    return 1

for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
started = len(cuvil._cuvil.specialisations(f))
x, w = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
assert np.array_equal(f(x, w), f.__wrapped__(x, w))
assert len(cuvil._cuvil.specialisations(f)) <= started + 1
info = cuvil.cache.info()
print(info.hits, info.misses, "threading" in sys.modules)

# What cannot be compiled is said by the call.
@cuvil.jit(shape_hint={"x": ((4,), "float64")}, background=True)
def bad(x):
    return eval("x")
try:
    bad(np.ones(4))
except cuvil.UnsupportedError as error:
    assert "eval" in str(error)
else:
    raise AssertionError
"""
    )
    env = {**os.environ, "CUVIL_CACHE": "1", "CUVIL_CACHE_DIR": str(tmp_path / "cache")}
    for expected in ("0 1", "1 0"), ("1 0",):
        done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(expected), done.stdout


def test_without_the_code_generator(tmp_path):
    """The rest of Cuvil is there: calls stay interpreted, and one warning says why."""
    here = pathlib.Path(cuvil.__file__).parent
    (tmp_path / "libcuvil_compiler.so").symlink_to(here / "libcuvil_compiler.so")
    program = tmp_path / "p.py"
    program.write_text(
        "import numpy as np, cuvil\nf = cuvil.jit(lambda x: x + 1)\n"
        "for k in range(3):\n    print(f(np.ones(2)))\n    cuvil.runtime.wait_for_compilation()\n"
    )
    env = {"CUVIL_COMPILER_PATH": str(tmp_path / "libcuvil_compiler.so"), "CUVIL_CACHE": "0"}
    done = python(program, **env)
    assert done.stdout.split() == ["[2.", "2.]"] * 3, done.stderr
    assert done.stderr.count("CuvilPerformanceWarning") == 1 and "stays interpreted" in done.stderr
    assert "libcuvil_backend.so cannot be opened" in done.stderr and "install Cuvil again" in done.stderr
    done = python(program, CUVIL_INTERPRET="0", **env)
    assert "cuvil.errors.InternalError: the code generator" in done.stderr


def test_log(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("import numpy as np, cuvil\nf = cuvil.jit(lambda x: x + 1)\nf(np.ones(3))\n")
    env = {**os.environ, "CUVIL_LOG": "debug", "CUVIL_CACHE": "0", "CUVIL_INTERPRET": "auto"}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True)
    first, second = done.stderr.splitlines()
    assert first.startswith("cuvil: <lambda>: interpreted in ") and "trace " in first
    assert second.startswith("cuvil: <lambda>: machine code in ") and "codegen " in second
    done = subprocess.run(
        [sys.executable, str(program)], env={**env, "CUVIL_LOG": "loud"}, capture_output=True, text=True
    )
    assert "CUVIL_LOG is 'loud'" in done.stderr.replace("the environment variable ", "")


def test_perf_map(tmp_path):
    program = tmp_path / "p.py"
    program.write_text(
        """
import os, numpy as np, cuvil
@cuvil.jit
def layer(x, w):
    return np.maximum(x @ w, 0)
layer(np.ones((2, 3)), np.ones((3, 2)))
cuvil.runtime.wait_for_compilation()
layer(np.ones((2, 3)), np.ones((3, 2)))
print(os.getpid())
"""
    )
    for cache in "0", "1", "1":  # compiled, compiled, from the cache
        env = {"CUVIL_PERF": "1", "CUVIL_CACHE": cache, "CUVIL_CACHE_DIR": str(tmp_path / "cache")}
        done = python(program, **env)
        path = pathlib.Path(f"/tmp/perf-{done.stdout.strip()}.map")
        rows = [line.split() for line in path.read_text().splitlines()]
        path.unlink()
        assert {name for _, _, name in rows} == {"layer::cuvil_entry", "layer::k0_matmul_maximum"}
        assert all(int(size, 16) > 0 for _, size, _ in rows)


# ---- what results are -------------------------------------------------------------------------------


def test_identity_of_results():
    label = "label" * 3

    class Config:
        pass

    config = Config()

    def fn(x, y, n, s, o):
        z = x * 2
        return x, [x, y], {"y": y}, z, z, n, s, o, x.T, None, y[...], (x, (y,))

    compiled = cuvil.jit(fn)
    y, n = np.ones(3), 10**9
    for _ in range(2):
        r = compiled(X, y, n, label, config)
        assert r[0] is X and r[1][0] is X and r[1][1] is y and r[2]["y"] is y
        assert r[3] is r[4] and r[3] is not X
        assert r[5] == n and r[6] is label and r[7] is config and r[9] is None
        assert r[8] is not X and r[8].base is X.T.base
        assert r[10] is not y and r[10].base is y
        assert r[11][0] is X and r[11][1][0] is y


def test_a_container_twice_is_one_container():
    def fn(x):
        a = [x, x + 1]
        return a, a, {"a": a}

    plain, got = fn(X), cuvil.jit(fn)(X)
    assert plain[0] is plain[1] is plain[2]["a"]
    assert got[0] is got[1] is got[2]["a"]


def test_containers_are_fresh_at_every_call():
    def fn(x):
        return [1, 2, x], {"k": []}, ([],)

    compiled = cuvil.jit(fn)
    first = compiled(X)
    first[0].append(3)
    first[1]["k"].append(4)
    first[2][0].append(5)
    assert compiled(X)[0] == [1, 2, X] or len(compiled(X)[0]) == 3
    assert compiled(X)[1] == {"k": []} and compiled(X)[2] == ([],)


def test_bases_of_views():
    def fn(x):
        return x[1:], x.T, x[::-1, ::2], x.reshape(-1), x[0], x[None], x.ravel(), x[...]

    compiled = cuvil.jit(fn)
    owner = np.arange(24.0).reshape(6, 4)
    for x in (owner[:3], owner, owner[::2], owner.T.copy().T):
        for plain, got in zip(fn(x), compiled(x)):
            assert np.shares_memory(plain, x) == np.shares_memory(got, x)
            if plain.base is not None and np.shares_memory(plain, x):
                assert got.base is plain.base
                assert got.__array_interface__["data"] == plain.__array_interface__["data"]
                assert got.strides == plain.strides
            assert got.flags.writeable == plain.flags.writeable
            np.testing.assert_array_equal(plain, got)


def test_read_only_stays_read_only():
    def fn(x):
        return x, x[1:], x.T, x * 1, np.broadcast_to(x, (2, *x.shape)), np.asarray(x)

    compiled = cuvil.jit(fn)
    frozen = X.copy()
    frozen.flags.writeable = False
    for x in (X.copy(), frozen, np.broadcast_to(X[0], (3, 4))):
        for plain, got in zip(fn(x), compiled(x)):
            assert got.flags.writeable == plain.flags.writeable
            if not got.flags.writeable:
                with pytest.raises(ValueError):
                    got[...] = 0
    assert not compiled(frozen)[1].flags.writeable


def test_results_own_their_memory():
    def fn(x):
        return x * 2, x.sum(axis=0), np.zeros(5), x.copy(), np.concatenate([x, x])

    compiled = cuvil.jit(fn)
    first = compiled(X)
    kept = [r.copy() for r in first]
    for r in first:
        assert r.flags.owndata and r.flags.writeable and r.base is None and r.flags.aligned
    second = compiled(X + 1)
    for a, b, k in zip(first, second, kept):
        assert not np.shares_memory(a, b)
        np.testing.assert_array_equal(a, k)
    for a in first:
        a[...] = -1
    np.testing.assert_array_equal(compiled(X)[0], X * 2)


def test_views_of_results():
    def fn(x):
        y = x * 2
        return y, y[1:], y.T

    y, tail, turned = cuvil.jit(fn)(X)
    assert tail.base is y and turned.base is y and y.flags.owndata
    y[1, 0] = 100
    assert tail[0, 0] == 100 and turned[0, 1] == 100

    def only_view(x):
        return (x * 2)[1:]

    d.same(only_view(X), cuvil.jit(only_view)(X))


def test_kinds_of_results():
    functions = [
        lambda x: x.sum(),
        lambda x: x.shape,
        lambda x: x.shape[0],
        lambda x: x.size * 2.5,
        lambda x: x.shape[0] > 2,
        lambda x: float(x[0, 0]),
        lambda x: x[0, 0],
        lambda x: x.dtype,
        lambda x: None,
        lambda x: (),
        lambda x: [],
        lambda x: {},
        lambda x: {"a": x, 1: 2, None: (x, x)},
        lambda x: "text",
        lambda x: ...,
        lambda x: -0.0,
        lambda x: np.float32,
        lambda x: (x.ndim, x.T.shape, len(x)),
    ]
    for fn in functions:
        compiled = cuvil.jit(fn)
        for x in (X, X.astype(np.float64), np.ones((5, 2), np.int8)):
            d.check(fn, x, compiled=compiled)


def test_artifact_bytes_round_trip():
    """What one function compiled, another of the same code runs without the compiler."""
    compiled = cuvil.jit(layer)
    want = compiled(X, X.T)
    (data,) = _cuvil.artifact_bytes(compiled)
    fresh = cuvil.jit(layer)
    _cuvil.load_artifact(fresh, data)
    np.testing.assert_array_equal(fresh(X, X.T), want)
    assert len(_cuvil.specialisations(fresh)) == 1
    module = cuvil.get_compiled_module(fresh)
    assert module.dump_schedule().kernels
    with pytest.raises(cuvil.UnsupportedError, match="loaded from bytes"):
        module.ir()
    other = cuvil.jit(lambda x, w: x)
    with pytest.raises(cuvil.CacheError, match="another function"):
        _cuvil.load_artifact(other, data)
    for broken in (b"", data[:100], data[:-1], data + b"x", b"x" * len(data), data[:200] + b"!" + data[201:]):
        with pytest.raises(cuvil.CacheError):
            _cuvil.load_artifact(fresh, broken)
    np.testing.assert_array_equal(fresh(X, X.T), want)


def test_a_module_of_replaced_code_says_so():
    def fn(x):
        return x * 2

    def other(x):
        return x + 5

    compiled = cuvil.jit(fn)
    compiled(X)
    module = cuvil.get_compiled_module(compiled)
    fn.__code__ = other.__code__
    np.testing.assert_array_equal(compiled(X), X + 5)
    assert "add" in cuvil.get_compiled_module(compiled).ir()
    assert pathlib.Path(__file__).exists() and module is not None
