"""A program as a Python function of the package, and the program that tracing it gives.

What Python says otherwise than the text form is left alone: None then. An index that is negative whatever the extents of grids and
loops are counts from the end there, and roles, reducers, shuffles and votes are the text form's own here. Names are bound again
(python_names.py), and indices are written from the end, where that is the same program."""
import linecache
import math
import pathlib
import random
import sys

import numpy as np
from nodes import children, expressions_of, names_read, walk
from python_names import PythonNames
from scalars import INT32, binary

_BUILT = pathlib.Path(__file__).resolve().parents[2] / "build/release/python"
_CALLS = {"round": "T.round({}, 'ties-away-from-zero')", "neg": "-({})", "not": "not ({})", "~": "~({})"}
_POLICY = {"full_row": "FullRow", "full_col": "FullCol"}


class Unsaid(Exception):
    """The Python language has no word for it, or another meaning."""


def _constant(t, value):
    if t.is_bool:
        return "T.cast(1, 'int32') == 1" if value else "T.cast(1, 'int32') == 0"
    if t.name == "int32":
        if not -(2**31) < value < 2**31:
            raise Unsaid
        return f"({int(value)})"
    if t.is_int:
        if t.name == "uint64" and value >= 2**63:
            raise Unsaid
        return f"T.cast({int(value)}, '{t.name}')"
    if not float("-inf") < float(value) < float("inf"):
        raise Unsaid
    return f"T.cast({float(value)!r}, '{t.name}')"


def _number(e):
    """The int32 that an expression of constants is: Python's own numbers have no last one."""
    if e[0] == "const" and e[1] is INT32:
        return int(e[2])
    if e[0] == "var":
        return _numbers.get(e[2])
    if e[0] == "un" and e[1] is INT32 and e[2] in ("neg", "~", "abs"):
        a = _number(e[3])
        return None if a is None else _wrapped({"neg": -a, "~": ~a, "abs": abs(a)}[e[2]])
    if e[0] != "bin" or e[1] is not INT32 or e[2] == "mulhi":
        return None
    a, b = _number(e[3]), _number(e[4])
    if a is None or b is None:
        return None
    if e[2] not in ("+", "-", "*", "//", "%", "min", "max", "&", "|", "^"):
        raise Unsaid
    if e[2] in ("//", "%") and b == 0:
        raise Unsaid
    return int(binary(e[2], *(np.array([x], np.int32) for x in (a, b)), INT32)[0])


def _wrapped(n):
    return (n + 2**31) % 2**32 - 2**31


def expression(e):
    kind = e[0]
    if kind == "const":
        return _constant(e[1], e[2])
    if kind == "var":
        return _names.get(e[2], e[2])
    if kind == "load":
        return _element(e[2], e[3]) if e[2].shape else _names.get(e[2].name, e[2].name)
    if kind in ("bin", "un") and e[1] is INT32 and (number := _number(e)) is not None:
        return _constant(INT32, number)
    if kind == "bin":
        a, b, op = expression(e[3]), expression(e[4]), e[2]
        if op.startswith("ieee_"):
            word, _, to = op.rpartition("_")
            return f"T.{word}({a}, {b}, '{to}')"
        return f"T.{op}({a}, {b})" if op[0].isalpha() else f"({a} {op} {b})"
    if kind in ("cmp", "logic"):
        return f"({expression(e[2])} {e[1]} {expression(e[3])})"
    if kind == "un":
        if e[2] in _CALLS:
            return f"({_CALLS[e[2]].format(expression(e[3]))})"
        return f"T.{e[2]}({expression(e[3])})"
    if kind == "select":
        return f"T.if_then_else({', '.join(expression(x) for x in e[2:])})"
    if kind == "clamp":
        return f"T.clamp({', '.join(expression(x) for x in e[2:])})"
    if kind == "cast" and e[3:]:
        raise Unsaid
    if kind in ("cast", "bitcast"):
        return f"T.{'cast' if kind == 'cast' else 'reinterpret'}({expression(e[2])}, '{e[1].name}')"
    raise Unsaid


def _index(e, n=None):
    """An index of a dimension of n elements. Python may not take it for one from the end where it is beyond the tensor."""
    if _loose(e)[1] < 0:
        raise Unsaid
    if isinstance(n, int) and _random.random() < 0.3:
        if e[0] == "const" and 0 <= e[2] < n:
            _used.add("python: negative index")
            return f"({e[2] - n})"
        if e[0] == "bin" and e[2] == "-" and e[3] == ("const", INT32, n - 1) and e[4][0] == "var" and _loose(e[4])[0] >= 0:
            _used.add("python: negative index")
            return f"(-1 - {expression(e[4])})"
    return expression(e)


def _loose(e):
    """(least, greatest) of an index, whatever the extents of grids and loops are."""
    unknown = (-math.inf, math.inf)
    if (number := _number(e)) is not None or e[0] == "const":
        return (e[2] if number is None else number,) * 2
    if e[0] == "cast" and not e[1].is_float:
        return _loose(e[2])
    if e[0] == "var":
        return _loose(_lets[e[2]]) if e[2] in _lets else _ranges.get(e[2], unknown)
    if e[0] != "bin" or e[2] not in ("+", "-", "*", "//", "%", "min", "max"):
        return unknown
    (a, b), (c, d), op = _loose(e[3]), _loose(e[4]), e[2]
    if op == "%":
        return (0, d - 1) if c > 0 else unknown
    if op == "*":
        if c != d or c == 0:
            return unknown
        return (a * c, b * c) if c > 0 else (b * c, a * c)
    if op == "//":
        return (a // c if abs(a) < math.inf else a, b // c if abs(b) < math.inf else b) if c == d and c > 0 else unknown
    return {"+": (a + c, b + d), "-": (a - d, b - c), "min": (min(a, c), min(b, d)), "max": (max(a, c), max(b, d))}[op]


# Of the program that is being written.
_ranges = {}  # of its names, whatever the extents of grids and loops are
_names, _numbers, _lets = {}, {}, {}  # names in Python, those of int32 constants, and what names are bound to
_random, _used = random.Random(), set()


def _element(b, indices):
    return f"{b.name}[{', '.join(_index(i, n) for i, n in zip(indices, b.declared or b.shape))}]"


def _region(r):
    if r.begin is None:
        return r.buffer.name
    if r.named:
        return r.named
    return _box(r, r.begin)


def _box(r, begin):
    return f"{r.buffer.name}[{', '.join(f'{_index(b)} : {_index(b)} + {e}' for b, e in zip(begin, r.extent))}]"


class Writer:
    def __init__(self, program):
        global _random
        self.p, self.lines = program, []
        _random = random.Random(program.seed)
        _used.clear()

    def put(self, depth, line):
        self.lines.append("    " * depth + line)

    def source(self):
        p = self.p
        if p.assumes or p.refused or any(t is not INT32 for _, t, _ in p.symbols):
            raise Unsaid
        tensors = ", ".join(f"{b.name}: {_tensor(b)}" for b in p.params)
        scalars = ", ".join(f"{name}: T.{t.name}" for name, t, _ in p.scalars)
        for name, _, _ in p.symbols:
            self.put(0, f"{name} = T.dynamic('{name}')")
        self.put(0, "@T.prim_func")
        self.put(0, f"def p({tensors}, {scalars}):" if scalars else f"def p({tensors}):")
        fills = {b.name: b.fill for b in p.params if b.fill is not None}
        for b in p.workspaces:
            self.put(1, f"{b.name} = T.alloc_global({b.shape}, '{b.dtype.name}')")
        for l in p.launches:
            self.ranges(l)
            names = ", ".join(name for name, _, _ in l.grid)
            threads = _tuple([n for _, n in l.thread_dims()]) if l.across else l.threads
            self.put(1, f"with T.Kernel({', '.join(extent for _, extent, _ in l.grid)}, threads={threads}) as ({names}):")
            if fills:
                self.put(2, f"T.annotate_safe_value({{{', '.join(f'{n}: {v}' for n, v in fills.items())}}})")
            late = [(name, f"{name} = T.get_thread_binding({d})") for d, (name, _) in enumerate(l.thread_dims())]
            if _random.random() < 0.5:  # else where it is needed
                for _, line in late:
                    self.put(2, line)
                late = ()
            for b in l.buffers:
                self.buffer(2, b)
            self.block(l.body, 2, late)
        return "\n".join(["import tilewright.language as T"] + self.lines) + "\n"

    def ranges(self, launch):
        kept = {s.buffer for s in launch.body if s.kind == "store" and _may_be_negative(s.value)}
        if any(_greatest(e) >= 2**16 for s, _ in walk(launch.body) for e in expressions_of(s)):
            kept |= {b for b in launch.buffers if b.dtype is INT32}  # as Python's numbers they would not wrap around
        names = PythonNames(launch, _random, kept)
        self.plain = names.plain
        _names.clear()
        _names.update(names.of)
        _used.update(names.used)
        _numbers.clear()
        _lets.clear()
        _lets.update({s.name: s.value for s, _ in walk(launch.body) if s.kind == "let"})
        _ranges.clear()
        _ranges.update({name: (0, math.inf) for name, _, _ in launch.grid}, **{name: (0, count - 1) for name, count in launch.thread_dims()})
        for s, _ in walk(launch.body):
            if s.kind == "map":
                _ranges.update({v: (0, math.inf) for v in s.vars})
            elif s.kind == "for" and s.begin[0] == "const":
                _ranges[s.var] = s.begin[2], math.inf

    def buffer(self, depth, b):
        if b.reducer or b.arrive:
            raise Unsaid
        if b.view is not None:
            self.put(depth, f"{b.name} = T.view({b.view.name}, {b.shape}, '{b.dtype.name}')")
        elif b in self.plain:
            return
        elif b.space == "local" and not b.shape:
            self.put(depth, f"{b.name} = T.alloc_var('{b.dtype.name}')")
        else:
            self.put(depth, f"{b.name} = T.alloc_{b.space}({b.shape}, '{b.dtype.name}')")

    def block(self, body, depth, late=()):
        for s in body:
            found = names_read(s) if late else ()
            for name, line in late:
                if name in found:
                    self.put(depth, line)
            getattr(self, "do_" + s.kind, self.unsaid)(s, depth)
        if not body:
            self.put(depth, "pass")

    def unsaid(self, s, depth):
        raise Unsaid

    def do_let(self, s, depth):
        number = _number(s.value)
        self.put(depth, f"{_names.get(s.name, s.name)} = {expression(s.value)}")
        if number is not None:
            _numbers[s.name] = number

    def do_slice(self, s, depth):
        _used.add("python: slice with a name")
        self.put(depth, f"{s.name} = {_box(s.region, s.indices)}")

    def do_declare(self, s, depth):
        self.buffer(depth, s.buffer)

    def do_store(self, s, depth):
        target = _element(s.buffer, s.indices) if s.buffer.shape else _names.get(s.buffer.name, s.buffer.name)
        self.put(depth, f"{target} = {expression(s.value)}")

    def do_for(self, s, depth):
        begin, end = expression(s.begin), f"{expression(s.begin)} + {expression(s.extent)}"
        if s.loop == "pipelined":
            head = f"T.Pipelined({begin}, {end}, num_stages={s.options.partition('=')[2] or 0})"
        else:
            head = f"T.{s.loop}({begin}, {end})"
        self.put(depth, f"for {_names.get(s.var, s.var)} in {head}:")
        self.block(s.bodies[0], depth + 1)

    def do_map(self, s, depth):
        self.put(depth, f"for {', '.join(_names.get(v, v) for v in s.vars)} in T.Parallel({', '.join(expression(e) for e in s.extents)}):")
        self.block(s.bodies[0], depth + 1)

    def do_while(self, s, depth):
        self.put(depth, f"while {expression(s.condition)}:")
        self.block(s.bodies[0], depth + 1)

    def do_if(self, s, depth):
        self.put(depth, f"if {expression(s.condition)}:")
        self.block(s.bodies[0], depth + 1)
        if len(s.bodies) > 1 and s.bodies[1]:
            self.put(depth, "else:")
            self.block(s.bodies[1], depth + 1)

    def do_copy(self, s, depth):
        if s.fields.get("completion") or s.fields.get("im2col"):
            raise Unsaid
        if s.combine:
            self.put(depth, f"T.atomic_{s.combine}({_region(s.to)}, {_region(s.source)})")
        else:
            self.put(depth, f"T.copy({_region(s.source)}, {_region(s.to)})")

    def do_fill(self, s, depth):
        self.put(depth, f"T.fill({_region(s.to)}, {expression(s.value)})")

    def do_gemm(self, s, depth):
        named = f", transpose_A={s.transpose_a}, transpose_B={s.transpose_b}"
        named += f", policy=T.GemmWarpPolicy.{_POLICY[s.policy]}" if s.policy else ""
        named += f", clear_accum={expression(s.clear)}" if s.clear and s.clear[0] != "const" else ", clear_accum=True" if s.clear else ""
        self.put(depth, f"T.gemm({_region(s.a)}, {_region(s.b)}, {_region(s.c)}{named})")

    def do_reduce(self, s, depth):
        nan = ", nan_propagate=True" if s.nan_propagate else ""
        self.put(depth, f"T.reduce_{s.op}({_region(s.source)}, {_region(s.to)}, dim={s.dim}, clear={s.clear}{nan})")

    def do_scan(self, s, depth):
        self.put(depth, f"T.cum{s.op}({_region(s.source)}, {_region(s.to)}, dim={s.dim}, reverse={s.reverse})")

    def do_atomic(self, s, depth):
        if s.buffer.reducer or s.buffer.root.space == "local":
            raise Unsaid
        place, name = _element(s.buffer, s.indices), _names.get(s.result, s.result)
        value = "" if s.value is None else f", {expression(s.value)}"
        if s.op == "compare_exchange":
            call = f"T.atomic_cas({place}, {expression(s.compare)}{value})"
        else:
            call = f"T.atomic_{s.op}({place}{value}{', return_prev=True' if s.result and s.op != 'load' else ''})"
        self.put(depth, f"{name} = {call}" if s.result else call)

    def do_sync(self, s, depth):
        self.put(depth, "T.sync_threads()")

    def do_break(self, s, depth):
        self.put(depth, s.kind)

    do_continue = do_break

    def do_return(self, s, depth):
        self.put(depth, "T.thread_return()")

    def do_assert(self, s, depth):
        self.put(depth, f"T.device_assert({expression(s.condition)})")

    def do_assume(self, s, depth):
        self.put(depth, f"T.assume({expression(s.condition)})")


def _may_be_negative(e):
    """Of a variable's value that Python might know, and then an index by it would count from the end."""
    return e[0] == "const" and e[1] is INT32 and e[2] < 0 or e[0] == "bin" and e[1] is INT32


def _greatest(e):
    """The greatest magnitude of the int32 constants of an expression."""
    own = abs(int(e[2])) if e[0] == "const" and e[1] is INT32 else 0
    return max([own, *(_greatest(x) for _, x in children(e))])


def _tuple(numbers):
    return f"({''.join(f'{n}, ' for n in numbers)})"


def _tensor(b):
    shape = _tuple(b.declared or b.shape)
    return f"T.StridedTensor({shape}, {_tuple(b.named_strides or b.strides)}, '{b.dtype.name}')" if b.strides else f"T.Tensor({shape}, '{b.dtype.name}')"


def python_source(program):
    """The source of the function, or None."""
    return source_and_kinds(program)[0]


def source_and_kinds(program):
    """The source, and what of the census's kinds it has."""
    try:
        return Writer(program).source(), frozenset(_used)
    except Unsaid:
        return None, frozenset()


def traced(source, options):
    """The text of the program that the source gives, with options that Python has no word for."""
    if str(_BUILT) not in sys.path:
        sys.path.insert(0, str(_BUILT))
    name = "<generated>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"__name__": "generated"}
    exec(compile(source, name, "exec"), space)
    head, brace, rest = space["p"].script().partition("{\n")
    return head + brace + "".join(f"  option {name}={str(value).lower()}\n" for name, value in options.items()) + rest


