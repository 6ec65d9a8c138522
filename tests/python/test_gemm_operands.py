"""Operands of products that are slices of tiles at columns of a loop, and tiles of registers that are copied from shared ones."""
import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T


def _slices(unroll):
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            As, Bs = T.alloc_shared((64, 128), "float16"), T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, As)
            T.copy(B, Bs)
            T.clear(c)
            for j in T.unroll(2) if unroll else T.serial(2):
                T.wgmma_gemm(As[:, j * 64 : (j + 1) * 64], Bs[:, j * 64 : (j + 1) * 64], c, transpose_B=True)
            T.wait_wgmma(0)
            T.copy(c, C)

    return main


def _copied(threads, policy):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads):
            As, Bs = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            a, c = T.alloc_fragment((64, 64), "float16"), T.alloc_fragment((64, 64), "float32")
            T.copy(A, As)
            T.copy(B, Bs)
            T.copy(As, a)
            T.clear(c)
            T.gemm(a, Bs, c, transpose_B=True, policy=policy)
            T.copy(c, C)

    return main


def _check(program, arch):
    kernel = tw.compile(program, engine="cpu")
    columns = program.params[0].shape[1]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, columns)).astype("float16") for _ in range(2))
    c = np.zeros((64, 64), "float32")
    kernel.simulate(a, b, c, arch=arch)
    assert (c == a.astype("float32") @ b.astype("float32").T).all()
    return str(kernel.explain(arch))


@pytest.mark.parametrize("unroll", (True, False))
def test_slices_at_columns_of_a_loop_are_read_by_wgmma(unroll):
    assert "wgmma.mma_async" in _check(_slices(unroll), "sm_90a")


@pytest.mark.parametrize("threads, policy", ((128, T.GemmWarpPolicy.Square), (256, T.GemmWarpPolicy.FullCol)))
@pytest.mark.parametrize("arch, instruction", (("sm_90a", "wgmma.mma_async"), ("sm_80", "mma.sync")))
def test_tiles_copied_to_registers_are_read_there(threads, policy, arch, instruction):
    text = _check(_copied(threads, policy), arch)
    assert instruction in text and "a from registers" in text and "lives in shared memory" not in text


@pytest.mark.parametrize("rows, columns, threads", [(48, 48, 128), (112, 112, 128), (80, 24, 64), (160, 80, 256), (40, 32, 128), (12, 16, 128)])
def test_rows_that_no_instruction_divides_among_the_warps(rows, columns, threads):
    depth, step = 64, 32

    @T.prim_func
    def main(A: T.Tensor((100, depth), "float16"), B: T.Tensor((columns, depth), "float16"), C: T.Tensor((100, columns), "float32"), D: T.Tensor((100,), "float32")):
        with T.Kernel(T.ceildiv(100, rows), threads=threads) as by:
            a = T.alloc_shared((rows, step), "float16")
            b = T.alloc_shared((columns, step), "float16")
            c = T.alloc_fragment((rows, columns), "float32")
            d = T.alloc_fragment((rows,), "float32")
            T.clear(c)
            for k in T.Pipelined(depth // step, num_stages=2):
                T.copy(A[by * rows, k * step], a)
                T.copy(B[0, k * step], b)
                T.gemm(a, b, c, transpose_B=True)
            T.reduce_sum(c, d, dim=1)
            T.copy(c, C[by * rows, 0])
            T.copy(d, D[by * rows])

    random = np.random.default_rng(rows)
    a, b = (random.integers(-3, 4, (n, depth)).astype("float16") for n in (100, columns))
    want = a.astype("float32") @ b.astype("float32").T
    for arch in ("sm_80", "sm_90a"):
        kernel = tw.compile(main, target="interpreter")
        c, d = np.zeros((100, columns), "float32"), np.zeros(100, "float32")
        kernel.simulate(a, b, c, d, arch=arch)
        assert np.array_equal(c, want) and np.array_equal(d, want.sum(1)), arch
        (gemm,) = (o for o in kernel.explain(arch, as_json=True)["launches"][0]["operations"] if o["operation"] == "gemm")
        assert "mma" in gemm["becomes"][0], (arch, gemm)


INSTRUCTIONS = {"float16": "m16n8k16", "int8": "m16n8k32", "float64": "m16n8k"}


def _products(engine_arch, program, a, b, want, instruction, count=1):
    kernel = tw.compile(program, target="interpreter")
    c = np.zeros_like(want)
    kernel.simulate(a, b, c, arch=engine_arch)
    assert np.array_equal(c, want)
    gemms = [o for o in kernel.explain(engine_arch, as_json=True)["launches"][0]["operations"] if o["operation"] == "gemm"]
    assert len(gemms) == count
    for gemm in gemms:
        assert instruction in gemm["becomes"][0], gemm


@pytest.mark.parametrize(
    "rows, columns, threads, transpose_a, transpose_b",
    [(112, 80, 128, True, False), (48, 48, 128, True, True), (40, 24, 96, False, False), (16, 40, 256, True, False)],
)
@pytest.mark.parametrize("dtype", INSTRUCTIONS)
def test_tiles_that_no_grid_of_warps_divides(rows, columns, threads, transpose_a, transpose_b, dtype):
    depth = 64
    summed = "int32" if dtype == "int8" else "float64" if dtype == "float64" else "float32"
    a_shape, b_shape = ((depth, rows) if transpose_a else (rows, depth)), ((columns, depth) if transpose_b else (depth, columns))

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((rows + 1, columns), summed)):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared(a_shape, dtype)
            b = T.alloc_shared(b_shape, dtype)
            c = T.alloc_fragment((rows, columns), summed)
            r = T.alloc_fragment((columns,), summed)
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 1)
            T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b)
            T.reduce_sum(c, r, dim=0)  # rows of a tile beyond c are nobody's
            T.copy(c, C[0:rows, 0:columns])
            T.copy(r, C[rows, 0:columns])

    random = np.random.default_rng(rows)
    a, b = (random.integers(-3, 4, shape).astype(dtype) for shape in (a_shape, b_shape))
    c = (a.T if transpose_a else a).astype(summed) @ (b.T if transpose_b else b).astype(summed) + 1
    want = np.concatenate([c, c.sum(0, keepdims=True)]).astype(summed)
    for arch in ("sm_80", "sm_90a") if dtype != "float64" else ("sm_90a",):
        _products(arch, main, a, b, want, INSTRUCTIONS[dtype])


def test_operands_in_registers_of_tiles_that_no_grid_of_warps_divides():
    @T.prim_func
    def main(A: T.Tensor((80, 64), "float16"), B: T.Tensor((40, 64), "float16"), C: T.Tensor((80, 40), "float32")):
        with T.Kernel(1, threads=192):
            a = T.alloc_fragment((80, 64), "float16")
            b = T.alloc_shared((40, 64), "float16")
            c = T.alloc_fragment((80, 40), "float32")
            top = T.alloc_fragment((64,), "float16")
            T.copy(A, a)
            T.copy(B, b)
            T.reduce_max(a, top, dim=0)
            for i, j in T.Parallel(80, 64):
                a[i, j] = a[i, j] - top[j]
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    random = np.random.default_rng(5)
    a, b = (random.integers(-3, 4, shape).astype("float16") for shape in ((80, 64), (40, 64)))
    want = (a - a.max(0)).astype("float32") @ b.astype("float32").T
    _products("sm_80", main, a, b, want, "m16n8k16")


def test_products_of_one_sum_share_its_warps_whatever_their_policies():
    @T.prim_func
    def main(A: T.Tensor((96, 32), "float16"), B: T.Tensor((96, 32), "float16"), C: T.Tensor((96, 96), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((96, 32), "float16")
            b = T.alloc_shared((96, 32), "float16")
            c = T.alloc_fragment((96, 96), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            T.gemm(b, a, c, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C)

    random = np.random.default_rng(6)
    a, b = (random.integers(-3, 4, (96, 32)).astype("float16") for _ in range(2))
    want = a.astype("float32") @ b.astype("float32").T
    _products("sm_80", main, a, b, want + want.T, "m16n8k16", count=2)


SPACES = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}


@pytest.mark.parametrize("a_in, b_in, c_in", [("fragment", "shared", "fragment"), ("shared", "fragment", "fragment"), ("fragment", "fragment", "fragment"), ("shared", "shared", "shared")])
def test_tiles_of_products_wherever_the_program_has_them(a_in, b_in, c_in):
    @T.prim_func
    def main(A: T.Tensor((128, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=128) as by:
            a = SPACES[a_in]((64, 32), "float16")
            b = SPACES[b_in]((32, 64), "float16")
            c = SPACES[c_in]((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, 0])

    random = np.random.default_rng(2)
    a, b = (random.integers(-3, 4, shape).astype("float16") for shape in ((128, 96), (96, 64)))
    for arch, instruction in (("sm_80", "mma.sync"), ("sm_90a", "wgmma")):
        kernel = tw.compile(main, target="interpreter")
        c = np.zeros((128, 64), "float32")
        kernel.simulate(a, b, c, arch=arch)
        assert np.array_equal(c, a.astype("float32") @ b.astype("float32")), arch
        operations = kernel.explain(arch, as_json=True)["launches"][0]["operations"]
        (gemm,) = (o for o in operations if o["operation"] == "gemm")
        assert instruction in gemm["becomes"][0], (arch, gemm)
        for copy in (o for o in operations if o["operation"] == "copy" and "k * 32" in o["text"]):
            assert any("into a ring" in what for what in copy["becomes"]), (arch, copy)


ELSEWHERE = {
    "columns swapped": lambda c, i, j: c[i, j ^ 1],
    "rows reversed": lambda c, i, j: c[63 - i, j],
    "a row for all": lambda c, i, j: c[i, j] - c[0, j],
}
OF_IT = {
    "columns swapped": lambda c: c.reshape(64, 32, 2)[:, :, ::-1].reshape(64, 64),
    "rows reversed": lambda c: c[::-1],
    "a row for all": lambda c: c - c[0],
}


@pytest.mark.parametrize("inside", (False, True))
@pytest.mark.parametrize("how", ELSEWHERE)
def test_accumulators_that_the_first_turn_clears_are_read_at_other_places(how, inside):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, clear_accum=k == 0)
                for i, j in T.Parallel(64, 64):
                    c[i, j] = c[i, j] * 0.5
                if inside:
                    for i, j in T.Parallel(64, 64):
                        C[i, j] = ELSEWHERE[how](c, i, j)
            if not inside:
                for i, j in T.Parallel(64, 64):
                    C[i, j] = ELSEWHERE[how](c, i, j)

    random = np.random.default_rng(7)
    a, b = (random.integers(-3, 4, (64, 64)).astype("float16") for _ in range(2))
    x, y = a.astype("float32"), b.astype("float32")
    want = OF_IT[how]((x[:, :32] @ y[:32] * 0.5 + x[:, 32:] @ y[32:]) * 0.5)
    for arch, instruction in (("sm_80", "m16n8k16"), ("sm_90a", "wgmma")):
        _products(arch, main, a, b, want, instruction)


@pytest.mark.parametrize("how", ("padded", "reshaped", "of bytes"))
def test_tiles_that_are_declared_otherwise_come_through_rings(how):
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            if how == "padded":
                a = T.alloc_shared((64, 72), "float16")
            elif how == "reshaped":
                a = T.reshape(T.alloc_shared((64 * 64,), "float16"), (64, 64))
            else:
                a = T.view(T.alloc_shared((64, 128), "uint8"), (64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0:64, k * 64 : k * 64 + 64], a[0:64, 0:64])
                T.copy(B[k * 64, 0], b)
                T.gemm(a[0:64, 0:64], b, c)
            T.copy(c, C)

    random = np.random.default_rng(8)
    a, b = (random.integers(-3, 4, shape).astype("float16") for shape in ((64, 128), (128, 64)))
    want = a.astype("float32") @ b.astype("float32")
    for arch, instruction, ring in (("sm_80", "m16n8k16", "cp.async into a ring"), ("sm_90a", "wgmma", "TMA load into a ring")):
        _products(arch, main, a, b, want, instruction)
        copies = [o for o in tw.compile(main, target="interpreter").explain(arch, as_json=True)["launches"][0]["operations"] if o["operation"] == "copy"]
        assert sum(ring in what for o in copies for what in o["becomes"]) == 2, copies


@pytest.mark.parametrize("a_type, b_type, instruction", (("float8_e4m3fn", "float8_e4m3fn", "f16.f16"), ("float8_e4m3fn", "float8_e5m2", "f16.f16"), ("bfloat16", "float8_e4m3fn", "bf16.bf16")))
def test_bytes_that_no_instruction_multiplies_are_widened(a_type, b_type, instruction):
    torch = pytest.importorskip("torch")

    @T.prim_func
    def main(A: T.Tensor((64, 64), a_type), B: T.Tensor((64, 64), b_type), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 32), a_type), T.alloc_shared((64, 32), b_type)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[0, k * 32], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    types = {"float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2, "bfloat16": torch.bfloat16}
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-8, 9, (64, 64), generator=random).float().to(types[t]) for t in (a_type, b_type))
    want = a.float() @ b.float().T
    kernel, c = tw.compile(main, target="interpreter"), np.zeros((64, 64), "float32")
    kernel.simulate(a, b, c, arch="sm_80")
    assert np.array_equal(c, want.numpy())
    (gemm,) = (o for o in kernel.explain("sm_80", as_json=True)["launches"][0]["operations"] if o["operation"] == "gemm")
    assert f"mma.sync m16n8k16.row.col.f32.{instruction}" in gemm["becomes"][0], gemm
