"""Every construct that is refused says so, with place and advice; docs/language.md lists them all."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import textwrap

import cuvil
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(file, macro, count):
    """Arguments of each use of a macro; adjacent strings are one."""
    text = (ROOT / "native" / "frontend" / file).read_text()
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    string = r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*'
    argument = rf"({string}|\w+)"
    found = re.findall(rf"{macro}\(\s*" + r"\s*,\s*".join([argument] * count) + r"\s*\)", text)
    clean = [
        [re.sub(r'"\s*"', "", a).strip('"').replace('\\"', '"') for a in ((row,) if count == 1 else row)]
        for row in found
    ]
    assert len(clean) == text.count(macro + "(")
    return clean


REFUSED = rows("refused.def", "CUVIL_REFUSED", 3)

# The refused class and the first Python that has it; the marked line is where the caret must point.
SAMPLES = {
    "AsyncFunctionDef": (
        (3, 10),
        """
        def f(x):
            async def g():  # here
                return x
            return x
        """,
    ),
    "With": (
        (3, 10),
        """
        def f(x):
            with np.errstate(all="ignore"):  # here
                y = 1 / x
            return y
        """,
    ),
    "Try": (
        (3, 10),
        """
        def f(x):
            try:  # here
                return x[5]
            except IndexError:
                return x
        """,
    ),
    "TryStar": (
        (3, 11),
        """
        def f(x):
            try:  # here
                y = x
            except* ValueError:
                y = -x
            return y
        """,
    ),
    "Import": (
        (3, 10),
        """
        def f(x):
            import math  # here
            return x * math.pi
        """,
    ),
    "ImportFrom": (
        (3, 10),
        """
        def f(x):
            from math import pi  # here
            return x * pi
        """,
    ),
    "Global": (
        (3, 10),
        """
        def f(x):
            global COUNT  # here
            COUNT = 1
            return x
        """,
    ),
    "Nonlocal": (
        (3, 10),
        """
        def f(x):
            n = 0
            def g(y):
                nonlocal n  # here
                n += 1
                return y * n
            return g(x)
        """,
    ),
    "ClassDef": (
        (3, 10),
        """
        def f(x):
            class C:  # here
                pass
            return x
        """,
    ),
    "Match": (
        (3, 10),
        """
        def f(x):
            match x.ndim:  # here
                case 1:
                    return x
            return -x
        """,
    ),
    "TypeAlias": (
        (3, 12),
        """
        def f(x):
            type A = int  # here
            return x
        """,
    ),
    "TemplateStr": (
        (3, 14),
        """
        def f(x):
            return x, t"{x.ndim}"  # here
        """,
    ),
}
# Only in functions that are refused as a whole before any statement is looked at.
WHOLE = {
    "AsyncFor": "async def f(x):\n    async for y in x:\n        pass\n",
    "AsyncWith": "async def f(x):\n    async with x:\n        pass\n",
    "Await": "async def f(x):\n    return await x\n",
    "Yield": "def f(x):\n    yield x\n",
    "YieldFrom": "def f(x):\n    yield from x\n",
}


def define(tmp_path, source):
    path = tmp_path / "refused_program.py"
    path.write_text("import numpy as np\n" + textwrap.dedent(source))
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["f"], path


def test_every_row_has_a_sample():
    assert sorted(SAMPLES.keys() | WHOLE.keys()) == sorted(row[0] for row in REFUSED)


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(row, tmp_path):
    construct, what, advice = row
    if construct in WHOLE:
        f, path = define(tmp_path, WHOLE[construct])
        with pytest.raises(cuvil.UnsupportedError, match="generator|coroutine") as info:
            cuvil.jit(f)
        assert f"{path}:" in str(info.value) and "help:" in str(info.value)
        return
    version, source = SAMPLES[construct]
    if sys.version_info < version:
        pytest.skip(f"Python {'.'.join(map(str, version))} has it first")
    f, path = define(tmp_path, source)
    compiled = cuvil.jit(f)
    x = np.ones(3)
    with pytest.raises(cuvil.UnsupportedError) as info:
        compiled(x)
    text = str(info.value)
    lines = path.read_text().splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if line.endswith("# here")]
    column = re.search(r"\S", lines[number - 1]).start() + 1
    if construct == "TemplateStr":
        column = lines[number - 1].index('t"') + 1
    assert what in text and f"help: {advice}" in text
    assert f"{path}:{number}:{column}\n" in text, text
    shown = text.splitlines()
    at = next(k for k, line in enumerate(shown) if lines[number - 1].strip() in line)
    assert shown[at + 1].strip().startswith("^")
    f(x)  # the plain function still works
    with pytest.raises(cuvil.UnsupportedError):
        compiled(x)


def section(text, name):
    return re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.S).group(1)


def cell(text):
    return text.replace("|", "\\|")


def test_language_document():
    """Written by ``CUVIL_UPDATE=1 pytest tests/python/test_refused.py``; else it must be as it is."""
    path = ROOT / "docs" / "language.md"
    table = "| construct | what it says | what to do |\n| --- | --- | --- |\n" + "".join(
        f"| `{construct}` | {cell(what)} | {cell(advice)} |\n" for construct, what, advice in REFUSED
    )
    names = {
        kind: [row[0].removeprefix("builtins.") for row in rows("pure.def", macro, count)]
        for kind, macro, count in (("Built-in", "CUVIL_BUILTIN", 2), ("Pure", "CUVIL_PURE", 1))
    }
    pure = "".join(
        f"- {kind}: {', '.join(f'`{name}`' for name in sorted(found))}.\n" for kind, found in names.items()
    )
    text = path.read_text()
    for name, content in (("refused", table), ("pure", pure)):
        if os.environ.get("CUVIL_UPDATE"):
            text = text.replace(f"<!-- {name} -->\n{section(text, name)}", f"<!-- {name} -->\n{content}")
            path.write_text(text)
        assert section(text, name) == content
