"""Draws expressions and indices."""
from dataclasses import dataclass

from nodes import type_of
from scalars import BOOL, CLOSE_FUNCTIONS, FLOAT32, INT32, INT64, TYPES


CLOSE_NAMES = tuple(CLOSE_FUNCTIONS)
# Functions of two floats that few programs have, by the bits of their type.
RARE = {32: ("fmod", "min_nan", "max_nan", "nextafter", "pow", "atan2", "hypot",
             *(f"ieee_{op}_{to}" for op in ("add", "mul", "fdiv") for to in ("rz", "ru", "rd"))),
        64: ("fmod", "min_nan", "max_nan", "nextafter", "pow", "atan2", "hypot")}  # fmt: skip


@dataclass(eq=False)
class Drawn:
    """A name that expressions may use: its type, the range that its values have if that is known, whether all threads agree."""

    name: str
    type: object
    low: int = None
    high: int = None
    uniform: bool = True
    buffer: object = None  # of a variable

    @property
    def expr(self):
        return ("load", self.type, self.buffer, []) if self.buffer is not None else ("var", self.type, self.name)


class Scope:
    """Names of a block of statements and of those around it."""

    def __init__(self, outer=None, in_loop=False):
        self.outer, self.names, self.in_loop = outer, [], in_loop

    def add(self, drawn):
        self.names.append(drawn)
        return drawn

    def all(self):
        return (self.outer.all() if self.outer else []) + self.names

    def inside(self, loop=False):
        return Scope(self, loop or self.in_loop)


def constant(t, value):
    return ("const", t, value)


def int32(value):
    return ("const", INT32, value)


def var(name, t=INT32):
    return ("var", t, name)


class Exprs:
    """The part of the generator that draws expressions."""

    loads = None  # in a map: what may be read there, by a function from a scope to (buffer, indices)

    # ---- indices

    def affine(self, e, factor, shift):
        if factor != 1:
            e = ("bin", INT32, "*", e, int32(factor))
        return ("bin", INT32, "+", e, int32(shift)) if shift else e

    def sum_of(self, a, b):
        if a[0] == "const" and a[2] == 0:
            return b
        return ("bin", INT32, "+", a, b)

    def index_operand(self, scope, uniform=False):
        """An int32 name."""
        found = [d for d in scope.all() if d.type is INT32 and (d.uniform or not uniform)]
        return self.r.choice(found).expr

    def ranged(self, scope, uniform=False):
        return [d for d in scope.all() if d.low is not None and (d.type is INT32 or d.type is INT64) and (d.uniform or not uniform)]

    def global_index(self, scope, size, extent=1, uniform=True):
        """Where something of this extent begins in a dimension of a global tensor: anywhere, outside too."""
        r = self.r
        found = self.ranged(scope, uniform)
        if not found or self.chance(0.2):
            if self.chance(0.03):
                return int32(r.choice((2**31 - 1, -(2**31), 10**6)))
            return int32(r.choice((0, 0, 0, 1, 2, 3, -1, -2, size - 1, size - 1, size, size + 2)) if extent == 1 or self.chance(0.3)
                         else r.choice((0, 0, max(0, size - extent), 1, -1, -(extent // 2), size - 1)))  # fmt: skip
        d = r.choice(found[-3:] if self.chance(0.6) else found)
        e = d.expr if d.type is INT32 else ("cast", INT32, d.expr)
        form = r.random()
        if form < 0.45:
            e = self.affine(e, r.choice((extent, extent, 1, 1, 2, 3, -1)), r.choice((0, 0, 0, 0, 1, -1, -1, 2, -3, 5)))
        elif form < 0.55:
            e = ("bin", INT32, r.choice(("//", "%")), e, int32(r.choice((2, 3, 4))))
        elif form < 0.65:
            e = self.affine(e, 1, 0)
            e = ("bin", INT32, r.choice(("+", "-")), e, r.choice(found).expr if found[0].type is INT32 else e)
            if any(type_of(x) is not INT32 for x in (e[3], e[4])):
                e = e[3]
        elif form < 0.75 and not uniform:
            e = ("bin", INT32, "-", int32(size - 1), e)
        elif form < 0.8:
            e = ("bin", INT32, r.choice(("max", "min")), e, int32(r.choice((0, 1, size - 1))))
        if self.chance(0.05):
            e = ("cast", INT64, e)
        elif self.chance(0.06):
            e = self.wrapping_index(d)
        return e

    def wrapping_index(self, d):
        """An index that leaves its type, or 32 bits."""
        r = self.r
        if self.chance(0.4):
            e = d.expr if d.type is INT32 else ("cast", INT32, d.expr)
            return self.affine(e, r.choice((2**30, 2**29, -(2**30), 3 * 2**28)), r.choice((0, 0, 1, 2, 5)))
        if self.chance(0.25):  # in a division, which 64 bits know nothing of
            e = d.expr if d.type is INT32 else ("cast", INT32, d.expr)
            e = ("bin", INT32, "+", ("bin", INT32, "*", e, int32(r.choice((2**29, 2**30, -(2**29), 3 * 2**28)))), int32(r.choice((5, 2**30, 2**31 - 1))))
            return ("bin", INT32, r.choice(("//", "%")), e, int32(r.choice((2**28, 7, 5))))
        t = TYPES[r.choice(("int8", "int8", "uint8", "int16", "uint16", "uint32", "uint32", "int64"))]
        e = ("bin", t, "*", ("cast", t, d.expr), constant(t, r.choice((1, 2, 3, t.max // 2 + 1, t.max // 4 + 1))))
        return ("bin", t, r.choice(("+", "-")), e, constant(t, r.choice((0, 1, 2, 5, t.max, t.max - 1, t.max // 2 + 1))))

    def part_index(self, scope, room, uniform=True):
        """A number from 0 to room."""
        if room <= 0:
            return int32(0)
        return self.chip_index(scope, room + 1, uniform)

    def chip_index(self, scope, size, uniform=False):
        """An index of a tile: within 0 to size - 1."""
        r = self.r
        if size == 1 and self.chance(0.8):
            return int32(0)
        found = self.ranged(scope, uniform)
        if not found or self.chance(0.12):
            return int32(r.randrange(size))
        inner = [d for d in found if not d.uniform]
        d = r.choice(inner if inner and self.chance(0.8) else found)
        e = d.expr if d.type is INT32 else ("cast", INT32, d.expr)
        fits = d.low >= 0 and d.high < size and d.low != d.high
        form = r.random()
        if self.chance(0.04):  # it has wrapped around in its type
            t = TYPES[r.choice(("uint8", "int8", "uint16", "uint32", "uint32", "int32"))]
            if size <= t.max:
                e = ("bin", t, r.choice(("+", "-")), self.converted(e, t), constant(t, r.choice((1, 5, t.max, t.max // 2 + 1))))
                return self.converted(("bin", t, "%", e, constant(t, size)), INT32)
        if fits and form < 0.6:
            return e
        if fits and form < 0.75:
            return ("bin", INT32, "-", int32(size - 1), e)
        if form < 0.9:
            return ("bin", INT32, "%", self.affine(e, r.choice((1, 1, 3)), r.choice((0, 1, 4, 5, -1))), int32(size))
        if form < 0.95 and fits:
            return ("bin", INT32, "//", e, int32(2))
        return ("bin", INT32, "max", ("bin", INT32, "min", e, int32(size - 1)), int32(0))

    # ---- values

    def leaf_constant(self, t):
        return constant(t, self.number(t))

    def converted(self, e, t):
        if type_of(e) is t:
            return e
        return ("cast", t, e)

    def can_load(self, scope, uniform):
        """(buffer, indices) of an element that may be read here, or None."""
        r = self.r
        if self.loads is not None:
            return self.loads(scope, uniform)
        if uniform and self.chance(0.5):
            found = [b for b in self.ready_tiles()]
            if found and self.allow_tiles_in_thread_code:
                b = r.choice(found)
                return b, [self.chip_index(scope, n, True) for n in b.shape]
        if self.chance(0.6):
            b = r.choice(self.sources())
            self.read_here = self.read_here | {b}
            return b, [self.global_index(scope, n, 1, uniform) for n in b.shape]
        return None

    allow_tiles_in_thread_code = True

    def leaf(self, scope, t, uniform):
        r = self.r
        if self.chance(0.45):
            found = self.can_load(scope, uniform)
            if found:
                b, indices = found
                return self.converted(("load", b.dtype, b, indices), t)
        names = [d for d in scope.all() if d.uniform or not uniform]
        same = [d for d in names if d.type is t]
        if same and self.chance(0.6):
            return r.choice(same[-4:] if self.chance(0.5) else same).expr
        if names and self.chance(0.5):
            d = r.choice(names)
            if t.is_float and d.type.is_int and d.low is None:
                return ("cast", t, self.small(d.expr))
            return self.converted(d.expr, t)
        return self.leaf_constant(t)

    def small(self, e):
        """A small number of an integer."""
        t = type_of(e)
        return ("bin", t, "-", ("bin", t, "%", e, constant(t, 7)), constant(t, 3)) if t.is_signed else ("bin", t, "%", e, constant(t, 5))

    def expr(self, scope, t, depth=3, uniform=False):
        r = self.r
        if depth <= 0 or self.chance(0.15):
            return self.leaf(scope, t, uniform)
        if self.chance(0.12):
            other = self.any_type()
            return self.converted(self.expr(scope, other, depth - 1, uniform), t)
        if self.chance(0.03) and not t.is_bool:  # the same bits as another type of that width
            same = [o for o in TYPES.values() if o.bits == t.bits and o is not t and o.bits >= 8 and not o.name.startswith("float6")]
            if same and not t.name.startswith("float6"):
                return ("bitcast", t, self.expr(scope, r.choice(same), depth - 1, uniform))
        if self.chance(0.1):
            return ("select", t, self.condition(scope, depth - 1, uniform), self.expr(scope, t, depth - 1, uniform),
                    self.expr(scope, t, depth - 1, uniform))  # fmt: skip
        a = self.expr(scope, t, depth - 1, uniform)
        if t.is_bool:
            return self.condition(scope, depth - 1, uniform)
        return self.float_op(scope, t, a, depth, uniform) if t.is_float else self.int_op(scope, t, a, depth, uniform)

    def int_op(self, scope, t, a, depth, uniform):
        r = self.r
        if self.chance(0.12):
            names = ["neg", "abs", "~"] if t.is_signed else ["~", "neg"]
            if t.bits >= 32:
                names += ["popcount", "clz", "ffs", "brev"]
            return ("un", t, r.choice(names), a)
        if self.chance(0.03):
            least, most = sorted((max(t.min, r.randint(-9, 9)), min(t.max, max(t.min, r.randint(-5, 20)))))
            return ("clamp", t, a, constant(t, least), constant(t, most))
        if t is INT32 and self.chance(0.03):
            return ("dp4a", t, a, self.expr(scope, t, depth - 1, uniform), self.leaf(scope, t, uniform))
        op = r.choice(("+", "+", "+", "-", "-", "*", "*", "&", "|", "^", "min", "max", "//", "%", "<<", ">>", "truncdiv", "truncmod"))
        if op in ("//", "%", "truncdiv", "truncmod"):
            divisor = [n for n in (2, 3, 4, 7, 5, -3, -2, 100, 16) if t.min <= n <= t.max]
            if self.chance(0.1):
                return ("bin", t, op, a, ("bin", t, "|", self.expr(scope, t, depth - 1, uniform), constant(t, 1)))
            return ("bin", t, op, a, constant(t, r.choice(divisor)))
        if op in ("<<", ">>"):
            amount = constant(t, r.choice((0, 1, 1, 2, 3, t.bits - 1))) if self.chance(0.7) else \
                ("bin", t, "&", self.expr(scope, t, depth - 1, uniform), constant(t, min(t.bits - 1, 7)))  # fmt: skip
            return ("bin", t, op, a, amount)
        b = self.expr(scope, t, depth - 1, uniform)
        if self.chance(0.5):
            a, b = b, a
        return ("bin", t, "mulhi" if t.bits >= 32 and self.chance(0.05) else op, a, b)

    def float_op(self, scope, t, a, depth, uniform):
        r = self.r
        if self.chance(0.15):
            return ("un", t, r.choice(("neg", "abs", "abs", "floor", "ceil", "trunc", "nearbyint", "round", "sqrt")), a)
        if self.chance(0.07) and t.bits >= 16:
            return ("un", t, r.choice(CLOSE_NAMES), a)
        if self.chance(0.03):
            least = r.choice((-2.0, -1.0, 0.5))
            return ("clamp", t, a, constant(t, least), constant(t, least + r.choice((0.0, 1.0, 2.0))))
        if self.chance(0.03):
            power = ("bin", INT32, "-", ("bin", INT32, "&", self.leaf(scope, INT32, uniform), int32(15)), int32(7))
            return ("bin", t, "ldexp", a, ("cast", t, power))
        if t.bits == 16 and self.chance(0.05):
            return ("cast", t, self.expr(scope, FLOAT32, depth - 1, uniform), "toward_zero")
        b = self.expr(scope, t, depth - 1, uniform)
        if self.chance(0.08):
            return ("bin", t, r.choice(RARE[t.bits] if t.bits in RARE else ("fmod", "min_nan", "max_nan")), a, b)
        if self.chance(0.05) and t.bits == 32:
            return ("fma", t, a, b, self.leaf(scope, t, uniform))
        return ("bin", t, r.choice(("+", "+", "+", "-", "-", "*", "*", "/", "min", "max", "copysign")), a, b)

    def condition(self, scope, depth=2, uniform=False):
        r = self.r
        form = r.random()
        if depth > 0 and form < 0.15:
            return ("logic", r.choice(("and", "or")), self.condition(scope, depth - 1, uniform), self.condition(scope, depth - 1, uniform))
        if form < 0.18 and depth > 0 and (floats := [t for t in self.palette if t.is_float]):
            return ("un", BOOL, r.choice(("isnan", "isinf", "isfinite")), self.expr(scope, r.choice(floats), depth - 1, uniform))
        if form < 0.22 and depth > 0:
            return ("un", BOOL, "not", self.condition(scope, depth - 1, uniform))
        if form < 0.5:
            t = self.any_type()
            if t.is_bool:
                return self.leaf(scope, t, uniform)
            a, b = self.expr(scope, t, depth - 1, uniform), self.expr(scope, t, depth - 1, uniform)
            return ("cmp", r.choice(("==", "!=", "<", "<=", ">", ">=")), a, b)
        if form < 0.6:  # at the ends of a type
            t = TYPES[r.choice(("uint64", "int64", "int32", "uint32", "uint8", "int8"))]
            a = self.converted(self.index_operand(scope, uniform), t)
            if self.chance(0.5):
                a = ("bin", t, r.choice(("+", "-")), a, constant(t, r.choice((1, t.max, t.max // 2 + 1))))
            b = constant(t, r.choice((t.min, t.max, t.max - 1, t.max // 2 + 1, 0))) if self.chance(0.7) else \
                self.converted(self.index_operand(scope, uniform), t)  # fmt: skip
            return ("cmp", r.choice(("==", "!=", "<", "<=", ">", ">=")), a, b)
        a = self.index_operand(scope, uniform)
        if self.chance(0.4):
            a = ("bin", INT32, "&", self.expr(scope, INT32, 1, uniform), int32(7))
        return ("cmp", r.choice(("==", "!=", "<", "<", ">", ">=", "<=")), a, int32(r.randint(-1, 8)))
