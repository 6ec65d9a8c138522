"""Compiled programs, and compiling them."""
from __future__ import annotations

import functools
import json
import os
import re
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _native, call_values, outputs, specialized
from .device import described
from .elsewhere import nearest
from .execution_backends import resolve_execution_backend
from .program import PrimFunc
from .shown import Counts, Explanation
from .settings import dump, options_of, warn_once
from .targets import Target
from .trace import fail
from .tracebacks import entry

if TYPE_CHECKING:
    from .profiler import Profiler

_ORDER = "out_idx execution_backend target target_host verbose pass_configs from_database compile_flags".split()  # of JITKernel
_ADDS = 2  # of Kernel.writes
_ENGINES = ("auto", "cpu", "interpreter", "simulator", "cuda")


class _Kernels(type):
    """Makes kernels of programs too, as compile() does: JITKernel(func, out_idx, ...) is TileLang's other way to say it."""

    def __call__(cls, func: Any, *arguments: Any, **named: Any) -> Any:
        if not isinstance(func, PrimFunc):
            return super().__call__(func, *arguments, **named)
        named.update(zip(_ORDER, arguments))
        named.pop("from_database", None)  # where the original keeps what was compiled before
        return compile(func, **named)


class Kernel(_native.Kernel, metaclass=_Kernels):
    """A compiled program: call it with tensors and numbers, in the order of its parameters. Outputs are returned."""

    latency: Any = None
    ref_latency: Any = None
    config: Any = None
    program: Any = None
    checked: Kernel | None = None
    target: Any
    prim_func: PrimFunc  # that it was made of
    arch: str = ""  # that was asked for
    for_cuda: str | None = None  # its text for that, where no GPU runs it
    made_by: Any = None  # makes it again, where it is loaded
    target_host: Any = None
    verbose: Any = None
    pass_configs: dict[Any, Any] | None = None  # as they were given
    compile_flags: list[str] | None = None
    execution_backend: str = "tvm_ffi"
    n_regs: None = None  # as of TileLang's for NVIDIA: ptxas counts, and `tilewright compile --prove` shows it
    n_spills: None = None
    n_max_threads: None = None

    @property
    def params(self) -> list[Any]:
        return self.prim_func.params

    @property
    def out_idx(self) -> list[int]:
        return list(self.outputs)

    def get_kernel_source(self, kernel_only: bool = True, arch: str = "") -> str:
        """The text that the engine compiled; the program's own text where it compiles none. A target that names an
        architecture, as "cuda -arch=sm_90a", gives the text for it on machines without a GPU too, and so does arch, "sm_90a"."""
        if arch and (arch, self.engine) != (self.arch, "cuda"):
            return _native.Kernel(self.program, "cuda", arch, self.outputs).source
        if self.arch.startswith("sm_") and self.engine not in ("cuda", "simulator"):
            if self.for_cuda is None:
                self.for_cuda = _native.Kernel(self.program, "cuda", self.arch, self.outputs).source
            return self.for_cuda
        return self.source or self.prim_func.script()

    @property
    def kernel_source(self) -> str:
        return self.get_kernel_source()

    def say(self, pass_configs: Any, compile_flags: Any) -> None:
        """Keeps what programs ask it for: the options by which it was made."""
        self.pass_configs = None if pass_configs is None else dict(pass_configs)
        self.compile_flags = [compile_flags] if isinstance(compile_flags, str) else compile_flags

    def get_host_source(self) -> str:
        return ""

    @property
    def host_source(self) -> str:
        return self.get_host_source()

    @property
    def resource_usage(self) -> dict[str, Any]:
        return {}

    @property
    def adapter(self) -> Kernel:
        """What calls it: nothing lies between a kernel and its call."""
        return self

    artifact: property = adapter
    torch_function: property = adapter
    func: property = adapter

    def show_source(self, which: str = "kernel") -> None:
        print(self.get_kernel_source())

    print_source_code = show_source

    @overload
    def explain(self, arch: str = "", as_json: Literal[False] = False, predict: bool = False, machine: Any = "", **symbols: int) -> Explanation: ...
    @overload
    def explain(self, arch: str = "", *, as_json: Literal[True], predict: bool = False, machine: Any = "", **symbols: int) -> dict[str, Any]: ...
    def explain(self, arch="", as_json=False, predict=False, machine="", **symbols):
        """What became of each operation and what it costs, as text (with .summary() and .json) or as a dict. arch: "sm_90a"; "" is the CPU.
        predict: first what tilewright.cost.predict() says of it, on `machine` or the one that schedules for the architecture are made for."""
        arch, program = arch or self.explained_arch(), self.program
        symbols = call_values.integers(program, symbols)
        predicted = self._predicted(arch, machine, symbols) if predict or machine else None

        def facts():
            found = json.loads(program.explain(arch, True, symbols))
            return found if predicted is None else {**found, "prediction": predicted.json}

        if as_json:
            return facts()
        return Explanation((f"{predicted}\n\n" if predicted else "") + program.explain(arch, False, symbols), facts)

    def _predicted(self, arch, machine, symbols):
        from .cost import predict

        return predict(self, machine or arch or "sm_90a", **symbols)

    def explained_arch(self) -> str:
        """The GPU that it would run on; "" is the CPU."""
        return self.arch or "sm_90a" if self.engine in ("cuda", "simulator") else ""

    def simulate(self, *arguments: Any, arch: str = "sm_90a", trace: str | os.PathLike[str] | None = None) -> tuple[Any, Counts]:
        """Calls it on a simulated GPU, which finds races and wrong accesses: (what the call returns, a dict of what the
        memories did, which is shown as a table). Tensors in the processor's memory, and small ones: it is slow. trace: a file
        for a timeline of warps, TMA, tensor cores and mbarriers, by a model, which ui.perfetto.dev shows."""
        if trace:
            outputs.check(trace)
        simulated = self._another("simulator", arch, 2 if trace else 1)
        result = simulated(*arguments)
        if trace:
            outputs.write(trace, simulated.trace or json.dumps({"traceEvents": []}))
        counts = simulated.counts  # none of a call without blocks
        return result, Counts(json.loads(counts) if counts else {"program": self.name, "launches": []})

    def report(self, path: str | os.PathLike[str], *arguments: Any, arch: str = "", **symbols: int) -> str | os.PathLike[str]:
        """Writes a page about the kernel, HTML that needs no server: the source beside what it becomes, memory, rings, layouts,
        floors, passes, plans (docs/studio.md). arch and symbols as for explain(). With the arguments of a call, small ones, it
        has what the simulator counts in that call. Returns the path."""
        from . import studio

        arch, symbols = arch or self.explained_arch(), call_values.integers(self.program, symbols)
        outputs.check(path)
        simulated = studio.counted(lambda: self.simulate(*arguments, arch=arch or "sm_90a")[1]) if arguments else None
        return studio.write(self.program, path, arch, symbols, simulated)

    def check(self, *arguments: Any) -> Any:
        """Calls it after a check: on copies of the arguments, every engine that fits runs it, and all must agree. Returns
        what the call returns; LaunchError TW4020 names the engines, the tensor and the element that differ."""
        if self.checked is None:
            self.checked = self._another(f"check {self.engine}", self.arch)
        return self.checked(*arguments)

    def _another(self, engine, arch, *counting):
        """The same program, its options and plans too, on another engine."""
        other = Kernel(self.program, engine, arch, self.outputs, *counting)
        other.program, other.prim_func, other.outputs = self.program, self.prim_func, self.outputs
        return other

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Measures and checks the kernel on tensors that it makes."""
        from .profiler import Profiler, TensorSupplyType

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def run_once(self) -> Any:
        """One call on inputs that are made for it."""
        return self.get_profiler().run_once()

    def __repr__(self) -> str:
        return f"<kernel {self.name} on {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled is how it was made: where it is loaded it is compiled, for what is there."""
        return self.made_by, ()

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self


_MAKERS = {  # whom others' targets are for
    **dict.fromkeys(("hip", "rocm"), "GPUs of AMD"), **dict.fromkeys(("ascend", "npu", "npuir"), "NPUs of Huawei"), **dict.fromkeys(("maca", "metax"), "GPUs of MetaX"),
    "musa": "GPUs of Moore Threads", "metal": "GPUs of Apple", "webgpu": "WebGPU", "opencl": "OpenCL", "vulkan": "Vulkan", "cutedsl": "CuTe DSL",
}  # fmt: skip


def engine_of(target, engine=None):
    """(engine, architecture) that a target asks for: "auto", "cuda", "cuda -arch=sm_90", "cpu", an engine's name."""
    if engine is not None:
        if engine not in _ENGINES:
            fail("BadOption", f"there is no engine '{engine}'", "it is one of: " + ", ".join(_ENGINES))
        return engine, _simulated_arch(engine)
    if isinstance(target, dict):
        target = target.get("kind", "cuda") + (f" -arch={target['arch']}" if target.get("arch") else "")
    if target is None or (isinstance(target, str) and target == "auto"):
        target = Target.current()  # chosen by `with Target(...)`
    text = str(target or os.environ.get("TILELANG_DEFAULT_TARGET") or "auto")
    kind, _, rest = text.partition(" ")
    arch = _arch_of(rest)
    if kind in ("llvm", "c"):
        kind = "cpu"
    if kind == "cuda" and (_native.device_count() == 0 or os.environ.get("TILEWRIGHT_ENGINE")):
        kind = "auto"  # on a machine without a GPU programs run on the CPU
    if kind not in _ENGINES:
        takes = "it is auto, cuda, cpu, interpreter or simulator"
        maker = _MAKERS.get(kind)
        fail("BadOption", f"there is no target '{text}'", f"{takes}; no code is written for {maker} (docs/support.md)" if maker else takes)
    return kind, arch or _simulated_arch(kind)


def _simulated_arch(kind):
    """Of the device that is described to a program, whose instructions it then has; empty: the simulator's own choice."""
    engine = os.environ.get("TILEWRIGHT_ENGINE") if kind == "auto" else kind
    return described() if engine == "simulator" else ""


def _arch_of(options):
    """The architecture among the options of a target; those of TVM's that change nothing here are left out."""
    arch = ""
    for option in options.split():
        name, _, value = option.partition("=")
        if name == "-arch":
            arch = value
        elif name not in _TARGET_OPTIONS:
            near = nearest(name, ["-arch"], 0.6, 1)
            if near:
                fail("BadOption", f"there is no option '{name}' of a target", f"the nearest is {near}=, as in 'cuda -arch=sm_90a'")
            warn_once(f"the option '{name}' of the target is left out")
    return arch


_TARGET_OPTIONS = frozenset("-code -keys -libs -max_num_threads -max_threads_per_block -max_shared_memory_per_block -mcpu -mtriple -mattr "
                            "-thread_warp_size -registers_per_block -host -device -model -opt-level -num-cores -vector-width".split())  # fmt: skip


def with_options(program, options):
    """A recorded program with these options besides its own: itself where it has them already."""
    for name, value in options.items():
        changed = program.with_option(name, value)
        if changed.text != program.text:
            program = changed
    return program


def output_indices(program, out_idx):
    """Positions of the outputs among the parameters."""
    if out_idx is None:
        return list(program.outputs)
    if program.outputs:
        fail("OutputIndex", f"Out index conflict: '{program.name}' returns tensors of T.empty, and out_idx names others",
             "give one of the two", program.place)  # fmt: skip
    count, chosen = len(program.params), []
    for index in out_idx if isinstance(out_idx, (list, tuple)) else [out_idx]:
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            fail("OutputIndex", f"out_idx of '{program.name}' is {out_idx!r}", "it is a position of a parameter, -1 for the last, or a list of them", program.place)
        position = index + count if index < 0 else int(index)
        if not 0 <= position < count or program.params[position].shape is None or position in chosen:
            fail("OutputIndex", f"out_idx {index} of '{program.name}' is no tensor of its {count} parameters, or is named twice",
                 "positions count from 0, and from -1 backwards", program.place)  # fmt: skip
        chosen.append(position)
    return chosen


@entry
def compile(func: PrimFunc, out_idx: Any = None, execution_backend: Any = None, target: Any = None, target_host: Any = None, verbose: Any = None,
            pass_configs: Any = None, compile_flags: Any = None, *, engine: str | None = None, plan: str = "") -> Kernel:  # fmt: skip
    """The kernel of a program. engine or target: "auto", "cuda", "cpu", "interpreter", "simulator". plan: lines that the
    plans of its launches for a GPU are to have, as `tilewright compile --stage plan` prints them (TW8206: they cannot)."""
    if not isinstance(func, PrimFunc):
        fail("OperandKind", f"compile() takes a function under @T.prim_func, not {type(func).__name__}",
             "write @T.prim_func above it, and annotate its parameters: A: T.Tensor((M, N), 'float16')")  # fmt: skip
    backend = resolve_execution_backend(execution_backend, "cuda")
    if not isinstance(plan, str):
        fail("BadOption", f"the plan is {plan!r}", "it is a text, lines as `tilewright compile --stage plan` prints them")
    if isinstance(func, specialized.Specialized):  # compiled at its calls, for what is chosen here
        options = {"target": Target.current() or target if target in (None, "auto") else target, "pass_configs": pass_configs, "engine": engine, "compile_flags": compile_flags,
                   "plan": plan}  # fmt: skip
        return specialized.SpecializedKernel(func, out_idx, options)
    outputs = output_indices(func, out_idx)
    name, arch = engine_of(target, engine)
    if func.one_thread and not func.buffer_map and name == "cuda":
        name, arch = "cpu", ""  # numbers are in reach of every engine
    if func.one_thread and name == "auto" and not os.environ.get("TILEWRIGHT_ENGINE"):
        name = "cpu"
    program = with_options(func.program, options_of(pass_configs, compile_flags))
    if plan:
        program = program.with_plan(plan)
    kernel = Kernel(program, name, arch, outputs)
    if func.one_thread and kernel.engine == "cuda":
        fail("OutsideProgram", f"'{func.name}' has no launch, and would run on one thread of the GPU",
             "write its body in with T.Kernel(...), or compile it with target='cpu'", func.place)  # fmt: skip
    unwritten = [output for output in outputs if not kernel.writes(output)]
    for output in unwritten:
        name = func.params[output].name
        if len(unwritten) < len(outputs):  # the others may be all that is wanted
            warn_once(f"'{func.name}' returns '{name}', but no statement writes to it")
        elif output in func.outputs:
            fail("OutputNeverWritten", f"'{func.name}' returns this tensor, but no statement writes to it",
                 "write its elements, or return another tensor", func.params[output].place)  # fmt: skip
        else:
            fail("OutputNeverWritten", f"out_idx of '{func.name}' names '{name}', which every call makes anew, but no statement writes to it",
                 "write its elements, or name the parameter that is the result", func.place)  # fmt: skip
    for output in outputs:
        if kernel.writes(output) == _ADDS:
            warn_once(f"'{func.name}' only adds to '{func.params[output].name}', which every call makes anew: its elements begin "
                      "as memory happens to be; pass a tensor of zeros, or write to it first")  # fmt: skip
    kernel.program, kernel.prim_func, kernel.outputs = program, func, outputs
    kernel.target, kernel.arch = target or "auto", arch
    kernel.target_host, kernel.verbose, kernel.execution_backend = target_host, verbose, backend
    kernel.say(pass_configs, compile_flags)
    kernel.made_by = functools.partial(compile, func, out_idx, None, target, None, None, pass_configs, compile_flags, engine=engine, plan=plan)
    dump(pass_configs, kernel, func.program)
    return kernel
