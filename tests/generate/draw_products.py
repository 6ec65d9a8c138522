"""Draws launches around products: loops that bring operands, multiply, and do something beside it that a turn changes for the next."""
from draw_expr import Drawn, Scope, constant, int32, var
from nodes import Buffer, Region, Stmt
from scalars import BOOL, FLOAT32, INT32, TYPES


def _binary(op, a, b, t=INT32):
    return ("bin", t, op, a, b)


def _whole(b):
    return Region(b, None, None)


class Products:
    """The part of the generator that draws matrix products in loops."""

    def products(self, scope, body):
        r = self.r
        t = TYPES[r.choice(("float16", "float16", "float16", "bfloat16", "int8", "float8_e4m3fn"))]
        m = r.choice((64, 64, 64, 128, 16, 32)) * (self.launch.threads // 128 if self.chance(0.5) else 1)
        n, k = r.choice((16, 16, 32, 64, 24)), r.choice((16, 32, 64))
        if t.bits == 8:
            k = max(k, 32)
        if self.chance(0.04):  # more than the registers of its threads hold
            m, n = 128, r.choice((128, 256))
        ta, tb = self.chance(0.15), self.chance(0.3)
        self.sum_type = INT32 if t.is_int else FLOAT32
        turns = r.choice((1, 2, 3, 4))
        rows, columns = m * max(1, list(self.grid.values())[0]), k * turns + r.choice((0, 0, k))
        a_of = self._brought((columns, rows) if ta else (rows, columns), t)
        b_of = self._brought((n, columns) if tb else (columns, n), t)
        a = self.tile((k, m) if ta else (m, k), t, "shared")
        b = self.tile((n, k) if tb else (k, n), t, r.choice(("shared",) * 6 + ("fragment",)))
        c = self.tile((m, n), self.sum_type, r.choice(("fragment",) * 5 + ("shared",)))
        x, bx = self.name("k"), var(list(self.grid)[0])
        begin = constant(INT32, r.choice((0, 0, 0, 0, 1, -1)))
        extent = r.choice((int32(turns), int32(turns), int32(turns), var("n0")))
        self.around, self.kept = [], {"c": c, "m": m, "n": n}
        near = scope.inside(loop=True)
        near.add(Drawn(x, INT32, begin[2], begin[2] + 7, True))
        place = [self.affine(bx, m, 0), self.affine(var(x), k, 0)]
        work = [self.copy(Region(a_of, place[::-1] if ta else place, a.shape), _whole(a)),
                self.copy(Region(b_of, [int32(0), place[1]] if tb else [place[1], int32(0)], b.shape), _whole(b))]  # fmt: skip
        clear = r.choice((None, None, None, None, ("cmp", "==", var(x), begin), constant(BOOL, True)))
        work.append(Stmt("gemm", {"a": _whole(a), "b": _whole(b), "c": _whole(c), "transpose_a": ta, "transpose_b": tb,
                                  "policy": r.choice((None, None, "full_row", "full_col")), "clear": clear}))  # fmt: skip
        for _ in range(r.choice((0, 1, 1, 2, 3, 4))):
            at = r.choice((0, 2, 3, 3, len(work)))
            more = r.choices((self._beside_let, self._beside_rows, self._beside_index, self._beside_variable, self._beside_carried, self._beside_result,
                              self._beside_store, self._beside_second, self._beside_operand, self._beside_jump), (2, 3, 3, 2, 2, 3, 2, 2, 1, 2))[0]  # fmt: skip
            if more is self._beside_result or more is self._beside_store or more is self._beside_second:
                at = len(work)
            work[at:at] = more(near, x, (a, b, ta, tb)) or []
        if self.chance(0.12):  # the bounds stand in memory, which the loop changes
            bounds = self.tile((2,), INT32, "shared")
            self.around += [Stmt("store", {"buffer": bounds, "indices": [int32(i)], "value": e}) for i, e in enumerate((begin, extent))]
            self.wrote(bounds)
            one = r.choice((0, 1))
            step = ("load", INT32, bounds, [int32(one)])
            work.insert(r.randint(0, len(work)), Stmt("store", {"buffer": bounds, "indices": [int32(one)], "value": _binary(r.choice("+-"), step, int32(1))}))
            low, extent = ("load", INT32, bounds, [int32(0)]), ("load", INT32, bounds, [int32(1)])
            if clear is not None and clear[0] == "cmp":
                low = begin
            begin = low
        fill = Stmt("fill", {"to": _whole(c), "value": constant(self.sum_type, r.choice((0, 0, 0, 1)))})
        loop = self._for(x, begin, extent, work, ("pipelined", "pipelined", "pipelined", "pipelined", "serial", "unroll"))
        body += self.around
        for b_ in self.kept.get("ready", ()):
            self.wrote(b_)
        if self.chance(0.3):
            outer, inner = self.name("k"), [fill]
            if self.chance(0.3):
                inner.append(Stmt("if", {"condition": ("cmp", ">", var(outer), r.choice((var("n0"), int32(1))))}, [[Stmt(r.choice(("break", "continue")))]]))
            inner.append(loop)
            if self.chance(0.6):
                inner += self._beside_store(scope, outer, None)
            if self.chance(0.3):
                inner.reverse()
                body.append(fill)
            body.append(self._for(outer, int32(0), int32(r.choice((1, 2, 3))), inner, ("serial", "serial", "pipelined", "unroll")))
        else:
            body += [fill, loop]
        self.wrote(c)
        for tile in (a, b):
            if self.chance(0.8) and tile in self.tiles:
                self.tiles.remove(tile)

    def _brought(self, shape, t):
        found = [p for p in self.sources() if p.dtype is t and p.shape == shape]
        return self.r.choice(found) if found and self.chance(0.4) else self._parameter([(None, n) for n in shape], t)

    def _sum(self, e):
        """As an element of the sum."""
        return self.converted(e, self.sum_type)

    def _add(self, names, e):
        c = self.kept["c"]
        index = [var(n) for n in names]
        return Stmt("store", {"buffer": c, "indices": index, "value": _binary(self.r.choice("+-"), ("load", c.dtype, c, index), e, c.dtype)})

    def _over(self, lines_of, shape=None):
        names = [self.name("i") for _ in shape or self.kept["c"].shape]
        return Stmt("map", {"vars": names, "extents": [int32(n) for n in shape or self.kept["c"].shape]}, [lines_of(names)])

    def _numbers(self, shape, t=None):
        """A global tensor of numbers that may be added."""
        t = t or self.sum_type
        found = [p for p in self.sources() if p.dtype is t and len(p.shape) == len(shape)]
        return self.r.choice(found) if found and self.chance(0.5) else self._parameter([(None, n) for n in shape], t)

    def _fresh(self, shape, t, space, value=0):
        """A tile that holds something before the loop."""
        b = self.tile(shape, t, space)
        self.around.append(Stmt("fill", {"to": _whole(b), "value": constant(t, value)}))
        self.wrote(b)
        return b

    def _beside_let(self, scope, x, _):
        r, g, name = self.r, self._numbers((40,)), self.name("x")
        at = [self.affine(var(x), r.choice((1, 2, 3)), r.choice((0, 0, 1)))]
        lines = [Stmt("let", {"name": name, "dtype": self.sum_type, "value": ("load", self.sum_type, g, at)})]
        return lines + [self._over(lambda names: [self._add(names, ("var", self.sum_type, name))])]

    def _beside_rows(self, scope, x, _):
        """A vector that every turn brings, and the sum of it and the result."""
        r, dim = self.r, self.r.choice((0, 1))
        n = self.kept["c"].shape[dim]
        g = self._numbers((4, n) if self.chance(0.5) else (4 * n,))
        at = [var(x), int32(0)] if len(g.shape) == 2 else [self.affine(var(x), n, 0)]
        d = self.tile((n,), self.sum_type, r.choice(("fragment", "shared")))
        extent = (1, n) if len(g.shape) == 2 else (n,)
        bring = self.copy(Region(g, at, extent), _whole(d))
        if self.chance(0.3):
            bring = self._over(lambda names: [Stmt("store", {"buffer": d, "indices": [var(names[0])], "value": (
                "load", self.sum_type, g, at[:-1] + [_binary("+", at[-1], var(names[0]))])})], (n,))  # fmt: skip
        self.kept.setdefault("ready", []).append(d)
        use = self._over(lambda names: [self._add(names, ("load", self.sum_type, d, [var(names[dim])]))])
        lines = [bring, use]
        if self.chance(0.3):
            lines.reverse()  # what the turn before has brought
            self.around.append(Stmt("fill", {"to": _whole(d), "value": constant(self.sum_type, 1)}))
        return lines

    def _beside_index(self, scope, x, _):
        """Elements found by indices that the turns change."""
        r, dim = self.r, self.r.choice((0, 1))
        n, g = self.kept["c"].shape[dim], self._numbers((100,))
        index = self._fresh((n,), INT32, r.choice(("shared", "shared", "fragment")), r.choice((0, 3)))
        change = self._over(lambda names: [Stmt("store", {"buffer": index, "indices": [var(names[0])], "value": _binary(
            "+", _binary("*", var(x), int32(r.choice((1, 5, 16)))), _binary("-", int32(n - 1), var(names[0])))})], (n,))  # fmt: skip
        use = self._over(lambda names: [self._add(names, ("load", self.sum_type, g, [("load", INT32, index, [var(names[dim])])]))])
        return [change, use] if self.chance(0.7) else [use, change]

    def _beside_variable(self, scope, x, _):
        """A variable of each thread that goes on from turn to turn, in an index."""
        r, dim, g = self.r, self.r.choice((0, 1)), self._numbers((100,))
        v = Buffer(self.name("v"), "local", INT32, ())
        self.launch.buffers.append(v)
        load = ("load", INT32, v, [])
        self.around.append(Stmt("store", {"buffer": v, "indices": [], "value": int32(r.choice((0, 2)))}))
        change = Stmt("store", {"buffer": v, "indices": [], "value": _binary("+", load, r.choice((int32(3), var(x))))})
        use = self._over(lambda names: [self._add(names, ("load", self.sum_type, g, [_binary("+", load, var(names[dim]))]))])
        return [change, use] if self.chance(0.6) else [use, change]

    def _beside_carried(self, scope, x, _):
        """A tile that is written in a turn and read elsewhere in the next."""
        r, dim = self.r, self.r.choice((0, 1))
        n = self.kept["c"].shape[dim]
        h = self._fresh((n,), self.sum_type, r.choice(("shared", "shared", "fragment")), r.choice((0, 1)))
        read = [("load", self.sum_type, h, [_binary("%", _binary("+", var("?"), int32(r.choice((0, 1, 5)))), int32(n))])]

        def at(name):
            index = read[0][3][0]
            return ("load", self.sum_type, h, [index[:3] + (index[3][:3] + (var(name), index[3][4]), index[4])])

        use = self._over(lambda names: [self._add(names, at(names[dim]))])
        change = self._over(lambda names: [Stmt("store", {"buffer": h, "indices": [var(names[0])], "value": self._sum(
            _binary("%", _binary("+", var(names[0]), var(x)), int32(7)))})], (n,))  # fmt: skip
        return [use, change]

    def _beside_result(self, scope, x, _):
        """A reduction of the result, and what is made of it."""
        r, c, dim = self.r, self.kept["c"], self.r.choice((0, 1))
        shape = (c.shape[1 - dim],)
        clear = self.chance(0.6)
        to = self._fresh(shape, c.dtype, "fragment") if not clear else self.tile(shape, c.dtype, r.choice(("fragment", "fragment", "shared")))
        self.kept.setdefault("ready", []).append(to)
        one = Stmt("reduce", {"op": r.choice(("max", "min", "sum", "absmax")), "source": _whole(c), "to": _whole(to), "dim": dim, "clear": clear,
                              "nan_propagate": False})  # fmt: skip
        if self.chance(0.5):
            return [one]
        small = self.small(("cast", INT32, ("load", c.dtype, to, [var("?")])))

        def put(e, name):
            if isinstance(e, tuple) and e and isinstance(e[0], str):
                return var(name) if e == var("?") else tuple(put(part, name) for part in e)
            return [put(part, name) for part in e] if isinstance(e, list) else e

        return [one, self._over(lambda names: [self._add(names, self._sum(put(small, names[1 - dim])))])]

    def _beside_store(self, scope, x, _):
        """The result so far, of every turn."""
        r, c = self.r, self.kept["c"]
        t = self.sum_type if self.chance(0.5) or self.sum_type is INT32 else TYPES["float16"]
        begin, shape = [var(n) for n in self.grid], tuple(self.grid.values())
        if self.chance(0.7):
            begin, shape = begin + [("bin", INT32, "+", var(x), int32(1))], shape + (6,)
        out = self._output(shape + c.shape, t)
        to = Region(out, begin + [int32(0), int32(0)], (1,) * len(begin) + c.shape)
        if self.chance(0.3):
            down = self.tile(c.shape, t, "shared")
            self.kept.setdefault("ready", []).append(down)
            self.tiles.remove(down)
            return [self.copy(_whole(c), _whole(down)), self.copy(_whole(down), to)]
        return [self.copy(_whole(c), to)]

    def _beside_second(self, scope, x, operands):
        """A second product: of the same operand, or of what the first gave."""
        r, c, (a, b, ta, tb) = self.r, self.kept["c"], operands
        if self.chance(0.4):
            other = self._fresh(c.shape, c.dtype, "fragment")
            return [Stmt("gemm", {"a": _whole(a), "b": _whole(b), "c": _whole(other), "transpose_a": ta, "transpose_b": tb, "policy": None,
                                  "clear": None})]  # fmt: skip
        if c.shape[1] % 16 or a.dtype.bits == 8:
            return []
        t = a.dtype
        p, v = self.tile(c.shape, t, r.choice(("fragment", "fragment", "shared"))), self.tile((c.shape[1], 16), t, "shared")
        self.tiles.remove(p)
        self.tiles.remove(v)
        out = self._fresh((c.shape[0], 16), c.dtype, "fragment")
        g = self._brought((c.shape[1] * 4, 16), t)
        lines = [Stmt("store", {"buffer": p, "indices": [var("?0"), var("?1")], "value": ("cast", t, self.small(("cast", INT32, ("load", c.dtype, c, [var("?0"), var("?1")]))))})]

        def named(names):
            def put(e):
                if e in (var("?0"), var("?1")):
                    return var(names[int(e[2][1])])
                if isinstance(e, tuple) and e and isinstance(e[0], str):
                    return tuple(put(part) for part in e)
                return [put(part) for part in e] if isinstance(e, list) else e

            f = lines[0].fields
            return [Stmt("store", {"buffer": p, "indices": [put(e) for e in f["indices"]], "value": put(f["value"])})]

        return [self.copy(Region(g, [self.affine(var(x), c.shape[1], 0), int32(0)], v.shape), _whole(v)), self._over(named),
                Stmt("gemm", {"a": _whole(p), "b": _whole(v), "c": _whole(out), "transpose_a": False, "transpose_b": False,
                              "policy": r.choice((None, "full_row")), "clear": None})]  # fmt: skip

    def _beside_operand(self, scope, x, operands):
        """An operand that is changed in place."""
        b = self.r.choice(operands[:2])
        names = [self.name("i") for _ in b.shape]
        index = [var(n) for n in names]
        e = ("cast", b.dtype, _binary("%", _binary("+", ("cast", INT32, ("load", b.dtype, b, index)), var(x)), int32(3)))
        store = Stmt("store", {"buffer": b, "indices": index, "value": e})
        return [Stmt("map", {"vars": names, "extents": [int32(n) for n in b.shape]}, [[store]])]

    def _beside_jump(self, scope, x, _):
        if self.chance(0.4):
            return []
        return [Stmt("if", {"condition": ("cmp", self.r.choice(("==", ">", "<")), var(x), self.r.choice((var("n0"), int32(1), int32(2))))},
                     [[Stmt(self.r.choice(("break", "continue")))]])]  # fmt: skip
