"""What a specialisation looks like inside: schedule, memory plan, IR, assembly."""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuvil import _cuvil

__all__ = ["Buffer", "CompiledModule", "Kernel", "MemoryPlan", "Schedule"]

# Bits of the request (native/compiler/entry.h): which texts to make.
_WANT = {"ir": 1, "llvm": 2, "asm": 4}


@dataclass(frozen=True)
class Kernel:
    """One loop nest.

    Attributes
    ----------
    name : str
    ops : tuple of str
        The operations that are fused in it.
    dtype : str
        Of what it writes, as CIR spells it: ``"f32"``.
    shape : tuple of int or str
        Of what it writes; a str is an expression over symbols.
    reads, writes : tuple of str
        Buffers.
    """

    name: str
    ops: tuple[str, ...]
    dtype: str
    shape: tuple[int | str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _kernel(line: str) -> Kernel:
    name, *rest = line.split("  ")
    fields = dict(item.split("=", 1) for item in rest if "=" in item)
    dtype, _, dims = fields.get("shape", "").partition("[")
    sizes = [dim.strip() for dim in dims.rstrip("]").split(", ") if dim.strip()]
    return Kernel(
        name=name.removeprefix("kernel "),
        ops=tuple(fields.get("ops", "").split("+")),
        dtype=dtype,
        shape=tuple(int(size) if size.isdigit() else size for size in sizes),
        reads=_names(fields.get("reads", "")),
        writes=_names(fields.get("writes", "")),
    )


class Schedule:
    """The kernels of a specialisation in the order in which they run; ``str()`` is readable.

    Attributes
    ----------
    kernels : list of Kernel
    """

    def __init__(self, text: str) -> None:
        self._text = text
        lines = (line.strip() for line in text.splitlines())
        self.kernels: list[Kernel] = [_kernel(line) for line in lines if line.startswith("kernel ")]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Schedule of {len(self.kernels)} kernels>"


@dataclass(frozen=True)
class Buffer:
    """A buffer of the plan.

    Attributes
    ----------
    name : str
    size : int
        In bytes; -1 if known only at run time.
    start, end : int
        Statements between which it is alive, half open.
    offset : int
        Place in the arena; -1 if it has none.
    scope : str
        ``"arena"``, ``"result"``, ``"argument"``, ``"constant"``, ``"scalar"`` or ``"host"``.
    """

    name: str
    size: int
    start: int
    end: int
    offset: int
    scope: str


@dataclass(frozen=True)
class MemoryPlan:
    """Where intermediates live. All sizes are in bytes.

    Attributes
    ----------
    arena_bytes : int
        The one block that all intermediates share.
    lower_bound_bytes : int
        The largest sum of what is alive at once: no plan needs less.
    weight_bytes : int
        Captured arrays.
    largest_activation_bytes : int
    scratch_bytes : int
        Of one thread, inside kernels.
    buffers : tuple of Buffer
    """

    text: str = field(repr=False)
    arena_bytes: int = 0
    lower_bound_bytes: int = 0
    weight_bytes: int = 0
    largest_activation_bytes: int = 0
    scratch_bytes: int = 0
    buffers: tuple[Buffer, ...] = ()

    @classmethod
    def parse(cls, text: str) -> MemoryPlan:
        """Read the text that is kept in an artifact."""
        sizes: dict[str, int] = {}
        buffers = []
        for line in text.splitlines():
            if line.startswith("buffer "):
                name, size, start, end, offset, scope = line.removeprefix("buffer ").rsplit(" ", 5)
                buffers.append(Buffer(name, int(size), int(start), int(end), int(offset), scope))
            elif " = " in line and not line.startswith(" "):
                key, value = line.split(" = ", 1)
                sizes[key] = int(value)
        known = {key: value for key, value in sizes.items() if key in cls.__dataclass_fields__}
        return cls(text=text, buffers=tuple(buffers), **known)

    @property
    def k(self) -> float:
        """Arena and results, in units of the largest activation; 0 if there is none."""
        results = sum(b.size for b in self.buffers if b.scope == "result" and b.size > 0)
        if self.largest_activation_bytes == 0:
            return 0.0
        return (self.arena_bytes + results) / self.largest_activation_bytes

    def __str__(self) -> str:
        head = ("buffer", "scope", "bytes", "alive", "offset")
        rows = [
            (
                b.name,
                b.scope,
                "at run time" if b.size < 0 else f"{b.size:,}",
                f"{b.start}..{b.end}",
                "-" if b.offset < 0 else f"{b.offset:,}",
            )
            for b in self.buffers
        ]
        width = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        table = "\n".join(
            "  "
            + "  ".join(
                cell.rjust(width[k]) if k in (2, 4) else cell.ljust(width[k]) for k, cell in enumerate(row)
            ).rstrip()
            for row in [head, *rows]
        )
        return (
            f"arena {self.arena_bytes:,} bytes (no plan needs less than {self.lower_bound_bytes:,})\n"
            f"largest activation {self.largest_activation_bytes:,} bytes, captured arrays "
            f"{self.weight_bytes:,} bytes, scratch of a thread {self.scratch_bytes:,} bytes\n{table}"
            + "".join(f"\n{line}" for line in self.text.splitlines() if line.lstrip()[:1].isdigit())
        )

    def svg(self) -> str:
        """A drawing of the arena: statements from left to right, offsets from top to bottom."""
        placed = [b for b in self.buffers if b.scope == "arena" and b.offset >= 0]
        end = max((b.end for b in placed), default=1)
        unit, height = 40, 320
        scale = height / max(self.arena_bytes, 1)
        rows = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{unit * end + 20}" height="{height + 20}" '
            'font-family="sans-serif" font-size="10">'
        ]
        for index, b in enumerate(placed):
            x, y = 10 + unit * b.start, 10 + scale * b.offset
            w, h = unit * (b.end - b.start), max(scale * b.size, 1.0)
            label = html.escape(f"{b.name}: {b.size}")
            rows.append(
                f'<rect x="{x}" y="{y:.1f}" width="{w}" height="{h:.1f}" stroke="black" '
                f'fill="hsl({index * 47 % 360}, 60%, 80%)"><title>{label}</title></rect>'
                f'<text x="{x + 3}" y="{y + 11:.1f}">{label}</text>'
            )
        return "\n".join([*rows, "</svg>"])


class CompiledModule:
    """One specialisation of a compiled function, for inspection.

    Made by :func:`cuvil.get_compiled_module`.
    """

    def __init__(self, function: Callable[..., Any], index: int, args: tuple[Any, ...] = ()) -> None:
        self._function = function
        self._index = index
        self._args = args

    @property
    def _row(self) -> dict[str, Any]:
        return _cuvil.specialisations(self._function)[self._index]

    @property
    def signature(self) -> str:
        """What it was compiled for: ``"x: float32[1, 128]"``."""
        return str(self._row["signature"])

    @property
    def specialisations(self) -> list[CompiledModule]:
        """All specialisations of the function."""
        count = len(_cuvil.specialisations(self._function))
        return [CompiledModule(self._function, index) for index in range(count)]

    @property
    def stages(self) -> list[tuple[str, float]]:
        """Stages of the compile and their milliseconds."""
        return list(self._row["stages"])

    def dump_schedule(self) -> Schedule:
        """The kernels, in order.

        Examples
        --------
        >>> import numpy as np
        >>> import cuvil
        >>> f = cuvil.jit(lambda x, w: np.maximum(x @ w, 0))
        >>> _ = f(np.ones((2, 3)), np.ones((3, 4)))
        >>> [kernel.ops for kernel in cuvil.get_compiled_module(f).dump_schedule().kernels]
        [('matmul', 'maximum')]
        """
        return Schedule(str(self._row["schedule"]))

    def memory_plan(self) -> MemoryPlan:
        """Where intermediates live."""
        return MemoryPlan.parse(str(self._row["memory"]))

    def _text(self, name: str) -> str:
        return _cuvil.texts(self._function, self._index, _WANT[name], self._args)[name]

    def ir(self) -> str:
        """CIR after all passes.

        Raises
        ------
        UnsupportedError
            If the specialisation was loaded from bytes: this and the texts below come from the compiler.
        """
        return self._text("ir")

    def llvm_ir(self) -> str:
        """LLVM IR as it was handed to code generation."""
        return self._text("llvm")

    def asm(self) -> str:
        """Assembly of this machine."""
        return self._text("asm")

    def save_ir(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`ir` to a file."""
        pathlib.Path(path).write_text(self.ir(), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<CompiledModule of {self._function.__qualname__}({self.signature})>"
