"""A program as a Python function of the package, and the program that tracing it gives.

What Python says otherwise than the text form is left alone: None then. A negative constant index counts from the end there, names of
a block end with it, and roles, reducers, shuffles and votes are the text form's own here."""
import linecache
import pathlib
import sys

from nodes import walk
from scalars import INT32

_BUILT = pathlib.Path(__file__).resolve().parents[2] / "build/release/python"
_CALLS = {"neg": "-({})", "not": "not ({})", "~": "~({})"}
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


def expression(e):
    kind = e[0]
    if kind == "const":
        return _constant(e[1], e[2])
    if kind == "var":
        return e[2]
    if kind == "load":
        return _element(e[2], e[3]) if e[2].shape else e[2].name
    if kind == "bin":
        a, b, op = expression(e[3]), expression(e[4]), e[2]
        return f"T.{op}({a}, {b})" if op[0].isalpha() else f"({a} {op} {b})"
    if kind in ("cmp", "logic"):
        return f"({expression(e[2])} {e[1]} {expression(e[3])})"
    if kind == "un":
        if e[2] in _CALLS:
            return f"({_CALLS[e[2]].format(expression(e[3]))})"
        return f"T.{e[2]}({expression(e[3])})"
    if kind == "select":
        return f"T.if_then_else({', '.join(expression(x) for x in e[2:])})"
    if kind in ("clamp", "dp4a"):
        return f"T.{kind}({', '.join(expression(x) for x in e[2:])})"
    if kind == "cast" and e[3:]:
        raise Unsaid
    if kind in ("cast", "bitcast"):
        return f"T.{'cast' if kind == 'cast' else 'reinterpret'}({expression(e[2])}, '{e[1].name}')"
    raise Unsaid


def _index(e):
    """An index that Python does not take for one from the end: it is not known to be below zero."""
    low, high = _range(e)
    if high is not None and high < 0:
        raise Unsaid
    return expression(e)


_ranges = {}  # of the names of the program that is being written


def _range(e):
    """(least, greatest) value of an index; None where it is not known."""
    if e[0] == "const":
        return e[2], e[2]
    if e[0] == "var":
        return _ranges.get(e[2], (None, None))
    if e[0] == "cast":
        return _range(e[2])
    if e[0] != "bin":
        return None, None
    (a, b), (c, d) = _range(e[3]), _range(e[4])
    if e[2] == "%":
        return (0, None) if c is not None and c > 0 else (None, None)
    if None in (a, b, c, d):
        return None, None
    ends = {"+": (a + c, b + d), "-": (a - d, b - c), "max": (max(a, c), max(b, d)), "min": (min(a, c), min(b, d))}
    if e[2] == "*":
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    if e[2] == "//" and c > 0:
        return min(a // c, a // d), max(b // c, b // d)
    return ends.get(e[2], (None, None))


def _element(b, indices):
    return f"{b.name}[{', '.join(_index(i) for i in indices)}]"


def _region(r):
    if r.begin is None:
        return r.buffer.name
    return f"{r.buffer.name}[{', '.join(f'{_index(b)} : {_index(b)} + {e}' for b, e in zip(r.begin, r.extent))}]"


class Writer:
    def __init__(self, program):
        self.p, self.lines = program, []

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
            if l.extra or l.across:
                raise Unsaid
            self.put(1, f"with T.Kernel({', '.join(extent for _, extent, _ in l.grid)}, threads={l.threads}) as ({names}):")
            if fills:
                self.put(2, f"T.annotate_safe_value({{{', '.join(f'{n}: {v}' for n, v in fills.items())}}})")
            self.put(2, "tx = T.get_thread_binding(0)")
            for b in l.buffers:
                self.buffer(2, b)
            self.block(l.body, 2)
        return "\n".join(["import tilewright.language as T"] + self.lines) + "\n"

    def ranges(self, launch):
        _ranges.clear()
        _ranges.update({name: (0, value - 1) for name, _, value in launch.grid}, tx=(0, launch.threads - 1))
        for s, _ in walk(launch.body):
            if s.kind == "map":
                _ranges.update({v: (0, e[2] - 1) for v, e in zip(s.vars, s.extents) if e[0] == "const"})
            elif s.kind == "for" and s.begin[0] == s.extent[0] == "const":
                _ranges[s.var] = s.begin[2], s.begin[2] + max(s.extent[2], 1) - 1

    def buffer(self, depth, b):
        if b.reducer or b.arrive or b.layout:
            raise Unsaid
        if b.view is not None:
            self.put(depth, f"{b.name} = T.view({b.view.name}, {b.shape}, '{b.dtype.name}')")
        elif b.space == "local" and not b.shape:
            self.put(depth, f"{b.name} = T.alloc_var('{b.dtype.name}')")
        else:
            self.put(depth, f"{b.name} = T.alloc_{b.space}({b.shape}, '{b.dtype.name}')")

    def block(self, body, depth):
        for s in body:
            getattr(self, "do_" + s.kind, self.unsaid)(s, depth)
        if not body:
            self.put(depth, "pass")

    def unsaid(self, s, depth):
        raise Unsaid

    def do_let(self, s, depth):
        self.put(depth, f"{s.name} = {expression(s.value)}")

    def do_declare(self, s, depth):
        self.buffer(depth, s.buffer)

    def do_store(self, s, depth):
        target = _element(s.buffer, s.indices) if s.buffer.shape else s.buffer.name
        self.put(depth, f"{target} = {expression(s.value)}")

    def do_for(self, s, depth):
        begin, end = expression(s.begin), f"{expression(s.begin)} + {expression(s.extent)}"
        if s.loop == "pipelined":
            head = f"T.Pipelined({begin}, {end}, num_stages={s.options.partition('=')[2] or 0})"
        else:
            head = f"T.{s.loop}({begin}, {end})"
        self.put(depth, f"for {s.var} in {head}:")
        self.block(s.bodies[0], depth + 1)

    def do_map(self, s, depth):
        self.put(depth, f"for {', '.join(s.vars)} in T.Parallel({', '.join(expression(e) for e in s.extents)}):")
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
        if s.result or s.op in ("exchange", "compare_exchange", "load", "store") or s.buffer.reducer:
            raise Unsaid
        self.put(depth, f"T.atomic_{s.op}({_element(s.buffer, s.indices)}, {expression(s.value)})")

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


def _tuple(numbers):
    return f"({''.join(f'{n}, ' for n in numbers)})"


def _tensor(b):
    shape = _tuple(b.declared or b.shape)
    return f"T.StridedTensor({shape}, {_tuple(b.strides)}, '{b.dtype.name}')" if b.strides else f"T.Tensor({shape}, '{b.dtype.name}')"


def python_source(program):
    """The source of the function, or None."""
    try:
        return Writer(program).source()
    except Unsaid:
        return None


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


