"""torch.cuda.CUDAGraph without a GPU: what runs while a graph is captured is written down, operations of PyTorch and calls of
kernels, and replay() runs it again on the same memory. What a capture cannot have, as values that Python reads, is refused."""
import contextlib
import functools
import sys
import threading

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils._pytree import tree_iter, tree_map

from . import _native
from .kernel import Kernel
from .trace import fail
from .tracebacks import is_ours

_call = _native.Kernel.__call__
_capturing = []  # the graph, while one is captured
_READS = frozenset({torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__array__})
_ALLOCATES = frozenset("empty empty_like empty_strided new_empty new_empty_strided".split())
_HELP = "read values after replay(), or without a graph"


def _refuse(what, help=_HELP):
    fail("BadOption", f"a pretended CUDA graph: {what}", help, also=RuntimeError)


def is_capturing() -> bool:
    return bool(_capturing)


def _memory(tensor):
    return tensor.untyped_storage()._cdata


def _tensors(value):
    return [v for v in tree_iter(value) if isinstance(v, torch.Tensor)]


def _kept(value):
    """Tensors by their memory as it is now: the program may give the tensor other memory, and autograd counts changes of it."""
    return tree_map(lambda v: v.data if isinstance(v, torch.Tensor) else v, value)


def _itself(value):
    return value


def _copy(made, kept):
    """What was made anew, to the memory that what was made first has."""
    for new, old in zip(_tensors(made), _tensors(kept), strict=True):
        if _memory(new) != _memory(old):
            if new.shape != old.shape or new.dtype != old.dtype:
                _refuse(f"an operation made a tensor of shape {tuple(old.shape)} in the capture and of {tuple(new.shape)} in a replay")
            old.copy_(new)


class _Operations(TorchDispatchMode):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        return self.graph._operation(function, args, kwargs or {})


class _Reads(TorchFunctionMode):
    """Values that Python reads past the operations of PyTorch."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        # Functions under @jit read the tensors around them.
        if function in _READS and _capturing == [self.graph] and not self.graph.inside and not is_ours(sys._getframe(1).f_code):
            _refuse(f"the capture reads the values of a tensor by {function.__name__}()")
        return function(*args, **(kwargs or {}))


class CUDAGraph:
    """In place of torch.cuda.CUDAGraph."""

    def __init__(self, keep_graph=False):
        self.reset()

    def reset(self):
        self.steps, self.is_captured, self.inside = [], False, False

    # ---- capture

    def capture_begin(self, pool=None, capture_error_mode="global", **also_ignored):
        if _capturing:
            _refuse("a capture begins in a capture", "end the one before the other begins")
        if self.is_captured:
            _refuse("it has been captured before", "make another graph, or call reset()")
        self.thread, self.random = threading.get_ident(), torch.get_rng_state()
        self.before, self.made, self.alive = {}, set(), []  # by memory: what it held; what the capture made
        self.modes = _Reads(self), _Operations(self)
        _capturing.append(self)
        for mode in self.modes:
            mode.__enter__()
        Kernel.__call__ = _called
        self.tables = _skip_tables()

    def capture_end(self):
        if _capturing != [self]:
            _refuse("capture_end() without capture_begin()", "with torch.cuda.graph(g): ... calls both")
        _capturing.clear()
        del Kernel.__call__
        self.tables()
        if _get_current_dispatch_mode() is not self.modes[1]:
            _refuse("a mode of PyTorch that was entered in the capture is not left at its end", "leave it in the capture, or enter it before")
        for mode in reversed(self.modes):
            mode.__exit__(None, None, None)
        # A capture runs nothing on a GPU: what was there before it is there again.
        with torch.inference_mode():
            for there, values in self.before.values():
                there.copy_(values)
        torch.set_rng_state(self.random)
        self.is_captured = True
        del self.before, self.made, self.alive, self.modes, self.tables

    def _keep(self, tensor):
        """What is in memory that is about to be written, if it was there before the capture."""
        memory = _memory(tensor)
        if memory not in self.made and memory not in self.before:
            with torch.inference_mode():
                there = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
                self.before[memory] = there, there.clone()

    def _run(self, function, args, kwargs):
        self.inside = True
        try:
            return function(*args, **kwargs)
        finally:
            self.inside = False

    def _add(self, function, args, kwargs, made):
        self.made |= {_memory(t) for t in _tensors(made)} - {_memory(t) for t in _tensors((args, kwargs))} - self.before.keys()
        self.steps.append((function, *_kept((args, kwargs)), _kept(made), torch._C._get_cublas_allow_tf32()))

    def _operation(self, function, args, kwargs):
        if self.inside or _capturing != [self]:
            return function(*args, **kwargs)
        if {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(function.tags):
            _refuse(f"the capture asks for values of tensors, by {function}, which a GPU would not have computed yet")
        schema = function._schema
        for number, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[number] if number < len(args) else kwargs.get(argument.name)
                for tensor in _tensors(given):
                    self._keep(tensor)
        made = self._run(function, args, kwargs)
        name = schema.name.partition("::")[2]
        if torch.Tag.inplace_view in function.tags:
            return made  # what a tensor says of its memory
        if name in _ALLOCATES or name == "lift_fresh":
            self.made |= {_memory(t) for t in _tensors(made)}
            self.alive.append(made)
            if name == "lift_fresh":  # numbers of Python's
                self._add(_itself, (made.clone(),), {}, made)
            return made
        given = {_memory(t) for t in _tensors((args, kwargs))}
        if schema.is_mutable or not _tensors(made) or not all(_memory(t) in given for t in _tensors(made)):
            self._add(function, args, kwargs, made)
        return made

    def _kernel(self, kernel, arguments):
        with _left(self.modes[1]):
            inputs = [i for i in range(len(arguments) + len(kernel.outputs)) if i not in kernel.outputs]
            for parameter, argument in zip(inputs, arguments):
                if hasattr(argument, "shape") and kernel.writes(parameter):
                    self._keep(_as_tensor(argument))
            made = self._run(_call, (kernel, *arguments), {})
            self._add(functools.partial(_call, kernel), arguments, {}, made)
        return made

    # ---- replay

    def replay(self):
        if not self.is_captured:
            _refuse("replay() without a capture before it", "with torch.cuda.graph(g): ... captures")
        if _capturing:
            _refuse("a replay in a capture", "replay it after the capture")
        allowed = torch._C._get_cublas_allow_tf32()
        try:
            with torch.inference_mode(), torch._C._DisableAutocast():
                for function, args, kwargs, kept, tf32 in self.steps:
                    if torch._C._get_cublas_allow_tf32() != tf32:
                        torch._C._set_cublas_allow_tf32(tf32)
                    _copy(function(*args, **kwargs), kept)
        finally:
            if torch._C._get_cublas_allow_tf32() != allowed:
                torch._C._set_cublas_allow_tf32(allowed)

    def instantiate(self):
        pass

    def pool(self):
        return 0, 1

    def enable_debug_mode(self):
        pass

    def register_generator_state(self, generator):
        pass

    def raw_cuda_graph(self, *ignored):
        _refuse("there is no cudaGraph_t", "replay() runs it")

    debug_dump = raw_cuda_graph_exec = get_graph_data = raw_cuda_graph


@contextlib.contextmanager
def _left(mode):
    """Outside of a mode for a while."""
    if _get_current_dispatch_mode() is not mode:
        yield  # in an operation of the capture
        return
    mode.__exit__(None, None, None)
    try:
        yield
    finally:
        mode.__enter__()


def _as_tensor(argument):
    """A tensor of the memory of an array that a kernel writes."""
    try:
        return argument if isinstance(argument, torch.Tensor) else torch.from_dlpack(argument)
    except Exception:
        _refuse(f"a kernel is given {type(argument).__name__}, whose memory PyTorch cannot take", "give it tensors of PyTorch")


def _called(kernel, *arguments):
    graph = _capturing[0] if _capturing else None
    if graph is None or graph.inside or graph.thread != threading.get_ident():
        return _call(kernel, *arguments)
    return graph._kernel(kernel, arguments)


def as_one(function):
    """A function of tensors that is one operation of a capture, whatever it asks of them."""

    @functools.wraps(function)
    def called(*arguments):
        graph = _capturing[0] if _capturing else None
        if graph is None or graph.inside or graph.thread != threading.get_ident():
            return function(*arguments)
        with _left(graph.modes[1]):
            made = graph._run(function, arguments, {})
            graph._add(function, arguments, {}, made)
        return made

    return called


class graph:
    """In place of torch.cuda.graph."""

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global", **also_ignored):
        self.cuda_graph = cuda_graph

    def __enter__(self):
        self.cuda_graph.capture_begin()

    def __exit__(self, *error):
        self.cuda_graph.capture_end()
        if error[0] is not None:
            self.cuda_graph.reset()


def _skip_tables():
    """tilewright.ops calls kernels of elements by a table of the extension module: in a capture like others. Returns what ends that."""
    calls = sys.modules.get("tilewright.ops.calls")
    if calls is None:
        return lambda: None
    by_table = calls.FlatOperator.__call__
    calls.FlatOperator.__call__ = lambda self, *operands, **named: self._function(*operands, **named)
    return functools.partial(setattr, calls.FlatOperator, "__call__", by_table)


def install():
    """From here on torch.cuda has such graphs."""
    answers = {
        "CUDAGraph": CUDAGraph, "graph": graph, "is_current_stream_capturing": is_capturing, "graph_pool_handle": lambda: (0, 1),
    }  # fmt: skip
    for module in (torch.cuda, torch.cuda.graphs):
        for name, value in answers.items():
            setattr(module, name, value)
