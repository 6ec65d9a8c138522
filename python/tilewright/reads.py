"""When elements and variables are read. An expression reads where it is used; Python reads where it is written. The two
differ where a store comes between, as with an element in a list, the indices of a named slice or a helper's arguments: a
trace that finds such a value tells the next one, which reads it early, where Python does."""
from .trace import _TABLE, OPERATIONS, fail, place
from .values import Buffer, Expr, Reading, Tile, Var

_LET, _LOAD, _ADD, _SUB = (OPERATIONS[n] for n in ("let", "load", "add", "sub"))
_OPEN = frozenset(n for name, n in OPERATIONS.items() if name.startswith("open_"))
_CLOSE = frozenset({OPERATIONS["close"], OPERATIONS["close_launch"]})
_LOOPS = frozenset(OPERATIONS[n] for n in ("open_for", "open_map", "open_persistent", "open_while"))
# Of tile operations, what these parameters name is read alone.
_ONLY_READ = frozenset("src A B A_sparse E img value compare obj".split())
_SAME_MEMORY = frozenset({"reshape", "view", "make_tensor"})
_NO_EFFECT = frozenset(
    "load let constant dynamic_symbol tensor scalar_parameter rename shape_of strides_of dtype_of space_of name_of layout_index "
    "set_layout set_safe_value depth statements in_launch set_option fail get_thread_binding get_block_binding get_thread_extent "
    "get_cluster_dim block_rank_in_cluster get_lane_idx get_warp_idx get_warp_idx_sync get_warp_group_idx use_swizzle assume "
    "annotate_min_blocks_per_sm alloc_scalar address_of".split()
)
_PLAIN = frozenset({int, float, str, bool, type(None)})
_NOTHING = frozenset()
_MOST_OPERATIONS = 1000  # of one expression: compilers walk them by recursion


class _Way:
    """How an operation uses its operands: which are values, and which are memory that it writes."""

    def __init__(self, name, group, signature):
        words = [p.strip().partition(": ") for p in signature.split(", ")] if signature else []
        words = [(n, kind.partition(" ")[0]) for n, _, kind in words]
        words = [w for w in words if w[1] not in ("", "ignored", "absent")]
        self.is_address = name == "address_of"  # reads the indices alone
        self.pure = group == "scalar" and not self.is_address
        self.values = [k in ("expr", "exprs", "list") or (self.pure and k == "tile") for _, k in words]
        self.effect = group not in ("scalar", "buffer") and name not in _NO_EFFECT
        self.writes = [
            self.effect and k in ("tile", "buffer") and (n == "out" if name.startswith("reduce_") else n not in _ONLY_READ or name.startswith("cum"))
            for n, k in words
        ]
        self.same_memory = name in _SAME_MEMORY


_WAYS = [_Way(*row[:3]) for row in _TABLE]


class Made:
    """When a value was made that has yet to be read: its number, the time, and the memory that it reads."""

    __slots__ = ("number", "time", "memory")

    def __init__(self, number, time, memory=_NOTHING):
        self.number, self.time, self.memory = number, time, memory


class Reads:
    """The memory that a trace has written so far, and the values that have yet to be read."""

    def __init__(self, decisions):
        self.decisions = decisions
        self.time = self.count = 0
        self.effects = 0  # operations so far that do more than compute
        self.written = {}  # number of a buffer -> when
        self.same = {}  # number of a view -> that of the buffer whose memory it is
        self.open = []  # of what is open: (when a loop began, values from before it that it reads), or None

    def note(self, value, tracer, depth=3):
        """An element, or a variable among other values, is written here and read later."""
        self.count += 1
        value.made = Made(self.count, self.time)
        if self.count in self.decisions.early:
            at = place(depth)
            value.early = tracer.builder.apply(_LET, at, "", tracer.builder.apply(_LOAD, at, value))

    def indices(self, tile, tracer):
        """The indices of a tile that is written here and may be used later: variables are what they are now."""
        for d, index in enumerate(tile.indices):
            if type(index) in _PLAIN:
                continue
            now = self._slice(tile, d, index, tracer) if type(index) is slice else self._reading(index, tracer)
            if now is not index:
                tile.indices = (*tile.indices[:d], now, *tile.indices[d + 1 :])

    def _slice(self, tile, d, index, tracer):
        """Its two ends are read at one time, so that an extent that is known stays known."""
        start, stop = self._reading(index.start, tracer), self._reading(index.stop, tracer)
        if type(start) in _PLAIN and type(stop) in _PLAIN:
            return index
        self.count += 1
        if self.count in self.decisions.early:
            native, at = tracer.builder.apply, place(4)
            extent = None if stop is None else native(_SUB, at, stop, 0 if start is None else start)
            extent = None if type(extent) is Expr and extent.constant is None else extent
            start = start if type(start) in _PLAIN else native(_LET, at, "", native(_LOAD, at, start))
            if extent is not None:
                stop = native(_ADD, at, 0 if start is None else start, extent)
            elif type(stop) not in _PLAIN:
                stop = native(_LET, at, "", native(_LOAD, at, stop))
        else:
            tile.slices = {**(tile.slices or {}), d: Made(self.count, self.time)}
        return index if start is index.start and stop is index.stop else slice(start, stop)

    def _reading(self, value, tracer):
        if type(value) is not Var:
            return value
        reading = Reading(value)
        self.note(reading, tracer, 5)
        return reading

    def memory_of(self, buffer):
        number = buffer.id
        return self.same.get(number, number)

    def _use(self, made):
        """A value is read now, that was made before."""
        for memory in made.memory:
            if self.written.get(memory, -1) > made.time:
                self.decisions.more_early.add(made.number)
                return
        for loop in reversed(self.open):
            if loop is not None:
                if loop[0] <= made.time:
                    break
                loop[1].append(made)  # the loop may write its memory further down, and its next turn would read that

    def _value(self, operand):
        """The operand, or what was read of it early; and the memory that it reads, or None."""
        kind = type(operand)
        if kind in _PLAIN:
            return operand, None
        if kind is Expr:
            made = operand.taint
            if made is None:
                return operand, None
            self._use(made)
            return operand, made.memory
        if kind is Tile or kind is Reading:
            if operand.early is not None:
                return operand.early, None
            memory = frozenset((self.memory_of(operand.buffer if kind is Tile else operand),))
            if kind is Tile:
                of_indices, indices = self._of_indices(operand)
                memory |= of_indices
                operand.indices = indices
            if operand.made is not None:
                operand.made.memory = memory
                self._use(operand.made)
            return operand, memory
        if isinstance(operand, Var):
            return operand, frozenset((self.memory_of(operand),))
        if kind is list or kind is tuple:
            parts = [self._value(o) for o in operand]
            memory = _NOTHING.union(*(m for _, m in parts if m is not None))
            return [o for o, _ in parts], memory or None
        return operand, None

    def _memory_read(self, value):
        """The memory that a value reads, which is another's to read in time."""
        kind = type(value)
        if kind is Expr:
            return _NOTHING if value.taint is None else value.taint.memory
        if kind is Tile:
            return frozenset((self.memory_of(value.buffer),)).union(*map(self._memory_read, value.indices)) if value.early is None else _NOTHING
        return frozenset((self.memory_of(value),)) if isinstance(value, Var) and getattr(value, "early", None) is None else _NOTHING

    def _of_indices(self, tile):
        """The memory that the indices of a tile read, and the indices, of which some may have been read early."""
        memory, indices = _NOTHING, tile.indices
        for d, index in enumerate(tile.indices):
            if type(index) in _PLAIN:
                continue
            if type(index) is slice:
                now, made = index, tile.slices.get(d) if tile.slices else None
                if made is not None:
                    made.memory = self._memory_read(index.start) | self._memory_read(index.stop)
                    memory |= made.memory
                    self._use(made)
                    continue
                (start, read_at_start), (stop, read_at_stop) = self._value(index.start), self._value(index.stop)
                memory |= (read_at_start or _NOTHING) | (read_at_stop or _NOTHING)
                if start is not index.start or stop is not index.stop:
                    now = slice(start, stop)
            else:
                now, found = self._value(index)
                memory |= found or _NOTHING
            if now is not index:
                indices = (*indices[:d], now, *indices[d + 1 :])
        return memory, indices

    def apply(self, native, operation, at, operands):
        """An operation of the table, on values as they were where Python evaluated them."""
        way = _WAYS[operation]
        memory, given, written = None, operands, []
        for number, operand in enumerate(operands):
            kind = type(operand)
            if kind in _PLAIN or number >= len(way.values):
                continue
            if way.values[number]:
                value, found = self._value(operand)
                if value is not operand:
                    given = [*given[:number], value, *given[number + 1 :]]
                if found:
                    memory = found if memory is None else memory | found
            elif kind is Tile:
                of_indices, operand.indices = self._of_indices(operand)
                if way.is_address and of_indices:
                    memory = of_indices
            if way.writes[number] and (kind is Tile or isinstance(operand, Buffer)):
                written.append(operand.buffer if kind is Tile else operand)
        result = native(operation, at, *given)
        if way.pure or way.is_address:
            if type(result) is Expr:
                size = 1
                for operand in given:
                    if type(operand) is Expr:
                        size += operand.size
                if size > _MOST_OPERATIONS:
                    return self._evaluated(native, at, result, size)
                result.size = size
            if memory is not None and type(result) is Expr:
                self.count += 1
                if self.count in self.decisions.early:
                    return native(_LET, at, "", result)
                result.taint = Made(self.count, self.time, memory)
        elif way.effect:
            self._done(operation, written)
        elif way.same_memory:
            source = operands[0].buffer if type(operands[0]) is Tile else operands[0]
            self.same[result.id] = self.memory_of(source) if isinstance(source, Buffer) and not isinstance(source, Var) else -1
        return result

    @staticmethod
    def _evaluated(native, at, value, size):
        """A value that is too large to be an operand, evaluated here; that is where Python evaluates it."""
        made = native(_LET, at, "", value)
        if made.same(value):  # outside of a launch
            if size > 4 * _MOST_OPERATIONS:
                fail("UnsupportedSyntax", f"an expression of more than {4 * _MOST_OPERATIONS} operations outside of a launch", "compute it in the launch", at)
            made.size = size
        return made

    def _done(self, operation, written):
        self.effects += 1
        if written:
            self.time += 1
            for buffer in written:
                self.written[self.memory_of(buffer)] = self.time
        elif operation in _OPEN:
            self.time += 1
            self.open.append((self.time, []) if operation in _LOOPS else None)
        elif operation in _CLOSE and self.open:
            loop = self.open.pop()
            for made in loop[1] if loop is not None else ():
                if any(self.written.get(memory, -1) > loop[0] for memory in made.memory):
                    self.decisions.more_early.add(made.number)
