"""What skills/ teaches agents: its Python runs, its mistakes get the codes that it says, its commands work, its reference is the
table's."""

import os
import pathlib
import re
import sys

import pages
import pytest
import tilewright
from test_stubs import need_same, written_by

SKILL = pages.ROOT / "skills/tilewright"
PAGES = sorted(str(p.relative_to(pages.ROOT)) for p in SKILL.rglob("*.md"))


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("tilelang", "tvm"):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES)
def test_python(page):
    pages.run(page, {"__name__": "page"})


@pytest.mark.parametrize("page", [p for p in PAGES if pages.COMMANDS.search((pages.ROOT / p).read_text())])
def test_commands(page, tmp_path, monkeypatch):
    folder = str(pathlib.Path(tilewright.__file__).parents[1])
    environment = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_ENGINE"}
    pages.run_commands(page, tmp_path, {**environment, "PYTHONPATH": os.pathsep.join([folder, *filter(None, sys.path)])})


def test_the_head_says_when_it_is_for():
    head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", (SKILL / "SKILL.md").read_text())
    assert head[1] == SKILL.name and len(head[2]) <= 1024


def test_the_reference_is_up_to_date():
    need_same("skills/tilewright/references/operations.md", written_by("reference", "skill_text"))


def test_codes_are_there():
    """Every code is one of ours, and mistakes that people make have theirs in a block that makes them."""
    known = set(re.findall(r"^\| (TW\d{4}) \|", (pages.ROOT / "docs/errors.md").read_text(), re.MULTILINE))
    for page in PAGES:
        text = (pages.ROOT / page).read_text()
        assert set(re.findall(r"\bTW\d{4}\b", text)) <= known, page
    made = {word for mark, word, _, _ in pages.blocks((SKILL / "references/debugging.md").read_text()) if mark == "fails"}
    assert len(made) >= 18
