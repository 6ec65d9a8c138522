"""Tensors as programs have them: views, transposes, no elements, very many, gradients, other devices; on every engine."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
import tilewright.language as T  # noqa: E402

ENGINES = ["interpreter", "cpu", "simulator"] + ["cuda"] * torch.cuda.is_available()
N, M = T.dynamic("N, M")
WIDE = T.dynamic("WIDE", "int64")
every_engine = pytest.mark.parametrize("engine", ENGINES)


def device(engine):
    return "cuda" if engine == "cuda" else "cpu"


@T.prim_func
def doubled(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        tile = T.alloc_shared((128,), "float32")
        T.copy(A[bx * 128], tile)
        for i in T.Parallel(128):
            tile[i] = tile[i] * 2
        T.copy(tile, B[bx * 128])


@T.prim_func
def row_sums(A: T.Tensor((N, M), "float16"), B: T.Tensor((N,), "float32")):
    with T.Kernel(N, threads=32) as bx:
        total = T.alloc_var("float32", 0)
        if T.get_thread_binding() == 0:
            for j in T.serial(M):
                total += A[bx, j]
            B[bx] = total


@T.prim_func
def strided_sums(A: T.StridedTensor((N, M), (T.dynamic("S0"), T.dynamic("S1")), "float16"), B: T.Tensor((N,), "float32")):
    with T.Kernel(N, threads=32) as bx:
        total = T.alloc_var("float32", 0)
        if T.get_thread_binding() == 0:
            for j in T.serial(M):
                total += A[bx, j]
            B[bx] = total


@tw.jit
def product(A, B):
    P, Q, R = T.const("P, Q, R")
    A: T.Tensor((P, Q), "float16")
    B: T.Tensor((Q, R), "float16")
    C = T.empty((P, R), "float32")
    with T.Kernel(T.ceildiv(R, 32), T.ceildiv(P, 32), threads=128) as (bx, by):
        a, b = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(Q, 32), num_stages=2):
            T.copy(A[by * 32, k * 32], a)
            T.copy(B[k * 32, bx * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 32])
    return C


@every_engine
def test_views_from_an_odd_element(engine):
    kernel = tw.compile(doubled, out_idx=-1, engine=engine)
    x = torch.randn(300, device=device(engine))
    for first in (1, 2, 3):
        assert torch.equal(kernel(x[first:]), x[first:] * 2)
    into = torch.zeros(301, device=device(engine))
    kernel(x, into[1:])
    assert torch.equal(into[1:], x * 2) and into[0] == 0
    y = torch.randn(65, 65, device=device(engine)).half()
    found = tw.compile(row_sums, out_idx=-1, engine=engine)(y[1:])
    torch.testing.assert_close(found, y[1:].float().sum(1))


@every_engine
def test_gemms_of_views_from_an_odd_row(engine):
    product.engine, product.recent = engine, {}
    product.kernels.clear()
    a, b = (torch.randn(41, 33, device=device(engine)).half() for _ in range(2))
    torch.testing.assert_close(product(a[1:], b[8:].contiguous()), a[1:].float() @ b[8:].float(), rtol=1e-2, atol=1e-2)


@every_engine
def test_transposes_are_refused_or_declared(engine):
    x = torch.randn(40, 24, device=device(engine)).half()
    with pytest.raises(tw.LaunchError) as refused:
        tw.compile(row_sums, out_idx=-1, engine=engine)(x.t())
    error = refused.value
    assert (error.code, error.message, error.help, error.file) == (
        "TW4008",
        "row_sums: argument 0 'A' has strides (1, 24) for shape (24, 40), but must be row-major without gaps: strides (40, 1)",
        "pass a row-major copy (x.contiguous(), numpy.ascontiguousarray(x)), or declare the parameter with strides",
        __file__,
    )
    kernel = tw.compile(strided_sums, out_idx=-1, engine=engine)
    torch.testing.assert_close(kernel(x.t()), x.float().sum(0))
    torch.testing.assert_close(kernel(x[:, 1:]), x[:, 1:].float().sum(1))


@every_engine
def test_no_elements(engine):
    where = device(engine)
    assert tw.compile(doubled, out_idx=-1, engine=engine)(torch.empty(0, device=where)).shape == (0,)
    kernel = tw.compile(row_sums, out_idx=-1, engine=engine)
    assert kernel(torch.empty(0, 8, device=where).half()).shape == (0,)
    assert torch.equal(kernel(torch.empty(3, 0, device=where).half()), torch.zeros(3, device=where))
    product.engine, product.recent = engine, {}
    product.kernels.clear()
    halves = [torch.empty(s, device=where).half() for s in ((0, 8), (8, 5), (4, 0), (0, 5))]
    assert product(halves[0], halves[1]).shape == (0, 5)
    assert torch.equal(product(halves[2], halves[3]), torch.zeros(4, 5, device=where))  # K = 0 writes zeros

    @T.prim_func
    def beside(A: T.Tensor((N, 64), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "float32")
            T.copy(A[0, 0], tile)
            for i in T.Parallel(64):
                B[i] = tile[i] + A[i, 0]
                C[i] = 2

    into = [torch.ones(64, device=where) for _ in range(2)]
    tw.compile(beside, engine=engine)(torch.empty(0, 64, device=where), *into)  # all of A is outside, and has no memory
    assert torch.equal(into[0], torch.zeros(64, device=where)) and torch.equal(into[1], torch.full((64,), 2.0, device=where))


@every_engine
def test_three_milliard_elements(engine):
    count = 3_000_000_000

    @T.prim_func
    def ends(A: T.Tensor((WIDE,), "int8"), B: T.Tensor((4,), "int8")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[WIDE - 4 + i]
            A[WIDE // 2] = 9

    @T.prim_func
    def fixed(A: T.Tensor((3, 1_000_000_000), "int8"), B: T.Tensor((4,), "int8")):
        with T.Kernel(3, threads=32) as bx:
            for i in T.Parallel(4):
                if bx == 2:
                    B[i] = A[bx, 999_999_996 + i]
                elif bx == 1 and i == 0:
                    A[bx, 500_000_000] = 9

    @T.prim_func
    def narrow(A: T.Tensor((N,), "int8"), B: T.Tensor((4,), "int8")):
        with T.Kernel(1, threads=32):
            B[0] = A[N - 1]

    # Pages that nobody writes take no memory of the host.
    made = torch.zeros(count, dtype=torch.int8, device="cuda") if engine == "cuda" else torch.from_numpy(np.zeros(count, "int8"))
    made[-4:] = torch.tensor([1, 2, 3, 4])
    for program, shape in (ends, (count,)), (fixed, (3, -1)):
        made[count // 2] = 0
        assert tw.compile(program, out_idx=-1, engine=engine)(made.view(shape)).tolist() == [1, 2, 3, 4]
        assert made[count // 2] == 9
    with pytest.raises(tw.LaunchError, match=r"TW4011.*'A' has shape \(3000000000,\), so that N = 3000000000, which does not fit int32"):
        tw.compile(narrow, out_idx=-1, engine=engine)(made)


@every_engine
def test_gradients_are_not_needed_and_not_lost(engine):
    kernel = tw.compile(doubled, out_idx=-1, engine=engine)
    x = torch.randn(50, device=device(engine), requires_grad=True)
    found = kernel(x)
    assert torch.equal(found, x.detach() * 2) and found.requires_grad  # to say that it has none: test_gradients.py
    assert torch.equal(kernel(torch.nn.Parameter(x.detach())), found) and type(found) is torch.Tensor
    with torch.no_grad():
        assert torch.equal(kernel(x), found) and not kernel(x).requires_grad


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_tensors_of_another_device(engine, tensor_of_device):
    kernel = tw.compile(doubled, out_idx=-1, engine=engine)
    with pytest.raises(tw.LaunchError, match=r"TW4006 launch: doubled: argument 0 'A' is on cuda:1, but"):
        kernel(tensor_of_device(2, 1), torch.empty(4))
    with pytest.raises(TypeError, match="no output can be made like a Elsewhere: pass the outputs too"):
        kernel(tensor_of_device(2, 1))
    for tensor, reason in (torch.empty(8, device="meta"), "meta"), (torch.eye(8).to_sparse(), "parse|layout|storage"):
        with pytest.raises(ValueError, match=f"argument 0 'A' cannot be handed to a kernel: .*({reason})") as caught:
            kernel(tensor)
        assert "\n" not in caught.value.message


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_the_second_device():
    kernel = tw.compile(doubled, out_idx=-1, engine="cuda")
    x = torch.randn(300, device="cuda:1")
    found = kernel(x)
    assert found.device == x.device and torch.equal(found, x * 2) and torch.cuda.current_device() == 0
    with pytest.raises(tw.LaunchError, match="cuda:0.*cuda:1|cuda:1.*cuda:0"):
        kernel(x, torch.empty(300, device="cuda:0"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_tensors_of_the_host_for_a_device():
    kernel = tw.compile(doubled, out_idx=-1, engine="cuda")
    with pytest.raises(tw.LaunchError, match=r"TW4006 launch: doubled: argument 0 'A' is on cpu, but"):
        kernel(torch.zeros(8))


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_arrays_that_are_read_only_may_be_read(engine, tmp_path):
    """In memory that the machine itself lets nobody write."""
    np.arange(4, dtype="float32").tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", dtype="float32", mode="r")
    kernel = tw.compile(doubled, engine=engine)
    out = np.zeros(4, "float32")
    kernel(mapped, out)
    assert out.tolist() == [0, 2, 4, 6] and tw.compile(doubled, out_idx=-1, engine=engine)(mapped).tolist() == [0, 2, 4, 6]
    for again in range(2):
        with pytest.raises(ValueError, match="TW4002.*argument 1 'B' .*a read-only array, and the kernel may write to it\n.*\n.*\n.*\nhelp: pass a copy, x.copy()"):
            kernel(out, mapped)
    assert mapped.tolist() == [0, 1, 2, 3]


def test_read_only_arrays_that_are_added_to():
    @T.prim_func
    def added(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                T.atomic_add(A[i], 1.0)

    fixed = np.zeros(4, "float32")
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="a read-only array"):
        tw.compile(added, engine="interpreter")(fixed)


def test_read_only_arrays_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @T.prim_func
    def widened(A: T.Tensor((4,), "bfloat16"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i]

    x = np.arange(4, dtype=ml_dtypes.bfloat16)
    x.flags.writeable = False
    assert tw.compile(widened, out_idx=-1)(x).tolist() == [0, 1, 2, 3]


def test_arrays_that_no_kernel_may_take():
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")
    swapped = np.arange(4, dtype=">f4" if np.little_endian else "<f4")
    with pytest.raises(ValueError, match="bytes of its elements are in the other order"):
        kernel(swapped)
    for call in (tw.ops.relu, tw.ops.softmax, lambda x: tw.ops.matmul(x, x)):
        with pytest.raises(ValueError, match=r"there is no dtype '[<>]f4'[\s\S]*bytes are in the other order: pass x.astype\(x.dtype.newbyteorder"):
            call(swapped.reshape(2, 2))
    with pytest.raises(tw.LaunchError, match="TW4009.*lies 1 bytes past a multiple of 4"):
        kernel(np.frombuffer(bytearray(17), dtype="uint8")[1:].view("float32"))
    with pytest.raises(tw.LaunchError, match=r"TW4008.*strides \(-1,\)"):
        kernel(np.zeros(4, "float32")[::-1])
    with pytest.raises(tw.LaunchError, match="TW4017"):
        kernel(np.zeros(4, "complex64"))


@every_engine
def test_outputs_are_row_major_whatever_the_inputs_are(engine):
    @T.prim_func
    def copied(A: T.StridedTensor((N, M), (T.dynamic("S0"), T.dynamic("S1")), "float32"), B: T.Tensor((N, M), "float32"),
               C: T.Tensor((M, N), "float32"), D: T.Tensor((N, M), "int32")):  # fmt: skip
        with T.Kernel(N, threads=32) as bx:
            for j in T.serial(M):
                B[bx, j] = A[bx, j]
                C[j, bx] = A[bx, j]
                D[bx, j] = T.cast(A[bx, j], "int32")

    kernel = tw.compile(copied, out_idx=[1, 2, 3], engine=engine)
    x = (torch.randn(6, 6, device=device(engine)) * 9).t()
    for example in (x, x.contiguous(), torch.nn.Parameter(x.contiguous()), x[:, :1].expand(6, 6)):
        b, c, d = kernel(example)
        assert torch.equal(b, example) and torch.equal(c, example.t()) and torch.equal(d, example.to(torch.int32))
        assert all(t.is_contiguous() and type(t) is torch.Tensor for t in (b, c, d))
        assert [t.requires_grad for t in (b, c, d)] == [example.requires_grad, example.requires_grad, False]


class Marked(torch.Tensor):
    """A subclass of PyTorch's tensors."""


def test_subclasses_of_tensors():
    kernel = tw.compile(doubled, out_idx=-1, engine="interpreter")
    x = torch.randn(8).as_subclass(Marked)
    assert torch.equal(torch.Tensor(kernel(x)), torch.Tensor(x) * 2)
    y = np.random.default_rng(0).standard_normal(8).astype("float32").view(np.recarray)
    assert np.array_equal(kernel(y), np.asarray(y) * 2)
