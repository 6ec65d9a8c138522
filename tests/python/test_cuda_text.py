"""What the CUDA text says: CUDA's names for what CUDA has, bounds of a launch, loops of a thread with much to do."""
import re

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from gathers import rows_in_two_tiles
from tilewright import _native, kernel


def text_of(program, arch="sm_90a"):
    return _native.Kernel(program.program if hasattr(program, "program") else program, "cuda", arch, []).source


def test_a_text_needs_no_compiler(monkeypatch, tmp_path):
    """Where no GPU is nobody compiles it, so that it comes without NVRTC; what is built ahead of time needs one."""

    @tw.jit(target="cuda -arch=sm_90a")
    def doubled(A):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                B[bx * 128 + i] = A[bx * 128 + i] * 2
        return B

    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so")
    monkeypatch.setenv("TILEWRIGHT_NVRTC", "/nowhere/libnvrtc.so")
    a = np.arange(200, dtype="float32")
    kernel = doubled.compile(a)
    for text in (kernel.get_kernel_source(), doubled.get_kernel_source(a), tw.compile(kernel.prim_func, engine="cpu").get_kernel_source(arch="sm_90a")):
        assert "__global__" in text and "doubled_kernel(" in text
    assert (doubled(a) == a * 2).all()
    with pytest.raises(tw.CompileError, match="TW8001"):
        kernel.prim_func.program.build("sm_90a", "", str(tmp_path))


def elementwise(function, source="float32", result=None, n=512):
    @T.prim_func
    def main(A: T.Tensor((n,), source), B: T.Tensor((n,), result or source)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(n):
                B[i] = function(A[i])

    return main


@pytest.mark.parametrize("name", "exp exp2 exp10 log log2 log10 sin cos tan tanh erf sqrt rsqrt floor ceil trunc nearbyint".split())
def test_functions_have_their_names(name):
    text = text_of(elementwise(getattr(T, name)))
    assert re.search(rf"(?<!__)\b(tw_)?{name}f\(", text) and f"__{name}f(" not in text
    if name != "rsqrt":
        assert f" tw_{name}(" in text_of(elementwise(getattr(T, name), "float64"))


def test_exp_is_that_of_torch():
    """Results that are rounded to 8 bits behind it agree to the last one only by the same function."""
    text = text_of(elementwise(T.exp))
    assert re.search(r"[^_\w]expf\(", text) and "exp_f32" not in text


@pytest.mark.parametrize("name", "exp exp10 log log2 log10 sin cos tan".split())
def test_fast_math_approximates(name):
    program = elementwise(getattr(T, name))
    fast = kernel.with_options(program.program, {"fast_math": True})
    assert f"__{name}f(" in text_of(fast) and f"__{name}f(" not in text_of(program)
    assert f"__{name}f(" in text_of(kernel.with_options(elementwise(getattr(T, name), "float16").program, {"fast_math": True}))
    double = kernel.with_options(elementwise(getattr(T, name), "float64").program, {"fast_math": True})
    assert f"__{name}" not in text_of(double)


@pytest.mark.parametrize("name", "exp exp10 log log2 log10 sin cos tan".split())
def test_approximations_need_no_option(name):
    approximate, exact = getattr(T, "__" + name), getattr(T, name)
    text = text_of(elementwise(lambda x: approximate(x) + exact(x)))
    assert len(re.findall(rf"\b__{name}f\(", text)) == len(re.findall(rf"(?<!__)\b(?:tw_)?{name}f\(", text.split("__global__")[1])) > 0
    assert f"__{name}f(" in text_of(elementwise(approximate, "float16"))
    both = text_of(elementwise(lambda x: approximate(x) + exact(x), "float64"))
    assert f"__{name}" not in both and both.count(f"double tw_{name}(double x)") == 1


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
@pytest.mark.parametrize("name", "exp exp10 log log2 log10 sin cos tan".split())
def test_approximations_are_exact_without_a_gpu(engine, name):
    a = np.linspace(0.25, 2, 512, dtype="float32")
    want, got = np.zeros_like(a), np.zeros_like(a)
    tw.compile(elementwise(getattr(T, name)), engine="interpreter")(a, want)
    tw.compile(elementwise(getattr(T, "__" + name)), engine=engine)(a, got)
    assert (want == got).all() and want.any()


def test_options_of_a_recorded_program():
    program = elementwise(T.exp).program
    fast = kernel.with_options(program, {"fast_math": True})
    assert "option fast_math=true" in fast.text and kernel.with_options(fast, {"fast_math": True}) is fast
    assert kernel.with_options(fast, {"fast_math": False}).text == program.text
    assert kernel.with_options(program, {"fast_math": False}) is program
    made = tw.compile(elementwise(T.exp), pass_configs={"tl.enable_fast_math": True}, engine="interpreter")
    assert made.name == "main"


def test_isfinite_is_cuda_s():
    assert re.search(r"= .*\bisfinite\(", text_of(elementwise(T.isfinite, "float32", "bool")))


@pytest.mark.parametrize(
    "source, result, name",
    [
        ("float32", "float16", "__float22half2_rn"), ("float16", "float32", "__half22float2"),
        ("float32", "bfloat16", "__float22bfloat162_rn"), ("bfloat16", "float32", "__bfloat1622float2"),
        ("float32", "float8_e4m3fn", "__nv_cvt_float2_to_fp8x2_e4m3"), ("float32", "float8_e5m2", "__nv_cvt_float2_to_fp8x2_e5m2"),
    ],
)  # fmt: skip
def test_neighbours_are_converted_by_twos(source, result, name):
    program = elementwise(lambda x: T.cast(x, result), source, result)
    assert name + "(&" in text_of(program)
    assert ("fp8" in name) == (name + "(&" not in text_of(program, "sm_80"))


def test_bounds_of_a_launch():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=128):
            T.annotate_min_blocks_per_sm(2)
            for i in T.unroll(8, unroll_factor=4):
                A[i] = 1.0

    text = main.script()
    assert "threads(tx: 128) min_blocks(2)" in text and "in 0..8 unroll(factor=4) {" in text
    assert _native.parse(text, "").text == text
    source = text_of(main)
    assert "__launch_bounds__(128, 2)" in source and "#pragma unroll 4\n" in source
    with pytest.raises(tw.CompileError, match="1 to 32 blocks"):

        @T.prim_func
        def none(A: T.Tensor((64,), "float32")):
            with T.Kernel(2, threads=128):
                T.annotate_min_blocks_per_sm(0)

    with pytest.raises(tw.CompileError, match="unroll_factor is -1"):

        @T.prim_func
        def less(A: T.Tensor((64,), "float32")):
            with T.Kernel(2, threads=128):
                for i in T.unroll(8, unroll_factor=-1):
                    A[i] = 1.0

    for wrong, right in (("unroll(factor=4)", "serial(factor=4)"), ("min_blocks(2)", "min_blocks(33)")):
        with pytest.raises(tw.TilewrightError, match="factor of 4|33 blocks"):
            _native.parse(text.replace(wrong, right), "")


def test_a_thread_with_much_to_copy_loops():
    """One vector of all that a thread holds would be text without end."""

    @T.prim_func
    def main(A: T.Tensor((1 << 18,), "float16"), B: T.Tensor((1 << 18,), "float16")):
        with T.Kernel(1, threads=1):
            T.copy(A, B)

    source = text_of(main)
    assert len(source) < 10000 and "for (int32_t r = 0; r < 1024; ++r)" in source and "tw_store((uint4*)&B[" in source


def sums(threads, n, dtype="float32"):
    """Atomics of points that meet: in a reducer, in shared memory by a loop's variable, under conditions, as maxima."""

    @T.prim_func
    def main(A: T.Tensor((3, n), dtype), B: T.Tensor((4, 3), dtype)):
        with T.Kernel(1, threads=threads):
            total = T.alloc_reducer((3,), dtype, op="sum", replication="all")
            other = T.alloc_shared((3, 3), dtype)
            T.clear(total)
            for i, j in T.Parallel(3, 3):
                other[i, j] = A[j, 0]
            for r in T.serial(3):
                for i in T.Parallel(n):
                    total[r] += A[r, i]
                    if A[r, i] > 0:
                        T.atomic_add(other[0, r], A[r, i])
                    for k in T.serial(2):
                        T.atomic_add(other[1, r], A[r, i] * k)
                    T.atomic_max(other[2, r], A[r, i])
            T.finalize_reducer(total)
            for j in T.Parallel(3):
                B[0, j] = total[j]
            for i, j in T.Parallel(3, 3):
                B[i + 1, j] = other[i, j]

    return main


@pytest.mark.parametrize("threads, n", [(128, 256), (64, 100), (48, 96), (256, 64), (1, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_points_that_meet_in_an_element_are_added_up_first(threads, n, dtype):
    program = sums(threads, n, dtype)
    a = np.random.default_rng(0).integers(-9, 9, (3, n)).astype(dtype)
    b = np.zeros((4, 3), dtype)
    tw.compile(program, engine="simulator")(a, b)
    expected = [a.sum(1), a[:, 0] + np.maximum(a, 0).sum(1), a[:, 0] + a.sum(1), a.max(1)]
    assert (b == np.array(expected)).all()
    source = text_of(program)
    assert "total_part" in source and ("__shfl_xor_sync" in source or "__reduce_add_sync" in source) == (threads % 32 == 0)


def test_points_that_do_not_meet_change_their_own_elements():
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            counts, narrow = T.alloc_shared((128,), "int32"), T.alloc_shared((1,), "int16")
            T.clear(counts)
            ordered = T.alloc_shared((1,), "int32")
            T.clear(narrow)
            T.clear(ordered)
            for i in T.Parallel(128):
                T.atomic_add(counts[A[i]], 1)
                T.atomic_add(counts[t], 2)
                T.atomic_add(C[0], 1)
                T.atomic_add(narrow[0], T.int16(1))
                T.atomic_add(ordered[0], 1, memory_order="acq_rel")
            T.copy(counts, B)

    assert "_part" not in text_of(main)


def test_threads_gather_into_several_tiles_without_waiting():
    """A vectorized loop of an asynchronous scope that stores to two tiles is a copy for each, and the barrier hears of both later."""
    text = text_of(rows_in_two_tiles)
    assert text.count("cp.async.cg.shared.global") == 2 and "cp.async.wait_group" not in text


def grouped(where, threads=128):
    """A product of one group's rows: how many tiles it has, and where they begin, is read from memory."""

    @T.prim_func
    def main(A: T.Tensor((1024, 512), "float16"), W: T.Tensor((8, 512, 128), "float16"), first: T.Tensor((8,), "int32"), C: T.Tensor((8, 128, 128), "float16")):
        with T.Kernel(8, threads=threads) as b:
            a, w = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            if where == "bound":
                for k in T.Pipelined(T.ceildiv(first[b], 64), num_stages=2):
                    T.copy(A[b * 128, k * 64], a)
                    T.copy(W[b, k * 64, 0], w)
                    T.gemm(a, w, c)
            elif where == "branch":
                row = T.alloc_var("int32")
                row = 0
                for e in range(8):
                    if first[e] <= b * 128:
                        row = first[e]
                    elif first[e] > 900:
                        row = row + 1
                for k in T.Pipelined(8, num_stages=2):
                    T.copy(A[row, k * 64], a)
                    T.copy(W[b, k * 64, 0], w)
                    T.gemm(a, w, c)
            else:
                for k in T.Pipelined(8, num_stages=2):
                    page = first[k]
                    T.copy(A[page * 128, 0], a)
                    T.copy(W[page, b * 64, 0], w)
                    T.gemm(a, w, c)
            T.copy(c, C[b, 0, 0])

    return main


def test_what_memory_says_of_a_pipeline_is_known_ahead():
    """Its bounds, a place that a branch chooses: the loader knows them. Of pages a block without one reads the next ahead."""
    for where in ("bound", "branch", "page"):
        assert "tw_tma_load" in text_of(grouped(where)), where
    assert text_of(grouped("page", threads=64)).count("cp.async.c") > 2


@pytest.mark.parametrize("where", ["bound", "branch", "page"])
def test_engines_agree_on_what_memory_says(where):
    rng = np.random.default_rng(3)
    first = np.array([64, 0, 130, 512, 7, 320, 448, 200], "int32")
    a, w = rng.standard_normal((1024, 512)).astype("float16"), rng.standard_normal((8, 512, 128)).astype("float16")
    results = []
    for engine in ("interpreter", "cpu", "simulator"):
        results.append(np.zeros((8, 128, 128), "float16"))
        tw.compile(grouped(where, 64 if where == "page" else 128), engine=engine)(a, w, first % 8 if where == "page" else first, results[-1])
    for other in results[1:]:
        assert np.allclose(results[0].astype("float32"), other.astype("float32"), rtol=1e-2, atol=0.2)


def test_neighbours_of_a_thread_need_no_barrier():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            i = bx * 512 + T.get_thread_binding() * 4
            B[i : i + 4] = A[i : i + 4]

    assert "__syncthreads" not in text_of(main)
