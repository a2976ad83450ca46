"""Cuvil compiles the NumPy function in front of you to native code of this machine.

Examples
--------
>>> import numpy as np
>>> import cuvil
>>> @cuvil.jit(shape_hint={"x": (1, 128), "w": (128, 64)})
... def matmul_inference(x, w):
...     return np.maximum(x @ w, 0.0)
>>> x = np.ones((1, 128), np.float32)
>>> w = np.ones((128, 64), np.float32)
>>> matmul_inference(x, w)[0, 0]
np.float32(128.0)
"""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

try:
    from cuvil import _cuvil  # noqa: F401
except ImportError as _error:
    _here = _os.path.dirname(_os.path.abspath(__file__))
    if any(_name.startswith("_cuvil.") and _name.endswith(".so") for _name in _os.listdir(_here)):
        raise
    raise ImportError(
        f"{_here} holds the sources of cuvil without its libraries, and comes first on the path\n"
        "  help: run Python in another directory, or without -m and -c, or put the directory of a build "
        "(build/dev/python) first on PYTHONPATH"
    ) from _error

from cuvil import errors
from cuvil._api import compile, explain, get_compiled_module, jit
from cuvil._version import __version__
from cuvil.errors import (
    CacheError,
    CuvilError,
    CuvilPerformanceWarning,
    DeviceError,
    DTypeError,
    InternalError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
)

if _TYPE_CHECKING:
    from cuvil import cache, runtime

__all__ = [
    "CacheError",
    "CuvilError",
    "CuvilPerformanceWarning",
    "DTypeError",
    "DeviceError",
    "InternalError",
    "OutOfMemoryError",
    "ShapeError",
    "UnsupportedError",
    "__version__",
    "cache",
    "compile",
    "errors",
    "explain",
    "get_compiled_module",
    "jit",
    "runtime",
]


def __getattr__(name: str) -> object:
    """The submodules that a program may do without, imported when they are asked for."""
    if name in ("cache", "runtime"):
        import importlib

        return importlib.import_module(f"cuvil.{name}")
    raise AttributeError(f"module 'cuvil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
