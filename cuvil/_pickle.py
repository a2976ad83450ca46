"""How compiled functions travel to other processes; imported when one is pickled or unpickled.

What can be imported there is written as its name. Anything else is written as the plain function, which
cloudpickle knows how to write, with the options and the text that the compiler reads. The machine code stays
here: whoever unpickles the function finds that in the cache on disk, or compiles anew.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

from cuvil import _cuvil, _options

# The file of all code that cloudpickle writes (3.1.3 and later); also in native/frontend/source.cpp.
_FORGOTTEN = "<dynamic-code>"

# CO_FUTURE_*: the flags of code that how it is compiled depends on.
_FUTURE = 0x1FF0000

# Files that came with functions, and the code in them by file and flags, once it was asked for.
_texts: dict[str, list[str]] = {}
_codes: dict[tuple[str, int], set[types.CodeType]] = {}


def reduce(compiled: Any) -> str | tuple[Any, ...]:
    """What ``__reduce__`` of a compiled function returns.

    Raises
    ------
    pickle.PicklingError
        If the pickler writes functions as names only, and this one cannot be imported.
    """
    function: types.FunctionType = compiled.__wrapped__
    # pickle and cloudpickle ask alike, but want other answers for what is defined in __main__. The frame
    # below is the one that called the pickler, or part of it.
    pickler = sys._getframe(1).f_globals
    if _is_found(function, compiled) and not _is_taken_along(function, pickler):
        return function.__qualname__
    names = str(pickler.get("__name__")).split(".")
    if "pickle" not in names and "cloudpickle" not in names and not _is_found(function, function):
        raise pickle.PicklingError(
            f"pickle writes compiled functions as names, and {function.__qualname__} cannot be imported from "
            f"{function.__module__}\n  {_options.place(function)}\n"
            "  help: use cloudpickle, as joblib and Dask do, or define it at the top of a module"
        )
    hints, options = _cuvil.arguments(compiled)
    file, sources = _file(function.__code__), _sources(function, pickler)
    return rebuild, (function, file, hints, options, sources), vars(compiled) or None


def rebuild(
    function: types.FunctionType,
    file: str,
    hints: dict[str, Any],
    options: dict[str, Any],
    sources: dict[str, list[str]],
) -> _cuvil.CompiledFunction:
    """Make the compiled function again. Its globals and closure may still be empty: they are filled later."""
    for name, lines in sources.items():
        if _texts.get(name) != lines:
            _texts[name] = lines
            _codes.clear()
        # Where there is no such file the compiler asks linecache; without a time the entry stays.
        if not os.access(name, os.R_OK) and linecache.getlines(name) != lines:
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    if function.__code__.co_filename == _FORGOTTEN:
        function.__code__ = _in_file(function.__code__, file)
    return _cuvil.make(function, hints, **options)


def recall_file(function: types.FunctionType) -> None:
    """Give a function from cloudpickle, which writes no file names, its own again if a text here has it."""
    function.__code__ = _in_file(function.__code__, _file(function.__code__))


def _file(code: types.CodeType) -> str:
    """The file of code that was written there, or came from cloudpickle."""
    if code.co_filename != _FORGOTTEN:
        return code.co_filename
    for name, lines in tuple(_texts.items()):
        flags = code.co_flags & _FUTURE
        codes = _codes.get((name, flags))
        if codes is None:
            codes = _codes[name, flags] = _codes_in("".join(lines), name, flags)
        if code in codes:  # code is equal whatever its file
            return name
    return code.co_filename


def _codes_in(text: str, file: str, flags: int) -> set[types.CodeType]:
    try:
        return set(_nested(compile(text, file, "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError):  # a text that holds more than Python
        return set()


def _in_file(code: types.CodeType, file: str) -> types.CodeType:
    constants = tuple(_in_file(c, file) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=constants)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _is_found(function: types.FunctionType, expected: object) -> bool:
    """Whether the function's module and name lead to ``expected``."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is expected


def _is_taken_along(function: types.FunctionType, pickler: dict[str, Any]) -> bool:
    """Whether the pickler is a copy of cloudpickle that writes functions of this module by value."""
    if "cloudpickle" not in str(pickler.get("__name__")).split("."):
        return False
    module = function.__module__
    registered = pickler.get("list_registry_pickle_by_value", set)()
    return module == "__main__" or any(f"{module}.".startswith(f"{name}.") for name in registered)


def _sources(function: types.FunctionType, pickler: dict[str, Any]) -> dict[str, list[str]]:
    """Lines of the files, notebook cells and the like that hold the function and those that it names."""
    sources: dict[str, list[str]] = {}
    seen: set[types.FunctionType] = set()
    waiting: list[Any] = [function]
    while waiting:
        plain = waiting.pop()
        # Compiled functions bring their own.
        if not isinstance(plain, types.FunctionType) or plain in seen:
            continue
        seen.add(plain)
        if _is_found(plain, plain) and not _is_taken_along(plain, pickler):
            continue
        file = _file(plain.__code__)
        if lines := linecache.getlines(file, plain.__globals__):
            sources[file] = lines
        names = {name for code in _nested(plain.__code__) for name in code.co_names}
        waiting += [plain.__globals__.get(name) for name in names]
        for cell in plain.__closure__ or ():
            try:
                waiting.append(cell.cell_contents)
            except ValueError:  # empty
                continue
    return sources
