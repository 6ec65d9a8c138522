"""The site's order has every page of the tree, and the check of a built site finds what is wrong with it."""
import re
import sys

import pytest
from test_documents import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_site  # noqa: E402

GOOD = '<html lang="en"><head><title>t</title></head><body><h1 id="top">a</h1>{}</body></html>'
OPERATIONS, DECISIONS = "docs/reference/operations/", "docs/decisions/"


def test_every_page_is_in_the_navigation():
    named = re.findall(r"[\w/.]+\.md", (ROOT / "docs/site.yml").read_text())
    assert len(named) == len(set(named)) and all((ROOT / name).exists() for name in named)
    pages = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]} | {"examples/README.md"}
    assert {page for page in pages - set(named) if not page.startswith(DECISIONS)} == set()


@pytest.mark.parametrize("body, fault", [
    ('<a href="other.html#there">x</a><a href="#top">x</a><a href="https://example.org">x</a><img src="p.svg" alt="p">', None),
    ('<a href="gone.html">x</a>', "index.html: there is no gone.html"),
    ('<a href="other.html#gone">x</a>', "index.html: other.html#gone has no such anchor"),
    ('<a href="#gone">x</a>', "index.html: #gone has no such anchor"),
    ('<img src="p.svg">', "index.html: no text for p.svg"),
    ('<img src="gone.svg" alt="g">', "index.html: there is no gone.svg"),
    ('<script src="https://example.org/a.js"></script>', "index.html: https://example.org/a.js is fetched from elsewhere"),
    ("<h1>again</h1>", "index.html: 2 first headings"),
])  # fmt: skip
def test_check_of_a_site(tmp_path, body, fault):
    (tmp_path / "p.svg").write_text("<svg/>")
    (tmp_path / "other.html").write_text(GOOD.format('<p id="there">x</p>'))
    (tmp_path / "index.html").write_text(GOOD.format(body))
    assert list(check_site.faults_of(tmp_path)) == ([fault] if fault else [])


def test_pages_have_a_title_and_a_language(tmp_path):
    (tmp_path / "index.html").write_text("<html><h1>x</h1></html>")
    assert set(check_site.faults_of(tmp_path)) == {"index.html: no title", "index.html: no language"}
