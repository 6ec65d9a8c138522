"""Programs as the generator knows them, and their text (docs/text_form.md).

An expression is a tuple: ("const", type, value), ("var", type, name), ("load", type, buffer, indices), ("bin", type, op, a, b),
("cmp", op, a, b), ("logic", op, a, b), ("un", type, name, a), ("select", type, condition, a, b), ("cast", type, a),
("bitcast", type, a), ("fma", type, a, b, c), ("clamp", type, a, least, most), ("dp4a", type, a, b, c). A cast may end in the word
"toward_zero". Types are scalars.DType; comparisons and logic are bool."""
from dataclasses import dataclass, field

import numpy as np
from scalars import BOOL, DType


@dataclass(eq=False)
class Buffer:
    """A tensor or a tile. A view has the buffer whose memory it is."""

    name: str
    space: str  # param, global, shared, fragment, local
    dtype: DType
    shape: tuple
    declared: tuple = None  # of a parameter: its extents as text, symbols among them
    view: "Buffer" = None
    fill: object = None  # what reads out of bounds give
    layout: str = ""
    arrive: list = None  # of barriers
    reducer: str = ""
    strides: tuple = None  # of a parameter, in elements; else it is compact
    named_strides: tuple = None  # as text, symbols among them

    @property
    def is_global(self):
        return self.root.space in ("param", "global")

    @property
    def root(self):
        return self.view.root if self.view else self

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def places(self):
        """Where the elements of a parameter are in its memory."""
        strides = np.array(self.strides).reshape((-1,) + (1,) * len(self.shape))
        return (np.indices(self.shape) * strides).sum(axis=0).reshape(-1)


@dataclass(eq=False)
class Region:
    buffer: Buffer
    begin: list  # expressions; None: the whole buffer
    extent: tuple
    named: str = ""  # the name of the slice that it is, bound by a statement before


@dataclass(eq=False)
class Stmt:
    kind: str
    fields: dict = field(default_factory=dict)
    bodies: list = field(default_factory=list)  # lists of statements

    def drawn(self, *kinds):
        """Says what the census counts it as."""
        self.fields["kinds"] = (*self.fields.get("kinds", ()), *kinds)
        return self

    def __getattr__(self, name):
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(eq=False)
class Launch:
    name: str
    grid: list  # (name, extent as text, its value)
    threads: int
    buffers: list
    body: list
    extra: str = ""
    across: tuple = ()  # threads along y and z

    def thread_dims(self):
        """[(name, how many)] of the threads."""
        first = self.threads // int(np.prod(self.across, dtype=int))
        return [("tx", first)] + list(zip(("ty", "tz"), self.across))


@dataclass(eq=False)
class Program:
    seed: int
    params: list  # Buffers
    scalars: list  # (name, type, value)
    symbols: list  # (name, type, value)
    launches: list
    workspaces: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    assumes: list = field(default_factory=list)
    refused: str = ""  # the code with which a call is refused, where a shape or a grid leaves its type
    inputs: dict = field(default_factory=dict)  # of each parameter its elements as memory holds them
    unreached: bool = False  # no thread comes to a store of what was loaded to a fragment: who would, is not known

    def text(self):
        return program_text(self)


def type_of(e):
    if e[0] in ("cmp", "logic"):
        return BOOL
    return e[1]


def number_text(t, value):
    if t.is_bool:
        return "true" if value else "false"
    if t.is_int:
        return str(int(value))
    value = float(value)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def expr_text(e):
    kind = e[0]
    if kind == "const":
        text = number_text(e[1], e[2])
        return text if e[1].is_bool else f"{e[1].name}({text})"
    if kind == "var":
        return e[2]
    if kind == "load":
        return element_text(e[2], e[3])
    if kind == "bin":
        a, b = expr_text(e[3]), expr_text(e[4])
        return f"{e[2]}({a}, {b})" if e[2][0].isalpha() else f"({a} {e[2]} {b})"
    if kind in ("cmp", "logic"):
        return f"({expr_text(e[2])} {e[1]} {expr_text(e[3])})"
    if kind == "un":
        a = expr_text(e[3])
        return {"neg": f"(-{a})", "not": f"(not {a})", "~": f"(~{a})"}.get(e[2], f"{e[2]}({a})")
    if kind == "select":
        return f"select({', '.join(expr_text(x) for x in e[2:])})"
    if kind == "cast":
        return f"{e[1].name}({expr_text(e[2])}{''.join(', ' + word for word in e[3:])})"
    if kind == "bitcast":
        return f"bitcast({e[1].name}, {expr_text(e[2])})"
    if kind in ("fma", "clamp", "dp4a"):
        return f"{kind}({', '.join(expr_text(x) for x in e[2:])})"
    raise ValueError(kind)


def index_text(e):
    return str(e[2]) if e[0] == "const" else expr_text(e)


def element_text(buffer, indices):
    return f"{buffer.name}[{', '.join(index_text(i) for i in indices)}]" if buffer.shape or indices else buffer.name


def region_text(r):
    if r.begin is None:
        return r.buffer.name
    return f"{r.buffer.name}[{', '.join(f'{index_text(b)} : {e}' for b, e in zip(r.begin, r.extent))}]"


def buffer_text(b):
    space = "param" if b.space == "param" else b.space
    shape = b.declared or b.shape
    text = f"{space} {b.name}: {b.dtype.name}" + (f"[{', '.join(map(str, shape))}]" if b.shape else "")
    if b.strides:
        text += f" strides=[{', '.join(map(str, b.named_strides or b.strides))}]"
    if b.view is not None:
        text += f" view={b.view.name}"
    if b.space == "global" and b.view is None:
        text += " workspace"
    if b.fill is not None:
        text += f" fill={number_text(b.dtype, b.fill)}"
    if b.reducer:
        text += f" reducer={b.reducer}"
    if b.arrive:
        text += f" arrive=[{', '.join(map(str, b.arrive))}]"
    return text + (f" layout={b.layout}" if b.layout else "")


def _im2col_text(p):
    return ", ".join(f"{name}={expr_text(value) if isinstance(value, tuple) else value}" for name, value in p.items())


def _flags(s, *names):
    return "".join(f" {n}={str(s.fields[n]).lower()}" for n in names if s.fields.get(n))


def _header(s):
    """The line of a statement, without its blocks."""
    k, f = s.kind, s.fields
    if k == "let":
        return f"{s.name}: {s.dtype.name} = {expr_text(s.value)}"
    if k == "declare":
        return buffer_text(s.buffer)
    if k == "store":
        return f"{element_text(s.buffer, s.indices)} = {expr_text(s.value)}"
    if k == "for":
        bounds = f"0..{index_text(s.extent)}" if s.begin == ("const", s.dtype, 0) else f"{index_text(s.begin)} : {index_text(s.extent)}"
        word = "" if s.loop == "serial" else " " + s.loop + (f"({s.options})" if s.options else "")
        return f"for {s.var}{'' if s.dtype.name == 'int32' else ': ' + s.dtype.name} in {bounds}{word}"
    if k == "map":
        return "map " + ", ".join(f"{v} in {index_text(e)}" for v, e in zip(s.vars, s.extents))
    if k in ("while", "if"):
        return f"{k} {expr_text(s.condition)}"
    if k == "copy":
        return f"copy from={region_text(s.source)} to={region_text(s.to)}" + (f" combine={s.combine}" if f.get("combine") else "") + (
            f" completion={s.completion}" if f.get("completion") else "") + (f" im2col=({_im2col_text(s.im2col)})" if f.get("im2col") else "")
    if k == "fill":
        return f"fill to={region_text(s.to)} value={expr_text(s.value)}"
    if k == "gemm":
        text = f"gemm a={region_text(s.a)} b={region_text(s.b)} c={region_text(s.c)}" + _flags(s, "transpose_a", "transpose_b")
        return text + (f" policy={s.policy}" if s.policy else "") + (f" clear={expr_text(s.clear)}" if s.clear else "")
    if k == "reduce":
        text = f"reduce {s.op} from={region_text(s.source)} to={region_text(s.to)}" + (f" dim={s.dim}" if s.dim else "")
        return text + ("" if s.clear else " clear=false") + _flags(s, "nan_propagate")
    if k == "scan":
        text = f"scan {s.op} from={region_text(s.source)} to={region_text(s.to)}" + (f" dim={s.dim}" if s.dim else "")
        return text + _flags(s, "reverse")
    if k == "atomic":
        text = f"{s.result}: {s.buffer.dtype.name} = " if s.result else ""
        text += f"atomic {s.op} to={element_text(s.buffer, s.indices)}"
        text += "" if s.value is None else f" value={expr_text(s.value)}"
        return text + ("" if s.compare is None else f" compare={expr_text(s.compare)}")
    if k == "sync":
        return "sync block"
    if k in ("shuffle", "vote"):
        text = f"{s.result}: {s.dtype.name} = {k} {s.op} value={expr_text(s.value)}"
        return text + (f" lane={expr_text(s.lane)} width={s.width}" if k == "shuffle" else "")
    if k == "assert":
        return f'assert {expr_text(s.condition)} message="generated"'
    if k == "assume":
        return f"assume {expr_text(s.condition)}"
    if k == "finalize":
        return f"finalize_reducer buffer={s.buffer.name}"
    if k == "role":
        return f"role {s.begin}..{s.end}"
    return s.text if k == "text" else k


def body_lines(body, depth, lines):
    pad = "  " * depth
    for s in body:
        if s.kind == "roles":
            body_lines(s.written(), depth, lines)
            continue
        if s.kind == "slice":  # its indices are read here, and named
            lines += [f"{pad}{name}: int32 = {expr_text(e)}" for name, e in zip(s.names, s.indices)]
            continue
        head = pad + _header(s)
        if not s.bodies:
            lines.append(head)
            continue
        lines.append(head + " {")
        body_lines(s.bodies[0], depth + 1, lines)
        for other in s.bodies[1:]:
            if other:
                lines.append(pad + "} else {")
                body_lines(other, depth + 1, lines)
        lines.append(pad + "}")


def program_text(p):
    lines = [f"program p{p.seed} {{"]
    lines += [f"  symbol {name}: {t.name}" for name, t, _ in p.symbols]
    lines += ["  " + buffer_text(b) for b in p.params]
    lines += [f"  param {name}: {t.name}" for name, t, _ in p.scalars]
    lines += ["  " + buffer_text(b) for b in p.workspaces]
    lines += [f"  assume {a}" for a in p.assumes]
    lines += [f"  option {name}={str(value).lower()}" for name, value in p.options.items()]
    for l in p.launches:
        grid = ", ".join(f"{name}: {extent}" for name, extent, _ in l.grid)
        threads = ", ".join(f"{name}: {n}" for name, n in l.thread_dims())
        lines.append(f"  launch {l.name}({grid}) threads({threads}){l.extra} {{")
        lines += ["    " + buffer_text(b) for b in l.buffers]
        body_lines(l.body, 2, lines)
        lines.append("  }")
    return "\n".join(lines + ["}"]) + "\n"


def walk(body):
    """Every statement, with the list that holds it."""
    for s in body:
        yield s, body
        for inner in s.bodies:
            yield from walk(inner)


_EXPRESSIONS = ("value", "condition", "begin", "extent", "clear", "compare", "lane")


def expressions_of(s):
    """The expressions of a statement itself, but those that a slice with a name has read before."""
    for key in _EXPRESSIONS:
        if isinstance(s.fields.get(key), tuple):
            yield s.fields[key]
    for key in ("indices", "extents"):
        yield from s.fields.get(key) or ()
    for key in ("source", "to", "a", "b", "c"):
        r = s.fields.get(key)
        if isinstance(r, Region) and r.begin is not None and not r.named:
            yield from r.begin


def children(e):
    """The expressions right below one, with where each stands: an index, or (index, position) in a list."""
    for i, x in enumerate(e):
        if isinstance(x, tuple) and x and isinstance(x[0], str):
            yield i, x
        elif isinstance(x, (list, tuple)) and e[0] == "load" and i == 3:
            for j, y in enumerate(x):
                yield (i, j), y


def with_child(e, place, new):
    if isinstance(place, int):
        return e[:place] + (new,) + e[place + 1 :]
    i, j = place
    return e[:i] + (tuple(e[i][:j]) + (new,) + tuple(e[i][j + 1 :]),) + e[i + 1 :]


def buffers_of(e, found):
    if e[0] == "load":
        found.add(e[2])
    for _, x in children(e):
        buffers_of(x, found)
    return found


def loads_of(e):
    """The loads of an expression, those of indices too."""
    if e[0] == "load":
        yield e
    for _, x in children(e):
        yield from loads_of(x)


def names_read(s):
    """The names of variables that a statement and what is in it read."""
    found = set()
    for one, _ in walk([s]):
        for e in expressions_of(one):
            variables_of(e, found)
    return found


def variables_of(e, found):
    if e[0] == "var":
        found.add(e[2])
    for _, x in children(e):
        variables_of(x, found)
    return found
