"""The migration report: programs are driven as their suites drive them, in processes of their own."""
import csv
import json
import os
import subprocess
import sys

import pytest
import tilewright
from tilewright.compat import programs, report, running

SCALE = """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1])
def scaled(N, factor):
    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] * factor
    return main
"""
FILES = {
    "pyproject.toml": "",
    "shared.py": "FACTOR = 3\n",
    "a/script.py": SCALE + "from shared import FACTOR\nassert (scaled(8, FACTOR)(np.ones(8, 'float32')) == 3).all()\n",
    "a/stops.py": SCALE + "scaled(8, 2)(np.ones(9, 'float32'))\n",
    "a/marks.py": SCALE + "for f in (1, 2):\n    print('✅' if scaled(8, f)(np.ones(8, 'float32')).sum() == 8 else '❌')\n",
    "a/sleeps.py": "import tilelang, time\ntime.sleep(60)\n",
    "a/crashes.py": "import tilelang, os\nos.abort()\n",
    "a/exits.py": "import tilelang\nraise SystemExit(2)\n",
    "a/misses.py": SCALE + "T.no_such_operation(1)\n",
    "a/shared_too_large.py": SCALE.replace("for i", "s = T.alloc_shared((1 << 20,), 'float32')\n            s[0] = A[0]\n            for i")
    + "scaled(8, 3)(np.ones(8, 'float32'))\n",
    "a/finds_no_room.py": "import tilelang, os\nif not os.path.exists('room'):\n    open('room', 'w').close()\n"
    "    raise type('OutOfMemoryError', (RuntimeError,), {})('CUDA out of memory')\n",
    "t/test_many.py": SCALE + "import pytest\n"
    "@pytest.mark.parametrize('n', range(40))\n"
    "def test_n(n):\n    assert scaled(8, n)(np.ones(8, 'float32')).sum() == 8 * n\n",
    "t/test_mixed.py": SCALE + "import pytest, tilelang.testing\n"
    "def test_right(): assert scaled(8, 2)(np.ones(8, 'float32')).sum() == 16\n"
    "def test_wrong(): assert np.allclose(scaled(8, 2)(np.ones(8, 'float32')), 1)\n"
    "def test_text(): assert '__no_such' in scaled(8, 2).get_kernel_source()\n"
    "def test_own_count():\n    other = 'broadcast_var'.count('tl_')\n    there = scaled(8, 2).get_kernel_source().count('float')\n"
    "    assert there == -1\n"
    "@pytest.mark.skip\ndef test_skipped(): pass\n",
    "t/test_refuses.py": SCALE + "import pytest\ndef test_refused():\n    with pytest.raises(Exception):\n        scaled(8, 2)\n",
    "t/test_own_text.py": SCALE + "import pytest\n"
    "def test_right(): assert scaled(8, 2)(np.ones(8, 'float32')).sum() == 16\n"
    "def test_text(): assert 'tl::no_such' in scaled(8, 2).get_kernel_source()\n"
    "def test_statement():\n    source = scaled(8, 2).get_kernel_source()\n    assert '__no_such' in source\n"
    "    assert '((int)threadIdx.x) < 8' in source\n"
    "def test_place(): scaled(8, 2).get_kernel_source().index('tma_load(')\n"
    "def test_count():\n    source = scaled(8, 2).get_kernel_source()\n    there = source.count('broadcast_var')\n    assert there == 4\n"
    "@pytest.mark.parametrize('word', ['__tl_cvt'])\n"
    "def test_word(word): assert word in scaled(8, 2).get_kernel_source(), 'it is not there'\n",
    "t/test_name.py": "import tilelang, unittest\ndef test_name(): tl_latency = unittest.TestCase().fail('no')\n",
    "t/test_skips.py": "import pytest, tilelang\n@pytest.mark.skip\ndef test_skipped(): pass\n",
    "t/test_import.py": "import tilelang.no_such_part\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The rows of the report on FILES, by path, and the folder."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    rows = [f"{n}\t{'host-check' if n == 'a/stops.py' else 'pytest' if n[0] == 't' else 'main'}" for n in FILES if "/" in n]
    (folder / "list.tsv").write_text("path\trole\n" + "\n".join(rows) + "\n")
    run = compat(folder, "--list", "list.tsv", "--cases", "10", "--limit", "15")
    assert run.returncode == 1 and not run.stderr, run.stderr
    with open(folder / "compat/report.tsv", newline="") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}, folder, run.stdout


def compat(folder, *arguments):
    path = os.path.dirname(os.path.dirname(tilewright.__file__))
    environment = {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_ENGINE": "interpreter"}
    command = [sys.executable, "-m", "tilewright.compat", "--jobs", "4", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "name, status, passed, ran",
    [
        ("a/script.py", "pass", 1, 1),  # imports what lies in the project's folder
        ("a/stops.py", "pass", 1, 1),  # is to be refused, and is
        ("a/marks.py", "fail", 1, 2),  # leaves with 0, and prints a mark for each check
        ("a/sleeps.py", "timeout", 0, 0),
        ("a/crashes.py", "crash", 0, 0),
        ("a/exits.py", "fail", 0, 1),  # with a code that is none of ours
        ("a/misses.py", "fail", 0, 1),
        ("a/finds_no_room.py", "pass", 1, 1),  # beside the others, but alone it does
        ("t/test_many.py", "pass", 10, 10),
        ("t/test_mixed.py", "fail", 1, 4),
        ("t/test_own_text.py", "text", 1, 6),
        ("t/test_skips.py", "skip", 0, 0),
        ("t/test_import.py", "fail", 0, 1),
    ],
)
def test_results(found, name, status, passed, ran):
    row = found[0][name]
    assert (row["status"], int(row["passed"]), int(row["ran"])) == (status, passed, ran), row


@pytest.mark.parametrize(
    "name, cause",
    [
        ("a/misses.py", "not there: TW1102 Tilewright has no T.no_such_operation"),
        ("a/crashes.py", "crash: SIGABRT"),
        ("a/exits.py", "exception: SystemExit: N"),
        ("t/test_import.py", "import: ModuleNotFoundError: No module named 'tilelang.no_such_part'"),
        ("t/test_mixed.py", "wrong numbers"),
        ("t/test_mixed.py", "generated text"),
        ("t/test_own_text.py", "text of TileLang"),
        ("t/test_name.py", "assertion: AssertionError: no"),
        ("t/test_refuses.py", "not refused: Failed: DID NOT RAISE"),
    ],
)
def test_causes(found, name, cause):
    assert cause in found[0][name]["causes"]


def test_what_people_read(found):
    rows, folder, printed = found
    page = (folder / "compat/report.html").read_text()
    assert "T.no_such_operation" in page and "test_mixed.py" in page and "by tier" not in page.lower()
    assert "1 cases fail at a look at other generated text" in printed
    assert "5 cases fail at a look at text that only TileLang generates" in printed and "1 text" in printed
    assert "causes, by programs" in printed and len(rows) == 16
    assert "% of those that look at no text of TileLang)" in printed
    assert (folder / "compat/logs/a__crashes.py.log").exists()


def test_compiling_for_a_gpu_that_is_not_here(found):
    run = compat(found[1], "a/script.py", "a/shared_too_large.py", "--compile-for", "sm_90a", "--out", "also")
    if "NVRTC" in run.stdout:
        pytest.skip("needs NVRTC")
    assert "1 pass, 1 fail" in run.stdout and "bytes of shared memory" in run.stdout, run.stdout


def test_one_path_a_line_and_folders_that_imports_begin_in(tmp_path):
    for name, text in {
        "p/pyproject.toml": "",
        "p/src/inside.py": "FACTOR = 3\n",
        "p/tests/test_inside.py": "import pytest, tilelang\nfrom inside import FACTOR\n"
        "@pytest.mark.parametrize('n', range(5))\ndef test_n(n): assert n != 4\n",
        "list": "p/tests/test_inside.py\n\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run = compat(tmp_path, "--list", "list", "--path", "src", "--cases", "3")
    report = json.loads((tmp_path / "compat/report.json").read_text())
    row = report["results"]["p/tests/test_inside.py"]
    assert report["programs"] == {"fail": 1} and (row["status"], row["passed"], row["ran"]) == ("fail", 2, 3), run.stdout
    assert list(row["causes"]) == ["assertion: AssertionError: assert 4 != 4 [def test_n(n): assert n != 4]"]  # the last case is one of three


def test_programs_of_a_folder(found):
    kinds = {p.name: p.kind for p in programs.of_paths([found[1]])}
    assert kinds["t/test_many.py"] == "tests" and "shared.py" not in kinds


def test_what_is_installed_is_no_program_of_a_project(tmp_path):
    text = 'import tilelang\nif __name__ == "__main__":\n    pass\n'
    for file in ("own.py", "deep/own.py", "env/lib/theirs.py", ".cache/theirs.py", "lib/site-packages/theirs.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "env/pyvenv.cfg").write_text("")
    assert [p.name for p in programs.of_paths([tmp_path])] == ["deep/own.py", "own.py"]
    assert [p.name for p in programs.of_paths([tmp_path / "env/lib"])] == ["theirs.py"]


def test_programs_that_say_cuda_run_without_one(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "device.py").write_text(
        SCALE.replace("import numpy as np", "import torch")
        + "x = torch.ones(8, device='cuda'); y = scaled(8, 2)(x).cuda(); torch.cuda.synchronize()\n"
        "assert torch.cuda.get_device_capability() == (9, 0) and (y.to('cuda') == torch.full((8,), 2.0, device=torch.device('cuda:0'))).all()\n"
        "begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\n"
        "begin.record(); end.record(); assert begin.elapsed_time(end) >= 0\n"
        "assert isinstance(torch.cuda.get_device_properties(0), torch.cuda._CudaDeviceProperties)\n"
        "from tilelang.profiler import do_bench\n"
        "assert all(do_bench(lambda: scaled(8, 2)(x), warmup=1, rep=1, backend=b) > 0 for b in ('event', 'cupti', 'cudagraph'))\n"
        "torch.manual_seed(3)\n"
        "with torch.random.fork_rng(devices=['cuda:0']):\n    one = torch.randn(4, device='cuda')\n"
        "assert (torch.randn(4, device='cuda') == one).all()\n"
    )
    run = compat(tmp_path, "device.py", "--without-gpu", "--engine", "interpreter")
    assert run.returncode == 0, run.stdout


def test_options_of_a_project_that_an_installed_plugin_has_too(tmp_path):
    """As pytest-benchmark and TileKernels' own plugin: --benchmark-verbose."""
    files = {
        "site/installed.py": "def pytest_addoption(parser):\n    parser.addoption('--one-of-two')\n",
        "site/installed-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: installed\nVersion: 1.0\n",
        "site/installed-1.0.dist-info/entry_points.txt": "[pytest11]\ninstalled = installed\n",
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--one-of-two', default=3)\n",
        "tests/test_it.py": "import tilelang\ndef test_it(request):\n    assert request.config.getoption('--one-of-two') == 3\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run = compat(tmp_path, "tests", "--path", str(tmp_path / "site"), "--engine", "interpreter")
    assert run.returncode == 0 and "1 pass" in run.stdout, run.stdout


def test_causes_are_grouped_by_what_they_say():
    def failed(name, text):
        program = programs.Program(name, None, None, "script")
        return running.Result(program, "fail", causes=[{"kind": "refused", "cause": text, "place": "", "line": ""}])

    rows = [failed("a", "TW8203 the block needs 300000 bytes"), failed("b", "TW8203 the block needs 400000 bytes"), failed("c", "TW1 'x'")]
    assert [(text, len(by)) for text, by, _ in report.groups(rows)] == [("refused: TW8203 the block needs N bytes", 2), ("refused: TW1 '…'", 1)]


def test_tests_that_use_tilelang_by_a_package_of_theirs(tmp_path):
    files = {
        "pyproject.toml": "",
        "kernels/__init__.py": "",
        "kernels/scale.py": "import tilelang\n",
        "other/__init__.py": "",
        "tests/test_scale.py": "from kernels.scale import f\ndef test_it():\n    pass\n",
        "tests/test_other.py": "import other\ndef test_it():\n    pass\n",
        "tests/module.py": "import kernels\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [p.name for p in programs.of_paths([tmp_path / "tests"])] == ["test_scale.py"]


def test_conftests_of_folders_above_a_test_are_the_projects(tmp_path):
    """Where no file says where the project begins, pytest alone would look no further than the test's own folder."""
    files = {
        "top/conftest.py": "import pytest\n@pytest.fixture\ndef three(): return 3\n",
        "top/python/language/test_it.py": "import tilelang\ndef test_it(three): assert three == 3\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "list.tsv").write_text("path\trole\ntop/python/language/test_it.py\tpytest\n")
    run = compat(tmp_path, "--list", "list.tsv")
    assert run.returncode == 0 and "1 pass" in run.stdout, run.stdout


def test_what_is_skipped_takes_no_place_of_a_sample_and_is_told(tmp_path):
    marked = "    for i, item in enumerate(items):\n        if i % 2:\n            item.add_marker(pytest.mark.skip(reason='need --slow'))\n"
    (tmp_path / "conftest.py").write_text("import pytest\ndef pytest_collection_modifyitems(items):\n" + marked)
    (tmp_path / "test_it.py").write_text(
        "import pytest, tilelang\n@pytest.mark.parametrize('n', range(40))\ndef test_n(n):\n    if n == 38:\n        pytest.skip('no such case')\n"
    )
    run = compat(tmp_path, "test_it.py", "--cases", "12")
    assert "pass     11/11" in run.stdout and "(1 skipped: no such case)" in run.stdout, run.stdout
    run = compat(tmp_path, "test_it.py", "--cases", "0")
    assert "pass     19/19" in run.stdout and "21 cases skipped: need --slow (20), no such case (1)" in run.stdout, run.stdout
