"""The command `tilewright`: its words, on files of kernels, in processes of their own."""
import importlib.util
import json
import os
import pathlib
import pty
import re
import subprocess
import sys

import pytest
import tilewright
from tilewright import command
from tilewright.command import kernels, machine

alone = pytest.mark.skipif(importlib.util.find_spec("tilelang") is not None, reason="TileLang itself is installed")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

KERNELS = """
import tilewright as tw
import tilewright.language as T

@tw.jit
def add(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
    return C

@tw.autotune(configs=[{"block": 64}, {"block": 128}])
@tw.jit(out_idx=[-1])
def product(M, N, K, block=64, dtype="float16"):
    @T.prim_func
    def product(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, 32), dtype)
            B_shared = T.alloc_shared((32, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, k * 32], A_shared)
                T.copy(B[k * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])
    return product

M = T.dynamic("M")

@T.prim_func
def scale(A: T.Tensor((M, 64), "float32"), f: T.float32):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as b:
        for i, j in T.Parallel(16, 64):
            A[b * 16 + i, j] = A[b * 16 + i, j] * f

if __name__ == "__main__":
    raise SystemExit("this part is for those who run it")
"""
RACING = """
import tilewright.language as T

@T.prim_func
def halves(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        for i in T.Parallel(64):
            s[i // 2] = A[i]
        for i in T.Parallel(32):
            A[i] = s[i]
"""
FOR_A_GPU = """
import sys
import torch
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1], target="cuda")
def double(N):
    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * 2
    return main

def test_double():
    assert double(8)(torch.ones(8, device="cuda")).tolist() == [2] * 8
    numbered = torch.cuda.current_device()  # a device may be a number
    layer = torch.nn.Linear(8, 8).to(numbered)
    assert torch.randint(2, 3, (8,), device=numbered).to(numbered, torch.float16).tolist() == [2] * 8 == [layer.in_features // 4] * 8

if __name__ == "__main__":
    test_double()
    print("right", sys.argv[1:], torch.cuda.get_device_capability(), tilelang.utils.device.get_current_device())
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in {"kernels.py": KERNELS, "racing.py": RACING, "for_a_gpu.py": FOR_A_GPU}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def environment(**changed):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tilewright.__file__)), os.environ.get("PYTHONPATH", "")])
    kept = {k: v for k, v in os.environ.items() if k not in ("TILEWRIGHT_ENGINE", "TILEWRIGHT_CHECK", "NO_COLOR")}
    return {**kept, "PYTHONPATH": path, **changed}


def tw(folder, *words, **changed):
    """Runs the command; in a process of its own, for it imports what it is given."""
    return subprocess.run([sys.executable, "-m", "tilewright", *words], cwd=folder, capture_output=True, text=True, env=environment(**changed))


def said(folder, *words, **changed):
    ran = tw(folder, *words, **changed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


# ---- words


def test_alone_it_says_what_there_is(tmp_path):
    first, *rows = said(tmp_path).splitlines()
    assert re.fullmatch(r"tilewright \S+   cpu: .+, \d+ threads?, .+   cuda: .+   cache: \d+ MiB", first)
    assert [row.split()[0] for row in rows[:-1]] == list(command.WORDS)
    assert said(tmp_path, "--help").splitlines()[1:] == [first, *rows][1:]
    for word in command.WORDS:
        assert f"usage: tilewright {word}" in said(tmp_path, word, "--help")


def test_who_stops_reading_is_told_nothing(tmp_path):
    for words in ([], ["doctor"], ["--version"]):
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run([sys.executable, "-m", "tilewright", *words], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
        os.close(writer)
        assert (ran.returncode, ran.stderr) == (1, ""), words


def test_the_source_says_that_it_is_one(tmp_path):
    (tmp_path / "tilewright").mkdir()
    (tmp_path / "tilewright/__init__.py").write_text(pathlib.Path(tilewright.__file__).read_text())
    ran = subprocess.run([sys.executable, "-c", "import tilewright"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1].startswith(f"ImportError: {tmp_path}/tilewright is the source of tilewright, without its compiled part; help: "), ran.stderr


def test_version(tmp_path):
    assert said(tmp_path, "--version") == f"tilewright {tilewright.__version__}\n"


def test_values_stand_before_options_and_behind_them(folder):
    before, behind = tw(folder, "explain", "kernels.py:add", "N=1000", "--arch", "sm_90a"), tw(folder, "explain", "kernels.py:add", "--arch", "sm_90a", "N=1000")
    assert (before.returncode, behind.returncode) == (0, 0) and before.stdout == behind.stdout, behind.stderr


def test_the_language_server_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pygls", None)
    assert command.main(["lsp"]) == 2
    assert capsys.readouterr() == ("", 'tilewright: lsp: the language server needs pygls: pip install "tilewright[lsp]"\n')


def test_misspelt_words(folder):
    for word, answer in {"docter": "did you mean doctor?", "zzz": "it is one of doctor, explain, cost, plot, studio, check, tune, build, run, compat, reduce, lsp, puzzles"}.items():
        ran = tw(folder, word)
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"tilewright: no command '{word}'; {answer}\n")


# ---- doctor


def test_doctor(tmp_path):
    found = json.loads(said(tmp_path, "doctor", "--json"))
    assert found["version"] == tilewright.__version__ and found["compiler"]["works"] and found["threads"] >= 1
    assert found["compiler"]["path"] in [c["path"] for c in found["compilers"]]
    assert {"nvrtc", "driver", "cache", "processor_used", "python", "torch"} <= set(found)
    text = said(tmp_path, "doctor")
    assert found["compiler"]["path"] in text and found["processor"] in text and "\033" not in text


def test_doctor_says_what_to_install(tmp_path):
    ran = tw(tmp_path, "doctor", TILEWRIGHT_CXX="/nowhere/g++", TILEWRIGHT_NVRTC="/nowhere", TILEWRIGHT_LIBCUDA="/nowhere", TILEWRIGHT_CACHE_DIR=str(tmp_path / "none"))
    assert ran.returncode == 1
    for text in ("apt-get install g++", 'pip install "tilewright[cuda]"', "install NVIDIA's driver", "which the first kernel makes", "TILEWRIGHT_CXX=/nowhere/g++"):
        assert text in ran.stdout, ran.stdout
    assert re.search("^engines +interpreter, simulator$", ran.stdout, re.MULTILINE)


def test_doctor_of_a_cache_that_is_not_private(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "is not a private directory" in said(tmp_path, "doctor", TILEWRIGHT_CACHE_DIR=str(shared))


def test_machines_that_have_devices(monkeypatch):
    device = {"name": "H200", "architecture": "sm_90a", "sms": 132, "memory_bytes": 2**37}
    here = machine.report(trying=False)
    there = {**here, "driver": {"works": True, "path": "libcuda.so.1", "version": "13.0", "devices": [device]}}
    monkeypatch.setattr(machine, "report", lambda trying=True: there)
    assert "cuda: H200 (sm_90a)" in machine.line()
    assert ("cuda:0", True, "H200, sm_90a, 132 SMs, 131072 MiB", "") in list(machine._rows(there))


def on_terminal(*words, **changed):
    """What it writes where standard output is a terminal."""
    reads, writes = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "tilewright", *words], stdout=writes, stderr=writes, env=environment(**changed))
    os.close(writes)
    text = b""
    while True:
        try:
            part = os.read(reads, 4096)
        except OSError:  # it has ended
            break
        if not part:
            break
        text += part
    os.close(reads)
    process.wait()
    return text.decode()


def test_colors_are_for_terminals():
    assert "\033[32m" in on_terminal("doctor", TERM="xterm")
    assert "\033" not in on_terminal("doctor", TERM="xterm", NO_COLOR="1")
    assert "\033[1;31merror TW7003" in on_terminal("explain", "nothing.py:x", TERM="xterm")


# ---- explain


def test_explain(folder):
    on_cpu = said(folder, "explain", "kernels.py:product", "M=256", "N=256", "K=64", "dtype=bfloat16")
    assert "product on the cpu engine" in on_cpu and "shared   A_shared: bfloat16[64, 32]" in on_cpu
    on_gpu = said(folder, "explain", "kernels.py:product", "M=256", "N=256", "K=64", "block=128", "--arch", "sm_90a")
    assert "wgmma" in on_gpu and "A_shared: float16" in on_gpu.replace("[3, ", "[")
    facts = json.loads(said(folder, "explain", "kernels.py:scale", "M=48", "--json"))
    assert facts["program"] == "scale" and facts["flops"] == 48 * 64
    assert "unknown" in said(folder, "explain", "kernels.py:scale")
    assert "add on the cpu engine" in said(folder, "explain", "kernels.py:add", "N=1000")


def test_cost(folder):
    words = ("cost", "kernels.py:product", "M=1024", "N=1024", "K=1024", "block=128")
    both = said(folder, *words, "--machine", "H200", "--machine", "A100")
    assert re.search(r"product on an H200 \(fitted to measurements\): about [\d.]+ us; what decides: ", both) and "product on an A100" in both
    found = json.loads(said(folder, *words, "--json", "--machine", "H100 memory_bytes=1e4"))
    assert found["launches"][0]["limit"] == "memory" and found["machine"]["memory_bytes"] == 1e4
    for json_too in ((), ("--json",)):
        ran = tw(folder, "cost", "kernels.py:scale", *json_too)
        assert ran.returncode == 1 and "scale: nothing says what M is" in ran.stdout + ran.stderr and "M=4096" in ran.stdout + ran.stderr
    said(folder, *words, "--picture", "cost.svg")
    assert (folder / "cost.svg").read_text().startswith("<svg") and "decides" in (folder / "cost.svg").read_text()
    machines = said(folder, "cost", "--machines")
    assert "B200: on paper" in machines and "multiply_adds" in machines
    assert {m["name"] for m in json.loads(said(folder, "cost", "--machines", "--json"))} == {"H200", "H100", "A100", "L40S", "B200"}
    ran = tw(folder, *words, "--machine", "H300", "--json")
    assert ran.returncode == 1 and json.loads(ran.stdout)["error"]["code"] == "TW1080"
    assert tw(folder, *words, "--machine", "H300").stderr.startswith("error TW1080 build: there is no machine 'H300'")


def test_explain_says_the_same_as_the_package(folder):
    spec = importlib.util.spec_from_file_location("kernels", folder / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.add.compile(N=1000)
    assert said(folder, "explain", "kernels.py:add", "N=1000", "--arch", "sm_80") == str(kernel.explain("sm_80"))


REFUSED = [
    ("kernels.py:ad", "TW1080", "there is no 'ad' in 'kernels.py'", "did you mean add?"),
    ("kernels.py:zzz", "TW1080", "there is no 'zzz' in 'kernels.py'", "it has add, product, scale"),
    ("kernels.py", "TW1080", "'kernels.py' has 3 kernels", "name one: kernels.py:add, kernels.py:product, kernels.py:scale"),
    ("kernels.py:T", "TW1101", "'T' in 'kernels.py' is of type module, and no kernel", "a function under @tilewright.jit"),
    ("nothing.py:add", "TW7003", "there is no file 'nothing.py'", "FILE.py:NAME is a path"),
    ("kernels.txt:add", "TW7003", "'kernels.txt' is no module of Python", "FILE.tile"),
    ("kernels.py:add", "TW1109", "T.const 'N' of 'add' is a dimension of 'A'", "or N=..."),
    ("kernels.py:product", "TW4001", "product: missing", ""),
]


@pytest.mark.parametrize("target, code, message, help", REFUSED)
def test_what_is_not_there(folder, target, code, message, help):
    (folder / "kernels.txt").write_text("")
    ran = tw(folder, "explain", target)
    assert ran.returncode == 1 and ran.stdout == "" and ran.stderr.startswith(f"error {code} ")
    assert message in ran.stderr and help in ran.stderr and "--> " in ran.stderr and "Traceback" not in ran.stderr
    ran = tw(folder, "explain", target, "--json")
    error = json.loads(ran.stdout)["error"]
    assert ran.returncode == 1 and error["code"] == code and message in error["message"] and error["file"].endswith(target.partition(":")[0])


def test_values_that_nothing_takes(folder):
    ran = tw(folder, "explain", "kernels.py:add", "N=abc")
    assert ran.returncode == 1 and "error TW1101 build: T.const 'N' of 'add' is an integer, but 'abc' is given" in ran.stderr
    for words, answer in ((("M=4", "Q=3"), "'scale' takes no Q; it has M, f"), (("M=large",), "M is a number, not 'large'"), (("M",), "'M' is no NAME=VALUE")):
        ran = tw(folder, "explain", "kernels.py:scale", *words)
        assert ran.returncode == 2 and answer in ran.stderr


def test_a_pipe_that_is_closed(folder):
    process = subprocess.Popen([sys.executable, "-m", "tilewright", "explain", "kernels.py:scale"], cwd=folder, env=environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 1


# ---- plot


def test_plot(folder):
    text = said(folder, "plot", "kernels.py:product", "M=256", "N=256", "K=64", "--out", "pictures")
    written = sorted(os.listdir(folder / "pictures"))
    assert {"product.A_shared.svg", "product.B_shared.svg", "product.C_local.svg"} <= set(written)
    assert sorted(os.path.basename(row.partition(": ")[0]) for row in text.splitlines()) == written
    assert all((folder / "pictures" / name).read_text().startswith("<svg ") for name in written)
    assert said(folder, "plot", "kernels.py:product", "M=256", "N=256", "K=64", "--buffer", "C_local", "--arch", "sm_80").count("\n") == 1
    assert (folder / "product.C_local.svg").exists()
    ran = tw(folder, "plot", "kernels.py:product", "M=256", "N=256", "K=64", "--buffer", "D")
    assert ran.returncode == 1 and "has no tile 'D' with a layout" in ran.stderr and "-->" not in ran.stderr  # no file of the user's says it
    ran = tw(folder, "plot", "kernels.py:add", "N=100")
    assert (ran.returncode, ran.stdout) == (0, "") and ran.stderr.startswith("add: none of its tiles has a layout on sm_90a")


def test_texts_of_programs(folder):
    (folder / "scale.tile").write_text("program scale {\n  param A: float32[64]\n  launch main(bx: 1) threads(tx: 64) {\n    A[tx] = A[tx] * 2.0\n  }\n}\n")
    assert said(folder, "explain", "scale.tile").startswith("scale on the cpu engine")
    assert said(folder, "explain", "scale.tile", "--arch", "sm_90a").startswith("scale on the cuda engine (sm_90a")
    assert said(folder, "check", "scale.tile").startswith("scale: the engines agree: interpreter")
    assert "none of its tiles" in tw(folder, "plot", "scale.tile").stderr
    ran = tw(folder, "tune", "scale.tile")
    assert ran.returncode == 1 and "error TW1101 build: 'scale' is a program already" in ran.stderr and "--> scale.tile" in ran.stderr


# ---- tune


def test_tune(folder):
    first, *rows = said(folder, "tune", "kernels.py:product", "M=64", "N=64", "K=64").splitlines()
    assert first == "product on cpu, M=64 N=64 K=64: 2 configurations"
    assert {row.split()[-1] for row in rows} == {"block=64", "block=128"} and rows[0].split()[1:4] == ["ms", "1.00", "x"]
    found = json.loads(said(folder, "tune", "kernels.py:product", "M=64", "N=64", "K=64", "--over", "block=32,64", "--over", "dtype=float16", "--json",
                            "--log", "log.json"))  # fmt: skip
    tried = found["configurations"]
    assert len(tried) == 2 and found["best"] == tried[0]["config"] and [r["ms"] for r in tried] == sorted(r["ms"] for r in tried)
    assert {(r["config"]["block"], r["config"]["dtype"]) for r in tried} == {(32, "float16"), (64, "float16")}
    assert len((folder / "log.json").read_text().splitlines()) == 2


def test_tune_of_configurations_that_are_wrong(folder):
    (folder / "some.py").write_text("""
import tilewright as tw
import tilewright.language as T

@tw.jit(out_idx=[-1])
def double(N, block=32):
    @T.prim_func
    def double(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * (3 if block == 8 else 2)
    return double
""")
    ran = tw(folder, "tune", "some.py", "N=64", "--over", "block=8,16,32,-4")
    rows = ran.stdout.splitlines()
    assert ran.returncode == 0 and len(rows) == 5, ran.stderr
    assert any(re.match(r" +\S+ ms +block=8   computes something else than most of them$", row) for row in rows)
    assert any(re.match(r" +-- +block=-4   error TW\d+ ", row) for row in rows)


def test_what_tune_is_told_wrongly(folder):
    sizes = ("kernels.py:product", "M=64", "N=64", "K=64")
    for words, status, answer in [
        (("kernels.py:add", "N=8"), 1, "error TW1080 build: 'add' has no configurations to choose from"),
        ((*sizes, "--over", "blok=1,2"), 2, "'product' takes no blok; it has M, N, K, block, dtype"),
        ((*sizes, "--over", "block"), 2, "--over 'block' is no NAME=VALUE,VALUE"),
        ((*sizes, "block=32"), 2, "block is what is tuned: it has no value of its own"),
        ((*sizes[:3],), 1, "error TW4001 launch: product: missing a required argument: 'K'"),
    ]:
        ran = tw(folder, "tune", *words)
        assert (ran.returncode, ran.stdout) == (status, "") and answer in ran.stderr and "Traceback" not in ran.stderr, (words, ran.stderr)


# ---- check


def test_check(folder):
    text = said(folder, "check", "kernels.py:product", "M=64", "N=64", "K=64")
    assert re.fullmatch(r"product: the engines agree: interpreter \S+ ms, cpu \S+ ms, the simulator as sm_80 \S+ ms, the simulator as sm_90a \S+ ms\n", text)
    rows = said(folder, "check", "kernels.py", "M=64", "N=64", "K=64", "f=0.5").splitlines()
    assert [row.partition(": the engines agree")[0] for row in rows] == ["add", "product", "scale"]
    outcome = json.loads(said(folder, "check", "kernels.py:scale", "M=10", "f=2", "--json"))
    assert outcome["program"] == "scale" and [e["engine"] for e in outcome["engines"]][:2] == ["interpreter", "cpu"]


def test_check_finds_what_an_engine_finds(folder):
    ran = tw(folder, "check", "racing.py")
    assert ran.returncode == 1 and "halves: error TW6003" in ran.stdout and re.search(r"racing\.py:9\b", ran.stdout)
    row = json.loads(tw(folder, "check", "racing.py", "--json").stdout)
    assert row["program"] == "halves" and row["error"]["code"] == "TW6003" and row["error"]["line"] == 9


def test_check_says_what_it_lacks(folder):
    ran = tw(folder, "check", "kernels.py:scale", "M=8")
    assert ran.returncode == 1 and "TW4001" in ran.stdout and "nothing says what f is" in ran.stdout and "f=64" in ran.stdout
    ran = tw(folder, "check", "kernels.py:scale", "M=8", "f=1", "Q=2")
    assert ran.returncode == 2 and "no kernel takes Q" in ran.stderr
    ran = tw(folder, "check", "kernels.py:scale", "M=8.5", "f=1")
    assert ran.returncode == 1 and "TW4010" in ran.stdout and "'M' is int32, but is given 8.5" in ran.stdout


def test_check_of_engines_that_do_not_take_it(folder):
    text = said(folder, "check", "kernels.py:add", "N=100", TILEWRIGHT_CXX="/nowhere")
    assert "the engines agree: interpreter" in text and "\n  cpu does not take it: TILEWRIGHT_CXX is '/nowhere'" in text


# ---- run


@alone
@needs_torch
def test_run_without_a_gpu(folder):
    ran = tw(folder, "run", "--without-gpu", "for_a_gpu.py", "--size", "4")
    assert (ran.stdout, ran.stderr) == ("right ['--size', '4'] (9, 0) cuda\n", "no GPU: programs for cuda run on the CPU\n")
    assert "1 passed" in said(folder, "run", "--without-gpu", "-m", "pytest", "-q", "-p", "no:cacheprovider", "for_a_gpu.py")


@alone
def test_run_shows_a_mistake_as_python_does(folder):
    (folder / "fails.py").write_text("def inner():\n    raise KeyError('mine')\n\nprint('before')\ninner()\n")
    ran, python = tw(folder, "run", "fails.py"), subprocess.run([sys.executable, "fails.py"], cwd=folder, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr.replace(f'"{folder}/', '"')) == (python.returncode, python.stdout, python.stderr.replace(f'"{folder}/', '"'))
    (folder / "refused.py").write_text(RACING + "\nimport tilewright as tw\nprint(tw.compile(halves, engine='nothing'))\n")
    ran = tw(folder, "run", "refused.py")
    assert ran.returncode == 1 and "TW1080" in ran.stderr and "command/" not in ran.stderr and "runpy" not in ran.stderr


def test_run_leaves_the_program_its_words(folder):
    (folder / "words.py").write_text("import sys, tilelang\nprint(sys.argv, __name__)\nraise SystemExit(7)\n")
    ran = tw(folder, "run", "words.py", "--without-gpu", "-h")
    assert (ran.returncode, ran.stdout) == (7, "['words.py', '--without-gpu', '-h'] __main__\n")
    ran = tw(folder, "run", "-m", "words", "-x")
    assert ran.returncode == 7 and ran.stdout.endswith("words.py', '-x'] __main__\n")
    for short in (["words.py"], ["-m", "words"], ["--without-gpu", "words.py"]):  # without the word
        assert tw(folder, *short).returncode == 7
    assert tw(folder, "run").returncode == 2 and "there is no file 'nothing.py'" in tw(folder, "run", "nothing.py").stderr


CONFTEST = "import torch\nassert torch.cuda.is_available()\nANSWER = torch.zeros(1, device='cuda')\n"


@alone
@needs_torch
def test_pytest_without_a_gpu(folder):
    """The plugin is there before the project's own conftest.py; without the option it changes nothing."""
    (folder / "conftest.py").write_text(CONFTEST)
    words = ["-m", "pytest", "-p", "tilewright.pytest_plugin", "-p", "tilewright.as_tilelang", "-p", "no:cacheprovider", "for_a_gpu.py"]
    ran = subprocess.run([sys.executable, *words, "--without-gpu"], cwd=folder, capture_output=True, text=True, env=environment())
    assert ran.returncode == 0 and "1 passed" in ran.stdout and "no GPU: programs for cuda run on the CPU" in ran.stdout, ran.stdout + ran.stderr
    if not tilewright._native.device_count():
        ran = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, env=environment())
        assert ran.returncode != 0 and "no GPU" not in ran.stdout


def test_the_plugin_is_light(tmp_path):
    """pytest imports it in every project: it brings no torch along."""
    code = "import sys, tilewright.pytest_plugin; print('torch' in sys.modules, 'tilewright.pretended_gpu' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert ran.stdout == "False False\n", ran.stderr


@alone
@needs_torch
def test_notebooks_without_a_gpu(folder):
    code = ("import tilewright\ntilewright.without_gpu('sm_80')\ntilewright.without_gpu()\ntilewright.install_as_tilelang()\n"
            "import torch, for_a_gpu\nfor_a_gpu.test_double()\nprint(torch.cuda.get_device_capability())")  # fmt: skip
    for changed, engine in (({}, "cpu"), ({"TILEWRIGHT_CXX": "/nowhere"}, "interpreter"), ({"TILEWRIGHT_ENGINE": "interpreter"}, "interpreter")):
        asked = f"{code}\nprint(for_a_gpu.double(8).engine)"
        ran = subprocess.run([sys.executable, "-c", asked], cwd=folder, capture_output=True, text=True, env=environment(**changed))
        assert ran.stdout == f"(8, 0)\n{engine}\n", ran.stderr


@alone
@needs_torch
def test_the_simulator_is_the_device_that_is_described(tmp_path):
    """A program that asks for the device's capability has its instructions there."""
    (tmp_path / "barriers.py").write_text(
        "import tilewright\ntilewright.without_gpu('sm_90a')\nimport torch\nimport tilewright.language as T\n"
        "@T.prim_func\ndef main(A: T.Tensor((64,), 'float32'), B: T.Tensor((64,), 'float32')):\n"
        "    with T.Kernel(1, threads=256):\n        s, ready = T.alloc_shared((64,), 'float32'), T.alloc_barrier(128)\n"
        "        t = T.get_thread_binding()\n        if t < 128:\n            if t < 64:\n                s[t] = A[t]\n"
        "            T.barrier_arrive(ready)\n        else:\n            T.barrier_wait(ready, 0)\n            if t < 192:\n"
        "                B[t - 128] = s[t - 128] * 2\n"
        "a, b = torch.arange(64.0, device='cuda'), torch.zeros(64, device='cuda')\n"
        "for chosen in ({}, {'engine': 'simulator'}, {'target': 'simulator'}, {'target': 'cuda'}):\n"
        "    kernel = tilewright.compile(main, **chosen)\n    kernel(a, b.zero_())\n"
        "    print(kernel.engine, kernel.arch, torch.equal(b, a * 2))\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "barriers.py"], cwd=tmp_path, capture_output=True, text=True, env=environment(TILEWRIGHT_ENGINE="simulator"))
    assert ran.stdout == "simulator sm_90a True\n" * 4, ran.stderr + ran.stdout


@alone
@needs_torch
def test_products_of_tfloat32_without_a_gpu(tmp_path):
    """Where a program allows them, in backward passes too."""
    (tmp_path / "products.py").write_text(
        "import tilewright\ntilewright.without_gpu()\nimport torch\n"
        "x, ones = torch.full((4, 4), 1 + 2.0**-12, device='cuda', requires_grad=True), torch.ones(4, 4, device='cuda')\n"
        "def both():\n    x.grad = None\n    out = torch.einsum('ij,jk->ik', x, x)\n    (out + 0).backward(ones)\n"
        "    return out[0, 0].item(), x.grad[0, 0].item(), (x.double() @ x.double())[0, 0].item() > 4\n"
        "print(both())\ntorch.backends.cuda.matmul.allow_tf32 = True\nprint(both())\n"
        "torch.set_float32_matmul_precision('highest')\nprint(both())\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "products.py"], cwd=tmp_path, capture_output=True, text=True, env=environment())
    exact, rounded = "(4.001953125, 8.001953125, True)\n", "(4.0, 8.0, True)\n"
    assert ran.stdout == exact + rounded + exact, ran.stderr


@alone
@needs_torch
def test_tensors_of_a_pretended_device_say_so(tmp_path):
    """Programs assert it of their arguments."""
    (tmp_path / "asks.py").write_text(
        "import tilewright\ntilewright.without_gpu()\nimport torch\n"
        "x = torch.ones(4, device='cuda')\nassert x.is_cuda and (x * 2).is_cuda and torch.nn.Linear(2, 2).cuda().weight.is_cuda\n"
        "assert torch.nn.functional.pad(x, (1, 1), 'replicate' if x.dim() > 1 else 'constant').sum().item() == 4\nprint(x)\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "asks.py"], cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert ran.stdout == "tensor([1., 1., 1., 1.])\n", ran.stderr


def test_without_torch_kernels_alone_are_moved(folder):
    """torch is not looked for where it is not installed."""
    (folder / "torch_is_away.py").write_text(
        "import importlib.util, sys\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "import tilewright\ntilewright.without_gpu()\nimport numpy, kernels\n"
        "print(kernels.add(numpy.ones(5, 'float32'), numpy.ones(5, 'float32')).tolist(), 'torch' in sys.modules)\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "torch_is_away.py"], cwd=folder, capture_output=True, text=True, env=environment())
    assert ran.stdout == "[2.0, 2.0, 2.0, 2.0, 2.0] False\n", ran.stderr


# ---- which kernel is meant


def test_parts_of_a_target():
    assert kernels._parts("a/k.py:add") == ("a/k.py", "add")
    assert kernels._parts("k.py") == ("k.py", "")
    assert kernels._parts("C:/k.py") == ("C:/k.py", "")


# ---- docs/command.md


def blurred(text):
    """Lines without the figures that a machine or a version has of its own."""
    return [re.sub(r"\(avx.*\)", "(...)", re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "0", re.sub(" +", " ", row))) for row in text.splitlines()]


def test_the_page_is_right(tmp_path):
    page = (pathlib.Path(__file__).parents[2] / "docs/command.md").read_text()
    (tmp_path / "kernels.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    shown = re.findall(r"```\n\$ tilewright (.*?)\n(.*?)```", page, re.DOTALL)
    assert [words.split()[0] for words, _ in shown] == ["doctor", "explain", "cost", "plot", "check", "tune"]
    for words, text in shown[1:]:
        ran = blurred(said(tmp_path, *words.split()))
        for row in blurred(text):
            assert row == "..." or row in ran, (row, ran)


# ---- values that no call could have


WRONG_VALUES = {"M=4294967306": "TW4010", "M=2147483648": "TW4010", "M=2147483640": "TW4010", "M=99999999999999999999": "TW4010", "M=1.5": "TW4010", "M=-5": "TW4016"}


@pytest.mark.parametrize("word", ["explain", "check", "cost", "studio"])
def test_values_that_no_call_could_have(folder, word, monkeypatch, capsys):
    """They were cut to 32 bits, or computed with as they are."""
    monkeypatch.chdir(folder)
    (folder / "scale.tile").write_text(TILE)
    for value, code in WRONG_VALUES.items():
        for file in ("kernels.py:scale", *(["scale.tile"] if word != "explain" else [])):
            more = ["f=2.0"] if word == "check" and file != "scale.tile" else []
            assert command.main([word, file, value, *more]) == 1
            said = capsys.readouterr()
            assert f"error {code} " in said.out + said.err and value[2:] in said.out + said.err
    assert not [file.name for file in folder.iterdir() if file.suffix == ".html"]


TILE = """program scale {
  symbol M: int32
  param A: float32[M]
  launch main(bx: (M + 31) // 32) threads(tx: 32) {
    map i in 32 {
      A[bx * 32 + i] = 0.0
    }
  }
}
"""


def test_reports_of_calls_that_cannot_be(folder, monkeypatch):
    space = {"__name__": "kernels"}
    monkeypatch.chdir(folder)
    exec(compile(KERNELS, str(folder / "kernels.py"), "exec"), space)
    kernel = tilewright.compile(space["scale"], engine="interpreter")
    for path, arguments, named, code in (("r.html", (), {"nope": 3}, "TW1080"), ("r.html", (), {"M": 2**32 + 10}, "TW4010"), ("no/r.html", (), {}, "TW7004"),
                                         ("r.html", (1.0,), {}, "TW4001")):  # fmt: skip
        with pytest.raises(tilewright.TilewrightError) as error:
            kernel.report(path, *arguments, **named)
        assert error.value.code == code
    assert not (folder / "r.html").exists()


# ---- files


BROKEN = {"syntax.py": "import tilewright\ndef f(:\n", "raises.py": "import tilewright\n1 / 0\n", "imports.py": "import nosuch\n",
          "leaves.py": "import sys\nsys.exit()\n", "latin.py": b"x = '\xe9'\n", "zero.py": "x = 1\0\n"}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_cannot_be_imported(folder, name):
    text = BROKEN[name]
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    ran = tw(folder, "explain", name)
    assert ran.returncode == 1 and ran.stderr.startswith("error TW7003 ") and f"--> {name}" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
    error = json.loads(tw(folder, "explain", name, "--json").stdout)["error"]
    assert error["code"] == "TW7003" and error["file"] == name and error["help"] and (error["line"] >= 1 or name == "latin.py")


def test_texts_that_are_no_text(folder):
    (folder / "random.tile").write_bytes(b"\x01\x87\x00\xff")
    (folder / "zero.tile").write_bytes(b"program\0")
    for name in ("random.tile", "zero.tile"):
        ran = tw(folder, "check", name)
        assert ran.returncode == 1 and "error TW7003" in ran.stdout + ran.stderr and "Traceback" not in ran.stderr
    ran = tw(folder, "check", ".")
    assert ran.returncode == 1 and "'.' is a folder" in ran.stdout + ran.stderr


def test_a_file_that_says_its_encoding(folder):
    (folder / "latin.py").write_bytes("# coding: latin-1\n# é\n".encode("latin-1") + KERNELS.encode())
    assert "scale on" in said(folder, "explain", "latin.py:scale", "M=64")


@pytest.mark.parametrize("name", ["my-kernel", "01_add", "wéird näme", "k l", "math", "types", "abc", "operator", "tilewright", "random", "select", "copy"])
def test_names_of_files(folder, name):
    """Any name that Python runs, those of its own library too."""
    (folder / "named").mkdir()
    (folder / "named" / f"{name}.py").write_text(KERNELS)
    assert "scale on" in said(folder, "explain", f"named/{name}.py:scale", "M=64")


def test_outputs_that_cannot_be_written(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    source = (folder / "kernels.py").read_text()
    (folder / "linked.py").symlink_to("kernels.py")
    scale = ("kernels.py:scale", "M=64")
    for words in (("studio", *scale, "-o", "."), ("studio", *scale, "-o", "kernels.py"), ("studio", *scale, "-o", "linked.py"), ("studio", *scale, "--simulate", "--trace", "no/t"),
                  ("plot", *scale, "--out", "kernels.py"), ("cost", *scale, "--picture", "no/a.svg"), ("cost", *scale, "--picture", "kernels.py"),
                  ("reduce", "kernels.py", "--err-msg", "boom", "-o", "no/z.py"), ("compat", "kernels.py", "--out", "kernels.py"),
                  ("tune", "kernels.py:product", "M=64", "N=64", "K=64", "--log", "no/log")):  # fmt: skip
        assert command.main(list(words)) == 1, words
        said = capsys.readouterr()
        assert "error TW7004 " in said.err and "help: " in said.err, said.err
    assert (folder / "kernels.py").read_text() == source and not (folder / "scale.html").exists()


def test_the_program_that_is_reduced_is_kept(folder):
    (folder / "wrong.py").write_text("raise SystemExit('boom')\n")
    (folder / "linked.py").symlink_to("wrong.py")
    os.link(folder / "wrong.py", folder / "hard.py")
    (folder / "small.py.part").write_text("raise SystemExit('boom')\n")
    for source, output in (("wrong.py", "wrong.py"), ("wrong.py", "./linked.py"), ("wrong.py", "hard.py"), ("small.py.part", "small.py")):
        ran = tw(folder, "reduce", source, "--err-msg", "boom", "-o", output)
        assert ran.returncode == 2 and "is the program itself, which would be lost" in ran.stderr
        assert (folder / source).read_text() == "raise SystemExit('boom')\n"


def test_interrupted(folder, monkeypatch):
    def interrupt(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "explain", interrupt)
    assert command.main(["explain", "kernels.py"]) == 130


# ---- words and architectures


def test_words_of_the_tool(capsys):
    for word in ("compile", "opt", "simulate", "fuzz"):
        assert command.main([word, "x.tile"]) == 2 and "the tool of a build from source has it" in capsys.readouterr().err
    assert command.main(["help"]) == 0 and "tilewright WORD --help" in capsys.readouterr().out


def test_architectures(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert command.main(["explain", "kernels.py:scale", "M=64", "--arch", "cpu"]) == 0
    assert "scale on the cpu engine" in capsys.readouterr().out
    for words, said in ((("plot", "--arch", "cpu"), "'cpu' is no GPU"), (("build", "--arch", "CPU", "-o", "out"), "'CPU' is no architecture: cpu (this"),
                        (("build", "--arch", "cpu,gpu", "-o", "out"), "'gpu' is no architecture")):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            command.main([words[0], "kernels.py:scale", *words[1:]])
        assert left.value.code == 2 and said in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_puzzles_by_name_and_answers_that_leave(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert command.main(["puzzles", "copy"]) == 0 and "puzzle_01_copy.py" in capsys.readouterr().out
    assert command.main(["puzzles", "check", "1", "nofile.py"]) == 1 and "there is no file 'nofile.py'" in capsys.readouterr().err
    (folder / "leaves.py").write_text("raise SystemExit\n")
    ran = tw(folder, "puzzles", "check", "1", "leaves.py")
    assert ran.returncode == 1 and "SystemExit" in ran.stdout and "leaves.py:1" in ran.stdout


def test_compat_says_what_it_leaves_out(folder):
    (folder / "plain").mkdir()
    (folder / "plain" / "script.py").write_text("import tilelang\n")
    ran = tw(folder, "compat", "plain")
    assert ran.returncode == 2 and "script.py" in ran.stdout and "no program is chosen" in ran.stdout
    ran = tw(folder, "compat", "no/such")
    assert ran.returncode == 2 and "there is no file or folder 'no/such'" in ran.stderr
