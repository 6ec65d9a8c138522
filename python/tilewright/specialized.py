"""Programs whose tiles on chip have extents that only a call knows: a program and a kernel for each value of them."""
import types

from . import kernel, program
from .program import PrimFunc, annotations_of
from .surroundings import names_of
from .trace import Recording, Tracer
from .types import Declaration, TensorType, declaration_of
from .values import Expr


class Specialized(PrimFunc):
    """What T.prim_func gives where a tile has a dynamic extent. Until it is called nothing else is known of it."""

    def __init__(self, function, frame, error):
        self.function, self.around = _as_it_is(function)
        self.error, self.name = error, function.__name__
        self.annotations = annotations_of(function, frame)
        self.place = (function.__code__.co_filename, function.__code__.co_firstlineno, 1)
        tracer = Tracer(self.name)
        with Recording(tracer):  # for the parameters alone
            for name, annotation in self.annotations.items():
                declaration_of(name, annotation).parameter(tracer, name)
        self.params, self.outputs, self.attrs = tracer.pending, [], {"global_symbol": self.name}
        self.made = {}

    @property
    def program(self):
        raise self.error

    def script(self, **ignored):
        raise self.error

    def values_of(self, arguments):
        """[(symbol, value)] that the shapes of the arguments give; the call checks them later."""
        known = []
        for parameter, argument in zip(self.params, arguments):
            for extent, value in zip(parameter.shape or (), getattr(argument, "shape", ())):
                if hasattr(extent, "symbol") and not any(extent.same(s) for s, _ in known):
                    known.append((extent, int(value)))
        return known

    def at(self, known):
        """The program where the symbols have these values."""
        key = tuple(value for _, value in known)
        if key not in self.made:
            self.made[key] = program.trace_prim_func(_with_values(self.function, self.around, self.annotations, known))
        return self.made[key]


def _as_it_is(function):
    """The function, and its globals, with what its names hold now: as in a program that is traced at once."""
    cells = tuple(_cell(c, lambda value: value) for c in function.__closure__ or ())
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__, made.__module__, made.__qualname__ = function.__kwdefaults__, function.__module__, function.__qualname__
    return made, {n: function.__globals__[n] for n in names_of(function.__code__) if n in function.__globals__}


def _with_values(function, around, annotations, known):
    from . import language

    def replaced(value):
        if isinstance(value, Expr):
            return next((n for symbol, n in known if value.same(symbol)), value)
        if isinstance(value, (tuple, list)):
            return type(value)(replaced(v) for v in value)
        if isinstance(value, TensorType):
            same = object.__new__(type(value))
            strides = None if value.strides is None else replaced(value.strides)
            same.__dict__.update(value.__dict__, shape=replaced(value.shape), strides=strides)
            return same
        return value

    cells = tuple(_cell(c, replaced) for c in function.__closure__ or ())
    space = {**function.__globals__, **around}
    space.update({n: replaced(v) for n, v in space.items() if isinstance(v, (Expr, Declaration, tuple, list))})
    language._copied(function.__globals__, space)
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = {n: replaced(a) for n, a in annotations.items()}
    return made


def _cell(cell, replaced):
    try:
        return types.CellType(replaced(cell.cell_contents))
    except ValueError:  # not filled yet
        return cell


class SpecializedKernel:
    """The kernels of such a program: called as a kernel is."""

    def __init__(self, func, out_idx, options):
        self.prim_func, self.out_idx, self.options, self.kernels, self.last = func, out_idx, options, {}, None

    def __call__(self, *arguments):
        given = iter(arguments)
        positions = kernel.output_indices(self.prim_func, self.out_idx)
        by_parameter = [None if i in positions else next(given, None) for i in range(len(self.prim_func.params))]
        known = self.prim_func.values_of(by_parameter)
        key = tuple(value for _, value in known)
        if key not in self.kernels:
            self.kernels[key] = kernel.compile(self.prim_func.at(known), self.out_idx, **self.options)
        self.last = self.kernels[key]
        return self.last(*arguments)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.last is None:
            raise self.prim_func.error
        return getattr(self.last, name)

    def __repr__(self):
        return f"<kernels of {self.prim_func.name}>"
