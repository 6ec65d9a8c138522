"""tools/check_docs.py sees what it is to see, in a tree of two pages."""
import pathlib
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def checks(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(TOOLS))
    sys.modules.pop("check_docs", None)
    import check_docs

    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    return check_docs


LONG = "word " * 40 + "\n"


def test_long_lines_of_prose(checks, tmp_path):
    (tmp_path / "README.md").write_text("# Page\n\nShort.\n\n| a " + LONG + "\nNumbers of the table are written by a program.\n\n" + LONG)
    (tmp_path / "docs/written.md").write_text("# Figures\n\n`tools/figures` writes this page.\n\n" + LONG)
    (found,) = checks.long_lines()
    assert found.startswith("README.md:9: 2")


def test_words_that_are_left_alone_in_a_paragraph(checks, tmp_path):
    full = "word " * 24
    page = tmp_path / "README.md"
    page.write_text(f"# Page\n\n{full}\nalone\n{full}\nlast\n\n- {full}\n  alone\n  more\n\nFirst:\n- one\n\n```\n{full}\na\nb\n```\n"
                    f"<!-- far -->\n{full}\nmade\nso\n<!-- /far -->\n")  # fmt: skip
    assert [found.split(": ")[0] for found in checks.alone_lines()] == ["README.md:4", "README.md:9"]
    page.write_text(checks.wrapped(page.read_text()))
    assert not list(checks.alone_lines()) and "- one" in page.read_text() and "\nmade\nso\n" in page.read_text()


def test_links_that_lead_nowhere(checks, tmp_path):
    (tmp_path / "docs/one.md").write_text("# One\n\n[two](two.md#part), [three](three.md)\n\n```\n[code](nowhere.md)\n```\n")
    (tmp_path / "docs/two.md").write_text("# Two\n\n[one](one.md), [away](https://example.org)\n")
    assert list(checks.broken_links()) == ["docs/one.md: there is no three.md"]
