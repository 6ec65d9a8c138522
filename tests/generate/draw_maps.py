"""Draws maps and the code of threads."""
from draw_expr import Drawn, constant, int32, var
from nodes import Buffer, Stmt
from scalars import BOOL, INT32, INT64, TYPES


class Maps:
    """The part of the generator that draws code of points and of threads."""

    def points(self, scope, shape):
        """Names of a map over a tile, in a scope of their own."""
        inner, names = scope.inside(), [self.name("i") for _ in shape]
        inner.in_loop = False
        for n, e in zip(names, shape):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        return inner, names

    def place_of(self, names, shape):
        """Indices that give every point an element of its own."""
        found = []
        for n, e in zip(names, shape):
            form = self.r.random()
            if form < 0.75:
                found.append(var(n))
            elif form < 0.88:
                found.append(("bin", INT32, "-", int32(e - 1), var(n)))
            else:
                found.append(("bin", INT32, "%", ("bin", INT32, "+", var(n), int32(self.r.choice((1, 4, 5)))), int32(e)))
        return found

    def flat_place(self, shape, b):
        """(map extents, indices from names) of a map of other dimensions than the tile's."""
        r = self.r
        if len(shape) == 2 and self.chance(0.5):  # one index for two dimensions
            n = self.name("i")
            width = int32(shape[1])
            return [n], [shape[0] * shape[1]], [("bin", INT32, "//", var(n), width), ("bin", INT32, "%", var(n), width)]
        if len(shape) == 1:
            factors = [w for w in (2, 4, 8, 3) if shape[0] % w == 0]
            if factors:
                w, (a, c) = r.choice(factors), (self.name("i"), self.name("i"))
                return [a, c], [shape[0] // w, w], [("bin", INT32, "+", ("bin", INT32, "*", var(a), int32(w)), var(c))]
        names = [self.name("i") for _ in shape]
        order = list(range(len(shape)))
        r.shuffle(order)
        return [names[d] for d in order], [shape[d] for d in order], [var(n) for n in names]

    def loads_of_map(self, stored, scope_names):
        """What a map may read: what nobody stores there, or the element that the same point stores."""
        roots = {b.root for b in stored}

        def pick(scope, uniform):
            r = self.r
            if stored and self.chance(0.35):
                b = r.choice([s for s in stored])
                if b in self.ready_in_map:
                    return b, stored[b]
            if self.chance(0.3):
                b = r.choice(self.sources())
                if b.root in roots:
                    return None
                self.read_here = self.read_here | {b}
                return b, [self.global_index(scope, n, 1, False) for n in b.shape]
            found = [b for b in self.ready_tiles() if b.root not in roots]
            if not found:
                return None
            b = r.choice(found)
            return b, [self.chip_index(scope, n) for n in b.shape]

        return pick

    def with_map(self, scope, body, names, extents, stored, depth=2):
        """A map that stores to these buffers, each at its indices."""
        inner = scope.inside()
        inner.in_loop = False
        for n, e in zip(names, extents):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        saved, self.loads = self.loads, None
        self.ready_in_map = {b for b in stored if self.readable(b) or b.is_global and b in self.p.params}
        self.loads = self.loads_of_map(stored, names)
        lines = []
        must = [b for b in stored if b not in self.ready_in_map]
        order = must + [self.r.choice(list(stored)) for _ in range(self.r.choice((0, 1, 1, 2)))]
        for b in order or list(stored)[:1]:
            self.point_statement(inner, lines, b, stored[b], depth, certain=b in must)
            if b in must:
                must.remove(b)
                self.ready_in_map.add(b)
        self.loads = saved
        bounds = [int32(e) for e in extents]
        number = [d for d, e in enumerate(extents) if e == self.p.scalars[0][2]]
        if number and self.chance(0.3):
            bounds[number[0]] = var("n0")
        cut = self.r.randint(1, len(names) - 1) if len(names) > 1 and self.chance(0.1) else len(names)
        if cut < len(names):
            lines = [Stmt("map", {"vars": names[cut:], "extents": bounds[cut:]}, [lines])]
        body.append(Stmt("map", {"vars": names[:cut], "extents": bounds[:cut]}, [lines]))
        for b in stored:
            if not b.is_global:
                self.wrote(b)

    def point_statement(self, scope, lines, b, index, depth, certain):
        """Something that ends in a store of this point's element."""
        r, t = self.r, b.dtype
        if self.chance(0.25):
            u = self.any_type()
            name = self.name("x")
            lines.append(Stmt("let", {"name": name, "dtype": u, "value": self.expr(scope, u, 2)}))
            scope.add(Drawn(name, u, None, None, False))
        form = r.random()
        store = Stmt("store", {"buffer": b, "indices": index, "value": self.expr(scope, t, 3)})
        if certain or form < 0.45:
            if certain and self.chance(0.1):  # written on either side
                lines.append(Stmt("if", {"condition": self.condition(scope)}, [[store], [self.store(scope, b, index)]]))
                return
            lines.append(store)
        elif form < 0.62:
            other = [[self.store(scope, b, index)]] if self.chance(0.4) else []
            lines.append(Stmt("if", {"condition": self.condition(scope)}, [[store]] + other))
        elif form < 0.85:
            self.point_loop(scope, lines, b, index)
        else:
            self.point_local(scope, lines, b, index)

    def store(self, scope, b, index):
        return Stmt("store", {"buffer": b, "indices": index, "value": self.expr(scope, b.dtype, 2)})

    def accumulate(self, scope, b, index):
        """b[...] = b[...] op e"""
        t, load = b.dtype, ("load", b.dtype, b, index)
        e = self.expr(scope, t, 2)
        if t.is_bool:
            return Stmt("store", {"buffer": b, "indices": index, "value": ("logic", self.r.choice(("and", "or")), load, e)})
        op = self.r.choice(("+", "+", "+", "-", "max", "min", "*"))
        return Stmt("store", {"buffer": b, "indices": index, "value": ("bin", t, op, load, e)})

    def point_loop(self, scope, lines, b, index):
        """A loop of each point, that may end early."""
        r = self.r
        k, inner = self.name("k"), scope.inside(loop=True)
        begin, extent = self.bounds()
        if self.chance(0.2):
            extent = ("bin", INT32, "%", self.index_operand(scope), int32(r.choice((2, 3, 4))))
        inner.add(Drawn(k, INT32, begin[2], begin[2] + 7, False))
        known = b in self.ready_in_map
        step = self.accumulate(inner, b, index) if known and self.chance(0.7) else self.store(inner, b, index)
        work = [step]
        if self.chance(0.35):
            jump = Stmt("if", {"condition": self.condition(inner)}, [[Stmt(r.choice(("break", "continue")))]])
            work.insert(r.randint(0, 1), jump)
        if self.chance(0.2):
            k2, deep = self.name("k"), inner.inside(loop=True)
            begin2, extent2 = self.bounds()
            deep.add(Drawn(k2, INT32, begin2[2], begin2[2] + 7, False))
            work.append(self._for(k2, begin2, extent2, [self.store(deep, b, index)], ("serial", "unroll")))
        lines.append(self._for(k, begin, extent, work, ("serial", "serial", "unroll", "vectorized")))

    def point_local(self, scope, lines, b, index):
        """A variable, or an array, of each point."""
        r, t = self.r, self.any_type()
        if t.is_packed:
            t = INT32
        shape = () if self.chance(0.6) else (r.choice((2, 3, 4)),)
        v = Buffer(self.name("v"), "local", t, shape)
        lines.append(Stmt("declare", {"buffer": v}))
        if not shape:
            lines.append(Stmt("store", {"buffer": v, "indices": [], "value": self.expr(scope, t, 1)}))
            k, inner = self.name("k"), scope.inside(loop=True)
            begin, extent = self.bounds()
            inner.add(Drawn(k, INT32, begin[2], begin[2] + 7, False))
            load = ("load", t, v, [])
            e = self.expr(inner, t, 2)
            value = ("bin", t, r.choice(("+", "max", "-")), load, e) if not t.is_bool else e
            work = [Stmt("store", {"buffer": v, "indices": [], "value": value})]
            if self.chance(0.3):
                work.insert(r.randint(0, 1), Stmt("if", {"condition": self.condition(inner)}, [[Stmt(r.choice(("break", "continue")))]]))
            lines.append(self._for(k, begin, extent, work, ("serial", "unroll")))
            scope.add(Drawn(v.name, t, None, None, False, v))
            lines.append(Stmt("store", {"buffer": b, "indices": index, "value": self.converted(load, b.dtype)}))
            return
        k, inner = self.name("k"), scope.inside(loop=True)
        inner.add(Drawn(k, INT32, 0, shape[0] - 1, False))
        fill = Stmt("store", {"buffer": v, "indices": [var(k)], "value": self.expr(inner, t, 2)})
        lines.append(self._for(k, int32(0), int32(shape[0]), [fill], ("serial", "unroll", "vectorized")))
        load = ("load", t, v, [self.chip_index(scope, shape[0])])
        lines.append(Stmt("store", {"buffer": b, "indices": index, "value": self.converted(load, b.dtype)}))

    # ---- maps

    def map_into_new(self, scope, body):
        b = self.tile()
        if self.chance(0.25):
            names, extents, index = self.flat_place(b.shape, b)
        else:
            names, extents = [self.name("i") for _ in b.shape], list(b.shape)
            index = self.place_of(names, b.shape)
        self.with_map(scope, body, names, extents, {b: index})

    def map_store(self, scope, body, b):
        names = [self.name("i") for _ in b.shape]
        self.with_map(scope, body, names, list(b.shape), {b: [var(n) for n in names]})

    def update_map(self, scope, body):
        """A map over tiles that are there, one or two of one shape."""
        r = self.r
        found = self.ready_tiles()
        if not found:
            return self.map_into_new(scope, body)
        b = r.choice(found)
        stored = {}
        names, extents = [self.name("i") for _ in b.shape], list(b.shape)
        if self.chance(0.15) and b.size > 1:  # a part of it
            extents = [r.randint(1, n) for n in b.shape]
            stored[b] = [self.sum_of(int32(r.randint(0, n - e)), var(i)) for i, n, e in zip(names, b.shape, extents)]
        else:
            stored[b] = self.place_of(names, b.shape)
            if self.chance(0.45):
                other = [c for c in found if c.shape == b.shape and c.root is not b.root]
                other = r.choice(other) if other and self.chance(0.6) else self.tile(b.shape)
                stored[other] = self.place_of(names, b.shape)
            if self.chance(0.35):
                self._and_global(stored, names, b.shape)
        self.with_map(scope, body, names, extents, stored)

    def _and_global(self, stored, names, shape):
        out, begin = self.block_place(shape, self.any_type())
        lead = len(begin) - len(shape)
        stored[out] = begin[:lead] + [self.sum_of(e, var(n)) for e, n in zip(begin[lead:], names)]

    def global_map(self, scope, body):
        """From global memory to global memory."""
        shape, stored = self.shape(), {}
        names = [self.name("i") for _ in shape]
        self._and_global(stored, names, shape)
        if self.chance(0.4):
            self._and_global(stored, names, shape)
        self.with_map(scope, body, names, list(shape), stored)

    def accumulate_map(self, scope, body):
        """A serial loop within a map, or around it, that adds up into a tile or a tensor."""
        found = [b for b in self.ready_tiles() if not b.dtype.is_bool]
        if not found:
            return
        b = self.r.choice(found)
        names = [self.name("i") for _ in b.shape]
        stored = {b: self.place_of(names, b.shape)}
        inner = scope.inside()
        inner.in_loop = False
        for n, e in zip(names, b.shape):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        k = self.name("k")
        begin, extent = self.bounds()
        inner.add(Drawn(k, INT32, begin[2], begin[2] + 7, False))
        self.ready_in_map, self.loads = {b}, self.loads_of_map(stored, names)
        step = self.accumulate(inner, b, stored[b])
        self.loads = None
        bounds = [int32(e) for e in b.shape]
        if self.chance(0.6):
            loop = self._for(k, begin, extent, [step], ("serial", "serial", "unroll"))
            body.append(Stmt("map", {"vars": names, "extents": bounds}, [[loop]]))
        else:
            body.append(self._for(k, begin, extent, [Stmt("map", {"vars": names, "extents": bounds}, [[step]])]))

    def meeting_map(self, scope, body):
        """Points that change one element by what is there."""
        r = self.r
        found = [b for b in self.ready_tiles() if not b.dtype.is_bool and not b.dtype.is_packed]
        if not found:
            return self.map_into_new(scope, body)
        b = r.choice(found)
        names, extents = [self.name("i") for _ in b.shape], list(b.shape)
        at = r.randint(0, len(names))
        names.insert(at, self.name("i")), extents.insert(at, r.choice((2, 3, 4, 8, 17)))
        inner = scope.inside()
        inner.in_loop = False
        for n, e in zip(names, extents):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        if self.chance(0.6):
            index = [var(n) for n in names[:at] + names[at + 1 :]]
        else:
            index = [self.chip_index(inner, n) for n in b.shape]
        self.ready_in_map, self.loads = set(), self.loads_of_map({b: None}, names)
        t = b.dtype
        value = self.expr(inner, t, 2) if t.is_int else ("cast", t, self.small(self.expr(inner, INT32, 2)))
        self.loads = None
        one = Stmt("store", {"buffer": b, "indices": index, "value": ("bin", t, r.choice(("+", "+", "-", "max", "min")), ("load", t, b, index), value)})
        lines = [Stmt("if", {"condition": self.condition_of_point(inner)}, [[one]])] if self.chance(0.2) else [one]
        body.append(Stmt("map", {"vars": names, "extents": [int32(e) for e in extents]}, [lines]))

    def atomic_map(self, scope, body):
        """Points that meet at elements, by atomics; in shared or global memory, or in a reducer."""
        r = self.r
        t = TYPES[r.choice(("int32", "int32", "int32", "uint32", "float32", "int64"))]
        op = r.choice(("add", "add", "add", "max", "min") + (("and", "or", "xor") if t.is_int else ()))
        if self.chance(0.5):
            found = [b for b in self.ready_tiles(t=t) if b.space == "shared" and b.view is None]
            b = r.choice(found) if found and self.chance(0.5) else None
            if b is None:
                b = self.tile(t=t, space="shared")
                body.append(Stmt("fill", {"to": self.whole(b), "value": constant(t, 0)}))
                self.wrote(b)
        else:
            b = self._output((self.extent(),) if self.chance(0.5) else (self.extent(), self.extent()), t)
        inner, names = self.points(scope, shape := self.shape())
        stored = {b: None}
        self.ready_in_map, self.loads = set(), self.loads_of_map(stored, names)
        if b.is_global:
            index = [self.global_index(inner, n, 1, False) for n in b.shape]
        else:
            index = [self.chip_index(inner, n) for n in b.shape]
        value = self.expr(inner, t, 2) if not t.is_float else ("cast", t, self.small(self.expr(inner, INT32, 2)))
        self.loads = None
        one = Stmt("atomic", {"op": op, "buffer": b, "indices": index, "value": value, "compare": None, "result": None})
        lines = [Stmt("if", {"condition": self.condition_of_point(inner)}, [[one]])] if self.chance(0.3) else [one]
        body.append(Stmt("map", {"vars": names, "extents": [int32(e) for e in shape]}, [lines]))

    def condition_of_point(self, scope):
        return ("cmp", self.r.choice(("<", "!=", ">=")), self.index_operand(scope), int32(self.r.randint(0, 9)))

    def whole(self, b):
        from nodes import Region

        return Region(b, None, None)

    # ---- threads

    def thread_code(self, scope, body, last=False):
        """Statements of each thread, between barriers where they share tiles."""
        r = self.r
        threads = self.launch.threads
        inner = scope.inside()
        inner.in_loop = False
        self.add_threads(inner)
        lines = []
        if last and self.chance(0.5):
            lines.append(Stmt("if", {"condition": ("cmp", r.choice(("<", ">=", "==")), self.tid(), int32(r.choice((1, 7, 32, threads - 1))))},
                              [[Stmt("return")]]))  # fmt: skip
        for _ in range(r.choice((1, 1, 2, 3))):
            self.thread_statement(inner, lines)
        body.extend(lines)

    def thread_statement(self, scope, lines):
        r, threads = self.r, self.launch.threads
        kind = r.choice(("tile", "tile", "global", "loop", "variable", "atomic", "shuffle", "vote", "branch", "uniform"))
        t = self.any_type()
        at = r.choice((self.tid(), ("bin", INT32, "-", int32(threads - 1), self.tid())))
        if kind == "tile":
            b = self.tile((threads,), t, r.choice(("shared", "shared", "shared", "fragment")))
            lines.append(Stmt("store", {"buffer": b, "indices": [at], "value": self.thread_expr(scope, t)}))
            self.wrote(b)
            if self.chance(0.8):
                lines.append(Stmt("sync"))
                u = self.any_type()
                out = self._output(tuple(self.grid[n] for n in self.grid) + (threads,), u)
                other = ("load", t, b, [self.chip_index(scope, threads)])
                lines.append(Stmt("store", {"buffer": out, "indices": [var(n) for n in self.grid] + [self.tid()],
                                            "value": self.converted(other, u)}))  # fmt: skip
                if self.chance(0.5):
                    lines.append(Stmt("sync"))
        elif kind in ("global", "branch", "loop"):
            out = self._output(tuple(self.grid[n] for n in self.grid) + (threads,), t)
            index = [var(n) for n in self.grid] + [at]
            store = Stmt("store", {"buffer": out, "indices": index, "value": self.thread_expr(scope, t)})
            if kind == "branch":
                store = Stmt("if", {"condition": self.condition(scope)}, [[store], [Stmt("store", {"buffer": out, "indices": index,
                                                                                                  "value": self.thread_expr(scope, t)})]])  # fmt: skip
            if kind == "loop":
                store = self._thread_loop(scope, out, index)
            lines.append(store)
        elif kind == "variable":
            self._thread_variable(scope, lines, t)
        elif kind == "uniform":
            out = self._output((1 + max(self.grid.values()),) * 2, t)
            value = self.expr(scope.outer, t, 2, uniform=True)
            lines.append(Stmt("store", {"buffer": out, "indices": [var(n) for n in self.grid], "value": value}))
        elif kind == "atomic":
            self._thread_atomic(scope, lines)
        else:
            self._warp_statement(scope, lines, kind, t)

    def thread_expr(self, scope, t):
        self.allow_tiles_in_thread_code = False
        e = self.expr(scope, t, 2)
        self.allow_tiles_in_thread_code = True
        return e

    def _thread_loop(self, scope, out, index):
        r = self.r
        k, inner = self.name("k"), scope.inside(loop=True)
        begin, extent = self.bounds()
        if self.chance(0.4):
            extent = ("bin", INT32, "%", self.tid(), int32(r.choice((2, 3, 5))))
        inner.add(Drawn(k, INT32, begin[2], begin[2] + 7, False))
        t = out.dtype
        work = [Stmt("store", {"buffer": out, "indices": index, "value": self.thread_expr(inner, t)})]
        if self.chance(0.4):
            work.insert(r.randint(0, 1), Stmt("if", {"condition": self.condition(inner)}, [[Stmt(r.choice(("break", "continue")))]]))
        return self._for(k, begin, extent, work, ("serial", "serial", "unroll"))

    def _thread_variable(self, scope, lines, t):
        r = self.r
        shape = (r.choice((2, 4, 5)),) if self.chance(0.4) else ()
        v = Buffer(self.name("v"), "local", t, shape)
        self.launch.buffers.append(v)
        out = self._output(tuple(self.grid[n] for n in self.grid) + (self.launch.threads,), t)
        index = [var(n) for n in self.grid] + [self.tid()]
        if shape:
            k, inner = self.name("k"), scope.inside(loop=True)
            inner.add(Drawn(k, INT32, 0, shape[0] - 1, False))
            store = Stmt("store", {"buffer": v, "indices": [var(k)], "value": self.thread_expr(inner, t)})
            lines.append(self._for(k, int32(0), int32(shape[0]), [store], ("serial", "unroll", "vectorized")))
            load = ("load", t, v, [self.chip_index(scope, shape[0])])
        else:
            lines.append(Stmt("store", {"buffer": v, "indices": [], "value": self.thread_expr(scope, t)}))
            lines.append(Stmt("if", {"condition": self.condition(scope)}, [[Stmt("store", {"buffer": v, "indices": [],
                                                                                          "value": self.thread_expr(scope, t)})]]))  # fmt: skip
            load = ("load", t, v, [])
        lines.append(Stmt("store", {"buffer": out, "indices": index, "value": load}))

    def _thread_atomic(self, scope, lines):
        """By every thread; or, of what all threads agree on, once."""
        r = self.r
        t = TYPES[r.choice(("int32", "int32", "uint32", "int64", "float32"))]
        once = self.chance(0.3)
        out = self._output((r.choice((1, 3, 8)),), t)
        near = scope.outer if once else scope
        n = out.shape[0]
        index = int32(r.randrange(n)) if once or n == 1 else ("bin", INT32, "%", self.tid(), int32(n))
        value = constant(t, r.choice((1, 2, 3))) if once or t.is_float else ("cast", t, self.tid()) if t is not INT32 else self.tid()
        op = r.choice(("add", "add", "max") + (("or", "xor") if t.is_int else ()))
        if not once and n == 1 and value[0] == "const":
            return
        one = Stmt("atomic", {"op": op, "buffer": out, "indices": [index], "value": value, "compare": None, "result": None})
        if not once and self.chance(0.3):
            one = Stmt("if", {"condition": ("cmp", "<", self.tid(), int32(r.choice((5, 16, 33))))}, [[one]])
        lines.append(one)

    def _warp_statement(self, scope, lines, kind, t):
        r = self.r
        name = self.name("x")
        if kind == "shuffle":
            t = TYPES[r.choice(("int32", "float32", "uint32"))]
            width = r.choice((32, 32, 16, 8, 2))
            op = r.choice(("index", "up", "down", "xor"))
            lane = int32(r.randrange(width)) if self.chance(0.7) or op != "index" else ("bin", INT32, "%", self.tid(), int32(width))
            lines.append(Stmt("shuffle", {"op": op, "result": name, "dtype": t, "value": self.thread_expr(scope, t), "lane": lane, "width": width}))
            scope.add(Drawn(name, t, None, None, False))
        else:
            op = r.choice(("any", "all", "ballot", "block_any", "block_all", "block_count"))
            t = TYPES["uint32"] if op == "ballot" else INT32 if op == "block_count" else BOOL
            lines.append(Stmt("vote", {"op": op, "result": name, "dtype": t, "value": self.condition(scope)}))
            scope.add(Drawn(name, t, None, None, False))
        out = self._output(tuple(self.grid[n] for n in self.grid) + (self.launch.threads,), t)
        lines.append(Stmt("store", {"buffer": out, "indices": [var(n) for n in self.grid] + [self.tid()], "value": ("var", t, name)}))
