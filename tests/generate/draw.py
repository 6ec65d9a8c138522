"""Draws programs: every kind of statement within every kind, as far as docs/language.md allows it.

What a program may not do (races, reads of what was never written, indices that leave a tile) is avoided here where that is
easy and found by the model where it is not: prune.py then takes the statement out."""
import random

import numpy as np
from draw_expr import Drawn, Exprs, Scope, constant, int32, var
from draw_maps import Maps
from draw_names import Names
from draw_products import Products
from draw_roles import draw_roles
from draw_threads import Hazards
from nodes import Buffer, Launch, Program, Region, Stmt
from scalars import BOOL, FLOAT32, GIVEN_AS_BYTES, INT32, INT64, TYPES, encode, round_to

INTS = ["int32"] * 6 + ["int64", "uint32", "uint8", "int8", "int16", "uint16", "uint64"]
FLOATS = ["float32"] * 4 + ["float16", "bfloat16", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"]
RARE = ["bool", "int4", "uint4", "float4_e2m1fn", *GIVEN_AS_BYTES]


class Generator(Maps, Hazards, Products, Names, Exprs):
    """One program of one seed."""

    def __init__(self, seed, size=1.0):
        self.r, self.seed, self.size = random.Random(seed), seed, size
        self.numpy = np.random.default_rng(seed)
        self.count, self.operands = 0, set()

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, p):
        return self.r.random() < p

    # ---- the program

    def program(self):
        r = self.r
        self.palette = [TYPES[r.choice(INTS)], TYPES[r.choice(FLOATS)], INT32, TYPES[r.choice(INTS + FLOATS)]]
        if self.chance(0.16):
            self.palette.append(TYPES[r.choice(RARE)])
        self.sizes = [r.choice((1, 2, 3, 4, 5, 7, 8, 8, 16, 16, 16, 17, 32, 32, 33)) for _ in range(3)]
        p = self.p = Program(self.seed, [], [("n0", INT32, r.choice((0, 0, 1, 1, 2, 3, 4, 5)))], [], [])
        if self.chance(0.3):
            t = TYPES[r.choice(("int64", "uint32", "uint64", "float32", "uint8", "int16", "bool"))]
            p.scalars.append((self.name("n"), t, self.number(t)))
        if self.chance(0.3):
            t = TYPES[r.choice(("int32", "int32", "int32", "int8", "int8", "int16", "int64", "uint8", "uint32"))]
            p.symbols.append(("M", t, r.choice((0, 1, 2, 5, 15, 16, 17, 31, 33, 40, 64) + ((100, 127) * 4 if t.bits == 8 else ()))))
            self._parameter((("M", p.symbols[0][2]), (None, r.choice(self.sizes))))
            if self.chance(0.7):
                self._parameter((self.host_sum("M", *p.symbols[0][1:]), (None, r.choice(self.sizes[:1] + [1]))))
        for _ in range(r.choice((1, 2, 2, 3))):
            self._parameter([(None, self.extent()) for _ in range(r.choice((1, 2, 2, 2, 3)))])
        if self.chance(0.6):
            p.options["contract"] = False
        if self.chance(0.1):
            p.options["tf32"] = True
        for _ in range(r.choice((1, 1, 1, 1, 2, 2, 3))):
            p.launches.append(self._launch())
        for b in p.params:
            if b not in p.inputs:
                p.inputs[b] = self._elements(b)
        return p

    def host_sum(self, name, t, value):
        """(text, value) of a sum that a call computes, which is refused where it leaves the type."""
        factor, more = self.r.choice((1, 2, 3, 5)), self.r.choice((0, 0, 1, 3, 7))
        self.must_fit(t, value * factor + more)
        return f"{name} * {factor} + {more}", value * factor + more

    def must_fit(self, t, value):
        if not t.min <= value <= t.max:
            self.p.refused = "TW4012"

    def extent(self):
        r = self.r
        return max(1, r.choice(self.sizes) * r.choice((1, 1, 1, 2, 3)) + r.choice((0, 0, 0, 0, 1, -1, 5)))

    def any_type(self):
        return self.r.choice(self.palette)

    def _parameter(self, dims, t=None):
        b = Buffer(self.name("A"), "param", t or self.any_type(), tuple(v for _, v in dims), tuple(n or v for n, v in dims))
        if self.chance(0.1) and b.dtype.is_int:
            b.fill = self.r.choice((1, -1 if b.dtype.is_signed else 2, 7))
        self.p.params.append(b)
        self._strided(b)
        return b

    def _strided(self, b):
        """Now and then rows lie apart, dimensions in another order, or both; by numbers, or as the call has it."""
        if len(b.shape) < 2 or b.dtype.is_packed or not b.size or not self.chance(0.04 if self.bare else 0.08):
            return
        order, step, strides = list(range(len(b.shape))), 1, {}
        if self.chance(0.4):
            self.r.shuffle(order)
        for d in reversed(order):
            strides[d] = step
            step = step * b.shape[d] + self.r.choice((0, 0, 1, 3, 4, 8))
        b.strides = tuple(strides[d] for d in range(len(b.shape)))
        if self.chance(0.25):  # a dimension of one element says nothing of its stride
            names = [self.name("S") if n > 1 and (s > 1 or self.chance(0.3)) else str(s) for n, s in zip(b.shape, b.strides)]
            self.p.symbols += [(n, INT32, s) for n, s in zip(names, b.strides) if n.startswith("S")]
            b.named_strides = tuple(names)

    def number(self, t):
        """A Python number of the type, small or extreme."""
        r = self.r
        if t.is_bool:
            return r.random() < 0.5
        if t.is_int:
            small = r.randint(max(t.min, -4), min(t.max, 9))
            return r.choice((t.min, t.max, t.max - 1, t.min + 1, t.max // 2 + 1, t.max // 2)) if self.chance(0.2) else small
        if t.bits >= 16 and self.chance(0.05):
            return r.choice((float("inf"), float("-inf"), float("nan"), t.largest, 2.0 ** (t.lowest - t.mantissa), 2.0**t.lowest, -0.0))
        return float(r.choice((0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, 1.5)))

    def _elements(self, b):
        """The elements of a parameter, as memory holds them."""
        t, g, n = b.dtype, self.numpy, b.size
        if t.is_bool:
            return g.integers(0, 2, n).astype(np.uint8)
        if t.is_int:
            v = g.integers(max(t.min, -8), min(t.max, 9), n)
            if self.chance(0.25):
                wild = g.choice(np.array([t.min, t.max, t.max - 1, t.min + 1, 0, 1], object), n)
                v = np.where(g.random(n) < 0.3, wild, v.astype(object))
            return np.array([int(x) for x in v], dtype=object).astype(t.storage) if v.dtype == object else v.astype(t.storage)
        v = g.integers(-4, 5, n).astype(np.float64)
        if self.chance(0.2):
            v = v / 4
        if self.chance(0.1):
            wild = g.choice([np.inf, -np.inf, np.nan, t.largest, -t.largest, 2.0 ** (t.lowest - t.mantissa), 1e30, 3.7, -0.1], n)
            v = np.where(g.random(n) < 0.2, wild, v)
        return encode(t, round_to(t, v))

    # ---- a launch

    def _launch(self):
        r, p = self.r, self.p
        number = len(p.launches)
        gx, gy = r.choice((1, 1, 2, 2, 3)), r.choice((1, 1, 2, 3))
        self.grid = {f"bx{number}": gx, f"by{number}": gy}
        grid = [(n, str(v), v) for n, v in self.grid.items()]
        products = self.chance(self.PRODUCTS)
        if any(n == "M" for n, _, _ in p.symbols) and self.chance(0.7 if products else 0.4):
            tile, factor = r.choice(self.sizes), r.choice((1, 1, 1, 3))
            name, t, value = p.symbols[0]
            whole = value * factor + tile - 1
            if 1 <= whole // tile <= 4:
                self.must_fit(t, whole)
                grid[1] = (f"by{number}", f"(M * {factor} + {tile - 1}) // {tile}", whole // tile)
                self.grid[f"by{number}"] = whole // tile
        elif self.chance(0.08):
            name, t, value = r.choice([s for s in p.scalars if s[1].is_int and s[1].bits < 64])
            more = r.choice((0, 1, 2, -1, -5) if t.is_signed else (0, 1, 2))
            self.must_fit(t, value + more)
            value = min(max(value + more, 1), 2)
            grid[1] = (f"by{number}", f"min(max({name} + {more}, 1), 2)", value)
            self.grid[f"by{number}"] = value
        threads = r.choice((128, 128, 128, 256) if products else (32, 32, 64, 64, 64, 96, 128, 128, 128, 256))
        self.launch = Launch(f"l{number}", grid, threads, [], [], self._extra(grid), () if products else self._across(threads))
        self.tiles, self.ready, self.partitions, self.locals = [], set(), {}, []
        self.targets, self.sinks = set(), []
        scope = Scope()
        for n, v in self.grid.items():
            scope.add(Drawn(n, INT32, 0, v - 1, True))
        for n, t, v in p.scalars:
            scope.add(Drawn(n, t, v, v, True) if t.is_int else Drawn(n, t, None, None, True))
        for n, t, v in p.symbols:
            scope.add(Drawn(n, t, v, v, True))
        self.budget = int(r.choice((1, 2, 3, 4, 6, 8)) * self.size)
        body = self.launch.body
        if products:
            self.products(scope, body)
            self.bare = False
        else:
            self._reads_at_first(scope, body)
            self.statements(scope, body, depth=0)
        self._results(scope, body)
        if self.chance(0.12):
            self.thread_code(scope, body, last=True)
        return self.launch

    def _across(self, threads):
        """Threads along y and z."""
        if not self.chance(0.2):
            return ()
        along = self.r.choice((2, 4, 8, threads // 16, threads))
        return (along,) if self.chance(0.6) or threads // along < 2 else (along, 2)

    def _extra(self, grid):
        """What changes no result."""
        r, words = self.r, ""
        whole = [[n for n in (1, 2, 3, 4) if value % n == 0] for _, _, value in grid]  # a call's too, if it divides
        if self.chance(0.2):
            x, y = (r.choice(n) for n in whole)
            if 1 < x * y <= 8:
                words += f" cluster({x}, {y})"
        if self.chance(0.05):
            words += f" min_blocks({r.choice((1, 2))})"
        return words + (f" swizzle({r.choice((2, 3, 10))}, {r.choice(('row', 'column'))})" if self.chance(0.1) else "")

    def _reads_at_first(self, scope, body):
        for _ in range(self.r.choice((1, 2, 2, 3))):
            self.r.choice((self.load_tile, self.load_tile, self.map_into_new, self.fill_new))(scope, body)

    def _results(self, scope, body):
        """Every tile goes to an output."""
        for t in list(self.tiles):
            if t in self.ready and self.chance(0.85):
                self.store_tile(scope, body, t)
        for b in self.locals:
            if b in self.ready and self.chance(0.8):
                self._store_local(body, b)

    def _store_local(self, body, b):
        """A variable of each thread, into an output of all threads."""
        order = list(self.grid.items())
        threads = self.launch.threads
        out = self._output(tuple(n for _, n in order) + (threads,), b.dtype)
        index = [var(n) for n, _ in order] + [self.tid()]
        value = ("load", b.dtype, b, [constant(INT32, self.r.randrange(b.shape[0]))] if b.shape else [])
        body.append(Stmt("store", {"buffer": out, "indices": index, "value": value}))

    # ---- buffers

    def shape(self):
        r = self.r
        while True:
            s = tuple(r.choice(self.sizes) for _ in range(r.choice((1, 1, 2, 2, 2, 2, 3))))
            if np.prod(s) <= 2048:
                return s

    def tile(self, shape=None, t=None, space=None):
        r = self.r
        b = Buffer(self.name("t"), space or r.choice(("shared", "shared", "fragment", "fragment")), t or self.any_type(), shape or self.shape())
        if b.space == "shared" and not self.bare and self.chance(0.05):
            b.layout = r.choice(("linear", "swizzled")) if len(b.shape) == 2 else "linear"
        self.launch.buffers.append(b)
        self.tiles.append(b)
        if b.space == "shared" and not self.bare and not b.dtype.is_packed and not b.dtype.is_bool and not b.dtype.name.startswith("float6") and self.chance(0.12):
            self._view(b)
        return b

    def _view(self, b):
        r = self.r
        same = [t for t in TYPES.values() if not t.is_packed and not t.is_bool and not t.name.startswith("float6") and (b.size * b.dtype.bytes) % t.bytes == 0]
        t = r.choice([t for t in same if t.bits == b.dtype.bits] if self.chance(0.7) else same)
        n = b.size * b.dtype.bytes // t.bytes
        width = r.choice([w for w in (1, 2, 3, 4, 8, 16, n) if n % w == 0])
        shape = r.choice([(n,), (n // width, width), (width, n // width)])
        v = Buffer(self.name("w"), b.space, t, shape, view=b)
        self.launch.buffers.append(v)
        self.tiles.append(v)

    def readable(self, b):
        return b in self.ready or b.view is not None and b.root in self.ready

    def wrote(self, b):
        """All of the buffer has been written."""
        if b.view is not None:
            if b.size * b.dtype.bytes == b.root.size * b.root.dtype.bytes:
                self.ready.add(b.root)
                self.ready.update(v for v in self.tiles if v.view is b.root)
        self.ready.add(b)
        self.ready.update(v for v in self.tiles if v.view is b)

    def ready_tiles(self, rank=None, t=None):
        return [b for b in self.tiles if self.readable(b) and (rank is None or len(b.shape) == rank) and (t is None or b.dtype is t)]

    def _output(self, shape, t, declared=None):
        b = Buffer(self.name("O"), "param", t, shape, declared)
        if self.chance(0.12):  # a workspace of the program's own, for the launches that follow
            b.space = "global"
            self.p.workspaces.append(b)
        else:
            self.p.params.append(b)
            self._strided(b)
        self.targets.add(b)
        return b

    def block_place(self, shape, t):
        """A global buffer that this launch writes, and where the tile of a block begins in it: [expressions]."""
        r, order = self.r, list(self.grid.items())
        again = [b for b, (_, s) in self.partitions.items() if s == shape and b.dtype is t]
        if again and self.chance(0.3):
            b = r.choice(again)
            return b, self.partitions[b][0]
        if len(shape) in (1, 2) and self.chance(0.45):
            return self._ragged(shape, t, order)
        if self.chance(0.5):
            order.reverse()
        out = self._output(tuple(n for _, n in order) + shape, t)
        begin = [var(n) for n, _ in order] + [constant(INT32, 0)] * len(shape)
        self.partitions[out] = (begin, shape)
        return out, begin

    def _ragged(self, shape, t, order):
        """Blocks side by side in a tensor that need not hold all of them; or a parameter, in place."""
        r = self.r
        if len(shape) == 1:
            order = [order[0]] if order[1][1] == 1 else [order[1]] if order[0][1] == 1 else None
        if order is None:
            out = self._output((self.grid[list(self.grid)[0]], self.grid[list(self.grid)[1]]) + shape, t)
            begin = [var(n) for n in self.grid] + [constant(INT32, 0)]
            self.partitions[out] = (begin, shape)
            return out, begin
        if self.chance(0.5):
            order = order[::-1]
        begin, extents = [], []
        for (n, count), width in zip(order, shape):
            shift = r.choice((0, 0, 0, 1, -1, 2, -3))
            begin.append(self.affine(var(n), width, shift))
            extents.append(max(1, count * width + r.choice((0, 0, -1, -3, 4)) + shift))
        old = [b for b in self.p.params if len(b.shape) == len(shape) and b not in self.targets and b.dtype is t and b not in self.read_here]
        out = r.choice(old) if old and self.chance(0.4) else self._output(tuple(extents), t)
        self.targets.add(out)
        self.partitions[out] = (begin, shape)
        return out, begin

    # ---- statements of the block

    read_here = frozenset()

    def statements(self, scope, body, depth):
        """Adds statements until the budget of this level is spent."""
        count = self.r.randint(1, 4) if depth else self.budget
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.statement(scope, body, depth)

    PRODUCTS = 0.15  # of the launches

    KINDS = [("map_into_new", 5), ("update_map", 7), ("load_tile", 6), ("copy_tiles", 4), ("store_tile", 3), ("fill_new", 1), ("refill", 2),
             ("gemm", 3), ("reduce", 5), ("scan", 3), ("atomic_map", 3), ("loop", 7), ("while_loop", 1), ("branch", 3), ("jump", 3),
             ("thread_code", 3), ("let", 2), ("variable", 2), ("facts", 1), ("accumulate_map", 3), ("meeting_map", 2), ("copy_combine", 1), ("roles", 2), ("async_copy", 2), ("reducer", 1),
             ("global_map", 3), ("pipeline", 4), ("hazards", 5), ("patches", 1), ("edges", 3), ("alias", 2), ("named_slice", 2), ("epilogue", 1)]  # fmt: skip

    def statement(self, scope, body, depth):
        names, weights = zip(*self.KINDS)
        kind = self.r.choices(names, weights)[0]
        if kind in ("loop", "while_loop", "branch") and depth >= 3:
            kind = "update_map"
        if kind in ("loop", "while_loop", "branch"):
            getattr(self, kind)(scope, body, depth)
        else:
            getattr(self, kind)(scope, body)

    def load_tile(self, scope, body):
        """copy of a part of a global tensor, wherever it may lie."""
        source = self.r.choice(self.sources())
        rank = len(source.shape)
        b = self.tile_for_loop(scope) if self.chance(0.5) else None
        b = b or self.tile(t=source.dtype if self.chance(0.5) else None)
        shape = [n for n in b.shape if n != 1]
        if len(shape) > rank:
            return self.map_store(scope, body, b)
        body.append(self.copy(self.box(scope, source, shape), Region(b, None, None)))
        self.wrote(b)

    def tile_for_loop(self, scope):
        return self.r.choice(self.tiles) if self.tiles and self.chance(0.3) else None

    def sources(self):
        """Global tensors that this launch does not write."""
        found = [b for b in self.p.params + self.p.workspaces if b not in self.targets]
        return found or [self._parameter([(None, self.extent()), (None, self.extent())])]

    def box(self, scope, b, shape):
        """A region of a global tensor with these extents other than 1, in order."""
        self.read_here = self.read_here | {b}
        free = len(b.shape) - len(shape)
        ones = set(self.r.sample(range(len(b.shape)), free))
        extent, rest = [], list(shape)
        for d in range(len(b.shape)):
            extent.append(1 if d in ones else rest.pop(0))
        return Region(b, [self.global_index(scope, n, e) for n, e in zip(b.shape, extent)], tuple(extent))

    def copy(self, a, b, combine=None):
        return Stmt("copy", {"source": a, "to": b, "combine": combine})

    def copy_tiles(self, scope, body):
        found = self.ready_tiles()
        if not found:
            return
        a = self.r.choice(found)
        halves = [d for d, n in enumerate(a.shape) if n > 1]
        if halves and self.chance(0.15):  # from one part of a tile to another
            d = self.r.choice(halves)
            extent = self.r.randint(1, a.shape[d] // 2)
            first, second = (tuple(int32(at if e == d else 0) for e in range(len(a.shape))) for at in (0, a.shape[d] - extent))
            shape = tuple(extent if e == d else n for e, n in enumerate(a.shape))
            if self.chance(0.5):
                first, second = second, first
            body.append(self.copy(Region(a, list(first), shape), Region(a, list(second), shape)))
            return
        same = [b for b in self.tiles if b.root is not a.root and [n for n in b.shape if n != 1] == [n for n in a.shape if n != 1]]
        b = self.r.choice(same) if same and self.chance(0.5) else self.tile(shape=a.shape)
        if self.chance(0.25) and b in self.ready and len(a.shape) == len(b.shape):
            extent = [self.r.randint(1, min(m, n)) for m, n in zip(a.shape, b.shape)]
            body.append(self.copy(Region(a, [self.part_index(scope, n - e) for n, e in zip(a.shape, extent)], tuple(extent)),
                                  Region(b, [self.part_index(scope, n - e) for n, e in zip(b.shape, extent)], tuple(extent))))  # fmt: skip
            return
        body.append(self.copy(Region(a, None, None), Region(b, None, None)))
        self.wrote(b)

    def store_tile(self, scope, body, a=None):
        found = self.ready_tiles()
        if not found:
            return
        a = a or self.r.choice(found)
        out, begin = self.block_place(a.shape, a.dtype if self.chance(0.7) else self.any_type())
        if self.chance(0.5):
            extent = (1,) * (len(out.shape) - len(a.shape)) + a.shape
            body.append(self.copy(Region(a, None, None), Region(out, begin, extent)))
            return
        names = [self.name("i") for _ in a.shape]
        lead = len(out.shape) - len(a.shape)
        index = begin[:lead] + [self.sum_of(b, var(n)) for b, n in zip(begin[lead:], names)]
        value = self.converted(("load", a.dtype, a, [var(n) for n in names]), out.dtype)
        store = Stmt("store", {"buffer": out, "indices": index, "value": value})
        body.append(Stmt("map", {"vars": names, "extents": [constant(INT32, n) for n in a.shape]}, [[store]]))

    def fill_new(self, scope, body):
        b = self.tile()
        body.append(Stmt("fill", {"to": Region(b, None, None), "value": self.expr(scope, b.dtype, 1, uniform=True)}))
        self.wrote(b)

    def refill(self, scope, body):
        if not self.tiles:
            return
        b = self.r.choice(self.tiles)
        region = Region(b, None, None)
        if b in self.ready and self.chance(0.3):
            extent = tuple(self.r.randint(1, n) for n in b.shape)
            region = Region(b, [self.part_index(scope, n - e) for n, e in zip(b.shape, extent)], extent)
        body.append(Stmt("fill", {"to": region, "value": constant(b.dtype, self.number(b.dtype))}))
        if region.begin is None:
            self.wrote(b)

    def gemm(self, scope, body):
        r = self.r
        kind = r.choice(("float16", "float16", "bfloat16", "bfloat16", "float32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float64"))
        t = TYPES[kind]
        result = INT32 if t.is_int else t if kind == "float64" else TYPES[r.choice(("float32", "float32", "float32", "float16"))]
        m, n, k = (r.choice((16, 16, 32, 64, 8, 17) if self.chance(0.3) else (16, 32, 64)) for _ in range(3))
        if m * n > 2048:
            n = 16
        ta, tb = self.chance(0.3), self.chance(0.3)
        a, b = self.operand((k, m) if ta else (m, k), t, scope, body), self.operand((n, k) if tb else (k, n), t, scope, body)
        found = [c for c in self.ready_tiles(2, result) if c.shape == (m, n) and c.view is None]
        clear = None
        if found and self.chance(0.5):
            c = r.choice(found)
        else:
            c = self.tile((m, n), result, r.choice(("fragment", "fragment", "shared")))
            if self.chance(0.3):
                clear = constant(BOOL, True)
            else:
                body.append(Stmt("fill", {"to": Region(c, None, None), "value": constant(result, r.choice((0, 0, 1)))}))
        fields = {"a": Region(a, None, None), "b": Region(b, None, None), "c": Region(c, None, None), "transpose_a": ta, "transpose_b": tb,
                  "policy": r.choice((None, None, "full_row", "full_col")), "clear": clear}  # fmt: skip
        one = Stmt("gemm", fields)
        if self.chance(0.35):
            k = self.name("k")
            begin, extent = self.bounds()
            inner = [one]
            if self.chance(0.6):  # operands of their own in every turn
                staged = self.r.choice((a, b))
                source = [s for s in self.sources() if len(s.shape) >= 2]
                if source and t.is_float and t.bits >= 16 or t.is_int:
                    near = scope.inside()
                    near.add(Drawn(k, INT32, -4, 8, True))
                    if source:
                        inner.insert(0, self.copy(self.box(near, r.choice(source), list(staged.shape) if 1 not in staged.shape else []),
                                                  Region(staged, None, None)))  # fmt: skip
            if self.chance(0.5) and clear is None:
                fields["clear"] = ("cmp", "==", var(k), begin)
            if self.chance(0.4):
                self.reduce(scope, inner, c)
            body.append(self._for(k, begin, extent, inner))
        else:
            body.append(one)
        self.wrote(c)

    def operand(self, shape, t, scope, body):
        """A shared tile of small numbers."""
        found = [b for b in self.ready_tiles(2, t) if b.shape == shape and b.view is None and b in self.operands]
        if found and self.chance(0.4):
            return self.r.choice(found)
        b = self.tile(shape, t, self.r.choice(("shared", "shared", "shared", "fragment")))
        names = [self.name("i") for _ in shape]
        inner = scope.inside()
        for n, e in zip(names, shape):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        number = self.expr(inner, INT32, 2)
        value = ("cast", t, ("bin", INT32, "%", number, constant(INT32, self.r.choice((3, 4, 5))))) if not t.is_float else \
            ("cast", t, ("bin", INT32, "-", ("bin", INT32, "%", number, constant(INT32, 5)), constant(INT32, 2)))  # fmt: skip
        store = Stmt("store", {"buffer": b, "indices": [var(n) for n in names], "value": value})
        body.append(Stmt("map", {"vars": names, "extents": [constant(INT32, n) for n in shape]}, [[store]]))
        self.wrote(b)
        self.operands.add(b)
        return b

    def reduce(self, scope, body, a=None):
        r = self.r
        found = [b for b in self.ready_tiles() if not b.dtype.is_packed and not b.dtype.is_bool]
        if not found:
            return
        a = a or r.choice(found)
        dim = r.randrange(len(a.shape))
        source = self.part_of(scope, a) if self.chance(0.25) else Region(a, None, None)
        extent = source.extent or a.shape
        shape = tuple(1 if d == dim else n for d, n in enumerate(extent))
        if len(a.shape) > 1 and self.chance(0.6) and (source.begin is None or 1 not in extent):
            shape = shape[:dim] + shape[dim + 1 :]
        t = a.dtype if self.chance(0.7) else self.any_type()
        if t.is_packed or t.is_bool:
            t = a.dtype
        op = r.choice(("sum", "sum", "max", "max", "min", "abssum", "absmax") + (() if t.is_float or a.dtype.is_float else ("bitand", "bitor", "bitxor")))
        old = [b for b in self.tiles if b.shape == shape and b.dtype is t and b.root is not a.root]
        b = r.choice(old) if old and self.chance(0.5) else self.tile(shape, t)
        clear = self.chance(0.6)
        if not clear and b not in self.ready:
            body.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(t, self.number(t))}))
        nan = op in ("max", "min", "absmax") and t.is_float and self.chance(0.2)
        to = Region(b, None, None)
        into = [d for d, n in enumerate(a.shape) if d != dim and n > 1]
        if source.begin is None and t is a.dtype and into and self.chance(0.1):  # to another part of the same tile
            d = r.choice(into)
            n = r.randint(1, a.shape[d] // 2)
            extent = tuple(n if e == d else m for e, m in enumerate(a.shape))
            source = Region(a, [int32(0)] * len(extent), extent)
            to = Region(a, [int32(a.shape[e] - n if e == d else r.randrange(m) if e == dim else 0) for e, m in enumerate(a.shape)],
                        tuple(1 if e == dim else m for e, m in enumerate(extent)))  # fmt: skip
        body.append(Stmt("reduce", {"op": op, "source": source, "to": to, "dim": dim, "clear": clear, "nan_propagate": nan}))
        self.wrote(b) if to.begin is None else None

    def part_of(self, scope, b):
        extent = tuple(self.r.choice((n, n, self.r.randint(1, n), 1)) for n in b.shape)
        return Region(b, [self.part_index(scope, n - e) for n, e in zip(b.shape, extent)], extent)

    def scan(self, scope, body):
        r = self.r
        found = [b for b in self.ready_tiles() if not b.dtype.is_packed and not b.dtype.is_bool and b.dtype.bits >= 16]
        if not found:
            return
        a = r.choice(found)
        source = self.part_of(scope, a) if self.chance(0.2) else Region(a, None, None)
        if self.chance(0.25):
            to = source
        else:
            shape = source.extent or a.shape
            old = [b for b in self.tiles if b.shape == shape and b.dtype is a.dtype and b.root is not a.root]
            to = Region(r.choice(old) if old and self.chance(0.4) else self.tile(shape, a.dtype), None, None)
        body.append(Stmt("scan", {"op": r.choice(("sum", "sum", "max")), "source": source, "to": to,
                                  "dim": r.randrange(len(a.shape)), "reverse": self.chance(0.3)}))  # fmt: skip
        if to.begin is None:
            self.wrote(to.buffer)

    def patches(self, scope, body):
        """A tile of the patch matrix of an image."""
        r, t = self.r, self.any_type()
        if t.is_packed or t.is_bool:
            t = INT32
        shape = (r.choice((1, 2, 3)), r.choice((3, 5, 8)), r.choice((3, 4, 9)), r.choice((1, 2, 3, 4, 8)))
        found = [b for b in self.sources() if len(b.shape) == 4 and b.fill is None and b.dtype.bits >= 8 and not b.dtype.is_bool]
        image = r.choice(found) if found and self.chance(0.5) else self._parameter([(None, n) for n in shape], t)
        image.fill = None
        b = self.tile((r.choice((1, 4, 8, 16)), r.choice((1, 8, 9, 16, 32))), image.dtype if self.chance(0.7) else self.any_type())
        fields = {"row_block": self.global_index(scope, 4), "column_block": self.global_index(scope, 3), "kernel": r.choice((1, 2, 3)),
                  "stride": r.choice((1, 1, 2)), "dilation": r.choice((1, 1, 2)), "pad": r.choice((0, 1, 2))}  # fmt: skip
        self.read_here = self.read_here | {image}
        copy = self.copy(Region(image, None, None), Region(b, None, None))
        copy.fields["im2col"] = fields
        body.append(copy)
        self.wrote(b)

    def copy_combine(self, scope, body):
        found = [b for b in self.ready_tiles() if b.dtype.name in ("int32", "uint32", "int64", "float32")]
        if not found:
            return
        a = self.r.choice(found)
        same = [b for b in found if b.shape == a.shape and b.root is not a.root and b.space == "shared" and b.dtype is a.dtype]
        if same and self.chance(0.5):
            body.append(self.copy(Region(a, None, None), Region(self.r.choice(same), None, None), self.r.choice(("add", "max", "min"))))
            return
        out, begin = self.block_place(a.shape, a.dtype)
        body.append(self.copy(Region(a, None, None), Region(out, begin, (1,) * (len(out.shape) - len(a.shape)) + a.shape),
                              self.r.choice(("add", "max", "min"))))  # fmt: skip

    # ---- control

    def bounds(self):
        """(begin, extent) of a loop that every thread takes alike."""
        r = self.r
        begin = constant(INT32, r.choice((0, 0, 0, 0, 1, -2, 3)))
        if self.chance(0.06):  # less than none, which only the call knows
            return begin, ("bin", INT32, "-", var("n0"), constant(INT32, r.choice((1, 3, 6))))
        extent = r.choice((constant(INT32, r.choice((0, 1, 2, 2, 3, 3, 4, 5))), constant(INT32, r.choice((1, 2, 3, 4))), var("n0")))
        if self.chance(0.15):
            name = r.choice(list(self.grid))
            extent = ("bin", INT32, "+", var(name), constant(INT32, r.choice((0, 1, 2))))
        return begin, extent

    def _for(self, name, begin, extent, inner, kinds=None):
        r = self.r
        loop = r.choice(kinds or ("serial", "serial", "serial", "unroll", "unroll", "pipelined", "pipelined", "pipelined", "vectorized"))
        if loop in ("vectorized", "unroll") and extent[0] != "const":
            loop = r.choice(("serial", "unroll")) if loop == "unroll" else "serial"
        options = {"pipelined": f"stages={r.choice((0, 1, 2, 2, 3, 3, 4))}", "unroll": r.choice(("", "", "", "factor=2"))}.get(loop, "")
        return Stmt("for", {"var": name, "dtype": INT32, "begin": begin, "extent": extent, "loop": loop, "options": options}, [inner])

    @staticmethod
    def turns(extent):
        return extent[2] if extent[0] == "const" else 0

    def loop(self, scope, body, depth):
        name, (begin, extent) = self.name("k"), self.bounds()
        inner, near = [], scope.inside(loop=True)
        low = begin[2]
        near.add(Drawn(name, INT32, low, low + 7, True))
        before = set(self.ready)
        targets = set(self.partitions)
        self.statements(near, inner, depth + 1)
        if self.chance(0.3) and inner:
            self.jump(near, inner)
        if self.turns(extent) < 1 or self._jumps(inner):
            self.ready &= before
        if inner:
            body.append(self._for(name, begin, extent, inner))

    @staticmethod
    def _jumps(body):
        from nodes import walk

        return any(s.kind in ("break", "continue", "return") for s, _ in walk(body))

    def while_loop(self, scope, body, depth):
        v = self.new_variable(scope, body, INT32, 0)
        near, inner = scope.inside(loop=True), []
        before = set(self.ready)
        load = ("load", INT32, v, [])
        inner.append(Stmt("store", {"buffer": v, "indices": [], "value": ("bin", INT32, "+", load, constant(INT32, self.r.choice((1, 1, 2))))}))
        near.add(Drawn(v.name, INT32, 0, 9, True, v))
        self.statements(near, inner, depth + 1)
        if self.chance(0.3):
            self.jump(near, inner)
        self.ready &= before
        body.append(Stmt("while", {"condition": ("cmp", "<", load, self.r.choice((var("n0"), constant(INT32, self.r.choice((2, 3, 5))))))}, [inner]))

    def branch(self, scope, body, depth):
        before = set(self.ready)
        bodies = []
        for _ in range(self.r.choice((1, 1, 2))):
            inner = []
            self.ready = set(before)
            self.statements(scope.inside(), inner, depth + 1)
            bodies.append(inner)
        self.ready = before
        if not bodies[0]:
            return
        if self.chance(0.1):
            body.append(Stmt("if", {"condition": self.never(scope)}, bodies).drawn("guard that never holds"))
        else:
            body.append(Stmt("if", {"condition": self.condition(scope, uniform=True)}, bodies))

    def never(self, scope):
        """A condition that no value of what it asks for meets."""
        d = self.r.choice([d for d in self.ranged(scope, uniform=True) if d.type is INT32])
        beyond = self.r.choice((0, 1, 40))
        return ("cmp", "<", d.expr, int32(d.low - beyond)) if self.chance(0.5) else ("cmp", ">", d.expr, int32(d.high + beyond))

    def jump(self, scope, body):
        """A jump out of a loop of the block, that all threads take."""
        if not scope.in_loop:
            return
        kind = self.r.choice(("break", "break", "continue"))
        at = self.r.randint(0, len(body))
        if at < len(body) and self.chance(0.6):
            at = len(body)
        body.insert(at, Stmt("if", {"condition": self.condition(scope, uniform=True)}, [[Stmt(kind)]]))

    def pipeline(self, scope, body):
        """A loop that brings tiles at offsets of its variable and uses them at once: what staging would run ahead of."""
        r, k = self.r, self.name("k")
        begin, extent = self.bounds()
        near, inner = scope.inside(loop=True), []
        near.add(Drawn(k, INT32, begin[2], begin[2] + 7, True))
        before = set(self.ready)
        for _ in range(r.choice((1, 1, 2))):
            if self.chance(0.5):  # of whole rows, such as asynchronous copies take
                b = self._staged(near, inner, k)
                self._use(near, inner, b)
                continue
            b = self.tile(space=r.choice(("shared", "shared", "shared", "fragment")))
            source = [s for s in self.sources() if len(s.shape) >= len(b.shape)]
            if not source:
                continue
            inner.append(self.copy(self.box(near, r.choice(source), [n for n in b.shape if n != 1]), Region(b, None, None)))
            self.wrote(b)
            self._use(near, inner, b)
        if self.chance(0.3):
            self._carried(near, inner)
        if self.chance(0.25) and inner:
            self.jump(near, inner)
        if self.turns(extent) < 1 or self._jumps(inner):
            self.ready &= before
        if inner:
            body.append(self._for(k, begin, extent, inner, ("pipelined", "pipelined", "pipelined", "serial", "unroll")))
            if self.chance(0.25):
                self.epilogue(scope, body)

    def _staged(self, scope, body, k):
        r = self.r
        t = TYPES[r.choice(("float32", "int32", "float16", "int8", "bfloat16"))]
        rows, width = r.choice((1, 4, 8, 16)), r.choice((16, 32, 64))
        old = [s for s in self.sources() if len(s.shape) == 2 and s.dtype is t and s.shape[1] == 64]
        source = r.choice(old) if old else self._parameter([(None, rows * r.choice((2, 3, 4)) + r.choice((0, 0, 1))), (None, 64)], t)
        b = self.tile((rows, width), t, "shared")
        first = self.affine(var(k), r.choice((rows, rows, 1)), r.choice((0, 0, 0, -1, -1, 1, -rows)))
        column = r.choice((int32(0), int32(0), int32(64 - width), self.affine(var(k), width, 0)))
        body.append(self.copy(Region(source, [first, column], (rows, width)), Region(b, None, None)))
        self.wrote(b)
        return b

    def _carried(self, scope, body):
        """What is written in a turn, and read elsewhere in the next one."""
        found = [b for b in self.ready_tiles() if b.view is None]
        if not found:
            return
        h = self.r.choice(found)
        saved, self.tiles = self.tiles, [b for b in self.tiles if b.root is not h.root] + [h]
        use = self.tile(h.shape)
        names = [self.name("i") for _ in h.shape]
        index = [self.chip_index(self._of_points(scope, names, h.shape), n) for n in h.shape]
        store = Stmt("store", {"buffer": use, "indices": [var(n) for n in names], "value": self.converted(("load", h.dtype, h, index), use.dtype)})
        body.append(Stmt("map", {"vars": names, "extents": [int32(n) for n in h.shape]}, [[store]]))
        self.wrote(use)
        self.store_tile(scope, body, use)
        self.map_store(scope, body, h) if self.chance(0.6) else self.refill(scope, body)
        self.tiles = saved + [b for b in self.tiles if b not in saved]

    def _of_points(self, scope, names, shape):
        inner = scope.inside()
        for n, e in zip(names, shape):
            inner.add(Drawn(n, INT32, 0, e - 1, False))
        return inner

    def _use(self, scope, body, b):
        """One or two uses of a tile that was just brought."""
        r = self.r
        for _ in range(r.choice((1, 1, 2))):
            use = r.choice(("scan", "reduce", "map", "map", "copy", "store"))
            if use == "scan" and b.dtype.bits >= 16 and not b.dtype.is_packed:
                to = self.tile(b.shape, b.dtype)
                body.append(Stmt("scan", {"op": r.choice(("sum", "max")), "source": Region(b, None, None), "to": Region(to, None, None),
                                          "dim": r.randrange(len(b.shape)), "reverse": self.chance(0.3)}))  # fmt: skip
                self.wrote(to)
                if self.chance(0.6):
                    self.store_tile(scope, body, to)
            elif use == "reduce" and not b.dtype.is_packed and not b.dtype.is_bool:
                self.reduce(scope, body, b)
            elif use == "copy":
                to = self.tile(b.shape)
                body.append(self.copy(Region(b, None, None), Region(to, None, None)))
                self.wrote(to)
            elif use == "store":
                self.store_tile(scope, body, b)
            else:
                self.update_map(scope, body)

    def let(self, scope, body):
        t = self.any_type()
        name = self.name("x")
        body.append(Stmt("let", {"name": name, "dtype": t, "value": self.expr(scope, t, 2, uniform=True)}))
        scope.add(Drawn(name, t, None, None, True))

    def new_variable(self, scope, body, t, value=None, shape=()):
        b = Buffer(self.name("v"), "local", t, shape)
        self.launch.buffers.append(b)
        self.locals.append(b)
        if not shape:
            e = self.expr(scope, t, 1, uniform=True) if value is None else constant(t, value)
            body.append(Stmt("store", {"buffer": b, "indices": [], "value": e}))
            self.ready.add(b)
        return b

    def variable(self, scope, body):
        """A variable of each thread: made, or changed."""
        known = [d for d in scope.all() if d.buffer is not None and d.buffer.dtype is d.type]
        if known and self.chance(0.6):
            d = self.r.choice(known)
            body.append(Stmt("store", {"buffer": d.buffer, "indices": [], "value": self.expr(scope, d.type, 2, uniform=True)}))
            return
        v = self.new_variable(scope, body, self.any_type())
        scope.add(Drawn(v.name, v.dtype, None, None, True, v))

    def facts(self, scope, body):
        kind = self.r.choice(("assert", "assume"))
        a = self.index_operand(scope, uniform=True)
        body.append(Stmt(kind, {"condition": ("cmp", self.r.choice(("<", ">=", "!=", "<=")), a, constant(INT32, self.r.choice((-9, 40, 64, 100))))}))

    def async_copy(self, scope, body):
        """A copy that does not wait, and the wait."""
        source = [b for b in self.sources() if len(b.shape) >= 2 and not b.dtype.is_packed and not b.dtype.is_bool]
        if not source:
            return
        source = self.r.choice(source)
        b = self.tile((self.r.choice((4, 8, 16)), self.r.choice((8, 16, 32))), source.dtype, "shared")
        copy = self.copy(self.box(scope, source, list(b.shape)), Region(b, None, None))
        copy.fields["completion"] = "(queue=cp_async)"
        body.append(copy)
        body.extend(Stmt("text", {"text": text}) for text in ("commit cp_async", "drain cp_async"))
        body.append(Stmt("sync"))
        self.wrote(b)

    def reducer(self, scope, body):
        """A tile that points update, each once."""
        r = self.r
        op, t = r.choice(("sum", "max", "min")), TYPES[r.choice(("float32", "int32", "int32"))]
        shape = self.shape()
        dim = r.randrange(len(shape))
        b = self.tile(shape[:dim] + shape[dim + 1 :] or (1,), t, "fragment")
        b.reducer = op
        body.append(Stmt("fill", {"to": Region(b, None, None), "value": constant(t, {"sum": 0}.get(op, r.choice((-9, 0, 9))))}))
        inner, names = self.points(scope, shape)
        self.ready_in_map, self.loads = set(), self.loads_of_map({b: None}, names)
        value = self.expr(inner, t, 2) if t.is_int else ("cast", t, self.small(self.expr(inner, INT32, 2)))
        self.loads = None
        index = [var(n) for i, n in enumerate(names) if i != dim] or [int32(0)]
        one = Stmt("atomic", {"op": {"sum": "add"}.get(op, op), "buffer": b, "indices": index, "value": value, "compare": None, "result": None})
        lines = [Stmt("if", {"condition": self.condition_of_point(inner)}, [[one]])] if self.chance(0.3) else [one]
        around = Stmt("map", {"vars": names, "extents": [int32(e) for e in shape]}, [lines])
        if self.chance(0.3):
            begin, extent = self.bounds()
            around = self._for(self.name("k"), begin, extent, [around])
        body.append(around)
        body.append(Stmt("finalize", {"buffer": b}))
        self.tiles.remove(b)
        c = self.tile(b.shape, t)
        body.append(self.copy(Region(b, None, None), Region(c, None, None)))
        self.wrote(c)

    def roles(self, scope, body):
        draw_roles(self, scope, body)
