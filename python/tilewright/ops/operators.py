"""Functions as operators of PyTorch, each with a reference made of PyTorch's own functions: it says what the result is like,
and gives the gradient. And what functions whose programs are written in Python share: tensors of any library, launches,
planning."""

from __future__ import annotations

import functools
import sys
import threading

from ..tensors import pytorch
from ..trace import fail
from ..tracebacks import entry
from .calls import (
    Operator,
    Place,
    Resolved,
    Spec,
    check_tensor,
    compact,
    compiled,
    name_of,
    place_of,
    recording,
    refuse_dtype,
    refuse_shape,
    specialization,
)
from .gradients import wanted

FLOATS = ("float16", "bfloat16", "float32")


class _Computing(threading.local):
    reference = False  # by PyTorch's functions alone


_computing = _Computing()


class Core:
    """An operator torch.ops.tilewright.<name>. run(*arguments) computes it by kernels, without a gradient;
    reference(*arguments) is the same in PyTorch's functions, on floats of any width. schema: "(Tensor x, int dim) ->
    Tensor"."""

    def __init__(self, name, schema, run, reference):
        self.name, self.schema, self.run, self.reference = name, schema, run, reference
        words = [word.strip() for word in schema.partition(") ->")[0].lstrip("(").split(", ")]
        self.tensors = [i for i, word in enumerate(words) if word.startswith("Tensor")]
        _undefined.append(self)

    def __call__(self, *arguments):
        if _computing.reference:
            return self.reference(*arguments)
        if wanted(*(arguments[i] for i in self.tensors)):
            return self.operator()(*arguments)
        return self.run(*arguments)

    def operator(self):
        import torch

        _define_all()
        return getattr(torch.ops.tilewright, self.name)

    def define(self):
        import torch

        made = torch.library.custom_op(f"tilewright::{self.name}", self.run, mutates_args=(), schema=self.schema)
        made.register_fake(self._like)
        made.register_autograd(self._backward, setup_context=self._keep)

    def _like(self, *arguments, **named):
        """Empty tensors as the results are: without gaps."""
        made = self.reference(*arguments, **named)
        several = isinstance(made, (tuple, list))
        empty = [t.new_empty(t.shape) for t in (made if several else [made])]
        return tuple(empty) if several else empty[0]

    def _keep(self, ctx, inputs, output):
        ctx.save_for_backward(*(inputs[i] for i in self.tensors))
        ctx.others = [None if i in self.tensors else x for i, x in enumerate(inputs)]

    def _backward(self, ctx, *grads):
        arguments, saved = list(ctx.others), ctx.saved_tensors
        for i, tensor in zip(self.tensors, saved):
            arguments[i] = tensor
        asked = [i for i in self.tensors if ctx.needs_input_grad[i]]
        found = gradients_of(self.reference, arguments, asked, grads)
        given = dict(zip(asked, found))
        return tuple(given.get(i) for i in range(len(arguments)))


_undefined = []
_defining = threading.Lock()


def _define_all():
    if _undefined:
        with _defining:  # other threads wait until the last one is defined
            while _undefined:  # threads that import more add them at the end
                _undefined[0].define()
                del _undefined[0]
    return True


_define_all._dynamo_marked_constant = True  # torch.compile calls it while it traces


def gradients_of(function, arguments, asked, grads):
    """The gradients of the arguments numbered `asked`, from those of the results; computed in float32 where they are narrower."""
    import torch

    with torch.enable_grad():
        given = list(arguments)
        for i, x in enumerate(given):
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                wide = x.detach().float() if x.dtype in (torch.float16, torch.bfloat16) else x.detach()
                given[i] = wide.requires_grad_(i in asked)
        made = function(*given)
        made = made if isinstance(made, (tuple, list)) else [made]
        pairs = [(y, g.to(y.dtype)) for y, g in zip(made, grads) if g is not None and y.requires_grad]
        if not pairs:
            return [torch.zeros_like(arguments[i]) for i in asked]
        found = torch.autograd.grad([y for y, _ in pairs], [given[i] for i in asked], [g for _, g in pairs], allow_unused=True)
    return [torch.zeros_like(arguments[i]) if g is None else g.to(arguments[i].dtype) for i, g in zip(asked, found)]


# ---- launches


def launch(family, options, *arguments):
    """Calls the kernel of a family with these options, for where its first tensor is."""
    tensor = next(x for x in arguments if hasattr(x, "shape"))
    compiled(specialization_of(family, options, place_of(tensor)))(*arguments)


@functools.lru_cache(4096)
def _specialization(name, options, place):
    return specialization(name, {}, place, ())._replace(options=options)


def specialization_of(family, options, place):
    return _specialization(family.name, tuple(sorted(options.items())), place)


def engine_of(tensor):
    """The engine that calls with the tensor take."""
    return place_of(tensor).engine


def on_gpu(tensor):
    return engine_of(tensor) in ("cuda", "simulator")


def _meta(x):
    """For a Spec a tensor of PyTorch's without memory."""
    if not isinstance(x, Spec):
        return x
    import torch

    return torch.empty(x.shape, dtype=getattr(torch, name_of(x.dtype)), device="meta")


def _planned(function):
    """resolve() of an Operator: the call is made with tensors that have no memory, and its launches are noted."""

    def resolve(*arguments, **named):
        first = next((x for x in (*arguments, *named.values()) if hasattr(x, "shape")), None)
        place = Place("cpu", "") if first is None else place_of(first)
        given = [_meta(x) for x in arguments], {n: _meta(x) for n, x in named.items()}
        recording.place, recording.found = place, []
        try:
            try:
                function(*given[0], **given[1])
            except AttributeError:  # a result of the library's programs, which there is none of
                fail("BadOption", f"{function.__name__}: its calls are not planned", "call it once before ops.seal()")
            return Resolved(function, list(dict.fromkeys(recording.found)))
        finally:
            recording.found = None

    return resolve


# ---- functions of tensors of any library


def public(function):
    """An Operator of a function that takes tensors of PyTorch: given those of NumPy or another library, it gives such."""

    @functools.wraps(function)
    def called(*arguments, **named):
        torch = sys.modules.get("torch")
        if torch is not None:
            for x in arguments:
                if isinstance(x, torch.Tensor):
                    return function(*arguments, **named)
        return _of_others(function, arguments, named)

    made = Operator(entry(called), _planned(function))
    made.reference = functools.partial(_by_reference, function)
    return made


def _by_reference(function, *arguments, **named):
    """The same by PyTorch's own functions, of tensors of PyTorch; floats may be float64 too."""
    outer, _computing.reference = _computing.reference, True
    try:
        return function(*arguments, **named)
    finally:
        _computing.reference = outer


def _is_tensor(x):
    return hasattr(x, "shape") and hasattr(x, "dtype") and (hasattr(x, "__dlpack__") or hasattr(x, "__array__"))


def _of_others(function, arguments, named):
    """The call with views of its tensors as PyTorch's; results go the same way back."""
    torch = pytorch(f"ops.{function.__name__}")
    if any(isinstance(x, torch.Tensor) for x in named.values()):
        return function(*arguments, **named)
    import numpy

    kinds = [type(x) for x in (*arguments, *named.values()) if _is_tensor(x)]

    def view(x):
        if not _is_tensor(x):
            return x
        if isinstance(x, (numpy.ndarray, numpy.generic)):
            x = numpy.asarray(x)
            try:
                return torch.from_numpy(x if x.flags.writeable and min((0, *x.strides)) >= 0 else x.copy())
            except TypeError as error:
                fail(
                    "ArgumentDtype",
                    f"{function.__name__}: PyTorch has no dtype {x.dtype}",
                    "convert it, or pass a tensor of PyTorch",
                    also=TypeError,
                )
                raise error
        return torch.from_dlpack(x)

    def back(y):
        if isinstance(y, (tuple, list)):
            return tuple(map(back, y))
        if not isinstance(y, torch.Tensor) or not kinds:
            return y
        if issubclass(kinds[0], (numpy.ndarray, numpy.generic)):
            return y.numpy() if y.dtype not in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2) else y
        library = sys.modules[kinds[0].__module__.partition(".")[0]]
        return library.from_dlpack(y) if hasattr(library, "from_dlpack") else y

    return back(function(*map(view, arguments), **{n: view(x) for n, x in named.items()}))


# ---- what functions ask of their tensors


def check(function, argument, x, dtypes=FLOATS, rank=None, shape=None, like=None):
    """The tensor without gaps, if its dtype is one of these, or that of `like`, and it has this rank or shape (None: any
    extent)."""
    check_tensor(function, argument, x)
    if like is not None:
        dtypes = [name_of(like.dtype)]
    if _computing.reference and name_of(x.dtype) in ("float32", "float64"):
        dtypes = None
    if dtypes is not None and name_of(x.dtype) not in dtypes:
        refuse_dtype(function, argument, name_of(x.dtype), dtypes)
    if shape is not None:
        expected = ", ".join("*" if e is None else str(e) for e in shape) + ("," if len(shape) == 1 else "")
        if len(x.shape) != len(shape) or any(e is not None and e != had for e, had in zip(shape, x.shape)):
            refuse_shape(function, f"'{argument}' has shape {tuple(x.shape)}, but must have ({expected})")
    ranks = (rank,) if isinstance(rank, int) else rank
    if ranks is not None and len(x.shape) not in ranks:
        words = " or ".join(map(str, ranks))
        refuse_shape(function, f"'{argument}' has {len(x.shape)} dimensions (shape {tuple(x.shape)}), but must have {words}")
    return compact(x)


def refuse_option(function, message, help=""):
    fail("BadOption", f"{function}: {message}", help, also=ValueError)


def check_choice(function, name, value, taken):
    """That an argument is one of these values."""
    if value not in taken:
        refuse_option(function, f"{name} is {value!r}", "it is one of: " + ", ".join(map(repr, taken)))


def check_number(function, name, value, least=None, whole=False):
    """That an argument is a number, a whole one, at least so large."""
    kinds = int if whole else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool) or (least is not None and not value >= least):
        kind = "a whole number" if whole else "a number"
        refuse_option(function, f"{name} is {value!r}", f"it is {kind}" + ("" if least is None else f" of at least {least}"))
    return value


def dimension_of(function, x, dim, argument="dim"):
    """A dimension of x, counted from 0."""
    rank = len(x.shape)
    if not isinstance(dim, int) or not -rank <= dim < rank:
        refuse_shape(
            function, f"{argument} is {dim!r}, but 'x' has {rank} dimensions", "dimensions count from 0, and from -1 backwards"
        )
    return dim % rank


def up_to_power_of_two(n):
    return 1 << max(0, n - 1).bit_length()
