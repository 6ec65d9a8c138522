"""Attention of one query a sequence."""
from __future__ import annotations

from ..tensors import empty
from ..tracebacks import entry
from .attending import _FLOATS, _MOST, _sink, options
from .calls import (Operator, Resolved, bucket, check_tensor, chosen, compact, compiled, name_of, place_of, refuse_dtype,
                    refuse_shape, reshaped, specialization)  # fmt: skip


def _decode(q, k, v, *, lengths=None, block_table=None, scale=None, window=None, sink=None, return_lse=False):
    resolved, tensors = _resolve(q, k, v, lengths, block_table, scale, window, sink)
    out, lse = resolved.run(*tensors)
    batch, heads = q.shape[:2]
    out = out.reshape((batch, heads, v.shape[-1]))
    return (out, lse.reshape((batch, heads))) if return_lse else out


def _checked(q, k, v, lengths, block_table):
    """(heads, heads of keys, dtype)."""
    function = "decode_attention"
    paged = block_table is not None
    of_keys = "(pages, page, heads, head dim)" if paged else "(batch, positions, heads, head dim)"
    for name, x, expected in (("q", q, "(batch, heads, head dim)"), ("k", k, of_keys), ("v", v, of_keys)):
        check_tensor(function, name, x)
        if len(x.shape) != expected.count(",") + 1:
            refuse_shape(function, f"'{name}' has shape {tuple(x.shape)}, but must be {expected}")
    dtype = name_of(q.dtype)
    if dtype not in _FLOATS:
        refuse_dtype(function, "q", dtype, _FLOATS)
    for name, x in (("k", k), ("v", v)):
        if name_of(x.dtype) != dtype:
            refuse_dtype(function, name, name_of(x.dtype), [dtype])
    if tuple(k.shape[:3]) != tuple(v.shape[:3]) or q.shape[-1] != k.shape[-1] or not (paged or q.shape[0] == k.shape[0]):
        refuse_shape(function, f"'q', 'k' and 'v' of shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)} do not belong together",
                     f"k: {of_keys}; v the same but for its head dim")  # fmt: skip
    for name, x in (("q", q), ("v", v)):
        if not 0 < x.shape[-1] <= 256:
            refuse_shape(function, f"'{name}' has head dim {x.shape[-1]}", "it is 1 to 256")
    heads, kv_heads = q.shape[1], k.shape[2]
    if not kv_heads or heads % kv_heads:
        refuse_shape(function, f"{heads} heads of 'q' do not divide among {kv_heads} of 'k'", "the heads of 'q' are a multiple of those of 'k' and 'v'")
    if paged and (k.shape[1] % 16 or not k.shape[1]):
        refuse_shape(function, f"pages of {k.shape[1]} keys ('k' has shape {tuple(k.shape)})", "a page has a multiple of 16")
    for name, x, rank in (("block_table", block_table, 2), ("lengths", lengths, 1)):
        if x is None:
            continue
        check_tensor(function, name, x)
        if len(x.shape) != rank or x.shape[0] != q.shape[0]:
            refuse_shape(function, f"'{name}' has shape {tuple(x.shape)}", f"it has a row for each of {q.shape[0]} sequences" if rank == 2 else f"it is ({q.shape[0]},)")
        if name_of(x.dtype) != "int32":
            refuse_dtype(function, name, name_of(x.dtype), ["int32"])
    return heads, kv_heads, dtype


def _resolve(q, k, v, lengths, block_table, scale, window, sink):
    """(the call, its tensors)."""
    heads, kv_heads, dtype = _checked(q, k, v, lengths, block_table)
    _, scale, left, _ = options("decode_attention", q, False, scale, window)
    batch, group, value_dim, place = q.shape[0], heads // kv_heads, v.shape[-1], place_of(q)
    page = 0 if block_table is None else k.shape[1]
    room = page * block_table.shape[1] if page else k.shape[1]
    given = {"dtype": dtype, "dim": q.shape[-1], "value_dim": value_dim, "group": group, "page": page, "lengths": lengths is not None,
             "left": left is not None, "sink": sink is not None}  # fmt: skip
    left = _MOST if left is None else min(left, _MOST)
    extents = {"batch": max(batch, 1) if batch <= 16 else bucket(batch), "kv_heads": kv_heads, "keys": bucket(max(room, 1)), "left": left}
    choice = chosen("decode_attention", given, place, extents)
    tile, microseconds, parts = choice["options"], choice["microseconds"], choice["parts"]
    sink = _sink("decode_attention", sink, heads)
    tensors = [reshaped(compact(q), (batch, kv_heads, group, q.shape[-1])), compact(k), compact(v),
               None if sink is None else reshaped(sink, (kv_heads, group))]  # fmt: skip
    tensors += [compact(block_table)] if page else []
    tensors.append(None if lengths is None else compact(lengths))
    whole = "float32" if parts > 1 else dtype
    first = specialization("decode_attention", {**given, **tile, "result": whole}, place, ())
    second = specialization("combine", {"result": dtype, "dim": value_dim}, place, (2, 3))

    def run(*tensors):
        out = empty(tensors[0], (parts, batch, kv_heads, group, value_dim), whole, place.engine)
        lse = empty(tensors[0], (parts, batch, kv_heads, group), "float32", place.engine)
        compiled(first)(*tensors, out, lse, scale, left)
        if parts == 1:
            return out, lse
        return compiled(second)(out.reshape((parts, batch * heads, value_dim)), lse.reshape((parts, batch * heads)))

    return Resolved(run, [first, second] if parts > 1 else [first], microseconds), tensors


def _of_call(q, k, v, *, lengths=None, block_table=None, scale=None, window=None, sink=None, return_lse=False):
    return _resolve(q, k, v, lengths, block_table, scale, window, sink)[0]


_decode.__name__ = "decode_attention"
_decode.__doc__ = """softmax(scale * q @ k^T) @ v for one query a sequence, which stands at its last key.

q: (batch, heads, head dim); k, v: (batch, positions, heads, head dim), or with a block_table in pages: (pages, page, heads,
head dim), where key i of sequence b is number i % page of page block_table[b, i // page], int32; a page has a multiple of 16
keys. lengths: (batch,), int32, the keys of each sequence; None is all that there is room for. What lies behind is not read.
window, sink, scale, head dims and dtypes are those of attention(). return_lse: also log(sum(exp(scores))), float32 (batch,
heads). On a GPU long histories are split among blocks, and a second kernel combines the parts. Without gradients.
"""
decode_attention = Operator(entry(_decode), _of_call, traced=False)
