"""Names of TileLang's ways of calling a kernel. There is one here, which all of them mean; a name that is none is refused."""
from dataclasses import dataclass

from .trace import fail


@dataclass(frozen=True)
class ExecutionBackendSpec:
    name: str


_EXECUTION_BACKENDS = {
    "cuda": [ExecutionBackendSpec(name) for name in ("tvm_ffi", "cython", "nvrtc", "torch")],
    "llvm": [ExecutionBackendSpec(name) for name in ("tvm_ffi", "cython")],
}
_EARLIER = {"ctypes": "cython", "dlpack": "tvm_ffi"}  # of earlier releases: what took their place
_LOADED_EXECUTION_BACKENDS = set(_EXECUTION_BACKENDS)


def register_execution_backend(kind, spec, override=False):
    """Adds a name to those that targets of a kind take."""
    specs = _EXECUTION_BACKENDS.setdefault(kind, [])
    if any(s.name == spec.name for s in specs) and not override:
        raise ValueError(f"'{kind}' has an execution backend '{spec.name}' already")
    specs[:] = [s for s in specs if s.name != spec.name] + [spec]


def allowed_backends_for_target(target):
    """The names that a target takes, the preferred one first."""
    kind = target.kind.name if hasattr(target, "kind") else str(target).split(" ")[0]
    return [s.name for s in _EXECUTION_BACKENDS.get(kind, _EXECUTION_BACKENDS["llvm"])]


def resolve_execution_backend(name, target):
    """The backend of that name; of "auto" the preferred one."""
    allowed = allowed_backends_for_target(target)
    name = _EARLIER.get(name, name)
    if name in (None, "auto"):
        return allowed[0]
    if name not in allowed:
        fail("BadOption", f"Invalid execution backend '{name}' for target '{target}'", f"it is auto or one of {', '.join(allowed)}")
    return name
