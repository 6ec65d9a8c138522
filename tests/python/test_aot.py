"""Kernels that were compiled ahead of time, in programs that have nothing but libc beside them."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tilewright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/aot.md").read_text()
BUILD = ROOT / "build/release"
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")

KERNELS = """
import tilewright as tw
import tilewright.language as T

M, N, S = T.dynamic("M"), T.dynamic("N"), T.dynamic("S")

@T.prim_func
def softmax(X: T.Tensor((M, 96), "float32"), Y: T.Tensor((M, 96), "float32")):
    with T.Kernel(T.ceildiv(M, 8), threads=128) as bx:
        x = T.alloc_fragment((8, 96), "float32")
        top, total = T.alloc_fragment((8,), "float32"), T.alloc_fragment((8,), "float32")
        T.copy(X[bx * 8, 0], x)
        T.reduce_max(x, top, dim=1)
        for i, j in T.Parallel(8, 96):
            x[i, j] = T.exp(x[i, j] - top[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(8, 96):
            x[i, j] = x[i, j] / total[i]
        T.copy(x, Y[bx * 8, 0])

@T.prim_func
def rows(A: T.StridedTensor((M, N), (S, 1), "int32"), B: T.Tensor((M, N), "int32"), n: T.int32, f: T.float64, flag: T.bool):
    T.assume(n > 0)
    with T.Kernel(T.ceildiv(M, 16), T.ceildiv(N, 32), threads=64) as (bx, by):
        for i, j in T.Parallel(16, 32):
            B[bx * 16 + i, by * 32 + j] = A[bx * 16 + i, by * 32 + j] * n + T.cast(f, "int32") + T.if_then_else(flag, 1000, 0)

@tw.jit
def halves(A, K=64):
    A: T.Tensor((K, 32), "float16")
    B = T.empty((K, 32), "float16")
    with T.Kernel(T.ceildiv(K, 16), threads=32) as bx:
        for i, j in T.Parallel(16, 32):
            B[bx * 16 + i, j] = A[bx * 16 + i, j] + A[bx * 16 + i, j]
    return B

@T.prim_func
def guarded(A: T.Tensor((M,), "int32")):
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        for i in T.Parallel(32):
            T.device_assert(A[bx * 32 + i] < 7, "A is small")
            A[bx * 32 + i] = 1

@T.prim_func
def extents(X: T.Tensor((M, N), "float32"), Y: T.Tensor((S, 24), "float32"), O: T.Tensor((3,), "int32")):
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((1,), "float32")
        for i in T.Parallel(1):
            tile[i] = T.if_then_else(i <= 1, 0.25, Y[0, 0])
        O[0], O[1], O[2] = M, N, S
"""


def tw(folder, *words, ok=True):
    path = os.pathsep.join(p for p in sys.path if p)
    ran = subprocess.run([sys.executable, "-m", "tilewright", *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=600,
                         env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert not ok or ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def cc(folder, source, objects, *flags):
    (folder / "app.c").write_text(source)
    includes = sorted({f"-I{pathlib.Path(o).parent}" for o in objects})
    ran = subprocess.run(["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", *includes, "app.c", *map(str, objects), *flags,
                          "-lgomp", "-lm", "-lpthread", "-ldl", "-o", "app"], cwd=folder, capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder / "app"


def libraries(app):
    """Paths of what the dynamic linker loads."""
    listed = subprocess.run(["ldd", app], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(", listed)


def alone(app, root, *files):
    """Runs it where there is nothing but its own libraries and `files`: as root in a root directory of its own, else without an
    environment."""
    root.mkdir(exist_ok=True)
    for library in libraries(app):
        to = root / library.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, to)
    for file in (app, *files):
        shutil.copy(file, root)
    chroot = shutil.which("chroot") or "/usr/sbin/chroot"
    line = [chroot, root, f"/{app.name}"] if os.geteuid() == 0 and os.path.exists(chroot) else [root / app.name]
    ran = subprocess.run(line, cwd=root, env={}, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Kernels of KERNELS for the processor that is here."""
    folder = tmp_path_factory.mktemp("aot")
    (folder / "kernels.py").write_text(KERNELS)
    for words in (("softmax",), ("rows",), ("halves", "K=40"), ("guarded",)):
        tw(folder, "build", f"kernels.py:{words[0]}", *words[1:], "--arch", "cpu", "-o", "out")
    return folder


def objects(folder, *names, arch="cpu"):
    return [folder / "out" / arch / f"{name}.o" for name in (*names, "tilewright_runtime")]


def interpreted(folder, name, *arguments, **values):
    space = {"__name__": "kernels_of_test"}
    exec(compile(KERNELS, str(folder / "kernels.py"), "exec"), space)
    return tilewright.compile(space[name], engine="interpreter", **values)(*arguments)


TWO = r"""
#include <stdio.h>
#include <stdlib.h>
#include "rows.h"
#include "softmax.h"
static void* read_all(const char* name, size_t bytes) {
  void* memory = malloc(bytes);
  FILE* file = fopen(name, "rb");
  if (!file || fread(memory, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  return memory;
}
static void write_all(const char* name, const void* memory, size_t bytes) {
  FILE* file = fopen(name, "wb");
  if (!file || fwrite(memory, 1, bytes, file) != bytes || fclose(file) != 0) exit(3);
}
static int check(int code) {
  if (code) printf("%s\n", tilewright_error_text());
  return code != 0;
}
int main(void) {
  enum { M = 37, N = 45, S = 50 };
  float* x = read_all("x.bin", M * 96 * 4);
  float* y = malloc(M * 96 * 4);
  int32_t* a = read_all("a.bin", M * S * 4);
  int32_t* b = malloc(M * N * 4);
  if (check(softmax(x, y, M, NULL)) || check(rows(a, b, 3, 2.5, 1, M, N, S, NULL))) return 1;
  write_all("y.bin", y, M * 96 * 4);
  write_all("b.bin", b, M * N * 4);
  if (check(softmax(x, y, 5, NULL)) || check(softmax(x, y, 0, NULL))) return 1;
  return 0;
}
"""


def test_two_kernels_in_an_empty_root(built, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((37, 96)).astype("float32")
    wide = rng.integers(-1000, 1000, (37, 50)).astype("int32")
    x.tofile(tmp_path / "x.bin"), wide.tofile(tmp_path / "a.bin")
    app = cc(tmp_path, TWO, objects(built, "softmax", "rows"))
    assert alone(app, tmp_path / "root", tmp_path / "x.bin", tmp_path / "a.bin") == ""
    y, b = np.empty((37, 96), "float32"), np.empty((37, 45), "int32")
    interpreted(built, "softmax", x, y)
    interpreted(built, "rows", wide[:, :45], b, 3, 2.5, True)
    assert np.array_equal(np.fromfile(tmp_path / "root/b.bin", "int32").reshape(37, 45), b)
    ours = np.fromfile(tmp_path / "root/y.bin", "float32").reshape(37, 96)
    assert np.allclose(ours, y, rtol=2e-6, atol=0) and np.abs(ours.sum(1) - 1).max() < 1e-5


def test_nothing_but_libc_and_openmp_is_needed(built, tmp_path):
    app = cc(tmp_path, TWO, objects(built, "softmax", "rows"))
    names = {os.path.basename(p).partition(".so")[0] for p in libraries(app)}
    assert names <= {"libc", "libm", "libgomp", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"}, names
    sizes = subprocess.run(["size", built / "out/cpu/tilewright_runtime.o"], capture_output=True, text=True).stdout.split("\n")[1].split()
    assert int(sizes[0]) + int(sizes[1]) < 100_000


def test_a_static_program_needs_nothing(built, tmp_path):
    app = cc(tmp_path, TWO, objects(built, "softmax", "rows"), "-static", "-Wl,--no-warnings") if static_libraries(tmp_path) else None
    if app is None:
        pytest.skip("there is no static libc or libgomp")
    rng = np.random.default_rng(2)
    rng.standard_normal((37, 96)).astype("float32").tofile(tmp_path / "x.bin")
    np.zeros((37, 50), "int32").tofile(tmp_path / "a.bin")
    root = tmp_path / "root"
    root.mkdir()
    for name in ("app", "x.bin", "a.bin"):
        shutil.copy(tmp_path / name, root)
    ran = subprocess.run([root / "app"], cwd=root, env={}, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


def static_libraries(folder):
    (folder / "probe.c").write_text("int main(void) { return 0; }")
    return subprocess.run(["cc", "-static", folder / "probe.c", "-lgomp", "-lm", "-o", folder / "probe"], capture_output=True).returncode == 0


def test_levels_give_the_bits_of_the_engine(built, tmp_path, monkeypatch):
    """A level's code is the text that the engine compiles with TILEWRIGHT_CPU."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((37, 96)).astype("float32")
    x.tofile(tmp_path / "x.bin"), np.zeros((37, 50), "int32").tofile(tmp_path / "a.bin")
    processor = json.loads(tilewright._native.machine(False))["processor"].split()
    for level in ("portable", "avx2", "avx512"):
        if level != "portable" and level not in processor:
            continue
        tw(built, "build", "kernels.py:softmax", "--arch", f"cpu:{level}", "-o", "out")
        tw(built, "build", "kernels.py:rows", "--arch", f"cpu:{level}", "-o", "out")
        facts = json.loads((built / f"out/cpu_{level}/softmax.json").read_text())
        assert level in facts["processor"].split() and facts["arch"] == f"cpu:{level}"
        folder = tmp_path / level
        folder.mkdir()
        app = cc(folder, TWO, objects(built, "softmax", "rows", arch=f"cpu_{level}"))
        alone(app, folder / "root", tmp_path / "x.bin", tmp_path / "a.bin")
        monkeypatch.setenv("TILEWRIGHT_CPU", level)
        y = np.empty((37, 96), "float32")
        space = {"__name__": "kernels_of_test"}
        exec(compile(KERNELS, str(built / "kernels.py"), "exec"), space)
        tilewright.compile(space["softmax"], engine="cpu")(x, y)
        assert np.array_equal(np.fromfile(folder / "root/y.bin", "float32").reshape(37, 96).view("uint32"), y.view("uint32"))


WRONG = r"""
#include <stdio.h>
#include "guarded.h"
#include "rows.h"
static void say(int code) { printf("%d %s\n", code, code ? tilewright_error_text() : "right"); }
int main(void) {
  static int32_t a[64 * 64], b[64 * 64];
  say(rows(NULL, b, 1, 0, 0, 4, 4, 8, NULL));
  say(rows(a, b, 1, 0, 0, -4, 4, 8, NULL));
  say(rows(a, b, 1, 0, 0, 4, 3000000000, 8, NULL));
  say(rows(a, b, 0, 0, 0, 4, 4, 8, NULL));
  say(rows((int32_t*)((char*)a + 2), b, 1, 0, 0, 4, 4, 8, NULL));
  say(rows(b + 2, b, 1, 0, 0, 4, 4, 4, NULL));
  say(rows(b, b, 1, 0, 0, 4, 4, 4, NULL));
  say(rows(NULL, NULL, 1, 0, 0, 0, 4, 4, NULL));
  a[40] = 9;
  say(guarded(a, 64, NULL));
  a[40] = 0;
  say(guarded(a, 64, NULL));
  return 0;
}
"""


def test_wrong_calls(built, tmp_path):
    app = cc(tmp_path, WRONG, objects(built, "rows", "guarded"))
    said = subprocess.run([app], env={}, capture_output=True, text=True).stdout.splitlines()
    expected = [
        "4003 TW4003: rows: argument 0 'A' is null, but the program uses it",
        "4011 TW4011: rows: M = -4 is negative, but is a dimension of type int32",
        "4011 TW4011: rows: N = 3000000000 does not fit int32",
        "4013 TW4013: rows: Assume: n > 0 does not hold (n = 0)",
        "4009 TW4009: rows: argument 0 'A' lies 2 bytes past a multiple of 4, the size of its elements",
        "4019 TW4019: rows: argument 1 'B', which the program writes, shares part of its memory with argument 0 'A'",
        "0 right",  # in place
        "0 right",  # without elements
    ]
    assert said[:8] == expected
    assert said[8].startswith("4015 TW4015: guarded: assertion failed in block (1, 0, 0), thread (") and "A is small" in said[8]
    assert said[9] == "0 right" and len(said) == 10


@pytest.mark.parametrize("wish", ["abc", "0", "-2", "+2", " 2", "2 ", "2x", "65537", "99999999999999999999", "2", "65536", ""])
def test_threads_that_are_no_number(built, tmp_path, wish):
    """The environment is read as the library reads it."""
    app = cc(tmp_path, """#include <stdio.h>
#include "guarded.h"
int main(void) { static int32_t a[64]; printf("%d ", guarded(a, 64, NULL)); puts(tilewright_error_text()); return 0; }
""", objects(built, "guarded"))  # fmt: skip
    said = subprocess.run([app], env={"TILEWRIGHT_THREADS": wish}, capture_output=True, text=True).stdout
    mine = subprocess.run([sys.executable, "-c", f"""import numpy, tilewright
space = {{"__name__": "kernels_of_test"}}
exec(compile(open({str(built / 'kernels.py')!r}).read(), {str(built / 'kernels.py')!r}, "exec"), space)
try:
    tilewright.compile(space["guarded"], engine="cpu")(numpy.zeros(64, "int32"))
    print(0)
except tilewright.TilewrightError as error:
    print(error.code[2:], error.message)
"""], env={**os.environ, "TILEWRIGHT_THREADS": wish, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, capture_output=True, text=True)  # fmt: skip
    assert mine.returncode == 0, mine.stderr
    assert said.strip() == mine.stdout.strip().replace("5506 ", "5506 TW5506: guarded: ")


def test_values_choose_a_kernel(built):
    facts = json.loads((built / "out/cpu/halves.json").read_text())
    assert facts["parameters"][0]["shape"] == ["40", "32"] and facts["symbols"] == []
    assert facts["signature"] == "int halves(const void* A, void* B, void* stream)"
    assert facts["tilewright"] == tilewright.__version__ and facts["link"] == ["-lpthread", "-ldl", "-lm", "-lgomp"]
    rows = json.loads((built / "out/cpu/rows.json").read_text())
    assert rows["signature"] == "int rows(const int32_t* A, int32_t* B, int32_t n, double f, int flag, int64_t M, int64_t N, int64_t S, void* stream)"
    assert [s["name"] for s in rows["symbols"]] == ["M", "N", "S"] and rows["parameters"][0]["strides"] == ["S", "1"]
    assert rows["assumes"] == ["0 < n"] and rows["versions"][0]["alignments"] == {"A": 4, "B": 4}


def test_headers_are_c_and_cxx(built, tmp_path):
    text = "".join(f'#include "{name}.h"\n' for name in ("rows", "softmax", "halves", "guarded", "rows"))
    for compiler, language in (("cc", "c"), ("c++", "c++")):
        (tmp_path / "h.c").write_text(text + "int main(void) { return tilewright_error_text() == 0; }\n")
        subprocess.run([compiler, "-x", language, "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{built}/out/cpu", "-fsyntax-only", tmp_path / "h.c"], check=True)


def test_same_program_same_bytes(built):
    first = {p.name: p.read_bytes() for p in (built / "out/cpu").iterdir() if p.name.startswith(("softmax", "tilewright"))}
    tw(built, "build", "kernels.py:softmax", "--arch", "cpu", "-o", "again")
    assert first == {p.name: p.read_bytes() for p in (built / "again/cpu").iterdir()}


def test_names_tell_architectures_apart(built):
    said = tw(built, "build", "kernels.py:halves", "--arch", "cpu:portable,cpu:avx2", "-o", "named", "--name", "half_{arch}").stdout.split()
    assert {os.path.basename(p) for p in said} >= {"half_cpu_portable.o", "half_cpu_avx2.h"}
    assert "int half_cpu_avx2(" in (built / "named/cpu_avx2/half_cpu_avx2.h").read_text()


# ---- names of C

WORDS = "errno EOF stdin I linux bool size_t int32_t int64_t uint8_t NULL stream static_assert complex offsetof alignas float16 BUFSIZ INT_MAX xor expf tw_kernel main"
NAMED = f"""
import tilewright.language as T

@T.prim_func
def Copies({", ".join(f'{word}: T.Tensor((64,), "float32")' for word in WORDS.split())}, _Bool: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            _Bool[b * 32 + i] = {" + ".join(f"{word}[b * 32 + i]" for word in WORDS.split())}

@T.prim_func
def copies(class_: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=32) as b:
        for i in T.Parallel(32):
            class_[b * 32 + i] = T.exp(class_[b * 32 + i])
"""
HEADERS = "assert complex ctype errno float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef stdint stdio stdlib string time wchar"


def test_parameters_with_names_of_c(tmp_path):
    """They are something else in C, C++ or their headers: the header has other names, and the object computes the same."""
    (tmp_path / "named.py").write_text(NAMED)
    for name in ("Copies", "copies"):
        tw(tmp_path, "build", f"named.py:{name}", "--arch", "cpu:portable", "-o", "out")
    text = "".join(f"#include <{h}.h>\n" for h in HEADERS.split()) + '#include "Copies.h"\n#include "copies.h"\n'
    for compiler, language, standard in (("cc", "c", "c99"), ("cc", "c", "gnu17"), ("c++", "c++", "c++17"), ("c++", "c++", "gnu++20")):
        (tmp_path / "h.c").write_text((text.replace("complex.h", "complex") if language == "c++" else text) + "int x = sizeof &Copies + sizeof &copies;\n")
        subprocess.run([compiler, "-x", language, f"-std={standard}", f"-I{tmp_path}/out/cpu_portable", "-fsyntax-only", tmp_path / "h.c"], check=True)
    arrays = ", ".join(f"x + {64 * i}" for i in range(len(WORDS.split())))
    main = f"""#include <stdio.h>
#include "Copies.h"
int main(void) {{ static float x[{64 * len(WORDS.split())}], y[64]; for (int i = 0; i < {64 * len(WORDS.split())}; ++i) x[i] = (float)(i / 64);
  if (Copies({arrays}, y, NULL)) return 1;
  printf("%g %g", y[0], y[63]);
  return 0; }}
"""
    app = cc(tmp_path, main, objects(tmp_path, "Copies", arch="cpu_portable"))
    expected = sum(range(len(WORDS.split())))
    assert subprocess.run([app], capture_output=True, text=True).stdout == f"{expected} {expected}"


TAKEN = {"exp": "C library", "sinhf": "C library", "atexit": "C library", "calloc": "C library", "getenv": "C library", "write": "libc.so.6", "sysconf": "libc.so.6",
         "class": "word of C", "restrict": "word of C", "std": "word of C", "int32_t": "a type", "isnan": "a macro", "linux": "a macro", "I": "a macro",
         "INT32_MAX": "a macro", "tw_call": "runtime", "__x": "compiler"}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_functions_with_names_of_c_are_refused(built, name):
    """The linker would give the calls of such a function, the kernel's own too, to the kernel."""
    with pytest.raises(tilewright.CompileError, match="cannot be the name of a function in C") as error:
        tilewright._native.parse(BARE, "bare.tile").build("cpu:portable", name, str(built / "taken"))
    assert error.value.code == "TW1080" and TAKEN[name] in str(error.value) and f"--name my_{name}" in error.value.help
    assert not (built / "taken").exists()


BARE = "program bare {\n  param A: float32[1]\n  launch bare(bx: 1) threads(tx: 32) {\n    fill to=A value=0.0\n  }\n}\n"


# ---- GPUs


def nvrtc():
    return json.loads(tilewright._native.machine(True))["nvrtc"]["works"]


@pytest.mark.skipif(not nvrtc(), reason="there is no NVRTC")
def test_gpu_objects(built, tmp_path):
    tw(built, "build", "kernels.py:softmax", "--arch", "sm_80,sm_90a", "-o", "out")
    for arch in ("sm_80", "sm_90a"):
        facts = json.loads((built / f"out/{arch}/softmax.json").read_text())
        assert facts["link"] == ["-lpthread", "-ldl"] and all(v["code_bytes"] > 1000 for v in facts["versions"])
        assert facts["versions"][0]["launches"][0]["grid"] == ["(M + 7) // 8", "1", "1"]
        assert facts["versions"][-1]["alignments"] == {"X": 4, "Y": 4} and facts["versions"][-1]["tensor_maps"] == 0
    source = """#include <stdio.h>\n#include "softmax.h"
int main(void) { static float x[96], y[96]; printf("%d ", softmax(x, y, -1, NULL)); printf("%d ", softmax(x, y, 1, NULL)); puts(tilewright_error_text()); return 0; }
"""
    app = cc(tmp_path, source, objects(built, "softmax", arch="sm_90a"))
    (tmp_path / "named.py").write_text(NAMED)
    tw(tmp_path, "build", "named.py:Copies", "--arch", "sm_90a", "-o", "out")  # its text has parameters of these names too
    assert "libgomp" not in "".join(libraries(cc(tmp_path, source, objects(built, "softmax", arch="sm_90a"), "-Wl,--as-needed")))
    said = subprocess.run([app], env={"TILEWRIGHT_LIBCUDA": "/nowhere/libcuda.so"}, capture_output=True, text=True).stdout
    assert said.startswith("4011 8101 TW8101: softmax: no CUDA driver: /nowhere/libcuda.so")
    fake = BUILD / "tests/libfake_cuda.so"
    if fake.exists():  # a driver without memory of ours
        said = subprocess.run([app], env={"TILEWRIGHT_LIBCUDA": str(fake)}, capture_output=True, text=True).stdout
        assert said == "4011 8109 TW8109: softmax: argument 0 'X' is not in the memory of a CUDA device\n"


# ---- what is refused


REFUSED = '''
import tilewright.language as T

@T.prim_func
def prints(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        T.print(A[0])

@T.prim_func
def narrow(A: T.Tensor((4,), "float16"), f: T.float16):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(4):
            A[i] = f

@T.prim_func
def asserts(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        T.device_assert(A[0] > 0)
        A[1] = 2

@T.prim_func
def double(A: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(4):
            A[i] = 2
'''
WAITS = """program waits {
  param A: float32[64]
  launch main(bx: 1) threads(tx: 64) {
    barrier ready: uint64[1] arrive=[64]
    arrive barrier=ready[0]
    wait barrier=ready[0] parity=0
    A[tx] = 1.0
  }
}
"""
CASES = [
    (("refused.py:prints", "--arch", "cpu"), "TW7006", "'prints' cannot be compiled ahead of time: it prints", "refused.py:7"),
    (("refused.py:narrow", "--arch", "cpu"), "TW7006", "C has no type for its parameter 'f' of float16", ""),
    (("refused.py:asserts", "--arch", "sm_90a"), "TW7006", "an assertion on a GPU", "refused.py:18"),
    (("waits.tile", "--arch", "cpu"), "TW7006", "some of its threads wait for others", ""),
    (("refused.py:double", "--arch", "cpu"), "TW1080", "'double' cannot be the name of a function in C", "--name my_double"),
    (("refused.py:double", "--arch", "cpu:avx3", "--name", "d"), "TW1080", "'cpu:avx3' is no level of processors", "cpu:avx512"),
    (("refused.py:double", "--arch", "sm_10", "--name", "d"), "TW8201", "kernels for sm_10 are not something we write", ""),
    (("missing.tile", "--arch", "cpu"), "TW7003", "missing.tile: No such file or directory", ""),
]


@pytest.mark.parametrize("words, code, message, more", CASES)
def test_what_is_refused(tmp_path, words, code, message, more):
    if "asserts" in words[0] and not nvrtc():
        pytest.skip("there is no NVRTC")
    (tmp_path / "refused.py").write_text(REFUSED)
    (tmp_path / "waits.tile").write_text(WAITS)
    ran = tw(tmp_path, "build", *words, "-o", "out", ok=False)
    assert ran.returncode == 1 and ran.stderr.startswith(f"error {code} ") and message in ran.stderr and more in ran.stderr, ran.stderr
    assert not (tmp_path / "out").exists()


def test_lists_of_architectures(built):
    for given in ("cpu,,sm_80", "", ","):
        ran = tw(built, "build", "kernels.py:softmax", "--arch", given, "-o", "lists", ok=False)
        assert ran.returncode == 2 and f"'{given}' is no list of architectures: cpu (this machine's), cpu:portable" in ran.stderr
    assert not (built / "lists").exists()


def test_values_that_nothing_takes(built):
    for words, message in ((("kernels.py:softmax", "M=4"), "'softmax' takes no M now"), (("x.tile", "M=4"), "a .tile text takes no values: M")):
        ran = tw(built, "build", *words, "--arch", "cpu", "-o", "out", ok=False)
        assert ran.returncode == 2 and message in ran.stderr, ran.stderr


def test_a_folder_that_cannot_be_written(built):
    (built / "file").write_text("")
    ran = tw(built, "build", "kernels.py:halves", "K=16", "--arch", "cpu", "-o", "file", ok=False)
    assert ran.returncode == 1 and "error TW7004" in ran.stderr


# ---- the page


def blocks(language):
    return [text for word, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if word == language]


def test_the_page(tmp_path):
    (tmp_path / "kernels.py").write_text(blocks("python")[0])
    app, forward = blocks("c")
    (tmp_path / "app.c").write_text(app)
    building, linking = blocks("sh")
    if not nvrtc():
        building = building.replace(",sm_90a", "")
    for line in building.splitlines():
        tw(tmp_path, *line.split()[1:])
    said = subprocess.run(["sh", "-ec", linking], cwd=tmp_path, capture_output=True, text=True)
    signature, output = blocks("")
    assert (said.returncode, said.stdout, said.stderr) == (0, output, "")
    assert signature in (tmp_path / "kernels/cpu/scale.h").read_text()
    (tmp_path / "forward.c").write_text(forward)
    folder = tmp_path / ("kernels/sm_90a" if nvrtc() else "kernels/cpu_avx2")
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", f"-I{folder}", "-c", tmp_path / "forward.c", "-o", tmp_path / "forward.o"], check=True)
    size = subprocess.run(["size", tmp_path / "kernels/cpu/tilewright_runtime.o"], capture_output=True, text=True).stdout.split("\n")[1].split()
    assert f"is {round(int(size[0]) / 1000)} KB of code" in PAGE, size


FIND = "find_package(tilewright 0.1 REQUIRED COMPONENTS c)\n"
FETCH = f"""include(FetchContent)
FetchContent_Declare(tilewright SOURCE_DIR {ROOT})
FetchContent_MakeAvailable(tilewright)
"""


@pytest.mark.skipif(not (BUILD / "libtilewright.a").exists() or not shutil.which("cmake"), reason="there is no build to install")
@pytest.mark.parametrize("how", [FIND, FETCH], ids=["find_package", "FetchContent"])
def test_the_pages_cmake(tmp_path, how):
    """Of a tree that is a part of the project no more is built than what the kernels' targets need."""
    prefix = tmp_path / "prefix"
    components = ["runtime", "dev"] + (["tool"] if (BUILD / "tilewright").exists() else [])
    for component in components if how == FIND else []:
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, "--component", component], check=True, capture_output=True)
    project = tmp_path / "project"
    project.mkdir()
    (project / "kernels.py").write_text(blocks("python")[0])
    (project / "app.c").write_text(blocks("c")[0])
    (project / "double_it.tile").write_text(
        "program p {\n  symbol N: int32\n  param A: int32[N]\n  launch main(bx: (N + 31) // 32) threads(tx: 32) {\n    map i in 32 {\n"
        "      if bx * 32 + i < N {\n        A[bx * 32 + i] = A[bx * 32 + i] * 2\n      }\n    }\n  }\n}\n"
    )
    more = '\nadd_executable(second second.c)\ntarget_link_libraries(second m)\ntilewright_add_kernels(second double_it.tile ARCH cpu cpu:portable)\n'
    (project / "second.c").write_text(
        '#include "double_it_cpu.h"\n#include "double_it_cpu_portable.h"\n'
        "int main(void) { int32_t a[3] = {1, 2, 3}; return double_it_cpu(a, 3, 0) || double_it_cpu_portable(a, 3, 0) || a[2] != 12; }\n"
    )
    page = blocks("cmake")[0]
    assert FIND in page
    page = page.replace(FIND, how)
    (project / "CMakeLists.txt").write_text(page + more)
    python = tmp_path / "python"  # with this one's path, which is not for a CMake that is a program of another Python
    python.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(os.pathsep.join(p for p in sys.path if p))} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    configure = ["cmake", "-S", project, "-B", tmp_path / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DTILEWRIGHT_PYTHON={python}"]
    build = ["cmake", "--build", tmp_path / "b", "--target", "app", "second"]
    for line in (configure, build):
        ran = subprocess.run(line, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert subprocess.run([tmp_path / "b/app"], env={}, capture_output=True, text=True).stdout == blocks("")[1]
    assert subprocess.run([tmp_path / "b/second"], env={}).returncode == 0
    again = subprocess.run(build, capture_output=True, text=True)
    assert "no work to do" in again.stdout
    bad = project / "CMakeLists.txt"
    bad.write_text(page.replace("kernels.py:scale", "kernels.cu"))
    ran = subprocess.run(configure, capture_output=True, text=True)
    assert ran.returncode != 0 and "'kernels.cu' is none of FILE.tile, FILE.py" in ran.stderr.replace("\n  ", " ")


@pytest.mark.skipif(not shutil.which("cmake"), reason="there is no CMake")
def test_a_project_that_builds_the_tool_builds_text_by_it(tmp_path):
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C)
set(TILEWRIGHT_BUILD_TOOL ON)
{FETCH}add_executable(app app.c)
tilewright_add_kernels(app double_it.tile ARCH cpu)
""")
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja"], capture_output=True, check=True)
    plan = subprocess.run(["ninja", "-C", tmp_path / "b", "-t", "commands", "app"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"/tilewright build \S+/double_it.tile --arch cpu ", plan) and "src/driver/tool/" in plan


def test_dimensions_are_those_that_the_header_names(tmp_path):
    """Folding leaves Y out of use after the order of the dimensions is decided."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    tw(tmp_path, "build", "kernels.py:extents", "--arch", "cpu", "-o", "out")
    names = re.findall(r"int64_t (\w+)", re.search(r"int extents\((.*)\);", (tmp_path / "out/cpu/extents.h").read_text())[1])
    values = ", ".join(str({"M": 2, "N": 3, "S": 5}[name]) for name in names)
    app = cc(tmp_path, f"""#include <stdio.h>
#include "extents.h"
int main(void) {{
  static float x[6], y[120];
  int32_t o[3];
  if (extents(x, y, o, {values}, NULL) != 0) return 1;
  printf("%d %d %d", (int)o[0], (int)o[1], (int)o[2]);
  return 0;
}}
""", objects(tmp_path, "extents"))  # fmt: skip
    assert subprocess.run([app], capture_output=True, text=True).stdout == "2 3 5"


def test_a_command_shows_no_line_of_what_started_it(tmp_path):
    """As a file of its own starts it, which pip writes."""
    (tmp_path / "add.tile").write_text(BARE)
    (tmp_path / "started.py").write_text("import sys\nfrom tilewright.command import main\nsys.exit(main())\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_NVRTC": "/nowhere"}
    ran = subprocess.run([sys.executable, "started.py", "build", "add.tile", "--arch", "sm_90a", "-o", "out"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    answered, shown = "TW8001" in ran.stderr, "started.py" in ran.stderr
    assert answered and not shown
