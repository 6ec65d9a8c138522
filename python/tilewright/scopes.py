"""Launches, roles and branches as `with`, loops as `for`: what opens a scope of the program and closes it."""
import math

from . import hints
from .settings import warn_once
from .trace import StopTrace, fail, operation, recording
from .values import Expr, plain

_open_launch, _close_launch = operation("open_launch"), operation("close_launch")
_open_for, _open_map, _open_persistent = operation("open_for"), operation("open_map"), operation("open_persistent")
_open_if, _open_else, _close = operation("open_if"), operation("open_else"), operation("close")
_open_groups, _open_while, _thread = operation("open_groups"), operation("open_while"), operation("get_thread_binding")
_extent, _less = operation("get_thread_extent"), operation("less")


class Frame:
    """A context manager that opens a scope; a rewritten `with` tells it the names of its variables."""

    kind = "if"
    names, unpack = "", False

    def open(self):
        raise NotImplementedError

    def close(self):
        _close()

    def __enter__(self):
        tracer = recording(type(self).__name__)
        value = self.open(tracer)
        tracer.scope(self.kind)
        self.scope = tracer.scopes[-1]
        return value

    def __exit__(self, kind, error, traceback):
        if kind is None:
            tracer = recording(type(self).__name__)
            need_innermost(tracer, self.scope)
            tracer.end_scope()
            self.close()


def need_innermost(tracer, scope):
    """A loop of the program that Python's break or return has left would take in what comes after it."""
    if tracer.scopes[-1] is not scope:
        if tracer.scopes[-1].kind == "python":
            fail("UnsupportedSyntax", "a loop of the program is taken apart by a loop of Python, as by zip() or enumerate()",
                 "loop over T.serial(n) by itself, and compute from its index what goes along")  # fmt: skip
        fail("UnsupportedSyntax", f"a {tracer.scopes[-1].kind} of the program is left by break or return of Python",
             "in a function that is not traced T.loop_break() leaves a loop; or decorate it with @T.macro")  # fmt: skip


def _list(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _checked_threads(threads):
    listed = [128] if threads is None else _list(threads)
    if any(isinstance(plain(t), (Expr, str, bool, float)) or t is None for t in listed):
        hints.refuse("T.Kernel", "threads", threads, "the threads of a block, 128, or its extents, (32, 4), known while the program is made")
    if any(not isinstance(t, Expr) and isinstance(t, int) and t < 1 for t in listed):
        fail("BadOption", f"threads must be positive, but they are {threads}", "a block has 1 to 1024 threads")
    return listed


def thread_extents(threads):
    """The threads of a block along its three dimensions."""
    listed = _checked_threads(threads)
    return listed + [1] * (3 - len(listed))


class Launch(Frame):
    """T.Kernel(*blocks, threads=128, cluster_dims=None): one grid of blocks; gives the indices of the block."""

    kind = "kernel"

    def __init__(self, *blocks, threads=128, prelude=None, cluster_dims=None, is_cpu=False):
        if prelude is not None and not isinstance(prelude, str):
            hints.refuse("T.Kernel", "prelude", prelude, "a text that stands before the kernel's")
        if not isinstance(is_cpu, (bool, int)):
            hints.refuse("T.Kernel", "is_cpu", is_cpu, "True or False")
        self.blocks = (_list(blocks[0]) if len(blocks) == 1 else list(blocks)) or [1]
        for extent in self.blocks:
            if extent is None or isinstance(extent, str):
                hints.refuse("T.Kernel", "an extent of the grid", extent, "a number of blocks: an integer, or an expression of dimensions")
        self.threads = _checked_threads(threads)
        self.cluster = [] if cluster_dims is None else _list(cluster_dims)
        self.cluster = [hints.integer("T.Kernel", "cluster_dims", c, 1, "the blocks of a cluster, 2, or its extents, (2, 1, 1)") for c in self.cluster]
        if prelude:
            recording("Kernel").sources.append(prelude)
        recording("Kernel")

    def open(self, tracer):
        tracer.declare()
        if tracer.discover:
            raise StopTrace
        names = [self.names] if isinstance(self.names, str) else list(self.names)
        need_names("T.Kernel", names, self.unpack, len(self.blocks), "with T.Kernel({}) as {}")
        defaults = ["bx", "by", "bz"]
        names = [n if n and n != "_" else d for n, d in zip(names, defaults)] if any(names) else []
        values = _open_launch(self.blocks, self.threads, self.cluster, names)
        tracer.launches += 1
        tracer.grid, tracer.block_indices = self.blocks, values
        known = [plain(t) for t in self.threads]
        tracer.thread_count = math.prod(known) if all(isinstance(t, int) for t in known) else 0
        self.values = list(zip(names or defaults, values))
        return values if len(values) > 1 or self.unpack else values[0]

    def __enter__(self):
        value = super().__enter__()
        recording("Kernel").scopes[-1].values.extend(self.values)
        return value

    def close(self):
        _close_launch()


class Groups(Frame):
    """T.ws(i, ...): the body runs on these groups of 128 threads alone; T.ws(-1) on all threads."""

    kind = "role"

    def __init__(self, *groups):
        self.groups = list(groups)
        self.everyone = self.groups == [-1]

    def open(self, tracer):
        if not self.everyone:
            _open_groups(self.groups)

    def close(self):
        if not self.everyone:
            super().close()


class If(Frame):
    """with T.If(c): with T.Then(): ...; with T.Else(): ..."""

    kind = "branch"

    def __init__(self, condition):
        self.condition = condition

    def open(self, tracer):
        tracer.branches.append(self.condition)

    def close(self):
        recording("If").branches.pop()


class Then(Frame):
    def open(self, tracer):
        if not tracer.branches:
            fail("OutsideProgram", "T.Then outside of T.If", "write with T.If(condition): with T.Then(): ...")
        _open_if(tracer.branches[-1])


class Else(Frame):
    def open(self, tracer):
        _open_else()


class While(Frame):
    kind = "while"

    def __init__(self, condition):
        self.condition = condition

    def open(self, tracer):
        _open_while(self.condition)


def need_names(word, names, unpack, count, form):
    """As many names as there are indices, where names are unpacked."""
    if unpack and len(names) != count:
        indices = "1 index" if count == 1 else f"{count} indices"
        named = ", ".join(n for n, _ in zip("ijklm", range(count)))
        fail("OperandKind", f"{word} gives {indices}, but {len(names)} names take them",
             "write " + form.format(", ".join("MNKLP"[:count]), f"({named})" if form.startswith("with") and count > 1 else named), also=ValueError)  # fmt: skip


class Loop:
    """A loop of the program: `for` over it traces the body once."""

    by_ones = True
    runs = False  # surely once or more

    def __init__(self, what, open, count=1):
        self.what, self.open = what, open  # open(names) -> (values, scopes to close)
        self.count = count  # of its indices

    def traced(self, names, unpack, region=None):
        tracer = recording(self.what)
        if tracer.discover:
            raise StopTrace
        listed = [names] if isinstance(names, str) else list(names)
        need_names(f"T.{self.what}", listed, unpack, self.count, f"for {{1}} in T.{self.what}({{0}})")
        values, scopes = self.open([n or "i" for n in listed])
        tracer.scope("for", region)
        scope = tracer.scopes[-1]
        tracer.scopes[-1].values.extend((n, v) for n, v in zip(listed, values) if isinstance(v, Expr))
        yield values if len(values) > 1 or unpack else values[0]
        need_innermost(tracer, scope)
        tracer.end_scope()
        for _ in range(scopes):
            _close()

    def __iter__(self):
        """In functions that are not rewritten."""
        return self.traced("i", False)

    def __enter__(self):
        names = ", ".join("ijklmnop"[: max(self.count, 1)])
        fail("OperandKind", f"T.{self.what} is a loop, and stands in a `with`", f"write `for {names} in T.{self.what}(...):`")

    def __exit__(self, *error):
        """Never left: it is not entered."""


def need_extent(word, value, what="an extent"):
    """A number or a value of the program, not a text or a list of them."""
    if isinstance(value, (str, list, tuple)) and not isinstance(value, Expr):
        each = f": T.{word}({', '.join(map(str, value))})" if isinstance(value, (list, tuple)) else ""
        fail("OperandKind", f"T.{word}: {what} is {value!r}", f"bounds are integers, one by one{each}")


def _counted(what, kind, start, stop, step=None, factor=0, **options):
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        need_extent(what, value, "a bound")
    stages, order, stage = options.get("stages", 0), options.get("order"), options.get("stage")

    def open(names):
        return [_open_for(names[0], start, stop, step, kind, stages, order, stage, factor)], 1

    made = Loop(what, open)
    known = plain(step)
    made.by_ones = step is None or (isinstance(known, int) and known == 1)
    bounds = [plain(start), plain(stop), 1 if step is None else known]
    numbers = all(isinstance(b, int) for b in bounds) and bounds[2] != 0
    made.runs = numbers and len(range(*bounds)) > 0
    # A count that came out below 0, T.unroll(-3), is that of a window which is longer than what it goes over; bounds that both are
    # written stand the wrong way around.
    if numbers and (bounds[1] - bounds[0]) * bounds[2] < 0 and bounds[0] != 0:
        warn_once(f"T.{what}({', '.join(map(str, bounds[: 2 if step is None else 3]))}) has no turns: it ends before it begins")
    return made


def serial(start, stop=None, step=None, annotations=None):
    """An ordinary loop; range() in a traced function is this."""
    hints.check("serial", "annotations", annotations)
    return _counted("serial", "serial", start, stop, step)


def unroll(start, stop=None, step=None, *, explicit=False, unroll_factor=None, annotations=None):
    """A loop that is unrolled when it is compiled, as a whole or by so many iterations."""
    hints.check_all("unroll", explicit=explicit, annotations=annotations)
    factor = 0 if unroll_factor is None else hints.integer("T.unroll", "unroll_factor", unroll_factor, 0, "how many turns become one, 1 or more")
    return _counted("unroll", "unroll", start, stop, step, factor)


def vectorized(start, stop=None, *, annotations=None):
    """A loop whose accesses may become vector accesses."""
    hints.check("vectorized", "annotations", annotations)
    return _counted("vectorized", "vectorized", start, stop)


def Pipelined(start, stop=None, num_stages=0, order=None, stage=None, sync=None, group=None, annotations=None):
    """A loop whose copies may run ahead by num_stages (0: by what the plan finds best); its results are those of serial."""
    hints.check_all("Pipelined", sync=sync, group=group, annotations=annotations)
    num_stages = hints.integer("T.Pipelined", "num_stages", num_stages, -(2**31), "how many turns may be under way: an integer, 0 for no pipeline")
    for name, given in (("order", order), ("stage", stage)):
        if given is not None and not (isinstance(given, (list, tuple)) and all(hasattr(plain(e), "__index__") for e in given)):
            hints.refuse("T.Pipelined", name, given, "a list of integers, one for each statement of the body")
    stages = max([num_stages, *stage]) if stage else num_stages  # which stage each statement is in says how many there are
    return _counted("Pipelined", "pipelined", start, stop, stages=stages, order=order, stage=stage)


def Parallel(*extents, coalesced_width=None, loop_layout=None, prefer_async=None, annotations=None):
    """Every point of a box once, in no order, dealt to the threads."""
    hints.check_all("Parallel", coalesced_width=coalesced_width, prefer_async=prefer_async, annotations=annotations)
    for extent in extents:
        if extent is None:
            hints.refuse("T.Parallel", "an extent", extent, "an integer")
        need_extent("Parallel", extent)
    hints.check_loop_layout("Parallel", loop_layout, extents)

    def open(names):
        return _open_map(names, list(extents)), 1

    made = Loop("Parallel", open, len(extents))
    made.runs = all(isinstance(plain(e), int) and plain(e) > 0 for e in extents)
    return made


def parallel(start, stop=None, *, annotations=None):
    """T.Parallel of one extent, or of the points from `start` to `stop`."""
    if stop is None:
        return Parallel(start)

    def open(names):
        return [_open_map(names, [stop - start])[0] + start], 1

    return Loop("parallel", open)


def Persistent(domain, wave_size, index, group_size=8, num_stages=0, annotations=None):
    """The share of one of wave_size blocks of the points of a box, in groups along its last dimension."""
    hints.check("Persistent", "annotations", annotations)
    if not isinstance(domain, (list, tuple)):
        hints.refuse("T.Persistent", "domain", domain, "a list of extents: [M, N]")
    for extent in domain:
        need_extent("Persistent", extent)
    if isinstance(plain(wave_size), int):
        hints.integer("T.Persistent", "wave_size", wave_size, 1, "how many blocks share the points, 1 or more")

    def open(names):
        return _open_persistent(names, list(domain), wave_size, index, group_size), 1

    return Loop("Persistent", open, len(domain))


def grid(*extents):
    """Nested serial loops."""
    for extent in extents:
        need_extent("grid", extent)

    def open(names):
        names = names + ["i"] * (len(extents) - len(names))
        return [_open_for(n, 0, e) for n, e in zip(names, extents)], len(extents)

    made = Loop("grid", open, len(extents))
    made.runs = all(isinstance(plain(e), int) and plain(e) > 0 for e in extents)
    return made


_THREADS = [f"{of}.{axis}" for of in ("threadIdx", "blockIdx") for axis in "xyz"]


class ThreadBinding(Loop):
    """The index of this thread, or block: `for tx in`, under a condition where there are more of them, or `tx =`."""

    def __init__(self, extent, thread):
        if str(thread) not in _THREADS:
            hints.refuse("T.thread_binding", "thread", thread, f"one of {', '.join(_THREADS)}")
        self.extent, self.of_blocks, self.dim = extent, str(thread).startswith("blockIdx"), "xyz".index(str(thread)[-1])
        super().__init__("thread_binding", self.opened)
        bound = recording("thread_binding").bound[self.of_blocks]
        bound[self.dim] = max(bound[self.dim], plain(extent)) if isinstance(plain(extent), int) else 0

    def index(self):
        indices = recording("thread_binding").block_indices
        if not self.of_blocks or not indices:
            return _thread(self.dim)
        if self.dim >= len(indices):
            fail("BadOption", f"the grid has {len(indices)} dimensions, and none '{'xyz'[self.dim]}'", "give T.Kernel its extent")
        return indices[self.dim]

    def opened(self, names):
        index = self.index()
        of_launch = recording("thread_binding").grid[self.dim] if self.of_blocks else _extent(self.dim)
        known, asked = plain(of_launch), plain(self.extent)
        if isinstance(known, int) and isinstance(asked, int) and known == asked:
            return [index], 0
        if isinstance(known, int) and isinstance(asked, int) and known < asked and not recording("thread_binding").probes:
            fail("BadOption", f"T.thread_binding of {asked} {'blocks' if self.of_blocks else 'threads'}, but the launch has {known}",
                 "give T.Kernel as many, or write T.Parallel, which deals points to the threads that there are")  # fmt: skip
        _open_if(_less(index, self.extent))
        return [index], 1


def thread_binding(start, stop=None, thread="threadIdx.x", annotations=None):
    """The index of this thread, of `stop` threads along a dimension, or of this block."""
    if isinstance(stop, str):
        stop, thread = None, stop
    return ThreadBinding(start if stop is None else stop, thread)
