"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import cuvil
import pytest

MODULES = ["cuvil"] + [
    module.name
    for module in pkgutil.walk_packages(cuvil.__path__, "cuvil.")
    if not module.name.endswith(("__main__", "._cuvil", ".libcuvil_compiler", ".libcuvil_backend"))
]


@pytest.mark.parametrize("name", MODULES)
def test_doctest(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failed == 0
