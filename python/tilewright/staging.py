"""What rewritten functions call: each hook decides whether a value is Python's, known now, or the program's."""
import builtins
import functools
import operator as python
import sys

from . import unpacked
from .errors import CompileError
from .regions import Held, Mark, Region, read
from .scopes import Frame, Launch, Loop, ThreadBinding, serial
from .trace import OPERATIONS, StopTrace, apply, fail, operation, recording, state
from .types import Declaration, Pointed
from .values import Buffer, Expr, Place, Reading, Tile, Var, Vector, described, in_launch, let, load, plain, rename
from .unpacked import UnpackedTile
from .vectors import VectorVariable, Vectors, bound, spans_lanes, store_lanes, vector_of

_STORE, _UPDATE, _NOT = OPERATIONS["store"], OPERATIONS["update"], OPERATIONS["logical_not"]
_AND, _OR = OPERATIONS["logical_and"], OPERATIONS["logical_or"]
_open_if, _open_else, _close = operation("open_if"), operation("open_else"), operation("close")
_open_while, _break, _continue = operation("open_while"), operation("loop_break"), operation("loop_continue")
_select, _assert, _condition = operation("if_then_else"), operation("device_assert"), operation("condition")
_IN_PLACE = {
    "+": python.iadd, "-": python.isub, "*": python.imul, "/": python.itruediv, "//": python.ifloordiv, "%": python.imod,
    "&": python.iand, "|": python.ior, "^": python.ixor, "<<": python.ilshift, ">>": python.irshift, "**": python.ipow,
    "@": python.imatmul,
}  # fmt: skip
_PYTHON = {
    "+": python.add, "-": python.sub, "*": python.mul, "/": python.truediv, "//": python.floordiv, "%": python.mod,
    "&": python.and_, "|": python.or_, "^": python.xor, "<<": python.lshift, ">>": python.rshift, "**": python.pow, "@": python.matmul,
    "==": python.eq, "!=": python.ne, "<": python.lt, "<=": python.le, ">": python.gt, ">=": python.ge,
    "is": python.is_, "is not": python.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip


# ---- names and elements


def bind(name, value, current=None):
    """What `name = value` leaves in the name, which holds `current`."""
    kind = type(value)
    if isinstance(value, Vector) or type(current) is VectorVariable:
        return bound(value, current)
    if type(current) is Place:
        return current if value is current else _stored_there(current, value)
    if kind is Reading:
        return _stored(current, value) if isinstance(current, Var) else _let(name, load(value))
    if type(current) is Reading:
        current = current.of
    if kind is Var:
        if value.named is False:
            return _named(name, value)
        if type(current) is Var and current is not value:
            return _stored(current, value)
        return value if current is value else _let(name, load(value))
    if type(current) is Var and (kind is Expr or kind in (int, float, bool) or (issubclass(kind, Tile) and value.is_element)):
        return _stored(current, value)
    if kind is Expr:
        return _let(name, value)
    if kind is Tile or kind is Place:
        return _let(name, load(value)) if value.is_element and value.buffer.scope() != "shared.barrier" else value
    if kind is Buffer:
        return _named(name, value) if value.named is False else value
    if isinstance(value, Launch):
        return open_without_with(value, name)
    if kind is Vectors and value.buffer.named is False:
        _named(name, value.buffer)
    if kind is UnpackedTile:
        return unpacked.named(name, value)
    if kind is Pointed:
        value.named = name
    return value.index() if isinstance(value, ThreadBinding) else value


def _stored(variable, value):
    tracer = state.tracer
    rebound = tracer.rebound.get(variable.id) if tracer is not None else None
    if rebound is not None:
        rebound.take(tracer, value)
    apply(_STORE, variable, value)
    return variable


def _stored_there(place, value):
    if isinstance(value, (str, tuple, list)) or value is None:
        fail("OperandKind", f"{value!r} is stored to an element of '{place.buffer.name}'", "store a number")
    apply(_STORE, place, value)
    return place


def bind_here(name, value):
    """(name := value), which is a value too."""
    space = sys._getframe(1).f_locals
    current = space.get(name)
    return bind(name, value, current if isinstance(current, (Var, Place)) else None)


def held(value):
    """A value that goes into a list, or to a function: that of a variable is what it is now."""
    if type(value) is Var and value.named and state.tracer is not None:
        value = Reading(value)
        state.tracer.reads.note(value, state.tracer)
    return value


def _named(name, buffer):
    buffer.named = True
    if buffer.parameter is not None:
        buffer.parameter.name = name
    if buffer._id is not None and name:
        rename(buffer, name)
    return buffer


def _let(name, value):
    value = plain(value)
    if not isinstance(value, Expr) or value.constant is not None:
        return value
    tracer = state.tracer
    if tracer is None:
        return value
    bound = let("" if name == "_" else name, value)
    tracer.remember(name, bound)
    return bound


def open_without_with(launch, names):
    launch.names, launch.unpack = names, isinstance(names, tuple)
    value = launch.__enter__()
    recording("Kernel").open_frames.append(launch)
    return value


def capture(value, names):
    """The parts of a right side, all evaluated before the first is assigned."""
    if isinstance(value, Launch):
        return open_without_with(value, names)
    if isinstance(value, (Expr, Buffer, Tile)):
        fail("ValueNotKnown", f"{value!r} is unpacked into {len(names)} names", "only lists and tuples have parts")
    parts = list(value)
    if len(parts) != len(names):
        more = "too many" if len(parts) > len(names) else "not enough"
        raise ValueError(f"{more} values to unpack (expected {len(names)}, got {len(parts)})")
    return [capture_one(part, name) for part, name in zip(parts, names)]


def capture_one(value, name=""):
    if isinstance(value, Tile) and value.is_element and value.buffer.scope() != "shared.barrier":
        return _let(name, load(value))
    if isinstance(value, Var) and value.named:
        return _let(name, load(value))
    return _let(name, value) if isinstance(value, Expr) else value


def store(value, container, index):
    if not isinstance(container, Buffer):
        if isinstance(container, (Tile, Expr)):
            fail("OperandKind", f"an element of {container!r} is stored to", "index the buffer itself")
        container[index] = value
    elif isinstance(value, Vector) or (type(value) is Tile and not value.is_element):
        store_lanes(vector_of(value), container, index)
    elif isinstance(value, (str, tuple, list)) or value is None:
        fail("OperandKind", f"{value!r} is stored to an element of '{container.name}'", "store a number")
    elif spans_lanes(index):
        store_lanes(value, container, index)
    else:
        apply(_STORE, container[index], value)


def update(operator, container, index, value):
    if isinstance(container, Buffer):
        if operator in ("**", "@"):
            fail("UnsupportedSyntax", f"{operator}= of an element", "write A[i] = T.pow(A[i], x)" if operator == "**" else "write T.gemm")
        apply(_UPDATE, operator, container[index], value)
    else:
        container[index] = _IN_PLACE[operator](container[index], value)


def update_name(name, operator, current, value):
    if isinstance(current, Var):
        current = current.of if type(current) is Reading else current
        if state.tracer is not None and current.id in state.tracer.rebound:
            return _stored(current, _PYTHON[operator](current, value))
        apply(_UPDATE, operator, current, value)
        return current
    if isinstance(current, Place):
        apply(_UPDATE, operator, current, value)
        return current
    if isinstance(current, (Buffer, Tile)):
        fail("OperandKind", f"{operator}= of '{name}', which is {current!r}", f"say which element: {name}[i] {operator}= x")
    return bind(name, _IN_PLACE[operator](current, value), current if type(current) is VectorVariable else None)


def annotate(name, declaration):
    """`A: T.Tensor(...)` in the body of a function whose parameter is A."""
    if not isinstance(declaration, Declaration):
        from .types import declaration_of

        declaration = declaration_of(name, declaration)
    return declaration.parameter(recording("an annotation"), name)


# ---- branches


def _truth(condition):
    """A bool of Python, or an expression of the program."""
    if isinstance(condition, Expr):
        constant = condition.constant
        return condition if constant is None else builtins.bool(constant)
    if isinstance(condition, (Var, Tile)):
        return condition
    if isinstance(condition, Buffer):
        fail("OperandKind", f"a condition is the whole buffer '{condition.name}'", "compare an element of it")
    return builtins.bool(condition)


class Branch:
    """One if: recorded on both sides where its condition is the program's, else only on the side that Python takes."""

    __slots__ = ("known", "open", "region", "changes", "values")

    def __init__(self, condition, place=None, *names, watched=()):
        truth = _truth(condition)
        self.open = self.changes = False
        self.known = truth if isinstance(truth, builtins.bool) else None
        if self.known is None:
            tracer = recording("if")
            if tracer.discover:
                raise StopTrace
            self.region = Region(place, *names, watched=watched)
            self.region.begin("an if", sys._getframe(1))
            self._take()
            _open_if(truth)
            tracer.scope("if")
            self.open = True

    def _take(self):
        self.changes, self.values = self.region.changes, self.region.values

    def then(self):
        return self.known is not False

    def otherwise(self):
        if self.known is not None:
            return not self.known
        self.region.end(sys._getframe(1))
        self._leave()
        _open_else()
        recording("else").scope("if")
        self.open = True
        self.region.restore()
        self._take()
        return True

    def _leave(self):
        recording("if").end_scope()
        _close()
        self.open = False

    def end(self):
        if self.open:
            self.region.end(sys._getframe(1))
            if len(self.region.ends) == 1:  # it has no other side
                self.region.restore()
                self.region.ends.append(dict(zip(self.region.names, self.region.values)))
            self.region.may_skip = False
            self._leave()
            self.region.close()
            self._take()


def _without_effects(thunk):
    """The value of a side that only run time takes: computing it must do nothing else."""
    tracer = state.tracer
    before = tracer.reads.effects if tracer is not None else 0
    value = thunk()
    if tracer is not None and tracer.reads.effects != before:
        fail("UnsupportedSyntax", "a side of a conditional expression stores, loops or waits, but only run time knows whether it is taken",
             "write it as an if statement")  # fmt: skip
    return value


def select(condition, a, b):
    truth = _truth(condition)
    if isinstance(truth, builtins.bool):
        return a() if truth else b()
    return _chosen(truth, _without_effects(a), _without_effects(b))


def _chosen(truth, a, b):
    """One of two values, by run time."""
    for value in (a, b):
        if not isinstance(value, (int, float, Expr, Var, Tile)) and not hasattr(value, "__index__") and not hasattr(value, "__float__"):
            words = f"{value!r}" if not isinstance(value, Buffer) else f"the buffer '{value.name}'"
            fail("OperandKind", f"only run time knows whether a conditional expression is {words}", "both sides are numbers; write an if statement")
    return _select(truth, a, b)


def _is_bool(value):
    return isinstance(value, builtins.bool) or (isinstance(value, (Expr, Var, Tile)) and str(value.dtype) == "bool")


def _joined(operation, decides, wants_truth, result, thunks):
    """and, or: `decides` is the truth of a value after which no other counts."""
    if _truth(result) is decides:
        return result
    for thunk in thunks:
        if isinstance(_truth(result), builtins.bool):
            result = thunk()
        else:
            value = _without_effects(thunk)
            if wants_truth or (_is_bool(result) and _is_bool(value)):
                result = apply(operation, result, value)
            else:
                result = _chosen(_condition(result), *((result, value) if decides else (value, result)))
        truth = _truth(result)
        if truth is decides:
            return result
    return result


def and_(first, *thunks):
    return _joined(_AND, False, False, first, thunks)


def or_(first, *thunks):
    return _joined(_OR, True, False, first, thunks)


def both(first, *thunks):
    """and, where only its truth is asked for."""
    return _joined(_AND, False, True, first, thunks)


def either(first, *thunks):
    return _joined(_OR, True, True, first, thunks)


def not_(value):
    truth = _truth(value)
    return (not truth) if isinstance(truth, builtins.bool) else apply(_NOT, truth)


def _is_of_program(value):
    return isinstance(value, (Expr, Var, Tile))


def contains(value, container):
    """value in container."""
    if isinstance(container, Buffer):
        fail("OperandKind", f"'in' of the buffer '{container.name}'", "compare its elements in a loop")
    if not isinstance(container, (list, tuple, set, frozenset, dict, range)):
        return value in container
    if not _is_of_program(value) and not any(map(_is_of_program, container)):
        return value in container
    if isinstance(container, range):
        if not container:
            return False
        low, high = sorted((container[0], container[-1]))
        inside = apply(_AND, value >= low, value <= high)
        step = builtins.abs(container.step)
        return inside if step == 1 else apply(_AND, inside, (value - low) % step == 0)
    found = False
    for element in container:
        if _is_of_program(element) or isinstance(element, (int, float)) or hasattr(element, "__index__"):
            equal = value == element
        else:
            equal = False  # a number is neither None nor text
        found = either(found, lambda equal=equal: equal)
    return found


def is_not_in(value, container):
    return not_(contains(value, container))


_PYTHON["in"], _PYTHON["not in"] = contains, is_not_in


# ---- functions of Python that ask for the truth of what they are given


def _any(values):
    found = False
    for value in values:
        found = either(found, lambda value=value: value)
        if found is True:
            return True
    return found if not isinstance(_truth(found), builtins.bool) else builtins.bool(found)


def _all(values):
    found = True
    for value in values:
        found = both(found, lambda value=value: value)
        if found is False:
            return False
    return found if not isinstance(_truth(found), builtins.bool) else builtins.bool(found)


def _extreme(function, better):
    def of(*values, **named):
        listed = list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)
        if len(values) == 1 and not isinstance(values[0], (list, tuple)):
            if isinstance(values[0], (Expr, Buffer, Tile)):
                fail("OperandKind", f"{function.__name__}() of {values[0]!r}", f"T.reduce_{function.__name__} is that of a tile")
            listed = list(values[0])
        if named or not any(map(_is_of_program, listed)):
            return function(listed, **named) if len(values) == 1 else function(*values, **named)
        best = listed[0]
        for value in listed[1:]:
            best = _chosen(better(value, best), value, best) if not isinstance(_truth(better(value, best)), builtins.bool) else (
                value if _truth(better(value, best)) else best)
        return best

    return of


def _bool(*values):
    if len(values) == 1 and _is_of_program(values[0]):
        truth = _truth(values[0])
        return truth if isinstance(truth, builtins.bool) else _condition(truth)
    return builtins.bool(*values)


_HERE = {
    builtins.any: _any, builtins.all: _all, builtins.bool: _bool,
    builtins.max: _extreme(builtins.max, python.gt), builtins.min: _extreme(builtins.min, python.lt),
}  # fmt: skip


def function_of(function):
    """What any(), all(), bool(), max() or min() is in a traced function."""
    return _HERE.get(function, function) if type(function) in (type, type(len)) else function


def matched(value):
    """The subject of a match statement that Python decides."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    for part in listed:
        if isinstance(part, (Expr, Var, Tile)):
            fail("UnsupportedSyntax", "a match of a value of run time with patterns other than numbers and names",
                 "write if x == 0: ... elif ...")  # fmt: skip
    return value


def formatted(value):
    """A value in an f-string."""
    if isinstance(value, (Var, Tile)) or (isinstance(value, Expr) and value.constant is None and not hasattr(value, "symbol")):
        fail("ValueNotKnown", "text is made of a value that is known only at run time", "T.print(x, msg=...) prints values")
    return value


def raised():
    """Before a raise."""
    tracer = state.tracer
    if tracer is not None and any(scope.kind in ("if", "for", "while", "role") for scope in tracer.scopes):
        kinds = {s.kind for s in tracer.scopes}
        if kinds & {"if", "role"}:
            fail("UnsupportedSyntax", "raise under a condition of run time", "write assert condition, text")


def compare(left, operators, *rest):
    thunks, values = [], [left]
    for number, (name, thunk) in enumerate(zip(operators, rest)):

        def pair(number=number, name=name, thunk=thunk):
            values.append(thunk())
            return _PYTHON[name](values[number], values[number + 1])

        thunks.append(pair)
    return both(thunks[0](), *thunks[1:])


def check(condition, message):
    truth = _truth(condition)
    if not isinstance(truth, builtins.bool):
        tracer = recording("assert")
        if tracer.builder.apply(OPERATIONS["in_launch"], None):
            _assert(truth, str(message()))
        else:
            apply(OPERATIONS["assume"], truth)
    elif not truth:
        raise AssertionError(message())


# ---- loops


def range_of(function):
    if function is not builtins.range:
        return function
    return serial if in_launch() else _rounds


def _rounds(*bounds):
    """range() outside of a launch: rounds of Python where they are known, each of which may open launches."""
    bounds = [plain(b) for b in bounds]
    return (builtins.range if all(isinstance(b, int) for b in bounds) else serial)(*bounds)


def _variable_in(space, name, region):
    """The variable that a region which is still open has made of a loop's target, or None."""
    current = region.variables.get(name) if region.what is not None else None
    current = space.get(name) if current is None else current.value if isinstance(current, Held) else current
    rebound = state.tracer.rebound.get(current.id) if type(current) is Var else None
    return current if rebound is not None and rebound.is_open else None


def _targets(value, names, unpack, region, frame):
    """What a turn gives the targets of its loop. Those that are variables of an open region are stored to, as by assignments."""
    if not state.tracer.rebound:
        return value
    space = frame.f_locals
    if not unpack:
        variable = _variable_in(space, names, region)
        return value if variable is None else _stored(variable, plain(value))
    variables = [_variable_in(space, name, region) if name else None for name in names]
    if not any(v is not None for v in variables):
        return value
    parts = list(value)
    if len(parts) != len(names):
        return parts
    return [p if v is None else _stored(v, plain(p)) for p, v in zip(parts, variables)]


def loop(iterable, names, unpack, region):
    """The iterations that are traced: one of a loop of the program, all of a loop of Python."""
    if isinstance(iterable, Loop):
        tracer = recording(iterable.what)
        if tracer.discover:
            raise StopTrace
        what = "Parallel" if iterable.what == "Parallel" else "a loop"
        region.begin(what, sys._getframe(1), holds=True)
        region.may_skip = not iterable.runs
        for value in iterable.traced(names, unpack, region):
            yield _targets(value, names, unpack, region, sys._getframe(1))
        region.close()
        return
    if isinstance(iterable, (Expr, Buffer, Tile)) or not hasattr(type(iterable), "__iter__") and not hasattr(type(iterable), "__getitem__"):
        what = described(iterable) if isinstance(iterable, (Expr, Buffer, Tile, int, float)) or iterable is None else f"a {type(iterable).__name__}"
        fail("OperandKind", f"a loop over {what}", "loops of programs are range(n), T.serial(n), T.Parallel(n), ... over its indices")
    tracer = recording("for")
    tracer.scope("python")
    depth, path = len(tracer.scopes), tracer.path
    place = region.place
    try:
        for item in iterable:
            if type(item) is Buffer and item.named is False and isinstance(names, str):
                _named(names, item)
            tracer.path = tracer.region(place)
            yield _targets(item, names, unpack, region, sys._getframe(1))
            tracer.path = path
            while len(tracer.scopes) > depth:  # left by break or continue of Python
                tracer.end_scope()
    finally:
        tracer.path = path
        if len(tracer.scopes) >= depth:
            del tracer.scopes[depth - 1 :]


def while_loop(condition, region):
    """The one turn of a while that is traced. Its names were made ready before its condition was computed."""
    truth = _truth(condition)
    region.tested(sys._getframe(1), truth is not False)
    if truth is False:
        region.close()
        return
    tracer = recording("while")
    if tracer.discover:
        raise StopTrace
    _open_while(truth, region.since)  # what the condition does, such as an atomic, is done before every turn
    tracer.scope("while", region)
    yield
    try:
        tracer.end_scope()
        _close()
    except CompileError:
        region.close()  # names that the turn bound again are variables in the next trace: then the condition may change
        raise
    region.close()


def leave(what):
    """True where the loop is Python's own, which then breaks or continues."""
    conditional = False
    for scope in reversed(recording(what).scopes):
        if scope.kind == "python":
            if conditional:
                fail("UnsupportedSyntax", f"{what[5:]} of a loop of Python under a condition of run time",
                     "loop with T.serial, or compute the condition from constants")  # fmt: skip
            return True
        if scope.kind in ("for", "while"):
            if scope.region is not None:
                scope.region.end(sys._getframe(1))
            break
        conditional = conditional or scope.kind == "if"
    (_break if what == "loop_break" else _continue)()
    return False


# ---- with, return


_CONDITIONAL = {"if": "an if", "role": "a role", "while": "a loop"}


def frame(manager, names, unpack, region):
    if isinstance(manager, Frame):
        manager.names, manager.unpack = names, unpack
        if manager.kind in _CONDITIONAL:
            region.begin(_CONDITIONAL[manager.kind], sys._getframe(1), holds=manager.kind == "while")
    return manager


def returned(value):
    tracer = recording("return")
    inside = [s.kind for s in tracer.scopes]
    if "macro" in inside:
        inside = inside[len(inside) - inside[::-1].index("macro") :]
    for kind in ("for", "while", "if", "role"):
        if kind in inside:
            fail("UnsupportedSyntax", f"return inside of {'an' if kind == 'if' else 'a'} {kind} of the program",
                 "only part of the threads or rounds would return: write T.thread_return(), or assign to a variable")  # fmt: skip
    return value

