"""The nine probes, each compiled, then from the artifact's bytes where the compiler is absent."""

import os
import pathlib
import subprocess
import sys

import probes
import pytest

SCRIPT = pathlib.Path(probes.__file__)


def run(mode: str, name: str, folder: pathlib.Path, **env: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), mode, name, str(folder)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", probes.PROBES)
def test_probe(name: str, tmp_path: pathlib.Path) -> None:
    run("compile", name, tmp_path)
    run("replay", name, tmp_path, CUVIL_COMPILER_PATH=str(tmp_path / "absent.so"))
