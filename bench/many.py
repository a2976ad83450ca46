"""Many functions: what each takes of a warm start, and whether compiling and dropping them leaves anything.

    python bench/many.py [--functions 1000] [--cycles 10000]

The functions are of one generated module. A first process fills the cache; a second, measured, decorates and
calls each once. A cycle compiles a function that no other is like, machine code included, calls it and drops
it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

WARM = """
import json, os, sys, time, numpy as np, cuvil
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
import many_functions
x = np.arange(8.0)
before, t0 = rss(), time.perf_counter()
compiled = [cuvil.jit(f) for f in many_functions.FUNCTIONS]
for f in compiled:
    f(x)
t1 = time.perf_counter()
cuvil.runtime.wait_for_compilation()
n = len(compiled)
print(json.dumps([(t1 - t0) * 1e3 / n, (rss() - before) / 1024 / n, cuvil.cache.info().hits]))
"""

DROP = """
import gc, json, os, sys, time, numpy as np, cuvil
source = os.path.join(os.path.dirname(__file__), "dropped.py")
with open(source, "w") as f:
    f.write("def f(x):\\n    return x * 1.5 + K\\n")
code = compile(open(source).read(), source, "exec")
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
x, start = np.arange(16.0), time.perf_counter()
for k in range(1, int(sys.argv[1]) + 1):
    scope = {"K": float(k)}
    exec(code, scope)
    f = cuvil.jit(scope["f"])
    f(x)
    del f, scope
    if k in (100, 500) or k % 1000 == 0:
        gc.collect()
        cuvil.runtime.wait_for_compilation()
        print(json.dumps([k, rss() / 2**20, time.perf_counter() - start]), flush=True)
"""


def warm_start(count: int) -> None:
    """Milliseconds and KiB a function."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"def f{k}(x):\n    return (x + {k}.5) * x.sum()\n" for k in range(count)]
        lines.append("FUNCTIONS = [" + ", ".join(f"f{k}" for k in range(count)) + "]\n")
        with open(os.path.join(folder, "many_functions.py"), "w") as file:
            file.write("\n".join(lines))
        program = os.path.join(folder, "warm.py")
        with open(program, "w") as file:
            file.write(WARM)
        env = {**os.environ, "CUVIL_CACHE": "1", "CUVIL_CACHE_DIR": os.path.join(folder, "cache")}
        for kind in ("cold", "warm"):
            done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            ms, kib, hits = json.loads(done.stdout)
            print(f"{count} functions, {kind}: {ms:.3f} ms and {kib:.1f} KiB each, {hits} hits")


def drop(cycles: int) -> None:
    """Resident memory while functions come and go."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "drop.py")
        with open(program, "w") as file:
            file.write(DROP)
        env = {**os.environ, "CUVIL_CACHE": "0", "CUVIL_INTERPRET": "0"}
        command = [sys.executable, program, str(cycles)]
        settled = None
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                k, mib, seconds = json.loads(line)
                settled = mib if k == 500 else settled
                grown = f", {(mib - settled) * 1024:+.0f} KiB since 500" if settled else ""
                print(f"{k:>6} cycles: {mib:.2f} MiB{grown}, {seconds:.1f} s", flush=True)
        if process.returncode:
            sys.exit(process.returncode)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=1000)
    parser.add_argument("--cycles", type=int, default=10_000)
    options = parser.parse_args()
    if options.functions:
        warm_start(options.functions)
    if options.cycles:
        drop(options.cycles)


if __name__ == "__main__":
    main()
