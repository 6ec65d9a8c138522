"""Programs for TileLang that start processes of Python, which import tilelang too."""
import json
import os
import subprocess
import sys
import textwrap

import pytest
import tilewright

PACKAGE = os.path.dirname(os.path.dirname(tilewright.__file__))
# What each child says of itself: whose tilelang it has, and what it runs on.
PROGRAM = """
import multiprocessing, os, subprocess, sys
import tilelang

SAID = "import tvm, tilelang, tilelang.language as T, tilelang.math; print(tilelang.__tilewright__, tvm.DataType(T.float16).bits, tilelang.math.cdiv(7, 2))"

def started(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)

def in_process(number):
    import tilelang.language as T
    return number, tilelang.__tilewright__, str(T.float16)

def check():
    run = started("-c", SAID)
    assert run.stdout.split() == ["True", "16", "4"], run.stderr
    run = started("-m", "tilelang.autodd", "--help")
    assert run.returncode == 0 and "tilelang.autodd" in run.stdout, run.stderr
    run = started("-c", f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {SAID!r}]).returncode)")
    assert run.stdout.split() == ["True", "16", "4"], run.stderr
    run = started("-m", "tilewright", "run", "-m", "tilelang.math")
    assert run.returncode == 0, run.stderr
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(in_process, [3]) == [(3, True, "float16")]
"""


def python(*arguments, cwd=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TILEWRIGHT")}
    # what this process was given, but for the folders that a test before this one put there for its own children
    given = [f for f in environment.get("PYTHONPATH", "").split(os.pathsep) if os.path.join("tilewright", "children") not in f]
    path = os.pathsep.join([PACKAGE, *given])
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env={**environment, "PYTHONPATH": path})


def test_children_of_scripts(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + '\nif __name__ == "__main__":\n    check()\n    print("right")\n')
    run = python("-m", "tilewright", "run", file)
    assert run.stdout == "right\n", run.stderr


def test_children_of_tests(tmp_path):
    (tmp_path / "test_program.py").write_text(PROGRAM + "\ndef test_children():\n    check()\n")
    run = python("-m", "pytest", "-q", "-p", "tilewright.as_tilelang", "-p", "no:cacheprovider", tmp_path, cwd=tmp_path)
    assert "1 passed" in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("kind", ["script", "tests"])
def test_children_of_programs_that_compat_drives(tmp_path, kind):
    ends = {"script": ("program.py", '\nif __name__ == "__main__":\n    check()\n'), "tests": ("test_program.py", "\ndef test_children():\n    check()\n")}
    name, end = ends[kind]
    (tmp_path / name).write_text(PROGRAM + end)
    run = python("-m", "tilewright", "compat", name, "--out", "out", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert [r["status"] for r in json.loads((tmp_path / "out" / "report.json").read_text())["results"].values()] == ["pass"]


def test_children_are_without_a_gpu_too(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "test_program.py"
    file.write_text(textwrap.dedent("""
        import subprocess, sys
        def test_child():
            said = "import tilelang, torch; print(torch.cuda.get_device_capability(), torch.zeros(2, device='cuda').sum().item())"
            run = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True)
            assert run.stdout.split() == ["(9,", "0)", "0.0"], run.stderr
        if __name__ == "__main__":
            test_child()
    """))
    run = python("-m", "tilewright", "run", "--without-gpu", file)
    assert run.returncode == 0, run.stderr
    run = python("-m", "pytest", "-q", "-p", "tilewright.as_tilelang", "-p", "tilewright.pytest_plugin", "--without-gpu", file, cwd=tmp_path)
    assert "1 passed" in run.stdout, run.stdout + run.stderr


def test_every_module_of_its_own_can_be_run(tmp_path):
    """What is a module of tilewright itself, under another name, cannot: most of these are packages without __main__ in TileLang."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent("""
        import runpy, sys
        from tilewright import as_tilelang
        names = [name for name in as_tilelang._modules() if name.startswith("tilelang.") and name != "tilelang.autodd"]
        names = [name for name in names if not sys.modules[name].__name__.startswith("tilewright")]
        for name in names:
            runpy.run_module(name, run_name="__main__")
        print(len(names) > 50)
    """))
    run = python("-m", "tilewright", "run", file)
    assert run.stdout == "True\n", run.stderr


def test_processes_of_nobody_are_left_alone(tmp_path):
    """The package alone gives no tilelang, and an installed one is found by whoever is not started by such a program."""
    real = tmp_path / "tilelang"
    real.mkdir()
    (real / "__init__.py").write_text("jit = 'of TileLang'\n")
    run = python("-c", "import tilewright, tilelang; print(tilelang.jit)", cwd=tmp_path)
    assert run.stdout == "of TileLang\n", run.stderr
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    run = python("-c", "import sys, tilewright; print([p for p in sys.path if 'children' in p])", cwd=folder)
    assert run.stdout == "[]\n", run.stderr


def test_processes_beside_an_installed_tilelang_find_that_one(tmp_path):
    """force=True hides it in this process alone: whoever takes our modules away, and whom it starts, find the installed one."""
    (tmp_path / "tilelang.py").write_text("original = True\n")
    code = textwrap.dedent("""
        import subprocess, sys
        sys.path.insert(0, sys.argv[1])
        import tilewright
        tilewright.install_as_tilelang(force=True)
        import tilelang
        print(hasattr(tilelang, "jit"))
        for name in [m for m in sys.modules if m.partition(".")[0] in ("tilelang", "tvm")]:
            del sys.modules[name]
        import tilelang
        print(getattr(tilelang, "original", False))
        started = subprocess.run([sys.executable, "-c", "import tilelang; print(tilelang.original)"], cwd=sys.argv[1])
    """)
    run = python("-c", code, str(tmp_path))
    assert sorted(run.stdout.split()) == ["True"] * 3, run.stdout + run.stderr
