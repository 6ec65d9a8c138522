"""What wrong arguments and the symptoms of teaching pages say, word for word."""
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ENGINES = ["interpreter", "cpu", "simulator"]


@T.prim_func
def rows(A: T.Tensor((8, 4), "float32"), n: T.int32, B: T.Tensor((8,), "float16")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i, 0] + n


A, B = np.zeros((8, 4), "float32"), np.zeros(8, "float16")
MISALIGNED = np.frombuffer(bytearray(129), dtype="uint8")[1:].view("float32").reshape(8, 4)
FAMILIES = {
    "count": ((A, 1), "error TW4001 launch: rows expects 3 arguments, but 2 are given\nhelp: it takes rows(A, n, B)"),
    "kind": (
        (3, 1, B),
        "error TW4002 launch: rows: argument 0 'A' must be a tensor (float32, 2 dimensions), but is the number 3",
    ),
    "null": ((None, 1, B), "error TW4003 launch: rows: argument 0 'A' is null, but the program uses it"),
    "dtype": (
        (A.astype("float64"), 1, B),
        "error TW4004 launch: rows: argument 0 'A' has dtype float64, but must have float32\nhelp: convert it, or declare the parameter as float64",
    ),
    "rank": ((A[0], 1, B), "error TW4005 launch: rows: argument 0 'A' has shape (4,), but must have 2 dimensions"),
    "shape": ((A[:, :3], 1, B), "error TW4007 launch: rows: argument 0 'A' has shape (8, 3), but its dimension 1 must be 4"),
    "strides": (
        (np.zeros((4, 8), "float32").T, 1, B),
        "error TW4008 launch: rows: argument 0 'A' has strides (1, 8) for shape (8, 4), but must be row-major without gaps: "
        "strides (4, 1)\nhelp: pass a row-major copy (x.contiguous(), numpy.ascontiguousarray(x)), or declare the parameter with strides",
    ),
    "alignment": (
        (MISALIGNED, 1, B),
        "error TW4009 launch: rows: argument 0 'A' lies 1 bytes past a multiple of 4, but must be aligned to 4 bytes, the size "
        "of a float32",
    ),
    "scalar's kind": (
        (A, 1.0, B),
        "error TW4002 launch: rows: argument 1 'n' must be an integer (int32), but is the number 1.0",
    ),
    "scalar's range": ((A, 2**40, B), "error TW4010 launch: rows: argument 1 'n' is the number 1099511627776, which does not fit int32"),
}  # fmt: skip


def at_the_call(message, mark, call):
    """A message with the place of the line that ends with a mark."""
    line = next(n for n, text in enumerate(open(__file__), 1) if text.rstrip().endswith(f"# {mark}"))
    head, newline, help = message.partition("\nhelp: ")
    at = f"\n  --> {__file__}:{line}" + (":9" if sys.version_info >= (3, 11) else "") + f"\n  {line:>5} |         {call}  # {mark}"
    return head + at + ("\n        |         ^" if sys.version_info >= (3, 11) else "") + newline + help


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_arguments(engine, family):
    arguments, message = FAMILIES[family]
    with pytest.raises(ValueError) as caught:
        tw.compile(rows, engine=engine)(*arguments)  # the call
    assert str(caught.value) == at_the_call(message, "the call", "tw.compile(rows, engine=engine)(*arguments)")


@pytest.mark.parametrize("engine", ENGINES)
def test_another_device(engine, tensor_of_device):
    with pytest.raises(tw.LaunchError) as caught:
        tw.compile(rows, engine=engine)(A, 1, tensor_of_device(2, 1, 8, 16))  # elsewhere
    said = "error TW4006 launch: rows: argument 2 'B' is on cuda:1, but must be in the processor's memory\nhelp: copy it to the cpu first"
    assert str(caught.value) == at_the_call(said, "elsewhere", "tw.compile(rows, engine=engine)(A, 1, tensor_of_device(2, 1, 8, 16))")


def product(block, stages, clear=True):
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(256 // block, 256 // block, threads=128) as (bx, by):
            a, b = T.alloc_shared((block, block), "float16"), T.alloc_shared((block, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            if clear:
                T.clear(c)
            for k in T.Pipelined(256 // block, num_stages=stages):
                T.copy(A[by * block, k * block], a)
                T.copy(A[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return main


def test_shared_memory_that_a_gpu_does_not_have():
    with pytest.raises(tw.CompileError) as caught:
        tw.compile(product(256, 3), engine="simulator")
    text = str(caught.value)
    assert caught.value.code == "TW8203" and "bytes of shared memory; sm_80 has 166912" in text
    assert "note: 'a' takes" in text and "help: make the tiles smaller, or the pipeline shorter" in text
    assert caught.value.file == __file__


@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_sums_that_nobody_cleared(engine):
    """"Results are zeros": before anything runs it is said which tile is read before it is written, and where."""
    with pytest.raises(tw.CompileError, match="TW1090 build: 'c' is read before anything is written to it") as caught:
        tw.compile(product(32, 2, clear=False), out_idx=-1, engine=engine)
    assert caught.value.file == __file__ and caught.value.line > 0


def test_no_driver():
    if tw._native.device_count():
        pytest.skip("there is one")
    with pytest.raises(tw.LaunchError, match=r"TW8101 cuda: no CUDA driver[\s\S]*help: install NVIDIA's driver"):
        tw.compile(rows, engine="cuda")


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match=r"Tilewright has no T.gemmm\n[\s\S]*the nearest it has: T.gemm"):
        T.gemmm
    with pytest.raises(tw.CompileError, match=r"TW1080 build: there is no target 'hip'[\s\S]*help: it is auto, cuda, cpu"):
        tw.compile(rows, target="hip")


def test_grids_are_known_when_they_are_launched():
    with pytest.raises(tw.CompileError, match=r"TW1019.*grid extent 1 reads 'L'[\s\S]*help: make the number a parameter of its own"):

        @T.prim_func
        def by_memory(L: T.Tensor((4,), "int32"), A: T.Tensor((4,), "int32")):
            with T.Kernel(2, T.ceildiv(L[0], 4), threads=32):
                A[0] = 1

    with pytest.raises(tw.CompileError, match=r"TW1080.*T.Kernel: an extent of the grid is 'M'[\s\S]*help: it is a number of blocks"):

        @T.prim_func
        def by_name(A: T.Tensor((4,), "int32")):
            with T.Kernel("M", threads=32):
                A[0] = 1
