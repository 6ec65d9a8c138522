"""Every Python block of every page runs as a script, as a module of pytest and as cells of a notebook: they are compiled in three ways.
What the pages leave is looked at in test_documents.py, test_tutorials.py and test_skills.py."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pages
import pytest
from pages import ROOT

PAGES = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("skills/**/*.md"), *ROOT.glob("examples/*.md")]
               if pages.blocks(path.read_text()))  # fmt: skip
# What stands before a page's first block: README's has two matrices given.
BEFORE = {"README.md": "import numpy as np\na, b = (np.random.default_rng(n).standard_normal((1024, 1024)).astype('float16') for n in (0, 1))\n"}
DRIVER = """
import os, pathlib, runpy, sys, traceback
import numpy, tilewright, tilewright.language
for script in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            os.chdir(pathlib.Path(script).parent)
            runpy.run_path(script, run_name="__main__")
        except BaseException as error:
            traceback.print_exc()
            print(script, "error", getattr(error, "code", "") or type(error).__name__, flush=True)
            os._exit(1)
        print(script, "error -", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def name_of(page):
    return page.removesuffix(".md").replace("/", "_").replace(".", "_")


def engine_for(page):
    """Mistakes that only a run shows are found by the interpreter; other pages run where a newcomer's do."""
    return "import os\n" + ('os.environ["TILEWRIGHT_ENGINE"] = "interpreter"\n' if page.startswith("skills/") else 'os.environ.pop("TILEWRIGHT_ENGINE", None)\n')


def texts_of(page):
    """(the page's blocks, [(code, the blocks before it, a block that ends with that error)])."""
    good, failing = engine_for(page) + BEFORE.get(page, ""), []
    before = good  # with what stands in blocks that fail, too
    for mark, word, python, _ in pages.blocks((ROOT / page).read_text()):
        if mark == "needs" and importlib.util.find_spec(word) is None:
            continue
        if mark == "fails":
            failing.append((word, before, python))
            before += "import tilewright\ntry:\n" + textwrap.indent(python, "    ") + "except tilewright.TilewrightError:\n    pass\n"
        else:
            good, before = good + python + "\n", before + python + "\n"
    return good, failing


def environment(tmp_path):
    kept = {name: value for name, value in os.environ.items() if name != "TILEWRIGHT_ENGINE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILELANG_DEFAULT_TARGET": "cpu", "XDG_STATE_HOME": str(tmp_path)}


def needs(page):
    """Packages without which a page does not run at all."""
    return ["torch"] if page in ("docs/kernels.md",) else []


def runnable():
    """Those that make `import tilelang` mean this package stand last: from there on the products of a process are TileLang's."""
    found = [page for page in PAGES if all(importlib.util.find_spec(package) for package in needs(page))]
    return sorted(found, key=lambda page: "tilelang" in texts_of(page)[0])


def test_as_scripts(tmp_path):
    scripts, wanted = {}, {}
    for page in runnable():
        good, failing = texts_of(page)
        for number, (code, text) in enumerate([("", good), *((code, before + python) for code, before, python in failing)]):
            folder = tmp_path / f"{name_of(page)}_{number}"
            folder.mkdir()
            (folder / "script.py").write_text(text)
            scripts[str(folder / "script.py")], wanted[str(folder / "script.py")] = page, code
    ran = subprocess.run([sys.executable, "-c", DRIVER, *scripts], env=environment(tmp_path), capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = dict(line.split(" error ") for line in ran.stdout.splitlines() if " error " in line and line.split(" error ")[0] in scripts)
    for script, page in scripts.items():
        assert said.get(script) == (wanted[script] or "-"), f"{page}: {script}\n{ran.stderr[-6000:]}"


def test_as_modules_of_pytest(tmp_path):
    for number, page in enumerate(runnable()):  # collected in this order
        folder = tmp_path / f"{number:02}_{name_of(page)}"
        folder.mkdir()
        good, failing = texts_of(page)
        (folder / f"test_{name_of(page)}.py").write_text(f"{good}\n\ndef test_the_page():\n    assert True\n")
        for number, (code, before, python) in enumerate(failing):
            (folder / f"failing_{name_of(page)}_{number}.py").write_text(before + python)
            (folder / f"test_failing_{name_of(page)}_{number}.py").write_text(
                "import importlib, pytest, tilewright\n\nwith pytest.raises(tilewright.TilewrightError) as error:\n"
                f"    importlib.import_module('failing_{name_of(page)}_{number}')\n\ndef test_it_fails():\n    assert error.value.code == {code!r}\n")  # fmt: skip
    (tmp_path / "conftest.py").write_text("import os, pathlib, pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pycollect_makemodule(module_path, parent):\n"
                                          "    os.chdir(module_path.parent)\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], env=environment(tmp_path), cwd=tmp_path,
                         capture_output=True, text=True, timeout=900)  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6000:]
    assert f"{sum(1 + len(texts_of(page)[1]) for page in runnable())} passed" in ran.stdout


def test_as_cells_of_notebooks(tmp_path):
    pytest.importorskip("IPython")
    books, wanted = [], []
    for page in runnable():
        cells = [f"import os, tempfile\nos.chdir(tempfile.mkdtemp())\n{engine_for(page)}{BEFORE.get(page, '')}"]
        codes = [""]
        for mark, word, python, _ in pages.blocks((ROOT / page).read_text()):
            if mark != "needs" or importlib.util.find_spec(word):
                cells.append(python)
                codes.append(word if mark == "fails" else "")
        books.append(cells)
        wanted.append((page, codes))
    driver = pathlib.Path(__file__).parent / "notebook.py"
    ran = subprocess.run([sys.executable, driver], input=json.dumps(books), env=environment(tmp_path), capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr[-2000:]
    for (page, codes), cells, said in zip(wanted, books, json.loads(ran.stdout.splitlines()[-1]), strict=True):
        for code, cell, found in zip(codes, cells, said, strict=True):
            error = found["error"] or ""
            assert code in error if code else not error, f"{page}\n{cell}\n{error}"


def test_no_page_is_left_out():
    """Pages whose Python is marked as another language would be left out in silence."""
    assert len(PAGES) > 20
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("skills/**/*.md"), *ROOT.glob("examples/*.md")]:
        for language in ("py", "python3", "Python", "ipython"):
            assert f"```{language}\n" not in path.read_text(), path
