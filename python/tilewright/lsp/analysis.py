"""What one file says, asked in a process of its own (forks.py): it is imported, as the editor has its text, and what that records is
looked at. Request and answer are a line each of a connection that the file itself does not get; what it prints is for nobody."""

import ast
import functools
import hashlib
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import math
import os
import re
import signal
import sys
import threading
import traceback

from ..dtypes import dtype
from .fixes import Fixes
from .places import characters_of_bytes, lines_of

_PARAMETER = re.compile(r"^ *param (\w+): (\w+)(?:\[(.*?)\])?(?: strides=\[(.*?)\])?$", re.MULTILINE)
_VALUES = re.compile(r"^\s*#\s*tilewright:\s*(.*)$")
_UNKNOWN = {"TW1020", "TW1106", "TW1109"}  # of functions whose dimensions nobody has given: another call may give them
_OF_OPERATION = ("line", "text", "executions", "becomes", "rejected")
ERROR, WARNING = 1, 2


class _Text(importlib.machinery.SourceFileLoader):
    """A module whose text the editor has; nothing is cached."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname):
        return compile(self.text, self.path, "exec", dont_inherit=True)


class _Overlay:
    """Finds modules whose files are open in the editor, before those on the disk."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path=None, target=None):
        for folder in sys.path if path is None else path:
            for rest in ("/__init__.py", ".py"):
                file = os.path.join(os.path.abspath(folder), name.rpartition(".")[2]) + rest
                if file in self.texts:
                    return importlib.util.spec_from_file_location(name, file, loader=_Text(name, file, self.texts[file]))
                if os.path.exists(file):
                    return None
        return None


class _Late(BaseException):
    """What a file does takes too long. No file catches it by `except Exception`."""


class _Watch:
    """Stops what takes longer than a limit: Python code where it is; what does not come back to Python with the whole process."""

    def __init__(self, limit, give_up):
        self.limit, self.give_up, self.armed = limit, give_up, False
        signal.signal(signal.SIGALRM, self.ring)

    def ring(self, *ignored):
        if self.armed:
            self.armed = False
            raise _Late

    def __enter__(self):
        self.last = threading.Timer(2 * self.limit, self.give_up)
        self.last.daemon = True
        self.last.start()
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, self.limit)

    def __exit__(self, *ignored):
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.last.cancel()


class Analysis:
    def __init__(self, path, texts, arch, limit, known):
        self.path, self.texts, self.arch, self.limit, self.known = path, texts, arch, limit, known
        self.text = texts[path]
        self.lines = lines_of(self.text)
        self.mistakes, self.seen, self.facts, self.complete = [], set(), [], False
        self.unexplained = []  # (kernel, its facts, their key): of those that were recorded
        try:
            self.tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            self.tree = ast.Module([], [])  # importing it says what is wrong
        self.fixes = Fixes(self.tree, self.lines)

    # ---- mistakes

    def add(self, message, line=1, column=0, severity=ERROR, error=None):
        """A mistake at a byte of a line, counted from 1; on the whole line where that is 0."""
        if (line, message) in self.seen:
            return
        self.seen.add((line, message))
        line = min(max(line, 1), len(self.lines))
        start, end = self.span(line, column)
        made = {"message": message, "line": line, "start": start, "end": end, "severity": severity, "code": "", "fixes": []}
        if error is not None:
            made.update(code=error.code, area=error.area, help=error.help, fixes=self.fixes.of(error, line, start))
        self.mistakes.append(made)

    def span(self, line, column):
        """The characters of a line from a byte on: of the longest expression that begins there."""
        text = self.lines[line - 1].rstrip()
        if column <= 0:
            return len(text) - len(text.lstrip()), len(text)
        ends = [n.end_col_offset if n.end_lineno == line else 1 << 30 for n in ast.walk(self.tree)
                if isinstance(n, ast.expr) and (n.lineno, n.col_offset) == (line, column - 1)]  # fmt: skip
        return characters_of_bytes(text, column - 1), characters_of_bytes(text, max(ends, default=1 << 30))

    def take(self, error, severity=ERROR, before=""):
        """A coded error: at its place, or where this file leads to it."""
        line, column, message = error.line, error.column, before + error.message
        if error.file != self.path:
            message, line, column = f"{error.file}:{error.line}: {message}", self.line_in(error) or 1, 0
        self.add(message, line, column, severity, error)

    def take_other(self, error):
        """One of Python's own."""
        if isinstance(error, SyntaxError) and error.filename == self.path:
            line = min(max(error.lineno or 1, 1), len(self.lines))
            column = len(self.lines[line - 1][: max((error.offset or 1) - 1, 0)].encode(errors="replace")) + 1
            return self.add(error.msg, line, column if error.offset else 0)
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self.add(text, self.line_in(error) or 1)

    def line_in(self, error):
        """The line of this file that an exception came through last."""
        line, entry = 0, error.__traceback__
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == self.path:
                line = entry.tb_lineno
            entry = entry.tb_next
        return line

    def late(self, error):
        self.add(f"the analysis was stopped here after {self.limit:g} s", self.line_in(error) or 1, 0, WARNING)

    # ---- the file

    def load(self, watch):
        """The module, or what is there of one that did not come to its end."""
        from .. import program
        from ..command.kernels import _IMPORTS_TILELANG
        from ..errors import TilewrightError

        program.take_mistake = self.take
        for file, text in self.texts.items():
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        sys.meta_path.insert(0, _Overlay(self.texts))
        sys.path.insert(0, os.path.dirname(self.path))
        sys.argv = [self.path]
        if _IMPORTS_TILELANG.search(self.text):
            from ..as_tilelang import install

            install()
        name = os.path.splitext(os.path.basename(self.path))[0]
        name = name if name.isidentifier() and name not in sys.modules else "document"
        loader = _Text(name, self.path, self.text)
        module = sys.modules[name] = importlib.util.module_from_spec(
            importlib.machinery.ModuleSpec(name, loader, origin=self.path)
        )
        module.__file__ = self.path  # also where it is no file: a text that was never saved
        try:
            with watch:
                loader.exec_module(module)
            self.complete = True
        except TilewrightError as error:
            self.take(error)
        except _Late as error:
            self.late(error)
        except SystemExit as end:
            self.complete = end.code in (None, 0)
            if not self.complete:
                self.take_other(end)
        except BaseException as error:  # the file is not ours: KeyboardInterrupt, and classes of its own, too
            self.take_other(error)
        return module

    # ---- its kernels

    def look(self, module, watch, tell=lambda: None):
        """Its kernels; tell() is called when all mistakes of recording are known, before it is asked what becomes of them."""
        from ..command.kernels import _kernels_of
        from ..program import Refused

        found = {id(v): v for v in _kernels_of(module).values() if not isinstance(v, Refused)}
        try:
            with watch:
                for kernel in found.values():
                    self.look_at(kernel)
                for function in (n for n in self.tree.body if isinstance(n, ast.FunctionDef)):
                    self.look_at_factory(function, getattr(module, function.name, None))
        except _Late as error:
            self.late(error)
        tell()
        try:
            with watch:
                for recorded in self.unexplained:
                    self.explain(*recorded)
        except _Late as error:
            self.late(error)

    def look_at(self, found):
        from ..command.kernels import _made
        from ..errors import TilewrightError
        from ..jitted import Jit

        try:
            if not isinstance(found, Jit):
                return self.facts_of(_made(found, {}, "interpreter")[0])
            for kernel in found.kernels.values():
                self.facts_of(kernel)
            values = self.values_of(found.func.__code__.co_firstlineno)
            if values is not None or (not found.kernels and found.mode == "lazy" and _has_defaults(found)):
                self.facts_of(_made(found, values or {}, "interpreter")[0])
            elif not found.kernels and found.mode == "eager":
                self.look_at_any_shape(found)
        except TilewrightError as error:
            self.take(error)
        except Exception as error:  # of the lines that are recorded
            self.take_other(error)

    def look_at_factory(self, node, function):
        """A plain function that returns a program, where a comment gives its arguments."""
        from ..command.kernels import _made
        from ..errors import TilewrightError
        from ..kernel import Kernel
        from ..program import PrimFunc

        values = self.values_of(_first(node)) if inspect.isfunction(function) else None
        if values is None:
            return
        try:
            made = function(**values)
            if isinstance(made, (PrimFunc, Kernel)):
                self.facts_of(_made(made, {}, "interpreter")[0])
        except TilewrightError as error:
            self.take(error)
        except Exception as error:  # of the lines that are recorded
            self.take_other(error)

    def look_at_any_shape(self, found):
        """A function whose dimensions the first call gives: each is a symbol here. What must know one may be right."""
        from ..errors import TilewrightError
        from ..kernel import compile as compile_program
        from ..program import discover, trace_eager
        from ..rewrite import rewritten
        from ..values import dynamic

        rewritten(found.func)
        fixed = {
            n: p.default
            for n, p in found.signature.parameters.items()
            if n not in found.tensor_names and p.default is not p.empty
        }
        if any(n not in fixed and n not in found.tensor_names for n in found.order):
            return  # compile-time arguments that only a call gives
        try:
            discovered = found._traced(lambda: discover(found.func, found.order, fixed, found.annotations))
            symbols = {name: dynamic(name) for name in discovered.consts}
            program = found._traced(lambda: trace_eager(found.func, found.order, fixed, found.annotations, symbols))
            self.facts_of(compile_program(program, engine="interpreter"))
        except TilewrightError as error:
            if error.code not in _UNKNOWN:
                self.take(error)
        except Exception:
            pass  # Python's own code with a symbol for a number: another call may give it one

    def values_of(self, line):
        """{name: value} of a comment right above a function, or None."""
        number = line - 2
        while number >= 0 and self.lines[number].lstrip().startswith("#"):
            said = _VALUES.match(self.lines[number])
            if said:
                return self.parsed(said[1], number + 1)
            number -= 1
        return None

    def parsed(self, text, line):
        values = {}
        for part in text.replace(",", " ").split():
            name, equals, value = part.partition("=")
            if not equals or not name.isidentifier():
                self.add(f"'{part}' is no NAME=VALUE", line, 0, WARNING)
                continue
            try:
                values[name] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                values[name] = value
        return values

    def facts_of(self, kernel):
        """What is known of a kernel. Where neither its program nor its lines changed, what an analysis before found."""
        file, first = kernel.prim_func.place[:2]
        if file != self.path:
            return
        last = self.ends.get(first, first)
        said = "\n".join([self.arch, kernel.program.text, *self.lines[first - 1 : last]])
        key = hashlib.sha256(said.encode(errors="replace")).hexdigest()
        if self.known.get(key, {}).get("first") == first:
            return self.facts.append(self.known[key])
        facts = {"name": kernel.name, "first": first, "last": last, "arch": self.arch, "operations": [], "layouts": [],
                 "buffers": _parameters(kernel), "key": ""}  # fmt: skip
        self.facts.append(facts)
        self.unexplained.append((kernel, facts, key))

    def explain(self, kernel, facts, key):
        from ..errors import TilewrightError

        first, last = facts["first"], facts["last"]
        try:
            said = json.loads(kernel.program.explain("" if self.arch == "cpu" else self.arch, True, {}))
        except TilewrightError as error:
            return self.take(error, WARNING, f"on {self.arch}: ")
        for launch in said["launches"]:
            facts["buffers"] += [{k: b[k] for k in ("name", "space", "dtype", "shape", "bytes")} for b in launch["buffers"]]
            facts["layouts"] += launch.get("layouts", [])
            facts["operations"] += [
                {**{k: o.get(k) or [] for k in _OF_OPERATION}, "end": self.end_of(o["line"])}
                for o in launch["operations"] if first <= o["line"] <= last]  # fmt: skip
        facts["key"] = key

    def end_of(self, line):
        """The last line of the statement that begins at a line; of a loop the line itself."""
        return self.ends.get(line, line)

    @functools.cached_property
    def ends(self):
        """{first line: last line} of statements without a body, and of functions {of their first decorator: last line}."""
        ends = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                ends[_first(node)] = node.end_lineno
            elif isinstance(node, ast.stmt) and not hasattr(node, "body"):
                ends[node.lineno] = max(node.end_lineno, ends.get(node.lineno, 0))
        return ends

    # ---- what needs no recording

    def words(self, module):
        """Words that the language does not have, in functions that nobody has recorded as well."""
        from .. import language
        from ..errors import TilewrightError

        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and getattr(module, node.value.id, None) is language
            ):
                try:
                    getattr(language, node.attr)
                except TilewrightError as error:
                    error.file, error.line, error.column = self.path, node.lineno, node.col_offset + 1
                    self.take(error)
                except AttributeError:
                    pass  # __name__ and the like

    def answer(self):
        files = {getattr(m, "__file__", None) for m in list(sys.modules.values())}
        return {
            "mistakes": self.mistakes,
            "facts": self.facts,
            "files": sorted(f for f in files if f in self.texts),
            "complete": self.complete,
        }


def _first(node):
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _has_defaults(found):
    return all(p.default is not p.empty for p in found.signature.parameters.values())


def _parameters(kernel):
    """Tensors and numbers that a program takes, with the extents that its text says."""
    found = []
    for name, of, shape, strides in _PARAMETER.findall(kernel.program.text):
        extents = shape.split(", ") if shape else []
        known = all(e.isdigit() for e in extents) and bool(extents) and not strides
        size = -(-math.prod(map(int, extents)) * dtype(of).bits // 8) if known else None
        found.append(
            {
                "name": name,
                "space": "global" if extents else "a number",
                "dtype": of,
                "shape": extents,
                "bytes": size,
                "strides": strides,
            }
        )
    return found


def answer(connection):
    """Answers one request, a line of a connection, in a process that is there for nothing else: by a line with the mistakes that are
    known early, and one with all that is known."""
    with connection.makefile("r", encoding="utf-8") as lines:
        request = json.loads(lines.readline())
    folder = os.path.dirname(request["path"])
    if os.path.isdir(folder):
        os.chdir(folder)
    out = connection.makefile("w", encoding="utf-8")
    analysis, lock = Analysis(**request), threading.Lock()

    def say(**more):
        out.write(json.dumps({**analysis.answer(), **more}) + "\n")
        out.flush()

    def tell():
        with lock:
            say(early=True)

    def end():
        with lock:
            say()
            os._exit(0)  # threads of the file do not keep it

    def give_up():
        frame = sys._current_frames().get(threading.main_thread().ident)
        while frame is not None and frame.f_code.co_filename != analysis.path:
            frame = frame.f_back
        analysis.add(
            f"the analysis was stopped here after {2 * analysis.limit:g} s", frame.f_lineno if frame else 1, 0, WARNING
        )
        end()

    watch = _Watch(analysis.limit, give_up)
    try:
        module = analysis.load(watch)
        analysis.words(module)
        analysis.look(module, watch, tell)
    except Exception:  # ours: an editor has nobody else who says so
        analysis.add(f"a mistake in the language server: {traceback.format_exc()}", severity=WARNING)
    end()
