"""Tracing: the program that is being recorded on this thread, places in the user's files, and operations on both."""
import inspect
import re
import sys
import threading

from . import _native, errors
from .tracebacks import is_of_python, is_ours

_TABLE = _native.operations()
OPERATIONS = {row[0]: index for index, row in enumerate(_TABLE)}
_positions = {}


entrances = set()  # code of functions that a command begins with: what called them is no file of a user


class _State(threading.local):
    tracer = None  # the Tracer of the function that runs now
    options = {}  # of programs that are traced from here on: what jit() was given


state = _State()


class StopTrace(BaseException):
    """Ends a trace that only looks for the parameters."""


class Scope:
    """What is open: kind is "kernel", "for", "while", "if", "role", "macro", or "python" for a loop of Python."""

    __slots__ = ("kind", "values", "region")

    def __init__(self, kind, region=None):
        self.kind, self.values, self.region = kind, [], region

    def end(self):
        for name, value in self.values:
            value.ended = f"'{name}' is used after the {self.kind} that it is bound in has ended"


class Tracer:
    """One recording of a program."""

    def __init__(self, name, discover=False, decisions=None):
        from .reads import Reads
        from .regions import Decisions

        self.builder = _native.Builder(name)
        self.name = name
        self.discover = discover  # stop at the first launch
        self.scopes = []
        self.pending = []  # tensors and scalars that the program will take, until the first launch
        self.order = []  # names of the function's parameters
        self.without = frozenset()  # of those, the ones that the program does not take
        self.outputs = []  # made by T.empty
        self.consts = {}  # name -> value, or the symbol that stands for it while discovering
        self.given = {}  # values of consts
        self.parameters = []  # declared, in order
        self.open_frames = []  # a launch that was opened without `with`
        self.branches = []  # conditions of T.If, the innermost last
        self.barriers = None  # of T.create_list_of_mbarrier
        self.numbered = None  # of T.create_barriers
        self.unpacked = []  # uses of float4_e2m1_unpacked: how wrong each is, its message, help and place
        self.layouts = {}  # number of a tile -> what T.annotate_layout gave it
        self.swizzled = set()  # tiles that T.annotate_layout spreads over the banks
        self.launches = 0
        self.grid = []  # of the launch that was opened last
        self.thread_count = 0  # of its blocks; 0 is not known
        self.block_indices = []  # of it
        self.bound = ([1, 1, 1], [1, 1, 1])  # extents of T.thread_binding, for threads and for blocks; 0 is not known
        self.probes = False  # this trace only looks for them
        self.random = None  # of T.rng_init
        self.block = None  # of T.sblock: buffers whose safe values end with it, and the numbers that they had before
        self.guards, self.reduced = None, None  # of T.sblock: open conditions of T.where; reduced axes and where they begin
        self.reducer = None  # of T.tvm_thread_allreduce, which T.attr names
        self.sources = []  # of T.import_source
        self.evaluated = []  # by T.evaluate
        self.numbers = []  # (dtype, value) of Python's numbers that were given a dtype
        self.decisions = decisions or Decisions()  # of the traces before this one
        self.rebound = {}  # number of a variable that a region made of a name -> how many scopes were open
        self.path, self.times = (), {}  # the macros and turns of Python's loops that are open; how often each began
        self.reads = Reads(self.decisions)
        self.bits_keep_types = False  # as in TVM, an integer beside a narrower element in an operator of bits is of its type

    def scope(self, kind, region=None):
        self.scopes.append(Scope(kind, region))

    def end_scope(self):
        self.scopes.pop().end()

    def region(self, place):
        """A key of a region, macro or turn that begins now: the same one in every trace."""
        key = self.path, place
        number = self.times[key] = self.times.get(key, 0) + 1
        return (*key, number)

    def remember(self, name, value):
        if self.scopes:
            self.scopes[-1].values.append((name, value))

    def declare(self):
        """Gives the builder the parameters that are known now: in the order of the signature, outputs last."""
        if not self.pending:
            return
        rank = {name: i for i, name in enumerate(self.order)}
        waiting, self.pending = self.pending, []
        waiting.sort(key=lambda p: rank.get(p.name, len(rank)))
        for parameter in waiting:
            if parameter.name not in self.without:
                parameter.declare(self)
                self.parameters.append(parameter)


def place(depth=2, beyond=None):
    """(file, line, column) of the innermost frame outside of this package, and of the library `beyond`. Whoever started the
    command has none."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if code in entrances:
            return None
        if not is_ours(code) and (beyond is None or str(frame.f_globals.get("__name__")).partition(".")[0] != beyond):
            return (code.co_filename, *_line_and_column(frame, code))
        frame = frame.f_back
    return None


_LIBRARIES = ("torch", "numpy", "pytest", "_pytest", "pluggy")


def place_of_call():
    """(file, line, column) of the user's innermost frame: no part of this package, of Python, or of a library that calls it."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code in entrances:
            return None
        library = str(frame.f_globals.get("__name__")).partition(".")[0]
        if not is_ours(code) and not is_of_python(code) and library not in _LIBRARIES:
            return (code.co_filename, *_line_and_column(frame, code))
        frame = frame.f_back
    return None


def _line_and_column(frame, code, last=None):
    if sys.version_info < (3, 11):
        return frame.f_lineno, 0
    last = frame.f_lasti if last is None else last
    table = _positions.get(code)
    if table is None:
        table = _positions[code] = list(code.co_positions())
    line, _, column, _ = table[last // 2]
    return line or frame.f_lineno, 0 if column is None else column + 1


_SHIFTS = {OPERATIONS["shift_left"], OPERATIONS["shift_right"]}
_OF_BITS = _SHIFTS | {OPERATIONS[n] for n in ("bitwise_and", "bitwise_or", "bitwise_xor")}


def _of_one_type(tracer, operation, at, operands):
    """Operands of an operator of bits, of which a number of Python's is of the other's type where that is narrower than
    int32 and can hold it; a number of bits to shift by must also be less than it has."""
    number = next((i for i, o in enumerate(operands) if type(o) is int), None)
    of = getattr(operands[1 - number], "dtype", None) if number is not None and len(operands) == 2 else None
    bits = _NARROW.get(of, 0)
    if not bits:
        return operands
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if of.startswith("int") else (0, (1 << bits) - 1)
    if operation in _SHIFTS and number == 1:
        low, high = 0, bits - 1
    if not low <= operands[number] <= high:
        return operands
    typed = tracer.builder.apply(OPERATIONS["constant"], at, operands[number], of)
    return (operands[0], typed) if number else (typed, operands[1])


_NARROW = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (4, 8, 16)}


def apply(operation, *operands):
    """Applies an operation of the table, by its number, in the program that is recorded now."""
    tracer = state.tracer
    at = place()
    try:
        if tracer is None:
            return _native.apply(operation, at, *operands)
        if tracer.bits_keep_types and operation in _OF_BITS:
            operands = _of_one_type(tracer, operation, at, operands)
        return tracer.reads.apply(tracer.builder.apply, operation, at, operands)
    except LookupError as error:
        if type(error) is not LookupError:
            raise
        message = error.args[0]
    except (OverflowError, TypeError) as error:
        if hasattr(error, "code"):
            raise
        from .unpacked import refuses
        from .vectors import lanewise

        if refuses(operation, operands):
            return None
        made = lanewise(operation, operands)
        return _apply_numbers(operation, operands, error) if made is None else made
    _native.apply(OPERATIONS["fail"], at, "NameEnded", message, "bind it outside, or keep it in a T.alloc_var")


def _apply_numbers(operation, operands, error):
    """Numbers of other libraries as Python's; an error with its place for what is none."""
    plain = [_number_of(o) for o in operands]
    if any(a is not b for a, b in zip(plain, operands)):
        return apply(operation, *plain)
    array = next((o for o in operands if hasattr(o, "shape") and hasattr(o, "dtype") and hasattr(o, "item")), None)
    if array is not None:
        shape, of = tuple(array.shape), str(array.dtype).removeprefix("torch.")
        fail("OperandKind", f"an operand is an array of Python, of shape {shape}", f'annotate the parameter, x: T.Tensor({shape}, "{of}"), or give a number: x.item()')
    if isinstance(error, OverflowError):
        fail("OperandKind", "an operand is an integer beyond 64 bits", "numbers of programs have 64 bits at most; write it as a float")
    fail("OperandKind", str(error), "operands are numbers, elements, expressions and buffers of the program")


def _number_of(value):
    """The number in an array of no dimensions."""
    if getattr(value, "shape", None) == () and hasattr(value, "item") and (hasattr(value, "__array_interface__") or type(value).__module__ == "torch"):
        return value.item()
    return [_number_of(v) for v in value] if type(value) in (list, tuple) and any(_number_of(v) is not v for v in value) else value


def operation(name):
    """A function that applies the operation of that name."""
    number = OPERATIONS[name]
    return lambda *operands: apply(number, *operands)


def fail(code, message, help="", at=None, also=None):
    """Raises the error of a mistake that only this package can see; `also` is a class of Python's that it is of too."""
    try:
        _native.apply(OPERATIONS["fail"], at or place(), code, message, help)
    except errors.TilewrightError as error:
        if also is None or isinstance(error, also):
            raise
        failed = error
    raise errors.of_class(failed, also)


def bind(signature, name, args, kwargs, code="ArgumentCount", partial=False):
    """The arguments of a call by the names of the function's parameters; an error that says the function's own name."""
    try:
        return (signature.bind_partial if partial else signature.bind)(*args, **kwargs)
    except TypeError as error:
        reason = str(error)
    from .elsewhere import nearest

    unknown = next((n for n in kwargs if n not in signature.parameters), None)
    near = nearest(unknown, signature.parameters) if unknown is not None else ""
    if unknown is not None and not partial:
        reason = f"got an unexpected keyword argument {unknown!r}"
        missing = [n for n in list(signature.parameters)[len(args) :] if n not in kwargs and signature.parameters[n].default is inspect.Parameter.empty]
        near = near or (missing[0] if len(missing) == 1 else "")
    help = f"the nearest it has: {near}" if near else f"it takes {name}({', '.join(map(str, _heads(signature)))})"
    fail(code, f"{name}: {reason}", help, also=TypeError)


def _heads(signature):
    """Parameters with their defaults and without annotations."""
    return [p.replace(annotation=p.empty) for p in signature.parameters.values()]


def recording(what):
    tracer = state.tracer
    if tracer is None:
        fail("OutsideProgram", f"{what} outside of a traced function",
             "write it in a function under @T.prim_func, @T.macro or @tilewright.jit")  # fmt: skip
    return tracer


class Recording:
    """Makes a tracer the thread's own for a while; recordings nest."""

    def __init__(self, tracer):
        self.tracer = tracer

    def __enter__(self):
        self.outer, state.tracer = state.tracer, self.tracer
        return self.tracer

    def __exit__(self, kind, error, trace):
        state.tracer = self.outer
        if kind is TypeError:
            _refuse_wrong_call(error, trace)
        if kind in (IndexError, NameError, TypeError, UnboundLocalError):
            _refuse_in_terms_of_the_program(error, trace, self.tracer)


def _refuse_in_terms_of_the_program(error, trace, tracer):
    """What Python says of a line of the program itself that reads a value of run time, or a name that is not there."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    code, text = frame.f_code, str(error)
    if is_ours(code) or is_of_python(code) or not hasattr(tracer, "order"):
        return
    known = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
    at, also = (code.co_filename, *_line_and_column(frame, code, trace.tb_lasti)), type(error)
    if isinstance(error, NameError):
        from .elsewhere import WORDS, nearest

        name, names = getattr(error, "name", None) or "", [n for n in known if not n.startswith("_")]
        near = nearest(name, names)
        said = ("OperandKind", text, f"the nearest there is: {near}" if near else WORDS.get(name, "bind it before, or import it"))
    elif isinstance(error, IndexError) and any(s in text for s in ("only integers, slices", "too many indices")):
        listed = [n for n in (*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names) if hasattr(known.get(n), "__array_interface__")]
        parameter = next((n for n in listed if n in tracer.order), None)
        name = parameter or next(iter(listed), None)
        if name is None or "only" not in text:
            return
        array = known[name]
        how = f'{name}: T.Tensor({tuple(array.shape)}, "{array.dtype}")'
        if parameter is not None:
            said = ("ParameterType", f"'{name}' of '{tracer.name}' is given a tensor, but has no annotation", f"write {how} in the signature or at the beginning of the body")
        else:
            said = ("ValueNotKnown", f"the array '{name}' of Python has an index that is known only at run time", f"make it a parameter of the kernel, {how}")
    elif isinstance(error, TypeError) and "expression>" in text:
        said = ("ValueNotKnown", f"a function of Python is given a value that is known only at run time: {text}",
                "T.empty((N,), dtype) makes a tensor that is returned, T.alloc_shared and T.alloc_fragment tiles on chip; dir(T) has the functions of values")  # fmt: skip
    else:
        return
    try:
        fail(*said, at, also=also)
    except errors.TilewrightError as refused:
        failed = refused
    raise failed from None


_WRONG_CALL = re.compile(r"(?:(\w+)\.__init__|(\w+))\(\) ((?:missing|takes|got) .*)")


def _refuse_wrong_call(error, trace):
    """Where Python could not call a word of the language with the arguments that a program gives it: its place, and what it takes."""
    from . import language

    while trace.tb_next is not None:
        trace = trace.tb_next
    said = _WRONG_CALL.fullmatch(str(error))
    name = said and (said[2] or next((n for n, v in vars(language).items() if isinstance(v, type) and v.__name__ == said[1]), ""))
    word = getattr(language, name, None) if name else None
    code = trace.tb_frame.f_code
    if trace.tb_frame.f_globals.get(name, word) is not word:
        return  # a function of the program's own
    made_by = word.__init__ if isinstance(word, type) else word
    if is_ours(code) or not is_ours(getattr(made_by, "__code__", code)):
        return
    heads = ", ".join(map(str, _heads(inspect.signature(word))))
    try:
        fail("OperandKind", f"{name}: {said[3]}", f"it takes {name}({heads})", (code.co_filename, trace.tb_lineno, 0), also=TypeError)
    except errors.TilewrightError as refused:
        failed = refused
    raise failed from None
