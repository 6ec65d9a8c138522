"""Objects that show themselves, in a terminal and in a notebook; pictures of layouts; what completion offers."""
import sys

import numpy as np
import pytest
import tilewright as tw
import tilewright.language as T
from tilewright.pictures import layout_of_text

sys.path.insert(0, __file__.rpartition("/")[0] + "/first_hour")
from kernels import add, matmul  # noqa: E402


@pytest.fixture(scope="module")
def kernel():
    return tw.compile(matmul(128, 128, 128).prim_func, out_idx=-1, engine="interpreter")


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80", ""])
def test_explanations(kernel, arch):
    made = kernel.explain(arch)
    assert isinstance(made, str) and made == kernel.prim_func.program.explain(arch, False, {})
    assert made.json == kernel.explain(arch, as_json=True)
    lines = made.summary().splitlines()
    assert len(lines) <= 12 and lines[0].startswith("gemm on the")
    assert any("line 30: gemm" in line for line in lines)
    if arch:
        assert "bound by memory" in lines[0]
    assert "<pre>" in made._repr_html_() and "&lt;" not in made.summary()


@pytest.mark.parametrize("compiler", ["", "/nowhere"])
def test_a_warning_is_said_once_with_and_without_a_device_compiler(monkeypatch, compiler):
    """A plan is lowered once, so what is said of it is, too."""

    @T.prim_func
    def by_elements(A: T.Tensor((24, 32), "float16"), B: T.Tensor((32, 40), "float16"), C: T.Tensor((24, 40), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((24, 32), "float16"), T.alloc_shared((32, 36), "float16")
            c = T.alloc_fragment((24, 36), "float32")
            T.clear(c)
            for _ in T.Pipelined(1, num_stages=2):
                T.copy(A, a)
                T.copy(B[0:32, 0:36], b)
                T.gemm(a, b, c)
            T.copy(c, C[0:24, 0:36])

    monkeypatch.setenv("TILEWRIGHT_NVRTC", compiler)
    (warning,) = tw.compile(by_elements, engine="interpreter").explain("sm_90a", as_json=True)["warnings"]
    assert warning["message"].startswith("this gemm goes element by element")


def test_a_summary_is_short_and_says_what_it_leaves_out():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for _ in range(20):
                T.copy(A, s)
                T.copy(s, A)

    facts = tw.compile(main, engine="interpreter").explain("sm_90a", as_json=True)
    facts["launches"][0]["operations"] *= 20
    lines = tw.shown.Explanation("text", lambda: facts).summary().splitlines()
    assert len(lines) == 12 and lines[-1].startswith("and ") and lines[-1].endswith("lines more: the whole text says them")


def test_counts(kernel):
    zeros = np.zeros((128, 128), "float16")
    _, counts = kernel.simulate(zeros, zeros)
    assert isinstance(counts, dict) and counts["launches"][0]["launch"] == "gemm"
    lines = str(counts).splitlines()
    assert lines[1].split() == "shared accesses shared wavefronts global accesses global sectors bytes moved atomics barriers".split()
    assert lines[-1].split()[0] == "all" and str(counts["launches"][0]["total"]["barriers"]) == lines[-1].split()[-1]
    assert counts._repr_html_().startswith("<pre>")


def test_what_is_written_of_functions_and_profilers(kernel):
    @tw.jit(engine="interpreter")
    def once(A, block=4):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        with T.Kernel(1, threads=32):
            A[0] = block

    assert repr(once) == "<jit once(A, block): 0 kernels>"
    once(np.zeros(4, "float32"))
    assert repr(once) == "<jit once(A, block): 1 kernel on interpreter>"
    assert repr(kernel.get_profiler()) == "<profiler of gemm on interpreter: report() measures a call>"
    torch = pytest.importorskip("torch")
    given = [torch.zeros(4)]
    found = once.compile(N=4).get_profiler().report(warmup=1, rep=1, input_tensors=given)
    assert list(found) == ["min ms", "median ms", "p95 ms", "GB/s"] and found["min ms"] <= found["median ms"] <= found["p95 ms"]
    assert str(found).splitlines()[0].split() == "min ms median ms p95 ms GB/s".split()


def test_completion_offers_what_is_public():
    assert dir(tw) == sorted([*tw.__all__, "__version__"])
    assert all(callable(getattr(tw, name)) or name == "language" for name in tw.__all__)

    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            assert "sum" not in dir(A) and "shape" in dir(A) and "to" not in dir(A[0]) and "dtype" in dir(A[0] + 1)


def test_pictures_of_layouts(tmp_path):
    made = tw.plot(T.Fragment([8, 8], lambda i, j: (i * 4 + j // 2, j % 2)), "mine", path=str(tmp_path / "mine.svg"))
    text = (tmp_path / "mine.svg").read_text()
    assert text == made.svg == made._repr_svg_() and text.count("<rect") == 64 and "mine" in text and ">T31<" in text
    assert tw.plot(T.Layout([4, 4], lambda i, j: i * 4 + j)).svg.count("<rect") == 16
    with pytest.raises(tw.CompileError, match=r"TW1101.*plot\(\) of int"):
        tw.plot(3)


def test_pictures_of_a_kernels_tiles(kernel):
    made = tw.plot(kernel, "C_local")
    assert made.svg.count("<rect") == 64 * 64 and "C_local in registers, decided by the accumulator of wgmma" in made.svg
    assert tw.plot(kernel).svg == made.svg
    assert tw.plot(kernel, "A_shared").svg.count("<rect") == 64 * 32
    with pytest.raises(tw.CompileError, match=r"has no tile 'x' with a layout[\s\S]*help: those that have one: C_local, A_shared"):
        tw.plot(kernel, "x")


def test_texts_of_layouts_are_the_maps_that_they_say(kernel):
    """The table that explain() writes says the same as the map that is made of the text."""
    text = str(kernel.explain("sm_90a"))
    begin = text.index("C_local in registers")
    lines = text[begin:].splitlines()
    layout = layout_of_text(lines[1].strip())
    for line in lines[3:11]:
        row, *cells = line.split()
        assert cells[:8] == [":".join(map(str, layout.at((int(row), c)))) for c in range(8)]
    swizzled = layout_of_text("(64, 128): [64:64] x [2:4096 64:1]; bits 16; swizzle (3, 4, 3)")
    assert [swizzled.at((r, 0))[0] for r in range(9)] == [r * 64 + r % 8 * 8 for r in range(9)]
    assert sorted(swizzled.at((r, c))[0] for r in range(64) for c in range(128)) == list(range(64 * 128))
    ring = layout_of_text("(8, 64, 32): [8:2048] x [64:32] x [32:1]; bits 16; swizzle (2, 4, 3)")
    assert list(ring.shape) == [64, 32]


def test_a_call_still_returns_what_it_made(kernel):
    a = np.ones(8, "float32")
    assert (add(a, a) == 2).all()


def test_a_summary_of_work_that_the_call_decides():
    N = T.dynamic("N")

    @T.prim_func
    def any_length(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i]

    kernel = tw.compile(any_length, out_idx=-1, engine="interpreter")
    for arch in ("sm_90a", ""):
        made = kernel.explain(arch)
        assert "how much work it is depends on the call" in made.summary() and "None" not in made.summary()
        assert "as many as the call says blocks" in made._repr_html_()
    assert "bound by memory" in kernel.explain("sm_90a", N=4096).summary()


def test_a_misspelt_word_of_do_bench_is_said(kernel):
    pytest.importorskip("torch")
    with pytest.warns(UserWarning, match=r"do_bench\(\) knows no backnd: nothing changes by it"):
        assert kernel.get_profiler().do_bench(warmup=1, rep=1, backnd="wall") > 0
