"""``jit`` and the functions that look at what it made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from cuvil import _cuvil, _options

if TYPE_CHECKING:
    from cuvil.module import CompiledModule

P = ParamSpec("P")
R = TypeVar("R")

Shape = Sequence["int | str | None"]
ShapeHint = Mapping[str, "Shape | tuple[Shape, Any]"]


@overload
def jit(fn: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def jit(
    fn: Callable[P, R],
    /,
    *,
    shape_hint: ShapeHint | None = ...,
    device: str = ...,
    precision: str = ...,
    strict: bool = ...,
    cache: bool = ...,
    background: bool = ...,
    memory: str = ...,
    autotune: str = ...,
    target_cpu: str | None = ...,
    profile_hooks: Sequence[Callable[..., Any]] = ...,
) -> Callable[P, R]: ...


@overload
def jit(
    fn: None = None,
    /,
    *,
    shape_hint: ShapeHint | None = ...,
    device: str = ...,
    precision: str = ...,
    strict: bool = ...,
    cache: bool = ...,
    background: bool = ...,
    memory: str = ...,
    autotune: str = ...,
    target_cpu: str | None = ...,
    profile_hooks: Sequence[Callable[..., Any]] = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def jit(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    shape_hint: ShapeHint | None = None,
    device: str = "auto",
    precision: str = "strict",
    strict: bool = False,
    cache: bool = True,
    background: bool = False,
    memory: str = "fast",
    autotune: str = "off",
    target_cpu: str | None = None,
    profile_hooks: Sequence[Callable[..., Any]] = (),
) -> Any:
    """Compile a NumPy function when it is called.

    The first call with arguments of a new kind (dtype, rank, layout, sizes) makes a *specialisation*: it
    is interpreted while its machine code is made on another thread, which later calls run. Both give the
    same bits. The result is what plain Python would have returned.

    Parameters
    ----------
    fn : function, optional
        The function. Left out where options are given: ``@cuvil.jit(shape_hint=...)``.
    shape_hint : dict, optional
        From parameter names to shapes, or to ``(shape, dtype)``. An int is a size to specialise for,
        ``None`` or -1 any size, a string a name for sizes that are equal wherever it recurs. A call
        with another size still runs; one with another rank or dtype is an error. Without a hint the
        first shape is specialised, and an axis that changes becomes symbolic at its second size.
    device : {"auto", "cpu"}
        Where to run.
    precision : {"strict"}
        Floating point as NumPy computes it.
    strict : bool
        Raise for what cannot be compiled. Every call behaves so today, whatever is given.
    cache : bool
        Keep compiled code on disk for later processes (see :mod:`cuvil.cache`).
    background : bool
        If ``shape_hint`` gives sizes and dtypes of all parameters: begin at the decoration, on another
        thread, unless the cache holds the specialisation. The first call finds it, or waits for the rest.
        What the function reads from outside must be there by then, or the first call begins anew.
    memory : {"fast"}
        What to prefer where speed and memory disagree.
    autotune : {"off"}
        Search for faster kernels.
    target_cpu : str, optional
        Name of the CPU to compile for, such as ``"x86-64-v3"``; default: this machine's.
    profile_hooks : tuple
        Must be empty today.

    Notes
    -----
    Of ``numpy.memmap`` arguments, views are maps, too; results with memory of their own are arrays.

    Returns
    -------
    CompiledFunction
        Callable as ``fn``, with its name, documentation and signature; ``__wrapped__`` is ``fn``.

    Raises
    ------
    UnsupportedError
        For generators, coroutines, classes, and for values of options that are not built yet.
    ShapeError
        For hints that name no parameter or hold no shape.
    TypeError, ValueError
        For what is no function, and for values that an option does not take.

    Examples
    --------
    >>> import numpy as np
    >>> import cuvil
    >>> @cuvil.jit(shape_hint={"x": ("n",), "y": ("n",)})
    ... def dot(x, y):
    ...     return (x * y).sum()
    >>> dot(np.arange(3.0), np.ones(3))
    np.float64(3.0)
    """
    where, cpu = "cpu", ""
    # Most give none: the checks are a third of a warm start.
    texts = (device, precision, memory, autotune)
    if (
        not all(type(text) is str for text in texts)
        or texts != ("auto", "strict", "fast", "off")
        or strict is not False
        or cache is not True
        or background is not False
        or target_cpu is not None
        or type(profile_hooks) is not tuple
        or profile_hooks
    ):
        for option, value in (
            ("precision", precision),
            ("strict", strict),
            ("cache", cache),
            ("background", background),
            ("memory", memory),
            ("autotune", autotune),
        ):
            _options.check_choice(option, value)
        _options.check_hooks(profile_hooks)
        where = _options.check_device(device)
        cpu = _options.check_target_cpu(target_cpu)

    def decorate(fn: Any) -> Any:
        if isinstance(fn, _cuvil.CompiledFunction):
            fn = fn.__wrapped__
        function = _options.check_function(fn)
        hints = _options.check_hints(function, shape_hint)
        compiled = _cuvil.make(function, hints, device=where, target_cpu=cpu, cache=cache)
        if background:
            _begin(compiled, shape_hint)
        return compiled

    if fn is None:
        if shape_hint is not None and not isinstance(shape_hint, Mapping):
            raise TypeError(f"shape_hint must be a dict from parameter names to shapes, got {shape_hint!r}")
        return decorate
    return decorate(fn)


def compile(
    fn: Callable[P, R],
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    **options: Any,
) -> Callable[P, R]:
    """Compile a function now, for arguments like the examples.

    Parameters
    ----------
    fn : function
        As for :func:`jit`.
    example_inputs : sequence or dict, optional
        Positional or keyword arguments of a call. The function is not run. Without them the shapes
        and dtypes of ``shape_hint`` are used if it gives them for every parameter; else the function
        is compiled at its first call.
    **options
        As for :func:`jit`. With ``background=True`` it returns at once; else when there is machine code.

    Returns
    -------
    CompiledFunction

    Examples
    --------
    >>> import numpy as np
    >>> import cuvil
    >>> double = cuvil.compile(lambda x: x * 2, (np.ones(4),))
    >>> double(np.arange(4.0))
    array([0., 2., 4., 6.])
    """
    background = options.pop("background", False)
    _options.check_choice("background", background)
    compiled: Any = jit(fn, **options)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example_inputs, Mapping):
        kwargs = dict(example_inputs)
    elif isinstance(example_inputs, (tuple, list)):
        args = tuple(example_inputs)
    elif example_inputs is not None:
        args = (example_inputs,)
    else:
        hinted = _examples_of(compiled.__wrapped__, options.get("shape_hint"))
        if hinted is None:
            return compiled  # type: ignore[no-any-return]
        args, kwargs = hinted
    if background:
        _start(compiled, args, kwargs)
    else:
        _cuvil.prepare(compiled, args, kwargs, True)
    return compiled  # type: ignore[no-any-return]


def _examples_of(fn: Any, hints: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments as the hints describe them, or None if they leave something open."""
    import numpy as np

    checked = _options.check_hints(fn, hints)
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    examples = {}
    for name in names:
        axes, dtype = checked.get(name, ((None,), None))
        sizes = [axis for axis in axes if isinstance(axis, int)]
        if dtype is None or len(sizes) < len(axes):
            return None
        examples[name] = np.empty(sizes, dtype)
    if not examples:
        return None
    return tuple(examples.pop(name) for name in names[: code.co_posonlyargcount]), examples


def _begin(compiled: Any, hints: Any) -> None:
    """Compile for what the hints describe, on another thread, unless that is in the cache."""
    hinted = _examples_of(compiled.__wrapped__, hints)
    if hinted is not None:
        _start(compiled, *hinted)


def _start(compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if _cuvil.look_up(compiled, args, kwargs):
        return
    import threading

    def work() -> None:
        try:
            _cuvil.prepare(compiled, args, kwargs)
        except Exception:
            pass  # the first call raises it, where the user sees it

    threading.Thread(target=work, name="cuvil background").start()


def get_compiled_module(fn: Callable[..., Any], *args: Any) -> CompiledModule:
    """Look inside a compiled function.

    Parameters
    ----------
    fn : CompiledFunction
        What :func:`jit` returned.
    *args
        Positional arguments of a call: the specialisation for them, compiled if need be. Without
        them: the one that ran last.

    Returns
    -------
    CompiledModule

    Raises
    ------
    TypeError
        If ``fn`` is no compiled function.
    ValueError
        If there is no specialisation yet.
    """
    from cuvil.module import CompiledModule

    if args:
        return CompiledModule(fn, _cuvil.prepare(fn, args, {}), args)
    index = _cuvil.last_index(fn)
    if index < 0:
        raise ValueError(
            f"{fn.__qualname__} has not been compiled yet\n"
            "  help: call it first, or give arguments to get_compiled_module"
        )
    return CompiledModule(fn, index)


def explain(fn: Callable[..., Any]) -> str:
    """What a compiled function has been compiled for, and why each time.

    Examples
    --------
    >>> import numpy as np
    >>> import cuvil
    >>> double = cuvil.jit(lambda x: x * 2)
    >>> _ = double(np.ones(3)), double(np.ones(5))
    >>> cuvil.runtime.wait_for_compilation()
    >>> print(cuvil.explain(double))
    <lambda>: 2 specialisations
    0  x: float64[3]
       made because: first call; ... ms; 1 call
    1  x: float64[s0]
       made because: axis 0 of 'x' has another size; ... ms; 1 call
    """
    rows = _cuvil.specialisations(fn)
    count = f"{len(rows)} specialisation{'' if len(rows) == 1 else 's'}"
    lines = [f"{fn.__qualname__}: {count}"]
    for index, row in enumerate(rows):
        calls = f"{row['calls']} call{'' if row['calls'] == 1 else 's'}"
        lines.append(f"{index}  {row['signature']}")
        lines.append(f"   made because: {row['reason']}; {row['milliseconds']:.1f} ms; {calls}")
        if row["interpreted"]:
            lines.append("   interpreted until its machine code is there")
        lines.extend(f"   relies on: {guard}" for guard in row["guards"])
    return "\n".join(lines)
