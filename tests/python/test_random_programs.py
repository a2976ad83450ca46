"""Random small NumPy programs, plain and compiled: values, dtypes, arguments afterwards, exceptions."""

from __future__ import annotations

import random

import cuvil
import differential as d
import numpy as np
import pytest


class Writer:
    """Writes a program over arguments ``a``, ``b`` (arrays), ``v`` (a vector) and ``n`` (an int).

    Every name keeps the shape it had when it was made, so that each line is legal NumPy.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        rows, cols = self.rng.choice([(1, 1), (2, 3), (4, 4), (3, 7), (5, 2), (8, 16), (1, 6), (6, 1)])
        self.dtype = self.rng.choice(["float32", "float64", "float64", "int32", "int64", "float16"])
        other = self.dtype if self.rng.random() < 0.7 else self.rng.choice(["float32", "int8", "float64"])
        self.shapes = {"a": (rows, cols), "b": (rows, cols), "v": (cols,)}
        self.arguments = {"a": self.dtype, "b": other, "v": self.dtype}
        self.lines: list[str] = []
        self.count = 0

    def pick(self, rank=None, shape=None):
        names = [
            k
            for k, s in self.shapes.items()
            if (rank is None or len(s) == rank) and (shape is None or s == shape)
        ]
        return self.rng.choice(names) if names else None

    def new(self, expression: str, shape: tuple[int, ...]) -> str:
        name = f"t{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape
        return name

    def scalar(self) -> str:
        return self.rng.choice(["2", "3", "1", "0.5", "-1.5", "n", "n + 1"])

    def pointwise(self) -> None:
        x = self.pick()
        shape = self.shapes[x]
        y = self.pick(shape=shape) if self.rng.random() < 0.7 else self.scalar()
        if len(shape) == 2 and self.rng.random() < 0.2:
            y = self.pick(shape=shape[1:]) or y
        form = self.rng.choice(
            [
                "{x} + {y}",
                "{x} - {y}",
                "{x} * {y}",
                "np.maximum({x}, {y})",
                "np.minimum({x}, {y})",
                "np.where({x} > {y}, {x}, {y})",
                "-{x}",
                "np.abs({x})",
                "np.clip({x}, -3, 3)",
                "np.sqrt(np.abs({x}))",
                "({x} > {y}) * {x}",
                "np.square({x})",
                "{x} / 4",
                "np.tanh({x})",
            ]
        )
        self.new(form.format(x=x, y=y), shape)

    def move(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        choice = self.rng.randrange(9)
        if choice == 0:
            self.new(f"{x}.T", (c, r))
        elif choice == 1:
            self.new(f"{x}[::-1]", (r, c))
        elif choice == 2:
            self.new(f"{x}.reshape({c}, {r})", (c, r))
        elif choice == 3 and r > 1:
            k = self.rng.randrange(1, r)
            self.new(f"{x}[{k}:]", (r - k, c))
        elif choice == 4:
            self.new(f"{x}[{self.rng.randrange(-r, r)}]", (c,))
        elif choice == 5:
            self.new(f"np.concatenate([{x}, {self.pick(shape=(r, c))}], axis=1)", (r, 2 * c))
        elif choice == 6:
            self.new(f"{x}[:, ::2]", (r, (c + 1) // 2))
        elif choice == 7:
            self.new(f"{x}.copy()", (r, c))
        else:
            self.new(f"np.flip({x}, 1)", (r, c))

    def reduce(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        f = self.rng.choice(["sum", "max", "min", "mean"])
        if self.rng.random() < 0.5:
            self.new(f"{x}.{f}(axis=0)", (c,))
        elif self.rng.random() < 0.5:
            self.new(f"{x} - {x}.{f}(axis=1, keepdims=True)", (r, c))
        else:
            self.new(f"{x}.{f}(axis=1)", (r,))

    def product(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        if r > 16 or c > 16:
            return
        y = self.pick(shape=(r, c))
        if self.rng.random() < 0.6:
            self.new(f"{x} @ {y}.T", (r, r))
        else:
            w = self.pick(shape=(c,))
            if w:
                self.new(f"{x} @ {w}", (r,))

    def write(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        y = self.pick(shape=(r, c))
        form = self.rng.choice(
            [
                "{x} += {y}",
                "{x} *= 2",
                "{x}[0] = {y}[-1]",
                "{x}[:, 0] += 1",
                "{x}[...] = {y}",
                "{x}[1:] += {x}[:-1]",
                "{x}[:-1] = {x}[1:]",
                "{x}[::-1] = {y}",
                "{x}[{i}, {j}] = 7",
                "{x} -= {x}[0]",
                "{x}[:] = {x}[::-1]",
                "{x}[{i}] *= {x}[{i}]",
            ]
        )
        line = form.format(x=x, y=y, i=self.rng.randrange(-r, r), j=self.rng.randrange(-c, c))
        self.lines.append(line)

    def loop(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        y = self.pick(shape=(r, c))
        body = self.rng.choice(
            [
                "{x} = {x} * 0.5 + {y}",
                "{x} = np.maximum({x}, {y}) - i",
                "{x}[i % {r}] += {y}[0]",
                "{x}[:, i % {c}] = i",
                "{x} += {y} * 0.25",
            ]
        ).format(x=x, y=y, r=r, c=c)
        self.lines.append(f"for i in range({self.rng.choice(['n', '3', 'n - 1', 'len(a)'])}):")
        self.lines.append("    " + body)

    def program(self) -> str:
        steps = [self.pointwise] * 6 + [self.move] * 4 + [self.reduce] * 3 + [self.product]
        steps += [self.write] * 3 + [self.loop]
        for _ in range(self.rng.randrange(3, 12)):
            self.rng.choice(steps)()
        names = [k for k in self.shapes if k.startswith("t")] or ["a"]
        results = self.rng.sample(names, min(len(names), self.rng.randrange(1, 4)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"import numpy as np\n\n\ndef f(a, b, v, n):\n{body}    return {', '.join(results)}\n"

    def inputs(self):
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        layout = self.rng.choice(["c", "c", "c", "f", "strided", "negative"])
        out = []
        for name, dtype in self.arguments.items():
            out.append(d.laid_out(rng, (rng.integers(-8, 9, self.shapes[name]) / 2).astype(dtype), layout))
        return (*out, self.rng.randrange(0, 5))


class SymbolicWriter(Writer):
    """Programs that are legal for arguments of any size from 6 up; shapes are texts over ``r`` and ``c``."""

    SIZES = ((6, 8), (9, 7), (8, 8), (12, 6))

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shapes = {"a": ("r", "c"), "b": ("r", "c"), "v": ("c",)}
        self.cuts = 0

    def move(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        choice = self.rng.randrange(9)
        if choice == 0:
            self.new(f"{x}.T", (c, r))
        elif choice == 1:
            self.new(f"{x}[::-1]", (r, c))
        elif choice == 2:
            self.new(f"{x}.reshape({x}.shape[1], {x}.shape[0])", (c, r))
        elif choice == 3 and self.cuts < 4:
            self.cuts += 1
            self.new(self.rng.choice([f"{x}[1:]", f"{x}[:-1]", f"{x}[: len({x}) - 1]"]), (f"{r}-1", c))
        elif choice == 4:
            self.new(self.rng.choice([f"{x}[0]", f"{x}[-1]", f"{x}[len({x}) // 2]"]), (c,))
        elif choice == 5:
            self.new(f"np.concatenate([{x}, {self.pick(shape=(r, c))}], axis=1)", (r, f"2*({c})"))
        elif choice == 6:
            self.new(f"{x}[:, ::2]", (r, f"({c}+1)//2"))
        elif choice == 7:
            self.new(f"{x}.ravel()", (f"({r})*({c})",))
        else:
            self.new(f"np.zeros_like({x}) + {x}.size", (r, c))

    def product(self) -> None:
        x = self.pick(rank=2)
        r, c = self.shapes[x]
        self.new(f"{x} @ {self.pick(shape=(r, c))}.T", (r, r))

    def write(self) -> None:
        x = self.pick(rank=2)
        y = self.pick(shape=self.shapes[x])
        form = self.rng.choice(
            [
                "{x} += {y}",
                "{x}[0] = {y}[-1]",
                "{x}[:, 0] += 1",
                "{x}[...] = {y}",
                "{x}[1:] += {x}[:-1]",
                "{x}[:-1] = {x}[1:]",
                "{x}[::-1] = {y}",
                "{x}[-1, 0] = 7",
                "{x} -= {x}[0]",
                "{x}[:] = {x}[::-1]",
            ]
        )
        self.lines.append(form.format(x=x, y=y))

    def loop(self) -> None:
        x = self.pick(rank=2)
        y = self.pick(shape=self.shapes[x])
        body = self.rng.choice(
            [
                "{x} = {x} * 0.5 + {y}",
                "{x}[i % len({x})] += {y}[0]",
                "{x} += {y} * 0.25",
                "{x}[0] += {y}[i % len({y})]",
            ]
        ).format(x=x, y=y)
        self.lines.append(f"for i in range({self.rng.choice(['n', 'len(a)', 'a.shape[1] - 2'])}):")
        self.lines.append("    " + body)

    def inputs(self):
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        layout = self.rng.choice(["c", "c", "f", "strided"])
        for r, c in self.SIZES:
            shapes = {"a": (r, c), "b": (r, c), "v": (c,)}
            arrays = [
                d.laid_out(rng, (rng.integers(-8, 9, shapes[k]) / 2).astype(dtype), layout)
                for k, dtype in self.arguments.items()
            ]
            yield (*arrays, int(rng.integers(0, 5)))


def check_symbolic_seed(seed: int, directory) -> None:
    writer = SymbolicWriter(seed)
    source = writer.program()
    path = directory / f"symbolic_{seed}.py"
    path.write_text(source)
    scope: dict = {}
    exec(compile(source, str(path), "exec"), scope)
    hints = {"a": ("r", "c"), "b": ("r", "c"), "v": ("c",)} if seed % 2 else None
    compiled = cuvil.jit(scope["f"], shape_hint=hints)
    narrow = "float16" in writer.arguments.values()
    for args in writer.inputs():
        try:
            d.check(scope["f"], *args, tol=(2e-2, 2e-2) if narrow else (2e-4, 2e-4), compiled=compiled)
        except Exception as error:
            shapes = [np.shape(a) for a in args]
            raise AssertionError(f"seed {seed}, shapes {shapes}: {error}\n{source}") from error


def check_seed(seed: int, directory) -> None:
    writer = Writer(seed)
    source = writer.program()
    path = directory / f"program_{seed}.py"
    path.write_text(source)
    scope: dict = {}
    exec(compile(source, str(path), "exec"), scope)
    args = writer.inputs()
    narrow = "float16" in writer.arguments.values()
    try:
        d.check(
            scope["f"],
            *args,
            tol=(2e-2, 2e-2) if narrow else (2e-4, 2e-4),
            compiled=cuvil.jit(scope["f"]),
        )
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{source}") from error


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block, tmp_path):
    for seed in range(40 * block, 40 * (block + 1)):
        check_seed(seed, tmp_path)


@pytest.mark.parametrize("block", range(4))
def test_random_programs_over_sizes(block, tmp_path):
    for seed in range(30 * block, 30 * (block + 1)):
        check_symbolic_seed(seed, tmp_path)
