"""Kernels by name: matrix products, attention, softmax, norms, reductions, transposes, for tensors of PyTorch, NumPy, CuPy or any
library with DLPack, in the processor's memory or a GPU's. docs/ops.md lists them.

import tilewright.ops as ops
y = ops.matmul(x, w, bias=b, activation="gelu")
"""
from .attention import attention, attention_varlen
from .calls import Spec, plan, seal, unseal
from .decoding import decode_attention
from .elementwise import (abs, add, cast, ceil, cos, div, erf, exp, exp2, expm1, floor, gelu, gelu_and_mul, gelu_tanh, gelu_tanh_and_mul, lerp,
                          log, log1p, log2, maximum, minimum, mul, neg, pow, reciprocal, relu, relu_and_mul, round, rsqrt, sigmoid,
                          sigmoid_and_mul, silu, silu_and_mul, sin, softplus, sqrt, square, sub, tanh, trunc, where)  # fmt: skip
from .products import matmul
from .reductions import max, mean, min, sum
from .rows import layer_norm, log_softmax, rms_norm, softmax
from .shapes import transpose

__all__ = [
    "Spec", "abs", "add", "attention", "attention_varlen", "cast", "ceil", "cos", "decode_attention", "div", "erf", "exp", "exp2",
    "expm1", "floor", "gelu", "gelu_and_mul", "gelu_tanh", "gelu_tanh_and_mul", "layer_norm", "lerp", "log", "log1p", "log2",
    "log_softmax", "matmul", "max", "maximum", "mean", "min", "minimum", "mul", "neg", "plan", "pow", "reciprocal", "relu",
    "relu_and_mul", "rms_norm", "round", "rsqrt", "seal", "sigmoid", "sigmoid_and_mul", "silu", "silu_and_mul", "sin", "softmax",
    "softplus", "sqrt", "square", "sub", "sum", "tanh", "transpose", "trunc", "unseal", "where",
]  # fmt: skip
