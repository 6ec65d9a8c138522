"""What one file says, asked in a process of its own: it is imported, as the editor has its text, and what that records is looked
at. The request comes on standard input; the answer goes to the descriptor that the command line names."""
import ast
import importlib.machinery
import importlib.util
import json
import linecache
import os
import re
import sys
import threading

_VALUES = re.compile(r"^\s*#\s*tilewright:\s*(.*)$")
_NEAR = re.compile(r"(?:did you mean|the nearest(?: it has)?:?) ([\w., ]+?)\??(?:$|[;)])")
_WRONG = re.compile(r"no T\.(\w+)|keyword argument '(\w+)'|'(\w+)'")
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


class Analysis:
    def __init__(self, path, texts, arch):
        self.path, self.texts, self.arch = path, texts, arch
        self.text = texts[path]
        self.mistakes, self.seen, self.facts = [], set(), []

    # ---- mistakes

    def add(self, message, line=1, column=0, severity=ERROR, **more):
        key = line, message
        if key not in self.seen:
            self.seen.add(key)
            self.mistakes.append({"message": message, "line": line, "column": column, "severity": severity, **more})

    def take(self, error, severity=ERROR, before=""):
        """A coded error: at its place, or where this file leads to it."""
        line, column = error.line, error.column
        message = f"{before}{error.message}"
        if error.file != self.path:
            message, line, column = f"{error.file}:{error.line}: {message}", self.line_in(error) or 1, 0
        near = _NEAR.search(error.help or "")
        wrong = _WRONG.search(error.message)
        fixes = [n.strip().removeprefix("T.") for n in near[1].split(",")] if near else []
        self.add(message, line, column, severity, code=error.code, area=error.area, help=error.help,
                 wrong=next(filter(None, wrong.groups()), "") if wrong else "", fixes=fixes)  # fmt: skip

    def line_in(self, error):
        """The line of this file that an exception came through last."""
        line, entry = 0, error.__traceback__
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == self.path:
                line = entry.tb_lineno
            entry = entry.tb_next
        return line

    # ---- the file

    def load(self):
        """The module, or what is there of one that raised."""
        from .. import program
        from ..command.kernels import _IMPORTS_TILELANG
        from ..errors import TilewrightError

        program.take_mistake = self.take
        for file, text in self.texts.items():
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        sys.meta_path.insert(0, _Overlay(self.texts))
        sys.path.insert(0, os.path.dirname(self.path))
        if _IMPORTS_TILELANG.search(self.text):
            from ..as_tilelang import install

            install()
        name = os.path.splitext(os.path.basename(self.path))[0]
        name = name if name.isidentifier() and name not in sys.modules else "document"
        spec = importlib.util.spec_from_file_location(name, self.path, loader=_Text(name, self.path, self.text))
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except TilewrightError as error:
            self.take(error)
        except SyntaxError as error:
            here = error.filename == self.path
            before = "" if here else f"{error.filename}:{error.lineno}: "
            self.add(f"{before}{error.msg}", (error.lineno if here else self.line_in(error)) or 1, 0)
        except BaseException as error:  # SystemExit too: the file is not ours
            self.add(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, self.line_in(error) or 1)
        return module

    # ---- its kernels

    def look(self, module):
        from ..command.kernels import _kernels_of, _made
        from ..errors import TilewrightError
        from ..jitted import Jit
        from ..program import Refused
        from ..rewrite import rewritten

        found = {id(v): v for v in _kernels_of(module).values() if not isinstance(v, Refused)}
        for kernel in found.values():
            try:
                if not isinstance(kernel, Jit):
                    self.facts_of(_made(kernel, {}, "interpreter")[0])
                    continue
                for made in kernel.kernels.values():
                    self.facts_of(made)
                values = self.values_of(kernel.func.__code__.co_firstlineno)
                if values is not None:
                    self.facts_of(_made(kernel, values, "interpreter")[0])
                elif kernel.mode == "eager":
                    rewritten(kernel.func)
            except TilewrightError as error:
                self.take(error)
            except Exception as error:  # of the lines that are recorded
                self.add(f"{type(error).__name__}: {error}", self.line_in(error) or 1)

    def values_of(self, line):
        """{name: value} of a comment right above a function, or None."""
        lines, number = self.text.split("\n"), line - 2
        while number >= 0 and lines[number].lstrip().startswith("#"):
            said = _VALUES.match(lines[number])
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
        from ..errors import TilewrightError

        file, first = kernel.prim_func.place[:2]
        if file != self.path:
            return
        last = next((n.end_lineno for n in self.functions() if _first(n) == first), first)
        facts = {"name": kernel.name, "first": first, "last": last, "arch": self.arch, "operations": [], "layouts": [],
                 "buffers": [_parameter(p) for p in kernel.prim_func.params]}  # fmt: skip
        self.facts.append(facts)
        try:
            said = json.loads(kernel.program.explain("" if self.arch == "cpu" else self.arch, True, {}))
        except TilewrightError as error:
            self.take(error, WARNING, f"on {self.arch}: ")
            return
        for launch in said["launches"]:
            facts["buffers"] += [{k: b[k] for k in ("name", "space", "dtype", "shape", "bytes")} for b in launch["buffers"]]
            facts["layouts"] += launch.get("layouts", [])
            facts["operations"] += [{k: o.get(k) or [] for k in ("line", "text", "executions", "becomes", "rejected")}
                                    for o in launch["operations"] if first <= o["line"] <= last]  # fmt: skip

    def functions(self):
        return [n for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.FunctionDef)]

    # ---- what needs no recording

    def words(self, module):
        """Words that the language does not have, in functions that nobody has recorded as well."""
        from .. import language
        from ..errors import TilewrightError

        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and getattr(module, node.value.id, None) is language:
                try:
                    getattr(language, node.attr)
                except TilewrightError as error:
                    error.file, error.line, error.column = self.path, node.lineno, node.col_offset + 1
                    self.take(error)
                except AttributeError:
                    pass  # __name__ and the like

    def answer(self):
        files = {getattr(m, "__file__", None) for m in list(sys.modules.values())}
        return {"mistakes": self.mistakes, "facts": self.facts, "files": sorted(f for f in files if f in self.texts)}


def _first(node):
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _parameter(p):
    extents = None if p.shape is None else [str(e) for e in p.shape]
    bits = p.dtype.bits
    known = extents is not None and all(e.isdigit() for e in extents)
    count = 1
    for e in extents if known else ():
        count *= int(e)
    return {"name": p.name, "space": "a number" if extents is None else "global", "dtype": str(p.dtype), "shape": extents or [],
            "bytes": -(-count * bits // 8) if known else None}  # fmt: skip


def _stop_late(analysis, limit, send):
    """A file that takes too long is stopped, and where it was is said."""
    main = threading.main_thread().ident

    def stop():
        frame, line = sys._current_frames().get(main), 1
        while frame is not None:
            if frame.f_code.co_filename == analysis.path:
                line = frame.f_lineno
                break
            frame = frame.f_back
        analysis.add(f"the analysis was stopped here after {limit:g} s", line, 0, WARNING)
        send(analysis.answer())
        os._exit(0)

    timer = threading.Timer(limit, stop)
    timer.daemon = True
    timer.start()


def main(descriptor):
    request = json.load(sys.stdin)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what the file prints is for nobody
        os.dup2(nothing, standard)
    analysis, lock = Analysis(request["path"], request["texts"], request["arch"]), threading.Lock()
    sent = []

    def send(answer):
        with lock:
            if not sent:
                sent.append(True)
                with os.fdopen(descriptor, "w") as out:
                    json.dump(answer, out)

    _stop_late(analysis, request["limit"], send)
    module = analysis.load()
    if sys.modules.get(module.__name__) is not None:
        analysis.words(module)
        analysis.look(module)
    send(analysis.answer())
    os._exit(0)  # threads of the file do not keep it
