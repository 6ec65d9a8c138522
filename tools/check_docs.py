#!/usr/bin/env python3
"""Checks that the documents are about this tree: links lead somewhere, every folder of src/ has its row in
ARCHITECTURE.md, docs/language.md names every function of the language, and docs/debugging.md lists the environment
variables that the sources ask for, tables say what files say (tools/figures.py), and lines of prose are short."""
import pathlib
import re
import sys
import textwrap

import figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
KEPT = re.compile(rf"{CODE.pattern}|^<!-- (\w+) -->.*?^<!-- /\1 -->", re.MULTILINE | re.DOTALL)  # and what a program writes into a page
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
FUNCTION = re.compile(r"^(?:inline |constexpr )*[A-Z_a-z][\w:<>]*(?:&&)? (\w+)\(", re.MULTILINE)
WRITTEN = re.compile(r"\A#[^\n]*\n\n.{0,200}(?:[Ww]ritten by|writes this page)", re.DOTALL)  # by a program: its lines are as long as they are
LONGEST, WRAP, FEW = 130, 126, 60
VARIABLE = re.compile(r"TILEWRIGHT_[A-Z_]+")
SETTING = re.compile(r'"(TILEWRIGHT_[A-Z_]+)"|\b(TILEWRIGHT_[A-Z_]+)=')  # asked for in C++, set in the Makefile
SETTING_OF_PYTHON = re.compile(r'environ(?:\.get\(|\.pop\(|\[)"(TILEWRIGHT_\w+)"')


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
    for path, text in texts("python/tilewright", "**/*.py"):
        for name in SETTING_OF_PYTHON.findall(text):
            read.setdefault(name, path.relative_to(ROOT))
    listed = set(VARIABLE.findall((ROOT / "docs/debugging.md").read_text(encoding="utf-8")))
    for name in sorted(read.keys() - listed):
        yield f"docs/debugging.md: {name} is missing ({read[name]} knows it)"
    for name in sorted(listed - read.keys()):
        yield f"docs/debugging.md: nothing knows {name}"


def other_figures():
    for page in figures.TABLES:
        text = (ROOT / page).read_text(encoding="utf-8")
        if figures.with_table(page, text) != text:
            yield f"{page}: its table is not what the files say: tools/figures.py writes it"


def is_long(line):
    return len(line) > LONGEST and not line.startswith(("|", "<!--"))


def long_lines():
    for path, text in texts(".", "*.md", "docs/**/*.md", "examples/*.md"):
        if WRITTEN.search(text):
            continue
        blank = CODE.sub(lambda match: "\n" * match[0].count("\n"), text)  # so that numbers of lines stay
        for number, line in enumerate(blank.splitlines(), 1):
            if is_long(line):
                yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns of {LONGEST}; tools/check_docs.py --wrap breaks lines"


def goes_on(lines):
    """Whether the first of these lines belongs to the paragraph that stands before it."""
    return bool(lines) and bool(lines[0].strip()) and not re.match(r" *(?:[-*] |\d+\. |[|#>!<])", lines[0])


def is_alone(before, lines):
    """Whether the first of these lines is a few words in the middle of a paragraph, which were left over from the line before it."""
    return goes_on([re.sub(r"^ *(?:[-*] |\d+\. )", "", before)]) and goes_on(lines) and goes_on(lines[1:]) and len(lines[0]) <= FEW


def alone_lines():
    for path, text in texts(".", "*.md", "docs/**/*.md", "examples/*.md"):
        lines = KEPT.sub(lambda code: "\n" * code[0].count("\n"), text).split("\n")
        for number in range(1, len(lines)):
            if not WRITTEN.search(text) and is_alone(lines[number - 1], lines[number:]):
                yield f"{path.relative_to(ROOT)}:{number + 1}: a few words in a line of their own; tools/check_docs.py --wrap fills lines"


def wrapped(text):
    """The text, with the rest of a paragraph filled again from a line on that is too long, or whose last words are in a line of their own."""
    parts, at = [], 0
    for block in [*KEPT.finditer(text), None]:
        lines, made = text[at : block.start() if block else len(text)].split("\n"), []
        while lines:
            line = lines.pop(0)
            if not is_long(line) and not is_alone(line, lines):
                made.append(line)
                continue
            indent = re.match(r" *(?:[-*] |\d+\. )?", line)[0]
            rest = [line]
            while goes_on(lines):
                rest.append(lines.pop(0))
            words = " ".join(part.strip() for part in rest)
            made += textwrap.wrap(words, WRAP, initial_indent=indent[: len(indent) - len(indent.lstrip())],
                                  subsequent_indent=" " * len(indent), break_long_words=False, break_on_hyphens=False)  # fmt: skip
        parts += ["\n".join(made), block[0] if block else ""]
        at = block.end() if block else at
    return "".join(parts)


def main():
    if sys.argv[1:] == ["--wrap"]:
        for path, text in texts(".", "*.md", "docs/**/*.md", "examples/*.md"):
            if not WRITTEN.search(text) and wrapped(text) != text:
                path.write_text(wrapped(text), encoding="utf-8")
    faults = [*broken_links(), *unlisted_folders(), *unlisted_functions(), *undocumented_variables(), *other_figures(), *long_lines(), *alone_lines()]
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    sys.exit(f"check_docs: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
