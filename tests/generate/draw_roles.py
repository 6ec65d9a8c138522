"""Draws roles that hand tiles over through barriers: what they do, one after the other, and how that is written."""
from draw_expr import Drawn, int32, var
from nodes import Buffer, Region, Stmt
from scalars import INT32, TYPES


def _binary(op, a, b):
    return ("bin", INT32, op, a, b)


class Roles(Stmt):
    """One role fills the slots of a ring, the other uses them. bodies: of the one, of the other; both run in turns of `var`."""

    def meaning(self):
        """The same by all threads, in the order that the barriers give."""
        return [Stmt("for", self._loop(), [self.bodies[0] + self.bodies[1]])]

    def _loop(self):
        return {"var": self.var, "dtype": INT32, "begin": int32(0), "extent": self.extent, "loop": "serial", "options": ""}

    def _side(self, waits, odd, arrives, body):
        slot, phase = f"{self.var} % {self.stages}", f"({self.var} // {self.stages} + {odd}) % 2"
        lines = [Stmt("text", {"text": f"wait barrier={waits.name}[{slot}] parity={phase}"})] + body
        if self.tma and arrives is self.full:
            lines.insert(1, Stmt("text", {"text": f"expect barrier={arrives.name}[{slot}] bytes={self.tma} arrive=true"}))
        else:
            lines.append(Stmt("text", {"text": f"arrive barrier={arrives.name}[{slot}]"}))
        return [Stmt("for", self._loop(), [lines])]

    def written(self):
        threads, first = self.threads, self.first
        filling, using = self._side(self.empty, 1, self.full, self.bodies[0]), self._side(self.full, 0, self.empty, self.bodies[1])
        roles = [Stmt("role", {"begin": 0, "end": first}, [filling]), Stmt("role", {"begin": first, "end": threads}, [using])]
        return roles[::-1] if self.backwards else roles


def draw_roles(g, scope, body):
    r, launch = g.r, g.launch
    if scope.in_loop or launch.threads < 64 or launch.across:
        return
    t, stages, first = TYPES[r.choice(("float32", "int32", "float16", "int8"))], r.choice((1, 2, 3)), r.choice((32, 32, launch.threads // 64 * 32))
    shape = (r.choice((4, 8, 16)), r.choice((16, 32)))
    ring = g.tile((stages,) + shape, t, "shared")
    extent = r.choice((int32(r.choice((0, 1, 3, 4, 5))), var("n0")))
    k, near = g.name("k"), scope.inside(loop=True)
    near.add(Drawn(k, INT32, 0, 5, True))
    slot = _binary("%", var(k), int32(stages))
    source = r.choice([b for b in g.sources() if b.dtype is t and len(b.shape) >= 2] or [g._parameter([(None, g.extent()), (None, 64)], t)])
    tma = r.random() < 0.3
    copy = g.copy(g.box(near, source, list(shape)), Region(ring, [slot, int32(0), int32(0)], (1,) + shape))
    full, empty = (Buffer(g.name("bar"), "barrier", TYPES["uint64"], (stages,)) for _ in range(2))
    full.arrive, empty.arrive = [1 if tma else first] * stages, [launch.threads - first] * stages
    launch.buffers += [full, empty]
    if tma:
        slot_text = f"{full.name}[{k} % {stages}]"
        copy.fields["completion"] = f"(barrier={slot_text})"
    total = g.tile(shape, t)
    body.append(Stmt("fill", {"to": Region(total, None, None), "value": ("const", t, 0)}))
    names = [g.name("i") for _ in shape]
    load = ("load", t, ring, [slot] + [var(n) for n in names])
    index = g.place_of(names, shape)
    add = Stmt("store", {"buffer": total, "indices": index, "value": ("bin", t, r.choice(("+", "max")), ("load", t, total, index), load)})
    use = [Stmt("map", {"vars": names, "extents": [int32(n) for n in shape]}, [[add]])]
    if r.random() < 0.3:
        used = Region(ring, [slot, int32(0), int32(0)], (1,) + shape)
        use = [g.copy(used, Region(total, None, None))]
    body.append(Roles("roles", {"var": k, "extent": extent, "stages": stages, "threads": launch.threads, "first": first, "full": full,
                                "empty": empty, "tma": shape[0] * shape[1] * t.bytes if tma else 0, "backwards": r.random() < 0.3},
                      [[copy], use]))  # fmt: skip
    g.wrote(total)
    g.tiles.remove(ring)  # its slots are the roles' own
    if r.random() < 0.4:
        body.append(Stmt("sync"))
