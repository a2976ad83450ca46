"""Pickling: by name what can be imported, with its source what cannot, and workers of every kind."""

from __future__ import annotations

import concurrent.futures
import linecache
import multiprocessing
import pickle
import subprocess
import sys
import textwrap

import cuvil
import numpy as np
import pytest

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def cloudpickle():
    return pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")


@pytest.fixture
def directory(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("CUVIL_CACHE", "1")
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(path))
    return path


@cuvil.jit(shape_hint={"x": ("n", 3)})
def scale(x):
    return x * 2 + 1


def plain(x):
    return x - 1


fast = cuvil.jit(plain, shape_hint={"x": (2, 3)})


class Layer:
    def __init__(self, w):
        self.w = w

    @cuvil.jit
    def forward(self, x):
        return x * self.w

    @staticmethod
    @cuvil.jit
    def double(x):
        return x * 2


def script(path, text):
    path.write_text(textwrap.dedent(text))
    return path


def run(path, *arguments):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, str(path), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=path.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOAD = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    function = pickle.load(file)
print(function(np.arange(6.0).reshape(2, 3)).tolist())
"""


def elsewhere(data, tmp_path):
    """What a pickled function gives in a process that has nothing but the pickle."""
    (tmp_path / "function.pickle").write_bytes(data)
    return run(script(tmp_path / "load.py", LOAD), tmp_path / "function.pickle")


def kept_text(name, text):
    """Run as in a notebook: the text is in linecache and in no file."""
    text = textwrap.dedent(text)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"__name__": "__main__", "cuvil": cuvil, "np": np}
    exec(compile(text, name, "exec"), scope)
    return scope


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_name(protocol):
    for function in (scale, Layer.forward, Layer.double):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert len(pickle.dumps(scale)) < 60
    forward = pickle.loads(pickle.dumps(Layer(X).forward, protocol))
    np.testing.assert_array_equal(forward(X), X * X)


def test_under_another_name():
    """The plain function can be imported, so that this needs no cloudpickle."""
    again = pickle.loads(pickle.dumps(fast))
    assert again is not fast and again.__wrapped__ is plain
    assert cuvil._cuvil.arguments(again) == cuvil._cuvil.arguments(fast)
    assert plain.__code__.co_filename == __file__
    np.testing.assert_array_equal(again(X), X - 1)


def test_pickle_says_what_to_use():
    def inner(x):
        return x

    for function in (cuvil.jit(inner), cuvil.jit(lambda x: x)):
        with pytest.raises(pickle.PicklingError) as error:
            pickle.dumps(function)
        text = str(error.value)
        assert f"{function.__qualname__} cannot be imported from test_pickle" in text
        assert f"{__file__}:{function.__code__.co_firstlineno}" in text and "help: use cloudpickle" in text


def test_cloudpickle_by_name(cloudpickle):
    for function in (scale, Layer.forward):
        assert pickle.loads(cloudpickle.dumps(function)) is function


def test_lambda_and_closure(cloudpickle, tmp_path):
    weights = np.array([1.0, 2.0, 3.0])

    def shift(x):
        return x + offset

    offset = 10
    closure = cuvil.jit(lambda x: shift(x) * weights)
    expected = (X + 10) * weights
    for function in (closure, pickle.loads(cloudpickle.dumps(closure))):
        np.testing.assert_array_equal(function(X), expected)
    again = pickle.loads(cloudpickle.dumps(pickle.loads(cloudpickle.dumps(closure))))
    np.testing.assert_array_equal(again(X), expected)
    assert again.__code__.co_filename == __file__
    assert "test_pickle" not in elsewhere(cloudpickle.dumps(cuvil.jit(lambda x: x + 0.5)), tmp_path)
    assert elsewhere(cloudpickle.dumps(closure), tmp_path) == str(expected.tolist())


def test_options_and_attributes_survive(cloudpickle):
    function = cuvil.jit(
        lambda x, y: x + y,
        shape_hint={"x": ((2, "n"), np.float32), "y": (None, -1)},
        device="cpu",
        cache=False,
        target_cpu="x86-64-v3",
    )
    function.note = "kept"
    function.__name__ = "add"
    again = pickle.loads(cloudpickle.dumps(function))
    hints, options = cuvil._cuvil.arguments(again)
    assert hints == {"x": ((2, "n"), np.dtype("f4")), "y": ((None, None), None)}
    assert options == {"device": "cpu", "target_cpu": "x86-64-v3", "cache": False}
    assert again.note == "kept" and again.__name__ == "add"
    with pytest.raises((cuvil.ShapeError, cuvil.DTypeError)):
        again(X, X)


def test_function_that_names_itself(cloudpickle):
    def make():
        def count(x, n):
            return x if n == 0 else count(x + 1, n - 1)

        count = cuvil.jit(count)
        return count

    function, twin = pickle.loads(cloudpickle.dumps([make()] * 2))
    assert function is twin is function.__closure__[0].cell_contents
    scope = kept_text("<itself>", "@cuvil.jit\ndef f(x):\n    return x if f is None else x + 1\n")
    again = pickle.loads(cloudpickle.dumps(scope["f"]))
    assert again.__globals__["f"] is again


def test_text_that_is_in_no_file(cloudpickle, tmp_path):
    helper = kept_text("<cell 1>", "\n\ndef helper(x):\n    return np.maximum(x, 2.0)\n")["helper"]
    scope = kept_text(
        "/nowhere/cell-2.py",
        """
        import numpy as np

        def other(x):
            return x / 2

        @cuvil.jit
        def f(x):
            return helper(x) + other(x)
        """,
    )
    scope["helper"] = helper
    data = cloudpickle.dumps(scope["f"])
    assert elsewhere(data, tmp_path) == str(scope["f"].__wrapped__(X).tolist())
    for name in ("<cell 1>", "/nowhere/cell-2.py"):
        del linecache.cache[name]
    again = pickle.loads(data)
    np.testing.assert_array_equal(again(X), scope["f"].__wrapped__(X))
    assert "<cell 1>" in linecache.cache and again.__globals__["helper"].__code__.co_filename == "<cell 1>"
    linecache.checkcache()
    assert "/nowhere/cell-2.py" in linecache.cache


def test_class_of_another_process(cloudpickle, tmp_path):
    scope = kept_text(
        "<cell with a class>",
        """
        class Model:
            def __init__(self):
                self.w = np.array([1.0, 2.0, 3.0])

            def activation(self, x):
                return np.maximum(x, 1.0)

            @cuvil.jit
            def forward(self, x):
                return self.activation(x * self.w)
        """,
    )
    model = scope["Model"]()
    expected = str(np.maximum(X * model.w, 1.0).tolist())
    assert elsewhere(cloudpickle.dumps(model.forward), tmp_path) == expected


MAIN = """
import multiprocessing, os, pickle, sys
import cloudpickle, cuvil, numpy as np

W = np.array([1.0, 2.0, 3.0])

def relu(x):
    return np.maximum(x, 1.0)

@cuvil.jit
def score(x):
    return relu(x * W + OFFSET)

OFFSET = 0.0

if __name__ == "__main__":
    x = np.arange(6.0).reshape(2, 3)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            for result in pool.map(score, [x] * 4):
                assert np.array_equal(result, score.__wrapped__(x))
    assert pickle.loads(pickle.dumps(score)) is score
    OFFSET = 5.0  # what cloudpickle takes along is what it is now
    sys.stdout.flush()
    with open(sys.argv[1], "wb") as file:
        cloudpickle.dump(score, file)
    print(score(x).tolist())
"""


@pytest.mark.parametrize("cache", ["0", "1"])
@pytest.mark.parametrize("there", [True, False])
def test_function_of_main(cloudpickle, tmp_path, directory, monkeypatch, cache, there):
    """Pools find it by name; cloudpickle takes it along, and whether the file is there does not matter."""
    monkeypatch.setenv("CUVIL_CACHE", cache)
    data = tmp_path / "score.pickle"
    main = script(tmp_path / "main.py", MAIN)
    expected = run(main, data)
    if not there:
        main.unlink()
    report = "print(function.__code__.co_filename)\nimport cuvil; print(cuvil.cache.info().hits)"
    result, file, hits = run(script(tmp_path / "load.py", LOAD + report), data).splitlines()
    assert (result, file, hits) == (expected, str(main), cache)


def test_error_in_a_function_that_came_along(cloudpickle, tmp_path):
    scope = kept_text("<cell 9>", "f = cuvil.jit(lambda x: np.linalg.svd(x))\n")
    data = cloudpickle.dumps(scope["f"])
    del linecache.cache["<cell 9>"]
    with pytest.raises(cuvil.UnsupportedError, match="<cell 9>:1") as error:
        pickle.loads(data)(X)
    assert "f = cuvil.jit(lambda x: np.linalg.svd(x))" in str(error.value)


def test_module_registered_by_value(cloudpickle, tmp_path, monkeypatch):
    script(tmp_path / "tools_by_value.py", "import cuvil\n@cuvil.jit\ndef f(x):\n    return x + 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    import tools_by_value

    assert pickle.loads(cloudpickle.dumps(tools_by_value.f)) is tools_by_value.f
    cloudpickle.register_pickle_by_value(tools_by_value)
    try:
        data = cloudpickle.dumps(tools_by_value.f)
    finally:
        cloudpickle.unregister_pickle_by_value(tools_by_value)
    (tmp_path / "tools_by_value.py").unlink()
    assert elsewhere(data, tmp_path) == str((X + 3).tolist())


def called(function):
    return function(X)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method):
    arrays = [X + k for k in range(4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(scale, arrays)
        results += pool.map(Layer(X).forward, arrays)
        results += pool.map(called, [fast])
    expected = [a * 2 + 1 for a in arrays] + [a * X for a in arrays] + [X - 1]
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process_pool_executor(method):
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for k, result in enumerate(pool.map(scale, [X + k for k in range(4)])):
            np.testing.assert_array_equal(result, (X + k) * 2 + 1)


def test_pool_refuses_what_it_cannot_name():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        with pytest.raises(pickle.PicklingError, match="cloudpickle"):
            pool.submit(cuvil.jit(lambda x: x), X).result(timeout=60)


def test_joblib():
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    weights = np.array([1.0, 2.0, 3.0])
    function = cuvil.jit(lambda x: x @ weights)
    with joblib.parallel_config("loky", n_jobs=2):
        results = joblib.Parallel()(joblib.delayed(f)(X + k) for k in range(4) for f in (function, scale))
    for k in range(4):
        np.testing.assert_array_equal(results[2 * k], function.__wrapped__(X + k))
        np.testing.assert_array_equal(results[2 * k + 1], (X + k) * 2 + 1)
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def test_dask(directory):
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    weights = np.array([1.0, 2.0, 3.0])
    chunks = [X + k for k in range(8)]

    @cuvil.jit(shape_hint={"x": (2, 3)})
    def score(x):
        return np.maximum(x @ weights, 20.0)

    def work(k):
        info = cuvil.cache.info()
        return score(X + k), cuvil.cache.info().hits - info.hits, cuvil.cache.info().misses - info.misses

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.scheduler_info()["workers"])
        assert len(workers) == 2
        worked = [client.submit(work, k, workers=[w]).result(timeout=120) for k, w in enumerate(workers)]
        files = list(directory.glob("*/*.cuvil"))
        # Whose arrays come over the network, and need not be aligned.
        results = client.gather(client.map(score, chunks))
    # The first worker compiled, and the other one found it.
    assert [counts for _, *counts in worked] == [[0, 1], [1, 0]] and len(files) == 1
    results += [result for result, *_ in worked]
    for result, chunk in zip(results, chunks + chunks[:2], strict=True):
        np.testing.assert_array_equal(result, score.__wrapped__(chunk))
