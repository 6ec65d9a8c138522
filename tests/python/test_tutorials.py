"""The tutorials: their blocks run; their pictures and notebooks are what the tools
write. TILEWRIGHT_UPDATE=1 writes them."""
import os
import re
import sys

import pytest
from pages import ROOT, run

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "docs/pictures")]
import draw_pictures  # noqa: E402
import notebooks  # noqa: E402

PAGES = sorted((ROOT / "docs/tutorials").glob("[0-9]*.md"))


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_ENGINE", raising=False)  # which would win over what the pages say
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "cpu")


def test_there_are_seven():
    assert len(PAGES) == 7 and all(f"({page.name})" in (ROOT / "docs/tutorials/README.md").read_text() for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial(page, capfd):
    space = run(page.relative_to(ROOT), {})
    assert "tw" in space
    written = capfd.readouterr()
    for warned in re.findall(r"^warning .*$", page.read_text(), re.MULTILINE):
        assert warned in written.err


def need_same(path, text):
    if os.environ.get("TILEWRIGHT_UPDATE"):
        path.write_text(text)
    assert path.read_text() == text, "run TILEWRIGHT_UPDATE=1 pytest tests/python/test_tutorials.py"


def test_pictures():
    shown = set(re.findall(r"pictures/(\w+)\.svg", "".join(page.read_text() for page in [*PAGES, ROOT / "README.md"])))
    drawn = dict(draw_pictures.pictures())
    assert shown == drawn.keys()
    for name, svg in drawn.items():
        need_same(ROOT / f"docs/pictures/{name}.svg", svg)


def test_every_tutorial_has_a_picture():
    assert all("](../pictures/" in page.read_text() for page in PAGES)


def test_notebooks_are_those_of_the_pages():
    assert len(notebooks.notebooks()) == 4
    for path, text in notebooks.notebooks():
        need_same(path, text)
        for target in re.findall(r"\]\(([^)#:]+)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
