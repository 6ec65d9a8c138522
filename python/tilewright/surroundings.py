"""What a traced function reads from around it: constants, objects, and functions that it calls. Their values choose its
kernel. What has no value that can be told from another, as a generator of random numbers, chooses none: then the
function is traced at every call."""
import __future__
import builtins
import collections
import enum
import functools
import hashlib
import inspect
import os
import re
import sys
import types
from collections.abc import Iterator, Mapping

from . import targets

# What a trace may turn into a constant, and the same object is the same value for good.
SIMPLE = (int, float, complex, bool, str, bytes, type(None), type(...))
_SEQUENCES = (list, tuple, collections.deque, types.MappingProxyType, bytearray)
# Their functions stay what they are.
_SETTLED = frozenset("functools itertools math numpy operator tilelang tilewright torch typing".split())
_LIBRARIES = (frozenset(sys.stdlib_module_names) | _SETTLED) - {"__main__", "builtins"}
_MADE_BY_PYTHON = 1 << 9  # flag of classes that a class statement makes
_FIXED = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
          types.MemberDescriptorType, types.ClassMethodDescriptorType, types.CodeType, types.GenericAlias)  # fmt: skip
# Of a class what its slots and bases are: a class that is defined again has others.
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
                types.ClassMethodDescriptorType)  # fmt: skip
# Of our own classes those whose objects hold what they say in attributes.
_DESCRIBING = frozenset({"tilewright.types", "tilewright.language", "tilewright.targets", "tilewright.layouts"})
_MOST = 20000  # values around one function, and reads of them; past that it is traced at every call
_DEEPEST = 100  # values within values, and functions that functions call: fewer than Python's frames allow; likewise
_MOST_BYTES = 1 << 20


class _Same:
    """An object as a key: itself alone."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value


def is_dtype(value):
    """Whether it is a dtype of PyTorch or NumPy, which never change."""
    return names_dtype(type(value))


def names_dtype(kind):
    name = kind.__name__
    return name == "dtype" or name.startswith("dtype[") or name.endswith("DType")


def _library(value):
    """The top module of a class, a function's globals or a module."""
    name = value.get("__name__") if isinstance(value, dict) else getattr(value, "__module__", None)
    return str(name).partition(".")[0]


@functools.cache
def names_of(code):
    """What a function may name: globals, attributes, and texts that getattr could be given."""
    found = set(code.co_names)
    as_texts = code.co_flags & __future__.annotations.compiler_flag  # annotations of functions in it
    for constant in code.co_consts:
        if inspect.iscode(constant):
            found |= set(names_of(constant))
        for text in constant if as_texts and isinstance(constant, tuple) else (constant,):
            if isinstance(text, str) and text.isidentifier():
                found.add(text)
            elif isinstance(text, str) and as_texts:
                found.update(re.findall(r"\b[^\W\d]\w*", text))
    # What pytest puts into assertions, under names that nobody can write, explains those that fail.
    return tuple(sorted(name for name in found if not name.startswith("@")))


class _Reader:
    """Makes keys of values: equal keys are equal values of the same types."""

    def __init__(self):
        self.places = []  # (get, argument, value): the same objects there are the same surroundings
        self.settled = True  # unless one of them may change and stay the same object
        self.exact = True  # unless a value cannot be told from another
        self.seen, self.kept, self.left, self.deeper = {}, [], _MOST, _DEEPEST
        self.names = set()  # that the functions so far may name
        self.modules = []  # that values hold

    def key(self, value):
        kind = type(value)
        if kind is float:
            return float, value.hex()  # 0.0 and -0.0 are equal, and their programs are not
        if kind is complex:
            return complex, value.real.hex(), value.imag.hex()
        if kind in SIMPLE:
            return kind, value
        if isinstance(value, enum.Enum):
            return kind.__qualname__, value.name, self.key(value.value)
        if is_dtype(value):
            return kind.__name__, str(value)
        if isinstance(value, (int, float, str, bytes)):
            base = next(b for b in (int, float, str, bytes) if isinstance(value, b))
            return kind.__module__, kind.__qualname__, self.key(base(value)) if kind is not base else value
        known = self.seen.get(id(value))
        if known is not None:
            return "seen", known
        self.left -= 1
        if self.left < 0 or self.deeper == 0:
            return self._unknown(value)
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)  # so that no other object takes its number meanwhile
        self.deeper -= 1
        found = self._object(value, kind)
        self.deeper += 1
        return found

    def _unknown(self, value):
        self.exact = self.settled = False
        return _Same(value)

    def _object(self, value, kind):
        called = inner_function(value)
        if called is not None:
            return self._called(value, called)
        if isinstance(value, types.ModuleType):
            self.modules.append(value)
            return _Same(value)  # what is read of it: read_of_modules()
        if isinstance(value, type):
            self.settled = False
            return self._class(value)
        if isinstance(value, _FIXED):
            holder = getattr(value, "__self__", None)
            return _Same(value) if holder is None or isinstance(holder, (types.ModuleType, type)) else (value.__name__, self.key(holder))
        if isinstance(value, (staticmethod, classmethod, types.MethodType)):
            return kind, self.key(getattr(value, "__self__", None)), self.key(value.__func__)
        if isinstance(value, property):
            return property, self.key(value.fget)
        if kind in (tuple, frozenset, range, slice):  # settled as what they hold is
            parts = (value.start, value.stop, value.step) if kind in (range, slice) else value
            return kind, (frozenset if kind is frozenset else tuple)(self.key(v) for v in parts)
        self.settled = False
        if _library(kind) == "tilewright" and kind.__module__ not in _DESCRIBING:
            return _Same(value)  # programs, kernels, expressions, buffers: what they are they stay
        if kind is functools._lru_cache_wrapper:
            return kind, self.key(value.__wrapped__)
        if isinstance(value, (dict, Mapping)):
            return kind, tuple((self.key(k), self.key(value[k])) for k in list(value)), self._attributes(value, kind)
        if isinstance(value, _SEQUENCES):
            return kind, tuple(self.key(v) for v in value), self._attributes(value, kind)
        if isinstance(value, (set, frozenset)):
            return kind, frozenset(self.key(v) for v in value)
        return self._array(value, kind) or self._instance(value, kind)

    # ---- arrays

    def _array(self, value, kind):
        """NumPy's scalars and arrays, and PyTorch's tensors in the processor's memory, by what they hold."""
        library = _library(kind)
        if library == "torch" and kind.__name__ in ("Tensor", "Parameter"):
            if value.device.type != "cpu" or value.layout != sys.modules["torch"].strided or value.numel() * value.element_size() > _MOST_BYTES:
                return self._unknown(value)
            value = value.detach().contiguous().reshape(-1).view(sys.modules["torch"].uint8).numpy() if value.numel() else value
            return "tensor", str(value.dtype), tuple(value.shape), hashlib.sha256(bytes(value)).digest()
        if hasattr(kind, "__array_interface__"):
            try:
                array = sys.modules["numpy"].asarray(value)
            except Exception:
                return None
            if array.dtype.hasobject or array.nbytes > _MOST_BYTES:
                return self._unknown(value)
            return kind, str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest() if array.nbytes > 64 else array.tobytes()
        return None

    # ---- objects and classes

    def _attributes(self, value, kind):
        """What an object of a class of the user's holds."""
        found = []
        try:
            found.append(tuple((n, self.key(v)) for n, v in object.__getattribute__(value, "__dict__").items()))
        except AttributeError:
            pass
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                name = f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
                if name in ("__dict__", "__weakref__"):
                    continue
                try:
                    found.append((name, self.key(object.__getattribute__(value, name))))
                except AttributeError:
                    pass
        return tuple(found)

    def _instance(self, value, kind):
        if isinstance(value, Iterator):
            return self._unknown(value)
        held = self._attributes(value, kind)
        if held or not _is_fixed(kind):
            if _is_opaque(kind):
                return self._unknown(value)
            return kind.__qualname__, held, self._class(kind)
        if kind is object:
            return _Same(value)
        if kind.__hash__ is not None and kind.__hash__ is not object.__hash__ and kind.__eq__ is not object.__eq__:
            return kind, _Hashed(value)  # numbers and other values of the standard library
        return self._unknown(value)

    def _class(self, kind):
        """A class of the user's by all that it and its bases hold; others are what they are."""
        found = [_Same(kind)] if _is_fixed(kind) else [kind.__qualname__]
        if not _is_fixed(type(kind)) and id(type(kind)) not in self.seen:
            found.append(self.key(type(kind)))
        for base in kind.__mro__:
            if _is_fixed(base):
                continue
            number = self.seen.get(id(base))
            if number is not None and base is not kind:
                continue
            for name, value in vars(base).items():
                if name not in ("__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__slots__", "__static_attributes__",
                                "__firstlineno__", "__annotations__", "__abstractmethods__", "_abc_impl", "__dataclass_fields__",
                                "__dataclass_params__", "__match_args__") and not isinstance(value, _DESCRIPTORS):  # fmt: skip
                    found.append((name, self.key(value)))
        return tuple(found)

    # ---- functions

    def _called(self, value, called):
        bound = (self.key(value.args), self.key(value.keywords)) if isinstance(value, functools.partial) else None
        return bound, self.function(called), () if bound else self._own_attributes(value)

    def _own_attributes(self, value):
        """Of the attributes that the user gave a function, or what a decorator of ours made of it, those that may be named."""
        space, found = vars(value), []
        classes = [c for c in type(value).__mro__ if _library(c) == "tilewright"]
        if _library(inner_function(value).__globals__) in _SETTLED:
            return ()
        self.places.append((len, space, len(space)))
        for name in sorted(self.names & space.keys()):
            ours = name.startswith("__") or any(name in vars(c) or name in getattr(c, "__annotations__", ()) for c in classes)
            if not ours and (id(value), name) not in self.seen:
                self.seen[id(value), name] = len(self.seen)
                found.append((name, self._read(tuple(sorted(self.names)), space.get, name, space[name])))
        return tuple(found)

    def function(self, function, more_names=()):
        if _library(function.__globals__) in _SETTLED:
            return _Same(function)
        number = self.seen.setdefault((id(function), "function"), len(self.seen))
        if number != len(self.seen) - 1:
            return "seen", number
        self.kept.append(function)
        code = function.__code__
        # Tools that reload modules while they run put new code into the same function.
        for name in ("__code__", "__defaults__"):
            self.places.append((function.__getattribute__, name, getattr(function, name)))
        by_name = function.__kwdefaults__ or {}
        if by_name:
            self.places.append((function.__getattribute__, "__kwdefaults__", by_name))
            self.places += [(by_name.get, name, value) for name, value in by_name.items()]
        named = tuple((name, self.key(value)) for name, value in by_name.items())
        return code, code.co_filename, self.key(function.__defaults__), named, self.around(function, more_names)

    def around(self, function, more_names):
        """What a function reads."""
        names, space, found = names_of(function.__code__), function.__globals__, []
        if more_names:
            names = tuple(sorted({*names, *more_names}))
        self.names.update(names)
        for name in names:
            if name in space:
                found.append((name, self._read(names, space.get, name, space[name])))
            elif hasattr(builtins, name):
                self.places.append((space.get, name, None))
        for cell in function.__closure__ or ():
            try:
                found.append(self._read(names, cell.__getattribute__, "cell_contents", cell.cell_contents))
            except ValueError:
                found.append(None)  # empty as yet
        return tuple(found)

    def _read(self, names, get, argument, value):
        self.left -= 1
        if self.left < 0:
            return self._unknown(value)
        self.places.append((get, argument, value))
        if isinstance(value, types.ModuleType):
            return self._module(names, value)
        if type(value) in SIMPLE or is_dtype(value):
            return self.key(value)
        if inner_function(value) is not None:
            return self.key(value), self._own_attributes(value)
        if isinstance(value, type) and _is_fixed(value):
            return _Same(value)
        self.settled = False
        return self.key(value)

    def _module(self, names, module):
        """Of a module what the function may name."""
        number = self.seen.get((id(module), names))
        if number is not None:
            return "seen", number
        self.seen[id(module), names] = len(self.seen)
        self.kept.append(module)
        if _library(vars(module)) in _SETTLED:
            return None
        space = vars(module)
        return tuple((n, self._read(names, space.get, n, space[n])) for n in names if n in space and not n.startswith("__"))

    def read_of_modules(self):
        """What functions may read of modules that values hold: known when all functions are."""
        found, read = [], None
        while read != (len(self.modules), len(self.names)):  # what is read may hold further ones, and name more
            read = len(self.modules), len(self.names)
            names = tuple(sorted(self.names))
            found += [self._module(names, module) for module in self.modules]
        return tuple(found)


class _Hashed:
    """A value of a class that compares values, with its type."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, _Hashed) and type(self.value) is type(other.value) and self.value == other.value and repr(self.value) == repr(other.value)


def _is_fixed(kind):
    """Whether a class is no user's: it stays what it is."""
    return not kind.__flags__ & _MADE_BY_PYTHON or _library(kind) in _LIBRARIES


def _is_opaque(kind):
    """Whether objects of it hold more than Python shows: a class written in C, or derived from one."""
    known = (object, *SIMPLE, *_SEQUENCES, dict, set, frozenset, BaseException, Exception, types.SimpleNamespace)
    return any(not b.__flags__ & _MADE_BY_PYTHON and b not in known for b in kind.__mro__)


def key_of(*values):
    """(a key of values, whether equal keys are surely equal values)."""
    reader = _Reader()
    key = tuple(reader.key(v) for v in values)
    return key, reader.exact


def hashable(value):
    """A value as a key; equal keys are equal values of the same types, or one object that cannot be told from itself."""
    return key_of(value)[0]


_ENVIRONMENT = getattr(os.environ, "_data", os.environ)  # what it keeps, in the system's words: asked for at every call
_WHERE = ("TILEWRIGHT_ENGINE", "TILELANG_DEFAULT_TARGET")
_WHERE_KEYS = _WHERE if _ENVIRONMENT is os.environ else tuple(map(os.environ.encodekey, _WHERE))


def _where_kernels_run():
    """What says so beside the options of a function."""
    return str(targets.Target.current() or ""), *map(os.environ.get, _WHERE)


class Surroundings:
    """The values around a function, now, and those of its arguments. more_names: what it reads besides what its code names."""

    def __init__(self, function, arguments=None, more_names=()):
        reader = _Reader()
        self.where = _where_kernels_run()
        read = reader.function(function, more_names)
        settled, modules = reader.settled, len(reader.modules)
        self.arguments = None if arguments is None else reader.key(arguments)
        self.key = read, reader.read_of_modules(), self.where
        self.places, self.exact = reader.places, reader.exact
        self.settled = settled if not modules else reader.settled
        self.places.append((targets.chosen, None, targets.chosen()))
        self.places += [(_ENVIRONMENT.get, name, _ENVIRONMENT.get(name)) for name in _WHERE_KEYS]


def _is_ours(value):
    """Whether it is an object of a class of ours. Classes and modules are none: ours may answer whatever they are asked for."""
    return type(value).__module__.partition(".")[0] == "tilewright" and not isinstance(value, (type, types.ModuleType))


def inner_function(value):
    """The function that a call of the value runs: itself, or what a decorator of ours, or a partial, holds."""
    while _is_ours(value) or isinstance(value, functools.partial):  # others may do anything when they are asked for an attribute
        value = getattr(value, "func", None) or getattr(value, "function", None)
    return value if isinstance(value, types.FunctionType) else None
