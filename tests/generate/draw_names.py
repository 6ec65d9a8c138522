"""Draws what names hold: variables that loops carry, names of what changes, slices with a name; tiles that reach beyond their
tensors; and code of threads behind loops."""
from draw_expr import Drawn, constant, int32, var
from nodes import Region, Stmt
from scalars import INT32, TYPES


def _binary(op, a, b, t=INT32):
    return ("bin", t, op, a, b)


class Names:
    """The part of the generator that draws these."""

    # ---- names

    def slice_of(self, b, indices, extent):
        """A statement that gives a slice a name: its indices are read there. `region` is what the name stands for."""
        name, names = self.name("row"), [self.name("x") for _ in indices]
        region = Region(b, [var(n) for n in names], extent, name)
        return Stmt("slice", {"name": name, "names": names, "indices": list(indices), "region": region}).drawn("slice with a name")

    def _counter(self, scope, body):
        """An int32 variable that all threads agree on."""
        known = [d for d in scope.all() if d.buffer is not None and d.type is INT32 and d.low is None and d.uniform]
        if known and self.chance(0.5):
            return self.r.choice(known).buffer
        v = self.new_variable(scope, body, INT32, self.r.choice((0, 0, 1, -1, 3)))
        scope.add(Drawn(v.name, INT32, None, None, True, v))
        return v

    def _changed(self, v, by):
        load = ("load", INT32, v, [])
        e = _binary(self.r.choice(("+", "+", "-")), load, by)
        e = _binary("%", e, int32(11)) if self.chance(0.3) else e
        return Stmt("store", {"buffer": v, "indices": [], "value": e})

    def _around(self, scope, body, work, k):
        """Once, in a branch, or in a loop."""
        form = self.r.random()
        if form < 0.55:
            begin, extent = self.bounds()
            if extent[0] == "const" and begin[0] == "const" and extent[2] < 1:
                extent = int32(2)
            body.append(self._for(k, begin, extent, work, ("serial", "serial", "pipelined", "unroll")))
        elif form < 0.75:
            body += [Stmt("let", {"name": k, "dtype": INT32, "value": int32(self.r.choice((1, 2)))}),
                     Stmt("if", {"condition": self.condition(scope, uniform=True)}, [work])]  # fmt: skip
        else:
            body += [Stmt("let", {"name": k, "dtype": INT32, "value": int32(self.r.choice((1, 2)))})] + work
        return form < 0.55

    def alias(self, scope, body):
        """A name for what a variable was, used after the variable has changed."""
        r, k, y = self.r, self.name("k"), self.name("x")
        v, b = self._counter(scope, body), self.tile(t=INT32 if self.chance(0.7) else None)
        body.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(b.dtype, 0)}))
        self.wrote(b)
        load, names = ("load", INT32, v, []), [self.name("i") for _ in b.shape]
        named = Stmt("let", {"name": y, "dtype": INT32, "value": r.choice((load, load, _binary("+", load, int32(1)), _binary("*", load, var(k))))})
        change = self._changed(v, r.choice((int32(1), int32(3), var(k))))
        index = [var(n) for n in names]
        value = _binary(r.choice("+-"), var(y), r.choice((load, var(names[-1]))))
        value = value if b.dtype is INT32 else ("cast", b.dtype, self.small(value))
        before = ("load", b.dtype, b, index)
        value = value if b.dtype.is_bool else ("bin", b.dtype, "+", before, value) if b.dtype.is_int else value
        use = Stmt("map", {"vars": names, "extents": [int32(n) for n in b.shape]}, [[Stmt("store", {"buffer": b, "indices": index, "value": value})]])
        if self._around(scope, body, [named.drawn("alias of what changes"), change, use], k):
            change.drawn("variable carried through a loop")

    def named_slice(self, scope, body):
        """A slice, or an element, with a name that is used after its index has changed."""
        r, k = self.r, self.name("k")
        source, v = r.choice(self.sources()), self._counter(scope, body)
        load = ("load", INT32, v, [])
        if not source.shape:
            return
        self.read_here = self.read_here | {source}
        one = r.randrange(len(source.shape))
        if self.chance(0.3):  # an element
            t, y = source.dtype, self.name("x")
            out = self._output(tuple(self.grid.values()), t)
            at = [load if d == one else int32(r.randrange(max(1, n))) for d, n in enumerate(source.shape)]
            work = [Stmt("let", {"name": y, "dtype": t, "value": ("load", t, source, at)}).drawn("element with a name"), self._changed(v, int32(1)),
                    Stmt("store", {"buffer": out, "indices": [var(n) for n in self.grid], "value": ("var", t, y)})]  # fmt: skip
            self._around(scope, body, work, k)
            return
        extent = tuple(r.choice((1, 1, 2, 4)) if d == one else r.choice((1, min(n, 16) or 1, 8)) for d, n in enumerate(source.shape))
        at = [load if d == one else int32(r.choice((0, 0, 1))) for d, n in enumerate(source.shape)]
        row, b = self.slice_of(source, at, extent), self.tile(extent, source.dtype if self.chance(0.7) else None)
        body.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(b.dtype, 0)}))
        self.wrote(b)
        out = self._output(tuple(self.grid.values()) + extent, b.dtype)
        store = self.copy(Region(b, None, None), Region(out, [var(n) for n in self.grid] + [int32(0)] * len(extent), (1, 1) + extent))
        work = [row, self._changed(v, r.choice((int32(1), int32(2)))), self.copy(row.region, Region(b, None, None)), store]
        if self.chance(0.3):
            work.insert(3, self._changed(v, int32(1)))
        self._around(scope, body, work, k)

    # ---- tiles that reach beyond their tensors

    def _edge(self, n, e, whole):
        """Where a tile of e elements begins beside a dimension of n."""
        if whole:
            return self.r.choice((-e, -e - 1, n, n + 1, n + e))
        return self.r.choice((0, 0, 1 - e, -1, -(e // 2), n - 1, n - e, 1))

    def edges(self, scope, body):
        r = self.r
        t = TYPES[r.choice(("float32", "float16", "int8", "int32"))] if self.chance(0.6) else self.any_type()
        shape = tuple(r.choice((1, 1, 2, 3, 5, 8, 16)) for _ in range(r.choice((1, 2, 2, 2, 3))))
        extent = tuple(r.choice((n, n + 1, 2 * n, 8, 8, 16)) for n in shape[:-1]) + (r.choice((8, 16, 16, 32, 64, shape[-1] + 1)),)
        if extent[-1] * extent[0] * (extent[1] if len(extent) == 3 else 1) > 2048:
            return
        b = self.tile(extent, t if self.chance(0.8) else None, r.choice(("shared", "shared", "fragment")))
        outside = r.randrange(len(shape)) if self.chance(0.25) else None
        begin = [self._edge(n, e, d == outside) for d, (n, e) in enumerate(zip(shape, extent))]
        kinds = ["tile larger than its tensor"] * any(e > n for e, n in zip(extent, shape)) + ["dimension of one element"] * (1 in shape)
        kinds += ["tile wholly outside"] if outside is not None else ["tile partly outside before"] * any(x < 0 for x in begin) + [
            "tile partly outside behind"] * any(x + e > n for x, e, n in zip(begin, extent, shape))  # fmt: skip
        source = self._parameter([(None, n) for n in shape], t)
        self.read_here = self.read_here | {source}
        at = [int32(x) for x in begin]
        k, d = self.name("k"), r.randrange(len(shape))
        loop = self.chance(0.35)
        if loop or self.chance(0.4):
            by = var(k) if loop else var(r.choice(list(self.grid)))
            at[d] = self.affine(by, r.choice((1, extent[d], extent[d] // 2 or 1, -1)), begin[d])
        work = [self.copy(Region(source, at, extent), Region(b, None, None)).drawn(*kinds)]
        to_shape = tuple(r.choice((n, n, e, 1)) for n, e in zip(shape, extent))
        out = self._output(tuple(self.grid.values()) + to_shape, b.dtype)
        to = [int32(self._edge(n, e, self.chance(0.05))) for n, e in zip(to_shape, extent)]
        work.append(self.copy(Region(b, None, None), Region(out, [var(n) for n in self.grid] + to, (1, 1) + extent)))
        if loop:
            begin_of, turns = self.bounds()
            body.append(self._for(k, begin_of, turns, work, ("pipelined", "pipelined", "serial", "unroll")))
            return
        body += work
        self.wrote(b)

    # ---- threads behind loops

    def counted(self, at, count, kind):
        """One thread adds to an element of its block's, and what it found goes to element `at` of `count`."""
        r, t, x = self.r, TYPES[self.r.choice(("int32", "int32", "uint32", "int64"))], self.name("x")
        place, grid = [var(n) for n in self.grid], tuple(self.grid.values())
        counter, found = self._output(grid, t), self._output(grid + (count,), t)
        if counter in self.p.workspaces:
            self.p.workspaces.remove(counter)
            counter.space = "param"
            self.p.params.append(counter)
        op = r.choice(("add", "add", "add", "max", "exchange"))
        value = constant(t, r.choice((1, 2, 5))) if self.chance(0.6) else self.converted(at, t)
        lines = [Stmt("atomic", {"op": op, "buffer": counter, "indices": place, "value": value, "compare": None, "result": x}).drawn(kind)]
        used = ("var", t, x)
        used = _binary(r.choice("+-*"), used, constant(t, 3), t) if self.chance(0.5) else used
        store = Stmt("store", {"buffer": found, "indices": place + [at], "value": used}).drawn("value of an atomic used")
        if self.chance(0.3):
            store = Stmt("if", {"condition": ("cmp", r.choice(("<", ">", "!=")), ("var", t, x), constant(t, 2))}, [[store]])
        thread = r.choice((0, 0, 1, 31, 32, self.launch.threads - 1)) % self.launch.threads
        return [Stmt("if", {"condition": ("cmp", "==", self.tid(), int32(thread))}, [lines + [store]])]

    def epilogue(self, scope, body):
        """Code of threads that counts, and reads what tiles hold, with the number of each."""
        r = self.r
        for _ in range(r.choice((1, 1, 2))):
            form = r.random()
            place, grid = [var(n) for n in self.grid], tuple(self.grid.values())
            if form < 0.4:
                body += self.counted(int32(0), 1, "atomic of one thread behind a loop")
            elif form < 0.6:  # what one thread has found, for all of them
                x, s = self.name("x"), self.tile((1,), INT32, "shared")
                self.tiles.remove(s)
                counter = self._parameter([(None, n) for n in grid], INT32)
                self.targets.add(counter)
                atomic = Stmt("atomic", {"op": "add", "buffer": counter, "indices": place, "value": int32(r.choice((1, 4))), "compare": None, "result": x})
                keep = Stmt("store", {"buffer": s, "indices": [int32(0)], "value": ("var", INT32, x)}).drawn("value of an atomic used")
                body.append(Stmt("if", {"condition": ("cmp", "==", self.tid(), int32(r.choice((0, 31))))}, [[atomic.drawn("atomic of one thread behind a loop"), keep]]))
                out = self._output(grid + (self.launch.threads,), INT32)
                value = _binary("+", ("load", INT32, s, [int32(0)]), self.tid())
                body.append(Stmt("store", {"buffer": out, "indices": place + [self.tid()], "value": value}))
            else:
                found = self.ready_tiles()
                if not found:
                    return
                b = r.choice(found)
                out = self._output(grid + (self.launch.threads,), b.dtype)
                one = r.randrange(len(b.shape))
                index = [_binary("%", self.affine(self.tid(), r.choice((1, 1, 3)), r.choice((0, 0, 1))) if d == one or self.chance(0.5) else int32(r.randrange(n)), int32(n))
                         for d, n in enumerate(b.shape)]  # fmt: skip
                body.append(Stmt("store", {"buffer": out, "indices": place + [self.tid()], "value": ("load", b.dtype, b, index)}).drawn("threads behind a loop"))
