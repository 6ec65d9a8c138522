#!/usr/bin/env python3
"""Checks that the documents are about this tree: links lead somewhere, every folder of src/ has its row in
ARCHITECTURE.md, docs/language.md names every function of the language, and docs/debugging.md lists the environment
variables that the sources ask for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
FUNCTION = re.compile(r"^(?:inline |constexpr )*[A-Z_a-z][\w:<>]*(?:&&)? (\w+)\(", re.MULTILINE)
VARIABLE = re.compile(r"TILEWRIGHT_[A-Z_]+")
SETTING = re.compile(r'"(TILEWRIGHT_[A-Z_]+)"|\b(TILEWRIGHT_[A-Z_]+)=')  # asked for in C++, set in the Makefile


def texts(folder, *patterns):
    return [(path, path.read_text(encoding="utf-8")) for pattern in patterns for path in sorted((ROOT / folder).glob(pattern))]


def broken_links():
    for path, text in texts(".", "*.md", "docs/**/*.md", "skills/**/*.md"):
        for target in LINK.findall(CODE.sub("", text)):
            if not (path.parent / target).exists():
                yield f"{path.relative_to(ROOT)}: there is no {target}"


def unlisted_folders():
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for folder in sorted(path for path in (ROOT / "src").iterdir() if path.is_dir()):
        if f"| `src/{folder.name}/` |" not in architecture:
            yield f"ARCHITECTURE.md: no row for src/{folder.name}/"


def unlisted_functions():
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", page))
    header = (ROOT / "include/tilewright/language.h").read_text(encoding="utf-8")
    # Functions that users call stand at the start of a line; what opens a scope for a template does not count.
    for name in sorted(set(FUNCTION.findall(header))):
        if not name.startswith("open_") and name not in words:
            yield f"docs/language.md: {name} is missing"


def undocumented_variables():
    read = {}
    for path, text in texts(".", "src/**/*.cpp", "src/**/*.h", "tests/**/*.cpp", "Makefile"):
        for name in SETTING.findall(text):
            read.setdefault("".join(name), path.relative_to(ROOT))
    listed = set(VARIABLE.findall((ROOT / "docs/debugging.md").read_text(encoding="utf-8")))
    for name in sorted(read.keys() - listed):
        yield f"docs/debugging.md: {name} is missing ({read[name]} knows it)"
    for name in sorted(listed - read.keys()):
        yield f"docs/debugging.md: nothing knows {name}"


def main():
    faults = [*broken_links(), *unlisted_folders(), *unlisted_functions(), *undocumented_variables()]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    sys.exit(f"check_docs: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
