"""tilewright explain, plot, check: of the kernels in a file."""
import argparse
import ast
import importlib.util
import json
import os
import re
import shlex
import signal
import sys
import tokenize
import traceback
import types

from .. import _native, call_values, outputs
from ..elsewhere import nearest
from ..errors import TilewrightError
from ..jitted import Jit
from ..kernel import Kernel, compile as compile_program
from ..program import PrimFunc
from ..trace import fail

_IMPORTS_TILELANG = re.compile(r"^\s*(?:import|from)\s+(?:tilelang|tvm)\b", re.MULTILINE)


def _parser(word, what, **named):
    parse = argparse.ArgumentParser(prog=f"tilewright {word}", description=what, **named)
    parse.add_argument("kernel", metavar="FILE.py:NAME", help="a function under @jit or @T.prim_func, or a kernel; alone in its file, it needs no NAME")
    parse.add_argument("values", nargs="*", default=[], metavar="NAME=VALUE", help="arguments, names of T.const, and symbols of T.dynamic: M=4096 dtype=float16")
    return parse


def explain(argv):
    parse = _parser("explain", "What becomes of each tile operation on the CPU or on a GPU, and what it costs.")
    parse.add_argument("--arch", default="", metavar="sm_90a", help="on this GPU, or cpu, instead of where it would run here")
    parse.add_argument("--json", action="store_true", help="an object; errors too")
    options = parse.parse_intermixed_args(argv)
    try:
        kernel, symbols = _made(_one(options.kernel), _values(parse, options.values), "interpreter" if options.arch else None)
        options.arch = options.arch if options.arch != "cpu" else ""  # where the interpreter is explained too
        _refuse_unknown(parse, kernel, symbols)
        text = kernel.explain(options.arch, as_json=options.json, **symbols)
    except TilewrightError as error:
        if not options.json:
            raise
        print(json.dumps({"error": _facts(error)}))
        return 1
    print(json.dumps(text, indent=2) if options.json else str(text).rstrip("\n"))
    return 0


def plot(argv):
    parse = _parser("plot", "Pictures (SVG) of where the elements of a kernel's tiles are, as the compiler for a GPU lays them out.")
    parse.add_argument("--arch", default="", metavar="sm_90a", help="of this GPU (sm_90a, or the one that the kernel names)")
    parse.add_argument("--buffer", metavar="NAME", help="only this tile")
    parse.add_argument("--out", default=".", metavar="FOLDER", help="where KERNEL.TILE.svg are written (.)")
    options = parse.parse_intermixed_args(argv)
    if options.arch and not options.arch.startswith("sm_"):
        parse.error(f"--arch '{options.arch}' is no GPU: tiles have layouts on GPUs, sm_90a and the like")
    from ..pictures import plot as picture, tiles_of

    kernel, symbols = _made(_one(options.kernel), _values(parse, options.values), "interpreter")
    _refuse_unknown(parse, kernel, symbols)
    outputs.make_folder(options.out)
    names = [options.buffer] if options.buffer else tiles_of(kernel, options.arch)
    if not names:
        print(f"{kernel.name}: none of its tiles has a layout on {options.arch or 'sm_90a'}; those in registers and shared memory have", file=sys.stderr)
    for name in names:
        path = os.path.join(options.out, f"{kernel.name}.{name}.svg")
        print(f"{path}: {picture(kernel, name, options.arch, path).title}")
    return 0


def check(argv):
    parse = _parser("check", "Runs kernels on random tensors on every engine that takes them (the interpreter, which checks accesses; the CPU; the simulator, "
                    "which finds races; a GPU), and compares what they give. Without NAME: all of the file. Choose small sizes.")  # fmt: skip
    parse.add_argument("--seed", type=int, default=1, help="of the random tensors (1)")
    parse.add_argument("--json", action="store_true", help="an object a line")
    options = parse.parse_intermixed_args(argv)
    values, (file, name) = _values(parse, options.values), _parts(options.kernel)
    chosen = [_one(options.kernel)] if name else _all(file)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an engine that runs hears no other
    status, unknown = 0, set(values)
    for found in chosen:
        try:
            kernel, others = _made(found, values, "interpreter")
            used = {n: v for n, v in others.items() if n in _names_in(kernel)}
            unknown -= {*values}.difference(others) | set(used)
            print(kernel.program.check(call_values.numbers(kernel.program, _numbers(parse, used)), options.seed, options.json), flush=True)
        except TilewrightError as error:
            status = 1
            print(json.dumps({"program": _name_of(found), "error": _facts(error)}) if options.json else f"{_name_of(found)}: {error}", flush=True)
    if unknown and not status:
        parse.error(f"no kernel takes {', '.join(sorted(unknown))}")
    return status


def _facts(error):
    return {key: getattr(error, key) for key in ("code", "area", "message", "help", "file", "line", "column")}


# ---- which kernel


def _parts(text):
    """FILE.py and NAME, which may be left out."""
    file, colon, name = text.rpartition(":")
    return (file, name) if colon and not name.endswith(".py") else (text, "")


def _values(parse, given):
    """{name: value}: values are Python's literals, and words are text."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            parse.error(f"'{text}' is no NAME=VALUE")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    return values


def _numbers(parse, values):
    for name, value in values.items():
        if not isinstance(value, (bool, int, float)):
            parse.error(f"{name} is a number, not '{value}'")
    return values


def _parsed(file):
    """The program of a .tile text."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        if "\0" in text:
            raise ValueError("it holds bytes that are no text")
    except OSError as error:
        fail("FileNotReadable", f"{file}: {error.strerror}", "give a file that can be read", (file, 0, 0))
    except ValueError as error:
        fail("FileNotReadable", f"{file}: no text in UTF-8: {error}", "give the text of a program, as tilewright.parse() takes it", (file, 0, 0))
    return _native.parse(text, file)


def _kernel_of_text(file):
    program = _parsed(file)
    kernel = Kernel(program, "auto", "", [])
    kernel.program, kernel.outputs = program, []
    return kernel


def _source(file):
    """The text of a Python file, which may say its encoding."""
    if not os.path.isfile(file):
        what = f"'{file}' is a folder" if os.path.isdir(file) else f"there is no file '{file}'"
        fail("FileNotReadable", what, "FILE.py:NAME is a path and the name of a kernel in it", (file, 0, 0))
    if not file.endswith(".py"):
        fail("FileNotReadable", f"'{file}' is no module of Python", "give FILE.py:NAME, or the text of a program, FILE.tile", (file, 0, 0))
    try:
        with tokenize.open(file) as opened:
            return opened.read()
    except OSError as error:
        fail("FileNotReadable", f"{file}: {error.strerror}", "give a file that can be read", (file, 0, 0))
    except (UnicodeDecodeError, SyntaxError) as error:
        fail("FileNotReadable", f"{file}: {error}", "write it in UTF-8, or say its encoding in the first line", (file, 0, 0))


def _loaded(file):
    """The module of a file; its part for `if __name__ == "__main__"` does not run."""
    source, path = _source(file), os.path.abspath(file)
    if _IMPORTS_TILELANG.search(source):
        from ..as_tilelang import install

        install()
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem in sys.stdlib_module_names and stem not in sys.modules:
        importlib.import_module(stem)  # before the file's folder is searched: what imports it means Python's
    sys.path.insert(0, os.path.dirname(path))
    name = f"file {path}"  # a module of its own, whatever others are called
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except TilewrightError:
        raise
    except (Exception, SystemExit) as error:
        _refuse_import(file, path, error)
    return module


def _refuse_import(file, path, error):
    """Says what the file's own lines raised when it was imported."""
    if isinstance(error, SyntaxError) and error.filename:
        at, said = (file if error.filename == path else error.filename, error.lineno or 1, error.offset or 0), f"{type(error).__name__}: {error.msg}"
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        at, said = (file, lines[-1] if lines else 1, 0), f"{type(error).__name__}: {error}".removesuffix(": ")
    try:
        fail("FileNotReadable", f"importing '{file}' ends in {said}", f"python {shlex.quote(file)} shows how it comes to that", at)
    except TilewrightError as refused:
        raise refused from error


def _unwrapped(found):
    """The jitted function under an autotuner."""
    while not isinstance(found, (Jit, PrimFunc, Kernel)) and isinstance(getattr(found, "function", None), Jit):
        found = found.function
    return found


def _file_of(found):
    if isinstance(found, Jit):
        return found.func.__code__.co_filename
    return (found.prim_func if isinstance(found, Kernel) else found).place[0]


def _name_of(found):
    return found.func.__name__ if isinstance(found, Jit) else found.name


def _kernels_of(module):
    """{name: kernel} of what stands in the module's own file."""
    found = {name: _unwrapped(value) for name, value in vars(module).items() if not isinstance(value, types.ModuleType)}
    return {name: value for name, value in found.items() if isinstance(value, (Jit, PrimFunc, Kernel)) and _file_of(value) == module.__file__}


def _all(file):
    if file.endswith(".tile"):
        return [_kernel_of_text(file)]
    found = _kernels_of(_loaded(file))
    if not found:
        fail("BadOption", f"'{file}' has no kernel", "a function under @tilewright.jit or @T.prim_func at the top of the file", (file, 0, 0))
    return list({id(value): value for value in found.values()}.values())


def _one(text):
    """The kernel that FILE.py:NAME means."""
    file, name = _parts(text)
    if not name:
        found = _all(file)
        if len(found) > 1:
            fail("BadOption", f"'{file}' has {len(found)} kernels", "name one: " + ", ".join(f"{file}:{_name_of(f)}" for f in found), (file, 0, 0))
        return found[0]
    module = _loaded(file)
    if not hasattr(module, name):
        known = _kernels_of(module)
        near = nearest(name, known, cutoff=0.6, count=1)
        fail("BadOption", f"there is no '{name}' in '{file}'", f"did you mean {near}?" if near else f"it has {', '.join(known) or 'no kernel'}", (file, 0, 0))
    found = _unwrapped(getattr(module, name))
    if not isinstance(found, (Jit, PrimFunc, Kernel)):
        fail("OperandKind", f"'{name}' in '{file}' is of type {type(found).__name__}, and no kernel",
             "it is to be a function under @tilewright.jit or @T.prim_func, or a kernel", (file, 0, 0))  # fmt: skip
    return found


def _made(found, values, engine=None):
    """(its kernel for the values that choose one, the other values: of symbols). engine: where the kernel is only asked, that
    it be compiled by nobody."""
    if isinstance(found, Kernel):
        return found, values
    if isinstance(found, PrimFunc):
        return _at_home(found, lambda: compile_program(found, engine=engine)), values
    if engine:
        found = Jit(found.func, found.out_idx, found.target, found.pass_configs, engine, found.compile_flags)
    taken = _at_home(found, lambda: found.takes(values))
    return _at_home(found, lambda: found.compile(**taken)), {name: value for name, value in values.items() if name not in taken}


def _at_home(found, call):
    """The result of a call that stands where the kernel does: there is no line of the user's that makes it."""
    code = found.func.__code__ if isinstance(found, Jit) else None
    file, line = (code.co_filename, code.co_firstlineno) if code else found.place[:2]
    return eval(compile("\n" * (line - 1) + "call()", file, "eval"), {"call": call})


def _refuse_unknown(parse, kernel, symbols):
    known = _names_in(kernel)
    for name in symbols:
        if name not in known:
            parse.error(f"'{kernel.name}' takes no {name}" + (f"; it has {', '.join(sorted(known))}" if known else ""))
    _numbers(parse, symbols)


def _names_in(kernel):
    """Those of the symbols and numbers that a program takes."""
    return set(call_values.types_of(kernel.program))
