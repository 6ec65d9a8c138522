"""Many rounds of compiling and calling take no more memory than few; many threads and processes may compile at once."""
import gc
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T

ROUNDS = int(os.environ.get("TILEWRIGHT_ROUNDS", "400"))  # 10000 takes 15 to 60 s an engine
ONES = np.ones(8, "float32")


def program(add, block=8):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(8 // block, threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2 + add

    return main


def resident():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("engine", ["interpreter", "cpu", "simulator"])
def test_rounds_of_compiling_and_calling(engine):
    def rounds(count):
        for r in range(count):
            kernel = tw.compile(program(r % 3 if engine == "cpu" else r), out_idx=-1, engine=engine)
            assert kernel(ONES)[0] == 2 + (r % 3 if engine == "cpu" else r)
            with pytest.raises(tw.LaunchError):
                kernel(ONES[:4])

    rounds(100)
    before = resident()
    rounds(ROUNDS)
    assert resident() - before < 2**20 + 100 * ROUNDS  # a hundred bytes a round are less than any object of ours


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rounds_of_calls(library):
    """Outputs of the first tensor's dtype and of another, shapes that are asked for, arguments that are refused."""
    n = T.dynamic("n")

    @T.prim_func
    def both(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n + 1,), "int8")):
        with T.Kernel(1, threads=32):
            B[0] = A[0]
            C[0] = 1

    kernel = tw.compile(both, out_idx=[1, 2], engine="interpreter")
    a = pytest.importorskip("torch").ones(8) if library == "torch" else ONES

    def rounds(count):
        for _ in range(count):
            b, c = kernel(a)
            kernel(a, b, c)
            assert kernel.output_shapes(((8,), (1,))) == [(8,), (9,)]
            with pytest.raises(tw.LaunchError):
                kernel(a, b, b)
            with pytest.raises(TypeError):
                kernel("a")

    rounds(300)
    before = resident()
    rounds(max(ROUNDS, 4000))
    assert resident() - before < 2**20


def test_rounds_of_refused_programs():
    def refused(r):
        with pytest.raises(tw.CompileError, match="TW"):

            @T.prim_func
            def main(A: T.Tensor((8,), "float32")):
                with T.Kernel(1, threads=32):
                    shared = T.alloc_shared((8,), "float32")
                    T.copy(A[0:4], shared[0 : 2 + r % 2])

    for r in range(50):
        refused(r)
    before = resident()
    for r in range(ROUNDS):
        refused(r)
    assert resident() - before < 2**20 + 100 * ROUNDS


def test_eight_threads(tmp_path, monkeypatch):
    """Each compiles one kernel that all compile and one of its own, with a cache that is empty."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    gate, results = threading.Barrier(8), {}

    @tw.jit(engine="cpu")
    def scaled(A, factor: int):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * factor
        return B

    def work(number):
        gate.wait()
        same = tw.compile(program(77), out_idx=-1, engine="cpu")(ONES).tolist()
        own = tw.compile(program(100 + number), out_idx=-1, engine="cpu")(ONES).tolist()
        results[number] = same, own, scaled(ONES, 3 + number % 2).tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not any(t.is_alive() for t in threads), "a deadlock"
    assert results == {n: ([79.0] * 8, [102.0 + n] * 8, [3.0 + n % 2] * 8) for n in range(8)}
    assert len(scaled.kernels) == 2


WORK = """
import sys
sys.path.insert(0, sys.argv[2])
import numpy as np, tilewright as tw
from test_endurance import program, ONES
number = int(sys.argv[1])
sys.stdin.readline()
print([tw.compile(program(a), out_idx=-1, engine="cpu")(ONES)[0] for a in (77, 200 + number % 4)])
"""


def test_eight_processes(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    here = str(pathlib.Path(__file__).parent)
    running = [subprocess.Popen([sys.executable, "-c", WORK, str(n), here], env=environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(8)]  # fmt: skip
    for p in running:
        p.stdin.write("go\n")
        p.stdin.flush()
    found = [p.communicate(timeout=300) for p in running]
    for n, (out, errors) in enumerate(found):
        values = [float(x.replace("np.float32(", "").rstrip(")")) for x in out.strip().strip("[]").split(", ")] if out else errors
        assert values == [79.0, 202.0 + n % 4], errors
    assert len([f for f in tmp_path.iterdir() if f.is_file()]) == 5  # what any of them compiled, once
