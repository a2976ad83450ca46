"""The cache on disk: found by later processes, never wrong, never in the way."""

from __future__ import annotations

import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import cuvil
import numpy as np
import pytest

FUNCTION = """
import sys, numpy as np, cuvil
from cuvil import _cuvil

@cuvil.jit
def f(x, w):
    return np.maximum(x @ w, 0.0) + 1

x = np.arange(6, dtype=np.float32).reshape(2, 3)
w = np.ones((3, 4), np.float32)
if not np.array_equal(f(x, w), f.__wrapped__(x, w)):
    raise SystemExit("wrong")
"""
REPORT = "print([(s['cached'], s['calls']) for s in _cuvil.specialisations(f)], cuvil.cache.info().hits)"
HIT, MISS = "[(True, 1)] 1", "[(False, 1)] 0"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("CUVIL_CACHE", "1")
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(path))
    return path


def start(source, *options, env=None, **keywords):
    """A fresh process; the variables of ``env`` on top, None takes one away."""
    environment = {**os.environ, **(env or {})}
    environment = {k: v for k, v in environment.items() if v is not None}
    return subprocess.Popen(
        [sys.executable, *options, str(source)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **keywords,
    )


def run(source, *options, **keywords):
    process = start(source, *options, **keywords)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return out.strip(), error.strip()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FUNCTION + REPORT)
    return path


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return path


def files(directory):
    return sorted(directory.glob("*/*.cuvil"))


def test_second_process_needs_no_compiler(directory, program):
    assert run(program) == (MISS, "")
    assert len(files(directory)) == 1
    assert run(program, env={"CUVIL_COMPILER_PATH": "/nonexistent"}) == (HIT, "")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert files(directory)[0].stat().st_mode & 0o777 == 0o600


def test_warm_start_loads_neither_compiler_nor_ast(directory, tmp_path):
    before = "import sys, numpy\nhad = set(sys.modules)\n"
    after = textwrap.dedent("""
        assert "libcuvil_" not in open("/proc/self/maps").read()
        new = set(sys.modules) - had
        assert not new & {"ast", "inspect", "dis", "tokenize", "linecache", "dataclasses"}, new
        """)
    path = write(tmp_path / "p.py", before + FUNCTION + after)
    program = write(tmp_path / "fill.py", before + FUNCTION)
    run(program)
    run(path)


def test_code_decides_not_names_or_places(directory, program, tmp_path):
    assert run(program)[0] == MISS
    moved = write(tmp_path / "moved.py", "\n\n# another place\n" + program.read_text())
    assert run(moved)[0] == HIT
    changed = write(tmp_path / "changed.py", program.read_text().replace("0.0) + 1", "0.0) + 2"))
    assert run(changed)[0] == MISS
    for name in (program, moved, changed):
        assert run(name)[0] == HIT


def test_python_with_other_flags_or_hints(directory, tmp_path):
    asserting = FUNCTION.replace("    return np", "    assert w.ndim == 2, 'rank'\n    return np")
    program = write(tmp_path / "p.py", asserting + REPORT)
    assert run(program)[0] == MISS
    assert run(program)[0] == HIT
    # Without asserts it is other code; either its own or none.
    assert run(program, "-O")[0] == MISS
    assert run(program, "-O")[0] == HIT
    assert run(program)[0] == HIT


def test_two_lambdas_on_a_line(directory, tmp_path):
    program = write(
        tmp_path / "p.py",
        """
        import numpy as np, cuvil
        f, g = cuvil.jit(lambda x: x + 1), cuvil.jit(lambda x: x * 10)
        x = np.array([1.0, 2.0])
        print(f(x), g(x), cuvil.cache.info().hits)
        """,
    )
    assert run(program)[0] == "[2. 3.] [10. 20.] 0"
    assert run(program)[0] == "[2. 3.] [10. 20.] 2"


def test_what_it_relies_on_is_checked(directory, tmp_path):
    text = """
        import sys, numpy as np, cuvil, helpers
        SCALE, WEIGHTS = {scale}, np.arange(3.0) + {scale}
        class Model:
            gain = {scale}
        def make(k):
            return cuvil.jit(lambda x: (x * SCALE + WEIGHTS + helpers.f(x)) * k)
        x = np.ones(3)
        for k in (1, 2):
            f = make(k)
            print(f(x), end=" ")
            assert np.array_equal(f(x), f.__wrapped__(x))
        print(cuvil.cache.info().hits)
        """
    write(tmp_path / "helpers.py", "def f(x):\n    return x - 1\n")
    first, second = (
        write(tmp_path / f"{name}.py", textwrap.dedent(text).format(scale=scale))
        for name, scale in (("first", 2.0), ("second", 5.0))
    )
    assert run(first)[0].endswith(" 0")
    assert run(first)[0].endswith(" 2")
    assert run(second)[0].endswith(" 0")
    assert run(second)[0].endswith(" 2")
    assert run(first)[0].endswith(" 2")
    write(tmp_path / "helpers.py", "def f(x):\n    return x * 7\n")
    assert run(first)[0].endswith(" 0")


def test_what_only_this_process_can_check_stays_in_memory(directory, tmp_path):
    program = write(
        tmp_path / "p.py",
        """
        import numpy as np, cuvil
        from cuvil import _cuvil
        class Model:
            def __init__(self):
                self.w = np.arange(3.0)
            @cuvil.jit
            def forward(self, x):
                return x * self.w
        m = Model()
        assert np.array_equal(m.forward(np.ones(3)), m.w)
        (row,) = _cuvil.specialisations(Model.forward)
        print(row["memory_only"], cuvil.cache.info().entries)
        """,
    )
    out = run(program)[0]
    assert out in ("True 0", "False 1")  # never kept where it cannot be checked
    assert run(program)[0] == out


def test_symbolic_sizes_and_several_specialisations(directory, tmp_path):
    program = write(
        tmp_path / "p.py",
        """
        import numpy as np, cuvil
        @cuvil.jit(shape_hint={"x": ("n",)})
        def f(x):
            return np.cumsum(x) if x.ndim == 9 else x.sum() + x
        for n in (3, 8, 1):
            for dtype in ("f4", "f8"):
                x = np.arange(n, dtype=dtype)
                assert np.array_equal(f(x), f.__wrapped__(x))
        i = cuvil.cache.info()
        print(i.hits, i.misses, i.entries)
        """,
    )
    assert run(program)[0] == "0 4 4"
    assert run(program)[0] == "4 0 4"


def test_texts_of_a_cached_specialisation(directory, program, tmp_path):
    run(program)
    looking = write(
        tmp_path / "p.py",
        FUNCTION + "m = cuvil.get_compiled_module(f)\nassert 'matmul' in m.ir() and 'matmul' in str("
        "m.dump_schedule())\nassert 'found in the cache' in cuvil.explain(f)\n" + REPORT,
    )
    assert run(looking)[0] == HIT


@pytest.mark.parametrize("damage", ["empty", "short", "garbage", "header", "flips"])
def test_damaged_files_are_misses(directory, program, damage):
    run(program)
    (file,) = files(directory)
    whole = file.read_bytes()
    rng = random.Random(0)
    damaged = {
        "empty": [b""],
        "short": [whole[:n] for n in (1, 127, 128, 300, len(whole) - 1)],
        "garbage": [rng.randbytes(len(whole))],
        "header": [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in (0, 8, 12, 40, 64, 90)],
        "flips": [
            whole[:k] + bytes([whole[k] ^ (1 << rng.randrange(8))]) + whole[k + 1 :]
            for k in rng.sample(range(128, len(whole)), 6)
        ],
    }[damage]
    for content in damaged:
        file.write_bytes(content)
        assert run(program) == (MISS, "")
        assert file.read_bytes() == whole  # made again under the same name
        assert run(program)[0] == HIT


def test_a_huge_file_is_not_read(directory, program):
    run(program)
    (file,) = files(directory)
    whole = file.read_bytes()[:300]
    for head in b"", whole:
        file.write_bytes(head)
        os.truncate(file, (1 << 28) - 1)  # sparse
        process = start(program)
        out, error = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert (out.strip(), error, status) == (MISS, "", 0)
        assert usage.ru_maxrss < 200 << 10  # KiB


def test_file_of_another_function(directory, program, tmp_path):
    other = write(tmp_path / "other.py", program.read_text().replace("+ 1", "+ 5"))
    run(program)
    (mine,) = files(directory)
    run(other)
    (theirs,) = set(files(directory)) - {mine}
    shutil.copy(theirs, mine.parent / theirs.name)
    mine.unlink()
    assert run(program)[0] == MISS


def test_links_and_foreign_things_inside_are_left_alone(directory, program, tmp_path):
    run(program)
    (file,) = files(directory)
    outside = tmp_path / "outside.cuvil"
    file.rename(outside)
    file.symlink_to(outside)
    (file.parent / "notes.txt").write_text("mine")
    (directory / "readme").write_text("mine")
    assert run(program)[0] == MISS
    assert cuvil.cache.clear() == 1
    assert (file.parent / "notes.txt").exists() and (directory / "readme").exists() and outside.exists()


@pytest.mark.parametrize("mode", [0o770, 0o777])
def test_directory_that_others_may_write(directory, program, mode):
    directory.mkdir()
    directory.chmod(mode)
    out, error = run(program)
    assert out == MISS
    assert error.count("CuvilPerformanceWarning") == 1
    assert str(directory) in error and "others may write" in error and "CUVIL_CACHE_DIR" in error
    assert not files(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_another_user(directory, program):
    directory.mkdir(mode=0o700)
    os.chown(directory, 12345, -1)
    out, error = run(program)
    assert out == MISS and "another user" in error and not files(directory)


def test_key_directory_that_others_may_write(directory, program):
    run(program)
    files(directory)[0].parent.chmod(0o777)
    out, error = run(program)
    assert out == MISS and "others may write" in error


def test_file_that_others_may_write(directory, program):
    run(program)
    files(directory)[0].chmod(0o666)
    assert run(program)[0] == MISS


@pytest.mark.parametrize("path", ["file", "/proc/cuvil", "/dev/null/x", "link", "link/below"])
def test_directory_that_cannot_be_made(directory, program, tmp_path, path):
    if path == "file":
        path = tmp_path / "file"
        path.write_text("")
    elif path.startswith("link"):
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        path = tmp_path / path
    out, error = run(program, env={"CUVIL_CACHE_DIR": str(path)})
    assert out == MISS
    assert error.count("CuvilPerformanceWarning") == 1 and str(path) in error


def test_directory_is_made_with_its_parents(directory, program, tmp_path):
    path = tmp_path / "a" / "b" / "c"
    run(program, env={"CUVIL_CACHE_DIR": str(path)})
    assert len(files(path)) == 1


def test_directory_may_be_a_link(directory, program, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "real")
    assert run(program)[0] == MISS
    assert run(program)[0] == HIT


def test_without_home(program, tmp_path):
    env = {"CUVIL_CACHE": None, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": None}
    run(program, env=env)
    assert len(files(tmp_path / "home" / ".cache" / "cuvil")) == 1
    run(program, env={**env, "XDG_CACHE_HOME": str(tmp_path / "xdg")})
    assert len(files(tmp_path / "xdg" / "cuvil")) == 1


def test_full_disk(directory, program):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    out, error = run(program, preexec_fn=limit)
    assert out == MISS and error.count("CuvilPerformanceWarning") == 1
    assert not [p for p in directory.rglob("*") if p.is_file()]  # nothing half written stays
    assert run(program)[0] == MISS
    assert run(program)[0] == HIT


def test_off(directory, program, tmp_path):
    run(program, env={"CUVIL_CACHE": "0"})
    assert not directory.exists()
    off = write(tmp_path / "off.py", program.read_text().replace("@cuvil.jit", "@cuvil.jit(cache=False)"))
    assert run(off)[0] == MISS
    assert not directory.exists()


def test_many_processes_at_once(directory, program):
    processes = [start(program) for _ in range(6)]
    for process in processes:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0 and out.strip() in (HIT, MISS), error
        assert not error
    assert len(files(directory)) == 1
    assert run(program)[0] == HIT


def test_killed_while_writing(directory, tmp_path):
    program = write(
        tmp_path / "p.py",
        """
        import sys, numpy as np, cuvil
        print("ready", flush=True)
        k = int(sys.stdin.readline())
        while True:
            k += 1
            name = f"{sys.argv[0]}.{k}.py"
            open(name, "w").write(f"def g(x):\\n    return x * {k}.0 + {k}\\n")
            scope = {}
            exec(compile(open(name).read(), name, "exec"), scope)
            x = np.ones(4)
            assert np.array_equal(cuvil.jit(scope["g"])(x), scope["g"](x))
        """,
    )
    rng = random.Random(1)
    rounds = 0
    while rounds < 4 or (not files(directory) and rounds < 20):  # a slow machine needs more
        rounds += 1
        process = start(program, stdin=subprocess.PIPE)
        assert process.stdout.readline() == "ready\n"
        process.stdin.write(f"{rounds * 1000}\n")
        process.stdin.flush()
        time.sleep(0.05 + rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    assert files(directory)
    # All that is there is whole: each program finds its own.
    check = write(
        tmp_path / "check.py",
        """
        import glob, sys, numpy as np, cuvil
        for name in glob.glob(sys.argv[0].replace("check.py", "p.py.*.py")):
            scope = {}
            exec(compile(open(name).read(), name, "exec"), scope)
            if "g" in scope:
                assert np.array_equal(cuvil.jit(scope["g"])(np.ones(4)), scope["g"](np.ones(4)))
        print(cuvil.cache.info().hits)
        """,
    )
    whole = len(files(directory))
    hits = int(run(check)[0])
    assert hits >= whole - rounds  # the last of each round may have no program on disk


def test_eviction(directory, tmp_path, monkeypatch):
    monkeypatch.setenv("CUVIL_CACHE_MB", "1")
    program = write(
        tmp_path / "p.py",
        """
        import numpy as np, cuvil
        @cuvil.jit
        def f(x):
            return x + 1
        f(np.ones(3))
        print(cuvil.cache.info().evictions)
        """,
    )
    assert run(program)[0] == "0"
    (mine,) = files(directory)
    old = mine.parent / ("0" * 32 + ".cuvil")
    for k in range(3):
        filler = directory / f"{k:032x}" / ("f" * 32 + ".cuvil")
        filler.parent.mkdir(mode=0o700)
        filler.write_bytes(bytes(400_000))
        os.utime(filler, (1e9 + k, 1e9 + k))
    left = directory / f"{9:032x}"
    left.mkdir(mode=0o700)
    (left / ".writing-1-0-x").write_bytes(b"x")
    os.utime(left / ".writing-1-0-x", (1e9, 1e9))
    changed = write(tmp_path / "q.py", program.read_text().replace("x + 1", "x + 2"))
    assert run(changed)[0] == "1"  # the oldest; then it fits
    assert mine.exists() and not old.exists()
    assert not (directory / f"{0:032x}").exists() and (directory / f"{1:032x}").exists()
    assert not (left / ".writing-1-0-x").exists()


@pytest.mark.parametrize("size", [1 << 43, (1 << 63) - 1])
def test_a_bound_that_nothing_reaches(directory, program, size):
    run(program, env={"CUVIL_CACHE_MB": str(size)})
    assert run(program, env={"CUVIL_CACHE_MB": str(size)})[0] == HIT


def test_clock_that_goes_backwards(directory, program):
    run(program)
    (file,) = files(directory)
    future = time.time() + 1e8
    os.utime(file, (future, future))
    assert run(program)[0] == HIT
    assert abs(file.stat().st_mtime - time.time()) < 1000


def test_interface(directory, program, capsys):
    assert cuvil.cache.dir() == str(directory)
    assert cuvil.cache.info().entries == 0
    assert cuvil.cache.clear() == 0
    run(program)
    info = cuvil.cache.info()
    assert info.entries == 1 and info.bytes == files(directory)[0].stat().st_size and info.enabled
    assert str(directory) in str(info) and "1 specialisations" in str(info)
    from cuvil.__main__ import main

    assert main(["cache", "list"]) == 0
    assert str(files(directory)[0]) in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed 1" in capsys.readouterr().out
    assert main(["cache"]) == 0
    assert not files(directory) and not list(directory.iterdir())
    directory.chmod(0o777)
    with pytest.raises(cuvil.CacheError, match="others may write"):
        cuvil.cache.clear()
    assert main(["cache", "clear"]) == 1


def test_in_process(directory):
    """Two functions of the same code share what is on disk; a damaged directory warns once."""

    def make():
        return cuvil.jit(lambda x: x * 3 + 2)

    x = np.arange(4.0)
    make()(x)
    hits = cuvil.cache.info().hits  # waits for what is being written
    f = make()
    np.testing.assert_array_equal(f(x), x * 3 + 2)
    assert cuvil.cache.info().hits == hits + 1
    for path in files(directory):
        path.unlink()
    pathlib.Path(directory).chmod(0o777)
    with pytest.warns(cuvil.CuvilPerformanceWarning, match="cannot be used"):
        make()(np.ones(2, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(make()(np.ones(2, np.int32)), [5, 5])
