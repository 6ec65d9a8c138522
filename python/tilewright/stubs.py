"""python -m tilewright.stubs: the type stub of tilewright.language, so that editors complete T. and show its calls. What
the library's table knows is written from there, the rest from the functions themselves."""
import inspect
import pathlib

from . import _native, language

FILE = pathlib.Path(__file__).parent / "language" / "__init__.pyi"
_KINDS = {
    "tile": "_Operand", "buffer": "_Operand", "expr": "_Operand", "exprs": "_Shape", "dtype": "_DType", "int": "_int | _Any",
    "bool": "_bool | _Any", "text": "_str", "list": "_typing.Sequence[_int]", "ignored": "_object", "absent": "None",
}  # fmt: skip
_BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_COMPARED = "lt le gt ge eq ne".split()
# The language has names of Python's and of typing, Any, bool and max among them: what the stub needs for itself has others.
_HEAD = '''"""Written by `python -m tilewright.stubs`."""
import typing as _typing
from builtins import bool as _bool, int as _int, list as _list, object as _object, str as _str, tuple as _tuple, type as _type

from ..program import PrimFunc as PrimFunc

MYPY = False  # to mypy it is true
_Any: _typing.TypeAlias = _typing.Any
_DType: _typing.TypeAlias = _typing.Any  # "float16", T.float16, torch.float16
_Operand: _typing.TypeAlias = _typing.Any  # a number, an expression, a buffer, buffer[i, j], buffer[i, a:b], a variable
_Shape: _typing.TypeAlias = _typing.Any  # an extent or a list of them

class dtype(_str):
    bits: _int
    lanes: _int
    type_code: _int
    def is_float4(self) -> _bool: ...
    def is_float4_e2m1fn(self) -> _bool: ...
    def is_float4_e2m1_unpacked(self) -> _bool: ...
    def __call__(self, value: _Any = ...) -> "PrimExpr": ...

class PrimExpr:
    """A value of run time: an expression, an element, a variable."""
    dtype: _Any
    def __getattr__(self, name: _str) -> _Any: ...
{operators}
class BufferRegion(PrimExpr):
    """A buffer with indices: an element, the head of a tile, or a box."""
    buffer: "_Memory"
    shape: _tuple[_Any, ...]
    def __getitem__(self, index: _Any) -> _Any: ...

class _Memory:
    """A tensor, or memory on chip: memory[i, j] is an element or the head of a tile, memory[i, a:b] a box."""
    shape: _tuple[_Any, ...]
    strides: _list[_Any]
    dtype: _Any
    data: _Any
    name: _str
    ndim: _int
    def scope(self) -> _str: ...
    def __getitem__(self, index: _Any) -> BufferRegion: ...
    def __setitem__(self, index: _Any, value: _Operand) -> None: ...

class _Variable(PrimExpr, _Memory):
    """A variable of a thread, which assignments change."""
    dtype: _Any
    def __getitem__(self, index: _Any) -> BufferRegion: ...

class handle(_Memory):
    """A parameter that T.match_buffer describes in the body."""
    def __init__(self, *ignored: _Any) -> None: ...

class Ref(_Variable):
    """Annotation of a macro's parameter that is an element or a variable, not its value."""

class _Dtype(_type):
    """What classes that stand for dtypes have themselves."""
    bits: _int
    lanes: _int

# A tensor in annotations: T.Tensor[[M, N], T.float16]. Its brackets are values, not types, which pyright takes where a class has
# a function for them, and mypy nowhere.
if not MYPY:
    class Tensor(_Memory):
        """A tensor parameter: row-major and compact."""
        def __init__(self, shape: _Shape, dtype: _DType = ..., data: _Any = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    class StridedTensor(_Memory):
        """A tensor parameter with strides of its own, in elements."""
        def __init__(self, shape: _Shape, strides: _Shape, dtype: _DType = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    class SharedBuffer(_Memory):
        """Annotation of a macro's parameter; not checked."""
        def __init__(self, shape: _Shape = ..., dtype: _DType = ...) -> None: ...
        def __class_getitem__(cls, item: _Any) -> _Any: ...
    Buffer = Tensor
    FragmentBuffer = LocalBuffer = SharedBuffer
else:
    Tensor = StridedTensor = SharedBuffer = Buffer = FragmentBuffer = LocalBuffer = _typing.cast(_typing.Any, None)
'''
# Decorators: what a function is under them.
_CALLABLE = "_typing.Callable[..., _Any]"
_DECORATORS = {
    "prim_func": (f"func: {_CALLABLE}, private: bool = ..., check_well_formed: bool = ..., *, eager_jit: bool = ...", "PrimFunc", _CALLABLE, "PrimFunc"),
    "macro": (f"func: {_CALLABLE}", _CALLABLE, _CALLABLE, _CALLABLE),
}
_OWN_ROWS = tuple(
    "PrimFunc dtype PrimExpr BufferRegion Tensor StridedTensor SharedBuffer Buffer FragmentBuffer LocalBuffer MYPY handle Ref".split()
)


def _operators():
    lines = []
    for name in _BINARY:
        lines += [f"    def __{prefix}{name}__(self, other: _Operand) -> PrimExpr: ..." for prefix in ("", "r")]
    ignored = {"eq": "  # type: ignore[override]", "ne": "  # type: ignore[override]"}
    lines += [f"    def __{name}__(self, other: _Operand) -> PrimExpr: ...{ignored.get(name, '')}" for name in _COMPARED]
    lines += [f"    def __{name}__(self) -> PrimExpr: ..." for name in ("neg", "pos", "invert", "abs")]
    return "\n".join([*lines, "    def __hash__(self) -> _int: ...", "    def astype(self, to: _DType) -> PrimExpr: ...", ""])


def _result(name, group):
    """What an operation of the table gives."""
    if name == "alloc_var":
        return "_Variable"
    if name.startswith("alloc_"):
        return "_Memory"
    return "PrimExpr" if group == "scalar" and name not in language._FOLDED else "_Any"


def _of_table(row):
    name, group, signature, doc = row
    heads = []
    for parameter, kind, default in language._parameters(signature):
        if kind is None:
            heads.append(parameter)
        else:
            optional = " | None" if default == "None" and "Any" not in _KINDS[kind] else ""
            heads.append(f"{parameter}: {_KINDS[kind]}{optional}" + ("" if default is None else f" = {default}"))
    return _function(name, ", ".join(heads), doc, _result(name, group))


def _function(name, parameters, doc, result="_Any"):
    lines = inspect.cleandoc(doc or "").replace("\\", "\\\\").splitlines()
    body = f'    """{" ".join(lines)}"""' if lines else "    ..."
    return f"def {name}({parameters}) -> {result}:\n{body}\n"


def _decorator(name, doc):
    parameter, result, taken, given = _DECORATORS[name]
    alone = parameter.replace(f"func: {_CALLABLE}", "func: None = None")
    return (f"@_typing.overload\n{_function(name, parameter, doc, result)}"
            f"@_typing.overload\n{_function(name, alone, doc, f'_typing.Callable[[{taken}], {given}]')}")  # fmt: skip


def _of_dtype(name, value):
    """A class: it annotates parameters, is named where a dtype is wanted, and is called to convert."""
    if value.lanes > 1:
        return f"{name}: _Any\n"
    return f"class {name}(PrimExpr, metaclass=_Dtype):\n    def __init__(self, value: _Operand = ...) -> None: ...\n"


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
    parts = [_HEAD.replace("{operators}", _operators())]
    for name in sorted(own):
        value = own[name]
        if isinstance(value, language.dtype):
            parts.append(_of_dtype(name, value))
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
