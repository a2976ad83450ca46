"""``python -m cuvil``: versions, devices, environment variables."""

from __future__ import annotations

import argparse
import os
import sys

import cuvil
import numpy as np
from cuvil import _cuvil


def main(arguments: list[str] | None = None) -> int:
    """Print what this installation is and what it runs on."""
    parser = argparse.ArgumentParser(
        prog="python -m cuvil", description="Prints versions, devices and environment variables."
    )
    parser.add_argument("--version", action="version", version=f"cuvil {cuvil.__version__}")
    parser.parse_args(arguments)
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"cuvil {cuvil.__version__} (build {_cuvil.build_id})")
    print(f"LLVM {_cuvil.llvm_version}, NumPy {np.__version__}, Python {python}")
    print("\nDevices")
    for device in cuvil.runtime.list_devices():
        print(f"  {device}")
    print(f"\nThreads of a call: {cuvil.runtime.num_threads()}")
    print("\nEnvironment")
    for variable, explanation in _cuvil.knobs():
        value = os.environ.get(variable)
        print(f"  {variable:<20}{'-' if value is None else value:<10}{explanation}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
