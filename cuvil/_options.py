"""Checks of what is given to ``jit``: the function, its hints, the options."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import numpy as np
from cuvil.errors import ShapeError, UnsupportedError

Axis = int | str | None
Hint = tuple[tuple[Axis, ...], "np.dtype[Any] | None"]

_GENERATORS = (
    (0x80 | 0x100, "a coroutine"),
    (0x200, "an async generator"),
    (0x20, "a generator"),
)


def place(function: types.FunctionType) -> str:
    """Where a function is defined, as it stands in messages."""
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def check_function(fn: Any) -> types.FunctionType:
    """The plain function to compile.

    Raises
    ------
    TypeError
        If ``fn`` is no function.
    UnsupportedError
        If it is a kind of function that is never compiled.
    """
    if isinstance(fn, types.FunctionType):
        for flag, what in _GENERATORS:
            if fn.__code__.co_flags & flag:
                raise UnsupportedError(
                    f"{fn.__qualname__} is {what}, which is not compiled\n  {place(fn)}\n"
                    "  help: compile the functions that it calls"
                )
        return fn
    if isinstance(fn, type):
        raise UnsupportedError(
            f"the class {fn.__qualname__} cannot be compiled\n  help: decorate its methods, one by one"
        )
    if isinstance(fn, (staticmethod, classmethod)):
        raise UnsupportedError(
            f"a {type(fn).__name__} cannot be compiled\n  help: put @{type(fn).__name__} above @cuvil.jit"
        )
    if isinstance(fn, types.MethodType):
        raise UnsupportedError(
            f"the bound method {fn.__qualname__} cannot be compiled\n"
            "  help: decorate the function in its class"
        )
    raise TypeError(f"cuvil.jit expects a Python function, got {type(fn).__name__}: {fn!r}")


def _axis(name: str, axis: Any) -> Axis:
    if axis is None or (type(axis) is int and axis == -1):
        return None
    if isinstance(axis, str):
        if not axis:
            raise ShapeError(f"shape_hint[{name!r}] has an empty name for an axis")
        return axis
    if isinstance(axis, (int, np.integer)) and not isinstance(axis, bool) and 0 <= axis < 2**63:
        return int(axis)
    raise ShapeError(
        f"shape_hint[{name!r}] has {axis!r} for an axis\n"
        "  help: give a size, None for any size, or a name for sizes that are equal"
    )


def _hint(name: str, hint: Any) -> Hint:
    dtype = None
    shape = hint
    if isinstance(hint, (tuple, list)) and len(hint) == 2 and isinstance(hint[0], (tuple, list)):
        shape, spelled = hint
        try:
            dtype = None if spelled is None else np.dtype(spelled)
        except (TypeError, ValueError, SyntaxError) as error:
            raise ShapeError(f"shape_hint[{name!r}] names no dtype: {spelled!r}") from error
    if not isinstance(shape, (tuple, list)):
        raise ShapeError(
            f"shape_hint[{name!r}] is {hint!r}\n  help: give a tuple of sizes, or (sizes, dtype)"
        )
    return tuple(_axis(name, axis) for axis in shape), dtype


def check_hints(fn: types.FunctionType, hints: Any) -> dict[str, Hint]:
    """``shape_hint`` in canonical form: name to (axes, dtype); ``None`` is any size.

    Raises
    ------
    ShapeError
        Naming the argument, if a name is none of the function's array parameters or a value no shape.
    """
    if hints is None:
        return {}
    if not isinstance(hints, Mapping):
        raise TypeError(f"shape_hint must be a dict from parameter names to shapes, got {hints!r}")
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    checked = {}
    for name, hint in hints.items():
        if name not in names:
            raise ShapeError(
                f"shape_hint names {name!r}, which is no parameter of {fn.__qualname__}\n  {place(fn)}\n"
                f"  help: its parameters are {', '.join(names) or 'none'}"
            )
        checked[name] = _hint(name, hint)
    return checked


# Option, values that are built, values that the design has and that are not built yet.
_CHOICES: tuple[tuple[str, tuple[Any, ...], tuple[Any, ...]], ...] = (
    ("precision", ("strict",), ("mixed", "tf32", "float16", "bfloat16")),
    ("background", (False, True), ()),
    ("memory", ("fast",), ("small",)),
    ("autotune", ("off",), ("on",)),
    ("cache", (True, False), ()),
    ("strict", (True, False), ()),
)


def check_choice(option: str, value: Any) -> None:
    """Raise unless ``value`` is one that ``option`` takes today."""
    for name, built, later in _CHOICES:
        if name != option:
            continue
        if any(type(value) is type(known) and value == known for known in built):
            return
        allowed = " or ".join(repr(known) for known in built)
        if any(type(value) is type(known) and value == known for known in later):
            raise UnsupportedError(f"{option}={value!r} is not built yet\n  help: use {option}={allowed}")
        raise ValueError(f"{option} must be {allowed}, got {value!r}")


def check_device(device: Any) -> str:
    """The device to compile for, as the compiler spells it."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return "cpu"
    if isinstance(device, str) and device.partition(":")[0] == "cuda":
        raise UnsupportedError(f"device={device!r} is not built yet\n  help: use device='auto' or 'cpu'")
    raise ValueError(f"device must be 'auto' or 'cpu', got {device!r}")


def check_target_cpu(target_cpu: Any) -> str:
    """The CPU name to compile for; empty for this machine."""
    if target_cpu is None:
        return ""
    if isinstance(target_cpu, str) and target_cpu and "\0" not in target_cpu:
        return target_cpu
    raise ValueError(f"target_cpu must be None or the name of a CPU such as 'x86-64-v3', got {target_cpu!r}")


def check_hooks(hooks: Any) -> None:
    """Raise unless there are no profile hooks."""
    if not isinstance(hooks, (tuple, list)) or not all(callable(hook) for hook in hooks):
        raise TypeError(f"profile_hooks must be a tuple of callables, got {hooks!r}")
    if hooks:
        raise UnsupportedError("profile_hooks are not built yet\n  help: leave them out")
