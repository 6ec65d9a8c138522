"""The page about a kernel: what is on it, and that every part of it answers, in a browser without a window."""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import browser
import numpy as np
import pytest
import tilewright as tw
from tilewright import _native, studio

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = '''
import tilewright as tw
import tilewright.language as T

SECRET = "a line that no kernel comes from"

@tw.jit(out_idx=[-1], engine="interpreter")
def product(M, N, K, block=64, dtype="float16"):
    @T.prim_func
    def product(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, 32), dtype)
            B_shared = T.alloc_shared((32, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, k * 32], A_shared)
                T.copy(B[k * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])
    return product

M = T.dynamic("M")

@T.prim_func
def scale(A: T.Tensor((M, 64), "float32"), f: T.float32):
    with T.Kernel(T.ceildiv(M, 16), threads=64) as b:
        for i, j in T.Parallel(16, 64):
            A[b * 16 + i, j] = A[b * 16 + i, j] * f  # </script><img src=x onerror="document.title='run'">
'''
GEMM_LINE = 1 + KERNELS.splitlines().index("                T.gemm(A_shared, B_shared, C_local)")


def facts_of(path):
    text = pathlib.Path(path).read_text()
    return json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', text, re.DOTALL)[1])


def example(name):
    """A program of the pages about explain(), in text form."""
    return "\n".join(line[6:] for line in (ROOT / f"docs/explain/{name}.md").read_text().split("```")[1].strip("\n").splitlines()) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("studio")
    (made / "studied.py").write_text(KERNELS)
    return made


@pytest.fixture(scope="module")
def kernels(folder):
    sys.path.insert(0, str(folder))
    import studied

    yield studied
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def paths(folder, kernels):
    """Pages by name: a product with what the simulator counts, one for the CPU, attention, MLA decoding, a hostile source."""
    a, b = (np.ones((64, 64), "float16") for _ in range(2))
    kernel = kernels.product(256, 256, 256, block=128)
    small = kernels.product(64, 64, 64)
    simulated = studio.counted(lambda: small.simulate(a, b)[1])
    odd = kernels.product(256, 256, 250, block=128)  # rows of 500 bytes, which TMA does not take
    made = {"odd": odd.report(folder / "odd.html", arch="sm_90a"),
            "product": studio.write(kernel.program, folder / "product.html", "sm_90a", {}, simulated),
            "cpu": small.report(folder / "cpu.html"),
            "scale": tw.compile(kernels.scale, engine="interpreter").report(folder / "scale.html", arch="sm_80", M=4096)}  # fmt: skip
    for name in ("gemm", "attention", "mla_decode"):
        (folder / f"{name}.tile").write_text(example(name))
        program = _native.parse(example(name), str(folder / f"{name}.tile"))
        made[name] = studio.write(program, folder / f"{name}.html", "sm_90a", {})
    return made


# ---- what is written


def test_a_page_has_the_texts_side_by_side(paths):
    facts = facts_of(paths["product"])
    names = [text["name"] for text in facts["texts"]]
    assert names == ["source", "tile program", "planned program", "thread program", "CUDA C++"]
    for text in facts["texts"]:
        assert len(text["places"]) == text["text"].removesuffix("\n").count("\n") + 1, text["name"]
        assert any(place and place[1] == GEMM_LINE for place in text["places"]), text["name"]
    assert facts["explanation"]["headline"].startswith("bound by ")
    assert [text["name"] for text in facts_of(paths["cpu"])["texts"]] == ["source", "tile program", "loops", "C++"]


def test_of_a_file_the_functions_are_shown_that_the_kernel_comes_from(paths):
    source = facts_of(paths["product"])["texts"][0]
    assert source["title"] == "studied.py" and source["text"].startswith("@tw.jit(out_idx=[-1]") and "SECRET" not in source["text"]
    assert source["numbers"][0] == 7 and "scale" not in source["text"]


def test_a_page_needs_nothing_else(paths):
    for path in paths.values():
        text = pathlib.Path(path).read_text()
        page = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
        assert not re.search(r"https?:|<link rel=\"?stylesheet|\bsrc=|@import|url\(", page)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        assert policy.startswith("default-src 'none'; ")
        for tag in ("style", "script"):
            body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
            assert f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" in policy


def test_report_returns_the_path_and_takes_arguments(folder, kernels):
    path = folder / "with_counts.html"
    ones = np.ones((64, 64), "float16")
    assert kernels.product(64, 64, 64).report(path, ones, ones, arch="sm_90a") == path
    lines = {row["line"] for launch in facts_of(path)["simulated"]["launches"] for row in launch["lines"]}
    assert lines & set(range(GEMM_LINE - 3, GEMM_LINE + 2))


def test_what_the_simulator_finds_wrong_is_on_the_page(folder):
    text = ("program p {\n  param A: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: float32[64]\n    map i in 64 {\n"
            "      s[i // 2] = A[i]\n    }\n    map i in 32 {\n      A[i] = s[i]\n    }\n  }\n}\n")  # fmt: skip
    program = _native.parse(text, "racing.tile")
    simulated = studio.counted(lambda: json.loads(program.simulate("sm_80", {}, 1)[0]))
    assert simulated["error"].startswith("error TW90")
    assert facts_of(studio.write(program, folder / "racing.html", "sm_80", {}, simulated))["simulated"] == simulated


# ---- timelines


def events_of(trace):
    return [e for e in json.loads(trace)["traceEvents"] if e["ph"] == "X"]


def test_timelines_of_simulated_calls(folder, kernels):
    a, b = (np.random.default_rng(n).standard_normal((128, 128)).astype("float16") for n in range(2))
    kernel = kernels.product(128, 128, 128, block=128)
    path = folder / "trace.json"
    result, counts = kernel.simulate(a, b, trace=path)
    plain, plain_counts = kernel.simulate(a, b)
    assert (result == plain).all()
    for what in ("shared_wavefronts", "barriers", "bytes_used"):  # sectors depend on where NumPy puts the result
        assert counts["launches"][0]["total"][what] == plain_counts["launches"][0]["total"][what]
    text = path.read_text()
    rows = {}
    for event in events_of(text):
        assert event["ts"] >= rows.get((event["pid"], event["tid"]), 0) - 1e-6, event
        rows[event["pid"], event["tid"]] = event["ts"] + event["dur"]
    names = [e["args"]["name"] for e in json.loads(text)["traceEvents"] if e["name"] == "thread_name"]
    assert {"TMA", "warp 0, threads 0 to 31", "tensor cores, quarter 0"} < set(names) and any(name.startswith("mbarrier ") for name in names)
    loads = [e for e in events_of(text) if e["name"].startswith("loads ")]
    assert sum(e["args"]["bytes"] for e in loads) == 2 * 128 * 128 * 2
    assert {e["args"]["line"] for e in loads} == {GEMM_LINE - 2, GEMM_LINE - 1}
    assert any(e["name"].startswith("wgmma m64n128k16") and e["args"]["line"] == GEMM_LINE for e in events_of(text))


# ---- the command


def tw_command(folder, *words):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tw.__file__)), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", "tilewright", "studio", *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip


def test_the_command(folder):
    ran = tw_command(folder, "studied.py:product", "M=4096", "N=4096", "K=4096", "block=128", "--arch", "sm_90a", "-o", "made.html")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "made.html\n", "")
    assert facts_of(folder / "made.html")["explanation"]["arch"] == "sm_90a"
    ran = tw_command(folder, "studied.py:scale", "M=1024", "--simulate", "M=32", "f=2.0", "--trace", "scale.json")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "scale.html\n", "")
    facts = facts_of(folder / "scale.html")
    assert facts["explanation"]["tensor_bytes"] == 1024 * 64 * 4 and facts["simulated"]["launches"][0]["blocks"] == 2
    assert events_of((folder / "scale.json").read_text())
    (folder / "gemm.tile").write_text(example("gemm"))
    ran = tw_command(folder, "gemm.tile", "--arch", "sm_90a")
    assert (ran.returncode, ran.stdout) == (0, "gemm.html\n"), ran.stderr
    source = facts_of(folder / "gemm.html")["texts"][0]
    assert source["title"] == "gemm.tile" and source["hidden"], "it says what the tile program says"


def test_mistakes_of_the_command(folder):
    ran = tw_command(folder, "studied.py:product", "M=64", "N=64", "K=64", "--trace", "t.json")
    assert ran.returncode == 2 and ran.stderr.endswith("--trace is of a simulated call: --simulate M=128\n")
    ran = tw_command(folder, "studied.py:scale", "M=64", "--simulate")
    assert ran.returncode == 1 and "error TW4001 launch: scale: nothing says what f is" in ran.stderr  # no call, and no page
    ran = tw_command(folder, "nowhere.tile")
    assert ran.returncode == 1 and ran.stderr.startswith("error TW70")
    ran = tw_command(folder, "studied.py:scale", "Q=1")
    assert ran.returncode == 2 and "'scale' takes no Q" in ran.stderr


# ---- in a browser


@pytest.fixture(scope="module")
def driver():
    started = browser.start()
    yield started
    started.quit()


@pytest.fixture
def opened(driver, paths):
    def open_page(name, **options):
        made = browser.Page(driver, paths[name], **options)
        opened.pages.append(made)
        return made

    opened.pages = []
    yield open_page
    for page in opened.pages:
        assert page.complaints() == []


def lit(page):
    """Of each column that is shown: the places of its lit lines."""
    return page.run("""return [...document.querySelectorAll('.column')].filter((c) => !c.hidden)
        .map((c) => [c.querySelector('h3').textContent, [...c.querySelectorAll('.lit')].map((l) => l.textContent)])""")


def line_of(page, column, text):
    return page.run("""return [...document.querySelectorAll('.column')[arguments[0]].querySelectorAll('.line')]
        .find((l) => l.textContent.includes(arguments[1]))""", column, text)


def is_seen(page, element):
    """Whether a line lies within what its list shows."""
    return page.run("""const list = arguments[0].closest('.text').getBoundingClientRect(), line = arguments[0].getBoundingClientRect();
        return line.top >= list.top - 1 && line.bottom <= list.bottom + 1""", element)


def test_a_click_on_a_line_lights_the_others(opened):
    page = opened("product")
    line_of(page, 0, "T.gemm(A_shared").click()
    found = dict(lit(page))
    assert list(found) == ["studied.py", "tile program", "planned program", "CUDA C++"]
    assert "T.gemm(A_shared, B_shared, C_local)" in found["studied.py"][0]
    assert found["tile program"][0].lstrip().startswith("gemm a=A_shared")
    assert any("gemm" in line for line in found["planned program"]) and any(f"studied.py:{GEMM_LINE}" in line for line in found["CUDA C++"])
    for column in page.all(".column"):
        first = column.find_elements("css selector", ".lit")
        assert not first or is_seen(page, first[0])
    detail = page.text("#detail")
    assert f"studied.py, line {GEMM_LINE}" in detail and "wgmma.mma_async" in detail and "simulated: " in detail
    line_of(page, 3 + 1, "wgmma_wait").click()  # of the device's text, which is not hidden
    assert page.text("#detail") != detail


def test_a_mouse_over_a_line_shows_where_it_leads(opened):
    page = opened("product")
    page.run("""arguments[0].dispatchEvent(new MouseEvent('mousemove', {bubbles: true}))""", line_of(page, 0, "T.gemm"))
    assert page.run("return document.querySelectorAll('.near').length") >= 4
    page.run("document.querySelector('.text').dispatchEvent(new MouseEvent('mouseleave'))")
    assert page.run("return document.querySelectorAll('.near').length") == 0


def test_operations_say_what_they_became(opened):
    page = opened("product")
    inlays = page.run("return [...document.querySelectorAll('.column')[1].querySelectorAll('.inlay')].map((i) => i.textContent)")
    assert any(text.startswith("TMA load into a ring of") for text in inlays) and any(text.startswith("wgmma.mma_async m64n128k16") for text in inlays)
    assert opened("product").text("#headline").startswith("bound by memory")


def test_what_is_not_better_is_said_with_its_reason(opened, paths):
    page = opened("odd")
    said = page.text("#headline")
    assert f"; 3 of 3 copies are not TMA: line {GEMM_LINE - 2}, rows of 'A' are not known to be multiples of 16 bytes, and others" in said
    inlays = page.run("return [...document.querySelectorAll('.inlay.not')].map((i) => i.parentElement.textContent)")
    assert any("copy from=A" in text and "not TMA: " in text for text in inlays), inlays
    assert "why not better" in page.text("#operations") and "why not better" not in opened("product").text("#operations")


def test_keys_go_through_the_texts(opened):
    page = opened("product")
    first, second = page.all(".text")[:2]
    first.click()
    page.press(first, "HOME", "ARROW_DOWN", "ARROW_DOWN")
    assert page.run("return document.activeElement === arguments[0]", first)
    assert page.run("return document.querySelector('.current').index") == 2
    active = page.run("return document.getElementById(arguments[0].getAttribute('aria-activedescendant')).index", first)
    assert active == 2
    page.press(first, "END")
    assert "T.copy(C_local" in page.text(".current") or "return product" in page.text(".current")
    page.press(first, "ARROW_RIGHT")
    assert page.run("return document.activeElement === arguments[0]", second)
    page.press(second, "ARROW_DOWN", "PAGE_DOWN", "PAGE_UP", "ARROW_UP", "ESCAPE")
    assert page.run("return document.querySelectorAll('.lit').length") == 0
    page.press(second, "ARROW_LEFT")
    assert page.run("return document.activeElement === arguments[0]", first)


_PRESSED = r"""
const all = (selector) => [...document.querySelectorAll(selector)], text = (e) => e.textContent;
const detail = () => text(document.querySelector('#detail')), wrong = [];
let pressed = 0;
const expect = (right, what) => { ++pressed; if (!right) wrong.push(what); };
all('#texts .tools button').forEach((toggle, i) => {
  for (const turn of [0, 1]) {
    const was = all('.column')[i].hidden;
    toggle.click();
    expect(all('.column')[i].hidden === !was && toggle.getAttribute('aria-pressed') === String(was), text(toggle));
  }
});
const placed = all('.line.placed'), step = Math.max(23, Math.ceil(placed.length / 40));
for (const line of placed) {
  if (line.index % step) continue;
  line.click();
  expect(line.classList.contains('lit') && /, line \d+/.test(detail()), `line ${line.dataset.n}`);
}
for (const go of all('.go')) {
  go.click();
  expect(detail().includes(`line ${text(go)}`) && all('.lit').length > 0, `line ${text(go)}`);
}
for (const button of all('.memory button')) {
  button.click();
  const layout = all('#layouts select option').find((o) => text(o) === `${text(button)} in shared`);
  expect(text(button.parentElement.nextElementSibling) === button.title && (!layout || layout.selected), text(button));
}
for (const fold of all('details')) fold.querySelector('summary').click();
await new Promise((done) => setTimeout(done, 50));
for (const fold of all('details')) expect(fold.open && fold.children.length > 1, text(fold.firstChild));
for (const link of all('#sections a')) {
  link.click();
  expect(document.querySelector(link.getAttribute('href')) !== null, text(link));
}
const keyless = all('button, select, a, summary, [tabindex]').filter((e) => e.tabIndex !== 0);
return [pressed, wrong, keyless.length];
"""


def test_all_that_is_pressed_answers(opened, paths):
    """Each button, link, fold and some 40 lines of each page do something, keys reach it, and nothing complains."""
    for name in paths:
        pressed, wrong, keyless = opened(name).run(f"return (async () => {{ {_PRESSED} }})()")
        assert (wrong, keyless) == ([], 0) and pressed > 15, (name, pressed)


_LISTENING = """
window.listening = [];
const add = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (type, ...rest) { window.listening.push([this, type]); return add.call(this, type, ...rest); };
"""
_KINDS = """
const kind = (e) => !(e instanceof Element) ? e.constructor.name : e.id ? `#${e.id}` : e.closest('.tools') ? `.tools ${e.tagName.toLowerCase()}`
    : e.closest('.memory') ? '.memory button' : e.className ? `.${e.className.split(' ')[0]}` : e.tagName.toLowerCase();
const own = [...document.querySelectorAll('*')].flatMap((e) => ['onclick', 'onchange', 'oninput'].filter((name) => e[name]).map((name) => [e, name.slice(2)]));
const pressed = [...document.querySelectorAll('a, summary, input, textarea, label, [contenteditable]')].map((e) => [e, 'press']);
return [...new Set([...window.listening, ...own, ...pressed].map(([e, type]) => `${kind(e)} ${type}`))];
"""
DONE_TO = {  # what a page listens for, and what a browser does by itself when it is pressed: the test that does it
    "#theme click": "the_switch_of_themes", "MediaQueryList change": "both_themes_can_be_read",
    ".tools button click": "all_that_is_pressed_answers", ".go click": "all_that_is_pressed_answers",
    ".memory button click": "all_that_is_pressed_answers", "a press": "all_that_is_pressed_answers",
    "summary press": "all_that_is_pressed_answers", ".pass toggle": "passes_show_their_difference",
    ".text click": "all_that_is_pressed_answers", ".text mousemove": "a_mouse_over_a_line_shows_where_it_leads",
    ".text mouseleave": "a_mouse_over_a_line_shows_where_it_leads", ".text keydown": "keys_go_through_the_texts",
    ".tools select change": "layouts_by_mouse_and_keys", "canvas mousemove": "layouts_by_mouse_and_keys",
    "canvas keydown": "layouts_by_mouse_and_keys",
}  # fmt: skip


def test_nothing_on_a_page_listens_that_no_test_presses(driver, paths):
    """Of every page: what was added to it since stands here with the test that does it."""
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _LISTENING})
    try:
        found = {kind for path in paths.values() for kind in browser.Page(driver, path).run(_KINDS)}
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})
    assert found == set(DONE_TO) and all(f"test_{name}" in globals() for name in DONE_TO.values())


def test_layouts_by_mouse_and_keys(opened, paths):
    page = opened("product")
    facts = facts_of(paths["product"])
    pick, canvas = page.one("#layouts select"), page.one("#layouts canvas")
    for number, layout in enumerate(facts["layouts"]):
        page.run("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", pick, str(number))
        canvas.click()
        page.press(canvas, "ARROW_RIGHT", "ARROW_DOWN")
        said = page.text("#layouts [role=status]")
        row, column = map(int, re.search(r"(\d+), (\d+)\]", said).groups())
        at = row * layout["columns"] + column
        wanted = f"thread {layout['thread'][at]}, register {layout['register'][at]}" if "thread" in layout else f"byte {layout['byte'][at]}, bank {layout['bank'][at]}"
        assert said.startswith(layout["name"]) and wanted in said
        size = page.run("return arguments[0].width", canvas) // layout["columns"]
        page.run("""arguments[0].dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: arguments[0].getBoundingClientRect().left + arguments[1],
            clientY: arguments[0].getBoundingClientRect().top + arguments[2]}))""", canvas, size * 2 + 3, size + 3)  # fmt: skip
        at = 1 * layout["columns"] + 2
        assert str((layout.get("thread") or layout["byte"])[at]) in page.text("#layouts [role=status]") and "1, 2]" in page.text("#layouts [role=status]")


def test_passes_show_their_difference(opened):
    page = opened("attention")
    page.run("[...document.querySelectorAll('.pass')].find((p) => p.textContent.startsWith('apply_plan')).querySelector('summary').click()")
    page.run("return new Promise((done) => setTimeout(done, 0))")
    added = page.run("return [...document.querySelectorAll('.pass[open] .added')].map((l) => l.textContent)")
    assert any("wait barrier" in line for line in added) and page.run("return document.querySelectorAll('.pass[open] .removed').length") > 0


def test_launches_have_their_own_parts(driver, folder):
    body = ("  launch {0}(bx: 1) threads(tx: 64) {{\n    shared s: float32[64, {1}]\n    copy from=A[0 : 64, 0 : {1}] to=s\n"
            "    copy from=s to=B[0 : 64, 0 : {1}]\n  }}\n")  # fmt: skip
    text = f"program two {{\n  param A: float32[64, 64]\n  param B: float32[64, 64]\n{body.format('first', 16)}{body.format('second', 32)}}}\n"
    path = studio.write(_native.parse(text, "two.tile"), folder / "two.html", "sm_80", {})
    page = browser.Page(driver, path)
    assert [link.text for link in page.all("#sections a")][2] == "Launches"
    said = []
    for button in page.all(".memory button"):
        page.run("arguments[0].click()", button)
        said.append(page.run("return document.querySelector('#layouts select').selectedOptions[0].textContent"))
    assert said == ["s in shared, launch first", "s in shared, launch second"] and page.complaints() == []


_CONTRAST = """
const parts = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (c) => { const [r, g, b] = parts(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
const poor = [];
for (const e of document.querySelectorAll('h1, h2, h3, p, a, dt, dd, th, td, button, select, summary, pre, span, strong, .line, .diff div')) {
  if (!e.textContent.trim() || !e.getClientRects().length) continue;
  const a = light(getComputedStyle(e).color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push([e.className || e.tagName, e.textContent.slice(0, 40), ratio]);
}
return poor.slice(0, 10);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read(opened, theme):
    page = opened("product", theme=theme)
    page.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.run("return new Promise((done) => setTimeout(done, 0))")
    line_of(page, 0, "T.gemm(A_shared").click()
    assert page.run(_CONTRAST) == []
    dark = page.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (theme == "dark")


def test_the_switch_of_themes(opened):
    page = opened("product", theme="dark")
    back = lambda: page.run("return getComputedStyle(document.body).backgroundColor")  # noqa: E731
    asked = back()
    switch = page.one("#theme")
    seen = []
    for _ in range(3):
        switch.click()
        seen.append((switch.text, back()))
    assert [text for text, _ in seen] == ["theme: light", "theme: dark", "theme: auto"]
    assert seen[0][1] == "rgb(255, 255, 255)" and seen[1][1] == seen[2][1] == asked
    switch.click()
    page.driver.refresh()
    assert page.one("#theme").text == "theme: light" and back() == "rgb(255, 255, 255)"
    page.run("localStorage.clear()")


@pytest.mark.parametrize("width", [360, 700])
def test_narrow_windows(opened, width):
    for name in ("product", "mla_decode"):
        page = opened(name, width=width, height=800)
        page.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert page.run("return document.documentElement.scrollWidth") <= width
        tops = page.run("return [...document.querySelectorAll('.column')].filter((c) => !c.hidden).map((c) => c.getBoundingClientRect().top)")
        assert tops == sorted(set(tops)), "texts stand below each other"


def test_names_and_sources_are_only_ever_text(driver, folder, kernels, paths):
    """A source that ends the element it stands in, and a file and a program with markup for a name."""
    page = browser.Page(driver, paths["scale"])
    assert "</script><img src=x onerror=" in page.text(".column .text") and page.run("return document.images.length") == 0
    assert page.run("return document.title") == "scale: Tilewright" and page.run("return document.scripts.length") == 2
    name = "<b onclick=alert(1)>.tile"
    text = example("gemm").replace("matmul", "`<img src=x onerror=alert(2)>`").replace("A_shared", "`</script><i>&amp;`")
    program = _native.parse(text, name)
    assert "`</script><i>&amp;`" in program.text
    path = studio.write(program, folder / "hostile.html", "sm_90a", {})
    page = browser.Page(driver, path)
    assert page.text("#name") == "<img src=x onerror=alert(2)>" and page.run("return document.images.length") == 0
    assert page.run("return document.querySelectorAll('main i, main b').length") == 0
    assert "</script><i>&amp;" in page.text("#operations, #launches") + page.text("#launches")
    for button in page.all(".memory button"):
        page.run("arguments[0].click()", button)
    assert page.complaints() == []


def test_what_a_page_would_fetch_or_run_its_policy_refuses(driver, paths):
    page = browser.Page(driver, paths["cpu"])
    page.run("""const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s);
        const i = document.createElement('img'); i.src = 'https://example.invalid/x.png'; document.body.append(i)""")
    assert page.run("return document.title") == "product: Tilewright"
    said = page.complaints()
    assert len(said) == 2 and all("Content Security Policy" in text for text in said), said


def test_ten_thousand_lines(driver, folder, paths):
    facts = facts_of(paths["product"])
    for text in facts["texts"]:
        lines = text["text"].removesuffix("\n").split("\n")
        times = 10000 // len(lines) + 1
        text.update(text="\n".join(lines * times) + "\n", places=text["places"][: len(lines)] * times, hidden=False)
        text.pop("numbers", None)
    (folder / "long.html").write_text(studio.page(facts))
    page = browser.Page(driver, folder / "long.html")
    counts = page.run("return [...document.querySelectorAll('.text')].map((t) => t.querySelectorAll('.line').length)")
    assert len(counts) == 5 and min(counts) >= 10000
    # What is out of sight is not laid out: of 50 and more parts of a text a few are.
    assert page.run("return getComputedStyle(document.querySelector('.chunk')).contentVisibility") == "auto"
    text = page.all(".text")[4]
    text.click()
    page.press(text, "END", "ARROW_UP", "ARROW_UP")
    line = page.run("return [...document.querySelectorAll('.column')[4].querySelectorAll('.line')].at(-3)")
    assert is_seen(page, line) and page.run("return arguments[0].classList.contains('current')", line)
    line_of(page, 0, "T.gemm(A_shared").click()
    assert page.run("return document.querySelectorAll('.lit').length") > 500
    assert page.complaints() == []


# ---- how it looks

SHOTS = ROOT / "tests/python/studio_looks.json"
LOOKS = [(name, theme, width) for name in ("gemm", "attention", "mla_decode") for theme in ("light", "dark") for width in (1400, 390)]


def unlike(found, wanted):
    """(mean difference, share of the numbers that are far apart): 0 to 255, 0 to 1."""
    apart = [abs(a - b) for a, b in zip(found, wanted, strict=True)]
    return sum(apart) / len(apart), sum(a > 32 for a in apart) / len(apart)


def is_like(found, wanted):
    mean, far = unlike(found, wanted)
    return mean < 4 and far < 0.04


def test_pages_look_as_they_did(opened):
    """Coarse pictures of the first screen beside those that are kept; TILEWRIGHT_UPDATE=1 keeps them anew: look at the pages first."""
    kept = json.loads(SHOTS.read_text()) if SHOTS.exists() else {}
    found = {}
    for name, theme, width in LOOKS:
        page = opened(name, theme=theme, width=width)
        page.run("return document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))")
        found[f"{name} {theme} {width}"] = page.looks()
    if os.environ.get("TILEWRIGHT_UPDATE"):
        SHOTS.write_text(json.dumps(found, separators=(",", ":")).replace("],", "],\n") + "\n")
    for which, looks in found.items():
        assert is_like(looks, kept.get(which, looks if os.environ.get("TILEWRIGHT_UPDATE") else [])), (which, unlike(looks, kept[which]))


def test_a_page_that_looks_otherwise_is_found_out(opened):
    """What the comparison is worth: another theme, no style, texts that are gone, another width's layout."""
    kept = json.loads(SHOTS.read_text())
    page = opened("gemm", theme="light", width=1400)
    assert is_like(page.looks(), kept["gemm light 1400"]) and not is_like(kept["gemm dark 1400"], kept["gemm light 1400"])
    for harm in ("document.querySelectorAll('.column').forEach((c) => { c.hidden = true; })", "document.querySelector('style').disabled = true",
                 "document.querySelector('header').remove()", "document.querySelector('.columns').style.gridAutoFlow = 'row'"):  # fmt: skip
        harmed = opened("gemm", theme="light", width=1400)
        harmed.run(harm.replace("querySelector('style').disabled = true", "querySelector('style').remove()"))
        assert not is_like(harmed.looks(), kept["gemm light 1400"]), harm


def test_opening_a_page(opened, record_property):
    """What opening takes, by the browser's own clock, is reported; what it depends on is held: elements and bytes."""
    for name in ("gemm", "attention", "mla_decode"):
        counters = opened(name).counters()
        record_property(name, counters)
        print(f"{name}: interactive {counters['interactive']:.0f} ms from the start of the navigation, complete {counters['complete']:.0f} ms, "
              f"{counters['elements']} elements, {counters['bytes']} bytes")  # fmt: skip
        assert counters["elements"] < 5000 and counters["bytes"] < 1.5e6, counters


def test_words_are_colored_without_elements(opened):
    page = opened("gemm")
    page.run("return new Promise((done) => setTimeout(done, 100))")  # what is in sight is seen by then
    painted = page.run("return ['word', 'number', 'comment'].map((kind) => CSS.highlights.get(`tw-${kind}`).size)")
    assert all(painted), painted
    assert page.run("return [...document.querySelectorAll('.line')].every((line) => [...line.children].every((c) => c.classList.contains('inlay')))")
    before = sum(painted)
    text = page.all(".text")[4]
    text.click()
    page.press(text, "END")
    page.run("return new Promise((done) => setTimeout(done, 100))")
    assert page.run("return [...CSS.highlights.values()].reduce((sum, h) => sum + h.size, 0)") > before, "the rest when it comes into sight"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_colors_of_words_can_be_read_on_every_ground():
    style = (pathlib.Path(studio.__file__).parent / "page.css").read_text()
    themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r"\{([^{}]*--back:[^{}]*)\}", style)]
    assert len(themes) == 3 and themes[1] == themes[2]
    for colors in themes:
        for ink in ("text", "word", "number", "quote", "comment", "inlay", "not"):
            for ground in ("back", "lit", "near"):
                light, dark = sorted((luminance(colors[ink]), luminance(colors[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground, (light + 0.05) / (dark + 0.05))


def test_lines_of_one_source_line_have_one_color(opened):
    page = opened("gemm")
    hues = page.run("""return [...document.querySelectorAll('.column')].map((c) => {
        const line = [...c.querySelectorAll('.line.placed')].find((l) => l.textContent.includes('gemm') || l.textContent.includes('wgmma_m64'));
        return line ? getComputedStyle(line).borderLeftColor : null})""")
    gemm = page.run("""const lines = [...document.querySelectorAll('.column')[1].querySelectorAll('.line.placed')];
        const line = lines.find((l) => l.textContent.includes('gemm a=')); line.click();
        return [...document.querySelectorAll('.lit')].map((l) => getComputedStyle(l).borderLeftColor)""")
    assert len(set(gemm)) == 1 and len(gemm) >= 4 and any(hues)


def test_figures_come_first(opened, paths):
    page = opened("gemm")
    shown = dict(zip(page.run("return [...document.querySelectorAll('#figures dt')].map((e) => e.textContent)"),
                     page.run("return [...document.querySelectorAll('#figures dd')].map((e) => e.textContent)")))  # fmt: skip
    facts = facts_of(paths["gemm"])["explanation"]
    assert shown["what decides"] == "matrix unit" and shown["floor"] == "139 us"
    assert shown["bytes of shared memory"] == f"{facts['launches'][0]['shared_bytes']:,}"
    assert [e for e in opened("cpu").all("#figures div")] == []


def test_the_device_text_opens_at_the_kernel(opened):
    page = opened("attention")
    first = page.run("""const column = document.querySelectorAll('.column')[4], list = column.querySelector('.text').getBoundingClientRect();
        const line = column.querySelector('.line.placed').getBoundingClientRect(); return (line.top - list.top) / list.height""")
    assert 0 <= first < 0.5, first
