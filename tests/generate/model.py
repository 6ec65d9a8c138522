"""Runs a program in NumPy: what docs/language.md says that it does, and which elements of its results that fixes.

All blocks run at once, and all threads of a block or points of a map: a value is an array [blocks, lanes], or broadcasts to
one; control flow is a mask. What the language leaves open (races, reads of what was never written, the last bits of a
sum) is either Invalid, and then the statement is at fault, or marked in the state that goes with every value."""
import numpy as np
from alike import Alike
from memory import Invalid, Memory, Races, spread
from scalars import (BITS, BOOL, CLOSE, CLOSE_BINARY, CLOSE_FUNCTIONS, COMPARE, EXACT, FLOAT32, FLOAT64, INT32, INT64, UNDEFINED, UNSAID, binary, bitcast,
                     cast, dot_of_bytes, either_zero, product_error, round_to, unary, zeros_open)  # fmt: skip
from nodes import buffers_of, loads_of, type_of, walk

LONGEST = 80  # rounds of a while


def join(*states):
    """What is known of a result whose operands are known so."""
    worst = None
    for s in states:
        if s is not None:
            worst = s if worst is None else np.maximum(worst, s)
    return None if worst is None else np.where(worst > EXACT, np.maximum(worst, UNSAID), EXACT).astype(np.uint8)


def marked(state, where, mark):
    if where is None:
        return state
    mark = np.where(where, mark, EXACT).astype(np.uint8)
    return mark if state is None else np.maximum(state, mark)


class Frame:
    """Where a break, a continue or a return leaves its lanes."""

    def __init__(self, shape):
        self.broken = np.zeros(shape, bool)
        self.continued = np.zeros(shape, bool)


class Lanes:
    """Who executes: the threads of all blocks, or the points of a map, or one lane for each block."""

    def __init__(self, blocks, count, kind):
        self.shape, self.kind = (blocks, count), kind
        self.ids = np.arange(count, dtype=np.int64)[None, :]
        self.rows = np.arange(blocks)[:, None]
        self.own = self.rows * count + self.ids


class Model:
    """One run. `results` holds the parameters afterwards."""

    def __init__(self, program, budget=40_000_000):
        self.program, self.budget = program, budget
        self.contract = program.options.get("contract", True)
        self.memories, self.current, self.stores = {}, None, set()
        views = {}
        for v in self._all_views():
            views.setdefault(v.root, []).append(v)
        self.views = views
        for b in program.params + program.workspaces:
            if b.view is None:
                self.memories[b] = Memory(b, 1, views.get(b, ()))
        for b, elements in program.inputs.items():
            if b in self.memories:
                self.memories[b].set_all(elements)

    def _all_views(self):
        p = self.program
        for group in [p.params, p.workspaces] + [l.buffers for l in p.launches]:
            yield from (b for b in group if b.view is not None)

    def run(self):
        for launch in self.program.launches:
            self.launch = launch
            self._run_launch(launch)
            self.program.unreached |= any(id(s) not in self.stores and self._is_loaded_to_fragment(s) for s, _ in walk(launch.body))
        return {b: (self.memories[b].data(b)[0][: b.size], self.memories[b].states(b)[0][: b.size]) for b in self.program.params}

    def _run_launch(self, launch):
        counts = [value for _, _, value in launch.grid]
        blocks = int(np.prod(counts))
        if blocks == 0:
            return
        self.blocks = blocks
        self.threads = Lanes(blocks, launch.threads, "threads")
        self.single = Lanes(blocks, 1, "block")
        self.lanes = self.threads
        for b in launch.buffers:
            if b.view is None and b.space != "barrier":
                rows = blocks * launch.threads if b.space == "local" else blocks
                self.memories[b] = Memory(b, rows, self.views.get(b, ()))
        self.env, number = {}, np.arange(blocks)
        for (name, _, _), count in zip(launch.grid, counts):  # the first runs fastest
            self.env[name] = ((number % count).astype(np.int32)[:, None], None)
            number = number // count
        number = np.arange(launch.threads, dtype=np.int32)[None, :]
        for name, count in launch.thread_dims():
            self.env[name] = (number % count, None)
            number = number // count
        self.alike = Alike(launch, [name for name, _ in launch.thread_dims()])
        for name, t, value in self.program.scalars + self.program.symbols:
            self.env[name] = (np.full((1, 1), value, t.carrier), None)
        self.races, self.frames = Races(blocks, stored_in(launch.body, True)), []
        self.races.stored = stored_in(launch.body, False)
        self.returned = np.zeros(self.threads.shape, bool)
        self.execute(launch.body, np.ones(self.threads.shape, bool))

    # ---- expressions

    def value(self, e, mask):
        """(value, state) of an expression where the mask holds."""
        return getattr(self, "_" + e[0])(e, mask)

    def sure(self, e, mask):
        """A value that decides something: nothing of it may be open."""
        v, s = self.value(e, mask)
        if s is not None and (spread(s, self.lanes.shape)[mask] > EXACT).any():
            raise Invalid("something open decides")
        return v

    def _const(self, e, mask):
        t = e[1]
        return (round_to(t, np.full((1, 1), e[2], np.float64)) if t.is_float else np.full((1, 1), e[2], t.carrier)), None

    def _var(self, e, mask):
        if e[2] not in self.env:
            raise Invalid("a name whose statement is gone")
        v, s = self.env[e[2]]
        if self.lanes is not self.threads and v.shape[1] > 1 and e[2] not in self.points:
            return self._collapsed(v), (None if s is None else s.max(axis=1, keepdims=True))
        return v, s

    def _collapsed(self, v):
        """A value that all threads of a block agree on, for who is none of them."""
        if not ((v == v[:, :1]) | ((v != v) & (v[:, :1] != v[:, :1]))).all():
            raise Invalid("threads disagree")
        return v[:, :1]

    def _load(self, e, mask):
        b = e[2]
        return self.read(b, [self.place(i, mask) for i in e[3]], mask)

    def _bin(self, e, mask):
        t, op = e[1], e[2]
        a, s = self.value(e[3], mask)
        b, r = self.value(e[4], mask)
        if op in ("//", "%", "truncdiv", "truncmod"):
            least = a == t.min if s is None else (a == t.min) | (s != EXACT)  # what is open may be that
            wrong = (b == 0) | ((b == -1) & least if t.is_signed else False)
            if r is not None or (spread(wrong, self.lanes.shape) & mask).any():
                raise Invalid("division by zero")
            b = np.where(b == 0, np.array(1, b.dtype), b)
        if op in ("<<", ">>") and ((b < 0) | (b >= t.bits)).any():
            if (spread((b < 0) | (b >= t.bits), self.lanes.shape) & mask).any():
                raise Invalid("a shift past the type")
            b = np.clip(b, 0, t.bits - 1).astype(b.dtype)
        y, s = binary(op, a, b, t), join(s, r)
        if op == "atan2":
            s = marked(s, a == 0, UNSAID)
        if op in ("copysign", "atan2") or (op == "/" or op.startswith("ieee_fdiv")) and t.is_float:  # the sign of a NaN, or of a zero that max chose, is nobody's to say
            s = marked(s, np.isnan(b) | (b == 0), UNSAID)
        if op.startswith("ieee_"):  # the sign of a zero depends on the direction
            s = marked(s, y == 0, UNSAID)
        if t.is_float and not t.has_nan:  # it has no NaN
            s = marked(s, np.isnan(y), UNSAID)
        if op in CLOSE_BINARY:
            s = marked(s, np.ones_like(y, bool), CLOSE)
            s = marked(s, ~(np.isfinite(y) & (np.abs(y) > 1e-6) & (np.abs(y) < 1e30)), UNSAID)
        if op == "*" and t.is_float and self.contract:
            s = marked(s, self._inexact(a, b, y, t), CLOSE)
        return y, s

    @staticmethod
    def _inexact(a, b, y, t):
        with np.errstate(all="ignore"):
            if t.bits == 64:
                wrong = np.isfinite(y) & (product_error(a, b) != 0)
            else:
                wrong = (a.astype(np.float64) * b.astype(np.float64) != y) & ~np.isnan(y)
        return wrong if wrong.any() else None

    def _fma(self, e, mask):
        t = e[1]
        (a, r), (b, s), (c, q) = (self.value(x, mask) for x in e[2:])
        with np.errstate(all="ignore"):
            a, b = a.astype(np.float64), b.astype(np.float64)
            p = zeros_open("*", a, b, a * b)
            y = p + c.astype(np.float64)
            back = y - p
            open_ = (p - (y - back)) + (c - back) != 0  # the sum was rounded
            if t.bits == 64:
                open_ = product_error(a, b) != 0
        return round_to(t, y), marked(join(q, r, s), open_ | ~np.isfinite(y), UNSAID)

    def _clamp(self, e, mask):
        (x, s), (least, _), (most, _) = (self.value(a, mask) for a in e[2:])  # constants, the one below the other
        if e[1].is_float:
            s = marked(s, np.isnan(x) | (x == 0), UNSAID)  # which of the ends a NaN gives, or which zero
        return binary("min", binary("max", x, least, e[1]), most, e[1]), s

    def _dp4a(self, e, mask):
        (a, r), (b, s), (c, q) = (self.value(x, mask) for x in e[2:])
        with np.errstate(over="ignore"):
            return dot_of_bytes(a, b, c), join(q, r, s)

    def _cmp(self, e, mask):
        a, r = self.value(e[2], mask)
        b, s = self.value(e[3], mask)
        return COMPARE[e[1]](a, b), join(r, s)

    def _logic(self, e, mask):
        a = self.sure(e[2], mask)
        now = spread(a if e[1] == "and" else ~a, self.lanes.shape)
        b = self.sure(e[3], mask & now)
        return (a & b if e[1] == "and" else a | b), None

    def _un(self, e, mask):
        a, s = self.value(e[3], mask)
        t = type_of(e[3])
        y, mark = unary(e[2], a, t)
        s = join(s)
        if t.is_float and not t.has_nan:
            s = marked(s, np.isnan(y), UNSAID)
        if mark == CLOSE:
            usual = np.isfinite(y) & (np.abs(y) > 1e-6) & (np.abs(y) < 1e30) & (np.abs(a) < 1e4)
            s = marked(marked(s, np.ones_like(usual), CLOSE), ~usual, UNSAID)
        return y, s

    def _select(self, e, mask):
        c = self.sure(e[2], mask)
        wide = spread(c, self.lanes.shape)
        a, r = self.value(e[3], mask & wide)
        b, s = self.value(e[4], mask & ~wide)
        state = None
        if r is not None or s is not None:
            state = np.where(c, EXACT if r is None else r, EXACT if s is None else s).astype(np.uint8)
        return np.where(c, a, b), state

    def _cast(self, e, mask):
        source, t = type_of(e[2]), e[1]
        v, s = self.value(e[2], mask)
        y, unsaid = cast(v, source, t, e[3:] == ("toward_zero",))
        if not (source.is_float and t.is_float):
            s = join(s)
        return y, marked(s, unsaid, UNSAID)

    def _bitcast(self, e, mask):
        v, s = self.value(e[2], mask)
        y, unsaid = bitcast(v, type_of(e[2]), e[1])
        return y, marked(join(s), unsaid, UNSAID)

    # ---- memory

    def _memory(self, b):
        """The memory of a buffer, and the rows where these lanes find theirs."""
        m = self.memories[b.root]
        if b.root.space in ("param", "global"):
            return m, np.zeros((1, 1), np.int64)
        if b.root.space != "local":
            return m, self.lanes.rows
        return m, self.lanes.own

    def place(self, e, mask):
        """An index, or an extent of a map: in 64 bits, and so are sums and products of int32 that it is."""
        if is_sum(e) and magnitude(e) >= 2**31:
            raise Invalid("numbers that leave 32 bits before anything is added")
        return self._exact(e, mask)

    def _exact(self, e, mask):
        if not is_sum(e):
            return self.sure(e, mask).astype(np.int64)
        a, b = self._exact(e[3], mask), self._exact(e[4], mask)
        return a + b if e[2] == "+" else a - b if e[2] == "-" else a * b

    def _place(self, b, indices, mask):
        """(flat index, whether it is inside) of the lanes."""
        flat, inside = np.zeros((1, 1), np.int64), None
        for i, n in zip(indices, b.shape):
            i = i.astype(np.int64)
            ok = (i >= 0) & (i < n)
            inside = ok if inside is None else inside & ok
            flat = flat * n + (i if ok.all() else np.clip(i, 0, max(n - 1, 0)))
        if inside is None:
            inside = np.ones((1, 1), bool)
        if b.size == 0:
            flat = np.zeros_like(flat)
        if not b.is_global and not spread(inside, self.lanes.shape)[mask].all():
            raise Invalid("outside of a tile")
        return flat, inside

    def read(self, b, indices, mask):
        if b.root.space == "local" and b.root not in self.local_here and self.lanes is not self.threads:
            return self._read_thread_local(b, indices, mask)
        flat, inside = self._place(b, indices, mask)
        m, rows = self._memory(b)
        self.spend(mask)
        v, s = m.get(b, rows, flat)
        live = mask & inside
        self.races.read(m, b, rows, flat, self.lanes, live)
        if s is not None and not b.is_global and (spread(s, mask.shape)[live] == UNDEFINED).any():
            raise Invalid("read before it is written")
        if not inside.all():
            v = np.where(inside, v, fill_of(b))
            s = None if s is None else np.where(inside, s, EXACT).astype(np.uint8)
        return v, s

    def _read_thread_local(self, b, indices, mask):
        lanes, self.lanes = self.lanes, self.threads
        try:
            for i in indices:
                if i.shape[1] > 1:
                    raise Invalid("a thread's array by the points of a map")
            v, s = self.read(b, indices, spread(mask.any(axis=1, keepdims=True), self.threads.shape))
            v = spread(v, self.threads.shape)
            return self._collapsed(v), None if s is None else spread(s, self.threads.shape).max(axis=1, keepdims=True)
        finally:
            self.lanes = lanes

    def write(self, b, indices, value, state, mask):
        if b.root.space == "local" and b.root not in self.local_here and self.lanes is not self.threads:
            raise Invalid("a thread's variable stored by points")
        flat, inside = self._place(b, indices, mask)
        m, rows = self._memory(b)
        self.spend(mask)
        live = mask & inside
        shape = self.lanes.shape
        where = [spread(x, shape)[live] for x in (rows, flat)]
        v = spread(value, shape)[live]
        s = None if state is None else spread(state, shape)[live]
        self.races.write(m, b, *where, v, s, self.lanes, live)
        m.put(b, *where, v, s)

    def spend(self, mask):
        self.budget -= mask.size
        if self.budget < 0:
            raise Invalid("too long")

    local_here = frozenset()
    points = frozenset()

    # ---- statements of a thread

    def execute(self, body, mask):
        """Runs statements; the lanes that come to their end."""
        for s in body:
            if not mask.any():
                break
            self.current = s
            self.budget -= 200
            if self.lanes is self.threads and id(s) in self.alike.together:
                self.races.new_epoch()  # all threads have done what stands before
            mask = self._done(s, mask)
        return mask

    at_fault = None  # with a list, statements that the language does not allow are noted there, and left out

    def _done(self, s, mask):
        if self.at_fault is None:
            return getattr(self, "do_" + s.kind)(s, mask)
        if any(s is bad for bad in self.at_fault):
            return mask
        state = self.lanes, self.env, self.local_here, self.points, self.races.stored, len(self.frames)
        try:
            return getattr(self, "do_" + s.kind)(s, mask)
        except Invalid:
            if self.budget < 0 or self.current is not s:
                raise
            self.at_fault.append(s)
            self.lanes, self.env, self.local_here, self.points, self.races.stored, frames = state
            del self.frames[frames:]
            return mask

    def do_let(self, s, mask):
        v, state = self.value(s.value, mask)
        if self.lanes is self.threads and v.shape[1] == 1 and not mask.all():
            v = spread(v, self.lanes.shape)
        self.env[s.name] = (v, state)
        self._own(s.name)
        return mask

    def do_slice(self, s, mask):
        for name, e in zip(s.names, s.indices):
            v, state = self.value(e, mask)
            self.env[name] = (spread(v, self.lanes.shape) if self.lanes is self.threads and v.shape[1] == 1 and not mask.all() else v, state)
            self._own(name)
        return mask

    def _own(self, name):
        if self.lanes is not self.threads:
            self.points = self.points | {name}

    def do_declare(self, s, mask):
        b = s.buffer
        self.memories[b] = Memory(b, self.lanes.shape[0] * self.lanes.shape[1], ())
        self.local_here = self.local_here | {b} if self.lanes is not self.threads else self.local_here
        return mask

    def _by_one(self, s, mask):
        """Who does a store or an atomic: one thread, where all of them would do the same."""
        if self.lanes is not self.threads or id(s) not in self.alike.once:
            return mask
        first = np.zeros_like(mask)
        first[:, 0] = True
        return mask & first

    def do_store(self, s, mask):
        everybody, mask = mask, self._by_one(s, mask)
        if mask.any():
            self.stores.add(id(s))
        indices = [self.place(i, mask) for i in s.indices]
        if self.lanes.kind == "points" and self._in_turn(s, indices, mask):
            return everybody
        if self.lanes is self.threads and s.buffer.root.space == "fragment":
            self._from_one_place(s, indices, mask)
        v, state = self.value(s.value, mask)
        self.write(s.buffer, indices, v, state, mask)
        return everybody

    @staticmethod
    def _is_loaded_to_fragment(s):
        return s.kind == "store" and s.buffer.root.space == "fragment" and any(True for _ in loads_of(s.value))

    def _from_one_place(self, s, indices, mask):
        """A fragment is one tile of all threads: those that store to one element read at one place, or the engine may refuse (TW6012)."""
        shape = self.lanes.shape
        to = spread(self._place(s.buffer, indices, mask)[0] + s.buffer.size * self.lanes.rows, shape)[mask]
        order = np.argsort(to, kind="stable")
        again = to[order][1:] == to[order][:-1]
        if not again.any():
            return
        for load in loads_of(s.value):
            for i in load[3] if load[2].root.space != "local" else ():
                place = spread(self.place(i, mask), shape)[mask][order]
                if (place[1:] != place[:-1])[again].any():
                    raise Invalid("threads store what each reads from a place of its own to one element of a fragment")

    def do_if(self, s, mask):
        c = spread(self.sure(s.condition, mask), self.lanes.shape)
        a = self.execute(s.bodies[0], mask & c)
        self.current = s
        b = self.execute(s.bodies[1], mask & ~c) if len(s.bodies) > 1 else mask & ~c
        return a | b

    def do_for(self, s, mask):
        begin = spread(self.sure(s.begin, mask), self.lanes.shape).astype(np.int64)
        extent = spread(self.sure(s.extent, mask), self.lanes.shape).astype(np.int64)
        frame = Frame(self.lanes.shape)
        self.frames.append(frame)
        turns = int(extent[mask].max()) if mask.any() else 0
        if turns > LONGEST:
            raise Invalid("too many turns")
        self._own(s.var)
        for turn in range(turns):
            now = mask & (turn < extent) & ~frame.broken & ~self._gone()
            if not now.any():
                break
            v = (begin + turn).astype(s.dtype.carrier)
            if (v == v[:, :1]).all():
                v = v[:, :1]
            self.env[s.var] = (v, None)
            frame.continued[:] = False
            self.execute(s.bodies[0], now)
        self.frames.pop()
        return mask & ~self._gone()

    def _gone(self):
        return self.returned if self.lanes is self.threads else np.zeros((1, 1), bool)

    def do_while(self, s, mask):
        frame = Frame(self.lanes.shape)
        self.frames.append(frame)
        live = mask
        for turn in range(LONGEST):
            self.current = s
            if self.lanes is self.threads and id(s) in self.alike.together:
                self.races.new_epoch()
            live = live & spread(self.sure(s.condition, live), self.lanes.shape)
            if not live.any():
                break
            frame.continued[:] = False
            self.execute(s.bodies[0], live)
            live = live & ~frame.broken & ~self._gone()
        else:
            raise Invalid("a while without end")
        self.frames.pop()
        return mask & ~self._gone()

    def do_break(self, s, mask):
        self.frames[-1].broken |= mask
        return np.zeros_like(mask)

    def do_continue(self, s, mask):
        return np.zeros_like(mask)

    def do_return(self, s, mask):
        self.returned |= mask
        return np.zeros_like(mask)

    def do_sync(self, s, mask):
        if not mask.all():
            self.together(mask)
        self.races.new_epoch()
        return mask

    def do_assert(self, s, mask):
        if not spread(self.sure(s.condition, mask), self.lanes.shape)[mask].all():
            raise Invalid("an assertion that fails")
        return mask

    do_assume = do_assert

    def do_text(self, s, mask):
        return mask

    def do_roles(self, s, mask):
        return self.execute(s.meaning(), mask)

    def do_shuffle(self, s, mask):
        if not mask.all():
            raise Invalid("a shuffle of some")
        v, state = self.value(s.value, mask)
        v, w = spread(v, self.lanes.shape), s.width
        lane = spread(self.sure(s.lane, mask), self.lanes.shape).astype(np.int64)
        tx = self.lanes.ids
        at, base = tx % w, tx - tx % w
        to = {"index": lane % w, "up": at - lane, "down": at + lane, "xor": at ^ lane}[s.op]
        to = np.where((to < 0) | (to >= w), at, to) + base
        self.env[s.result] = (np.take_along_axis(v, to, 1), join(None if state is None else np.full((1, 1), state.max(), np.uint8)))
        return mask

    def do_vote(self, s, mask):
        if not mask.all():
            raise Invalid("a vote of some")
        v = spread(self.sure(s.value, mask), self.lanes.shape)
        warps = v.reshape(v.shape[0], -1, 32)
        if s.op == "ballot":
            y = (warps.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=2, keepdims=True).astype(np.uint32)
        elif s.op in ("any", "all"):
            y = (warps.any if s.op == "any" else warps.all)(axis=2, keepdims=True)
        else:
            self.races.new_epoch()
            y = {"block_any": v.any(axis=1), "block_all": v.all(axis=1), "block_count": v.sum(axis=1)}[s.op][:, None, None]
            y = y.astype(np.int32) if s.op == "block_count" else y
        self.env[s.result] = (spread(y, warps.shape).reshape(v.shape), None)
        return mask

    def do_atomic(self, s, mask):
        b, t = s.buffer, s.buffer.dtype
        everybody, mask, shape = mask, self._by_one(s, mask), self.lanes.shape
        indices = [self.place(i, mask) for i in s.indices]
        flat, inside = self._place(b, indices, mask)
        m, rows = self._memory(b)
        self.spend(mask)
        live = mask & inside
        operands = [None if e is None else spread(self.sure(e, mask), shape) for e in (s.value, s.compare)]
        if self.lanes is self.threads and mask is everybody:
            self._done_by_each([*(spread(i, shape) for i in indices), *(v for v in operands if v is not None)], mask)
        where = [spread(x, shape)[live] for x in (rows, flat)]
        v, compare = (None if x is None else x[live] for x in operands)
        if s.op == "load":
            self.races.read(m, b, *(spread(x, shape) for x in (rows, flat)), self.lanes, live)
        alone = s.op == "load" or self.races.update(m, b, *where, self.lanes, live, s.op, bool(s.result))
        old = m.update(b, *where, s.op, v, compare, alone)
        if s.result:
            y = np.zeros(shape, t.carrier)
            state = np.full(shape, UNSAID, np.uint8)
            if alone:
                y[live], state[live] = old[0], EXACT if old[1] is None else old[1]
            y[mask & ~live], state[mask & ~live] = fill_of(b), UNSAID
            if mask is not everybody:
                y, state = y[:, :1], state[:, :1]
            self.env[s.result] = (y, state)
            self._own(s.result)
        return everybody

    def _in_turn(self, s, indices, mask):
        """Points that change one element by what is there, one after the other: whether that is what they do."""
        b, e, t = s.buffer, s.value, s.buffer.dtype
        op = {"+": "add", "-": "add", "max": "max", "min": "min"}.get(e[2]) if e[0] == "bin" and not t.is_bool else None
        if op is None or b.space == "local" or e[3][0] != "load" or e[3][2] is not b or list(e[3][3]) != list(s.indices):
            return False
        flat, inside = self._place(b, indices, mask)
        m, rows = self._memory(b)
        live = mask & inside
        where = [spread(x, self.lanes.shape)[live] for x in (rows, flat)]
        if not Races._repeats(*where):
            return False
        if b.root in {x.root for x in buffers_of(e[4], set())}:
            raise Invalid("a race: what another changes is read")
        v = spread(self.sure(e[4], mask), self.lanes.shape)[live]
        v = binary("-", np.zeros_like(v), v, t) if e[2] == "-" else v
        self.spend(mask)
        self.races.update(m, b, *where, self.lanes, live, op, False)
        m.update(b, *where, op, v, None, False)
        return True

    @staticmethod
    def _done_by_each(operands, mask):
        """The text does not say that it happens once; where the operands happen to agree, nor does it say otherwise."""
        alike = mask.all(axis=1)
        for x in operands:
            alike = alike & (x == x[:, :1]).all(axis=1)
        if mask.shape[1] > 1 and alike.any():
            raise Invalid("once, or by each thread")

    # ---- tile ops

    def together(self, mask):
        """The blocks that execute a tile op: all threads of each, or none."""
        active = mask.any(axis=1, keepdims=True)
        if not (mask == active).all():
            raise Invalid("a tile op of some threads")
        return active

    def do_map(self, s, mask):
        if self.lanes is not self.threads:
            raise Invalid("a map in a map")
        names, bounds, body = list(s.vars), list(s.extents), s.bodies[0]
        while len(body) == 1 and body[0].kind == "map":  # every point of the one with every point of the other
            names, bounds, body = names + body[0].vars, bounds + body[0].extents, body[0].bodies[0]
        active = self.together(mask)
        self.lanes = self.single
        extents = [spread(self.place(e, active), active.shape) for e in bounds]
        sizes = [max(0, int(e[active].max())) for e in extents]
        count = int(np.prod(sizes))
        saved = self.env, self.frames, self.local_here, self.points
        if count:
            self.lanes = Lanes(self.blocks, count, "points")
            self.env, self.frames, self.points = dict(self.env), [], frozenset(names)
            live, number = spread(active, self.lanes.shape), np.arange(count)
            for var, e, n in reversed(list(zip(names, extents, sizes))):
                i = (number % n).astype(np.int32)[None, :]
                self.env[var], number = (i, None), number // n
                live = live & (i < e)
            of_threads = self.races.stored
            self.races.new_epoch()
            self.races.stored = stored_in(body, True)
            self.execute(body, live.copy())
            self.races.new_epoch()
            self.races.stored = of_threads
        self.env, self.frames, self.local_here, self.points = saved
        self.lanes = self.threads
        return mask

    def region(self, r, active, extent=None):
        """The flat indices [blocks, elements] of a region, and whether each is inside."""
        b = r.buffer
        extent = extent or (b.shape if r.begin is None else r.extent)
        count = int(np.prod(extent))
        number, flat, inside, step = np.arange(count)[None, :], np.zeros((1, 1), np.int64), np.ones((1, 1), bool), 1
        for d in reversed(range(len(extent))):
            begin = 0 if r.begin is None else self.place(r.begin[d], active)
            i = begin + number % extent[d]
            number = number // extent[d]
            inside = inside & (i >= 0) & (i < b.shape[d])
            flat, step = flat + np.clip(i, 0, max(b.shape[d] - 1, 0)) * step, step * b.shape[d]
        if b.size == 0:
            flat = np.zeros_like(flat)
        shape = (self.blocks, count)
        flat, inside = spread(flat, shape), spread(inside, shape)
        if not b.is_global and not inside[active[:, 0]].all():
            raise Invalid("outside of a tile")
        return flat, inside

    def tile(self, r, active):
        """(values, state or None) of a region [blocks, elements]."""
        flat, inside = self.region(r, active)
        m, rows = self._memory(r.buffer)
        v, s = m.get(r.buffer, rows, flat)
        live = inside & active
        self.budget -= live.size
        self.races.read(m, r.buffer, rows, flat, self.single, live)
        if s is not None:
            if not r.buffer.is_global and (s[live] == UNDEFINED).any():
                raise Invalid("read before it is written")
            s = np.where(inside, s, EXACT).astype(np.uint8)
        return (v if inside.all() else np.where(inside, v, fill_of(r.buffer))), s

    def put_tile(self, r, values, state, active):
        flat, inside = self.region(r, active)
        m, rows = self._memory(r.buffer)
        live = spread(inside & active, flat.shape)
        self.budget -= live.size
        rows = spread(rows, flat.shape)[live]
        v = spread(values, flat.shape)[live]
        s = None if state is None else spread(state, flat.shape)[live]
        self.races.write(m, r.buffer, rows, flat[live], v, s, self.single, live)
        m.put(r.buffer, rows, flat[live], v, s)

    def collective(self, s, mask, action):
        result = s.fields.get("to") or s.c
        if self.lanes is not self.threads:
            raise Invalid("a tile op in a map")
        active = self.together(mask)
        self.races.new_epoch()
        self.lanes = self.single
        for r in (s.fields.get(k) for k in ("source", "a", "b")):
            if r and r.buffer.root is result.buffer.root and self._meet(s, r, result, active):
                raise Invalid("a tile op that writes what it reads")
        action(active)
        self.lanes = self.threads
        self.races.new_epoch()
        return mask

    def _meet(self, s, r, result, active):
        """Whether what a tile op writes is also what it reads; element for element that is no harm to a scan."""
        if r.buffer is not result.buffer:
            return True
        (a, inside_a), (b, inside_b) = self.region(r, active), self.region(result, active)
        if s.kind == "scan" and a.shape == b.shape and (a == b).all():
            return False
        rows = range(self.blocks) if not r.buffer.is_global else [slice(None)]
        return any(len(np.intersect1d(a[i][inside_a[i]], b[i][inside_b[i]])) for i in rows)

    def do_copy(self, s, mask):
        if s.fields.get("im2col"):
            return self._patches(s, mask)

        def action(active):
            a, b = s.source, s.to
            v, state = self.tile(a, active)
            t, u = a.buffer.dtype, b.buffer.dtype
            from_extent = a.buffer.shape if a.begin is None else a.extent
            to_extent = b.buffer.shape if b.begin is None else b.extent
            wide, narrow = [e for e in to_extent if e != 1], [e for e in from_extent if e != 1]
            if narrow != wide:  # fewer dimensions: repeated along the first ones
                index = np.arange(int(np.prod(narrow, dtype=int))).reshape(narrow)
                index = spread(index, wide).ravel()
                v, state = v[:, index], None if state is None else state[:, index]
            v, unsaid = cast(v, t, u)
            if not (t.is_float and u.is_float):
                state = join(state)
            state = marked(state, unsaid, UNSAID)
            if s.fields.get("combine"):
                self._combine(s, v, state, active)
            else:
                self.put_tile(b, v, state, active)

        return self.collective(s, mask, action)

    def _patches(self, s, mask):
        """A tile of the patch matrix of an image: row (n, oh, ow), column (kh, kw, c)."""

        def action(active):
            b, p = s.source.buffer, s.im2col
            _, height, width, channels = b.shape
            reach = p["dilation"] * (p["kernel"] - 1) + 1
            out_h, out_w = ((n + 2 * p["pad"] - reach) // p["stride"] + 1 for n in (height, width))
            if out_h < 1 or out_w < 1:
                raise Invalid("an image smaller than a patch")
            rows, columns = [n for n in s.to.buffer.shape][-2:]
            m = self.place(p["row_block"], active) * rows + np.arange(rows * columns)[None, :] // columns
            k = self.place(p["column_block"], active) * columns + np.arange(rows * columns)[None, :] % columns
            y = m // out_w % out_h * p["stride"] + k // (channels * p["kernel"]) * p["dilation"] - p["pad"]
            x = m % out_w * p["stride"] + k // channels % p["kernel"] * p["dilation"] - p["pad"]
            n = m // (out_h * out_w)
            inside = (m >= 0) & (n < b.shape[0]) & (k >= 0) & (k < p["kernel"] ** 2 * channels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            flat = np.where(inside, ((n * height + y) * width + x) * channels + k % channels, 0)
            shape = (self.blocks, rows * columns)
            flat, inside = spread(flat, shape), spread(inside, shape)
            memory, at = self._memory(b)
            v, state = memory.get(b, at, flat)
            self.races.read(memory, b, at, flat, self.single, inside & active)
            v, unsaid = cast(np.where(inside, v, np.zeros((), v.dtype)), b.dtype, s.to.buffer.dtype)
            state = None if state is None else np.where(inside, state, EXACT).astype(np.uint8)
            if not (b.dtype.is_float and s.to.buffer.dtype.is_float):
                state = join(state)
            self.put_tile(s.to, v, marked(state, unsaid, UNSAID), active)

        return self.collective(s, mask, action)

    def _combine(self, s, v, state, active):
        if state is not None:
            raise Invalid("something open in an atomic")
        flat, inside = self.region(s.to, active)
        m, rows = self._memory(s.to.buffer)
        live = spread(inside & active, flat.shape)
        where = spread(rows, flat.shape)[live], flat[live]
        self.races.update(m, s.to.buffer, *where, self.single, live, s.combine, False)
        m.update(s.to.buffer, *where, s.combine, spread(v, flat.shape)[live], None, False)

    def do_fill(self, s, mask):
        def action(active):
            v, state = self.value(s.value, active)
            self.put_tile(s.to, v, state, active)

        return self.collective(s, mask, action)

    def do_finalize(self, s, mask):
        return mask

    def _matrix(self, r, active, transposed):
        v, s = self.tile(r, active)
        if s is not None and (s[active[:, 0]] > EXACT).any():
            raise Invalid("something open in a gemm")
        shape = [e for e in (r.buffer.shape if r.begin is None else r.extent)][-2:]
        v = v.reshape(v.shape[0], *shape)
        v = spread(v, (self.blocks, *shape))
        return v.transpose(0, 2, 1) if transposed else v

    def do_gemm(self, s, mask):
        def action(active):
            a, b = self._matrix(s.a, active, s.transpose_a), self._matrix(s.b, active, s.transpose_b)
            t = s.c.buffer.dtype
            clear = np.zeros((1, 1), bool) if s.clear is None else self.sure(s.clear, active)
            kept = np.zeros(1)
            if not spread(clear, active.shape)[active].all():
                old, state = self.tile(s.c, active & ~clear)
                if state is not None and (state[(active & ~clear)[:, 0]] > EXACT).any():
                    raise Invalid("something open in a gemm")
                kept = np.where(clear, 0, old)
            if t.is_int:
                y = (a.astype(np.int64) @ b.astype(np.int64)).reshape(self.blocks, -1)
                self.put_tile(s.c, (y + kept.astype(np.int64)).astype(t.carrier), None, active)
                return
            if self.program.options.get("tf32") and s.a.buffer.dtype is FLOAT32 and not all(np.array_equal(cut(x), x) for x in (a, b)):
                raise Invalid("operands of which tf32 reads a part")
            a, b = a.astype(np.float64), b.astype(np.float64)
            with np.errstate(all="ignore"):
                y = (a @ b).reshape(self.blocks, -1) + kept
                most = (np.abs(a) @ np.abs(b)).reshape(self.blocks, -1) + np.abs(kept)
            if self.contract and not np.isfinite(most).all():
                raise Invalid("no finite gemm")
            open_ = self._sum_is_open(most, [a, b], kept, 52 if t.bits == 64 else 23)
            self.put_tile(s.c, round_to(t, y), np.full((1, 1), UNSAID, np.uint8) if open_ else None, active)

        return self.collective(s, mask, action)

    @staticmethod
    def _sum_is_open(most, factors, kept, mantissa):
        """Whether a sum of products may round: whether its terms are no multiples of one step within the mantissa."""
        steps = 0
        for x in [*factors, kept]:
            with np.errstate(over="ignore"):
                k = next((k for k in (0, 1, 2, 4, 8) if (np.rint(x * 2.0**k) == x * 2.0**k).all()), 99)
            steps = steps + k if x is not kept else max(steps, k)
        return bool((most * 2.0**steps >= 2.0 ** (mantissa + 1)).any() or not np.isfinite(most).all())

    def do_reduce(self, s, mask):
        def action(active):
            t = s.to.buffer.dtype
            v, state = self.tile(s.source, active)
            shape = s.source.buffer.shape if s.source.begin is None else s.source.extent
            v, unsaid = cast(v, s.source.buffer.dtype, t)
            v = spread(v, (self.blocks, v.shape[1]))
            state = marked(join(state), unsaid, UNSAID)
            split = (self.blocks, *shape)
            v = v.reshape(split)
            if s.op in ("abssum", "absmax"):
                v = unary("abs", v, t)[0]
            axis = s.dim + 1
            marks = None if state is None else spread(state, (self.blocks, int(np.prod(shape)))).reshape(split).max(axis=axis)
            if not s.clear:
                old, old_state = self.tile(s.to, active)
                old = spread(old, (self.blocks, old.shape[1])).reshape([n for i, n in enumerate(split) if i != axis])
                if s.op == "absmax" and (np.broadcast_to(old, (self.blocks, *old.shape[1:]))[active[:, 0]] < 0).any():
                    raise Invalid("absmax beside a negative number")
                v = np.concatenate([v, np.expand_dims(old, axis)], axis=axis)
                old_state = None if old_state is None else join(old_state).reshape(old.shape)
                marks = old_state if marks is None else marks if old_state is None else np.maximum(marks, old_state)
            y, open_ = self._reduced(s, v, axis, t)
            if s.op == "absmax" and t.is_signed:  # the magnitude of the least number is itself, and less than nothing
                y = np.maximum(y, np.zeros_like(y))
            if open_ is not None:
                marks = marked(marks, open_, UNSAID)
            self.put_tile(s.to, y.reshape(self.blocks, -1), None if marks is None else marks.reshape(self.blocks, -1), active)

        return self.collective(s, mask, action)

    @staticmethod
    def _exact_sum(v, axis, t, total):
        """Where a sum of floats may round, in whatever order."""
        with np.errstate(all="ignore"):
            steps = next(k for k in (0, 1, 2, 4, 8, 2000) if (np.rint(v * 2.0**min(k, 99)) == v * 2.0**min(k, 99)).all() or k == 2000)
            most = np.abs(v).sum(axis=axis)
            return (most * 2.0**min(steps, 1000) > 2.0 ** (t.mantissa + 1)) | ~np.isfinite(total)

    def _reduced(self, s, v, axis, t):
        with np.errstate(all="ignore"):
            if s.op in ("sum", "abssum"):
                if not t.is_float:
                    return wrap_sum(np.add.reduce(v, axis=axis, dtype=t.carrier), t), None
                y = v.astype(np.float64).sum(axis=axis)
                return round_to(t, y), self._exact_sum(v.astype(np.float64), axis, t, y)
            if s.op.startswith("bit"):
                return {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[s.op].reduce(v, axis=axis), None
            most = s.op != "min"
            if not t.is_float:
                return (np.maximum if most else np.minimum).reduce(v, axis=axis), None
            zeros, plus, minus = v == 0, ~np.signbit(v), np.signbit(v)
            y = ((np.maximum if most else np.minimum) if s.nan_propagate else np.fmax if most else np.fmin).reduce(v, axis=axis)
            y = either_zero(y, (zeros & plus).any(axis=axis), (zeros & minus).any(axis=axis))
            return y, None if s.nan_propagate else np.isnan(y)  # of nothing but NaN: the identity, or NaN

    def do_scan(self, s, mask):
        def action(active):
            t = s.to.buffer.dtype
            v, state = self.tile(s.source, active)
            shape = s.source.buffer.shape if s.source.begin is None else s.source.extent
            v, unsaid = cast(v, s.source.buffer.dtype, t)
            if state is not None and (state > EXACT).any():
                raise Invalid("something open in a scan")
            v = spread(v, (self.blocks, v.shape[1])).reshape(self.blocks, *shape)
            axis, open_ = s.dim + 1, unsaid
            v = np.flip(v, axis) if s.reverse else v
            with np.errstate(all="ignore"):
                if s.op == "max":
                    y, bad = (np.fmax if t.is_float else np.maximum).accumulate(v, axis=axis), False
                    if t.is_float:
                        zeros, bad = v == 0, np.isnan(v).any()
                        y = either_zero(y, (zeros & ~np.signbit(v)).any(axis=axis, keepdims=True), (zeros & np.signbit(v)).any(axis=axis, keepdims=True))
                elif t.is_float:
                    wide = np.cumsum(v.astype(np.float64), axis=axis)
                    bad = self._exact_sum(v.astype(np.float64), axis, t, wide.sum(axis=axis)).any()
                    y = round_to(t, wide)
                else:
                    y, bad = wrap_sum(np.add.accumulate(v, axis=axis, dtype=t.carrier), t), False
            y = np.flip(y, axis) if s.reverse else y
            mark = np.full((1, 1), UNSAID, np.uint8) if bad or open_ is not None else None
            self.put_tile(s.to, y.reshape(self.blocks, -1), mark, active)

        return self.collective(s, mask, action)


def is_sum(e):
    return e[0] == "bin" and e[1] is INT32 and e[2] in ("+", "-", "*")


def magnitude(e):
    """What the numbers of a sum of products come to, signs aside."""
    if not is_sum(e):
        return max(1, abs(int(e[2]))) if e[0] == "const" else 1
    a, b = magnitude(e[3]), magnitude(e[4])
    return a * b if e[2] == "*" else a + b


def cut(x):
    """Floats with ten bits of their mantissas."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def stored_in(body, with_tile_ops):
    """The buffers whose memory statements write; without tile ops, those that the code of threads does."""
    found = set()

    def look(body):
        for s in body:
            if s.kind == "roles":
                look(s.meaning())
            if s.kind in ("store", "atomic"):
                found.add(s.buffer.root)
            elif with_tile_ops and "to" in s.fields:
                found.add(s.to.buffer.root)
            elif with_tile_ops and s.kind == "gemm":
                found.add(s.c.buffer.root)
            if with_tile_ops or s.kind != "map":
                for inner in s.bodies:
                    look(inner)

    look(body)
    return {b for b in found if b.space != "local"}


def wrap_sum(x, t):
    from scalars import wrap

    return wrap(t, x)


def fill_of(b):
    return np.array(0 if b.fill is None else b.fill, b.dtype.carrier)
