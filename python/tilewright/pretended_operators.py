"""Operators of torch.library without a GPU: what a program registers for CUDA runs for the CPU's tensors, which stand for
the device's, unless the program has a kernel for the CPU too."""
import weakref

import torch
from torch.library import Library

_KEYS = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}
_impl, _destroy = Library.impl, Library._destroy
_standing_in = weakref.WeakValueDictionary()  # by operator and key: the library that holds the kernel of the device there


def _register(self, op_name, fn, dispatch_key="", **named):
    """In place of Library.impl, which custom_op and register_kernel end in."""
    key = dispatch_key or self.dispatch_key
    name = self._resolve_op_name(op_name, "impl") if hasattr(self, "_resolve_op_name") else op_name if isinstance(op_name, str) else op_name._name
    name = name if "::" in name else f"{self.ns}::{name}"
    before = _standing_in.get((name, _KEYS.get(key, key)))
    if before is not None:
        _destroy(before)  # another kernel takes its place, and the CPU's own goes first
        del _standing_in[name, _KEYS.get(key, key)]
    _impl(self, op_name, fn, dispatch_key, **named)
    if key not in _KEYS or torch._C._dispatch_has_kernel_for_dispatch_key(name, _KEYS[key]):
        return
    other = Library(self.ns, "IMPL")
    _impl(other, name, fn, _KEYS[key], **named)
    _standing_in[name, _KEYS[key]] = other
    self.__dict__.setdefault("_for_cpu", []).append(other)  # it lives as long as what the program registered


def _end(self):
    for other in self.__dict__.pop("_for_cpu", ()):
        _destroy(other)
    _destroy(self)


def install():
    """From here on operators that are for CUDA alone can be called."""
    Library.impl, Library._destroy = _register, _end
