"""python -m tilewright.stubs: the type stub of tilewright.language, so that editors complete T. and show its calls. What
the library's table knows is written from there, the rest from the functions themselves."""
import inspect
import pathlib

from . import _native, language

FILE = pathlib.Path(__file__).parent / "language" / "__init__.pyi"
_KINDS = {
    "tile": "Tile", "buffer": "Buffer", "expr": "Value", "exprs": "Shape", "dtype": "DType", "int": "int",
    "bool": "bool", "text": "str", "list": "Sequence[int]", "ignored": "object", "absent": "None",
}  # fmt: skip
_HEAD = '''"""Written by `python -m tilewright.stubs`."""
from typing import Any, Sequence

class dtype(str): ...

DType = Any  # "float16", T.float16, torch.float16
Buffer = Any  # what alloc_* and parameters are
Tile = Any  # a buffer, buffer[i, j] or buffer[i, a:b]
Value = Any  # a number, an expression, an element, a variable
Shape = Any  # an extent or a list of them
'''


def _of_table(row):
    name, _, signature, doc = row
    heads = []
    for parameter, kind, default in language._parameters(signature):
        if kind is None:
            heads.append(parameter)
        else:
            heads.append(f"{parameter}: {_KINDS[kind]}" + ("" if default is None else f" = {default}"))
    return _function(name, ", ".join(heads), doc)


def _function(name, parameters, doc):
    lines = inspect.cleandoc(doc or "").replace("\\", "\\\\").splitlines()
    body = f'    """{" ".join(lines)}"""' if lines else "    ..."
    return f"def {name}({parameters}) -> Any:\n{body}\n"


def _of_function(name, value):
    parameters = []
    for p in inspect.signature(value).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not any(q.startswith("*") for q in parameters):
            parameters.append("*")
        default = "" if p.default is p.empty else " = ..."
        parameters.append(f"{star}{p.name}: Any{default}")
    return _function(name, ", ".join(parameters), value.__doc__)


def text():
    """The whole stub."""
    table = {row[0]: row for row in _native.operations() if row[1] != "scope"}
    own = {n: getattr(language, n) for n in language._known_names() if n not in table}
    parts = [_HEAD]
    for name in sorted(own):
        value = own[name]
        if isinstance(value, language.dtype):
            parts.append(f"{name}: dtype\n")
        elif inspect.isfunction(value):
            parts.append(_of_function(name, value))
        elif name not in ("Buffer", "dtype"):
            parts.append(f"{name}: Any\n")
    parts += [_of_table(table[name]) for name in sorted(table)]
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"wrote {FILE}")
