"""Writes the texts that ``CUVIL_DUMP_IR`` asks for. Called by the extension after a compile."""

from __future__ import annotations

import os
import pathlib
import re

_ENDINGS = {"dot": "dot", "llvm": "ll", "asm": "s"}


def write(texts: dict[str, str], function: str, everything: bool) -> None:
    """Write ``cuvil_ir.dot`` and, if asked for everything, a file for each other text.

    They go to ``CUVIL_DUMP_DIR`` or the working directory, and replace those of earlier compiles of the
    same function.
    """
    folder = pathlib.Path(os.environ.get("CUVIL_DUMP_DIR") or ".")
    folder.mkdir(parents=True, exist_ok=True)
    if "dot" in texts:
        (folder / "cuvil_ir.dot").write_text(texts["dot"], encoding="utf-8")
    if not everything:
        return
    stem = re.sub(r"[^\w.]+", "_", function).strip("_") or "function"
    for name, text in texts.items():
        ending = _ENDINGS.get(name, "cir")
        middle = name if ending == "cir" else "schedule" if name == "dot" else "code"
        (folder / f"{stem}.{middle}.{ending}").write_text(text, encoding="utf-8")
