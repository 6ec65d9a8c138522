"""Draws launches around products: loops that bring operands, multiply, and do something beside it that a turn changes for the next."""
from draw_expr import Drawn, Scope, constant, int32, var
from nodes import Buffer, Region, Stmt, names_read
from scalars import BOOL, FLOAT32, INT32, TYPES, encode


def _binary(op, a, b, t=INT32):
    return ("bin", t, op, a, b)


def _whole(b):
    return Region(b, None, None)


class Products:
    """The part of the generator that draws matrix products in loops."""

    def products(self, scope, body):
        r = self.r
        self.bare = self.chance(0.5)
        if self.chance(0.2):
            return self.attention(scope, body)
        t = TYPES[r.choice(("float16", "float16", "float16", "bfloat16", "int8", "float8_e4m3fn"))]
        m = r.choice((64, 64, 64, 128, 16, 32)) * (self.launch.threads // 128 if self.chance(0.5) else 1)
        n, k = r.choice((16, 16, 32, 64, 24)), r.choice((16, 32, 64))
        if t.bits == 8:
            k = max(k, 32)
        if self.bare:  # what a GPU gives to warps of their own: tiles that TMA brings, and a matrix instruction of four warps
            t, m, n, k = TYPES[r.choice(("float16", "float16", "bfloat16"))], r.choice((64, 64, 128)), r.choice((16, 32, 64, 64)), r.choice((16, 32, 64))
        elif self.chance(0.04):  # more than the registers of its threads hold
            m, n = 128, r.choice((128, 256))
        ta, tb = not self.bare and self.chance(0.15), self.chance(0.3)
        self.sum_type = INT32 if t.is_int else FLOAT32
        turns = r.choice((1, 2, 3, 4))
        rows, columns, shift = m * max(1, list(self.grid.values())[0]), k * turns + r.choice((0, 0, k)), 0
        outer, again = self.name("k"), r.choice((1, 2, 3)) if self.chance(0.3) else 0
        first = var(list(self.grid)[0])
        moves = again > 1 and self.chance(0.5)
        if moves:  # another tile in each turn of the loop around
            first = _binary("+", first, _binary("*", var(outer), int32(list(self.grid.values())[0])))
            rows *= again
        if self.chance(0.1):  # tensors that the tiles reach beyond
            rows, columns, shift = r.choice((rows, 1, m - 1)), r.choice((1, k - 1, k + 3)), r.choice((0, -1, -k, -(k // 2), 3))
        ta, tb = self.chance(0.15), self.chance(0.3)
        self.sum_type = INT32 if t.is_int else FLOAT32
        a_of = self._brought((columns, rows) if ta else (rows, columns), t)
        b_of = self._brought((n, columns) if tb else (columns, n), t)
        x = self.name("k")
        begin = constant(INT32, 0 if self.bare else r.choice((0, 0, 0, 0, 1, -1)))
        a, a_at = self._slots((k, m) if ta else (m, k), t, "shared")
        b, b_at = self._slots((n, k) if tb else (k, n), t, "shared" if self.bare else r.choice(("shared",) * 6 + ("fragment",)))
        c = self.tile((m, n), self.sum_type, "fragment" if self.bare else r.choice(("fragment",) * 5 + ("shared",)))
        n0 = self.p.scalars[0][2]
        fewer = r.randint(1, 4)
        extent = r.choice((int32(turns),) * (16 if self.bare else 6) + (var("n0"), var("n0"), int32(1), int32(0)) + (_binary("-", var("n0"), int32(fewer)),) * 2)
        self.around, self.kept = [], {"c": c, "m": m, "n": n}
        near = scope.inside(loop=True)
        near.add(Drawn(x, INT32, begin[2], begin[2] + 7, True))

        def place_of_a(turn):
            place = [self.affine(first, m, 0), self._turn(turn, k, shift)]
            return place[::-1] if ta else place

        def place_of_b(turn):
            place = [self._turn(turn, k, shift), int32(0)]
            return place[::-1] if tb else place

        late, work = [], []
        for source, at, place in self._shuffled([(a_of, a_at, place_of_a), (b_of, b_at, place_of_b)]):
            if self.chance(0.04 if self.bare else 0.12):  # brought for the next turn
                self.around += self._bring(source, place(begin), at(begin))
                late += self._bring(source, place(_binary("+", var(x), int32(1))), at(_binary("+", var(x), int32(1))), ("operand of the next turn",))
            elif self.chance(0.05):
                self.around.append(Stmt("fill", {"to": _whole(at(var(x)).buffer), "value": constant(t, 1)}))
                late += self._bring(source, place(var(x)), at(var(x)), ("operand of the next turn",))
            else:
                work += self._bring(source, place(var(x)), at(var(x)), ("values before keys",) if source is b_of and not work else ())
        ends = len(work)
        clear = r.choice((None,) * 6 + (("cmp", "==", var(x), begin),) * 2 + (constant(BOOL, True), ("cmp", "==", _binary("%", var(x), int32(2)), int32(r.choice((0, 1))))))
        gemm = Stmt("gemm", {"a": a_at(var(x)), "b": b_at(var(x)), "c": _whole(c), "transpose_a": ta, "transpose_b": tb,
                             "policy": r.choice((None, None, "full_row", "full_col")), "clear": clear})  # fmt: skip
        if clear and clear[0] == "cmp":
            gemm.drawn("clear by a condition")
        work += self._cleared_in_a_branch(gemm, x) if clear is None and self.chance(0.12) else [gemm]
        work += late
        for _ in range(r.choice((0, 0, 1, 1, 2) if self.bare else (0, 1, 1, 2, 3, 4))):
            at = r.choice((0, ends, ends + 1, ends + 1, len(work)))
            names, weights = zip(*self.BESIDE)
            more = r.choices(names, weights)[0]
            if more in ("result", "store", "second", "rescaled", "again"):
                at = len(work)
            work[at:at] = getattr(self, "_beside_" + more)(near, x, (a_at(var(x)), b_at(var(x)), ta, tb)) or []
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
        fill, last = Stmt("fill", {"to": _whole(c), "value": constant(self.sum_type, r.choice((0, 0, 0, 1)))}), []
        if self.chance(0.12):
            fill, last = self._in_place(c)
        loop = self._product_loop(x, begin, extent, work)
        many = extent[2] if extent[0] == "const" else n0 if extent == var("n0") else n0 - fewer if extent[0] == "bin" else 2
        loop.drawn(*(["product in a loop of no turns"] if many == 0 else ["product in a loop of less than none"] if many < 0 else ["product in a loop of one turn"] if many == 1 else []))
        prologue = [s for s in self.around if moves and outer in names_read(s)]  # of a turn of the loop around
        body += [s for s in self.around if s not in prologue]
        for b_ in self.kept.get("ready", ()):
            self.wrote(b_)
        if again:
            inner = [fill, *prologue]
            if self.chance(0.3):
                inner.append(Stmt("if", {"condition": ("cmp", ">", var(outer), r.choice((var("n0"), int32(1))))}, [[Stmt(r.choice(("break", "continue")))]]))
            inner.append(loop)
            if moves or self.chance(0.6):
                inner += self._beside_store(scope, outer, None)
            if self.chance(0.3):
                inner += self.counted(_binary("+", var(outer), int32(1)), 6, "atomic of one thread behind a loop")
            if not moves and self.chance(0.3):
                inner.reverse()
                body.append(fill)
            around = self._for(outer, int32(0), int32(again), inner, ("serial", "serial", "pipelined", "unroll"))
            body.append(around.drawn("tiles in turn") if moves else around)
        else:
            body += [fill, loop]
        self.wrote(c)
        body += last
        self._planned(x, [a, b])
        if self.chance(0.35):
            self.epilogue(scope, body)
        for tile in (a, b):
            if self.chance(0.8) and tile in self.tiles:
                self.tiles.remove(tile)

    BESIDE = [("let", 2), ("rows", 3), ("index", 3), ("variable", 2), ("carried", 2), ("result", 3), ("store", 2), ("second", 2), ("operand", 1), ("jump", 2),
              ("rescaled", 2), ("again", 2), ("atomic", 2), ("alias", 2), ("slice", 2)]  # fmt: skip

    def _product_loop(self, x, begin, extent, work):
        if self.bare:
            options = f"stages={self.r.choice((2, 2, 3, 4))}"
            return Stmt("for", {"var": x, "dtype": INT32, "begin": begin, "extent": extent, "loop": "pipelined", "options": options}, [work])
        return self._for(x, begin, extent, work, ("pipelined", "pipelined", "pipelined", "serial", "unroll"))

    bare = False  # whether the launch has little else than its products

    PLANS = ("overlap no", "overlap yes", "epilogue whole", "epilogue chunks", "epilogue as_written", "epilogue straight", "not a loader",
             "work persistent blocks=1", "work persistent blocks=2", "work one_tile", "work one_tile blocks_per_multiprocessor=2",
             "work persistent blocks=2 reverse_odd_waves", "work stream_k blocks=2", "work stream_k blocks=3", "role compute all_tiles",
             "role compute tiles_in_turn", "role compute tiles_in_turn", "role compute iterations_in_turn", "fit none",
             "epilogue chunks_of_rows")  # fmt: skip

    def _planned(self, x, tiles):
        """Lines that a GPU's plan is to have: obeyed or refused, and of no meaning."""
        r = self.r
        if " plan(" in self.launch.extra or not self.chance(0.4 if self.bare else 0.06):
            return
        tile, slots = r.choice(tiles).name, r.choice((1, 2, 2, 3, 4, 5, 6))
        kinds = [[line for line in self.PLANS if line.startswith(word)] for word in ("overlap", "epilogue", "role", "not", "fit")]
        kinds.append([line for line in self.PLANS if line.startswith("work")] + [f"work split k={r.choice((2, 2, 3, 4))}",
                     f"work one_tile pairs={tile}", f"work persistent pairs={tile}", f"work persistent blocks=2 pairs={tile}"])  # fmt: skip
        kinds.append([f"order {how} of {x}" for how in ("overlapped", "made_beside", "skewed", "alternating")])
        kinds.append([f"ring {tile} slots={slots}{more}" for more in ("", "", "", " ahead", " clipped", " unclipped")])
        kinds.append([f"fit {way}={x}{more}" for way, more in (("wide_steps", " at_once=2"), ("half_steps", ""), ("half_steps", " threads=256"))])
        weights = (1, 2, 1, 0.3, 0.2, 4, 1, 3, 0.5)
        lines = []
        for _ in range(r.choice((1, 1, 1, 2, 2, 3))):
            at = r.choices(range(len(kinds)), [0 if taken else w for w, taken in zip(weights, (k is None for k in kinds))])[0]
            lines.append(r.choice(kinds[at]))
            kinds[at] = None
        self.launch.extra += f" plan({', '.join(chr(34) + line + chr(34) for line in lines)})"

    def attention(self, scope, body):
        """Products of two in a turn: the first is made the second's operand, whose sum is scaled by what the greatest of rows were."""
        r, t, self.sum_type = self.r, TYPES[self.r.choice(("float16", "float16", "bfloat16"))], FLOAT32
        m, n, d = r.choice((64, 64, 128) if self.bare else (64, 64, 128, 16, 32)), r.choice((16, 32, 64)), r.choice((16, 32, 64))
        n0, turns, x = self.p.scalars[0][2], r.choice((1, 2, 3, 4)), self.name("k")
        extent = r.choice((int32(turns),) * 4 + (var("n0"), _binary("-", var("n0"), int32(1))))
        first = var(list(self.grid)[0])
        q_of = self._brought((m * list(self.grid.values())[0] - r.choice((0, 0, 3)), d), t)
        rows = n * turns - r.choice((0, 0, 0, 1, n // 2))
        k_of, v_of = self._brought((rows, d), t), self._brought((rows, d), t)
        q = self.tile((m, d), t, "shared" if self.bare else r.choice(("shared", "shared", "shared", "fragment")))
        (k, k_at), (v, v_at) = self._slots((n, d), t, "shared"), self._slots((n, d), t, "shared")
        s, o = self.tile((m, n), FLOAT32, "fragment"), self.tile((m, d), FLOAT32, "fragment")
        p, total, row = self.tile((m, n), t, r.choice(("fragment", "fragment", "shared"))), self.tile((m,), FLOAT32, "fragment"), self.tile((m,), FLOAT32, "fragment")
        self.around, self.kept = [self.copy(Region(q_of, [self.affine(first, m, 0), int32(0)], q.shape), _whole(q))], {"c": o, "m": m, "n": d, "ready": []}
        self.around += [Stmt("fill", {"to": _whole(b), "value": constant(FLOAT32, 0)}) for b in (o, total)]
        near = scope.inside(loop=True)
        near.add(Drawn(x, INT32, 0, 7, True))
        clear = self.chance(0.5)

        def product(left, right, to, transposed, cleared):
            return Stmt("gemm", {"a": left, "b": right, "c": _whole(to), "transpose_a": False, "transpose_b": transposed, "policy": r.choice((None, "full_row")),
                                 "clear": constant(BOOL, True) if cleared else None})  # fmt: skip

        i, j = self.name("i"), self.name("i")
        at = [var(i), var(j)]
        load = ("load", FLOAT32, s, at)
        kept = r.choice((("cmp", "<=", _binary("+", _binary("*", var(x), int32(n)), at[1]), _binary("+", _binary("*", first, int32(m)), at[0])),
                         ("cmp", "<", _binary("+", _binary("*", var(x), int32(n)), at[1]), _binary("*", var("n0"), int32(r.choice((5, 16)))))))  # fmt: skip
        mask = [Stmt("map", {"vars": [i, j], "extents": [int32(m), int32(n)]}, [[Stmt("store", {"buffer": s, "indices": at, "value": ("select", FLOAT32, kept, load, constant(FLOAT32, -9))})]])]
        i, j = self.name("i"), self.name("i")
        number = ("cast", t, self.small(("cast", INT32, ("load", FLOAT32, s, [var(i), var(j)]))))
        soft = [Stmt("map", {"vars": [i, j], "extents": [int32(m), int32(n)]}, [[Stmt("store", {"buffer": p, "indices": [var(i), var(j)], "value": number})]])]
        scale = self._rescale(s, o)
        i, names = self.name("i"), scale[-1].bodies[0][0].value[4]
        sums = [Stmt("reduce", {"op": "sum", "source": _whole(p), "to": _whole(row), "dim": 1, "clear": True, "nan_propagate": False}),
                Stmt("map", {"vars": [i], "extents": [int32(m)]}, [[Stmt("store", {"buffer": total, "indices": [var(i)], "value": _binary("+", _binary("*", (
                    "load", FLOAT32, total, [var(i)]), ("load", FLOAT32, names[2], [var(i)]), FLOAT32), ("load", FLOAT32, row, [var(i)]), FLOAT32)})]])]  # fmt: skip
        bring_k, bring_v = self._bring(k_of, [self._turn(var(x), n, 0), int32(0)], k_at(var(x))), self._bring(v_of, [self._turn(var(x), n, 0), int32(0)], v_at(var(x)))
        middle = (mask if self.chance(0.6) else []) + scale[:-1] + r.choice((soft + scale[-1:], scale[-1:] + soft)) + (sums if self.chance(0.7) else [])
        work = [product(_whole(q), k_at(var(x)), s, True, clear)] + middle
        where = r.choice((0, 0, 1, len(work)))
        work[where:where] = bring_v
        if not clear:
            work.insert(0, Stmt("fill", {"to": _whole(s), "value": constant(FLOAT32, 0)}))
        at = r.choice((0, 0, len(bring_v))) if where == 0 and clear else 0
        work[at:at] = bring_k
        work.append(product(_whole(p), v_at(var(x)), o, False, False).drawn("attention"))
        for _ in range(r.choice((0, 0, 1, 1, 2))):
            more = r.choice(("let", "index", "variable", "atomic", "alias", "slice", "rows", "again"))
            work += getattr(self, "_beside_" + more)(near, x, None) or []
        body += self.around
        for b in self.kept["ready"]:
            self.wrote(b)
        body.append(self._product_loop(x, int32(0), extent, work))
        for b in (o, total, p, s):
            self.wrote(b)
        self._planned(x, [k, v, q, p])
        self.tiles = [b for b in self.tiles if b not in (q, k, v)]
        if self.chance(0.3):
            self.epilogue(scope, body)

    def _shuffled(self, found):
        return found[::-1] if self.chance(0.25) else found

    def _turn(self, turn, k, shift):
        """Where the tile of a turn begins."""
        return int32(turn[2] * k + shift) if turn[0] == "const" else self.affine(turn, k, shift)

    def _slots(self, shape, t, space):
        """A tile, or two or three of them that turns take in order, and the region of a turn."""
        if space != "shared" or not self.chance(0.05 if self.bare else 0.15):
            b = self.tile(shape, t, space)
            return b, lambda turn: _whole(b)
        count = self.r.choice((2, 2, 3))
        b = self.tile((count,) + shape, t, space)
        zeros = [int32(0)] * len(shape)
        return b, lambda turn: Region(b, [int32(turn[2] % count) if turn[0] == "const" else _binary("%", turn, int32(count))] + zeros, (1,) + shape)

    def _bring(self, source, place, to, kinds=()):
        """Statements that bring what begins there in a tensor to a tile: a copy, copies of parts, or code of points."""
        r, form = self.r, self.r.random() * (0.76 if self.bare else 1)
        b, lead, shape = to.buffer, [] if to.begin is None else to.begin[:1], to.buffer.shape[-2:]
        kinds += ("copy to a slot of several",) if lead else ()
        if form < 0.72:
            found = [self.copy(Region(source, place, shape), to)]
        elif form < 0.87:
            names = [self.name("i") for _ in shape]
            value = ("load", b.dtype, source, [self.sum_of(p, var(n)) for p, n in zip(place, names)])
            value = ("un", b.dtype, "neg", value) if b.dtype.is_signed and self.chance(0.3) else value
            store = Stmt("store", {"buffer": b, "indices": lead + [var(n) for n in names], "value": value})
            found, kinds = [Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]}, [[store]])], kinds + ("operand written by points",)
        else:
            d, parts = r.choice((0, 1)), []
            half = shape[d] // 2
            for at, extent in ((0, half), (half, shape[d] - half)):
                part = tuple(extent if e == d else n for e, n in enumerate(shape))
                parts.append(self.copy(Region(source, [self._further(p, at if e == d else 0) for e, p in enumerate(place)], part),
                                       Region(b, lead + [int32(at if e == d else 0) for e in range(2)], (1,) * len(lead) + part)))  # fmt: skip
            r.shuffle(parts)
            if self.chance(0.3):  # the rest is what it was
                parts.pop()
                self.around.append(Stmt("fill", {"to": _whole(b), "value": constant(b.dtype, r.choice((0, 1)))}))
            found, kinds = parts, kinds + (("copy of a part to a slot of several",) if lead else ("operand in parts",))
        found[0].drawn(*kinds)
        return found

    def _further(self, e, n):
        return int32(e[2] + n) if e[0] == "const" else ("bin", INT32, "+", e, int32(n)) if n else e

    def _cleared_in_a_branch(self, gemm, x):
        c = gemm.c.buffer
        condition = ("cmp", self.r.choice(("==", "!=")), _binary("%", var(x), int32(self.r.choice((2, 3)))), int32(0))
        if self.chance(0.5):
            return [Stmt("if", {"condition": condition}, [[Stmt("fill", {"to": _whole(c), "value": constant(c.dtype, self.r.choice((0, 0, 2)))})]]).drawn("clear in a branch"), gemm]
        other = Stmt("gemm", dict(gemm.fields, clear=constant(BOOL, True)))
        return [Stmt("if", {"condition": condition}, [[other], [gemm]]).drawn("clear in a branch")]

    def _in_place(self, c):
        """What begins as a part of a tensor that the result goes back to: (first, [last])."""
        grid = self.r.sample(list(self.grid.items()), 2)
        lead = self.chance(0.5)
        shape = (grid[0][1], grid[1][1]) + c.shape if lead else tuple(n * m for (_, n), m in zip(grid, c.shape))
        b = self._parameter([(None, n) for n in shape], c.dtype)
        self.p.inputs[b] = encode(c.dtype, self.numpy.integers(-4, 5, b.size).astype(c.dtype.carrier))
        self.targets.add(b)
        begin = [var(name) for name, _ in grid]
        begin = begin + [int32(0)] * 2 if lead else [self.affine(e, m, 0) for e, m in zip(begin, c.shape)]
        place = Region(b, begin, (1,) * (len(shape) - 2) + c.shape)
        return self.copy(place, _whole(c)).drawn("in place"), [self.copy(_whole(c), place)]

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
            return [Stmt("gemm", {"a": a, "b": b, "c": _whole(other), "transpose_a": ta, "transpose_b": tb, "policy": None,
                                  "clear": None})]  # fmt: skip
        t = a.buffer.dtype
        if c.shape[1] % 16 or t.bits == 8:
            return []
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

        scale = self._rescale(c, out) if self.chance(0.5) else []
        return [*scale, self.copy(Region(g, [self.affine(var(x), c.shape[1], 0), int32(0)], v.shape), _whole(v)), self._over(named),
                Stmt("gemm", {"a": _whole(p), "b": _whole(v), "c": _whole(out), "transpose_a": False, "transpose_b": False,
                              "policy": r.choice((None, "full_row")), "clear": None})]  # fmt: skip

    def _beside_operand(self, scope, x, operands):
        """An operand that is changed in place."""
        to = self.r.choice(operands[:2])
        b, lead, shape = to.buffer, [] if to.begin is None else to.begin[:1], to.buffer.shape[-2:]
        names = [self.name("i") for _ in shape]
        index = lead + [var(n) for n in names]
        e = ("cast", b.dtype, _binary("%", _binary("+", ("cast", INT32, ("load", b.dtype, b, index)), var(x)), int32(3)))
        store = Stmt("store", {"buffer": b, "indices": index, "value": e})
        return [Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]}, [[store]])]

    def _rescale(self, of, what):
        """Rows of one tile are scaled by what the greatest of another's were and are."""
        r, t, rows = self.r, of.dtype, (of.shape[0],)
        before = self._fresh(rows, t, r.choice(("fragment", "fragment", "shared")), r.choice((-9, 0)))
        top, scale = (self.tile(rows, t, r.choice(("fragment", "fragment", "shared"))) for _ in range(2))
        self.kept.setdefault("ready", []).extend((top, scale))
        i, row, place = self.name("i"), self.name("i"), [self.name("i") for _ in what.shape]

        def at(b, name=i):
            return ("load", t, b, [var(name)])

        factors = r.sample((-1, 1, 2) if t.is_int else (-1, 1, 2, 0.5), 2)
        index = [var(n) for n in place]
        lines = [Stmt("store", {"buffer": scale, "indices": [var(i)], "value": ("select", t, ("cmp", "<", at(before), at(top)), *(constant(t, f) for f in factors))})]
        keep = Stmt("store", {"buffer": before, "indices": [var(i)], "value": _binary("max", at(before), at(top), t)})
        maps = [Stmt("map", {"vars": [i], "extents": [int32(rows[0])]}, [lines])]
        if self.chance(0.5):
            lines.append(keep)
        else:
            keep.fields.update(indices=[var(row)], value=_binary("max", at(before, row), at(top, row), t))
            maps.append(Stmt("map", {"vars": [row], "extents": [int32(rows[0])]}, [[keep]]))
        scaled = Stmt("store", {"buffer": what, "indices": index, "value": _binary("*", ("load", t, what, index), at(scale, place[0]), t)})
        return [Stmt("reduce", {"op": "max", "source": _whole(of), "to": _whole(top), "dim": 1, "clear": True, "nan_propagate": False}).drawn("rescaled between products"),
                *maps, Stmt("map", {"vars": place, "extents": [int32(n) for n in what.shape]}, [[scaled]])]  # fmt: skip

    def _beside_rescaled(self, scope, x, _):
        return self._rescale(self.kept["c"], self.kept["c"])

    def _beside_again(self, scope, x, _):
        """The result of a turn goes to memory and is read there, in this turn or in the next."""
        r, c = self.r, self.kept["c"]
        begin, shape = [var(n) for n in self.grid] + [_binary("+", var(x), int32(1))], tuple(self.grid.values()) + (6,)
        out = self._output(shape + c.shape, c.dtype)
        if out in self.p.params:
            self.p.inputs[out] = encode(c.dtype, self.numpy.integers(-2, 3, out.size).astype(c.dtype.carrier))
        back = begin[:-1] + [r.choice((begin[-1], begin[-1], var(x)))]
        zeros, extent = [int32(0)] * 2, (1,) * len(begin) + c.shape
        store = self.copy(_whole(c), Region(out, begin + zeros, extent)).drawn("stored and read again")
        if self.chance(0.4):
            use = [self._over(lambda names: [self._add(names, ("load", c.dtype, out, back + [var(n) for n in names]))])]
        else:
            d = self.tile(c.shape, c.dtype, r.choice(("fragment", "shared")))
            self.tiles.remove(d)
            use = [self.copy(Region(out, back + zeros, extent), _whole(d)), self._over(lambda names: [self._add(names, ("load", c.dtype, d, [var(n) for n in names]))])]
        return use + [store] if back[-1] == var(x) and self.chance(0.4) else [store] + use

    def _beside_atomic(self, scope, x, _):
        """One thread counts, and writes what it found."""
        return self.counted(_binary("+", var(x), int32(1)), 6, "atomic of one thread in a product's loop")

    def _beside_alias(self, scope, x, _):
        """A name for what a variable was, which has changed where the name is used."""
        r, g = self.r, self._numbers((100,))
        v, y = Buffer(self.name("v"), "local", INT32, ()), self.name("x")
        self.launch.buffers.append(v)
        load, dim = ("load", INT32, v, []), r.choice((0, 1))
        self.around.append(Stmt("store", {"buffer": v, "indices": [], "value": int32(r.choice((0, 3)))}))
        named = Stmt("let", {"name": y, "dtype": INT32, "value": r.choice((load, load, _binary("+", load, int32(2))))}).drawn("alias of what changes")
        change = Stmt("store", {"buffer": v, "indices": [], "value": _binary("+", load, r.choice((int32(5), var(x))))}).drawn("variable carried through a loop")
        use = self._over(lambda names: [self._add(names, ("load", self.sum_type, g, [_binary("+", var(y), var(names[dim]))]))])
        return [named, change, use]

    def _beside_slice(self, scope, x, _):
        """A vector that a slice with a name gives, whose index has changed since."""
        r, dim = self.r, self.r.choice((0, 1))
        n = self.kept["c"].shape[dim]
        g, v = self._numbers((r.choice((4, 8)), n)), Buffer(self.name("v"), "local", INT32, ())
        self.launch.buffers.append(v)
        load, d = ("load", INT32, v, []), self.tile((n,), self.sum_type, r.choice(("fragment", "shared")))
        self.kept.setdefault("ready", []).append(d)
        self.around.append(Stmt("store", {"buffer": v, "indices": [], "value": int32(r.choice((0, 1)))}))
        row = self.slice_of(g, [load, int32(0)], (1, n))
        change = Stmt("store", {"buffer": v, "indices": [], "value": _binary("+", load, int32(1))})
        use = self._over(lambda names: [self._add(names, ("load", self.sum_type, d, [var(names[dim])]))])
        return [row, change, self.copy(row.region, _whole(d)), use]

    def _beside_jump(self, scope, x, _):
        if self.chance(0.4):
            return []
        return [Stmt("if", {"condition": ("cmp", self.r.choice(("==", ">", "<")), var(x), self.r.choice((var("n0"), int32(1), int32(2))))},
                     [[Stmt(self.r.choice(("break", "continue")))]])]  # fmt: skip
