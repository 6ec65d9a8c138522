"""torch.backends.cuda.matmul.allow_tf32 without a GPU: products of float32 matrices read operands of tfloat32 where a program
allows it, as on a GPU. What is compared with such a product is often made of tfloat32 too."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_OPERANDS = {_aten.mm: 0, _aten.bmm: 0, _aten.addmm: 1, _aten.baddbmm: 1, _aten.addbmm: 1}  # where the two stand
_SETTERS = ("_set_cublas_allow_tf32", "_set_float32_matmul_precision", "_set_fp32_precision_setter")


class _Products(TorchDispatchMode):
    """Of backward passes too, which functions of torch do not go through."""

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        at = _OPERANDS.get(getattr(function, "overloadpacket", None))
        if at is not None and torch._C._get_cublas_allow_tf32():
            args = (*args[:at], *map(_tf32, args[at : at + 2]), *args[at + 2 :])
        return function(*args, **(kwargs or {}))


def _tf32(value):
    """The nearest value with 10 bits of mantissa; halves away from zero."""
    if value.dtype is not torch.float32:
        return value
    bits = value.contiguous().view(torch.int32)
    return torch.where(value.isfinite(), ((bits + 0x1000) & ~0x1FFF).view(torch.float32), value)


def install():
    """From here on programs that allow it have such products."""
    entered = []

    def watched(setter):
        def called(*arguments):
            result = setter(*arguments)
            if not entered and torch._C._get_cublas_allow_tf32():
                entered.append(_Products().__enter__())  # stays: others may have entered theirs since
            return result

        return called

    for name in _SETTERS:
        if hasattr(torch._C, name):
            setattr(torch._C, name, watched(getattr(torch._C, name)))
    if torch._C._get_cublas_allow_tf32():
        entered.append(_Products().__enter__())
