"""Whole kernels on every engine that needs no GPU, against NumPy."""
import numpy as np
import pytest
import tilewright as tw
import twins
import tilewright.language as T
from engines import ENGINES, array_for
from tilewright.kernel import Kernel

HOST_ENGINES = [e for e in ENGINES if e != "cuda"]
LIBRARIES = ["numpy", "torch"]
rng = np.random.default_rng(7)


def call(library, kernel, *arrays):
    """With tensors of that library; the result as an array."""
    if library == "numpy":
        return kernel(*arrays)
    torch = pytest.importorskip("torch")
    result = kernel(*map(torch.from_numpy, arrays))
    assert isinstance(result, torch.Tensor)
    return result.numpy()


def normal(*shape, dtype="float32"):
    return rng.standard_normal(shape, dtype="float32").astype(dtype)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("engine", HOST_ENGINES)
def test_gemm(library, engine):
    M, N, K = T.dynamic("M, N, K")
    kernel = tw.compile(twins.matmul_relu(M, N, K, 32, 32, 32, "float16"), out_idx=-1, engine=engine)
    for m, n, k in [(32, 32, 64), (17, 40, 33)]:
        a, b = normal(m, k, dtype="float16"), normal(k, n, dtype="float16")
        wanted = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
        np.testing.assert_allclose(call(library, kernel, a, b), wanted, rtol=2e-3, atol=1e-2)


def test_explain_and_simulate():
    M, N, K = T.dynamic("M, N, K")
    kernel = tw.compile(twins.matmul_relu(M, N, K, 32, 32, 32, "float16"), out_idx=-1, engine="cpu")
    assert kernel.explain().startswith("matmul_relu on the cpu engine")
    facts = kernel.explain("sm_80", as_json=True, M=64, N=64, K=64)
    gemm = next(op for op in facts["launches"][0]["operations"] if op["operation"] == "gemm")
    assert gemm["becomes"][0].startswith("mma.sync m16n8k16")
    assert facts["flops"] is not None
    a, b = normal(17, 40, dtype="float16"), normal(40, 33, dtype="float16")
    found, counts = kernel.simulate(a, b, arch="sm_80")
    np.testing.assert_allclose(found, np.maximum(a.astype("float32") @ b.astype("float32"), 0), rtol=2e-3, atol=1e-2)
    assert counts["launches"][0]["total"]["bytes_used"] >= a.nbytes + b.nbytes + found.nbytes


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("engine", HOST_ENGINES)
def test_softmax(library, engine):
    M, N = T.dynamic("M, N")
    kernel = tw.compile(twins.online_softmax(M, N, 8, 32, "float32"), out_idx=1, engine=engine)
    x = normal(13, 70) * 4
    wanted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(call(library, kernel, x), wanted / wanted.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("engine", HOST_ENGINES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(library, engine, causal):
    heads, kv_heads, length, dim = 4, 2, 40, 16
    program = twins.flash_attention(1, heads, kv_heads, length, length, dim, 32, 32, causal, "float16")
    q = normal(1, heads, length, dim, dtype="float16")
    k, v = (normal(1, kv_heads, length, dim, dtype="float16") for _ in range(2))
    found = call(library, tw.compile(program, out_idx=-1, engine=engine), q, k, v)
    keys, values = (x.astype("float32").repeat(heads // kv_heads, axis=1) for x in (k, v))
    scores = q.astype("float32") @ keys.transpose(0, 1, 3, 2) / np.sqrt(dim)
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ values
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("engine", ["interpreter", "cpu"])
def test_thread_code(engine):
    tokens, choices, experts, alignment, blocks = 40, 3, 10, 8, 2
    topk = rng.integers(-1, experts, (tokens, choices))
    counts = np.bincount(topk[topk >= 0], minlength=experts)
    aligned = -(-counts // alignment) * alignment
    rows = int(aligned.sum()) + 16
    kernel = tw.compile(twins.expert_mapping(tokens, choices, experts, rows, alignment, blocks), engine=engine)
    found = [np.full(s, -7, "int32") for s in ((rows,),) * 3 + ((tokens, choices),) + ((experts,),) * 3]
    kernel(topk.astype("int64"), *found)
    expert_of, token_of, pair_of, position_of, start, end, count = found
    assert (count == aligned).all() and (end - start == aligned).all() and start[0] == 0 and (start[1:] == end[:-1]).all()
    for token in range(tokens):
        for choice in range(choices):
            position, expert = position_of[token, choice], topk[token, choice]
            if expert < 0:
                assert position == -1
                continue
            assert start[expert] <= position < end[expert] and expert_of[position] == expert
            assert token_of[position] == token and pair_of[position] == token * choices + choice


def test_engines_agree_bit_for_bit():
    x, g, r = (normal(19, 70, dtype="float16") for _ in range(3))
    program = twins.gated_residual(19, 70, 16, 64, "float16")
    found = [tw.compile(program, out_idx=-1, engine=e)(x, g, r) for e in HOST_ENGINES]
    assert all((f.view("uint16") == found[0].view("uint16")).all() for f in found)


@pytest.mark.parametrize("engine", [e for e in ENGINES if e in ("simulator", "cuda")])
def test_what_a_fast_version_assumes(engine):
    M, N, K = T.dynamic("M, N, K")
    kernel = tw.compile(twins.matmul_relu(M, N, K, 32, 32, 32, "float16"), out_idx=-1, engine=engine)
    assert kernel.assumptions[:2] == ["K % 8 == 0", "N % 8 == 0"] and kernel.general_calls == 0
    for (m, n, k), calls in [((33, 40, 64), 0), ((32, 40, 33), 1), ((32, 40, 32), 1)]:
        a, b = normal(m, k, dtype="float16"), normal(k, n, dtype="float16")
        found = kernel(array_for(engine, a), array_for(engine, b))
        assert kernel.general_calls == calls
        wanted = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
        np.testing.assert_allclose(found.cpu() if engine == "cuda" else found, wanted, rtol=2e-3, atol=1e-2)
    plain = tw.compile(twins.matmul_relu(M, N, K, 32, 32, 32, "float16"), engine="interpreter")
    assert plain.assumptions == [] and plain.general_calls == 0


def test_a_kernel_is_made_of_a_program_as_compile_makes_it():
    program = twins.online_softmax(16, 32, 8, 32, "float32")
    x = normal(16, 32)
    for kernel in (Kernel(program, [1], target="cpu"), Kernel(program, -1, "cython", "cpu", None, False, None, True)):
        assert isinstance(kernel, Kernel)
        assert np.array_equal(kernel(x), tw.compile(program, out_idx=1, engine="cpu")(x))


def test_the_length_of_a_buffer_is_that_of_its_first_dimension():
    @tw.jit
    def copied(A):
        N = T.const("N")
        A: T.Tensor((N, 2), "float32")
        B = T.empty((N, 2), "float32")
        with T.Kernel(1, threads=1):
            for i in range(len(A)):
                B[i, 0] = A[i, 0]
                B[i, 1] = A[i, 1]
        return B

    a = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert np.array_equal(np.asarray(copied(a)), a)
    length = T.dynamic("length")
    with pytest.raises(tw.CompileError, match="the length of 'A' is known only at run time"):

        @T.prim_func
        def unknown(A: T.Tensor((length,), "float32")):
            with T.Kernel(1, threads=1):
                for i in range(len(A)):
                    A[i] = 0.0


def test_a_reference_must_give_something_to_compare_with():
    pytest.importorskip("torch")

    @T.prim_func
    def doubled(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                B[i] = A[i] * 2

    profiler = tw.compile(doubled, out_idx=-1, engine="interpreter").get_profiler()
    profiler.assert_allclose(lambda a: a * 2)
    for nothing in (lambda a: [], lambda a: None):
        with pytest.raises(AssertionError):
            profiler.assert_allclose(nothing)


@pytest.mark.parametrize("engine", HOST_ENGINES)
def test_dimensions_of_tensors_that_folding_leaves_unused(engine):
    """Which tensors are in use decides where a dimension is read, but not which is which."""
    N, K, M = T.dynamic("N"), T.dynamic("K"), T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((N, K), "float32"), B: T.Tensor((M, 24), "float32"), out: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((1,), "float32")
            for i in T.Parallel(1):
                tile[i] = T.if_then_else(i <= 1, 0.25, B[0, 0])  # B is in use until this is folded
            out[0], out[1], out[2] = N, K, M

    found = np.zeros(4, "int32")
    tw.compile(main, engine=engine)(np.zeros((2, 3), "float32"), np.zeros((5, 24), "float32"), found)
    assert found.tolist() == [2, 3, 5, 0]
