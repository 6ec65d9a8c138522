"""Attention of tilewright.ops beside NumPy in float64, on every engine: lengths that suit no tile, masks, packed and paged
sequences, gradients, what is refused, and what becomes of it on a GPU."""
import json
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.ops as ops
from tilewright import _native, call_values

RANDOM = np.random.default_rng(7)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
engines = pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])


@pytest.fixture
def engine_of_calls(monkeypatch):
    return lambda engine: monkeypatch.setenv("TILEWRIGHT_ENGINE", engine)


@pytest.fixture(autouse=True)
def unsealed():
    yield
    ops.unseal()


def normal(*shape, dtype="float32"):
    x = RANDOM.standard_normal(shape).astype("float32")
    if dtype != "bfloat16":
        return x.astype(dtype)
    return pytest.importorskip("torch").from_numpy(x).bfloat16()


def wide(x):
    return x.double().numpy() if hasattr(x, "double") else np.asarray(x, np.float64)


def seen(queries, keys, causal=False, window=None):
    ahead, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None]
    left, right = window or (None, None)
    mask = np.ones((queries, keys), bool)
    if causal:
        mask &= j <= ahead
    if left is not None:
        mask &= j >= ahead - left
    if right is not None:
        mask &= j <= ahead + right
    return mask


def reference(q, k, v, causal=False, window=None, sink=None, scale=None):
    """(the output, the weights times abs(v), the logarithms) of (positions, heads, dim), in float64."""
    q, k, v = wide(q), wide(k), wide(v)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    s = np.einsum("ihd,jhd->hij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = np.where(seen(q.shape[0], k.shape[0], causal, window), s, -np.inf)
    if sink is not None:
        s = np.concatenate([s, np.broadcast_to(wide(sink)[:, None, None], (*s.shape[:2], 1))], -1)
    most = s.max(-1, initial=-np.inf, keepdims=True)
    most[most == -np.inf] = 0
    e = np.exp(s - most)
    total = e.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + most)[..., 0]
    p = np.divide(e, total, out=np.zeros_like(e), where=total > 0)[..., : k.shape[0]]
    return np.einsum("hij,jhd->ihd", p, v), np.einsum("hij,jhd->ihd", p, np.abs(v)), lse


def expect_attention(got, lse, expected, dtype):
    """Weights are rounded once, the result once more."""
    out, size, logs = expected
    got, lse = wide(got), wide(lse)
    assert got.shape == out.shape and lse.shape == logs.shape
    assert (np.abs(got - out) <= 1.1 * UNIT[dtype] * (size + np.abs(out)) + 2e-5 * size + 1e-37).all(), float(np.abs(got - out).max())
    finite = np.isfinite(logs)
    assert np.array_equal(finite, np.isfinite(lse)) and np.allclose(lse[finite], logs[finite], atol=1e-5, rtol=1e-5)
    assert (lse[~finite] == -np.inf).all()


def check(q, k, v, dtype, layout="bshd", **options):
    given = q, k, v
    if layout == "bhsd":
        given = tuple(x.transpose(1, 2).contiguous() if hasattr(x, "contiguous") else x.swapaxes(1, 2).copy() for x in given)
    out, lse = ops.attention(*given, layout=layout, return_lse=True, **options)
    assert type(out) is type(q) and out.dtype == q.dtype
    out = out.swapaxes(1, 2) if layout == "bhsd" else out
    for b in range(q.shape[0]):
        expect_attention(out[b], lse[b], reference(q[b], k[b], v[b], **options), dtype)


SETTINGS = [{}, {"causal": True}, {"causal": True, "layout": "bhsd"}, {"causal": True, "window": (20, 0)}, {"window": (9, 4), "scale": 0.3},
            {"window": (None, 3)}]  # fmt: skip


@engines
@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_attention(engine, dtype, number, engine_of_calls):
    engine_of_calls(engine)
    shapes = [(2, 37, 45), (1, 45, 37), (1, 130, 131)] if engine == "cpu" and dtype == "float32" else [(2, 37, 45)]
    for batch, queries, keys in shapes:
        q, k, v = normal(batch, queries, 4, 32, dtype=dtype), normal(batch, keys, 2, 32, dtype=dtype), normal(batch, keys, 2, 48, dtype=dtype)
        check(q, k, v, dtype, **SETTINGS[number])


DIMS = [(16, 16), (64, 64), (80, 80), (96, 96), (128, 128), (192, 128), (256, 256), (240, 16), (72, 72), (40, 33), (1, 7), (250, 24)]


@pytest.mark.parametrize("dim, value_dim", DIMS)
def test_head_dims(dim, value_dim, engine_of_calls):
    for engine, dtype, heads in (("cpu", "float32", 1), ("simulator", "float16", 3)):
        engine_of_calls(engine)
        q, k, v = normal(1, 66, 3, dim, dtype=dtype), normal(1, 70, heads, dim, dtype=dtype), normal(1, 70, heads, value_dim, dtype=dtype)
        check(q, k, v, dtype, causal=True)


@engines
def test_sinks(engine, engine_of_calls):
    engine_of_calls(engine)
    q, k, v = normal(1, 37, 6, 16), normal(1, 30, 3, 16), normal(1, 30, 3, 16)
    sink = np.array([0.5, -np.inf, 200, -200, 3, 0], "float32")
    check(q, k, v, "float32", causal=True, sink=sink)
    plain, lse = ops.attention(q, k, v, return_lse=True)
    got, got_lse = ops.attention(q, k, v, sink=np.full(6, -np.inf, "float32"), return_lse=True)
    assert np.array_equal(plain, got) and np.array_equal(lse, got_lse)
    check(q, k, v, "float32", sink=sink.astype("float16"))


@engines
def test_rows_that_see_no_key(engine, engine_of_calls):
    engine_of_calls(engine)
    q, k, v = normal(1, 50, 2, 16), normal(1, 20, 1, 16), normal(1, 20, 1, 16)
    out, lse = ops.attention(q, k, v, causal=True, return_lse=True)
    assert (out[0, :30] == 0).all() and (lse[0, :, :30] == -np.inf).all() and (out[0, 30:] != 0).all()
    assert np.allclose(out[0, 30], v[0, 0], atol=1e-6)  # which sees one


def test_large_scores_and_numbers_that_are_none():
    q, k, v = normal(1, 9, 1, 16), normal(1, 40, 1, 16), normal(1, 40, 1, 16)
    large, few = np.round(q * 4) * 250, np.round(k * 4) / 4  # scores that float32 has exactly
    check(large, few, v, "float32")
    check(large, few, v, "float32", sink=np.zeros(1, "float32"))
    k[0, 7, 0, 0] = np.nan
    out, lse = ops.attention(q, k, v, causal=True, return_lse=True)
    assert np.isnan(out).all() and np.isnan(lse).all()
    k[0, 7, 0, 0], k[0, 39, 0, 0] = 0, np.nan
    out = ops.attention(q, k, v, causal=True)
    assert np.isfinite(out[0, :-1]).all() and np.isnan(out[0, -1]).all()  # masked scores do not count


@pytest.mark.parametrize("batch, queries, keys", [(0, 3, 3), (2, 0, 3), (2, 3, 0)])
def test_attention_of_nothing(batch, queries, keys):
    out, lse = ops.attention(normal(batch, queries, 2, 16), normal(batch, keys, 2, 16), normal(batch, keys, 2, 32), return_lse=True)
    assert out.shape == (batch, queries, 2, 32) and (out == 0).all() and lse.shape == (batch, 2, queries) and (lse == -np.inf).all()


def test_views_are_copied():
    both = normal(2, 40, 3, 2, 16)
    q, k, v = both[:, :, 0], both[:, :, 1], both[:, :, 2]
    assert np.array_equal(ops.attention(q, k, v), ops.attention(q.copy(), k.copy(), v.copy()))


LENGTHS = [(5, 9), (0, 3), (37, 30), (1, 0), (20, 20), (0, 0), (70, 66)]


def starts(lengths):
    return np.cumsum([0, *lengths]).astype("int32")


@engines
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_packed_sequences(engine, dtype, engine_of_calls):
    if engine == "simulator" and dtype == "float32":
        pytest.skip("slow there, and the same program")
    engine_of_calls(engine)
    at_q, at_k = starts(n for n, _ in LENGTHS), starts(n for _, n in LENGTHS)
    q, k, v = normal(at_q[-1], 4, 32, dtype=dtype), normal(at_k[-1], 2, 32, dtype=dtype), normal(at_k[-1], 2, 48, dtype=dtype)
    sink = normal(4)
    for options in ({}, {"causal": True}, {"causal": True, "window": (11, 0), "sink": sink}):
        out, lse = ops.attention_varlen(q, k, v, at_q, at_k, return_lse=True, **options)
        again = ops.attention_varlen(q, k, v, at_q, at_k, 70, 100, **options)
        assert np.array_equal(out, again)
        for i in range(len(LENGTHS)):
            of_q, of_k = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
            expect_attention(out[of_q], lse[:, of_q], reference(q[of_q], k[of_k], v[of_k], **options), dtype)
    alone = ops.attention_varlen(q, q, q, at_q, causal=True)
    assert np.array_equal(alone, ops.attention_varlen(q, q, q, at_q, at_q, causal=True))
    assert ops.attention_varlen(q[:0], k[:0], v[:0], at_q[:1]).shape == (0, 4, 48)


def paged(k, lengths, page):
    """(pages, table): keys of sequences in pages in any order; what no sequence has is NaN."""
    batch, most = k.shape[0], -(-k.shape[1] // page)
    pages = np.full((batch * most + 3, page, *k.shape[2:]), np.nan, k.dtype)
    order = RANDOM.permutation(batch * most + 3)[: batch * most].reshape(batch, most)
    table = np.full((batch, most), -5, "int32")
    for b, length in enumerate(lengths):
        for i in range(length):
            pages[order[b, i // page], i % page] = k[b, i]
            table[b, i // page] = order[b, i // page]
    return pages, table, order


@engines
@pytest.mark.parametrize("heads, kv_heads, page, parts", [(4, 2, 16, 1), (6, 1, 32, 3), (2, 2, 64, 2), (80, 1, 48, 5)])
def test_decoding(engine, heads, kv_heads, page, parts, engine_of_calls, monkeypatch):
    dim, value_dim = (32, 48) if kv_heads == 1 else (20, 9)
    engine_of_calls(engine)
    module = sys.modules["tilewright.ops.decoding"]
    chosen = module.chosen
    monkeypatch.setattr(module, "chosen", lambda *given: {**chosen(*given), "parts": parts})
    lengths = [150, 0, 37]
    for dtype in ("float32", "float16") if engine == "cpu" else ("float16",):
        q, k, v = normal(3, heads, dim, dtype=dtype), normal(3, 150, kv_heads, dim, dtype=dtype), normal(3, 150, kv_heads, value_dim, dtype=dtype)
        sink = normal(heads)
        of_k, table, order = paged(k, lengths, page)
        of_v = np.full((*of_k.shape[:3], value_dim), np.nan, dtype)
        for b, length in enumerate(lengths):
            for i in range(length):
                of_v[order[b, i // page], i % page] = v[b, i]
        at = np.array(lengths, "int32")
        for options in ({}, {"window": (20, None), "sink": sink}):
            for given in ((of_k, of_v, {"lengths": at, "block_table": table}), (k, v, {"lengths": at}), (k, v, {})):
                out, lse = ops.decode_attention(q, given[0], given[1], return_lse=True, **given[2], **options)
                for b in range(3):
                    n = lengths[b] if given[2] else 150
                    expected = reference(q[b][None], k[b, :n], v[b, :n], **{**options, "window": (options["window"][0], None) if "window" in options else None})
                    if parts == 1:
                        expect_attention(out[b][None], lse[b][:, None], expected, dtype)
                    else:  # parts are rounded each
                        expect_attention(out[b][None], lse[b][:, None], (expected[0], 2 * expected[1], expected[2]), dtype)


def test_a_long_history_is_split_where_a_gpu_has_room(engine_of_calls):
    engine_of_calls("simulator")
    q, k, v = normal(1, 4, 16, dtype="float16"), normal(1, 2000, 1, 16, dtype="float16"), normal(1, 2000, 1, 16, dtype="float16")
    assert [s.family for s in ops.decode_attention.plan(q, k, v)] == ["decode_attention", "combine"]
    out, lse = ops.decode_attention(q, k, v, return_lse=True)
    expected = reference(q[0][None], k[0], v[0])
    expect_attention(out, lse.reshape(4, 1), (expected[0], 2 * expected[1], expected[2]), "float16")
    engine_of_calls("cpu")
    assert len(ops.decode_attention.plan(q, k, v)) == 1


# ---- gradients


def torch_reference(q, k, v, sink=None, causal=False, window=None):
    """(out, lse) of (batch, positions, heads, dim), in float64."""
    import torch

    group = q.shape[2] // k.shape[2]
    q, k, v = q.double(), k.double().repeat_interleave(group, 2), v.double().repeat_interleave(group, 2)
    s = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    s = s.masked_fill(~torch.from_numpy(seen(q.shape[1], k.shape[1], causal, window)), -torch.inf)
    if sink is not None:
        s = torch.cat([s, sink.double()[None, :, None, None].expand(*s.shape[:3], 1)], -1)
    none = (s == -torch.inf).all(-1)
    lse = s.masked_fill(none[..., None], 0).logsumexp(-1).masked_fill(none, -torch.inf)
    p = (s - lse.masked_fill(none, 0)[..., None]).exp()[..., : k.shape[1]]
    return torch.einsum("bhij,bjhd->bihd", p, v), lse


def expect_gradients(ours, theirs, tensors, bound=2e-5):
    """Through the output and the logarithms that are finite."""
    import torch

    (out, lse), (expected, logs) = ours(*tensors), theirs(*tensors)
    assert torch.allclose(out.double(), expected, atol=bound * 10, rtol=bound * 10)
    finite = torch.isfinite(logs)
    of_out, of_lse = torch.randn_like(out), torch.randn_like(lse)
    sums = [(o.double() * of_out).sum() + (x.double().masked_fill(~finite, 0) * of_lse).sum() for o, x in ((out, lse), (expected, logs))]
    for got, wanted in zip(*(torch.autograd.grad(s, tensors) for s in sums)):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        assert (got.double() - wanted.double()).norm() <= bound * wanted.double().norm() + 1e-9


@engines
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_gradients_of_attention(engine, layout, engine_of_calls):
    torch = pytest.importorskip("torch")
    engine_of_calls(engine)
    settings = [({}, False), ({"causal": True}, True), ({"causal": True, "window": (12, None)}, False), ({"window": (8, 5)}, True)]
    for options, sinks in settings if engine == "cpu" else settings[1::2]:
        for queries, keys in [(37, 45), (45, 37)] if engine == "cpu" else [(45, 37)]:
            for dtype, bound in ((torch.float32, 2e-5), (torch.bfloat16, 1e-2)) if not options else ((torch.float32, 2e-5),) if engine != "simulator" else ((torch.bfloat16, 1e-2),):
                q, k, v = (torch.randn(*s).to(dtype).requires_grad_() for s in ((2, queries, 4, 32), (2, keys, 2, 32), (2, keys, 2, 48)))
                sink = [torch.randn(4, requires_grad=True)] if sinks else []

                def ours(q, k, v, sink=None):
                    across = layout == "bhsd"
                    given = [x.transpose(1, 2) if across else x for x in (q, k, v)]
                    out, lse = ops.attention(*given, sink=sink, layout=layout, return_lse=True, **options)
                    return out.transpose(1, 2) if across else out, lse

                expect_gradients(ours, lambda q, k, v, sink=None: torch_reference(q, k, v, sink, **options), [q, k, v, *sink], bound)


@pytest.mark.parametrize("dim, causal", [(64, True), (128, False), (72, True), (33, False)])
def test_gradients_of_several_turns_in_the_simulator(dim, causal, engine_of_calls):
    torch = pytest.importorskip("torch")
    engine_of_calls("simulator")
    leaves = [torch.randn(1, 128, 1, dim, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    grad = torch.randn(1, 128, 1, dim).bfloat16()
    found = torch.autograd.grad(ops.attention(*leaves, causal=causal), leaves, grad)
    wide = [x.detach().double().transpose(1, 2).requires_grad_() for x in leaves]
    y = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal)
    for got, wanted in zip(found, torch.autograd.grad(y, wide, grad.double().transpose(1, 2))):
        assert (got.double() - wanted.transpose(1, 2)).abs().max() < 0.05


@engines
def test_gradients_of_packed_sequences(engine, engine_of_calls):
    torch = pytest.importorskip("torch")
    engine_of_calls(engine)
    at_q, at_k = (torch.from_numpy(starts(n[side] for n in LENGTHS)) for side in (0, 1))
    for dtype, bound in ((torch.float32, 2e-5), (torch.bfloat16, 1e-2))[engine == "simulator" :]:
        for options, sinks in (({}, False), ({"causal": True, "window": (20, None)}, True)):
            q, k, v = (torch.randn(*s).to(dtype).requires_grad_() for s in ((int(at_q[-1]), 4, 32), (int(at_k[-1]), 2, 32), (int(at_k[-1]), 2, 48)))
            sink = [torch.randn(4, requires_grad=True)] if sinks else []

            def theirs(q, k, v, sink=None):
                parts = []
                for i in range(len(LENGTHS)):
                    of_q, of_k = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
                    parts.append(torch_reference(q[None, of_q], k[None, of_k], v[None, of_k], sink, **options))
                return torch.cat([o[0] for o, _ in parts]), torch.cat([x[0] for _, x in parts], 1)

            def ours(q, k, v, sink=None):
                return ops.attention_varlen(q, k, v, at_q, at_k, sink=sink, return_lse=True, **options)

            expect_gradients(ours, theirs, [q, k, v, *sink], bound)


def test_gradients_are_no_operators_where_nobody_sees_them():
    """PyTorch's way to one takes longer than all else before a kernel; modes, compilers and gradients of gradients do see it."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    leaves = [torch.randn(1, 20, 2, 16, requires_grad=True) for _ in range(3)]
    out = ops.attention(*leaves, causal=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    assert "tilewright::attention_backward" not in {e.name for e in profile.events()}
    with Mode():
        again = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    assert "tilewright.attention_backward.default" in seen
    assert all(torch.equal(a, b) for a, b in zip(found, again))
    wanted = torch.autograd.grad(torch_reference(*leaves, causal=True)[0].sum(), leaves)
    assert all(torch.allclose(a, b, atol=1e-4, rtol=1e-4) for a, b in zip(found, wanted))
    (slope, *_) = torch.autograd.grad(out.sum(), leaves, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward"):
        slope.sum().backward()


def test_operators_of_torch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(*s, requires_grad=True) for s in ((2, 20, 4, 16), (2, 30, 2, 16), (2, 30, 2, 32)))
    sink, at = torch.randn(4, requires_grad=True), torch.tensor([0, 7, 20], dtype=torch.int32)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def block(q, k, v, sink):
        y = ops.attention(q * 2, k, v, causal=True, sink=sink)
        return ops.attention_varlen(y[0], y[0], y[0], at, causal=True).square().sum()

    got = torch.autograd.grad(block(q, k, v, sink), [q, k, v, sink])
    y = torch_reference(q * 2, k, v, sink, causal=True)[0][:1]
    packed = torch.cat([torch_reference(y[:, a:b], y[:, a:b], y[:, a:b], causal=True)[0] for a, b in ((0, 7), (7, 20))], 1)
    for a, b in zip(got, torch.autograd.grad(packed.square().sum(), [q, k, v, sink])):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-4)
    torch.library.opcheck(torch.ops.tilewright.attention.default, (q, k, v, sink, True, 0.25, 8, None, "bshd"))
    torch.library.opcheck(torch.ops.tilewright.attention.default, (q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, False, 0.25, None, 3, "bhsd"))
    y = torch.randn(20, 4, 16, requires_grad=True)
    torch.library.opcheck(torch.ops.tilewright.attention_varlen.default, (y, y, y, sink, True, 0.25, None, None, at, at, None, 13))
    with torch.no_grad():
        assert not ops.attention(q, k, v).requires_grad


# ---- refusals, plans


def of(function, **changed):
    """A call of small tensors, with some arguments changed."""
    given = {"q": normal(2, 5, 4, 16), "k": normal(2, 6, 2, 16), "v": normal(2, 6, 2, 32)}
    if function is ops.attention_varlen:
        given = {"q": normal(5, 4, 16), "k": normal(6, 2, 16), "v": normal(6, 2, 32), "cu_seqlens_q": starts([2, 3]), "cu_seqlens_k": starts([6, 0])}
    if function is ops.decode_attention:
        given["q"] = normal(2, 4, 16)
    return lambda: function(**{**given, **changed})


REFUSED = [
    (of(ops.attention, q=normal(5, 4, 16)), "TW4007.*'q' has shape \\(5, 4, 16\\), but must be \\(batch, positions, heads, head dim\\)", ValueError),
    (of(ops.attention, k=normal(2, 6, 3, 16)), "TW4007.*'k' and 'v' differ in heads: 3 and 2", ValueError),
    (of(ops.attention, k=normal(2, 6, 2, 32)), "TW4007.*'q' and 'k' differ in head dim: 16 and 32", ValueError),
    (of(ops.attention, v=normal(3, 6, 2, 32)), "TW4007.*'q' and 'v' differ in batch: 2 and 3", ValueError),
    (of(ops.attention, k=normal(2, 7, 2, 16)), "TW4007.*'k' and 'v' differ in positions: 7 and 6", ValueError),
    (of(ops.attention, q=normal(2, 5, 3, 16)), "TW4007.*3 heads of 'q' do not divide among 2 of 'k'", ValueError),
    (of(ops.attention, v=normal(2, 6, 2, 0)), "TW4007.*'v' has head dim 0.*1 to 256", ValueError),
    (of(ops.attention, v=normal(2, 6, 2, 272)), "TW4007.*'v' has head dim 272", ValueError),
    (of(ops.attention, k=normal(2, 6, 2, 16, dtype="float16")), "TW4004.*'k' has dtype float16.*it takes float32", TypeError),
    (of(ops.attention, q=np.ones((2, 5, 4, 16))), "TW4004.*'q' has dtype float64", TypeError),
    (of(ops.attention, v=[1.0]), "TW4002.*'v' must be a tensor, but is of type list", TypeError),
    (of(ops.attention, layout="sbhd"), "TW1080.*no layout 'sbhd'.*bshd, bhsd", None),
    (of(ops.attention, scale=0), "TW1080.*scale is 0", None),
    (of(ops.attention, scale=float("nan")), "TW1080.*scale is nan", None),
    (of(ops.attention, window=5), "TW1080.*window is 5.*keys before", None),
    (of(ops.attention, window=(3, -1)), "TW1080.*window is \\(3, -1\\)", None),
    (of(ops.attention, sink=normal(2)), "TW4007.*'sink' has shape \\(2,\\), but must have \\(4,\\)", ValueError),
    (of(ops.attention, sink=np.ones(4, "int32")), "TW4004.*'sink' has dtype int32", TypeError),
    (of(ops.attention_varlen, q=normal(2, 5, 4, 16)), "TW4007.*must be \\(positions, heads, head dim\\)", ValueError),
    (of(ops.attention_varlen, cu_seqlens_k=starts([6])), "TW4007.*'cu_seqlens_k' has shape \\(2,\\)", ValueError),
    (of(ops.attention_varlen, cu_seqlens_q=np.array([0, 2, 5])), "TW4004.*'cu_seqlens_q' has dtype int64.*int32", TypeError),
    (of(ops.attention_varlen, cu_seqlens_q=starts([2, 2])), "TW4007.*'cu_seqlens_q' goes from 0 to 4, of 5 positions", ValueError),
    (of(ops.attention_varlen, cu_seqlens_k=np.array([0, 7, 6], "int32")), "TW4007.*'cu_seqlens_k'.*and falls", ValueError),
    (of(ops.attention_varlen, max_seqlen_q=2), "TW4007.*a sequence of 3 positions, longer than the 2 given", ValueError),
    (of(ops.decode_attention, q=normal(2, 1, 4, 16)), "TW4007.*'q' has shape \\(2, 1, 4, 16\\), but must be \\(batch, heads, head dim\\)", ValueError),
    (of(ops.decode_attention, v=normal(2, 7, 2, 32)), "TW4007.*do not belong together", ValueError),
    (of(ops.decode_attention, q=normal(2, 5, 16)), "TW4007.*5 heads of 'q'", ValueError),
    (of(ops.decode_attention, block_table=np.zeros((2, 3), "int32")), "TW4007.*pages of 6 keys.*a page has a multiple of 16", ValueError),
    (of(ops.decode_attention, lengths=np.ones(3, "int32")), "TW4007.*'lengths' has shape \\(3,\\)", ValueError),
    (of(ops.decode_attention, lengths=np.ones(2, "int64")), "TW4004.*'lengths' has dtype int64.*int32", TypeError),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    call, words, also = REFUSED[number]
    with pytest.raises(tw.TilewrightError, match="(?s)" + words) as error:
        call()
    assert error.value.file == __file__ and (also is None or isinstance(error.value, also))


def test_mistakes_are_found_where_a_gradient_is_wanted():
    torch = pytest.importorskip("torch")
    q, k = torch.randn(1, 5, 4, 16, requires_grad=True), torch.randn(1, 6, 3, 16)
    with pytest.raises(tw.TilewrightError, match="TW4007.*4 heads of 'q' do not divide among 3"):
        ops.attention(q, k, k)


def test_calls_are_planned_and_sealed():
    q, k = ops.Spec((2, 70, 4, 16)), ops.Spec((2, 80, 2, 16))
    at = ops.Spec((3,), "int32")
    calls = [ops.attention.plan(q, k, k, causal=True), ops.attention_varlen.plan(ops.Spec((70, 4, 16)), ops.Spec((80, 2, 16)), ops.Spec((80, 2, 16)), at, at),
             ops.decode_attention.plan(ops.Spec((2, 4, 16)), k, k)]  # fmt: skip
    assert len(ops.plan(calls)) == 3
    ops.seal()
    assert ops.attention(normal(2, 70, 4, 16), normal(2, 80, 2, 16), normal(2, 80, 2, 16), causal=True).shape == (2, 70, 4, 16)
    assert ops.decode_attention(normal(2, 4, 16), normal(2, 80, 2, 16), normal(2, 80, 2, 16)).shape == (2, 4, 16)
    with pytest.raises(tw.CompileError, match="TW1080.*not compiled before ops.seal\\(\\): attention\\(causal=false"):
        ops.attention(normal(2, 70, 4, 16), normal(2, 80, 2, 16), normal(2, 80, 2, 16))


SHAPE = {"batch": 4, "queries": 4096, "keys": 4096, "left": 0, "right": 0}


def explained(program, values):
    """Of the values, those of the program's own symbols and numbers."""
    return program.explain("sm_90a", False, {n: v for n, v in values.items() if n in call_values.types_of(program)})


def on_gpu(family, **options):
    """What explain says of the program that suits a large call."""
    texts = {n: str(x).lower() for n, x in options.items()}
    shape = {**SHAPE, "kv_heads": 32 // options.get("group", 1)}
    found = json.loads(_native.library_choose(family, texts, "sm_90a", shape))
    assert found["microseconds"] == min(found["considered"].values()) > 0
    texts.update(found["options"])
    return explained(_native.library_program(family, texts), {**shape, "longest_query": 4096, "longest_key": 4096})


@pytest.mark.parametrize("dim, value_dim, causal", [(64, 64, True), (80, 80, False), (72, 72, True), (96, 96, False), (128, 128, False), (128, 128, True), (192, 128, True),
                                                    (256, 256, False)])  # fmt: skip
def test_plans_for_a_gpu(dim, value_dim, causal):
    """Two warpgroups multiply, a loader fills rings by TMA, scores are made while values are multiplied; no register is spilled."""
    text = on_gpu("attention", dim=dim, value_dim=value_dim, causal=causal, group=4 if causal else 1)
    assert text.count("2 x 1 warpgroups") == 2 and text.count("wgmma.mma_async m64") == 2
    for tile in ("K_shared", "V_shared"):
        assert f"ring of {tile}: 2 slots" in text
    assert text.count("its group stays open: other code runs beside it") == 2 and " a from registers" in text
    assert " 0 bytes of spills" in text or "no NVRTC" in text
    text = on_gpu("attention_backward", dim=dim, value_dim=value_dim, causal=causal)
    products = 6 if dim == 256 else 5  # sums for queries in two parts, which leave by TMA beside one slot for dO
    assert text.count("wgmma.mma_async m64") == products and "not wgmma" not in text
    assert text.count("2 x 1 warpgroups") + text.count("1 x 2 warpgroups") == products
    assert text.count("TMA reduction from shared memory") == products - 4
    for tile, slots in (("Q_shared", "2 slots"), ("dO_shared", "1 slot" if dim == 256 else "2 slots"), ("rows_shared", "2 slots")):
        assert f"ring of {tile}: {slots}" in text
    assert "spills" not in text or text.count(" 0 bytes of spills stored") == text.count("NVRTC")


def test_plans_of_packed_sequences():
    text = on_gpu("attention", dim=128, value_dim=128, causal=True, packed=True)
    assert text.count("2 x 1 warpgroups") == 2 and "ring of K_shared: 2 slots" in text and "ring of V_shared: 2 slots" in text
    text = on_gpu("attention_backward", dim=128, value_dim=128, causal=True, packed=True)
    assert text.count("wgmma.mma_async m64") == 5 and "ring of Q_shared: 2 slots" in text and "ring of dO_shared: 2 slots" in text


@pytest.mark.parametrize("dim, value_dim, page, group", [(64, 64, 0, 8), (80, 80, 64, 1), (128, 128, 0, 1), (128, 128, 16, 8), (256, 256, 64, 40),
                                                         (192, 128, 48, 128), (240, 16, 0, 4)])  # fmt: skip
def test_plans_of_decoding(dim, value_dim, page, group):
    """A loader fills rings by TMA, and all products are instructions; also of pages that are small."""
    options = {"dim": str(dim), "value_dim": str(value_dim), "group": str(group), "page": str(page), "lengths": "true"}
    shape = {"batch": 32, "kv_heads": 8, "keys": 8192}
    found = json.loads(_native.library_choose("decode_attention", options, "sm_90a", shape))
    assert found["parts"] >= 1 and found["microseconds"] > 0
    program = _native.library_program("decode_attention", {**options, **found["options"]})
    text = explained(program, {**shape, "parts": 1, "pages": 9000, "most_pages": 8192 // (page or 64)})
    assert "ring of K_shared" in text and "ring of V_shared" in text
    assert "element by element" not in text and text.count("mma.sync m16n8k16") + text.count("wgmma.mma_async m64") == 4


def test_choices_for_a_gpu():
    def choice(function, *shapes, **options):
        return function.choice(*(ops.Spec(s, "bfloat16", "cuda") for s in shapes), **options)

    large = (4, 4096, 32, 128), (4, 4096, 8, 128), (4, 4096, 8, 128)
    found = choice(ops.attention, *large, causal=True)
    assert 500 < found["predicted_us"] < 1200 and "tile=128x128x" in found["kernels"][0]
    assert choice(ops.attention, *large, causal=True, window=(256, 0))["predicted_us"] < found["predicted_us"] / 3
    small = choice(ops.attention, (1, 64, 8, 64), (1, 64, 8, 64), (1, 64, 8, 64))["kernels"][0]
    assert "tile=64x64x" in small or "tile=128x64x" in small
    assert len(choice(ops.decode_attention, (1, 32, 128), (1, 65536, 8, 128), (1, 65536, 8, 128))["kernels"]) == 2
    assert len(choice(ops.decode_attention, (128, 32, 128), (128, 4096, 8, 128), (128, 4096, 8, 128))["kernels"]) == 1


def test_options_of_the_library_are_checked():
    for family, options, words in (("attention", {"dlse": "true"}, "no option 'dlse'"), ("attention_backward", {"sink": "true"}, "no option 'sink'"),
                                   ("attention", {"tile": "128x128"}, "'tile' of 'attention' is '128x128'"), ("combine", {"parts": "2"}, "no option 'parts'")):  # fmt: skip
        with pytest.raises(tw.CompileError, match=f"TW1080(.|\n)*{words}"):
            _native.library_program(family, options)
    with pytest.raises(tw.CompileError, match="TW1080.*pages of 20 keys"):
        _native.library_choose("decode_attention", {"page": "20"}, "sm_90a", {"batch": 1, "kv_heads": 1, "keys": 100})
    with pytest.raises(tw.CompileError, match="TW1080.*no 'queries'"):
        _native.library_choose("attention", {}, "", {"batch": 1})
