#!/usr/bin/env python3
"""The examples of the reference, one for each operation, as text: docs/reference/examples.

A section of a .py or .cpp file there begins with a line `# --- NAME` (`// --- NAME`). `# --- NAME = OTHER: a -> b ;; c -> d` is
the section of OTHER with a replaced by b; "; " in b ends a line. Lines `# wrong: STATEMENT` are mistakes: each takes the place
of the line that the example has at that name. values.txt has a line for each operation on numbers.

tools/reference_examples.py FILE.cpp writes a program that prints what the C++ examples record.
"""
import dataclasses
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs/reference/examples"
HEAD = re.compile(r"^(?:#|//) --- (\w+)(?: = (\w+)(?:: (.*))?)?$", re.MULTILINE)
MORE = re.compile(r"\n(?:#|//)( +(?:;;|->) )")  # a head that goes on in the next line
WRONG = re.compile(r"^# wrong: (.*)\n?", re.MULTILINE)
TYPES = {"float32": "f32", "int32": "i32", "uint32": "u32", "bool": "boolean"}


@dataclasses.dataclass
class Example:
    name: str
    python: str
    wrong: list  # statements that are mistakes
    cpp: str = ""  # of a function `Program example()`, where C++ has a word for it

    def called(self):
        """What stands for the operation in the text."""
        return f"T.{self.name}("


def _replaced(text, rules):
    """The text with `a -> b ;; c -> d` done; where a is two statements on a line, they are two lines of the text."""
    for rule in (rules or "").split(";; "):
        before, arrow, after = (part.strip() for part in rule.partition(" -> "))
        if not arrow:
            continue
        pattern = r";?\n *".join(map(re.escape, before.split("; ")))
        text = re.sub(pattern, lambda match: after, text)
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        code = line.partition("#")[0]
        lines += [indent + part.lstrip() for part in line.split("; ")] if "; T." in code else [line]
    return "\n".join(lines)


def _sections(path):
    """(name, the section it is made of, rules, text) of a file."""
    text = MORE.sub(r"\1", path.read_text(encoding="utf-8"))
    heads = list(HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None]):
        yield head[1], head[2], head[3], text[head.end() : following.start() if following else None].strip() + "\n"


def _of_files(found):
    for path in sorted(FOLDER.glob("*.py")):
        for name, of, rules, text in _sections(path):
            wrong = WRONG.findall(text)
            if of:
                base = found[of]
                wrong = wrong or [_replaced(w, rules) for w in base.wrong]
                found[name] = Example(name, _replaced(base.python, rules), wrong)
            else:
                found[name] = Example(name, WRONG.sub("", text), wrong)
    for path in sorted(FOLDER.glob("*.cpp")):
        for name, of, rules, text in _sections(path):
            found[name].cpp = _replaced(found[of].cpp, rules) if of else text


def _value(name, python, cpp, types, x, z, numpy, error):
    """The example of an operation on numbers."""
    operands, result = types.split(" -> ")
    first, _, second = operands.partition(", ")
    tensors = [("X", first), *([("Z", second or first)] if z else []), ("Y", result)]
    given = [f"{t.lower()} = {_as_type(v, of)}" for (t, of), v in zip(tensors[:-1], [x, z])]
    arguments = ", ".join(t.lower() for t, _ in tensors[:-1])
    compared = f"assert_array_equal(y, {numpy})" if error == "0" else f"assert_allclose(y, {numpy}, rtol={error})"
    needed = "import math\n\n" if "math." in numpy else ""
    body = f"""{needed}@T.prim_func
def of_values({", ".join(f'{t}: T.Tensor((64,), "{of}")' for t, of in tensors)}):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            Y[i] = {python}

{chr(10).join(given)}
y = tw.compile(of_values, out_idx=-1)({arguments})
np.testing.{compared}
"""
    if cpp == "=":
        cpp = re.sub(r"\[(\w+)\]", r"(\1)", python.replace("T.", ""))
    elif cpp == "f":
        cpp = re.sub(r"^T\.(\w+)\((.*)\)$", r'scalar_function("\1", {\2})', re.sub(r"\[(\w+)\]", r"(\1)", python))
    recorded = f"""Program example() {{
  Tensor {", ".join(f'{t}("{t}", {{64}}, {TYPES[of]})' for t, of in tensors)};
  return prim_func("of_values", {{{", ".join(t for t, _ in tensors)}}}, [&] {{
    for ([[maybe_unused]] auto bx : Kernel(1, {{.threads = 64}}))
      for (auto i : Parallel(64)) Y(i) = {cpp};
  }});
}}
"""
    wrong = [f"Y[i] = T.{name}()", f"Y[i] = T.{name}(X{', X' if z else ''})"]
    return Example(name, body, wrong, recorded)


def _as_type(value, dtype):
    """NumPy's expression, as an array of that dtype."""
    depth, compound = 0, False
    for letter in value:
        depth += (letter in "([") - (letter in ")]")
        compound |= depth == 0 and letter == " "
    return f'({value}).astype("{dtype}")' if compound else f'{value}.astype("{dtype}")'


def examples():
    """All, by the names of their operations."""
    found = {}
    for line in (FOLDER / "values.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            words = [w.strip().replace("\\|", "|") for w in re.split(r"(?<!\\)\|", line)]
            found[words[0]] = _value(*words)
    _of_files(found)
    return found


def program():
    """A C++ program that prints the text of each example's program, under a line `### NAME`."""
    parts = ['#include <tilewright/language.h>\n\n#include <cstdio>\n\nusing namespace tilewright;\n']
    named = [example for example in examples().values() if example.cpp]
    parts += [f"namespace of_{example.name} {{\n{example.cpp}}}\n" for example in named]
    rows = "".join(f'  {{"{example.name}", of_{example.name}::example}},\n' for example in named)
    parts.append(f"const std::pair<const char*, Program (*)()> kExamples[] = {{\n{rows}}};\n")
    parts.append('int main() {\n  for (const auto& [name, example] : kExamples)\n'
                 '    std::printf("### %s\\n%s", name, example().text().c_str());\n}\n')  # fmt: skip
    return "\n".join(parts)


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(program(), encoding="utf-8")
