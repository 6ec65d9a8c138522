"""What goes wrong, as exceptions. The texts are the library's; the classes are what programs catch."""
from __future__ import annotations

import linecache
import re
from typing import Any


class TilewrightError(Exception):
    """code ("TW1063"), area, message, help, and file, line, column of the place in the user's program."""

    code = area = message = help = file = ""
    line = column = 0
    is_late = False  # under TileLang's name it is one of compiling the program, not of recording it

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Classes that _class_of makes are made again where a pickle is read: no module has them."""
        made = next((parts for parts, made in _classes.items() if made is type(self)), None)
        return (_restored, (*made, *self.args), self.__dict__) if made else super().__reduce__()


class CompileError(TilewrightError, ValueError):
    """The program is wrong, or asks for what an engine cannot do."""


class LaunchError(TilewrightError, RuntimeError, ValueError):
    """The arguments of a call do not fit the program, or the run found a mistake."""


class InternalError(TilewrightError, RuntimeError):
    """A mistake in Tilewright."""


# Codes whose error is also of a class that Python programs expect.
_ALSO = {
    "TW1002": TypeError, "TW1003": TypeError, "TW1006": TypeError, "TW1009": TypeError, "TW1101": TypeError,
    "TW1106": TypeError, "TW1033": AssertionError, "TW1036": IndexError, "TW1038": IndexError,
    "TW1061": AssertionError, "TW1062": AssertionError, "TW1063": AssertionError, "TW1064": AssertionError,
    "TW1077": RuntimeError, "TW1104": RuntimeError, "TW1105": NotImplementedError, "TW1109": RuntimeError,
    "TW4001": TypeError, "TW4004": TypeError,
}  # fmt: skip
_KINDS = {kind.__name__: kind for kind in (CompileError, LaunchError, InternalError)}
_classes = {}


def refused_argument(kernel, position, name, cause):
    """Called by the extension module for an argument that cannot be handed to a kernel: the error, with its name."""
    if isinstance(cause, LaunchError) or not isinstance(cause, Exception):
        return cause
    help = "pass a tensor of numbers that the kernel may write (NumPy's, PyTorch's, or with DLPack), or a number"
    if isinstance(cause, OverflowError):
        code, reason = "TW4010", "is a number beyond 64 bits"
    else:
        said = re.sub(r"^an argument of type <class '[\w.]+'> cannot be handed to a kernel: ", "", str(getattr(cause, "message", "") or cause))
        said, advises, advice = said.partition(": pass ")
        help = f"pass {advice}" if advises else help
        code, reason = "TW4002", f"cannot be handed to a kernel: {said}"
    message = f"{kernel}: argument {position} '{name}' {reason}"
    error = make_error("LaunchError", code, "launch", message, help, f"error {code} launch: {message}\nhelp: {help}", "", 0, 0)
    also = next((kind for kind in (TypeError, BufferError, OverflowError) if isinstance(cause, kind)), None)
    if also is not None and not isinstance(error, also):
        error = of_class(error, also)
    error.__cause__ = cause
    return error


def _value_in_python(value):
    return {"true": "True", "false": "False"}.get(value, value.replace("{", "(").replace("}", ")"))


# Advice of the library in C++'s words, and what Python says.
_IN_PYTHON = [
    (re.compile(r"for \(auto (\w+) : Kernel\((.*?)\)\)"), r"with T.Kernel(\2) as \1:"),
    (re.compile(r"(?<!\S)\.(\w+) = (\{[^}]*\}|\w+)"), lambda m: f"{m[1]}={_value_in_python(m[2])}"),
    (re.compile(r"\bpass another \.(\w+)"), r"pass another \1"),
    (re.compile(r"\(\.contiguous\(\) in Python, clone\(\) in C\+\+\)"), "(x.contiguous(), numpy.ascontiguousarray(x))"),
    (re.compile(r"\bScalar\(\) and list it in the parameters"), "parameter: name: T.int32"),
]


def _in_python(help):
    for pattern, words in _IN_PYTHON:
        help = pattern.sub(words, help)
    return help


def _with_source(text, file, line, column):
    """The text with the line that it is about, of a cell of a notebook: the library reads files."""
    at = f"\n  --> {file}:{line}" + (f":{column}" if column > 0 else "")
    if line < 1 or f"{at}\n  {line:>5} | " in text:
        return text
    source = linecache.getline(file, line).rstrip()
    if not source:
        return text
    before = source.encode()[: column - 1].decode(errors="replace")
    caret = "\n        | " + "".join("\t" if c == "\t" else " " for c in before) + "^" if 0 < column <= len(source.encode()) else ""
    return text.replace(at, f"{at}\n  {line:>5} | {source}{caret}", 1)


def _with_place(text, file, line, column):
    """The text of an error of no place in a program, with that of the user's call: of a launch, or of what compiles late."""
    from .trace import place_of_call

    at = place_of_call()
    if at is None:
        return text, file, line, column
    head, newline, rest = text.partition("\nhelp: ") if "\nhelp: " in text else (text, "", "")
    return f"{head}\n  --> {at[0]}:{at[1]}" + (f":{at[2]}" if at[2] else "") + newline + rest, *at


def make_error(kind, code, area, message, help, text, file, line, column):
    """Called by the extension module for every error of the library."""
    if line < 1 and area != "internal":
        text, file, line, column = _with_place(text, file, line, column)
    said = _in_python(help)
    if said != help:
        text, help = text.replace(help, said), said
    cls = _class_of(_KINDS[kind], _ALSO.get(code))
    error = cls(_with_source(text, file, line, column))
    error.code, error.area, error.message, error.help = code, area, message, help
    error.file, error.line, error.column = file, line, column
    return error


def _class_of(base, also):
    """The class of an error that is of a class of Python's too."""
    if also is None or issubclass(base, also):
        return base
    made = _classes.get((base, also))
    if made is None:
        made = _classes[base, also] = type(base.__name__, (base, also), {})
    return made


def _restored(base, also, *args):
    return _class_of(base, also)(*args)


def of_class(error, also):
    """The same error, of another class of Python's too."""
    base = next(kind for kind in _KINDS.values() if isinstance(error, kind))
    made = _class_of(base, also)(str(error))
    made.__dict__.update(error.__dict__)
    return made
