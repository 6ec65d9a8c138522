#!/usr/bin/env python3
"""Checks that the recipes of CONTRIBUTING.md are about this tree: the files and folders they name are there, and the table of
a recipe with an example names the files of the example, and no others.

Called with a folder, checks that tree; before any check it plants violations in a scratch tree and makes sure that they are
found.
"""
import pathlib
import re
import sys
import tempfile

EXAMPLE = re.compile(r"\*\*A ([\w ]+)\*\*, in at most (\d+) files\. The example is ([^:]*):")
NAME = re.compile(r"`([\w.(]+)`")
ROW = re.compile(r"^\| .+ \| `([\w./]+)` \|$", re.MULTILINE)
PATH = re.compile(r"`((?:src|include|tests|tools|docs|examples|bench)/[\w./]+)`")
TILE_OP = re.compile(r"^struct (\w+) \{(?:(?!^\};).)*?\bbool tile_op = true;", re.MULTILINE | re.DOTALL)
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
NO_PYTHON = re.compile(r"#[^\n]*|\"[^\"\n]*\"")
SEARCHED = ["src", "include", "python"]
USERS = ("python/tilewright/kernels/", "python/tilewright/ops/")  # programs in the language, as those of kernels/ and examples/
SOURCES = {".h", ".cpp", ".py"}


def words_of(file):
    """The identifiers of the code; of a member that is called, `.name(` too."""
    code = (NO_PYTHON if file.suffix == ".py" else NO_CODE).sub(" ", file.read_text(encoding="utf-8"))
    return set(re.findall(r"\w+", code)) | {f".{name}(" for name in re.findall(r"(?:\.|->|::)(\w+)\(", code)}


def example_faults(what, limit, names, rows, words):
    if len(rows) > limit:
        yield f"CONTRIBUTING.md: a {what} takes {len(rows)} files, more than {limit}"
    for path in sorted(path for path, has in words.items() if has & names and path not in rows):
        known = ", ".join(sorted(words[path] & names))
        yield (f"{path}: knows {known}, but is no place of the recipe for a {what}: ask what an op's fields, effects or traits "
               "(src/ir/stmt.h), or a type's row (src/scalar/dtype.cpp) say instead")
    # Another thing may have a member's name: only where it is called, it is surely the example's.
    loosely = names | {name.strip(".(") for name in names}
    for path in sorted(path for path in rows if not words.get(path, set()) & loosely):
        why = "does not know its example" if path in words else "there is not"
        yield f"CONTRIBUTING.md: the recipe for a {what} names {path}, which {why}"


def role_faults(struct, ops, rows, words):
    """Whatever knows the example's struct, knows every op's: the file, or one beside it."""
    for path in rows:
        if struct not in words.get(path, ()):
            continue
        folder = path.rsplit("/", 1)[0]
        beside = [has for other, has in words.items() if other.rsplit("/", 1)[0] == folder]
        for op in sorted(ops):
            if not any(op in has for has in beside):
                yield f"{folder}: the tile op {op} has nothing where {struct} has {path}"


def faults_of(root):
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in sorted(set(PATH.findall(page))):
        if not (root / path).exists():
            yield f"CONTRIBUTING.md: there is no {path}"
    files = [file for top in SEARCHED for file in sorted((root / top).rglob("*")) if file.suffix in SOURCES]
    words = {str(file.relative_to(root)): words_of(file) for file in files if not str(file.relative_to(root)).startswith(USERS)}
    ops = set(TILE_OP.findall((root / "src/ir/stmt.h").read_text(encoding="utf-8")))
    held = False
    for opening in EXAMPLE.finditer(page):
        what, limit, names = opening[1], int(opening[2]), NAME.findall(opening[3])
        rows = ROW.findall(re.split(r"^\*\*", page[opening.end():], maxsplit=1, flags=re.MULTILINE)[0])  # to the next recipe
        yield from example_faults(what, limit, set(names), rows, words)
        if what == "tile op" and names[0] in ops:
            held = True
            yield from role_faults(names[0], ops, rows, words)
    if not held:
        yield "CONTRIBUTING.md: no recipe for a tile op that says in how many files, and by which example of src/ir/stmt.h"


# A tree in which all is well.
WELL = {
    "CONTRIBUTING.md": "**A tile op**, in at most 3 files. The example is `Scan`, `.scan(` for users `cumsum`:\n\n| What | Where |\n|---|---|\n"
                       "| struct | `src/ir/stmt.h` |\n| word | `include/tilewright/language.h` |\n| loops | `src/lower/scan.cpp` |\n\n"
                       "**A pass**: `src/lower/`.\n",
    "src/ir/stmt.h": "struct Scan {\n  static constexpr bool tile_op = true;\n};\nstruct Fill {\n  static constexpr bool tile_op = true;\n};\n",
    "src/lower/scan.cpp": "Body lower(const Scan&);\n",
    "src/lower/fill.cpp": 'Body lower(const Fill&);  // as a Scan\nconst char* text = "Scan";\n',
    "include/tilewright/language.h": "void cumsum();\n",
}
# What is changed in it, and a piece of the expected message (None: no fault at all).
PLANTED = [
    ({}, None),
    ({"src/lower/lists.cpp": "// a Scan\nint Scanner, scan;\n"}, None),
    ({"src/lower/lists.cpp": "void f() { builder.scan(); }\n"}, "src/lower/lists.cpp: knows .scan("),
    ({"src/lower/lists.cpp": "bool is_op() { return s.as<Fill>() || s.as<ir::Scan>(); }\n"}, "src/lower/lists.cpp: knows Scan"),
    ({"src/lower/lists.cpp": "void f() { cumsum(); }\n"}, "src/lower/lists.cpp: knows cumsum"),
    ({"python/words.py": "cumsum = 1\n"}, "python/words.py: knows cumsum"),
    ({"src/lower/scan.cpp": "// a Scan\n"}, "names src/lower/scan.cpp, which does not know its example"),
    ({"src/lower/scan.cpp": None}, "names src/lower/scan.cpp, which there is not"),
    ({"src/lower/fill.cpp": ""}, "src/lower: the tile op Fill has nothing where Scan has src/lower/scan.cpp"),
    ({"CONTRIBUTING.md": WELL["CONTRIBUTING.md"].replace("most 3", "most 2")}, "takes 3 files, more than 2"),
    ({"CONTRIBUTING.md": WELL["CONTRIBUTING.md"].replace("`Scan`", "`Sort`")}, "no recipe for a tile op"),
    ({"CONTRIBUTING.md": WELL["CONTRIBUTING.md"].replace("`src/lower/`", "`src/gone/`")}, "there is no src/gone/"),
    ({"CONTRIBUTING.md": "**A tile op**, in five places:\n"}, "no recipe for a tile op"),
]


def self_test():
    for changed, expected in PLANTED:
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in {**WELL, **changed}.items():
                if text is None:
                    continue
                file = pathlib.Path(scratch) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = list(faults_of(pathlib.Path(scratch)))
        if (expected is None) != (not found) or expected and not any(expected in fault for fault in found):
            sys.exit(f"check_recipes: its own test fails: {changed} should give {expected!r}, gave {found}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    self_test()
    faults = list(faults_of(root))
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    sys.exit(f"check_recipes: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
