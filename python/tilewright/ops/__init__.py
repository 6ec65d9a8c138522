"""Kernels by name: matrix products, attention, softmax, norms, reductions, transposes, for tensors of PyTorch, NumPy, CuPy or any
library with DLPack, in the processor's memory or a GPU's. docs/ops.md lists them.

import tilewright.ops as ops
y = ops.matmul(x, w, bias=b, activation="gelu")
"""
from .attention import attention, attention_varlen
from .calls import Spec, plan, seal, unseal
from .decoding import decode_attention
from .products import matmul
from .reductions import max, mean, min, sum
from .rows import layer_norm, log_softmax, rms_norm, softmax
from .shapes import transpose

__all__ = ["Spec", "attention", "attention_varlen", "decode_attention", "layer_norm", "log_softmax", "matmul", "max", "mean", "min", "plan", "rms_norm", "seal", "softmax", "sum", "transpose", "unseal"]
