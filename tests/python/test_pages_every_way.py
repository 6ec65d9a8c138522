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
try:
    import torch  # once for all pages
except ImportError:
    pass
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


def text_of(page):
    """The page's blocks one behind the other. Those that are to fail do so where they stand; what they said is checked at the end."""
    out, codes = engine_for(page) + BEFORE.get(page, "") + "import tilewright\ncodes_of_blocks = []\n", []
    for mark, word, python, _ in pages.blocks((ROOT / page).read_text()):
        if mark == "needs" and importlib.util.find_spec(word) is None:
            continue
        if mark == "fails":
            codes.append(word)
            out += ("try:\n" + textwrap.indent(python, "    ") + "    codes_of_blocks.append('')\n"
                    "except tilewright.TilewrightError as error:\n    codes_of_blocks.append(error.code)\n")  # fmt: skip
        else:
            out += python + "\n"
    return out + f"assert codes_of_blocks == {codes}, codes_of_blocks\n"


def environment(tmp_path):
    kept = {name: value for name, value in os.environ.items() if name != "TILEWRIGHT_ENGINE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILELANG_DEFAULT_TARGET": "cpu", "XDG_STATE_HOME": str(tmp_path)}


def needs(page):
    """Packages without which a page does not run at all."""
    return ["torch"] if page in ("docs/kernels.md",) else []


def runnable():
    """Those that make `import tilelang` mean this package stand last: from there on the products of a process are TileLang's."""
    found = [page for page in PAGES if all(importlib.util.find_spec(package) for package in needs(page))]
    return sorted(found, key=lambda page: "tilelang" in text_of(page))


def test_as_scripts(tmp_path):
    scripts = {}
    for page in runnable():
        folder = tmp_path / name_of(page)
        folder.mkdir()
        (folder / "script.py").write_text(text_of(page))
        scripts[str(folder / "script.py")] = page
    ran = subprocess.run([sys.executable, "-c", DRIVER, *scripts], env=environment(tmp_path), capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = dict(line.split(" error ") for line in ran.stdout.splitlines() if " error " in line and line.split(" error ")[0] in scripts)
    for script, page in scripts.items():
        assert said.get(script) == "-", f"{page}: {script}\n{ran.stderr[-6000:]}"


def test_as_modules_of_pytest(tmp_path):
    for number, page in enumerate(runnable()):  # collected in this order
        folder = tmp_path / f"{number:02}_{name_of(page)}"
        folder.mkdir()
        (folder / f"test_{name_of(page)}.py").write_text(f"{text_of(page)}\n\ndef test_the_page():\n    assert True\n")
    (tmp_path / "conftest.py").write_text("import os, pathlib, pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pycollect_makemodule(module_path, parent):\n"
                                          "    os.chdir(module_path.parent)\n")  # fmt: skip
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], env=environment(tmp_path), cwd=tmp_path,
                         capture_output=True, text=True, timeout=900)  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6000:]
    assert f"{len(runnable())} passed" in ran.stdout


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
