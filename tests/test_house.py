"""The rules of the house: layers, format, lint, types. A tool that is not installed is a skip."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[:4])}\n{done.stdout}{done.stderr}"


def files(*patterns: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))


def test_includes_follow_the_layers() -> None:
    run(sys.executable, "tests/check_includes.py")


def test_clang_format() -> None:
    sources = files("native/**/*.cpp", "native/**/*.h", "tests/native/**/*.cpp", "tests/native/**/*.h")
    run("clang-format", "--dry-run", "-Werror", *sources)


def test_ruff_check() -> None:
    run("ruff", "check", ".")


def test_ruff_format() -> None:
    run("ruff", "format", "--check", ".")


def test_mypy_strict() -> None:
    run("mypy")


def test_shellcheck() -> None:
    run("shellcheck", "-x", ".ci/run", *files("examples/*.sh", "tests/*.sh"))
