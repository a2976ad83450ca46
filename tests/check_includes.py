"""Holds every #include under native/ and tests/native/ to the layers of the design.

Run by tests/run.sh and by hand: ``python tests/check_includes.py``. The graph below is the one of
native/CMakeLists.txt; a folder may include what it depends on, directly or through others.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

DEPENDS = {
    # both sides
    "support": [],
    "artifact": ["support"],
    # hot
    "runtime": ["artifact"],
    "python": ["runtime"],
    # cold
    "ir": ["artifact"],
    "ops": ["ir"],
    "passes": ["ops"],
    "schedule": ["ops"],
    "frontend": ["ops"],
    "codegen": ["schedule"],
    "interpret": ["codegen"],
    "backend": ["codegen"],
    "compiler": ["frontend", "passes", "interpret"],
}

# The door between the sides: the one header of native/compiler that others may include.
DOOR = "compiler/entry.h"
DOOR_USERS = {"runtime", "python", "frontend", "compiler"}
# The door of the second library of the cold side, which the first opens.
BACKEND_DOOR = "backend/generate.h"

# Outside headers that belong to some folders only.
OUTSIDE = [
    (
        re.compile(r"^(Python\.h|structmember\.h|frameobject\.h)$"),
        {"python", "frontend", "compiler/entry.cpp"},
    ),
    (re.compile(r"^numpy/"), {"python"}),
    (re.compile(r"^llvm(-c)?/"), {"codegen", "interpret", "backend"}),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def closure(folder: str) -> set[str]:
    """The folder and everything it depends on."""
    found = {folder}
    for other in DEPENDS[folder]:
        found |= closure(other)
    return found


def check_file(path: pathlib.Path, folder: str, relative: str, is_test: bool) -> list[str]:
    """The violations in one file, as messages of the form ``file:line: text``."""
    problems = []
    text = path.read_text(encoding="utf-8")
    allowed = closure(folder)
    for match in INCLUDE.finditer(text):
        header = match[2]
        line = text.count("\n", 0, match.start(2)) + 1
        where = f"{path.relative_to(ROOT)}:{line}"
        if match[1] == '"' and (ROOT / "native" / header).exists():
            target = header.split("/")[0]
            if (header == DOOR and folder in DOOR_USERS) or (header, folder) == (BACKEND_DOOR, "compiler"):
                continue
            if is_test and (folder, target) == ("backend", "interpret"):  # compared with each other
                continue
            if target not in DEPENDS:
                problems.append(f'{where}: "{header}" is in no known folder')
            elif target not in allowed:
                problems.append(f'{where}: {folder} may not include "{header}" of {target}')
        elif match[1] == '"':
            sibling = "/" not in header and (path.parent / header).exists()
            if sibling or (is_test and (ROOT / "tests/native" / header).exists()):
                continue
            problems.append(f'{where}: "{header}" is neither a sibling nor a path from native/')
        else:
            for pattern, owners in OUTSIDE:
                inside = folder in owners or relative in owners or (is_test and folder == "compiler")
                if pattern.match(header) and not inside:
                    problems.append(f"{where}: <{header}> belongs to {', '.join(sorted(owners))} only")
    return problems


def check_tree(top: pathlib.Path, is_test: bool) -> list[str]:
    problems = []
    for path in sorted(top.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".def"}:
            continue
        relative = path.relative_to(top).as_posix()
        folder = relative.split("/")[0] if "/" in relative else ""
        if folder in DEPENDS:
            problems += check_file(path, folder, relative, is_test)
        elif folder and not is_test:
            problems.append(f"{path.relative_to(ROOT)}: {folder} is in no known folder")
    return problems


def main() -> int:
    problems = check_tree(ROOT / "native", is_test=False) + check_tree(ROOT / "tests/native", is_test=True)
    print("\n".join(problems) if problems else "includes follow the layers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
