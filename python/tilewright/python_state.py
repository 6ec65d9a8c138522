"""What Python's own values of a traced function hold, so that a change of them under an if or in a loop of the program is
seen: Python makes it once, whatever run time decides."""
import collections
import sys
import types

_CONTAINERS = (list, dict, set, bytearray, collections.deque)
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"numpy", "torch", "tilelang", "tilewright"}
_ITERATORS = tuple(type(iter(v)) for v in ([], (), {}, "", range(0), set(), reversed([]))) + (enumerate, zip, map, filter)
_MOST = 1000  # values that are looked at around one if or loop
_MOST_BYTES = 1 << 16  # of an array


def _is_iterator(value):
    return isinstance(value, (*_ITERATORS, types.GeneratorType)) or type(value).__name__ in ("count", "cycle")


class _Leaf(dict):
    """By type: whether values of it hold nothing that could change."""

    def __missing__(self, kind):
        held = issubclass(kind, (*_CONTAINERS, tuple, *_ITERATORS, types.GeneratorType)) or kind.__name__ in ("ndarray", "count", "cycle")
        self[kind] = leaf = not held and (kind.__module__.partition(".")[0] in _LIBRARIES or kind.__dictoffset__ == 0 or issubclass(kind, type))
        return leaf


_is_leaf = _Leaf()


def _contents(value):
    """(what an object holds now, the values in it); None: what it holds cannot be told."""
    if isinstance(value, dict):
        return dict(value), value.values()
    if isinstance(value, (list, set, collections.deque)):
        return list(value), value
    if isinstance(value, tuple):
        return None, value
    if isinstance(value, bytearray):
        return bytes(value), ()
    kind = type(value)
    if kind.__name__ == "ndarray":
        small = getattr(value, "nbytes", _MOST_BYTES + 1) <= _MOST_BYTES and not value.dtype.hasobject
        return (value.tobytes(), ()) if small else (None, ())
    if isinstance(value, types.GeneratorType):
        return (value.gi_frame.f_lasti if value.gi_frame is not None else None, value.gi_running), ()
    if _is_iterator(value):
        return _place_of(value)
    return Attributes(vars(value)), vars(value).values()


def _place_of(iterator):
    """How far an iterator has come."""
    try:
        said = iterator.__reduce__()
    except TypeError:
        return None, ()
    inner = [part for part in said[1] if isinstance(part, _ITERATORS)]
    return [part for part in said[1:] if isinstance(part, (int, tuple)) and not isinstance(part, bool)], inner


class Attributes(dict):
    """Of an object."""


class PythonState:
    """What values hold that a traced function can name, here."""

    __slots__ = ("kept",)

    def __init__(self, named, around):
        """named: pairs of a name and its value; what is named first is told of first. around: those of names from around the
        function, whose iterators give out numbers."""
        self.kept, seen = [], set()
        for name, value in named:
            if not _is_leaf[type(value)]:
                self._keep(name, value, seen)
        for name, value in around:
            if not _is_leaf[type(value)] and not _is_iterator(value):
                self._keep(name, value, seen)

    def _keep(self, name, first, seen):
        rest = [(first, False)]
        while rest and len(self.kept) < _MOST:
            value, of_object = rest.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            now, inside = _contents(value)
            of_object = of_object or isinstance(now, Attributes)
            if now is not None:
                self.kept.append((name, value is first, of_object, value, now))
            rest += [(v, of_object) for v in inside if not _is_leaf[type(v)]]

    def changed(self, is_same):
        """(the name, whether it is that object itself, the object) of what changed, or None."""
        for name, itself, of_object, value, before in self.kept:
            now = _contents(value)[0]
            if type(before) is not type(now) or _differ(before, now, of_object, is_same):
                return name, itself, value
        return None


def _differ(before, now, of_object, is_same):
    """of_object: an object may hold more than before, as where it keeps what it has found."""
    if isinstance(before, (dict, list)) and not (len(before) <= len(now) if of_object else len(before) == len(now)):
        return True
    if isinstance(before, dict):
        return any(k not in now or not is_same(v, now[k]) for k, v in before.items())
    return not all(map(is_same, before, now)) if isinstance(before, list) else before != now
