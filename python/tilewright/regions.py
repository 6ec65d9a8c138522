"""Names that are bound again where only run time decides: under an if, in a loop, in a role. What Python means is a
variable: a trace that finds such a name tells the next one, which makes it a variable before the if or the loop."""
import sys

from .python_state import PythonState
from .syntax import HOOKS
from .trace import OPERATIONS, apply, fail, place, state
from .values import Buffer, Expr, Place, Tile, Var, rename
from .vectors import VectorVariable

_CAST, _ALLOC, _STATEMENTS = OPERATIONS["cast"], OPERATIONS["alloc_scalar"], OPERATIONS["statements"]
_NUMBERS = (bool, int, float)
_RANKS = ["bool", "int32", "int64", "float32"]  # of Python's own numbers, which take over the type of what they meet


class Kind:
    """The type of a name that becomes a variable: that of Python's number, or of an expression."""

    __slots__ = ("dtype", "weak")

    def __init__(self, dtype, weak):
        self.dtype, self.weak = dtype, weak

    def joined(self, other):
        """The type that holds the values of both, or None."""
        if self.weak and other.weak:
            return Kind(max(self.dtype, other.dtype, key=_RANKS.index), True)
        if self.weak or other.weak:
            weak, strong = (self, other) if self.weak else (other, self)
            if _RANKS.index(weak.dtype) > (0 if strong.dtype == "bool" else 3 if "float" in strong.dtype else 2):
                return Kind(weak.dtype, False)
            return Kind(strong.dtype, False)
        if self.dtype == other.dtype:
            return self
        return Kind("int64", False) if {self.dtype, other.dtype} == {"int32", "int64"} else None


def kind_of(value):
    """What a variable for this value is of; None where no variable holds it."""
    if isinstance(value, Mark):
        return value.kind()
    if isinstance(value, Expr):
        return Kind(str(value.dtype_name), False)
    if isinstance(value, Var) or (isinstance(value, Tile) and value.is_element):
        return Kind(str(value.dtype), False)
    if type(value) not in _NUMBERS:
        return None
    if type(value) is int:
        return Kind("int32", True) if -(2**31) <= value < 2**31 else Kind("int64", True) if -(2**63) <= value < 2**63 else None
    return Kind("bool" if type(value) is bool else "float32", True)


def is_same(a, b):
    """Whether a name means the same with either value."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Mark):
        return False
    if isinstance(a, Expr):
        return a.ended is None and b.ended is None and a.taint is None and b.taint is None and a.same(b)
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, (list, tuple)):
        return type(a) is tuple and len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, (int, str, bytes, complex, type(None))) and a == b


def _is_over(value):
    """Whether it is no value to go on with: none as yet, or one whose scope has ended."""
    return isinstance(value, Unbound) or (isinstance(value, Expr) and value.ended is not None)


def _is_buffer(value):
    if isinstance(value, Mark):
        value = value.some()
    return isinstance(value, Buffer) and not isinstance(value, Var)


def _was_buffer(before, changed):
    """Whether a buffer's name has become a number's: no turn of Python that uses it as a buffer comes after that."""
    first = before.some() if isinstance(before, Mark) else before

    def is_number(value):
        if isinstance(value, Merged):
            return all(map(is_number, value.values))
        value = value.some() if isinstance(value, Mark) else value
        return value is first or kind_of(value) is not None

    return _is_buffer(before) and all(map(is_number, changed))


def described(value):
    if isinstance(value, Mark):
        value = value.some()
    if _is_buffer(value):
        return f"buffer '{value.name}'"
    kind = kind_of(value)
    return f"{kind.dtype}" if kind is not None and not kind.weak else repr(value)


# ---- what traces tell each other


class Decisions:
    """What the traces of one program have found out so far."""

    def __init__(self):
        self.variables = {}  # (region, name) -> Kind
        self.early = frozenset()  # numbers of the values that are read where they are made
        self.begin()

    def begin(self):
        self.more_variables, self.more_early = False, set()
        self.stand_ins = []  # (a Merged that this trace has read, the place): the next trace has a variable there

    def need(self, key, name, kind):
        """Notes that a name is a variable of a region. False where its type does not hold all its values."""
        known = self.variables.get((key, name))
        joined = kind if known is None else known.joined(kind)
        if joined is None:
            return False
        if known is None or (joined.dtype, joined.weak) != (known.dtype, known.weak):
            self.variables[key, name] = joined
            self.more_variables = self.more_variables or known is None or joined.dtype != known.dtype
        return True

    def again(self):
        """Whether another trace would be another program. Values are numbered anew where there are new variables."""
        if self.more_variables:
            self.early = frozenset()
            return True
        early = self.early | self.more_early
        changed, self.early = early != self.early, early
        return changed


_MOST_TRACES = 64


def until_settled(trace):
    """The result of the first trace that finds out nothing new."""
    decisions = Decisions()
    for _ in range(_MOST_TRACES):
        decisions.begin()
        try:
            result = trace(decisions)
        except Exception:
            if not decisions.again():
                raise
            continue
        if not decisions.again():
            for merged, at in decisions.stand_ins:
                merged.refuse(at)
            return result
    fail("UnsupportedSyntax", "names of this function are bound again in more ways than can be followed",
         "make them variables: T.alloc_var(dtype, init)")  # fmt: skip


# ---- marks: what a name holds whose value only run time knows


class Mark:
    """Stands in a name. Reading the name asks it for the value."""

    def read(self):
        raise NotImplementedError

    def kind(self):
        return None

    def some(self):
        return self


class Unbound(Mark):
    """No value as yet."""

    def __init__(self, name):
        self.name = name

    def read(self):
        raise UnboundLocalError(f"cannot access local variable '{self.name}' where it is not associated with a value")


class Held(Mark):
    """The value that a name had before a loop, until a turn binds it again. Notes whether a turn reads it."""

    def __init__(self, value):
        self.value, self.was_read = value, False

    def read(self):
        self.was_read = True
        return read(self.value)

    def kind(self):
        return kind_of(self.value)

    def some(self):
        return self.value.some() if isinstance(self.value, Mark) else self.value


class Merged(Mark):
    """One of several values, by what run time has decided. Reading it asks for a variable, in the next trace."""

    def __init__(self, region, name, values):
        self.region, self.name, self.values, self.stand_in = region, name, values, None

    def kind(self):
        kinds = [kind_of(v) for v in self.values]
        result = kinds[0]
        for kind in kinds[1:]:
            if result is None or kind is None:
                return None
            result = result.joined(kind)
        return result

    def some(self):
        return self.values[-1].some() if isinstance(self.values[-1], Mark) else self.values[-1]

    def read(self):
        if self.stand_in is None:
            self.region.need(self.name, self.values)
            self.stand_in = _variable(self.name, self.kind(), None)
            state.tracer.decisions.stand_ins.append((self, place()))
        return self.stand_in

    def refuse(self, at):
        """What bound the name again did not store to the variable that a region has made of it."""
        ended = next((v.ended for v in _leaves(self.values) if isinstance(v, Expr) and v.ended is not None), None)
        if ended is not None:
            fail("NameEnded", ended, "bind it outside, or keep it in a T.alloc_var", at)
        self.region.refuse(self.name, " and ".join(dict.fromkeys(map(described, self.values))), False, at)


def _leaves(values):
    for value in values:
        yield from _leaves(value.values) if isinstance(value, Merged) else (value,)


def read(value):
    """The value of a name that a region binds."""
    return value.read() if isinstance(value, Mark) else value


def _variable(name, kind, init):
    """A variable of the program; what holds it from here on is the name."""
    if isinstance(init, Mark):
        init = None if isinstance(init, Unbound) else read(init)
    if kind_of(init) is None or _is_over(init):
        init = None
    if isinstance(init, (Expr, Var, Tile)) and str(init.dtype) != kind.dtype:
        init = apply(_CAST, init, kind.dtype)
    made = Var(apply(_ALLOC, kind.dtype, init).id)
    made.named = True
    rename(made, name)
    return made


class Rebound:
    """What is known of a variable that a region has made of a name."""

    __slots__ = ("region", "name", "scopes", "others")

    def __init__(self, region, name, scopes):
        self.region, self.name, self.scopes = region, name, scopes
        self.others = []  # regions after that one, which need a variable for the name too

    def goes_on(self, region, tracer, kind):
        self.others.append(region)
        self._need(tracer, kind)

    @property
    def is_open(self):
        """Whether what binds the name has to store to it."""
        return self.region.is_open or any(r.is_open for r in self.others)

    def take(self, tracer, value):
        """A value is stored to it: its type has to hold that, and only one point of a Parallel may say what it is."""
        kind = kind_of(value)
        if any(s.region is not None and s.region.what == "Parallel" for s in tracer.scopes[self.scopes :]):
            self.region.refuse_parallel(self.name)
        self._need(tracer, kind, value)

    def _need(self, tracer, kind, value=None):
        if kind is None or not tracer.decisions.need(self.region.key, self.name, kind):
            held = tracer.decisions.variables[self.region.key, self.name].dtype
            self.region.refuse(self.name, f"{held} and {kind.dtype if value is None else described(value)}", True)


# ---- regions


_KEPT = (list, dict, set, bytearray)


class Region:
    """An if, a loop or a role while it is traced, and the names that it binds: what they held before, what they hold at
    its ends, and what they hold from then on. `changes` says that the names take `values`."""

    __slots__ = ("place", "names", "key", "changes", "values", "before", "ends", "what", "variables", "kept", "may_skip", "since", "is_open", "bound_by_test", "watched")

    def __init__(self, place, *names, watched=()):
        """watched: names from around the function whose values it may change, and reads."""
        self.place, self.names, self.changes, self.what, self.is_open = place, names, False, None, False
        self.watched = watched
        self.bound_by_test = frozenset()

    def begin(self, what, frame, holds=False):
        """Called where it turns out that only run time decides. A loop holds what a turn may read of the one before."""
        tracer = state.tracer
        self.what, self.key, self.may_skip, self.ends = what, tracer.region(self.place), True, []
        self.is_open = True
        space, around = frame.f_locals, frame.f_code.co_freevars
        held = sorted(space.items(), key=lambda item: item[0].startswith(HOOKS))  # what the user named first
        watched = self.watched if what != "a role" else ()  # whose code is Python's own: it runs once
        own = [(n, v) for n, v in held if n not in around and (what != "a role" or isinstance(v, _KEPT))]
        outside = [(n, space.get(n, frame.f_globals.get(n))) for n in watched]
        self.kept = PythonState(own, outside)
        self.before = {n: space.get(n) if n in space else Unbound(n) for n in self.names}
        self.variables, known = {}, tracer.decisions.variables
        for name, value in self.before.items():
            kind = known.get((self.key, name)) if what != "Parallel" else None
            if kind is not None and not isinstance(value, (Var, Place)):
                made = self.variables[name] = _variable(name, kind, value)
                tracer.rebound[made.id] = Rebound(self, name, len(tracer.scopes))
            elif kind is not None and type(value) is Var and value.id in tracer.rebound:
                tracer.rebound[value.id].goes_on(self, tracer, kind)
            elif holds and self._is_held(value):
                self.variables[name] = Held(value)
        self.restore()

    def _is_held(self, value):
        if isinstance(value, Var):  # of ours: points of a Parallel have no order in which to change it
            return self.what == "Parallel" and value.id in state.tracer.rebound
        return not _is_over(value) and not isinstance(value, (VectorVariable, Place))

    def restore(self):
        """The names hold what they hold at the beginning, as the other side of an if wants it."""
        self.values = tuple(self.variables.get(n, self.before[n]) for n in self.names)
        self.changes = bool(self.names)

    def before_while(self):
        self.begin("a loop", sys._getframe(1), holds=True)
        self.since = apply(_STATEMENTS)

    def tested(self, frame, is_loop):
        """After the condition of a while. What it binds is bound before every turn and after the last, so in no turn as well."""
        space = frame.f_locals
        now = {n: space.get(n) if n in space else Unbound(n) for n in self.names}
        start = {n: self.variables.get(n, self.before[n]) for n in self.names}
        self.bound_by_test = frozenset(n for n in self.names if now[n] is not start[n])
        for name in self.bound_by_test if is_loop else ():
            if isinstance(now[name], Expr):  # evaluated in the loop
                self.need(name, [now[name]])
        self.ends.append(now)

    def turn(self):
        """The end of what is traced of it."""
        if self.what is not None:
            self.end(sys._getframe(1))

    def left(self):
        """After a with."""
        if self.what is not None:
            self.ends.append({n: self.variables.get(n, self.before[n]) for n in self.names})
            self.close()

    def end(self, frame):
        """One way out of it, or to its next turn."""
        space = frame.f_locals
        self.ends.append({n: space.get(n) if n in space else Unbound(n) for n in self.names})

    def close(self):
        self.is_open = False
        changed = self.kept.changed(is_same)
        if changed is not None:
            name, itself, value = changed
            kind = type(value).__name__
            named = f"a {kind}" if name.startswith(HOOKS) else f"the {kind} '{name}'" if itself else f"a {kind} in '{name}'"
            fail("UnsupportedSyntax", f"{named} of Python is changed in {self.what} of the program",
                 "only run time knows whether and how often: keep the values in T.alloc_local((n,), dtype) or T.alloc_var")  # fmt: skip
        self.values = tuple(self._merged(n) for n in self.names)
        self.changes = bool(self.names)

    def _merged(self, name):
        begin = self.variables.get(name, self.before[name])
        before = begin.value if isinstance(begin, Held) else begin
        last = [end[name] for end in self.ends]
        changed = [v for v in last if v is not begin and not is_same(v, before)]
        if not changed:
            return before
        if isinstance(begin, Held) and begin.was_read:
            if not _was_buffer(before, changed):
                self.need(name, [before, *changed], carried=True)
            return Merged(self, name, [before, *changed])
        surely = not self.may_skip or name in self.bound_by_test
        listed = changed if len(changed) == len(last) and surely else [before, *changed]
        listed = [v for v in listed if not _is_over(v) or v is not before]  # whoever reads it has been where it got a value
        listed = [v for v in listed if not isinstance(v, Unbound)]
        if not listed:
            return before
        alike = all(is_same(listed[0], v) for v in listed[1:])
        ends_here = isinstance(listed[0], Expr) and not _is_over(before)  # with this scope, but the name goes on
        return listed[0] if alike and not ends_here else Merged(self, name, listed)

    def need(self, name, values, carried=False):
        """Asks for a variable in the next trace, or says why there cannot be one."""
        tracer = state.tracer
        kind = Merged(self, name, values).kind()
        words = " and ".join(dict.fromkeys(described(v) for v in values))
        if self.what == "Parallel":
            self.refuse_parallel(name)
        if kind is None or not tracer.decisions.need(self.key, name, kind):
            self.refuse(name, words, carried)

    def refuse(self, name, words, carried, at=None):
        how = "a turn leaves in it what the next one reads" if carried else "only run time knows which one it is afterwards"
        fail("UnsupportedSyntax", f"'{name}' is bound again in {self.what} of the program ({words}): {how}",
             f"{name} = T.alloc_var(dtype, init) for numbers of one type; otherwise use another name, or a condition that is known now", at)  # fmt: skip

    def refuse_parallel(self, name):
        fail("UnsupportedSyntax", f"'{name}' is bound again in a Parallel, whose points have no order",
             "loop with T.serial, use T.reduce_sum and the like, or T.atomic_add")  # fmt: skip
