"""What a traced function reads from around it: constants, and functions that it calls. They choose its kernel, so that a
helper that is edited and defined again is seen."""
import functools
import inspect
import types

# What a trace may turn into a constant.
SIMPLE = (int, float, bool, str, bytes, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset)
# Their functions stay what they are.
_SETTLED = frozenset("functools itertools math numpy operator tilelang tilewright torch typing".split())


def hashable(value):
    """A value as a key; equal keys are equal values of the same types."""
    if isinstance(value, dict):
        return tuple(sorted((k, hashable(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(hashable(v) for v in value)
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, float):
        return float, value.hex()  # 0.0 and -0.0 are equal, and their programs are not
    return type(value), value


def is_dtype(value):
    """Whether it is a dtype of PyTorch or NumPy, which never change."""
    name = type(value).__name__
    return name == "dtype" or name.startswith("dtype[") or name.endswith("DType")


@functools.cache
def _names_of(code):
    found = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            found |= set(_names_of(constant))
    return tuple(sorted(found))


class Surroundings:
    """The values around a function, now."""

    def __init__(self, function):
        self.values = []  # as keys
        self.places = []  # (get, argument, value): the same objects there are the same surroundings
        self.settled = True  # unless one of them may change and stay the same object
        self.seen = {function}
        self._visit(function)

    @property
    def key(self):
        return tuple(self.values)

    def _visit(self, function):
        names, space = _names_of(function.__code__), function.__globals__
        for name in names:
            if name in space:
                self._read(names, space.get, name, space[name])
        for cell in function.__closure__ or ():
            try:
                self._read(names, cell.__getattribute__, "cell_contents", cell.cell_contents)
            except ValueError:
                self.values.append(None)  # empty as yet

    def _read(self, names, get, argument, value):
        if isinstance(value, SIMPLE):
            self._add(get, argument, value, hashable(value))
        elif isinstance(value, _CONTAINERS):
            try:
                key = hashable(value)
                hash(key)
            except TypeError:
                return
            self.settled = self.settled and isinstance(value, frozenset)
            self._add(get, argument, value, key)
        elif is_dtype(value):
            self._add(get, argument, value, str(value))
        else:
            called = inner_function(value)
            if called is not None:
                self._add(get, argument, value, _bound_by(value))
                self._call(called)
            else:
                self._read_attributes(names, value)

    def _read_attributes(self, names, value):
        """Those that the function names, of a module, a class or an object of the user's."""
        module = value.__name__ if isinstance(value, types.ModuleType) else (value if isinstance(value, type) else type(value)).__module__
        if str(module).partition(".")[0] in _SETTLED:
            return
        try:
            space = object.__getattribute__(value, "__dict__") if not isinstance(value, type) else vars(value)
        except AttributeError:
            return
        for name in names:
            if name in space and isinstance(space[name], (*SIMPLE, types.FunctionType)):
                self._read(names, space.get, name, space[name])

    def _call(self, function):
        if function in self.seen or str(function.__globals__.get("__name__")).partition(".")[0] in _SETTLED:
            return
        self.seen.add(function)
        code, defaults = function.__code__, function.__defaults__ or ()
        # Tools that reload modules while they run put new code into the same function.
        self._add(function.__getattribute__, "__code__", code, (code, code.co_filename))
        self.values.append(hashable(tuple(d for d in defaults if isinstance(d, SIMPLE))))
        self._visit(function)

    def _add(self, get, argument, value, key):
        self.places.append((get, argument, value))
        self.values.append(key)


def _bound_by(value):
    """What a partial adds to its function, as a key."""
    if not isinstance(value, functools.partial):
        return None
    try:
        key = hashable((value.args, value.keywords))
        hash(key)
    except TypeError:
        return id(value)
    return key


def inner_function(value):
    """The function that a call of the value runs: itself, or what a decorator of ours, or a partial, holds."""
    ours = type(value).__module__.partition(".")[0] == "tilewright"
    while ours or isinstance(value, functools.partial):  # others may do anything when they are asked for an attribute
        value = getattr(value, "func", None) or getattr(value, "function", None)
        ours = type(value).__module__.partition(".")[0] == "tilewright"
    return value if isinstance(value, types.FunctionType) else None
