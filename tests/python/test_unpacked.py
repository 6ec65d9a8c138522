"""float4_e2m1_unpacked: a dtype of its own, tiles of which can be declared, and are refused where they are used."""
import copy
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
import tilewright as tw
import tilewright.language as T
from tilewright import dtypes

TEXT = "custom[float4_e2m1_unpacked]8"


def test_a_dtype_of_its_own():
    of = T.float4_e2m1_unpacked
    assert (of.bits, of.lanes, of.bytes, of.type_code, str(of)) == (8, 1, 1, 131, TEXT)
    assert of is T.DataType(TEXT) is T.dtype("float4_e2m1_unpacked") is pickle.loads(pickle.dumps(of)) is copy.deepcopy(of)
    assert of != T.float4_e2m1fn and "float4_e2m1_unpacked" not in dtypes.NAMES
    assert not hasattr(T, "float4_e2m1_unpackedx2")
    with pytest.raises(tw.CompileError, match="TW1103.*no dtype 'float4_e2m1_unpackedx2'"):
        T.dtype("float4_e2m1_unpackedx2")
    with pytest.raises(tw.CompileError, match="TW1103 build: as_torch.*no tensor holds it|TW1101 build: as_torch.*needs PyTorch"):
        of.as_torch()


def test_questions_about_floats_of_4_bits():
    packed, unpacked, vector = T.float4_e2m1fn, T.float4_e2m1_unpacked, T.float4_e2m1fnx2
    kinds = [(of.is_float4(), of.is_float4_e2m1fn(), of.is_float4_e2m1_unpacked()) for of in (packed, vector, unpacked, T.float16)]
    assert kinds == [(True, True, False), (True, True, False), (True, False, True), (False, False, False)]
    for of in (packed, vector, unpacked, T.float16):
        for given in (of, str(of)):
            asked = T.is_float4(given), T.is_float4_e2m1fn(given), T.is_float4_e2m1_unpacked(given)
            assert asked == (of.is_float4(), of.is_float4_e2m1fn(), of.is_float4_e2m1_unpacked())
    assert T.is_f8f6f4_family(TEXT)


def test_numbers_of_kinds():
    numbers = {"int8": 0, "uint4": 1, "bool": 6, "float16": 2, "bfloat16": 4, "float8_e4m3fn": 10, "float4_e2m1fnx2": 17, "pointer": 3}
    assert {name: T.dtype(name).type_code for name in numbers} == numbers
    assert all(isinstance(T.dtype(name).type_code, int) for name in dtypes.NAMES)


def used(statement, rows=32):
    """The error of a program with that statement, and the text of the line that it is at."""

    def record():
        @T.prim_func
        def main(A: T.Tensor((64, 128), T.float4_e2m1fn), B: T.Tensor((64, 128), T.float4_e2m1fn), X: T.Tensor((64, 128), "float32")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((rows, 64), T.float4_e2m1_unpacked)
                ready = T.alloc_barrier(128)
                statement(A, B, X, tile, ready)

        return main

    with pytest.raises(tw.CompileError) as error:
        record()
    with open(error.value.file, encoding="utf-8") as file:
        return error.value, file.read().splitlines()[error.value.line - 1].strip()


def test_threads_do_not_unpack():
    @T.macro
    def body(A, B, X, tile, ready):
        T.copy(A[0, 0], tile)

    error, line = used(body)
    assert error.code == "TW1102" and "SIMT copy from packed global float4_e2m1fn to float4_e2m1_unpacked" in error.message
    assert line == "T.copy(A[0, 0], tile)" and "T.tma_copy unpacks it on sm_100" in error.help


def test_tma_that_unpacks_is_not_there_yet():
    @T.macro
    def body(A, B, X, tile, ready):
        T.tma_copy(A[0, 0], tile, barrier=ready)

    error, line = used(body)
    assert "float4_e2m1fn to 'tile'" in error.message and "sm_100: not there yet" in error.message
    assert line == "T.tma_copy(A[0, 0], tile, barrier=ready)"

    @T.macro
    def preferred(A, B, X, tile, ready):
        T.copy(A[0, 0], tile, prefer_instruction="tma")

    assert "sm_100: not there yet" in used(preferred)[0].message


def test_what_no_gpu_does_is_said_first():
    @T.macro
    def body(A, B, X, tile, ready):
        T.tma_copy(A[0, 0], tile, barrier=ready)
        T.tma_copy(tile, B[0, 0])

    error, line = used(body)
    assert "T.tma_copy only supports float4_e2m1_unpacked as an FP4 unpack load" in error.message
    assert line == "T.tma_copy(tile, B[0, 0])"


def test_other_uses():
    @T.macro
    def clears(A, B, X, tile, ready):
        T.clear(tile)

    @T.macro
    def stores(A, B, X, tile, ready):
        tile[0, 0] = 1.0

    @T.macro
    def reads(A, B, X, tile, ready):
        X[0, 0] = tile[0, 0] + 1

    @T.macro
    def copies(A, B, X, tile, ready):
        T.copy(tile[0:2, 0:64], X[0:2, 0:64])

    @T.macro
    def converts(A, B, X, tile, ready):
        X[0, 0] = T.cast(X[0, 1], T.float4_e2m1_unpacked)

    @T.macro
    def keeps(A, B, X, tile, ready):
        mine = T.alloc_fragment((32,), T.float4_e2m1_unpacked)
        T.clear(mine)

    for body in (clears, stores, reads, copies, converts):
        assert "sm_100: not there yet" in used(body)[0].message
    assert "TMA unpacks fp4 into shared memory alone" in used(keeps)[0].message
    with pytest.raises(tw.CompileError, match="TW1103.*which only shared tiles are of"):

        @T.prim_func
        def main(A: T.Tensor((8,), T.float4_e2m1_unpacked)):
            with T.Kernel(1, threads=32):
                T.clear(A)

    with pytest.raises(tw.CompileError, match="T.add of a number of float4_e2m1_unpacked: sm_100"):
        T.float4_e2m1_unpacked(1) + 1


def test_a_tile_that_nothing_uses():
    @T.prim_func
    def main(X: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            tile = T.alloc_shared((32, 64), T.float4_e2m1_unpacked)
            assert (tile.shape, tile.ndim, tile.dtype, tile.scope(), tile[0:2, 4].shape) == ((32, 64), 2, TEXT, "shared.dyn", (2, 1))
            for i in T.Parallel(4):
                X[i] = 1

    assert "shared" not in main.script()


def test_one_expression_is_a_node():
    @T.prim_func
    def typed():
        T.evaluate(T.float4_e2m1_unpacked(0.0))

    @T.prim_func
    def computed(n: T.int32):
        T.evaluate(n + 1)

    @T.prim_func
    def more(n: T.int32):
        x = T.alloc_var("int32")
        x = n
        T.evaluate(x + 1)

    assert typed.body.value.dtype.is_float4_e2m1_unpacked() and computed.body.value.dtype == "int32"
    assert more.body is more


def test_under_tilelangs_name_it_is_a_mistake_of_compiling(tmp_path):
    file = tmp_path / "late.py"
    file.write_text(textwrap.dedent("""
        import tilelang
        import tilelang.language as T

        @T.prim_func
        def main(A: T.Tensor((64, 128), T.float4_e2m1fn)):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((32, 64), T.float4_e2m1_unpacked)
                T.copy(A[0, 0], tile)

        try:
            tilelang.compile(main, target="cuda")
        except tilelang.tvm.TVMError as error:
            print(error.line, "SIMT copy" in str(error))
    """))
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tw.__file__)), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, "-m", "tilewright", "run", file], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert run.stdout.split() == ["9", "True"], run.stderr
