"""What programs that look into TVM's trees find of a recorded program: the numbers it was written with, and the calls of
device functions that are statements of their own, which may be left out. Other nodes are not there, and say so when used."""
import copy
import re

from . import _native, dtypes
from .trace import fail
from .values import Expr


class FloatImm:
    """A number that a program was written with."""

    def __init__(self, dtype, value):
        self.dtype, self.value = dtypes.dtype(dtype), value


class _Integers(type):
    def __call__(cls, dtype, value):
        return dtypes.dtype(dtype)(int(value))

    def __instancecheck__(cls, value):
        return isinstance(value, Expr) and isinstance(value.constant, int)


class IntImm(metaclass=_Integers):
    """An integer: IntImm("int32", 3) is an expression, as T.int32(3) is."""


class StringImm:
    """Text, as an argument of a call."""

    def __init__(self, value):
        self.value = value


class Written:
    """An argument that is known only at run time: the text of its expression."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


class _Calls(type):
    def __instancecheck__(cls, value):
        return type(value) is cls or isinstance(value, Expr)


class Call(metaclass=_Calls):
    """A call of a device function; args begins with its name. Expressions count as calls, of operators."""

    def __init__(self, args):
        self.args = args


class Evaluate:
    """An expression as a statement."""

    def __init__(self, value):
        self.value = value


class _Absent(type):
    def __call__(cls, *arguments, **named):
        _refuse(cls.__name__)

    def __instancecheck__(cls, value):
        _refuse(cls.__name__)

    def __getattr__(cls, name):
        """A name in it, as tirx.functor.visitor: where the first is a module of TVM's."""
        if name.startswith("_"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return absent(f"{cls.__name__}.{name}")


def _refuse(name):
    fail("UnknownOperation", f"TVM's '{name}' is used, but programs have no such nodes here",
         "Evaluate, Call, StringImm, IntImm and FloatImm are there; program.script() is the text of a program")  # fmt: skip


def absent(name):
    """A name of TVM's that can be imported, and is refused when it is used."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(name, (), {})


_STATEMENT = re.compile(r'^ *call function="([^"]+)"(?: source="(?:[^"\\]|\\.)*")? args=\[(.*)\]$')


def _arguments(text):
    """The arguments of a call, as nodes: commas within brackets and quotes do not divide."""
    nodes, depth, begin, quoted = [], 0, 0, False
    for i, c in enumerate(text + ","):
        if c == '"' and text[i - 1 : i] != "\\":
            quoted = not quoted
        elif not quoted and c in "([{":
            depth += 1
        elif not quoted and c in ")]}":
            depth -= 1
        elif not quoted and depth == 0 and c == ",":
            word, begin = text[begin:i].strip(), i + 1
            if word:
                nodes.append(IntImm("int32", word) if re.fullmatch(r"-?\d+", word) else Written(word))
    return nodes


def _statement(line):
    match = _STATEMENT.match(line)
    return match and Evaluate(Call([StringImm(match[1]), *_arguments(match[2])]))


def post_order_visit(body, visit):
    """Shows `visit` the floats that a program was written with, and its calls of device functions, inner nodes first."""
    for dtype, value in body.numbers:
        if dtype.startswith(("float", "bfloat")):
            visit(FloatImm(dtype, value))
    for line in body.script().splitlines():
        node = _statement(line)
        if node:
            for part in (*node.value.args, node.value, node):
                visit(part)


def _is_nothing(node):
    return isinstance(node, Evaluate) and isinstance(node.value, IntImm)


def ir_transform(body, preorder, postorder, only_enable=None):
    """The program without the calls of device functions that one of the functions makes Evaluate(0) of."""
    kept, dropped = [], False
    for line in body.script().splitlines():
        node = _statement(line)
        made = node and (preorder(node) if preorder else None)
        if node and made is None and postorder:
            made = postorder(node)
        if node and made is not None and made is not node and not _is_nothing(made):
            fail("OperandKind", f"a call of '{node.value.args[0].value}' becomes {type(made).__name__}, but it can only be left out here",
                 "return the node itself, or Evaluate(IntImm('int32', 0)) in its place")  # fmt: skip
        leave_out = node and _is_nothing(made)
        dropped = dropped or leave_out
        if not leave_out:
            kept.append(line)
    if not dropped:
        return body
    made = copy.copy(body)
    made.program, made.attrs = _native.parse("\n".join(kept) + "\n", ""), dict(body.attrs)
    return made


def PrimFunc(params, body, ret_type=None, buffer_map=None, attrs=None):
    """A program of the parameters of another, which is its body."""
    if list(params) != list(body.params) or (buffer_map is not None and list(buffer_map) != list(body.buffer_map)):
        fail("OperandKind", f"'{body.name}' is given other parameters, but a program has those that it was recorded with",
             "write them in its signature")  # fmt: skip
    made = copy.copy(body)
    made.attrs = dict(attrs or {})
    return made


def names():
    """What `tvm.tirx` holds of them."""
    listed = (Call, Evaluate, FloatImm, IntImm, PrimFunc, StringImm)
    return {c.__name__: c for c in listed}
