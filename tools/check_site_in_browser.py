#!/usr/bin/env python3
"""Looks at pages of the built site with headless Chromium, in light and dark: tools/check_site_in_browser.py [FOLDER]. Texts stand out
from their ground (WCAG: 4.5 to 1, large ones 3 to 1), all that can be clicked can be reached by the keyboard, and the search finds."""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("index.html", "docs/tutorials/4_layouts.html", "docs/reference/operations/gemm.html", "docs/errors.html", "docs/python.html")
SCRIPT = """
<script>
document.documentElement.append(Object.assign(document.createElement("style"), { textContent: "* { transition: none !important; }" }));
addEventListener("load", () => setTimeout(() => document.body.setAttribute("data-md-color-scheme", "SCHEME"), 500));
addEventListener("load", () => setTimeout(() => {
  const faults = [], numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(numbers(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  for (let node; (node = walk.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !seen(element) || element.closest("script, style, svg, #result, [hidden], .headerlink")) continue;
    const style = getComputedStyle(element), under = ground(element), ink = over(numbers(style.color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    texts += 1;
    if (ratio < (large ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)}: ${element.className || element.tagName}: ${node.data.trim().slice(0, 40)}`);
  }
  let reached = 0;  // tabs of languages are radio buttons, which the arrow keys reach
  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), summary"))
    if (seen(e) && !e.closest(".md-toggle, [hidden], .tabbed-labels") && !e.classList.contains("md-toggle")) {
      reached += 1;
      if (e.tabIndex < 0 && !e.classList.contains("md-icon") && e.type !== "radio") faults.push(`no keyboard: ${e.outerHTML.slice(0, 80)}`);
    }
  if (!document.querySelector("a.md-skip")) faults.push("no link that skips to the text");
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ faults: [...new Set(faults)], texts, reached,
                                        hits: document.querySelectorAll(".md-search-result__item").length });
  document.body.append(result);
}, 2500));
</script>
"""


def look(browser, page, scheme, query=""):
    """What the script says of a page, of a copy beside it."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", dir=page.parent, encoding="utf-8") as copy:
        copy.write(page.read_text(encoding="utf-8").replace("</body>", SCRIPT.replace("SCHEME", scheme) + "</body>"))
        copy.flush()
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                               "--virtual-time-budget=8000", "--window-size=1280,900", "--dump-dom", f"file://{copy.name}{query}"],
                              capture_output=True, text=True, timeout=120)  # fmt: skip
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    if not found:
        raise RuntimeError(f"{browser} showed nothing of {page}: {done.stderr[-500:]}")
    return json.loads(html.unescape(found[1]))


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("check_site_in_browser: there is no chromium here; as root: apt-get install -y chromium")
    folder, faults, texts = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve(), [], 0
    for page in PAGES:
        for scheme in ("default", "slate"):
            said = look(browser, folder / page, scheme)
            faults += [f"{page}, {scheme}: {fault}" for fault in said["faults"]]
            faults += [] if said["texts"] > 20 and said["reached"] > 20 else [f"{page}, {scheme}: hardly anything is seen"]
            texts += said["texts"]
    if look(browser, folder / "index.html", "default", "?q=softmax")["hits"] == 0:
        faults.append("index.html: the search finds nothing of softmax")
    print("\n".join([*faults, f"{texts} texts of {len(PAGES)} pages, light and dark: {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
