"""Draws code of threads that read and write what other threads write and read: in shared and global memory, one statement after the
other, in loops and branches, beside tile ops."""
from draw_expr import Drawn, constant, int32, var
from nodes import Buffer, Region, Stmt
from scalars import INT32, TYPES


def _binary(op, a, b):
    return ("bin", INT32, op, a, b)


class Hazards:
    """The part of the generator that draws threads which depend on each other."""

    def tid(self):
        """The number of the thread in its block."""
        e, before = var("tx"), 1
        for (name, _), (_, count) in zip(self.launch.thread_dims()[1:], self.launch.thread_dims()):
            before *= count
            e = _binary("+", e, _binary("*", var(name), int32(before)))
        return e

    def add_threads(self, scope):
        for name, count in self.launch.thread_dims():
            scope.add(Drawn(name, INT32, 0, count - 1, False))

    # ---- what threads share

    def _shared_buffers(self, scope, body):
        """[(buffer, what stands before the dimensions that threads index)]"""
        r, threads, found = self.r, self.launch.threads, []
        for _ in range(r.choice((1, 2, 2, 3))):
            n = r.choice((threads, threads, threads, threads // 2, 2 * threads, threads + 1, 37, 8))
            t = self.any_type()
            if self.chance(0.6):
                t = TYPES[r.choice(("int32", "int32", "float32", "int64", "uint8", "int16", "float64", "float16"))]
            shape = (n,)
            dims = [count for _, count in self.launch.thread_dims()][::-1]
            if len(dims) > 1 and self.chance(0.4):
                shape = tuple(dims)
            elif self.chance(0.3):
                shape = (r.choice((2, 3, 4)), n) if n <= 128 else (2, n)
            old = [b for b in self.ready_tiles() if b.space == "shared" or b.view is not None]
            if old and self.chance(0.2):
                found.append((r.choice(old), []))
                continue
            if self.chance(0.45):
                out = self._output(tuple(self.grid.values()) + shape, t)
                found.append((out, [var(name) for name in self.grid]))
                continue
            b = self.tile(shape, t, r.choice(("shared",) * 5 + ("fragment",)))
            if self.chance(0.5):
                body.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(t, self.number(t))}))
            else:
                self.map_store(scope, body, b)
            self.wrote(b)
            found.append((b, []))
            views = [v for v in self.tiles if v.view is b]
            if views and self.chance(0.7):
                found.append((views[-1], []))
        return found

    def _number(self, scope, n, uniform):
        """An index of a dimension of n elements."""
        r, threads = self.r, self.launch.threads
        if n == 1:
            return int32(0)
        counters = [d for d in scope.all() if d.low is not None and d.type is INT32 and d.name[0] == "k"]
        if uniform or self.chance(0.12):
            same = [d for d in counters if d.uniform]
            if same and self.chance(0.4):
                return _binary("%", self.affine(r.choice(same).expr, r.choice((1, 1, 2)), r.choice((0, 0, 1, 8))), int32(n))
            return int32(r.choice((0, 0, n - 1, r.randrange(n))))
        e = self.tid() if self.chance(0.85) else var(r.choice(self.launch.thread_dims())[0])
        form = r.random()
        if form < 0.3 and n >= threads:
            return e
        if form < 0.42 and n >= threads:
            return _binary("-", int32(threads - 1), e)
        if form < 0.5 and n >= threads and threads & (threads - 1) == 0:
            return ("bin", INT32, "^", e, int32(r.choice((1, 1, 2, 3, 16, 31, threads // 2))))
        if form < 0.6 and counters and n >= threads:
            k = r.choice(counters).expr
            return _binary("%", _binary("+", e, _binary("*", k, int32(r.choice((1, 1, 5, 7, 32, threads))))), int32(n))
        if form < 0.66 and self.chance(0.5):
            return _binary("%", _binary("//", e, int32(r.choice((2, 4, 32)))), int32(n))
        if form < 0.7:
            return _binary("%", ("bin", INT32, "&", self.expr(scope, INT32, 1), int32(127)), int32(n))
        c = r.choice((0, 1, 1, 2, 5, 31, 32, 33, threads // 2))
        return _binary("%", self.affine(e, r.choice((1, 1, 1, 1, 3)), c), int32(n))

    def _element(self, scope, b, before, uniform=False):
        shape = b.shape[len(before) :]
        dims = self.launch.thread_dims()[::-1]
        if not uniform and shape == tuple(n for _, n in dims) and len(dims) > 1 and self.chance(0.4):
            return before + [var(name) for name, _ in dims]
        if not uniform and len(shape) > 1 and self.chance(0.3):  # the number of the thread over the last two dimensions
            width, rows = shape[-1], shape[-2]
            e = _binary("+", self.tid(), int32(self.r.choice((0, 0, 1, 32))))
            return before + [int32(0)] * (len(shape) - 2) + [_binary("%", _binary("//", e, int32(width)), int32(rows)), _binary("%", e, int32(width))]
        one = self.r.randrange(len(shape))
        return before + [self._number(scope, n, uniform or d != one and self.chance(0.7)) for d, n in enumerate(shape)]

    def _loads(self, hazards, but=None):
        def pick(scope, uniform):
            r = self.r
            found = [(b, before) for b, before in hazards if but is None or b.root is not but.root]
            if found and self.chance(0.75):
                b, before = r.choice(found)
                return b, self._element(scope, b, before, uniform)
            b = r.choice(self.sources())
            self.read_here = self.read_here | {b}
            return b, [self.global_index(scope, n, 1, uniform) for n in b.shape]

        return pick

    def _value(self, scope, hazards, t, but=None, depth=2, uniform=False):
        saved, self.loads = self.loads, self._loads(hazards, but)
        e = self.expr(scope, t, depth, uniform)
        self.loads = saved
        return e

    # ---- statements

    def hazards(self, scope, body, depth=0):
        found = self._shared_buffers(scope, body)
        inner = scope.inside()
        inner.in_loop = False
        self.add_threads(inner)
        for _ in range(self.r.choice((2, 3, 4, 5, 6))):
            self._hazard(inner, body, found, 0)

    HAZARDS = [("store", 8), ("update", 3), ("once", 4), ("guarded", 4), ("read", 4), ("for", 5), ("while", 2), ("if", 4), ("atomics", 5), ("tile", 3),
               ("warp", 2), ("array", 2), ("sync", 1)]  # fmt: skip

    def _hazard(self, scope, lines, hazards, depth):
        names, weights = zip(*self.HAZARDS)
        kind = self.r.choices(names, weights)[0]
        if depth >= 3 and kind in ("for", "while", "if"):
            kind = "store"
        getattr(self, "_hazard_" + kind)(scope, lines, hazards, depth)

    def _hazard_store(self, scope, lines, hazards, depth):
        b, before = self.r.choice(hazards)
        index = self._element(scope, b, before)
        store = Stmt("store", {"buffer": b, "indices": index, "value": self._value(scope, hazards, b.dtype, b)})
        lines.append(self._of_enough(b, before, store))

    def _hazard_update(self, scope, lines, hazards, depth):
        b, before = self.r.choice(hazards)
        index = self._element(scope, b, before)
        load, e = ("load", b.dtype, b, index), self._value(scope, hazards, b.dtype, b, 1)
        value = e if b.dtype.is_bool else ("bin", b.dtype, self.r.choice(("+", "-", "max")), load, e)
        lines.append(self._of_enough(b, before, Stmt("store", {"buffer": b, "indices": index, "value": value})))

    def _of_enough(self, b, before, store):
        """By as many threads as there are elements."""
        n = max(b.shape[len(before) :])
        if n >= self.launch.threads or self.chance(0.1):
            return store
        return Stmt("if", {"condition": ("cmp", "<", self.tid(), int32(n))}, [[store]])

    def _hazard_once(self, scope, lines, hazards, depth):
        """By all threads alike; what it reads may be what it writes."""
        b, before = self.r.choice(hazards)
        value = self._value(scope, hazards, b.dtype, None, 2, uniform=True)
        lines.append(Stmt("store", {"buffer": b, "indices": self._element(scope, b, before, True), "value": value}))

    def _of_threads(self, scope, hazards):
        """A condition that threads disagree on."""
        r, threads = self.r, self.launch.threads
        form = r.random()
        if form < 0.35:
            return ("cmp", r.choice(("<", ">=")), self.tid(), int32(r.choice((1, 7, 16, 32, 33, threads - 1))))
        if form < 0.55:
            return ("cmp", "==", _binary("%", self.tid(), int32(r.choice((2, 3, 4)))), int32(r.choice((0, 1))))
        if form < 0.75:
            return ("cmp", "==", self.tid(), int32(r.choice((0, 0, 5, 32, threads - 1))))
        t = TYPES[r.choice(("int32", "int32", "float32"))]
        return ("cmp", r.choice(("<", ">=", "!=")), self._value(scope, hazards, t, None, 1), constant(t, r.choice((0, 1, 3))))

    def _of_block(self, scope, hazards):
        """A condition that they agree on."""
        r = self.r
        if self.chance(0.4):
            return self.condition(scope, 1, uniform=True)
        t = TYPES[r.choice(("int32", "int32", "float32", "int64"))]
        return ("cmp", r.choice(("<", ">=", "!=")), self._value(scope, hazards, t, None, 1, True), constant(t, r.choice((-1, 0, 1, 3, 9))))

    def _hazard_guarded(self, scope, lines, hazards, depth):
        b, before = self.r.choice(hazards)
        condition = self._of_threads(scope, hazards)
        alone = condition[1] == "==" and condition[2] == self.tid()
        index = self._element(scope, b, before, alone and self.chance(0.6))
        but = None if alone and self.chance(0.5) else b
        store = Stmt("store", {"buffer": b, "indices": index, "value": self._value(scope, hazards, b.dtype, but)})
        other = []
        if self.chance(0.25):
            c, cb = self.r.choice(hazards)
            other = [[Stmt("store", {"buffer": c, "indices": self._element(scope, c, cb), "value": self._value(scope, hazards, c.dtype, c)})]]
        lines.append(Stmt("if", {"condition": condition}, [[store]] + other))

    def _hazard_read(self, scope, lines, hazards, depth):
        """A value that is kept while others write what it was read from."""
        r, t = self.r, self.any_type()
        e = self._value(scope, hazards, t, None, 1, self.chance(0.25))
        if self.chance(0.7):
            name = self.name("x")
            lines.append(Stmt("let", {"name": name, "dtype": t, "value": e}))
            scope.add(Drawn(name, t, None, None, False))
            return
        known = [d for d in scope.all() if d.buffer is not None and not d.uniform]
        if known and self.chance(0.5):
            d = r.choice(known)
            lines.append(Stmt("store", {"buffer": d.buffer, "indices": [], "value": self._value(scope, hazards, d.type, None, 2)}))
            return
        v = Buffer(self.name("v"), "local", t, ())
        self.launch.buffers.append(v)
        lines.append(Stmt("store", {"buffer": v, "indices": [], "value": e}))
        scope.add(Drawn(v.name, t, None, None, False, v))

    def _inside(self, scope, hazards, depth, loop=False):
        inner, lines = scope.inside(loop=loop), []
        if not loop:
            inner.in_loop = scope.in_loop
        return inner, lines

    def _some(self, scope, lines, hazards, depth):
        for _ in range(self.r.choice((1, 2, 2, 3))):
            self._hazard(scope, lines, hazards, depth + 1)

    def _jump(self, scope, lines, hazards):
        if not self.chance(0.35):
            return
        condition = self._of_threads(scope, hazards) if self.chance(0.4) else self._of_block(scope, hazards)
        jump = Stmt("if", {"condition": condition}, [[Stmt(self.r.choice(("break", "continue")))]])
        lines.insert(self.r.randint(0, len(lines)), jump)

    def _hazard_for(self, scope, lines, hazards, depth):
        r, k = self.r, self.name("k")
        inner, work = self._inside(scope, hazards, depth, loop=True)
        begin, extent = self.bounds()
        alike = True
        if self.chance(0.15):
            alike, extent = False, _binary("%", self.tid(), int32(r.choice((2, 3, 4))))
        inner.add(Drawn(k, INT32, begin[2], begin[2] + 7, alike))
        self._some(inner, work, hazards, depth)
        self._jump(inner, work, hazards)
        lines.append(self._for(k, begin, extent, work, None if alike else ("serial", "unroll")))

    def _hazard_while(self, scope, lines, hazards, depth):
        r = self.r
        inner, work = self._inside(scope, hazards, depth, loop=True)
        ints = [(b, before) for b, before in hazards if b.dtype.is_int and b.dtype.bits >= 16]
        if ints and self.chance(0.4):  # it counts in what threads share
            b, before = r.choice(ints)
            index = self._element(scope, b, before, True)
            load = ("load", b.dtype, b, index)
            step = Stmt("store", {"buffer": b, "indices": index, "value": ("bin", b.dtype, "+", load, constant(b.dtype, r.choice((1, 2))))})
            lines.append(Stmt("store", {"buffer": b, "indices": index, "value": constant(b.dtype, 0)}))
            condition = ("cmp", "<", load, constant(b.dtype, r.choice((2, 3, 5))))
        else:
            v = self.new_variable(scope, lines, INT32, 0)
            load = ("load", INT32, v, [])
            step = Stmt("store", {"buffer": v, "indices": [], "value": _binary("+", load, int32(1))})
            condition = ("cmp", "<", load, int32(r.choice((2, 3))))
            if self.chance(0.3):
                condition = ("cmp", "<", load, _binary("%", self.tid(), int32(r.choice((2, 3)))))
            elif self.chance(0.4):
                condition = ("logic", "and", condition, self._of_block(scope, hazards))
        self._some(inner, work, hazards, depth)
        self._jump(inner, work, hazards)
        work.insert(0 if any(s.kind == "if" for s in work) else r.randint(0, len(work)), step)
        lines.append(Stmt("while", {"condition": condition}, [work]))

    def _hazard_if(self, scope, lines, hazards, depth):
        bodies = []
        condition = self._of_block(scope, hazards) if self.chance(0.75) else self._of_threads(scope, hazards)
        for _ in range(self.r.choice((1, 1, 2))):
            inner, work = self._inside(scope, hazards, depth)
            self._some(inner, work, hazards, depth)
            bodies.append(work)
        lines.append(Stmt("if", {"condition": condition}, bodies))

    def _hazard_atomics(self, scope, lines, hazards, depth):
        """Of one or two operations, on elements where threads meet."""
        r = self.r
        found = [(b, before) for b, before in hazards if b.space != "fragment" and b.dtype.name in ("int32", "uint32", "int64", "uint64", "float32", "float64")]
        if not found:
            b = self.tile((r.choice((1, 3, 8, 32)),), TYPES[r.choice(("int32", "uint32", "int64", "float32"))], "shared")
            lines.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(b.dtype, 0)}))
            self.wrote(b)
            found = [(b, [])]
            if not depth:
                hazards.append(found[0])
        b, before = r.choice(found)
        t = b.dtype
        for _ in range(r.choice((1, 2, 2, 3))):
            alike = self.chance(0.25)
            op = r.choice(("add", "add", "max", "min") + (("and", "or", "xor") if t.is_int else ()) + (("exchange", "compare_exchange", "load", "store") if self.chance(0.4) else ()))
            index = self._element(scope, b, before, alike)
            if t.is_float:
                value = ("cast", t, self.small(self._value(scope, hazards, INT32, b, 1, alike)))
            else:
                value = self._value(scope, hazards, t, b, 1, alike)
            result = self.name("x") if op in ("exchange", "compare_exchange", "load") or self.chance(0.3) and op != "store" else None
            one = Stmt("atomic", {"op": op, "buffer": b, "indices": index, "value": None if op == "load" else value,
                                  "compare": constant(t, r.choice((0, 1))) if op == "compare_exchange" else None, "result": result})  # fmt: skip
            if self.chance(0.3) and not result:
                one = Stmt("if", {"condition": self._of_threads(scope, hazards)}, [[one]])
            lines.append(one)
            if result:
                scope.add(Drawn(result, t, None, None, False))

    def _hazard_tile(self, scope, lines, hazards, depth):
        r = self.r
        b, before = r.choice(hazards)
        whole = Region(b, None, None)
        outer = scope
        while outer.outer and any(not d.uniform for d in outer.all()):
            outer = outer.outer
        if before:
            whole = Region(b, before + [int32(0)] * (len(b.shape) - len(before)), (1,) * len(before) + b.shape[len(before) :])
        kind = r.choice(("out", "in", "fill", "map", "scan", "reduce", "combine"))
        shape = b.shape[len(before) :]
        if kind == "out":
            to = self.tile(shape, b.dtype)
            lines.append(self.copy(whole, Region(to, None, None)))
            if not depth:
                self.wrote(to)
            out, begin = self.block_place(shape, b.dtype)
            lines.append(self.copy(Region(to, None, None), Region(out, begin, (1,) * (len(out.shape) - len(shape)) + shape)))
        elif kind == "in":
            found = [a for a in self.ready_tiles() if a.shape == shape and a.root is not b.root]
            if found:
                lines.append(self.copy(Region(r.choice(found), None, None), whole))
        elif kind == "fill":
            part = Region(b, list(whole.begin or [int32(0)] * len(shape)), whole.extent or b.shape)
            n = r.randint(1, shape[-1])
            part.begin[-1], part.extent = int32(r.randint(0, shape[-1] - n)), part.extent[:-1] + (n,)
            lines.append(Stmt("fill", {"to": part, "value": constant(b.dtype, self.number(b.dtype))}))
        elif kind == "map" and not before:
            names = [self.name("i") for _ in shape]
            self.with_map(outer, lines, names, list(shape), {b: self.place_of(names, shape)})
        elif kind == "scan" and not before and b.dtype.bits >= 16 and not b.dtype.is_bool:
            lines.append(Stmt("scan", {"op": r.choice(("sum", "max")), "source": whole, "to": whole, "dim": r.randrange(len(shape)),
                                       "reverse": self.chance(0.3)}))  # fmt: skip
        elif kind == "reduce" and not before and not b.dtype.is_packed and not b.dtype.is_bool and not depth:
            self.reduce(outer, lines, b)
        elif kind == "combine" and b.dtype.name in ("int32", "uint32", "int64", "float32") and b.space != "fragment":
            found = [a for a in self.ready_tiles(t=b.dtype) if a.shape == shape and a.root is not b.root]
            if found:
                lines.append(self.copy(Region(r.choice(found), None, None), whole, r.choice(("add", "max", "min"))))

    def _hazard_warp(self, scope, lines, hazards, depth):
        r, name = self.r, self.name("x")
        if self.chance(0.5):
            t, width = TYPES[r.choice(("int32", "float32", "uint32"))], r.choice((32, 32, 16, 8, 2))
            lane = int32(r.randrange(width)) if self.chance(0.6) else _binary("%", self.affine(self.tid(), 1, r.choice((0, 1, 3))), int32(width))
            op = "index" if lane[0] != "const" else r.choice(("index", "up", "down", "xor"))
            lines.append(Stmt("shuffle", {"op": op, "result": name, "dtype": t, "value": self._value(scope, hazards, t), "lane": lane, "width": width}))
        else:
            op = r.choice(("any", "all", "ballot", "block_any", "block_all", "block_count"))
            t = TYPES["uint32"] if op == "ballot" else INT32 if op == "block_count" else TYPES["bool"]
            lines.append(Stmt("vote", {"op": op, "result": name, "dtype": t, "value": self._of_threads(scope, hazards)}))
        scope.add(Drawn(name, t, None, None, False))

    def _hazard_array(self, scope, lines, hazards, depth):
        """An array of each thread, at indices that come from anywhere."""
        r, t, n = self.r, self.any_type(), self.r.choice((2, 3, 4, 5))
        if t.is_packed:
            t = INT32
        v = Buffer(self.name("v"), "local", t, (n,))
        self.launch.buffers.append(v)
        k, inner = self.name("k"), scope.inside(loop=True)
        inner.add(Drawn(k, INT32, 0, n - 1, True))
        lines.append(self._for(k, int32(0), int32(n), [Stmt("store", {"buffer": v, "indices": [var(k)], "value": self._value(inner, hazards, t)})],
                               ("serial", "unroll", "vectorized")))  # fmt: skip

        def index():
            number = self._value(scope, hazards, INT32, None, 1) if self.chance(0.4) else self.tid()
            return _binary("%", ("bin", INT32, "&", number, int32(1023)), int32(n))

        if self.chance(0.6):
            lines.append(Stmt("store", {"buffer": v, "indices": [index()], "value": self._value(scope, hazards, t, None, 1)}))
        b, before = r.choice(hazards)
        load = self.converted(("load", t, v, [index()]), b.dtype)
        lines.append(Stmt("store", {"buffer": b, "indices": self._element(scope, b, before), "value": load}))

    def _hazard_sync(self, scope, lines, hazards, depth):
        lines.append(Stmt("sync"))
