"""Many rounds of compiling and calling take no more memory than few; many threads and processes may compile at once."""
import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from engines import ENGINES, array_for, every_engine

ROUNDS = int(os.environ.get("TILEWRIGHT_ROUNDS", "400"))  # 10000 takes 15 to 60 s an engine
ONES = np.ones(8, "float32")
COMPILED = {"cpu", "cuda"}
compiled_engines = pytest.mark.parametrize("engine", [e for e in ENGINES if e in COMPILED])


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


def device_memory_in_use():
    import torch

    free, whole = torch.cuda.mem_get_info()
    return whole - free


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@every_engine
def test_rounds_of_compiling_and_calling(engine):
    kinds = 3 if engine in COMPILED else ROUNDS  # another compiler's work is kept on disk
    ones = array_for(engine, ONES)

    def rounds(count):
        for r in range(count):
            kernel = tw.compile(program(r % kinds), out_idx=-1, engine=engine)
            assert kernel(ones)[0] == 2 + r % kinds
            with pytest.raises(tw.LaunchError):
                kernel(ones[:4])

    rounds(100)
    before, on_device = resident(), device_memory_in_use() if engine == "cuda" else 0
    rounds(ROUNDS)
    assert resident() - before < 2**20 + 100 * ROUNDS  # a hundred bytes a round are less than any object of ours
    assert engine != "cuda" or device_memory_in_use() - on_device < 2**21


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


@compiled_engines
def test_eight_threads(engine, tmp_path, monkeypatch):
    """Each compiles one kernel that all compile and one of its own, with a cache that is empty."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    gate, results, ones = threading.Barrier(8), {}, array_for(engine, ONES)

    @tw.jit(engine=engine)
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
        same = tw.compile(program(77), out_idx=-1, engine=engine)(ones).tolist()
        own = tw.compile(program(100 + number), out_idx=-1, engine=engine)(ones).tolist()
        results[number] = same, own, scaled(ones, 3 + number % 2).tolist()

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
from engines import array_for
from test_endurance import program, ONES
number, engine = int(sys.argv[1]), sys.argv[3]
sys.stdin.readline()
print([float(tw.compile(program(a), out_idx=-1, engine=engine)(array_for(engine, ONES))[0]) for a in (77, 200 + number % 4)])
"""


@compiled_engines
def test_eight_processes(engine, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    here = str(pathlib.Path(__file__).parent)
    running = [subprocess.Popen([sys.executable, "-c", WORK, str(n), here, engine], env=environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(8)]  # fmt: skip
    for p in running:
        p.stdin.write("go\n")
        p.stdin.flush()
    found = [p.communicate(timeout=300) for p in running]
    for n, (out, errors) in enumerate(found):
        assert out.strip() == str([79.0, 202.0 + n % 4]), errors
    assert len([f for f in tmp_path.iterdir() if f.is_file()]) == 2 * 5  # what any of them lowered, and compiled, once


@pytest.mark.parametrize("engine", ["cpu", "interpreter", "simulator"])
def test_workers_that_are_forked(engine, monkeypatch):
    """As those of PyTorch's DataLoader are: with kernels that the parent has compiled and run, and new ones."""
    monkeypatch.setenv("TILEWRIGHT_THREADS", "4")
    known = tw.compile(program(1, block=1), out_idx=-1, engine=engine)
    assert known(ONES).tolist() == [3.0] * 8

    def work(connection):
        new = tw.compile(program(2, block=1), out_idx=-1, engine=engine)
        connection.send([known(ONES).tolist(), new(ONES).tolist()])

    context = multiprocessing.get_context("fork")
    for _ in range(2):
        ours, theirs = context.Pipe()
        worker = context.Process(target=work, args=(theirs,), daemon=True)
        worker.start()
        try:
            assert ours.poll(60), "a worker hangs"
            assert ours.recv() == [[3.0] * 8, [4.0] * 8]
        finally:
            worker.kill()
            worker.join()
    assert known(ONES).tolist() == [3.0] * 8


UNLOADED = """
import gc, os, sys
import numpy as np
import tilewright as tw
import tilewright.language as T

def openmp():
    return sorted({os.path.basename(line.split()[-1]).partition(".")[0] for line in open("/proc/self/maps") if "omp.so" in line})

def kernel(more):
    @T.prim_func
    def add(A: T.Tensor((1 << 20,), "float32"), B: T.Tensor((1 << 20,), "float32")):
        with T.Kernel(1024, threads=64) as bx:  # brief ones need no threads
            for i in T.Parallel(1024):
                B[bx * 1024 + i] = A[bx * 1024 + i] + more
    return tw.compile(add, out_idx=-1, engine="cpu")

assert openmp() == [], openmp()  # it comes with kernels
a = np.zeros(1 << 20, "float32")
for more in range(3):
    made = kernel(more)
    assert (made(a) == more).all()
    found = openmp()
    del made
    gc.collect()
    assert found and openmp() == found, (found, openmp())
print(*found)
"""


def test_openmp_stays_when_kernels_are_unloaded(tmp_path):
    """Its threads wait for the next team: without the code of its library they would crash, at the latest when the process ends."""
    environment = {**os.environ, "TILEWRIGHT_THREADS": "4", "TILEWRIGHT_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    (tmp_path / "unloaded.py").write_text(UNLOADED)
    ran = subprocess.run([sys.executable, "unloaded.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout, (ran.returncode, ran.stderr)


def test_how_many_threads_there_are():
    """What OpenMP would use, though its library is not there yet."""
    ask = "import json, tilewright; print(json.loads(tilewright._native.machine(False))['threads'])"
    path = os.pathsep.join(p for p in sys.path if p)
    here = len(os.sched_getaffinity(0))

    def threads(before="", **changed):
        kept = {k: v for k, v in os.environ.items() if k not in ("TILEWRIGHT_THREADS", "OMP_NUM_THREADS")}
        ran = subprocess.run([sys.executable, "-c", before + ask], env={**kept, "PYTHONPATH": path, **changed}, capture_output=True, text=True)
        return int(ran.stdout)

    assert threads() == here
    assert threads(OMP_NUM_THREADS="3") == threads(OMP_NUM_THREADS=" 3,2") == 3
    assert threads(OMP_NUM_THREADS="many") == threads(OMP_NUM_THREADS="0") == here
    assert threads("import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); ") == 1
