"""Draws roles that hand tiles over through barriers: what they do, one after the other, and how that is written."""
from draw_expr import Drawn, int32, var
from nodes import Buffer, Region, Stmt
from scalars import INT32, TYPES


def _binary(op, a, b):
    return ("bin", INT32, op, a, b)


class Ring:
    """Slots between a role and the next, with a barrier for each that tells of what is full and one of what is empty."""

    def __init__(self, g, shape, t, stages):
        self.stages, self.tma = stages, 0  # tma: bytes that a copy brings, which then tells that the slot is full
        self.tile = g.tile((stages,) + shape, t, "shared")
        g.tiles.remove(self.tile)  # its slots are the roles' own
        self.full, self.empty = (Buffer(g.name("bar"), "barrier", TYPES["uint64"], (stages,)) for _ in range(2))
        g.launch.buffers += [self.full, self.empty]

    def slot(self, k):
        return _binary("%", var(k), int32(self.stages))

    def region(self, k):
        shape = self.tile.shape[1:]
        return Region(self.tile, [self.slot(k)] + [int32(0)] * len(shape), (1,) + shape)


class Roles(Stmt):
    """Each role fills the slots of a ring that the next one uses. bodies: what each does in a turn of `var`."""

    def meaning(self):
        """The same by all threads, in the order that the barriers give."""
        return [Stmt("for", self._loop(), [sum(self.bodies, [])])]

    def _loop(self):
        return {"var": self.var, "dtype": INT32, "begin": int32(0), "extent": self.extent, "loop": "serial", "options": ""}

    def _text(self, what, barrier, ring, more=""):
        return Stmt("text", {"text": f"{what} barrier={barrier.name}[{self.var} % {ring.stages}]{more}"})

    def _wait(self, barrier, ring, odd):
        return self._text("wait", barrier, ring, f" parity=({self.var} // {ring.stages} + {odd}) % 2")

    def _role(self, number):
        before = self.rings[number - 1] if number > 0 else None
        after = self.rings[number] if number < len(self.rings) else None
        lines, last = [], []
        if before:
            lines.append(self._wait(before.full, before, 0))
            last.append(self._text("arrive", before.empty, before))
        if after:
            lines.append(self._wait(after.empty, after, 1))
            if after.tma:
                lines.append(self._text("expect", after.full, after, f" bytes={after.tma} arrive=true"))
            else:
                last.append(self._text("arrive", after.full, after))
        body = self.bodies[number] + ([Stmt("sync")] if number == self.meets else [])
        loop = Stmt("for", self._loop(), [lines + body + last])
        return Stmt("role", {"begin": self.bounds[number], "end": self.bounds[number + 1]}, [[loop]])

    def written(self):
        roles = [self._role(n) for n in range(len(self.bodies))]
        return roles[::-1] if self.backwards else roles


def _fill(g, near, ring, k, shape):
    """What the first role does: brings a tile, or computes one."""
    r, t = g.r, ring.tile.dtype
    if r.random() < 0.25:
        names = [g.name("i") for _ in shape]
        value = ("cast", t, _binary("%", _binary("+", _binary("*", var(k), int32(r.choice((1, 3)))), var(names[-1])), int32(5)))
        return Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]},
                    [[Stmt("store", {"buffer": ring.tile, "indices": [ring.slot(k)] + g.place_of(names, shape), "value": value})]])  # fmt: skip
    source = r.choice([b for b in g.sources() if b.dtype is t and len(b.shape) >= 2] or [g._parameter([(None, g.extent()), (None, 64)], t)])
    copy = g.copy(g.box(near, source, list(shape)), ring.region(k))
    if r.random() < 0.3:
        ring.tma = shape[0] * shape[1] * t.bytes
        copy.fields["completion"] = f"(barrier={ring.full.name}[{k} % {ring.stages}])"
    return copy


def _pass_on(g, before, after, k, shape):
    """What a role in the middle does."""
    r, t = g.r, after.tile.dtype
    if r.random() < 0.3:
        return g.copy(before.region(k), after.region(k))
    names = [g.name("i") for _ in shape]
    load = ("load", before.tile.dtype, before.tile, [before.slot(k)] + g.place_of(names, shape))
    value = ("bin", t, r.choice(("+", "max", "min", "*")), ("cast", t, load) if before.tile.dtype is not t else load, ("const", t, r.choice((1, 2))))
    store = Stmt("store", {"buffer": after.tile, "indices": [after.slot(k)] + [var(n) for n in names], "value": value})
    return Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]}, [[store]])


def _use(g, ring, k, shape, total):
    """What the last role does."""
    r, t = g.r, total.dtype
    if r.random() < 0.3:
        return g.copy(ring.region(k), Region(total, None, None))
    names = [g.name("i") for _ in shape]
    index = g.place_of(names, shape)
    load = ("load", t, ring.tile, [ring.slot(k)] + [var(n) for n in names])
    add = Stmt("store", {"buffer": total, "indices": index, "value": ("bin", t, r.choice(("+", "max")), ("load", t, total, index), load)})
    return Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]}, [[add]])


def draw_roles(g, scope, body):
    r, launch = g.r, g.launch
    if scope.in_loop or launch.threads < 64 or launch.across:
        return
    count = r.choice((2, 2, 3)) if launch.threads >= 96 else 2
    bounds = [0] + sorted(r.sample(range(32, launch.threads, 32), count - 1)) + [launch.threads]
    t, shape = TYPES[r.choice(("float32", "int32", "float16", "int8"))], (r.choice((4, 8, 16)), r.choice((16, 32)))
    rings = [Ring(g, shape, t, r.choice((1, 2, 3))) for _ in range(count - 1)]
    extent = r.choice((int32(r.choice((0, 1, 3, 4, 5))), var("n0")))
    k, near = g.name("k"), scope.inside(loop=True)
    near.add(Drawn(k, INT32, 0, 5, True))
    bodies = [[_fill(g, near, rings[0], k, shape)]]
    for before, after in zip(rings, rings[1:]):
        bodies.append([_pass_on(g, before, after, k, shape)])
    total = g.tile(shape, t)
    body.append(Stmt("fill", {"to": Region(total, None, None), "value": ("const", t, 0)}))
    bodies.append([_use(g, rings[-1], k, shape, total)])
    for n, ring in enumerate(rings):
        ring.full.arrive = [1 if ring.tma else bounds[n + 1] - bounds[n]] * ring.stages
        ring.empty.arrive = [bounds[n + 2] - bounds[n + 1]] * ring.stages
    body.append(Roles("roles", {"var": k, "extent": extent, "rings": rings, "bounds": bounds, "backwards": r.random() < 0.3,
                                "meets": r.choice(range(count)) if r.random() < 0.2 else None}, bodies))  # fmt: skip
    g.wrote(total)
    if r.random() < 0.4:
        body.append(Stmt("sync"))
