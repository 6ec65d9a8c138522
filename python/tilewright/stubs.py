"""python -m tilewright.stubs: the type stub of tilewright.language, so that editors complete T. and show its calls. What
the library's table knows is written from there, the rest from the functions themselves."""
import inspect
import pathlib

from . import _native, language

FILE = pathlib.Path(__file__).parent / "language" / "__init__.pyi"
_KINDS = {
    "tile": "_Tile", "buffer": "_Buffer", "expr": "_Value", "exprs": "_Shape", "dtype": "_DType", "int": "_int | _Any",
    "bool": "_bool | _Any", "text": "_str", "list": "_typing.Sequence[_int]", "ignored": "_object", "absent": "None",
}  # fmt: skip
# The language has names of Python's and of typing, Any, bool and max among them: what the stub needs for itself has others.
_HEAD = '''"""Written by `python -m tilewright.stubs`."""
import typing as _typing
from builtins import bool as _bool, int as _int, object as _object, str as _str

from ..program import PrimFunc as PrimFunc

class dtype(_str): ...

_Any: _typing.TypeAlias = _typing.Any
_Recorded = _typing.TypeVar("_Recorded", bound=_typing.Callable[..., _typing.Any])
_DType: _typing.TypeAlias = _typing.Any  # "float16", T.float16, torch.float16
_Buffer: _typing.TypeAlias = _typing.Any  # what alloc_* and parameters are
_Tile: _typing.TypeAlias = _typing.Any  # a buffer, buffer[i, j] or buffer[i, a:b]
_Value: _typing.TypeAlias = _typing.Any  # a number, an expression, an element, a variable
_Shape: _typing.TypeAlias = _typing.Any  # an extent or a list of them
'''
# Decorators: what a function is under them.
_DECORATORS = {
    "prim_func": ("function: _typing.Callable[..., _Any]", "PrimFunc", "_typing.Callable[..., _Any]", "PrimFunc"),
    "macro": ("function: _Recorded", "_Recorded", "_Recorded", "_Recorded"),
}
_OWN_ROWS = ("PrimFunc", "dtype")


def _of_table(row):
    name, _, signature, doc = row
    heads = []
    for parameter, kind, default in language._parameters(signature):
        if kind is None:
            heads.append(parameter)
        else:
            optional = " | None" if default == "None" and "Any" not in _KINDS[kind] else ""
            heads.append(f"{parameter}: {_KINDS[kind]}{optional}" + ("" if default is None else f" = {default}"))
    return _function(name, ", ".join(heads), doc)


def _function(name, parameters, doc, result="_Any"):
    lines = inspect.cleandoc(doc or "").replace("\\", "\\\\").splitlines()
    body = f'    """{" ".join(lines)}"""' if lines else "    ..."
    return f"def {name}({parameters}) -> {result}:\n{body}\n"


def _decorator(name, doc):
    parameter, result, taken, given = _DECORATORS[name]
    return (f"@_typing.overload\n{_function(name, parameter, doc, result)}"
            f"@_typing.overload\n{_function(name, 'function: None = None, **ignored: _Any', doc, f'_typing.Callable[[{taken}], {given}]')}")  # fmt: skip


def _of_function(name, value):
    parameters = []
    for p in inspect.signature(value).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not any(q.startswith("*") for q in parameters):
            parameters.append("*")
        default = "" if p.default is p.empty else " = ..."
        parameters.append(f"{star}{p.name}: _Any{default}")
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
        elif name in _DECORATORS:
            parts.append(_decorator(name, value.__doc__))
        elif inspect.isfunction(value):
            parts.append(_of_function(name, value))
        elif name not in _OWN_ROWS:
            parts.append(f"{name}: _Any\n")
    parts += [_of_table(table[name]) for name in sorted(table)]
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"wrote {FILE}")
