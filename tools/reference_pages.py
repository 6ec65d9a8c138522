#!/usr/bin/env python3
"""Writes the reference, a page for each operation: tools/reference_pages.py FOLDER [NAME...].

What is said of an operation comes from the table of the C ABI. Its examples are those of tools/reference_examples.py; what they
become on sm_90a and what mistakes are answered with is what the compiler says while the page is written.
"""
import linecache
import os
import pathlib
import re
import sys

import numpy as np
import reference_examples
import tilewright as tw
import tilewright.language as T
from tilewright import _native, reference

ARCH, CODE_LINES = "sm_90a", 14
HEAD = "import numpy as np\nimport tilewright as tw\nimport tilewright.language as T\n"
CPP_HEAD = "#include <tilewright/language.h>\n\nusing namespace tilewright;\n\n"
RANDOM = "\nrandom = np.random.default_rng(0)\n"
PROGRAMS = "program"
GROUPS = {PROGRAMS: ("Programs and loops", "Words that make programs, launches and loops, and say things of tiles.")}
GROUPS.update(reference.GROUPS)
KINDS = {
    "tile": "a buffer, the head of a box (`A[i, j]`) or a box (`A[i, a:b]`)",
    "buffer": "a buffer",
    "expr": "a number, an expression, an element or a variable",
    "exprs": "a list of numbers and expressions",
    "dtype": "a dtype: `T.float16`, its name, or PyTorch's or NumPy's own",
    "int": "a number that is known while the program is recorded",
    "bool": "`True` or `False`",
    "text": "a text",
    "list": "a list of numbers",
}


def source_of(example, wrong=None):
    """The whole program of an example; with a mistake in the place of the line that names the operation."""
    text = HEAD + (RANDOM if "random." in example.python else "") + "\n" + example.python
    if wrong is None:
        return text
    lines = text.splitlines(True)
    number = line_of(example, text)
    indent = re.match(" *", lines[number - 1])[0]
    lines[number - 1] = f"{indent}{wrong}\n"
    return "".join(lines)


def line_of(example, source):
    """The line that has the operation."""
    for text in (example.called(), example.called()[:-1]):  # decorators stand without parentheses
        for number, line in enumerate(source.splitlines(), 1):
            if text in line:
                return number
    raise ValueError(f"the example of {example.name} does not call {example.called()})")


def run(source, name):
    """Runs it as the file `name`; returns its names."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"__name__": "__main__", "__file__": name}
    exec(compile(source, name, "exec"), space)
    return space


def program_of(space):
    """What an example has under @T.prim_func."""
    (found,) = (value for value in space.values() if type(value).__name__ == "PrimFunc")
    return found


def mistakes(example):
    """(statement, the error that it gives) for each mistake of the example."""
    for statement in example.wrong:
        try:
            run(source_of(example, statement), f"{example.name}.py")
        except tw.TilewrightError as error:
            yield statement, error
        else:
            raise AssertionError(f"{example.name}: nothing is said of {statement}")


def becomes(example, program):
    """(lines of explain, lines of CUDA) about the line that has the operation, compiled for sm_90a."""
    source = source_of(example)
    number = line_of(example, source)
    declared = re.match(r" *(\w+) = T\.", source.splitlines()[number - 1])
    kernel = tw.compile(program, engine="interpreter")
    said = []
    for launch in kernel.explain(ARCH, as_json=True)["launches"]:
        for operation in launch["operations"]:
            if operation["line"] == number:
                said += operation.get("becomes", [])
        said += _memory(launch, declared[1]) if declared else []
    code, taken = [], False
    text = tw.compile(program, target=f"cuda -arch={ARCH}").get_kernel_source()
    for line in text.splitlines():
        if re.match(r" *// \S+\.py:\d+$", line):
            taken = line.strip() == f"// {example.name}.py:{number}"
        elif line.startswith("}"):
            taken = False
        if taken:
            code.append(line)
    return said, code


def _memory(launch, name):
    """Where a buffer lies, and who decided that."""
    for buffer in launch.get("buffers", ()):
        if buffer["name"] == name:
            where = "the registers of the block's threads" if buffer["space"] == "fragment" else f"{buffer['space']} memory"
            yield f"{buffer['bytes']} bytes of {where}"
    for layout in launch.get("layouts", ()):
        if layout["name"] == name:
            yield f"in {layout['space']}, laid out by {layout['decided_by']}: `{layout['layout']}`"


def _shown(code):
    """The lines of CUDA, few of them, from the left."""
    indent = min((len(line) - len(line.lstrip()) for line in code if line.strip()), default=0)
    lines = [line[indent:] for line in code]
    return lines if len(lines) <= CODE_LINES else [*lines[:CODE_LINES], f"// and {len(lines) - CODE_LINES} lines more"]


def _tabs(example):
    def block(language, text):
        return "".join(f"    {line}\n" if line else "\n" for line in f"```{language}\n{text.rstrip()}\n```".splitlines())

    parts = ['=== "Python"\n\n', block("python", source_of(example))]
    if example.cpp:
        parts += ['\n=== "C++"\n\n', block("cpp", CPP_HEAD + example.cpp)]
    return "".join(parts)


def _parameters(signature):
    rows = []
    for word in reference.parameters(signature).split(", "):
        name, _, rest = word.partition(": ")
        kind, _, default = rest.partition(" = ")
        if name and name != "*":
            rows.append(f"| `{name}` | {KINDS.get(kind, kind)} | {f'`{default}`' if default else ''} |\n")
    return "".join(["| Parameter | What it is | Default |\n|---|---|---|\n", *rows]) if rows else "It takes no parameters.\n"


def page(name, group, signature, doc, example):
    """The page of one operation, in Markdown."""
    space = run(source_of(example), f"{name}.py")
    said, code = becomes(example, program_of(space))
    if group == PROGRAMS:
        lines = [f"# T.{name}\n\n{doc}\n\n```python\n{signature}\n```\n"]
    else:
        call = f"T.{name}({reference.parameters(signature)})"
        lines = [f"# T.{name}\n\n{doc}\n\n```python\n{call}\n```\n\n", _parameters(signature)]
    lines += ["\n## Example\n\n", _tabs(example)]
    if not example.cpp:
        lines.append("\nC++ has no word for it: [the language in C++](../../language.md).\n")
    else:
        lines.append("\nBoth record the same program, and the assertion holds: a test runs them.\n")
    lines.append(f"\n## What it becomes on {ARCH}\n\n")
    lines += [f"- {line}\n" for line in dict.fromkeys(said)]
    if code:
        lines += ["\n```cuda\n".lstrip("\n" if not said else ""), *(f"{line}\n" for line in _shown(code)), "```\n"]
    if not said and not code:
        lines.append("No code of its own: what uses it has that, or the launch around it.\n")
    lines.append("\n## Mistakes\n\n")
    for statement, error in mistakes(example):
        help = f"\n\n    help: {error.help}\n" if error.help else ""
        lines.append(f"- `{statement}`: **[{error.code}](../../errors.md)** {error.message.partition(chr(10))[0]}{help}\n")
    return "".join(lines)


def listed():
    """(name, group, signature, text) of all that has a page: operations, and the words around them that have an example."""
    operations = [row for row in _native.operations() if row[1] in reference.GROUPS]
    known = {row[0] for row in operations}
    for name in reference_examples.examples().keys() - known:
        value = getattr(T, name)
        operations.append((name, PROGRAMS, reference.signature_of(name, value), reference.cell(value.__doc__)))
    return sorted(operations)


def write(folder, names=()):
    """The pages, and one that lists them for each group."""
    found, rows = reference_examples.examples(), listed()
    for name, group, signature, doc in rows:
        if not names or name in names:
            (folder / f"{name}.md").write_text(page(name, group, signature, doc, found[name]), encoding="utf-8")
    for group, (title, meaning) in GROUPS.items():
        of_group = "".join(f"| [`T.{name}`]({name}.md) | {reference.cell(doc)} |\n" for name, of, _, doc in rows if of == group)
        text = f"# {title}\n\n{meaning}\n\n| Operation | Meaning |\n|---|---|\n{of_group}"
        (folder / f"{group}_operations.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("TILEWRIGHT_ENGINE", "interpreter")  # which needs no compiler
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    write(out, sys.argv[2:])
