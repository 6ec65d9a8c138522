"""Targets by TileLang's names: what a target is, which one a machine has, and the context that chooses one."""
import re
import threading
import types

from . import _native
from .device import get_architecture


class _Chosen(threading.local):
    stack = ()


_chosen = _Chosen()


def chosen(_=None):
    """The targets that `with` has chosen here: the same object while they are the same."""
    return _chosen.stack


_ARCHITECTURE = re.compile(r"sm_\d+[af]?")


def _parsed(text):
    """The attributes of "cuda -arch=sm_90a -code=..."."""
    kind, *options = text.split()
    attributes = {"kind": kind}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        attributes[name] = value
    return attributes


class Target:
    """A target by its text or a dictionary: .kind.name, .arch, .attrs; `with` chooses it for what is compiled inside."""

    def __init__(self, target="auto", host=None):
        given = dict(target.attributes) if isinstance(target, Target) else dict(target) if isinstance(target, dict) else _parsed(str(target))
        if not isinstance(given.get("kind"), str):
            raise ValueError(f"a target names its kind, as in {{'kind': 'cuda'}}, but this is {target!r}")
        code = given.get("code", [])
        if given["kind"] == "cuda" and not _ARCHITECTURE.fullmatch(str(given.get("arch", "sm_80"))):
            raise ValueError(f"the arch of a CUDA target is like sm_90a, but this is {given['arch']!r}")
        if not isinstance(code, (list, tuple)) or not all(isinstance(c, str) for c in code):
            raise ValueError(f"the code of a target is a list of architectures, but this is {code!r}")
        self.attributes, self.host = given, host
        self.kind = types.SimpleNamespace(name=given["kind"])
        self.attrs = {k: v for k, v in given.items() if k != "kind"}
        self.arch = str(given.get("arch", ""))

    def export(self):
        return dict(self.attributes)

    @staticmethod
    def current(allow_none=True):
        return _chosen.stack[-1] if _chosen.stack else None

    def __enter__(self):
        _chosen.stack = (*_chosen.stack, self)
        return self

    def __exit__(self, *error):
        _chosen.stack = _chosen.stack[:-1]
        return False

    def __str__(self):
        return " ".join([self.kind.name, *(f"-{k}={v}" for k, v in self.attrs.items() if isinstance(v, (str, int)))])

    def __eq__(self, other):
        return isinstance(other, Target) and self.attributes == other.attributes

    def __hash__(self):
        return hash(str(self))


# ---- which target a machine has

_TARGET_DETECTORS = {}


def register_target_detector(name, detector, override=False):
    """Adds a function that gives the target of this machine, or None."""
    if name in _TARGET_DETECTORS and not override:
        raise ValueError(f"there is a target detector '{name}' already")
    _TARGET_DETECTORS[name] = detector


def list_target_detectors():
    return tuple(_TARGET_DETECTORS)


def auto_detect_target():
    """What the first detector gives that knows this machine."""
    for detector in _TARGET_DETECTORS.values():
        found = detector()
        if found is not None:
            return found
    return "cpu"


def _detect_torch_cuda_arch():
    return get_architecture() or "sm_80"


def check_cuda_availability():
    return _native.device_count() > 0


def check_hip_availability():
    return False


check_metal_availability = check_hip_availability
register_target_detector("cuda", lambda: "cuda" if check_cuda_availability() else None)


def determine_target(target="auto", return_object=False):
    """The target that a text, a dictionary or "auto" means."""
    found = auto_detect_target() if isinstance(target, str) and target == "auto" else target
    if not return_object:
        return found if isinstance(found, str) else str(Target(found))
    try:
        made = Target(found)
    except ValueError as error:
        raise AssertionError(f"{target!r} is no valid target config dict or text: {error}") from None
    if made.kind.name == "cuda" and not made.arch:
        made = Target({**made.attributes, "arch": _detect_torch_cuda_arch()})
    return made
