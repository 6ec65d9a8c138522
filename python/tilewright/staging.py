"""What rewritten functions call: each hook decides whether a value is Python's, known now, or the program's."""
import builtins
import operator as python

from .scopes import Frame, Launch, Loop, ThreadBinding, serial
from .trace import OPERATIONS, StopTrace, apply, fail, operation, recording, state
from .types import Declaration, Pointed
from .values import Buffer, Expr, Tile, Var, Vector, let, load, plain, rename

_STORE, _UPDATE, _NOT = OPERATIONS["store"], OPERATIONS["update"], OPERATIONS["logical_not"]
_AND, _OR = OPERATIONS["logical_and"], OPERATIONS["logical_or"]
_open_if, _open_else, _close = operation("open_if"), operation("open_else"), operation("close")
_open_while, _break, _continue = operation("open_while"), operation("loop_break"), operation("loop_continue")
_select, _assert, _condition = operation("if_then_else"), operation("device_assert"), operation("condition")
_PYTHON = {
    "+": python.add, "-": python.sub, "*": python.mul, "/": python.truediv, "//": python.floordiv, "%": python.mod,
    "&": python.and_, "|": python.or_, "^": python.xor, "<<": python.lshift, ">>": python.rshift, "**": python.pow,
    "==": python.eq, "!=": python.ne, "<": python.lt, "<=": python.le, ">": python.gt, ">=": python.ge,
    "is": python.is_, "is not": python.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip


# ---- names and elements


def bind(name, value, current=None):
    """What `name = value` leaves in the name, which holds `current`."""
    kind = type(value)
    if kind is Var:
        if value.named is False:
            return _named(name, value)
        if type(current) is Var and current is not value:
            return _stored(current, value)
        return value if current is value else _let(name, load(value))
    if type(current) is Var and (kind is Expr or kind in (int, float, bool) or (kind is Tile and value.is_element)):
        return _stored(current, value)
    if kind is Expr:
        return _let(name, value)
    if kind is Tile:
        return _let(name, load(value)) if value.is_element and value.buffer.scope() != "shared.barrier" else value
    if kind is Buffer:
        return _named(name, value) if value.named is False else value
    if isinstance(value, Launch):
        return open_without_with(value, name)
    if kind is Pointed:
        value.named = name
    return value.index() if isinstance(value, ThreadBinding) else value


def _stored(variable, value):
    apply(_STORE, variable, value)
    return variable


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
    if isinstance(value, Tile) and value.is_element:
        return _let(name, load(value))
    if type(value) is Var and value.named:
        return _let(name, load(value))
    return _let(name, value) if isinstance(value, Expr) else value


def store(container, index, value):
    if not isinstance(container, Buffer):
        if isinstance(container, (Tile, Expr)):
            fail("OperandKind", f"an element of {container!r} is stored to", "index the buffer itself")
        container[index] = value
    elif type(value) is Vector:
        value.store(container, index)
    elif isinstance(value, (str, tuple, list)) or value is None:
        fail("OperandKind", f"{value!r} is stored to an element of '{container.name}'", "store a number")
    else:
        apply(_STORE, container[index], value)


def update(operator, container, index, value):
    if isinstance(container, Buffer):
        if operator == "**":
            fail("UnsupportedSyntax", "**= of an element", "write A[i] = T.pow(A[i], x)")
        apply(_UPDATE, operator, container[index], value)
    else:
        container[index] = _PYTHON[operator](container[index], value)


def update_name(name, operator, current, value):
    if type(current) is Var:
        apply(_UPDATE, operator, current, value)
        return current
    if isinstance(current, (Buffer, Tile)):
        fail("OperandKind", f"{operator}= of '{name}', which is {current!r}", f"say which element: {name}[i] {operator}= x")
    return bind(name, _PYTHON[operator](current, value))


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

    __slots__ = ("known", "has_else", "open")

    def __init__(self, condition, has_else):
        truth = _truth(condition)
        self.has_else, self.open = has_else, False
        self.known = truth if isinstance(truth, builtins.bool) else None
        if self.known is None:
            tracer = recording("if")
            if tracer.discover:
                raise StopTrace
            _open_if(truth)
            tracer.scope("if")
            self.open = True

    def then(self):
        return self.known is not False

    def otherwise(self):
        if self.known is not None:
            return not self.known
        self._leave()
        _open_else()
        recording("else").scope("if")
        self.open = True
        return True

    def _leave(self):
        recording("if").end_scope()
        _close()
        self.open = False

    def end(self):
        if self.open:
            self._leave()


def select(condition, a, b):
    truth = _truth(condition)
    if isinstance(truth, builtins.bool):
        return a() if truth else b()
    return _select(truth, a(), b())


def _joined(operation, decides, thunks):
    result = None
    for number, thunk in enumerate(thunks):
        value = thunk()
        if number == 0:
            result = value
        elif isinstance(_truth(result), builtins.bool):
            result = value
        else:
            result = apply(operation, result, value)
        truth = _truth(result)
        if truth is decides:
            return result
    return result


def and_(*thunks):
    return _joined(_AND, False, thunks)


def or_(*thunks):
    return _joined(_OR, True, thunks)


def not_(value):
    truth = _truth(value)
    return (not truth) if isinstance(truth, builtins.bool) else apply(_NOT, truth)


def compare(left, operators, *rest):
    thunks, values = [], [left]
    for number, (name, thunk) in enumerate(zip(operators, rest)):

        def pair(number=number, name=name, thunk=thunk):
            values.append(thunk())
            return _PYTHON[name](values[number], values[number + 1])

        thunks.append(pair)
    return and_(*thunks)


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
    return serial if function is builtins.range else function


def loop(iterable, names, unpack):
    """The iterations that are traced: one of a loop of the program, all of a loop of Python."""
    if isinstance(iterable, Loop):
        yield from iterable.traced(names, unpack)
        return
    if isinstance(iterable, (Expr, Buffer, Tile)):
        raise TypeError(f"a loop over {iterable!r}: loops of programs are range(n), T.serial(n), T.Parallel(n), ...")
    tracer = recording("for")
    tracer.scope("python")
    depth = len(tracer.scopes)
    try:
        for item in iterable:
            if type(item) is Buffer and item.named is False and isinstance(names, str):
                _named(names, item)
            yield item
            while len(tracer.scopes) > depth:  # left by break or continue of Python
                tracer.end_scope()
    finally:
        if len(tracer.scopes) >= depth:
            del tracer.scopes[depth - 1 :]


def while_loop(condition):
    truth = _truth(condition)
    if truth is False:
        return
    tracer = recording("while")
    _open_while(truth)
    tracer.scope("while")
    yield
    tracer.end_scope()
    _close()


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
            break
        conditional = conditional or scope.kind == "if"
    (_break if what == "loop_break" else _continue)()
    return False


# ---- with, return


def frame(manager, names, unpack):
    if isinstance(manager, Frame):
        manager.names, manager.unpack = names, unpack
    return manager


def returned(value):
    tracer = recording("return")
    inside = [s.kind for s in tracer.scopes]
    if "macro" in inside:
        inside = inside[len(inside) - inside[::-1].index("macro") :]
    for kind in ("for", "while", "if", "role"):
        if kind in inside:
            fail("UnsupportedSyntax", f"return inside of a {kind} of the program",
                 "only part of the threads or rounds would return: write T.thread_return(), or assign to a variable")  # fmt: skip
    return value

