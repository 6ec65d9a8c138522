#!/usr/bin/env python3
"""Checks what the compiler does not: who may include whom, names of files, and that no path of one machine is written down.

ARCHITECTURE.md gives the order in words. Called with a folder, checks that tree; before any check it plants one violation
of each rule in a scratch tree and makes sure that it is found.
"""
import pathlib
import re
import sys
import tempfile

# From the least knowing to the most. A folder sees itself and the rows above its own, not its neighbours in a row.
ORDER = [
    ["support"],
    ["scalar"],
    ["layout"],
    ["ir"],
    ["target", "analysis", "dsl"],
    ["plan"],
    ["passes"],
    ["codegen", "interpreter", "simulator"],
    ["driver"],
    ["capi"],
]
# Beside the order: what turns text into running code knows no IR, and only the driver knows it.
RUNTIME_SEES = {"runtime", "support", "scalar"}

PUBLIC_ONLY = ["examples", "kernels", "python"]  # folders that see include/tilewright and nothing else of ours
C_HEADERS = {"stddef.h", "stdint.h", "stdbool.h"}
GENERATED = {"embedded_text.h"}
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
SEARCHED = ["include", "src", "device", "kernels", "python", "examples", "tests", "bench", "tools", "cmake", "docs", ".ci"]
BANNED_WORDS = {"util", "utils", "common", "helper", "helpers", "misc", "impl", "manager", "v2"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ABSOLUTE = re.compile(r"(?<![\w.~}/])/(?:home|root|work|Users|mnt|opt)/")


def visible_folders():
    sees, below = {"runtime": RUNTIME_SEES}, set()
    for row in ORDER:
        for folder in row:
            sees[folder] = below | {folder}
        below |= set(row)
    sees["driver"] |= {"runtime"}
    sees["capi"] |= {"runtime"}
    sees["simulator"] |= {"interpreter"}  # whose evaluator of lanes it runs
    return sees


VISIBLE = visible_folders()


def src_include_fault(path, quote, target):
    folder = path.parts[1] if len(path.parts) > 2 else None
    if folder not in VISIBLE:
        return f"src/{folder or path.name} has no place in the order of tools/check_layers.py"
    if path.name.endswith(".text.h"):
        return f"includes {target}: a text that is embedded in kernels includes nothing"
    if quote == "<" or target in GENERATED or target.startswith("tilewright/"):
        return None
    first = target.split("/")[0]
    if "/" not in target or first not in VISIBLE:
        return f'includes "{target}": write the path from src/, as in "ir/expr.h"'
    if first not in VISIBLE[folder]:
        return f'src/{folder} may not know src/{first}: it includes "{target}"'
    return None


def public_include_fault(quote, target):
    if quote == '"':
        return None if target.startswith("tilewright/") else f'a public header includes "{target}", which users do not have'
    standard = target in C_HEADERS or re.fullmatch(r"[a-z_]+", target)
    return None if standard else f"a public header includes <{target}>: only the standard library is allowed there"


def outside_include_fault(root, path, quote, target):
    """For examples, kernels and python: public headers, own files, and the libraries they compare themselves with."""
    if quote == "<":
        return None
    own = (root / path.parent / target).exists() or (root / path.parts[0] / target).exists()
    if target.startswith("tilewright/") or own and ".." not in target:
        return None
    return f'{path.parts[0]}/ sees only include/tilewright, but it includes "{target}"'


def include_fault(root, path, quote, target):
    if target.startswith("/"):
        return f"includes by an absolute path: {target}"
    top = path.parts[0]
    if top == "src":
        return src_include_fault(path, quote, target)
    if top == "include":
        return public_include_fault(quote, target)
    if top in PUBLIC_ONLY:
        return outside_include_fault(root, path, quote, target)
    return None


# Plans are decided of programs that stay as they are.
PLAN_CHANGES = re.compile(
    r"(?<!const )(?<!const ir::)\b(?:ir::)?(?:TileProgram|ThreadProgram|ProgramTables|Launch|Buffer) ?[&*]"
    r"|\b(?:TileProgram|ProgramTables) \w+ ?[={(,)]|\bLaunch \w+ ?[={]|\b(?:make_stmt|new_buffer|new_var)\(|\bconst_cast<"
)


def source_faults(root, path, text):
    if path.suffix == ".h" and not path.name.endswith(".text.h") and "#pragma once" not in text:
        yield f"{path}: a header without #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        fault = include_fault(root, path, match[1], match[2]) if match else None
        if fault:
            yield f"{path}:{number}: {fault}"
        if path.parts[:2] == ("src", "plan") and PLAN_CHANGES.search(line):
            yield f"{path}:{number}: src/plan decides and changes no program: this takes one that can be changed"


def file_faults(root, path):
    words = {word for part in path.parts for word in re.split(r"[^a-z0-9]+", part.lower())}
    for word in sorted(words & BANNED_WORDS):
        yield f"{path}: a name with '{word}' says nothing; name the file after what is in it"
    try:
        text = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if ABSOLUTE.search(line) and path.name != "check_layers.py":
            yield f"{path}:{number}: an absolute path belongs to one machine"
    if path.suffix in SOURCES:
        yield from source_faults(root, path, text)


def faults_of(root):
    for top in SEARCHED:
        for file in sorted((root / top).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield from file_faults(root, file.relative_to(root))


# One violation of each rule: the file, its text, a piece of the expected message (None: no fault at all).
PLANTED = [
    ("src/ir/a.h", '#pragma once\n#include "ir/b.h"\n#include "layout/c.h"\n#include <fmt/format.h>\n', None),
    ("src/ir/a.h", '#pragma once\n#include "passes/b.h"\n', "a.h:2: src/ir may not know src/passes"),
    ("src/analysis/a.cpp", '#include "dsl/b.h"\n', "src/analysis may not know src/dsl"),
    ("src/runtime/a.cpp", '#include "ir/b.h"\n', "src/runtime may not know src/ir"),
    ("src/codegen/cpu/a.cpp", '#include "runtime/b.h"\n', "src/codegen may not know src/runtime"),
    ("src/plan/a.cpp", "Plan f(const ir::TileProgram& p, const Launch& l);\n", None),
    ("src/plan/a.cpp", "Plan f(ir::TileProgram& p);\n", "a.cpp:1: src/plan decides and changes no program"),
    ("src/plan/a.cpp", "  body.push_back(make_stmt(op, at));\n", "src/plan decides and changes no program"),
    ("src/plan/a.cpp", "  ir::TileProgram scratch = p;\n", "src/plan decides and changes no program"),
    ("src/simulator/a.cpp", '#include "interpreter/b.h"\n', None),
    ("src/simulator/a.cpp", '#include "codegen/b.h"\n', "src/simulator may not know src/codegen"),
    ("src/driver/tool/a.cpp", '#include "runtime/b.h"\n#include "plan/b.h"\n', None),
    ("src/ir/a.cpp", '#include "b.h"\n', "write the path from src/"),
    ("src/ir/a.cpp", '#include "../layout/b.h"\n', "write the path from src/"),
    ("src/things/a.cpp", '#include "ir/b.h"\n', "src/things has no place"),
    ("src/scalar/a.text.h", "#include <cmath>\n", "embedded in kernels includes nothing"),
    ("src/ir/a.h", "struct A {};\n", "without #pragma once"),
    ("src/ir/a.cpp", '#include "/opt/x/a.h"\n', "absolute path"),
    ("include/tilewright/a.h", "#pragma once\n#include <fmt/format.h>\n", "only the standard library"),
    ("include/tilewright/a.h", '#pragma once\n#include "ir/expr.h"\n', "which users do not have"),
    ("include/tilewright/a.h", '#pragma once\n#include <unordered_map>\n#include "tilewright/b.h"\n', None),
    ("examples/a.cpp", '#include "ir/expr.h"\n', "examples/ sees only include/tilewright"),
    ("examples/a.cpp", '#include <cblas.h>\n#include "tilewright/b.h"\n', None),
    ("kernels/a.cpp", '#include "dsl/expr.h"\n', "kernels/ sees only include/tilewright"),
    ("src/ir/expr_utils.cpp", "", "'utils'"),
    ("src/ir/common/expr.cpp", "", "'common'"),
    ("tests/unit/a.cpp", 'const char* p = "/home/me/data";\n', "belongs to one machine"),
]


def self_test():
    for name, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / name
            file.parent.mkdir(parents=True)
            file.write_text(text)
            found = list(faults_of(pathlib.Path(scratch)))
        if (expected is None) != (not found) or expected and not any(expected in fault for fault in found):
            sys.exit(f"check_layers: its own test fails: {name} with {text!r} should give {expected!r}, gave {found}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    self_test()
    faults = list(faults_of(root))
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    sys.exit(f"check_layers: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
