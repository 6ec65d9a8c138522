"""Fast forms of thread code in the CUDA text, each with its results on the simulators beside the interpreter's, bit for bit."""
import re

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from test_cuda_text import text_of


def body_of(program):
    """The text of its kernels, without the functions before them."""
    return text_of(program).split("__global__", 1)[1]


def agree(program, *arrays, archs=("sm_80", "sm_90a")):
    """The arrays as the interpreter leaves them, and as the simulators do."""
    def run(engine, arch=""):
        mine = [a.copy() for a in arrays]
        kernel = tw.compile(program, engine="interpreter")
        kernel.simulate(*mine, arch=arch) if arch else kernel(*mine)
        return [m.view(np.uint8) for m in mine]

    wanted = run("interpreter")
    for arch in archs:
        for got, expected in zip(run("simulator", arch), wanted):
            assert (got == expected).all(), arch


@T.prim_func
def gathered(X: T.Tensor((40, 256), "float16"), I: T.Tensor((16,), "int32"), Y: T.Tensor((16, 256), "float16")):
    with T.Kernel(2, threads=128) as bx:
        for i, j in T.Parallel(8, 256):
            Y[bx * 8 + i, j] = X[I[bx * 8 + i], j]


@T.prim_func
def scattered(X: T.Tensor((16, 256), "float16"), I: T.Tensor((16,), "int32"), Y: T.Tensor((40, 256), "float16")):
    with T.Kernel(2, threads=128) as bx:
        for i, j in T.Parallel(8, 256):
            Y[I[bx * 8 + i], j] = X[bx * 8 + i, j]


@pytest.mark.parametrize("program", [gathered, scattered])
def test_rows_that_are_looked_up_move_by_16_bytes(program):
    text = body_of(program)
    assert re.search(r"(= \*|, )\(const uint4\*\)&X\[", text) and "tw_store((uint4*)&Y[" in text
    assert not re.search(r"= X\[|\bY\[[^\]]*\] =", text)
    x = np.random.default_rng(0).standard_normal((40, 256)).astype("float16")
    rows = np.random.default_rng(1).permutation(40)[:16].astype("int32")
    rows[3] = 40  # nowhere: zeros come, and what goes there is dropped
    if program is gathered:
        agree(program, x, rows, np.zeros((16, 256), "float16"))
    else:
        agree(program, x[:16], rows, np.zeros((40, 256), "float16"))


def rows_times(columns, stages, blocks=1, plan=()):
    rows = T.dynamic("rows")

    @T.prim_func
    def main(A: T.Tensor((64, columns), "float16"), B: T.Tensor((rows, columns), "float16"), I: T.Tensor((128,), "int32"),
             C: T.Tensor((64, 32), "float32")):  # fmt: skip
        with T.Kernel(blocks, threads=128):
            for line in plan:
                T.annotate_plan(line)
            a, b = T.alloc_shared((64, columns), "float16"), T.alloc_shared((32, columns), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            T.copy(A, a)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=stages):
                for i, j in T.Parallel(32, columns):
                    row = I[k * 32 + i]
                    b[i, j] = T.if_then_else(row < 30, B[row, j], 0)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_rows_of_a_pipelined_loop_are_gathered_a_turn_ahead(arch):
    """By cp.async: which rows is read beside the product, behind which their slot is filled; the other slot is under way all the while.
    Where all blocks have room for a third slot, it is that which is filled."""
    alone = ["not a loader: rows"] if arch == "sm_90a" else []  # a loader would gather them
    few = tw.compile(rows_times(64, 2, plan=alone), engine="interpreter")
    assert "cp.async into a ring of 3 slots, ahead of its loop" in str(few.explain(arch=arch))
    kernel = tw.compile(rows_times(64, 2, 4096, alone), engine="interpreter")
    text = kernel.get_kernel_source(arch=arch)
    before, turn = text.split("for (int32_t k = 0; k < 4; ++k) {", 1)
    beside, behind = turn.split("cp.async.cg.shared.global", 1)
    assert before.count("cp.async.commit_group") == 2 and "mma" in beside and "mma" not in behind.partition("store")[0]
    assert "cp.async.wait_group 1;" in beside and "I_early[" in beside
    assert "uint16_t b_vector" not in text and "uint16_t B_vector" not in text  # no way through registers
    facts = str(kernel.explain(arch=arch))
    assert "cp.async into a ring of 2 slots, ahead of its loop" in facts


@pytest.mark.parametrize("stages", [2, 3])
def test_gathered_rows_are_those_of_their_turns(stages):
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-3, 4, shape).astype("float16") for shape in ((64, 64), (40, 64)))
    rows = draw.integers(-1, 42, 128).astype("int32")  # some are nowhere
    agree(rows_times(64, stages), a, b, rows, np.zeros((64, 32), "float32"))


def test_rows_for_which_there_is_no_room_are_gathered_in_their_turn():
    assert "cp.async" not in body_of(rows_times(1024, 3))


def test_rows_of_a_length_that_is_known_at_the_call():
    rows, columns = T.dynamic("rows, columns")

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), I: T.Tensor((8,), "int32"), Y: T.Tensor((8, columns), "float32")):
        with T.Kernel(T.ceildiv(columns, 128), threads=64) as bx:
            for i, j in T.Parallel(8, 128):
                Y[i, bx * 128 + j] = X[I[i], bx * 128 + j] * 2

    assert re.search(r"\(const float4\*\)&X\[", body_of(main))  # of the version for lengths that are multiples of 4
    index = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32")
    for n in (132, 131):
        agree(main, np.random.default_rng(n).standard_normal((10, n)).astype("float32"), index, np.zeros((8, n), "float32"))


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "int4", "uint4"])
def test_nibbles_of_one_thread_are_stored_together(dtype):
    @T.prim_func
    def main(A: T.Tensor((16, 256), "float32"), B: T.Tensor((16, 256), dtype)):
        with T.Kernel(2, threads=128) as bx:
            for i, j in T.Parallel(8, 256):
                B[bx * 8 + i, j] = T.cast(A[bx * 8 + i, j], dtype)

    text = body_of(main)
    assert "tw_update_nibble" not in text and re.search(r"\((uint16_t|uint32_t|uint2)\*\)&B\[", text)
    a = np.random.default_rng(0).uniform(-7, 7, (16, 256)).astype("float32")
    a = np.abs(a) if dtype == "uint4" else a
    wanted, got = (tw.NDArray.zeros((16, 256), dtype) if hasattr(tw, "NDArray") else np.zeros((16, 128), "uint8") for _ in range(2))
    tw.compile(main, engine="interpreter")(a, wanted)
    tw.compile(main, engine="simulator")(a, got)
    assert (np.asarray(got).view(np.uint8) == np.asarray(wanted).view(np.uint8)).all() and np.asarray(got).view(np.uint8).any()


@pytest.mark.parametrize("reduce, function", [(T.reduce_max, "max"), (T.reduce_min, "min"), (T.reduce_sum, "add"),
                                              (T.reduce_bitand, "and"), (T.reduce_bitor, "or")])  # fmt: skip
def test_a_warp_joins_integers_by_one_instruction(reduce, function):
    @T.prim_func
    def main(A: T.Tensor((16, 128), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_fragment((16, 128), "int32"), T.alloc_fragment((16,), "int32")
            T.copy(A, a)
            reduce(a, b, dim=1)
            T.copy(b, B)

    text = body_of(main)
    assert f"__reduce_{function}_sync(0xffffffffu, " in text and "__shfl" not in text
    agree(main, np.random.default_rng(0).integers(-(2**31), 2**31, (16, 128)).astype("int32"), np.zeros(16, "int32"))


def test_threads_join_integers_by_one_instruction():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            B[t] = T.warp_reduce_max(A[t])

    assert "__reduce_max_sync" in body_of(main) and "__shfl" not in body_of(main)
    agree(main, np.arange(64, dtype="int32") - 2**30, np.zeros(64, "int32"))


def test_conditions_of_registers_are_no_branches():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                a, b = A[i], B[i]
                later = T.logical_or(a < b, T.logical_and(a == b, a * 2 > 1))
                C[i] = T.if_then_else(later, a * 2 + b * 3, a - b * b)

    text = body_of(main)
    assert " | " in text and "||" not in text and "&&" not in text and "tw_select<float>(" in text
    a = np.random.default_rng(0).integers(0, 4, 128).astype("float32")
    agree(main, a, a[::-1].copy(), np.zeros(128, "float32"))


def test_what_a_condition_guards_is_not_computed_without_it():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            own = T.alloc_local((4,), "int32")
            for k in T.unroll(4):
                own[k] = A[t] + k
            at = A[t] % 8
            C[t] = T.if_then_else(T.logical_and(at < 4, T.logical_or(own[T.min(at, 7)] > 3, own[T.min(at, 7)] < 1)), 1, 0)

    assert "&&" in body_of(main)


def test_small_matrices_stay_with_their_threads():
    """Rows and columns are summed without other threads, loads and stores take 16 bytes, a divisor's reciprocal serves all."""
    @T.prim_func
    def main(X: T.Tensor((256, 4, 4), "float32"), Y: T.Tensor((256, 4, 4), "float32")):
        with T.Kernel(2, threads=128) as bx:
            x = T.alloc_fragment((128, 4, 4), "float32")
            sums = T.alloc_fragment((128, 4), "float32")
            T.copy(X[bx * 128, 0, 0], x)
            for k in T.serial(2):
                T.reduce_sum(x, sums, dim=2)
                for t, i, j in T.Parallel(128, 4, 4):
                    x[t, i, j] = x[t, i, j] / (sums[t, i] + 1e-6)
                T.reduce_sum(x, sums, dim=1)
                for t, i, j in T.Parallel(128, 4, 4):
                    x[t, i, j] = x[t, i, j] / (sums[t, j] + 1e-6)
            T.copy(x, Y[bx * 128, 0, 0])

    text = body_of(main)
    assert "tw_shared" not in text and "__shfl" not in text and text.count("1.0f / divisor") == 2
    assert "(const float4*)&X[" in text and "tw_store((float4*)&Y[" in text
    x = np.exp(np.random.default_rng(0).standard_normal((256, 4, 4))).astype("float32")
    x[3], x[5, 1], x[7, 2, 3], x[9, 0, 0] = 0, np.inf, np.nan, 1e-38
    wanted, got = np.zeros_like(x), np.zeros_like(x)
    tw.compile(main, engine="interpreter")(x, wanted)
    tw.compile(main, engine="simulator")(x, got)
    assert ((got == wanted) | (np.isnan(got) & np.isnan(wanted))).all()


def test_choosing_experts_stays_with_a_warp():
    pytest.importorskip("torch")
    from tilewright.kernels.moe import choice_programs

    body = body_of(choice_programs.topk.program(experts=256, topk=8))
    assert "__syncthreads" not in body and "tw_shared" not in body
    before, loop = body.split("for (int32_t k")
    assert "__shfl" not in before and "&&" not in before and "if (" not in before.split("above")[1]
    assert loop.count("__reduce_max_sync") == 1 and loop.count("__shfl_sync") == 1


def test_narrow_values_are_read_by_words():
    pytest.importorskip("torch")
    from tilewright.kernels.quant import cast_programs

    text = body_of(cast_programs.back.program(x="e2m1", block=(1, 32), packed=False, result="bfloat16"))
    fast = text.split("} else {")[0]
    assert fast.count("X[") == 1 and fast.count("scales[") == 1 and "__float22bfloat162_rn" in fast
    options = {"x": "bfloat16", "given": (), "threads": 128, "mode": "both"}
    text = body_of(cast_programs.per_token.program(fmt="e4m3", group=128, groups=8, rows=4, near=8, whole=False, rounded=False,
                                                   packed=False, **options))  # fmt: skip
    assert "__nv_cvt_float2_to_fp8x2_e4m3" in text and "tw_store((uint2*)&Q[" in text
    # Three words of eight values would each be a store of four bytes, and four exponents four of one.
    text = body_of(cast_programs.per_token.program(fmt="e5m6", group=1024, groups=1, rows=4, near=32, whole=True, rounded=True,
                                                   packed=True, **options))  # fmt: skip
    assert text.count("&Q[") == 1 and "tw_store((uint4*)&Q[" in text and text.count("scales[") == 1


def test_largest_of_columns_meet_in_two_barriers():
    pytest.importorskip("torch")
    from tilewright.kernels.quant import channel_programs

    text = body_of(channel_programs.per_channel.program(x="bfloat16", group=128, gathered=False, gated=False, clamped=False,
                                                        rounded=False, lanes=8))  # fmt: skip
    assert text.count("__syncthreads();") == 2 and "load_bf16(" not in text


def test_launches_of_a_mapping_do_not_wait_for_each_other_to_begin():
    pytest.importorskip("torch")
    from tilewright.kernels.moe import mapping_programs

    for program in (mapping_programs.count.program(index="int64", groups=16, as_share=False),
                    mapping_programs.fused_mapping.program(index="int64", experts=16, topk=2, alignment=8, few=False)):  # fmt: skip
        first, *others = text_of(program).split('extern "C" __global__')[1:]
        assert "cudaTriggerProgrammaticLaunchCompletion();" in first and "cudaGridDependencySynchronize" not in first
        assert others and all("cudaGridDependencySynchronize();" in kernel for kernel in others)


@pytest.mark.parametrize("dtype, word, alone", [("float32", "tw_add_f32x4", "atomicAdd("), ("float16", "tw_add_f16x2x4", "tw_add_f16("),
                                                ("bfloat16", "tw_add_bf16x2x4", "tw_add_bf16(")])  # fmt: skip
def test_neighbours_are_added_at_once(dtype, word, alone):
    """Of a thread's own elements that follow each other in global memory, and of sums that wgmma leaves two by two."""

    @T.prim_func
    def rows(A: T.Tensor((64, 128), dtype), B: T.Tensor((64, 128), dtype)):
        with T.Kernel(8, threads=128) as bx:
            a = T.alloc_fragment((8, 128), dtype)
            T.copy(A[bx * 8, 0], a)
            for i, j in T.Parallel(8, 128):
                T.atomic_add(B[bx * 8 + i, j], a[i, j])

    text = body_of(rows)
    assert f"{word}(&B[" in text and alone not in text

    @T.prim_func
    def ordered(A: T.Tensor((64, 128), dtype), B: T.Tensor((64, 128), dtype)):
        with T.Kernel(8, threads=128) as bx:
            a = T.alloc_fragment((8, 128), dtype)
            T.copy(A[bx * 8, 0], a)
            for i, j in T.Parallel(8, 128):
                T.atomic_add(B[bx * 8 + i, j], a[i, j], memory_order="release")

    assert word not in body_of(ordered)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_added_without_a_loop(dtype):
    """Rows that a table names, under a condition of what it says: two at once. One alone by the device's own addition,
    of which others' additions to the element make no loop."""

    @T.prim_func
    def rows(A: T.Tensor((64, 32), "float32"), R: T.Tensor((32,), "int32"), B: T.Tensor((64, 64), dtype)):
        with T.Kernel(1, threads=128):
            a, w, s = T.alloc_shared((32, 32), dtype), T.alloc_shared((32, 64), dtype), T.alloc_fragment((32, 64), "float32")
            rows = T.alloc_shared((32,), "int32")
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], w)
            T.copy(R, rows)
            T.gemm(a, w, s, clear_accum=True)
            for i, j in T.Parallel(32, 64):
                pos = rows[i]
                if (pos > -1) & (pos <= 40):
                    T.atomic_add(B[pos, j], s[i, j])

    word = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    text = body_of(rows)
    assert f"tw_add_{word}x2x1(&B[" in text and "tw_update" not in text

    @T.prim_func
    def alone(A: T.Tensor((128,), dtype), B: T.Tensor((4,), dtype), C: T.Tensor((128,), dtype)):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            T.atomic_add(B[t % 4], A[t])
            C[t] = T.atomic_add(B[t % 4], A[t], return_prev=True)

    text = body_of(alone)
    assert f"tw_add_{word}(&B[" in text and f"tw_atomic_add_{word}(&B[" in text and "tw_update" not in text


def test_what_is_too_much_to_be_loaded_ahead_is_loaded_in_parts():
    """Of 288 elements a thread half are on their way at a time, not 4."""

    @T.prim_func
    def cast(X: T.Tensor((256, 576), "float32"), Y: T.Tensor((256, 576), "float16")):
        with T.Kernel(4, threads=128) as bx:
            T.copy(X[bx * 64 : bx * 64 + 64, 0:576], Y[bx * 64 : bx * 64 + 64, 0:576])

    text = body_of(cast)
    assert "X_ahead[144]" in text and "for (int32_t r = 0; r < 2; ++r) {" in text
    x = np.random.default_rng(0).standard_normal((256, 576)).astype("float32")
    agree(cast, x, np.zeros((256, 576), "float16"))
@T.prim_func
def by_address(p: T.Ptr("float32"), Y: T.Tensor((16, 128), "float32")):
    with T.Kernel(2, threads=128) as bx:
        X = T.make_tensor(p, (16, 128), "float32")
        S = T.alloc_shared((8, 128), "float32")
        T.copy(X[bx * 8, 0], S)
        for i, j in T.Parallel(8, 128):
            Y[bx * 8 + i, j] = S[i, j] + 1


def test_neighbours_at_an_address_come_as_vectors_where_it_is_aligned():
    """Who gives an address says nothing of its alignment, which is asked where a tile is brought: 16 bytes or elements."""
    text = body_of(by_address)
    assert re.search(r"& 15ull\) == 0ull", text), text
    assert re.search(r"\*\(const (uint4|float4)\*\)&\(\(float\*\)p\)", text), text
    x = np.arange(16 * 128 + 2, dtype="float32")
    for first in (0, 2):  # 8 bytes are the least that an address has
        mine, got = x[first : first + 16 * 128], np.zeros((16, 128), "float32")
        for arch in ("sm_80", "sm_90a"):
            tw.compile(by_address, engine="interpreter").simulate(mine, got, arch=arch)
            assert (got.ravel() == mine + 1).all(), (first, arch)


def test_vectorized_loops_of_any_extent_are_vectors():
    """More lanes than a vector has, other numbers than powers of two, a loop that begins elsewhere; a tile that threads swap has its swizzle."""

    @T.prim_func
    def main(A: T.Tensor((4, 64, 128), "float32"), B: T.Tensor((4, 64, 128), "float32"), C: T.Tensor((4, 64, 56), "float16"), D: T.Tensor((4, 64, 56), "float16")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            mine = T.alloc_local((128,), "float32")
            swap = T.alloc_shared((64, 32), "float32")
            T.annotate_layout({swap: T.make_swizzled_layout(swap)})
            for i in T.vectorized(128):
                mine[i] = A[bx, tx, i]
            for i in T.vectorized(32):
                swap[tx, i] = mine[i]
            for i in T.vectorized(32):
                mine[i] = swap[tx ^ 5, i]
            for i in T.vectorized(128):
                B[bx, tx, i] = mine[i]
            for i in T.vectorized(8, 56):
                D[bx, tx, i] = C[bx, tx, i]

    text = body_of(main)
    assert not re.search(r"[^*&]\b[ABCD]\[", text) and "shared" in text and text.count("*(const float4*)&A[") == 8
    assert re.search(r"\(float4\*\)&swap\[[^\n]*\^", text)
    assert "*(const uint4*)&C[" in text


@pytest.mark.parametrize("threads, dtype, turns", [(128, "bfloat16", 8), (128, "float32", 4), (1024, "bfloat16", 16)])
def test_turns_that_only_load_and_compute_are_on_their_way_together(threads, dtype, turns):
    """256 bytes a thread, less where a block leaves its threads fewer registers; the device compiler may take what it needs."""

    @T.prim_func
    def sums(X: T.Tensor((64, 1024), dtype), Y: T.Tensor((64, 1024), dtype), Z: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=threads) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            acc = T.alloc_fragment((32, 32), "float32")
            z = T.alloc_fragment((32,), "float32")
            T.clear(acc)
            for k in T.serial(32):
                T.copy(X[bx * 32, k * 32], x)
                T.copy(Y[bx * 32, k * 32], y)
                for i, j in T.Parallel(32, 32):
                    acc[i, j] += x[i, j] * y[i, j]
            T.reduce_sum(acc, z, dim=1)
            T.copy(z, Z[bx * 32])

    text = body_of(sums)
    assert f"#pragma unroll {turns}\n  for (int32_t k = 0; k < 32; ++k)" in text and f"__launch_bounds__({threads}, 1)" in text


def test_totals_that_warps_exchange_lie_by_lanes():
    """A thread's sixteen neighbours one behind the other would have four lanes meet in a bank."""

    @T.prim_func
    def sums(X: T.Tensor((64, 128), "int8"), Y: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=256):
            x = T.alloc_fragment((64, 128), "int8")
            y = T.alloc_fragment((128,), "int32")
            T.copy(X, x)
            T.reduce_sum(x, y, dim=0)
            T.copy(y, Y)

    assert re.search(r"y_total\[r\] = y_parts\[r \* 8 \+ \(tx & 7\)\];", body_of(sums))
    x = np.random.default_rng(0).integers(-100, 100, (64, 128), dtype="int8")
    agree(sums, x, np.zeros(128, "int32"))


@T.prim_func
def squares_in_tf32(X: T.Tensor((32, 64), "float16"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_fragment((32, 64), "tfloat32")
        for i, j in T.Parallel(32, 64):
            x[i, j] = X[i, j]
        for i, j in T.Parallel(32, 64):
            Y[i, j] = T.Cast("float32", x[i, j] * x[i, j]) + 1.0


def test_tf32_is_rounded_by_one_instruction():
    """And float16, which fits into it, is not; a device before sm_90 has no such instruction."""
    text = text_of(squares_in_tf32)
    assert "cvt.rn.tf32.f32" in text and "round_tf32(load_f16" not in text and "round_tf32(" in body_of(squares_in_tf32)
    assert "cvt.rn.tf32.f32" not in text_of(squares_in_tf32, "sm_80")
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float16)
    agree(squares_in_tf32, x, np.zeros((32, 64), np.float32))


def test_what_is_loaded_ahead_for_copies_stays_in_registers():
    """A loop of few turns around copies by cp.async that names an element each of a thread's own array is unrolled; one
    around other copies is not, for the addresses of all of them want registers."""

    def program(ahead):
        @T.prim_func
        def main(A: T.Tensor((64, 512), "float16"), I: T.Tensor((64,), "int32"), B: T.Tensor((64, 512), "float16")):
            with T.Kernel(1, threads=128):
                t = T.get_thread_binding()
                s = T.alloc_shared((64, 512), "float16")
                rows = T.alloc_local((4,), "int32")
                for r in T.serial(4):
                    rows[r] = I[r * 16 + t // 8]
                for r in T.serial(4):
                    for u in T.serial(8):
                        row = rows[r] if ahead else r * 16 + t // 8
                        T.ptx_cp_async(T.access_ptr(s[r * 16 + t // 8, u * 64 + t % 8 * 8], "w", 8),
                                       T.access_ptr(A[row, u * 64 + t % 8 * 8], "r", 8), 8)  # fmt: skip
                T.ptx_commit_group()
                T.ptx_wait_group(0)
                T.sync_threads()
                T.copy(s, B)

        return main

    copies = body_of(program(ahead=True)).split("cp.async.cg")[0]
    assert "#pragma unroll 1" not in copies
    assert "#pragma unroll 1" in body_of(program(ahead=False)).split("cp.async.cg")[0]
    a = np.random.default_rng(0).standard_normal((64, 512)).astype("float16")
    agree(program(ahead=True), a, np.random.default_rng(1).permutation(64).astype("int32"), np.zeros((64, 512), "float16"))
