"""Attention: of sequences of one length, of packed ones, and their gradients."""
from __future__ import annotations

import math

from ..trace import fail
from ..tracebacks import entry
from . import gradients
from .calls import (Operator, Resolved, Spec, best_of, bucket, calling, check_tensor, chosen, compact, compiled, is_compact, is_torch, name_of,
                    place_of, refuse_dtype, refuse_shape, remember, remembered, specialization)  # fmt: skip

_FLOATS = ("float16", "bfloat16", "float32")
_LAYOUTS = {"bshd": (1, 2), "bhsd": (2, 1)}  # where positions and heads are
_MOST = 1 << 30  # no window is wider


def _attention(q, k, v, *, causal=False, scale=None, window=None, sink=None, layout="bshd", return_lse=False):
    if is_torch(q, k, v) and gradients.wanted(q, k, v, sink):
        given = options("attention", q, causal, scale, window)
        result = gradients.attention(q, k, v, sink, *given, layout)
    else:
        result = run(q, k, v, sink, causal, scale, window, layout)
    return result if return_lse else result[0]


def options(function, q, causal, scale, window):
    """(causal, scale, left, right) as the operators take them: None of left and right is no end."""
    if scale is None:
        scale = 1 / math.sqrt(max(q.shape[-1], 1)) if len(getattr(q, "shape", ())) else 1.0
    if not isinstance(scale, (int, float)) or not 0 < scale < math.inf:
        fail("BadOption", f"{function}: scale is {scale!r}", "it is a positive number, or None for 1 / sqrt(head dim)")
    left, right = window if isinstance(window, (tuple, list)) and len(window) == 2 else (None, None) if window is None else (-1, -1)
    for end in (left, right):
        if end is not None and (not isinstance(end, int) or isinstance(end, bool) or end < 0):
            fail("BadOption", f"{function}: window is {window!r}", "it is (keys before the query's own, keys behind it), with None for all, or None")
    return bool(causal), float(scale), left, None if causal else right


def run(q, k, v, sink, causal, scale, window, layout):
    """(the output, the logarithms), without a gradient."""
    try:
        key = (q.dtype, k.dtype, v.dtype, q.shape, k.shape, v.shape, causal, scale, window, layout)
        call = attention.calls.get(key) if sink is None else None
    except (AttributeError, TypeError):
        call = key = None
    if call is not None and is_compact(q) and is_compact(k) and is_compact(v) and call[1] == place_of(q):
        return call[0](q, k, v, None)
    resolved, tensors = resolve("attention", q, k, v, sink, causal, scale, window, layout)
    if key is not None and sink is None and all(a is b for a, b in zip(tensors, (q, k, v))):
        attention.calls[key] = resolved.run, place_of(q)
    return resolved.run(*tensors)


def _checked(function, tensors, rank, axes):
    """(batch, queries, keys, heads, heads of keys, dim, dim of values, dtype) of q, k and v."""
    for name, x in zip("qkv", tensors):
        check_tensor(function, name, x)
        if len(x.shape) != rank:
            expected = "(positions, heads, head dim)" if rank == 3 else "(batch, heads, positions, head dim)" if axes[0] == 2 else "(batch, positions, heads, head dim)"
            refuse_shape(function, f"'{name}' has shape {tuple(x.shape)}, but must be {expected}")
    q, k, v = tensors
    dtype = name_of(q.dtype)
    if dtype not in _FLOATS:
        refuse_dtype(function, "q", dtype, _FLOATS)
    for name, x in (("k", k), ("v", v)):
        if name_of(x.dtype) != dtype:
            refuse_dtype(function, name, name_of(x.dtype), [dtype])
    positions, heads = axes
    same = [("head dim", q, "q", k, "k", rank - 1), ("positions", k, "k", v, "v", positions), ("heads", k, "k", v, "v", heads)]
    if rank == 4:
        same += [("batch", q, "q", k, "k", 0), ("batch", q, "q", v, "v", 0)]
    for what, a, of_a, b, of_b, d in same:
        if a.shape[d] != b.shape[d]:
            refuse_shape(function, f"'{of_a}' and '{of_b}' differ in {what}: {a.shape[d]} and {b.shape[d]} (shapes {tuple(a.shape)} and {tuple(b.shape)})")
    for name, x in (("q", q), ("v", v)):
        if not 0 < x.shape[-1] <= 256:
            refuse_shape(function, f"'{name}' has head dim {x.shape[-1]}", "it is 1 to 256")
    if not k.shape[heads] or q.shape[heads] % k.shape[heads]:
        refuse_shape(function, f"{q.shape[heads]} heads of 'q' do not divide among {k.shape[heads]} of 'k'",
                     "the heads of 'q' are a multiple of those of 'k' and 'v'")  # fmt: skip
    batch = q.shape[0] if rank == 4 else 1
    return batch, q.shape[positions], k.shape[positions], q.shape[heads], k.shape[heads], q.shape[-1], v.shape[-1], dtype


def _sink(function, sink, heads):
    """As the kernels take it: float32, or None."""
    if sink is None or isinstance(sink, Spec):
        return sink
    check_tensor(function, "sink", sink)
    if tuple(sink.shape) != (heads,):
        refuse_shape(function, f"'sink' has shape {tuple(sink.shape)}, but must have {(heads,)}", "it has a score for each head of 'q'")
    if name_of(sink.dtype) not in _FLOATS:
        refuse_dtype(function, "sink", name_of(sink.dtype), _FLOATS)
    if name_of(sink.dtype) == "float32":
        return compact(sink)
    return sink.detach().float() if is_torch(sink) else sink.astype("float32")


def resolve(function, q, k, v, sink, causal, scale, window, layout):
    """(the call, its tensors)."""
    if layout not in _LAYOUTS:
        fail("BadOption", f"{function}: there is no layout {layout!r}", "it is one of: " + ", ".join(_LAYOUTS))
    extents = _checked(function, (q, k, v), 4, _LAYOUTS[layout])
    causal, scale, left, right = options(function, q, causal, scale, window)
    given, shape = _given(extents, causal, left, right)
    given.update(heads_first=layout == "bhsd", sink=sink is not None)
    tensors = [*map(compact, (q, k, v)), _sink(function, sink, extents[3])]
    wanted, microseconds = _wanted("attention", given, place_of(q), shape, (4, 5))
    numbers = scale, *_ends(left, right)
    return Resolved(lambda *tensors: tuple(compiled(wanted)(*tensors, *numbers)), [wanted], microseconds), tensors


def _given(extents, causal, left, right):
    """(options of the program, its symbols)."""
    batch, queries, keys, heads, kv_heads, dim, value_dim, dtype = extents
    given = {"dtype": dtype, "dim": dim, "value_dim": value_dim, "group": heads // kv_heads, "causal": causal, "left": left is not None,
             "right": right is not None}  # fmt: skip
    return given, {"batch": batch, "kv_heads": kv_heads, "queries": queries, "keys": keys, "left": left, "right": right}


def _ends(left, right):
    return tuple(_MOST if end is None else min(end, _MOST) for end in (left, right))


def _wanted(family, given, place, shape, outputs):
    """(the specialization of a call, its predicted microseconds)."""
    left, right = _ends(shape["left"], shape["right"])
    extents = {n: max(shape[n], 1) if n == "kv_heads" else bucket(max(shape[n], 1)) for n in ("kv_heads", "queries", "keys")}
    extents.update(batch=max(shape["batch"], 1), left=left, right=right)
    choice = chosen(family, given, place, extents)
    return best_of(choice, lambda tile: specialization(family, {**given, "tile": tile}, place, outputs))


def backward(grad, grad_lse, q, k, v, out, lse, causal, scale, left, right, layout):
    """The gradients of q, k and v. grad_lse: that of the logarithms, or None."""
    tensors = [None if x is None else compact(x) for x in (q, k, v, out, lse, grad, grad_lse)]
    key = ("backward", q.dtype, k.dtype, v.dtype, q.shape, k.shape, v.shape, causal, scale, left, right, layout, grad_lse is None)
    run = remembered(attention.calls, key, tensors[0])
    if run is None:
        given, shape = _given(_checked("attention", (q, k, v), 4, _LAYOUTS[layout]), causal, left, right)
        given.update(heads_first=layout == "bhsd", dlse=grad_lse is not None)
        wanted, _ = _wanted("attention_backward", given, place_of(q), shape, (7, 8, 9))
        run = calling(wanted, scale, *_ends(left, right))
        remember(attention.calls, key, q, run)
    return tuple(run(*tensors))


def _of_call(q, k, v, *, causal=False, scale=None, window=None, sink=None, layout="bshd", return_lse=False):
    return resolve("attention", q, k, v, sink, causal, scale, window, layout)[0]


_attention.__name__ = "attention"
_attention.__doc__ = """softmax(scale * q @ k^T) @ v for each head.

q: (batch, positions, heads, head dim), or (batch, heads, positions, head dim) with layout="bhsd"; k, v: as many heads, or a
divisor of it: neighbouring heads of q share one. Head dims: 1 to 256, of v another one if need be. Queries and
keys end together: with causal=True the last query sees all keys, the one before it one less. window: (left, right), so many
keys before and behind that one, None for all. A query that sees no key gets zeros. sink: (heads,), the score of one more key
whose value is zero. scale: 1 / sqrt(head dim) if None. return_lse: also log(sum(exp(scores))), float32 (batch, heads,
positions). float16, bfloat16, float32; weights are rounded to it before they meet the values, sums are float32. Has gradients
in PyTorch.
"""
attention = Operator(entry(_attention), _of_call)


# ---- packed sequences


def _varlen(q, k, v, cu_seqlens_q, cu_seqlens_k=None, max_seqlen_q=None, max_seqlen_k=None, *, causal=False, scale=None, window=None, sink=None,
            return_lse=False):  # fmt: skip
    starts = cu_seqlens_q, cu_seqlens_q if cu_seqlens_k is None else cu_seqlens_k
    longest = max_seqlen_q, max_seqlen_q if cu_seqlens_k is None and max_seqlen_k is None else max_seqlen_k
    if is_torch(q, k, v) and gradients.wanted(q, k, v, sink):
        result = gradients.attention_varlen(q, k, v, sink, *options("attention_varlen", q, causal, scale, window), *starts, *longest)
    else:
        result = run_varlen(q, k, v, sink, causal, scale, window, *starts, *longest)
    return result if return_lse else result[0]


def run_varlen(q, k, v, sink, causal, scale, window, *packed):
    """(the output, the logarithms), without a gradient. packed: starts of queries and of keys, the longest sequences of both."""
    resolved, tensors = resolve_varlen("attention_varlen", q, k, v, sink, causal, scale, window, *packed)
    return resolved.run(*tensors)


def resolve_varlen(function, q, k, v, sink, causal, scale, window, *packed):
    """(the call, its tensors)."""
    extents = _checked(function, (q, k, v), 3, (0, 1))
    causal, scale, left, right = options(function, q, causal, scale, window)
    starts, longest = _packed(function, (q, k), *packed)
    given, shape = _given(extents, causal, left, right)
    shape.update(batch=starts[0].shape[0] - 1, queries=longest[0], keys=longest[1])
    tensors = [*map(compact, (q, k, v)), _sink(function, sink, extents[3]), *starts]
    wanted, _ = _wanted("attention", {**given, "packed": True, "sink": sink is not None}, place_of(q), shape, (6, 7))
    numbers = longest[0], scale, *_ends(left, right)
    return Resolved(lambda *tensors: tuple(compiled(wanted)(*tensors, *numbers)), [wanted]), tensors


def _packed(function, tensors, query_starts, key_starts, longest_query, longest_key):
    """(starts of queries and of keys, without gaps; the longest sequences of both). In the processor's memory they are looked at."""
    starts, longest = [], []
    for name, x, at, most in (("q", tensors[0], query_starts, longest_query), ("k", tensors[1], key_starts, longest_key)):
        argument = f"cu_seqlens_{name}"
        check_tensor(function, argument, at)
        if len(at.shape) != 1 or at.shape[0] < 1 or at.shape != query_starts.shape:
            refuse_shape(function, f"'{argument}' has shape {tuple(at.shape)}", "starts of queries and of keys are vectors of one length: the sequences and 1")
        if name_of(at.dtype) != "int32":
            refuse_dtype(function, argument, name_of(at.dtype), ["int32"])
        if isinstance(at, Spec):
            longest.append(most or x.shape[0])
        else:
            lengths = at[1:] - at[:-1]
            if place_of(at).engine != "cuda":
                _check_starts(function, argument, at, lengths, x.shape[0], most)
            longest.append((int(lengths.max()) if len(lengths) else 0) if most is None else most)
        starts.append(compact(at))
    return starts, longest


def _check_starts(function, argument, at, lengths, positions, most):
    if int(at[0]) != 0 or int(at[-1]) != positions or bool((lengths < 0).any()):
        refuse_shape(function, f"'{argument}' goes from {int(at[0])} to {int(at[-1])}, of {positions} positions"
                     + (", and falls" if bool((lengths < 0).any()) else ""), "it begins with 0, ends with their number and never falls")  # fmt: skip
    if most is not None and len(lengths) and int(lengths.max()) > most:
        refuse_shape(function, f"'{argument}' has a sequence of {int(lengths.max())} positions, longer than the {most} given", "pass its length, or None")


def backward_varlen(grad, grad_lse, q, k, v, out, lse, causal, scale, left, right, *packed):
    """The gradients of q, k and v. grad_lse: that of the logarithms, or None."""
    given, shape = _given(_checked("attention_varlen", (q, k, v), 3, (0, 1)), causal, left, right)
    starts, longest = _packed("attention_varlen", (q, k), *packed)
    shape.update(batch=starts[0].shape[0] - 1, queries=longest[0], keys=longest[1])
    wanted, _ = _wanted("attention_backward", {**given, "packed": True, "dlse": grad_lse is not None}, place_of(q), shape, (9, 10, 11))
    tensors = [None if x is None else compact(x) for x in (q, k, v, out, lse, grad, grad_lse)]
    return tuple(compiled(wanted)(*tensors, *starts, *longest, scale, *_ends(left, right)))


def _of_varlen_call(q, k, v, cu_seqlens_q, cu_seqlens_k=None, max_seqlen_q=None, max_seqlen_k=None, *, causal=False, scale=None, window=None, sink=None,
                    return_lse=False):  # fmt: skip
    keys = (cu_seqlens_q, max_seqlen_q) if cu_seqlens_k is None else (cu_seqlens_k, max_seqlen_k)
    return resolve_varlen("attention_varlen", q, k, v, sink, causal, scale, window, cu_seqlens_q, keys[0], max_seqlen_q, keys[1])[0]


_varlen.__name__ = "attention_varlen"
_varlen.__doc__ = """As attention(), of sequences of different lengths that lie behind each other.

q: (positions, heads, head dim); k, v: (positions of keys, heads, head dim). Sequence i has the queries cu_seqlens_q[i] up to
cu_seqlens_q[i + 1], int32, and such keys; without cu_seqlens_k those of its queries. max_seqlen_q, max_seqlen_k: the longest
sequence, or more; None looks for it, for which a GPU must be waited for. return_lse: also log(sum(exp(scores))), float32
(heads, positions). On a GPU the starts are not looked at: they begin with 0, never fall, and end with the number of positions.
Has gradients in PyTorch.
"""
attention_varlen = Operator(entry(_varlen), _of_varlen_call)
