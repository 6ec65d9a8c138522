"""Traced functions: prim_func, macro, and what tracing one gives."""
from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import types
from typing import Any

from . import unpacked
from .elsewhere import nearest
from .errors import CompileError
from .regions import until_settled
from .rewrite import rewritten, source_tree
from .scopes import Launch
from .trace import OPERATIONS, Recording, StopTrace, Tracer, bind, fail, place, state
from .tracebacks import cut, entry
from .types import Declaration, TensorType, declaration_of, extents
from .values import Buffer, Expr, Place, Reading, Tile, Var, let, load, names_in
from .values import dynamic as make_symbol

_OPTION, _NOTHING = OPERATIONS["set_option"], OPERATIONS["depth"]


class PrimFunc:
    """A recorded program. script() is its text."""

    one_thread: bool = False  # it has no Kernel
    of_tilelang: bool = False  # it means TileLang's defaults
    ret_type: Any = None
    name: str
    params: list[Any]  # of each parameter its name, dtype and shape
    outputs: list[int]
    program: Any  # as it was recorded
    place: tuple[str, int, int]
    attrs: dict[str, Any]
    numbers: list[Any]
    evaluated: Any = None  # by the T.evaluate that is its only statement, where there is no Kernel
    path: Any = None  # (module, qualified name) of the function that it was recorded from
    again: Any = None  # records it anew without the parameters of some names

    def __init__(self, tracer: Any, program: Any, at: Any) -> None:
        self.program, self.name, self.place = program, tracer.name, at
        self.params = tracer.parameters
        self.outputs = [i for i, p in enumerate(self.params) if p.output]
        self.attrs = {"global_symbol": tracer.name}
        self.numbers = tracer.numbers

    @property
    def buffer_map(self) -> dict[Any, Any]:
        return {p: p.as_tensor() for p in self.params if p.shape is not None}

    def script(self, **ignored: Any) -> str:
        return self.program.text

    def __str__(self) -> str:
        return self.script()

    @property
    def body(self) -> Any:
        """Stands for its statements where TVM's functions take them; one T.evaluate that is all of them is a node of that name."""
        if self.evaluated is None:
            return self
        from .tvm_nodes import Evaluate

        return Evaluate(self.evaluated)

    def with_attr(self, key: str, value: Any) -> PrimFunc:
        self.attrs[key] = value
        return self

    def __repr__(self) -> str:
        return f"<program {self.name}>"

    def __reduce__(self) -> str:
        if self.path is None or "<locals>" in self.path[1]:
            fail("OperandKind", f"'{self.name}' cannot be pickled: it would be found again by its name, and no module has it",
                 "write it at the top of a module, or the function under @tilewright.jit that makes it", self.place, also=TypeError)  # fmt: skip
        self.__module__, name = self.path
        return name

    def __copy__(self) -> PrimFunc:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, path=None)
        return made

    def simplified(self) -> PrimFunc:
        """It without the tensors that nothing in it uses, as TileLang's simplification leaves them out: calls do not give them."""
        unused = _unused_tensors(self.params, self.script()) if self.again else frozenset()
        return self.again(unused) if unused else self

    def __deepcopy__(self, memo: Any) -> PrimFunc:
        return self

    def __call__(self, *arguments: Any) -> Any:
        fail("OutsideProgram", f"'{self.name}' is a program and is called before it is compiled",
             "compile it: tilewright.compile(program)(...)", place())  # fmt: skip


_WORD = re.compile(r"`(?:[^`\\]|\\.)*`|\w+")


def _unused_tensors(parameters, text):
    """Names of the tensors that the text of a program declares and never says again. One that alone gives a dimension which the
    program uses is not among them."""
    lines = [_WORD.findall(line) for line in text.splitlines()]
    declared = {line[1].strip("`"): line for line in lines if line[:1] == ["param"]}
    body = {word for line in lines if line[:1] not in (["param"], ["symbol"]) for word in line}
    symbols = {line[1] for line in lines if line[:1] == ["symbol"]}
    unused = {p.name for p in parameters if p.shape is not None and declared[p.name][1] not in body}
    given = {word for name, line in declared.items() if name not in unused for word in line}
    return frozenset(n for n in unused if not symbols.intersection(declared[n]) & body - given)


def annotations_of(function, frame=None):
    """The annotations of a function, evaluated where they are text: in its globals, closure and defining frame."""
    found = {}
    for name, value in function.__annotations__.items():
        if isinstance(value, str) and not isinstance(value, Declaration) and type(value) is str:
            cells = {}
            for free, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                try:
                    cells[free] = cell.cell_contents
                except ValueError:
                    pass
            around = frame.f_locals if frame is not None else {}
            try:
                value = eval(value, function.__globals__, {**around, **cells})
            except NameError as error:
                fail("ParameterType", f"the annotation of '{name}' cannot be evaluated: {error}",
                     "names in annotations are looked up in the module and in the enclosing function",
                     (function.__code__.co_filename, function.__code__.co_firstlineno, 1))  # fmt: skip
        found[name] = value
    return found


def finish(tracer, at):
    """Closes what stays open to the end of the function, and takes the program."""
    for frame in reversed(tracer.open_frames):
        frame.__exit__(None, None, None)
    tracer.declare()
    unpacked.refuse(tracer)
    tracer.builder.apply(_NOTHING, at)  # a mistake of the whole program is reported at its function
    return tracer.builder.finish()


def _place_of(function):
    code = function.__code__
    return code.co_filename, code.co_firstlineno, 1


def returned_outputs(tracer, value, at):
    """Checks that what is returned are the tensors of T.empty, and orders them so."""
    values = [] if value is None else list(value) if isinstance(value, (tuple, list)) else [value]
    chosen = []
    for v in values:
        parameter = v.parameter if isinstance(v, Buffer) else None
        if parameter is None or not parameter.output or parameter in chosen:
            fail("ReturnValue", f"'{tracer.name}' returns {v!r}, which is no tensor made by T.empty",
                 "return what T.empty made, each tensor once; other results are stored to parameters", at)  # fmt: skip
        chosen.append(parameter)
    made = [p for p in (*tracer.parameters, *tracer.pending) if p.output]
    for parameter in made:
        if parameter not in chosen:
            fail("ReturnValue", f"'{tracer.name}' does not return '{parameter.name}', which T.empty made",
                 "return it, or use T.alloc_global for scratch", at)  # fmt: skip
    return chosen


def trace_prim_func(function, frame=None):
    """The program of a function whose parameters are annotated. One that never says Kernel is a single thread's, or has
    the blocks and threads that its T.thread_binding name."""
    annotations = annotations_of(function, frame)
    try:
        return _trace(function, annotations)
    except CompileError as error:
        if error.code not in _WITHOUT_LAUNCH or mentions(function, "Kernel", "ClusterKernel"):
            raise
    threads, blocks = bound = ([1, 1, 1], [1, 1, 1])
    result = _trace(function, annotations, bound, probing=mentions(function, "thread_binding"))
    if 0 in threads + blocks:
        fail("ValueNotKnown", f"'{function.__name__}' has no T.Kernel, and a T.thread_binding of no constant extent",
             "write its body in with T.Kernel(...)", _place_of(function))  # fmt: skip
    return _trace(function, annotations, bound) if result is None else result


_WITHOUT_LAUNCH = ("TW1013", "TW1054")
_ONE_THREAD = ([1, 1, 1], [1, 1, 1])
_EFFECTS_OF_LAUNCH = 2  # that it opens and that it ends


def mentions(function, *words):
    return any(isinstance(n, ast.Attribute) and n.attr in words for n in ast.walk(source_tree(function)))


def _trace(function, annotations, bound=None, probing=False, without=frozenset()):
    """bound: extents of threads and blocks of a program without T.Kernel; probing gives them, and nothing else."""
    return until_settled(lambda decisions: _traced_once(function, annotations, bound, probing, without, decisions))


def _traced_once(function, annotations, bound, probing, without, decisions):
    at = _place_of(function)
    tracer = Tracer(function.__name__, decisions=decisions)
    tracer.without = without
    tracer.order = list(inspect.signature(function).parameters)
    with Recording(tracer):
        _set_options(tracer, at, function)
        arguments = _arguments(tracer, tracer.order, {}, annotations)
        if bound is not None:
            launch = Launch(*bound[1], threads=bound[0][: max(d + 1 for d in range(3) if bound[0][d] > 1 or d == 0)])
            launch.__enter__()
            tracer.open_frames.append(launch)
        if probing:
            tracer.bound, tracer.probes = bound, True
        chosen = returned_outputs(tracer, _run(function, tracer.order, arguments), at)
        program = finish(tracer, at)
        if probing and bound != _ONE_THREAD:
            return None
        for name in tracer.order:
            if name not in {p.name for p in tracer.parameters} | without:
                fail("ParameterType", f"parameter '{name}' of '{tracer.name}' has no type",
                     f"annotate it: {name}: T.Tensor((M, N), 'float16')", at)  # fmt: skip
    result = PrimFunc(tracer, program, at)
    result.outputs = [tracer.parameters.index(p) for p in chosen]
    result.again = functools.partial(_trace, function, annotations, bound, probing)
    result.one_thread, result.of_tilelang = bound == _ONE_THREAD, tracer.bits_keep_types
    if result.one_thread and len(tracer.evaluated) == 1 and tracer.reads.effects == _EFFECTS_OF_LAUNCH:
        result.evaluated = tracer.evaluated[0]
    return result


class Missing:
    """A parameter before the annotation in the body says what it is."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"parameter '{self.name}', which is not annotated yet"

    def _refuse(self, *ignored):
        fail("ParameterType", f"parameter '{self.name}' is used before its annotation",
             f'write {self.name}: T.Tensor((M, N), "float32") first, with M, N = T.const("M, N") where a call gives the extents', also=AttributeError)  # fmt: skip

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __getitem__ = __setitem__ = __len__ = __iter__ = __call__ = __bool__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __neg__ = __index__ = __float__ = _refuse


@functools.cache
def _named_in(code):
    """The names that a function and those within it have of what is around them, and of attributes and modules."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return frozenset(code.co_names).union(code.co_freevars, *map(_named_in, inner))


def _language_of(value, names):
    """Whether a module is the language under TileLang's name (True) or ours (False), or a module with one that is named; else None."""
    from . import language

    if value is language:
        return False
    if isinstance(value, language._Part):  # parts of the language are the same under both names
        return True if value.__name__ == "tilelang.language" else None
    if not isinstance(value, types.ModuleType):
        return None
    space = vars(value)
    return next((found for n in names if n in space and (found := _language_of(space[n], ())) is not None), None)


def _is_of_tilelang(function):
    """Whether a function's program means TileLang's defaults: by the name under which the function, or its module, knows
    the language. A module that knows none is one of TileLang's."""
    from . import language

    if not getattr(sys.modules.get("tilelang"), "__tilewright__", False):
        return False
    ours = __name__.partition(".")[0]
    if str(getattr(function, "__module__", "")).partition(".")[0] == ours:
        return False
    space, names = getattr(function, "__globals__", {}), _named_in(function.__code__)
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not filled yet
            pass
    named = {n: cells.get(n, space.get(n)) for n in names}
    found = {_language_of(value, names) for value in named.values()} - {None}
    if not found:
        imported = [n.partition(".")[0] for n, value in named.items() if value is None]  # by the function itself
        found = {top == "tilelang" for top in imported if top in ("tilelang", ours)}
    if not found and language._is_of_tilelang(space):
        return True
    if not found:
        around = list(space.values())
        found = {_language_of(v, ("language",)) for v in around} - {None}
        if not found:
            return not any(str(getattr(v, "__module__", "")).partition(".")[0] == ours for v in around)
    return True in found


def _set_options(tracer, at, function):
    # TileLang multiplies float32 by the tensor cores' tfloat32, and its programs are written for that. Some of its tests
    # read tiles that nothing writes, to see what becomes of a copy.
    theirs = _is_of_tilelang(function)
    tracer.bits_keep_types = theirs
    defaults = {"tf32": True, "zero_unwritten": True} if theirs else {}
    for name, value in {**defaults, **state.options}.items():
        tracer.builder.apply(_OPTION, at, name, value)


# Under TileLang's name: mistakes that it finds when a program is compiled, so that one that never is may have them.
_FOUND_LATE = {"TW1014", "TW1058"}
_DYNAMIC_TILE = "TW1020"
take_mistake = None  # of an editor's analysis: called with each mistake, so that the rest of a file is read too


class Refused(PrimFunc):
    """A program with a mistake that is reported where the program is used."""

    def __init__(self, error, function):
        self.__dict__.update(error=error, name=function.__name__, place=_place_of(function))

    def __getattr__(self, name):
        raise self.__dict__["error"]

    def script(self, **ignored):
        raise self.__dict__["error"]

    def __repr__(self):
        return "<program with a mistake>"


def prim_func(func=None, private=False, check_well_formed=True, *, eager_jit=False):
    """Records a function as a program, at once. Its parameters are annotated: T.Tensor(shape, dtype), T.int32, ..."""
    if eager_jit:
        fail("BadOption", "prim_func: eager_jit", "write @tilewright.jit above the function")
    if func is None:
        return prim_func
    if not inspect.isfunction(func):
        fail("OperandKind", f"prim_func takes a function, not {type(func).__name__}", "write @T.prim_func above a def")
    function = func
    try:
        result = trace_prim_func(function, sys._getframe(1))
        result.path = function.__module__, function.__qualname__
        return result
    except CompileError as error:
        if error.code == _DYNAMIC_TILE and error.message.startswith("dimension"):  # of an allocation; other places are mistakes
            from .specialized import Specialized

            return Specialized(function, sys._getframe(1), error)
        if not (error.is_late or error.code in _FOUND_LATE) or not _is_of_tilelang(function):
            cut(error)
            if take_mistake is None:
                raise
            take_mistake(error)
        return Refused(error, function)


class Macro:
    """A function that is recorded wherever it is called, with names of its own."""

    function: types.FunctionType
    signature: inspect.Signature
    by_reference: set[str]

    def __init__(self, function):
        self.function = function
        functools.update_wrapper(self, function)
        self.signature = inspect.signature(function)
        rewritten(function)  # what it cannot contain is told of here; its closure may change before it is called
        self.by_reference = {
            n
            for n, a in function.__annotations__.items()
            if (isinstance(a, type) and issubclass(a, Ref)) or (isinstance(a, str) and a.endswith(("Ref", "Var")))
        }

    def __get__(self, instance, owner):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        tracer = state.tracer
        if tracer is None:
            fail("OutsideProgram", f"macro '{self.function.__name__}' is called outside of a traced function",
                 "call it from a function under @T.prim_func, @T.macro or @tilewright.jit")  # fmt: skip
        bound = bind(self.signature, self.function.__name__, args, kwargs, "OperandKind")
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            bound.arguments[name] = self.argument(name, value)
        tracer.scope("macro")
        outer, tracer.path = tracer.path, tracer.region((place(), self.function.__code__))
        try:
            result = rewritten(self.function)(*bound.args, **bound.kwargs)
        except RecursionError:
            fail("UnsupportedSyntax", f"macro '{self.function.__name__}' calls itself without end",
                 "a macro is recorded at every call: end by a condition that is known while it is recorded")  # fmt: skip
        finally:
            tracer.path = outer
            tracer.scopes.pop()  # its values may be its result: they stay good
        return result

    def argument(self, name, value):
        """Values are evaluated here; buffers, and what is annotated T.Ref, go by reference."""
        if name in self.by_reference:
            if not isinstance(value, (Var, Tile, Buffer)):
                fail("OperandKind", f"'{name}' of macro '{self.function.__name__}' is a T.Ref, but {value!r} is given",
                     "pass a T.alloc_var or an element of a buffer")  # fmt: skip
            if isinstance(value, Tile) and value.is_element and value.buffer.scope() != "shared.barrier":
                return Place(value.buffer, tuple(let("", load(i)) if isinstance(i, (Expr, Var, Tile)) else i for i in value.indices))
            return value.of if isinstance(value, Reading) else value
        if isinstance(value, Var) or (isinstance(value, Tile) and value.is_element):
            return value if isinstance(value, Tile) and value.buffer.scope() == "shared.barrier" else let(name, load(value))
        return let(name, value) if isinstance(value, Expr) and value.constant is None else value


@entry
def macro(func=None):
    """A function that is recorded wherever it is called."""
    if func is None:
        return entry(Macro)
    if not inspect.isfunction(func):
        fail("OperandKind", f"macro takes a function, not {type(func).__name__}", "write @T.macro above a def")
    return Macro(func)


class Ref:
    """Annotation of a macro's parameter that is an element or a variable, not its value."""


def empty(*shape, dtype="float32"):
    """A tensor that the call makes and returns. T.empty(shape, dtype) or T.empty(M, N, dtype=...)."""
    tracer = state.tracer
    if tracer is None:
        fail("OutsideProgram", "T.empty outside of a traced function", "write it in the function that returns it")
    if shape and isinstance(shape[0], (tuple, list)):
        if len(shape) == 2:
            dtype = shape[1]
        shape = shape[0]
    buffer = TensorType(extents(list(shape)), dtype).parameter(tracer, f"output_{len(tracer.outputs)}", True)
    buffer.parameter.place = place()
    tracer.outputs.append(buffer)
    return buffer


# ---- eager functions


def _is_of_pairs(tensor):
    """Whether a tensor's elements are bytes, or pairs: what libraries without types of 4 bits have for them."""
    name = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    return name in ("int8", "uint8") or name.endswith("_x2")


class Discovery:
    """What a first trace of an eager function learns: its parameters, and where its consts stand in their shapes."""

    def __init__(self, tracer):
        self.parameters = [p for p in tracer.pending if not p.output]
        self.consts = tracer.consts
        self.packed = {p.name for p in self.parameters if p.shape is not None and p.dtype.bits < 8}
        self.where = {}
        for name, symbol in tracer.consts.items():
            for p in self.parameters:
                for kind in ("shape", "strides"):
                    for d, e in enumerate(getattr(p, kind) or ()):
                        if isinstance(e, Expr) and isinstance(symbol, Expr) and e.same(symbol):
                            self.where.setdefault(name, (p.name, kind, d))


    def holds_pairs(self, parameter, tensor):
        return parameter in self.packed and not isinstance(tensor, TensorType) and _is_of_pairs(tensor)


def discover(function, order, arguments, annotations):
    """Runs the function up to its first launch with symbols in place of its consts."""
    tracer = Tracer(function.__name__, discover=True)
    tracer.order = order
    with Recording(tracer):
        try:
            _run(function, order, _arguments(tracer, order, arguments, annotations))
        except StopTrace:
            pass
        rank = {name: i for i, name in enumerate(order)}
        tracer.pending = [*tracer.parameters, *tracer.pending]
        tracer.pending.sort(key=lambda p: rank.get(p.name, len(rank)))
        return Discovery(tracer)


def _run(function, order, values):
    """What the function returns for these values of its parameters, the last of which may be passed by name alone."""
    place = len(order) - function.__code__.co_kwonlyargcount
    return rewritten(function)(*values[:place], **dict(zip(order[place:], values[place:])))


def _arguments(tracer, order, arguments, annotations):
    out = []
    for name in order:
        if name in arguments:
            out.append(arguments[name])
        elif name in annotations:
            out.append(declaration_of(name, annotations[name]).parameter(tracer, name))
        else:
            out.append(Missing(name))
    return out


def trace_eager(function, order, arguments, annotations, consts):
    """The program of an eager function for these values of its compile-time arguments and consts."""
    return until_settled(lambda decisions: _traced_eager_once(function, order, arguments, annotations, consts, decisions))


def _traced_eager_once(function, order, arguments, annotations, consts, decisions):
    at = _place_of(function)
    tracer = Tracer(function.__name__, decisions=decisions)
    tracer.order, tracer.given = order, consts
    with Recording(tracer):
        _set_options(tracer, at, function)
        result = _run(function, order, _arguments(tracer, order, arguments, annotations))
        unknown = next((name for name in consts if name not in tracer.consts), None)
        if unknown is not None:
            known = nearest(unknown, [*tracer.consts, *order])
            fail("ArgumentCount", f"{function.__name__}: got an unexpected keyword argument '{unknown}'",
                 f"the nearest it has: {known}" if known else "keywords are parameters, and names that T.const makes", also=TypeError)  # fmt: skip
        chosen = returned_outputs(tracer, result, at)
        program = finish(tracer, at)
    made = PrimFunc(tracer, program, at)
    made.outputs = [tracer.parameters.index(p) for p in chosen]
    return made


def const(names, dtype="int32"):
    """Dimensions of an eager function that are taken from its tensors when it is called: M, N = T.const("M, N")."""
    tracer = state.tracer
    if tracer is None:
        fail("OutsideProgram", "T.const outside of a traced function", "it is for functions under @tilewright.jit")
    listed = names_in(names, "T.const")
    values = []
    for name in listed:
        if name in tracer.given:
            value = tracer.given[name]
        elif tracer.discover:
            value = tracer.consts.get(name)
            value = make_symbol(name, dtype) if value is None else value
        else:
            fail("ConstantUnknown", f"T.const '{name}' of '{tracer.name}' is no dimension of a parameter by itself",
                 f"use it as a whole extent or stride of a tensor, or pass {name}=... to the call")  # fmt: skip
        tracer.consts[name] = value
        values.append(value)
    return values[0] if len(values) == 1 else tuple(values)

