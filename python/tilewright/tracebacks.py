"""Tracebacks of coded errors: the lines of users stay, frames of this package are cut. TILEWRIGHT_TRACEBACK=full keeps them, and
an error without a code keeps all of its own. On a terminal the message has colors."""
import functools
import os
import re
import sys
import types
from collections.abc import Callable
from typing import TypeVar

from .errors import TilewrightError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_ours = {}


def is_ours(code):
    """Whether a function is of this package, or text that it made."""
    ours = _ours.get(code)
    if ours is None:
        ours = _ours[code] = code.co_filename.startswith(_PACKAGE) or code.co_filename == "<tilewright>"
    return ours


def is_of_python(code):
    file = code.co_filename
    return file.startswith(("<frozen ", _PYTHON)) and not any(part in file for part in _INSTALLED)


def _is_cut(error):
    return isinstance(error, TilewrightError) and error.code and error.area != "internal" and os.environ.get("TILEWRIGHT_TRACEBACK") != "full"


def cut(error):
    """Takes this package's frames, and what it called of Python's library, out of a coded error's traceback. Only a user's
    mistake is cut: of one of ours, every frame counts."""
    if not _is_cut(error):
        return
    kept, called, entry = [], False, error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        called = is_ours(code) or (called and is_of_python(code))
        if not called:
            kept.append(entry)
        entry = entry.tb_next
    chain = None
    for entry in reversed(kept):
        chain = types.TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = chain


_Function = TypeVar("_Function", bound=Callable)


def entry(function: _Function) -> _Function:
    """A function that users call: coded errors leave it without frames of this package."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TilewrightError as error:
            cut(error)
            raise  # which adds no frame
        except TypeError as error:
            if error.__traceback__.tb_next is not None and _fits(function, args, kwargs):
                raise
            reason = str(error)
        refuse_call(function, reason)

    return called


def _fits(function, args, kwargs):
    """Whether a call has the arguments that the function takes, also where others that take any arguments hand them on to it."""
    import inspect

    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def refuse_call(function, reason):
    """The error of a call that Python could not make: its place, and what the function takes, by the name that users know."""
    import inspect

    from .elsewhere import nearest
    from .trace import fail

    parameters = inspect.signature(function).parameters
    unknown = re.search(r"unexpected keyword argument '(\w+)'", reason)
    near = nearest(unknown[1], parameters) if unknown else ""
    where = function.__qualname__.rpartition("<locals>.")[2].rpartition(".")[0]
    reason = re.sub(r"^[\w.<>]+\(\)", f"{where}{'.' if where else ''}{function.__name__}()", reason)
    heads = ", ".join(str(p.replace(annotation=p.empty)) for n, p in parameters.items() if n != "self")
    try:
        fail("OperandKind", reason, f"the nearest it has: {near}" if near else f"it takes {function.__name__}({heads})", also=TypeError)
    except TilewrightError as error:
        cut(error)
        raise


# ---- colors

_RED, _BLUE, _GREEN, _BOLD, _PLAIN = "\033[1;31m", "\033[34m", "\033[32m", "\033[1m", "\033[0m"
_COLORS = [
    (re.compile(r"^(error TW\d{4} \w+:)", re.MULTILINE), _RED),
    (re.compile(r"^(  --> .*)$", re.MULTILINE), _BLUE),
    (re.compile(r"^ {8}\| *(\^)$", re.MULTILINE), _RED),
    (re.compile(r"^(help:)", re.MULTILINE), _GREEN),
    (re.compile(r"^(note:)", re.MULTILINE), _BOLD),
]


def colored(text):
    """A message with colors of a terminal."""
    for pattern, color in _COLORS:
        text = pattern.sub(lambda m: m[0].replace(m[1], f"{color}{m[1]}{_PLAIN}"), text)
    return text


def has_colors(stream):
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and getattr(stream, "isatty", lambda: False)()


def install():
    """Coded errors that nobody catches are shown as cut() leaves them, in notebooks too. Whoever has a hook of their own keeps it."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((TilewrightError,), _show_in_cell)


def _cut_all(error):
    """cut() of an error that is shown, and of those that it came from: one that has no line of the user's is left out."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _is_cut(error):
            cut(error)
            for link in ("__cause__", "__context__"):
                came_from = getattr(error, link)
                if came_from is not None and all(is_ours(c) or is_of_python(c) for c in _codes(came_from)):
                    setattr(error, link, None)
        error = error.__cause__ or error.__context__


def _codes(error):
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame.f_code
        entry = entry.tb_next


def _show_in_cell(shell, kind, error, trace, tb_offset=None):
    _cut_all(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)


def _show(kind, error, trace):
    _cut_all(error)
    if not isinstance(error, TilewrightError):
        return sys.__excepthook__(kind, error, trace)
    import traceback

    text, said = "".join(traceback.format_exception(kind, error, error.__traceback__)), str(error)
    sys.stderr.write(text.replace(said, colored(said)) if has_colors(sys.stderr) else text)
