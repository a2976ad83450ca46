"""``python -m cuvil``: versions, devices, environment variables; ``cache``: the cache on disk."""

from __future__ import annotations

import argparse
import os
import sys
import time

import cuvil
import numpy as np
from cuvil import _cuvil


def show_machine() -> None:
    """Print what this installation is and what it runs on."""
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"cuvil {cuvil.__version__} (build {_cuvil.build_id})")
    print(f"LLVM {_cuvil.llvm_version}, NumPy {np.__version__}, Python {python}")
    print("\nDevices")
    for device in cuvil.runtime.list_devices():
        print(f"  {device}")
    print(f"\nThreads of a call: {cuvil.runtime.num_threads()}")
    print("\nCache")
    for line in str(cuvil.cache.info()).splitlines():
        print(f"  {line}")
    print("\nEnvironment")
    for variable, explanation in _cuvil.knobs():
        value = os.environ.get(variable)
        print(f"  {variable:<20}{'-' if value is None else value:<10}{explanation}")


def show_cache(what: str) -> None:
    """Print, list or clear the cache."""
    if what == "clear":
        print(f"removed {cuvil.cache.clear()} specialisations from {cuvil.cache.dir()}")
    elif what == "list":
        for file in _cuvil.cache_files(cuvil.cache.dir()):
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(file["used"]))
            print(f"{used}  {file['bytes']:>8}  {file['path']}")
    else:
        print(cuvil.cache.info())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cuvil",
        description="Without a command: versions, devices, the cache, environment variables.",
    )
    parser.add_argument("--version", action="version", version=f"cuvil {cuvil.__version__}")
    commands = parser.add_subparsers(dest="command")
    cache = commands.add_parser("cache", help="the compiled code that is kept on disk")
    cache.add_argument("what", nargs="?", choices=("info", "list", "clear"), default="info")
    options = parser.parse_args(arguments)
    try:
        if options.command == "cache":
            show_cache(options.what)
        else:
            show_machine()
    except cuvil.CuvilError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
