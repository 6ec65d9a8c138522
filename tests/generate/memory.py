"""What buffers hold while the model runs, what is known of it, and who touched it without order."""
import numpy as np
from scalars import CLOSE, EXACT, UNDEFINED, UNSAID, binary, decode, encode, wrap


class Invalid(Exception):
    """The language does not say what the program does: the statement that runs is at fault."""


def spread(x, shape):
    return x if x.shape == shape else np.broadcast_to(x, shape)


class Memory:
    """The bytes of a buffer, `rows` times, and a state for each unit of the narrowest type that it is seen through."""

    def __init__(self, buffer, rows, views):
        self.buffer, widths = buffer, [buffer.dtype.bytes] + [v.dtype.bytes for v in views]
        self.unit = min(widths)
        self.is_seen_otherwise = any(v.dtype is not buffer.dtype for v in views)
        self.bytes = np.zeros((rows, max(1, buffer.size) * buffer.dtype.bytes), np.uint8)
        self.known = np.full((rows, self.bytes.shape[1] // self.unit), UNDEFINED, np.uint8)

    def set_all(self, stored):
        if len(stored):
            self.bytes[:] = np.ascontiguousarray(stored).view(np.uint8).reshape(1, -1)
        self.known[:] = EXACT

    def data(self, b):
        return self.bytes.view(b.dtype.storage)

    def states(self, b):
        ratio = b.dtype.bytes // self.unit
        return self.known if ratio == 1 else self.known.reshape(len(self.known), -1, ratio).max(axis=2)

    def units(self, b, flat):
        """(how many units an element has, the first of each)."""
        ratio = b.dtype.bytes // self.unit
        return ratio, flat * ratio

    def get(self, b, rows, flat):
        values = decode(b.dtype, self.data(b)[rows, flat])
        if b.dtype.is_bool:
            values = values.astype(np.bool_)
        ratio, first = self.units(b, flat)
        state = self.known[rows, first]
        for k in range(1, ratio):
            state = np.maximum(state, self.known[rows, first + k])
        return values, state if state.any() else None

    def put(self, b, rows, flat, values, state):
        self.data(b)[rows, flat] = encode(b.dtype, values)
        ratio, first = self.units(b, flat)
        state = np.zeros(len(rows), np.uint8) if state is None else state
        if self.is_seen_otherwise:  # what is known about is not known as another type
            state = np.where(state == CLOSE, UNSAID, state).astype(np.uint8)
        if self.is_seen_otherwise and b.dtype.is_float:  # a NaN's bits are nobody's to say, nor a zero's sign here
            state = np.where(np.isnan(values) | (values == 0) & np.signbit(values), np.maximum(state, 2), state).astype(np.uint8)
        for k in range(ratio):
            self.known[rows, first + k] = state

    def update(self, b, rows, flat, op, v, compare, alone):
        """An atomic; the old values and their state where each element has one update alone."""
        t = b.dtype
        old, state = self.get(b, rows, flat)
        if state is not None:
            raise Invalid("an atomic on something open")
        if op == "load":
            return old, state
        if alone:
            if op == "compare_exchange" and t.is_float and ((old == 0) & (compare == 0) | np.isnan(old) & np.isnan(compare)).any():
                raise Invalid("bits are compared, and nobody says a zero's sign or those of NaN")
            same = _bits(t, old) == _bits(t, compare) if op == "compare_exchange" else None
            new = {"store": lambda: v, "exchange": lambda: v, "compare_exchange": lambda: np.where(same, v, old),
                   "add": lambda: binary("+", old, v, t), "max": lambda: binary("max", old, v, t), "min": lambda: binary("min", old, v, t),
                   "and": lambda: old & v, "or": lambda: old | v, "xor": lambda: old ^ v}[op]()  # fmt: skip
            self.put(b, rows, flat, new, None)
            return old, state
        if op in ("exchange", "compare_exchange", "store"):
            raise Invalid("the order of atomics decides")
        self._update_many(b, rows, flat, op, v)
        return old, None

    def _update_many(self, b, rows, flat, op, v):
        t = b.dtype
        all_values = decode(t, self.data(b)).copy()
        if t.is_float:
            wide, most = all_values.astype(np.float64), np.abs(all_values.astype(np.float64))
            if op == "add":
                if not (np.isfinite(v).all() and (np.rint(v * 4) == v * 4).all()):
                    raise Invalid("a float sum that rounds")
                np.add.at(wide, (rows, flat), v)
                np.add.at(most, (rows, flat), np.abs(v))
                touched = most[rows, flat]
                if not ((touched * 4 < 2.0 ** (t.mantissa + 1)) & (np.rint(wide[rows, flat] * 4) == wide[rows, flat] * 4)).all():
                    raise Invalid("a float sum that rounds")
            else:
                if np.isnan(v).any() or np.isnan(wide[rows, flat]).any() or (v == 0).any():
                    raise Invalid("an atomic of NaN or of zeros")
                (np.maximum if op == "max" else np.minimum).at(wide, (rows, flat), v)
            new = wide[rows, flat].astype(t.carrier)
        else:
            {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
             "xor": np.bitwise_xor}[op].at(all_values, (rows, flat), v)  # fmt: skip
            new = wrap(t, all_values[rows, flat])
        self.put(b, rows, flat, new, None)


NOBODY, SEVERAL = -1, -2
COMMUTING = ("add", "max", "min", "and", "or", "xor")  # the same, of several, in any order
ONE = len(COMMUTING)  # anything else: of one lane alone


def _differ(a, b):
    """Bit for bit; a NaN may be any."""
    if a.dtype.kind != "f":
        return a != b
    bits = f"u{a.dtype.itemsize}"
    return (np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)) | np.isnan(a)


def _bits(t, values):
    return np.ascontiguousarray(encode(t, values)).view(f"u{t.bytes}")


class Races:
    """Who read and wrote each element since the last barrier, and which block did in this launch. Buffers that nobody
    stores to are not watched: `stored` are those of the code that runs, `stored_by_blocks` those of the launch."""

    def __init__(self, blocks, stored_by_blocks):
        self.tables, self.global_tables, self.blocks = {}, {}, blocks
        self.stored_by_blocks, self.stored = stored_by_blocks, frozenset()

    def new_epoch(self):
        self.tables = {}

    def _kept(self, m, lanes):
        """The tables that hold these accesses: [(writers, readers, atomics, who does those), ...] and who counts there."""
        is_global = m.buffer.space in ("param", "global")
        if lanes.kind != "block" and m.buffer in self.stored:
            if m not in self.tables:
                rows = self.blocks if is_global else len(m.known)
                self.tables[m] = np.full((4, rows, m.known.shape[1]), NOBODY, np.int32)
            yield self.tables[m], False
        if is_global and self.blocks > 1 and m.buffer in self.stored_by_blocks:
            if m not in self.global_tables:
                self.global_tables[m] = np.full((4, 1, m.known.shape[1]), NOBODY, np.int32)
            yield self.global_tables[m], True

    def _who(self, by_block, lanes, rows, live):
        """(rows of the table, who) of the live accesses."""
        shape = live.shape
        block = spread(lanes.rows, shape)[live]
        if by_block:
            return np.zeros_like(block), block.astype(np.int32)
        lane = spread(lanes.ids, shape)[live].astype(np.int32)
        return rows, lane

    def _table_rows(self, m, lanes, rows, live, by_block):
        if by_block:
            return None
        if m.buffer.space in ("param", "global"):
            return spread(lanes.rows, live.shape)[live]
        return rows

    def read(self, m, b, rows, flat, lanes, live):
        tables = list(self._kept(m, lanes))
        if not tables:
            return
        shape = live.shape
        rows, flat = spread(rows, shape)[live], spread(flat, shape)[live]
        ratio, first = m.units(b, flat)
        for table, by_block in tables:
            at, who = self._who(by_block, lanes, self._table_rows(m, lanes, rows, live, by_block), live)
            for k in range(ratio):
                place = (at, first + k)
                for one in (table[0][place], table[3][place]):
                    if ((one != NOBODY) & (one != who)).any():
                        raise Invalid("a race: what another wrote is read")
                reader = table[1][place]
                table[1][place] = who
                others = (table[1][place] != who) | (reader != NOBODY) & (reader != who)
                if others.any():
                    table[1][at[others], (first + k)[others]] = SEVERAL

    def write(self, m, b, rows, flat, values, state, lanes, live):
        tables = list(self._kept(m, lanes))
        ratio, first = m.units(b, flat)
        stored = encode(b.dtype, values)
        if len(stored) and m.buffer.space != "local":  # two values for one element in one statement
            memory, old = m.data(b), None
            old = memory[rows, flat]
            memory[rows, flat] = stored
            found = memory[rows, flat]
            if (_differ(found, stored).any() or state is not None and state.any()) and self._repeats(rows, flat):
                raise Invalid("a race: two values for one element")
            memory[rows, flat] = old
        for table, by_block in tables:
            at, who = self._who(by_block, lanes, self._table_rows(m, lanes, rows, live, by_block), live)
            for k in range(ratio):
                place = (at, first + k)
                reader, writer = table[1][place], table[0][place]
                updater = table[3][place]
                if ((reader != NOBODY) & (reader != who)).any() or ((updater != NOBODY) & (updater != who)).any():
                    raise Invalid("a race: what another reads is written")
                other = (writer != NOBODY) & (writer != who)
                if other.any():
                    now = m.data(b)[rows, flat]
                    there = m.known[rows[other], (first + k)[other]]  # what the other wrote may be open, and only here the same
                    if _differ(now[other], stored[other]).any() or state is not None or (there > EXACT).any():
                        raise Invalid("a race: two values for one element")
                table[0][place] = who
                several = (table[0][place] != who) | other
                if several.any():
                    table[0][at[several], (first + k)[several]] = SEVERAL

    @staticmethod
    def _repeats(rows, flat):
        return len(np.unique(rows * (1 << 40) + flat)) != len(flat)

    def update(self, m, b, rows, flat, lanes, live, op, wanted):
        """Notes atomics. Whether each element is touched by one lane alone, so that old values are known, if they are wanted."""
        ratio, first = m.units(b, flat)
        kept = [(table, *self._who(by_block, lanes, self._table_rows(m, lanes, rows, live, by_block), live))
                for table, by_block in self._kept(m, lanes)]  # fmt: skip
        alone = not self._repeats(rows, flat)
        if m.buffer.space in ("param", "global") and self.blocks > 1:
            alone = alone and self._one_block(lanes, live)
        for table, at, who in kept:
            writer, reader, _, updater = (one[at, first] for one in table)
            for one in (writer, reader):
                if ((one != NOBODY) & (one != who)).any():
                    raise Invalid("a race: an atomic and another access")
            alone = alone and not ((updater != NOBODY) & (updater != who)).any()
        mark = ONE if op in ("exchange", "compare_exchange", "store") or wanted and alone else COMMUTING.index(op)
        for table, at, who in kept:
            done, updater = table[2][at, first], table[3][at, first]
            if ((updater != NOBODY) & (updater != who) & ((done != mark) | (mark == ONE))).any():
                raise Invalid("the order of atomics decides")
            done, others = np.where((done == NOBODY) | (done == mark), mark, ONE), (updater != NOBODY) & (updater != who)
            for k in range(ratio):
                place = (at, first + k)
                table[2][place], table[3][place] = done, who
                several = (table[3][place] != who) | others
                table[3][at[several], (first + k)[several]] = SEVERAL
        return alone

    @staticmethod
    def _one_block(lanes, live):
        return np.count_nonzero(live.any(axis=1)) <= 1
