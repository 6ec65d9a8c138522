"""The site's order has every page of the tree, and the check of a built site finds what is wrong with it."""
import os
import re
import subprocess
import sys

import browser
import pytest
from test_documents import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_site  # noqa: E402
import check_site_in_browser  # noqa: E402

GOOD = '<html lang="en"><head><title>t</title></head><body><h1 id="top">a</h1>{}</body></html>'
OPERATIONS, DECISIONS = "docs/reference/operations/", "docs/decisions/"


def test_every_page_is_in_the_navigation():
    named = re.findall(r"[\w/.]+\.md", (ROOT / "docs/site.yml").read_text())
    assert len(named) == len(set(named)) and all((ROOT / name).exists() for name in named)
    pages = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]}
    pages.add("examples/README.md")
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


# ---- the site as it is built


@pytest.fixture(scope="module")
def site():
    """The site of the tree, operations too; without its generator (docs/requirements.txt) these tests are skipped."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: docs/requirements.txt")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILEWRIGHT_ENGINE": "interpreter"}
    built = subprocess.run([sys.executable, ROOT / "tools/build_site.py"], env=environment, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return ROOT / "build/site"


def test_the_site_has_no_dead_link(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 250 and (site / "docs/cost_model.html").exists() and (site / "docs/reference/operations/gemm.html").exists()
    assert list(check_site.faults_of(site)) == []


@pytest.mark.parametrize("scheme", ["default", "slate"])
@pytest.mark.parametrize("page", ["index.html", "docs/cost_model.html", "docs/reference/operations/gemm.html"])
def test_pages_of_the_site_can_be_read_and_reached(site, page, scheme):
    if browser.CHROMIUM is None:
        pytest.skip("no chromium on PATH: apt-get install chromium")
    said = check_site_in_browser.look(browser.CHROMIUM, site / page, scheme)
    assert said["faults"] == [] and said["texts"] > 20 and said["reached"] > 20


def test_what_cannot_be_read_is_found(site):
    """The check of contrast and keys, on a page that was made worse."""
    if browser.CHROMIUM is None:
        pytest.skip("no chromium on PATH: apt-get install chromium")
    text = (site / "docs/aot.html").read_text(encoding="utf-8")
    worse = site / "docs/worse_for_a_test.html"
    try:
        worse.write_text(text.replace("<h1", '<p style="color: #999; background: #aaa">pale words</p><button tabindex="-1">kept from keys</button><h1', 1))
        faults = check_site_in_browser.look(browser.CHROMIUM, worse, "default")["faults"]
    finally:
        worse.unlink()
    assert any("pale words" in fault for fault in faults) and any("no keyboard" in fault and "kept from keys" in fault for fault in faults)


def test_keys_walk_through_a_page_of_the_site(site):
    """Tab from the top: the link that skips comes first and leads to the text; what has the focus can be seen to have it."""
    from selenium.webdriver.common.keys import Keys

    driver = browser.start()
    try:
        driver.get(f"file://{site / 'docs/tuner.html'}")
        seen = []
        for _ in range(12):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            seen.append(driver.execute_script("""const e = document.activeElement, s = getComputedStyle(e);
                return [e.className, e.getAttribute('href'), s.outlineStyle !== 'none' || s.boxShadow !== 'none' || e.matches(':focus-visible')]"""))
        assert "md-skip" in seen[0][0] and seen[0][1].startswith("#"), seen
        assert len({(name, link) for name, link, _ in seen}) >= 8 and all(visible for *_, visible in seen), seen
        driver.get(f"file://{site / 'docs/tuner.html'}")
        driver.switch_to.active_element.send_keys(Keys.TAB)
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        assert driver.execute_script("return location.hash") == seen[0][1]
    finally:
        driver.quit()
