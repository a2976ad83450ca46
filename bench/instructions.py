"""What a call costs, in instructions: the figure that repeats, for the calls of bench/dispatch.py.

    python bench/instructions.py            count and print
    python bench/instructions.py --write    also keep the counts in bench/instructions.json
    python bench/instructions.py --check    fail if one has moved by more than 3 %

Runs itself under ``valgrind --tool=callgrind``, which takes about half a minute. Counts are of everything
between one call and the next: the interpreter's part, binding, guards, the kernel, the result. They depend
on the versions of Python and NumPy, so those of others are not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

KEPT = pathlib.Path(__file__).with_name("instructions.json")
CALLS = 2000
TOLERANCE = 0.03


def programs():
    """Name to (compiled function, arguments)."""
    import cuvil
    import dispatch

    out = {name: (cuvil.jit(function), args) for name, (function, args) in dispatch.PROGRAMS.items()}
    x = dispatch.X.copy()
    keywords = cuvil.jit(lambda a, b=None, *, c: a + b + c)
    out["keyword arguments"] = (lambda: keywords(x, c=x, b=x), ())
    return out


def run() -> None:
    """What callgrind counts: a dump of its counters at each call of ``getppid``."""
    import collections
    import itertools

    import cuvil

    cases = programs()
    for function, args in cases.values():
        function(*args)
    cuvil.runtime.wait_for_compilation()
    for function, args in cases.values():
        for count in (100, CALLS):  # once so that everything is in place
            os.getppid()
            collections.deque(itertools.starmap(function, itertools.repeat(args, count)), maxlen=0)
            os.getppid()
    print(json.dumps(list(cases)))


def measure() -> dict[str, int]:
    """Instructions a call, by case."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "counts")
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={out}",
                "--dump-before=getppid",
                "--separate-threads=yes",  # the compiler's thread may still be freeing what it used
                sys.executable,
                __file__,
                "--run",
            ],
            env={
                **os.environ,
                "CUVIL_CACHE": "0",
                "CUVIL_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONHASHSEED": "0",
            },
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(done.stderr)
        names = json.loads(done.stdout.splitlines()[-1])
        totals = []
        parts = pathlib.Path(folder).glob("counts.*-01")  # of the main thread
        for part in sorted(parts, key=lambda p: int(p.suffix[1:].partition("-")[0])):
            totals.append(int(re.search(r"^(?:totals|summary): (\d+)", part.read_text(), re.MULTILINE)[1]))
    # Dumps: before the first call of getppid, then after each loop and between loops.
    return {name: round(totals[4 * k + 3] / CALLS) for k, name in enumerate(names)}


def versions() -> dict[str, str]:
    """What counts depend on."""
    import numpy

    return {
        "python": sys.version,  # with the compiler and the day that it was built on
        "numpy": numpy.__version__,
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
    }


def main() -> None:
    """Measure, print, and keep or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the counts")
    parser.add_argument("--check", action="store_true", help="compare with those kept")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run()
        return
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"versions": {}, "instructions": {}}
    if options.check and kept["versions"] != versions():
        print(f"not compared: the counts kept are of {kept['versions']}, this is {versions()}")
        return
    if not shutil.which("valgrind"):
        print("not measured: valgrind is not installed")
        sys.exit(0 if options.check else 1)
    counts = measure()
    moved = []
    print(f"{'instructions a call':<28}{'now':>10}{'kept':>10}")
    for name, count in counts.items():
        before = kept["instructions"].get(name)
        change = count / before - 1 if before else 0.0
        print(f"{name:<28}{count:>10}" + (f"{before:>10}{change:>+9.1%}" if before else f"{'-':>10}"))
        if abs(change) > TOLERANCE:
            moved.append(name)
    if options.write:
        KEPT.write_text(json.dumps({"versions": versions(), "instructions": counts}, indent=2) + "\n")
    if options.check and moved:
        sys.exit(
            f"more than {TOLERANCE:.0%} from what is kept: {', '.join(moved)} (--write keeps the new counts)"
        )


if __name__ == "__main__":
    main()
