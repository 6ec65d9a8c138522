"""The language server, through its protocol: over pipes, as an editor talks to it."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

import pytest
import tilewright

pytest.importorskip("pygls", reason="the language server needs pygls: pip install 'tilewright[lsp]'")
from tilewright import program  # noqa: E402
from tilewright.lsp.analysis import Analysis, _Watch  # noqa: E402
from tilewright.lsp.places import characters_of_bytes, lines_of, moved, moved_facts, word_at  # noqa: E402
from tilewright.lsp.server import File, short  # noqa: E402

METHOD_NOT_FOUND, INVALID_PARAMS, CANCELLED = -32601, -32602, -32800

KERNELS = """import tilewright as tw
import tilewright.language as T
print("this goes nowhere")

@T.prim_func
def product(A: T.Tensor((256, 64), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((256, 256), "float16")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 128), "float16")
        C_local = T.alloc_fragment((128, 128), "float32")
        T.clear(C_local)
        for k in T.Pipelined(1, num_stages=2):
            T.copy(A[by * 128, k * 64], A_shared)
            T.copy(B[k * 64, bx * 128], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * 128, bx * 128])

@tw.jit
def add(A, B):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        tile = T.alloc_fragment((128,), "float32")
        T.copy(A[bx * 128], tile)
        T.copy(tile, C[bx * 128])
    return C
"""
WRONG = """import tilewright.language as T

@T.prim_func
def first(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_sharde((16,), "float32")

@T.prim_func
def second(A: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        'ä😀'; T.gemm(A, A, A)
"""


class Client:
    """A small editor."""

    def __init__(self, options=None, **general):
        path = os.pathsep.join([os.path.dirname(os.path.dirname(tilewright.__file__)), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen([sys.executable, "-m", "tilewright", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        self.incoming, self.number, self.asked, self.said, self.published, self.early = queue.Queue(), 0, [], [], [], []
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()
        capabilities = {"workspace": {"inlayHint": {"refreshSupport": True}}, "general": general}
        self.begun = self.answer(
            "initialize", processId=None, rootUri=None, capabilities=capabilities, initializationOptions=options or {}
        )
        if "result" in self.begun:
            self.tell("initialized")

    def listen(self):
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline().strip():
                pass
            self.incoming.put(json.loads(self.process.stdout.read(length)))

    def write(self, body):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def send(self, method, **params):
        """The number of a request."""
        self.number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or None}).encode())
        return self.number

    def answer(self, method, **params):
        """The whole answer to a request."""
        number = self.send(method, **params)
        return self.wait(lambda m: m.get("id") == number and "method" not in m)

    def ask(self, method, **params):
        return self.answer(method, **params)["result"]

    def wait(self, wanted, seconds=60):
        end = time.monotonic() + seconds
        while True:
            message = self.incoming.get(timeout=max(end - time.monotonic(), 0.01))
            if "method" in message and "id" in message:
                self.asked.append(message["method"])
            if message.get("method") == "textDocument/publishDiagnostics":
                self.early.append(message["params"])
            if message.get("method") == "workspace/inlayHint/refresh":  # of an analysis that has ended
                self.published, self.early = self.published + self.early, []
            if wanted(message):
                return message

    def diagnostics(self, uri, version):
        """The next ones of a version that all is known of, which may have come while an answer was waited for."""
        while True:
            found = [p for p in self.published if p["uri"] == uri and p.get("version") == version]
            if found:
                self.published = [p for p in self.published if p not in found]
                return found[-1]["diagnostics"]
            self.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh")

    def open(self, path, text, language="python"):
        uri = path if isinstance(path, str) else path.as_uri()
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": language, "version": 1, "text": text})
        return uri

    def change(self, uri, version, text):
        self.tell("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=[{"text": text}])

    def hover(self, uri, text, word, line=None, inside=0):
        line = next(n for n, row in enumerate(text.split("\n")) if (word in row if line is None else n == line))
        column = text.split("\n")[line].index(word) + inside
        found = self.ask("textDocument/hover", textDocument={"uri": uri}, position={"line": line, "character": column})
        return found and found["contents"]["value"]

    def hints(self, uri, first=0, last=100000):
        found = self.ask("textDocument/inlayHint", textDocument={"uri": uri},
                         range={"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}})  # fmt: skip
        return {hint["position"]["line"]: hint["label"] for hint in found}

    def actions(self, uri, diagnostic):
        return self.ask(
            "textDocument/codeAction",
            textDocument={"uri": uri},
            range=diagnostic["range"],
            context={"diagnostics": [diagnostic]},
        )

    def end(self):
        assert self.ask("shutdown") is None
        self.tell("exit")
        return self.process.wait(20)


def applied(text, edits):
    """The text with edits, whose places count UTF-16 units."""
    lines = text.split("\n")

    def offset(place):
        row = lines[place["line"]].encode("utf-16-le")[: 2 * place["character"]].decode("utf-16-le")
        return sum(len(r) + 1 for r in lines[: place["line"]]) + len(row)

    for edit in edits:
        text = text[: offset(edit["range"]["start"])] + edit["newText"] + text[offset(edit["range"]["end"]) :]
    return text


@pytest.fixture(scope="module")
def shared():
    """One server for the tests that need no settings of their own."""
    c = Client()
    yield c
    c.process.kill()
    c.process.wait()


@pytest.fixture
def client():
    made = []

    def start(general=None, **options):
        made.append(Client(options, **(general or {})))
        return made[-1]

    yield start
    for c in made:
        c.process.kill()
        c.process.wait()


def span(text, line, word):
    row = text.split("\n")[line]
    return len(row[: row.index(word)].encode("utf-16-le")) // 2


# ---- the protocol


def test_initialize_and_shutdown(client):
    c = client()
    can = c.begun["result"]["capabilities"]
    assert can["hoverProvider"] and can["inlayHintProvider"] and can["codeActionProvider"]["codeActionKinds"] == ["quickfix"]
    assert (
        can["textDocumentSync"]["openClose"]
        and can["textDocumentSync"]["save"]
        and can.get("positionEncoding", "utf-16") == "utf-16"
    )
    assert c.answer("textDocument/nothing")["error"]["code"] == METHOD_NOT_FOUND
    assert (
        c.answer("textDocument/hover", textDocument={"uri": "file:///nowhere.py"}, position={"line": 0, "character": 0})[
            "error"
        ]["code"]
        == INVALID_PARAMS
    )
    c.tell("textDocument/unheardOf")
    assert c.end() == 0


def test_an_editor_that_goes_ends_it(client):
    c = client()
    c.process.stdin.close()
    assert c.process.wait(20) == 1


def test_settings_that_there_are_not_are_refused(client):
    c = client()
    for options in ({"arch": "sm_70"}, {"timeout": "long"}, {"colour": 1}):
        error = c.answer("initialize", processId=None, rootUri=None, capabilities={}, initializationOptions=options)["error"]
        assert error["code"] == INVALID_PARAMS and next(iter(options)) in error["message"] and "sm_90a" in error["message"]


def test_messages_that_are_none(client, tmp_path):
    c = client()
    c.write(b"{broken")
    c.write(b"[]")
    c.process.stdin.write(b"Content-Length: many\r\n\r\n")
    c.write(json.dumps({"jsonrpc": "2.0", "id": 70, "method": "textDocument/hover", "params": {"position": "here"}}).encode())
    c.change("file:///never_opened.py", 1, "x = 1")
    uri = c.open(tmp_path / "good.py", "x = 1\n")
    assert c.diagnostics(uri, 1) == [] and c.end() == 0


def test_requests_that_are_cancelled_are_answered_once(shared, tmp_path):
    uri = shared.open(tmp_path / "a.py", "x = 1\n")
    number = shared.send("textDocument/hover", textDocument={"uri": uri}, position={"line": 0, "character": 0})
    shared.tell("$/cancelRequest", id=number)
    shared.tell("$/cancelRequest", id=4711)  # there is none
    answer = shared.wait(lambda m: m.get("id") == number)
    assert answer.get("result") is None and answer.get("error", {}).get("code", CANCELLED) == CANCELLED
    assert shared.hints(uri) == {} and shared.diagnostics(uri, 1) == []


# ---- what is shown


def test_hover_and_hints(client, tmp_path):
    c = client()
    uri = c.open(tmp_path / "kernels.py", KERNELS)
    assert c.diagnostics(uri, 1) == []
    said = c.hover(uri, KERNELS, "A_shared")
    assert (
        said.startswith("**A_shared**: float16[128, 64], shared, 16384 bytes")
        and "on sm_90a in shared, decided by TMA or wgmma" in said
    )
    assert c.hover(uri, KERNELS, "A: T.Tensor").startswith("**A**: float16[256, 64], global, 32768 bytes")
    assert "on sm_90a in registers, decided by the accumulator of wgmma" in c.hover(uri, KERNELS, "C_local = ")
    operation = c.hover(uri, KERNELS, "T.gemm", inside=3)
    assert (
        "gemm a=A_shared b=B_shared c=C_local" in operation
        and "4 times on a call" in operation
        and "wgmma.mma_async m64n128k16" in operation
    )
    assert c.hover(uri, KERNELS, "import tilewright as") is None
    assert c.hover(uri, KERNELS, "tile = ").startswith(
        "**tile**: float32[128], fragment, 512 bytes"
    )  # of a function that nobody has called
    assert c.hover(uri, KERNELS, "A: T.Tensor((N") == "**A**: float32[N], global"
    hints = c.hints(uri)
    assert hints[14] == "wgmma m64n128k16" and hints[12].startswith("TMA load") and set(hints) <= {*range(10, 17), 24, 25, 26}
    assert set(c.hints(uri, 13, 13)) <= {13}
    assert "workspace/inlayHint/refresh" in c.asked or c.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh")
    assert c.end() == 0


def test_what_is_known_moves_with_its_lines(shared, tmp_path):
    uri = shared.open(tmp_path / "kernels.py", KERNELS)
    shared.diagnostics(uri, 1)
    known = shared.hints(uri)
    text = "\n\n" + KERNELS
    shared.change(uri, 2, text)
    assert shared.hints(uri) == {line + 2: label for line, label in known.items()}
    assert shared.hover(uri, text, "A_shared").startswith("**A_shared**: float16[128, 64]")
    half = text.replace("T.gemm(A_shared, B_shared, C_local)", "T.gemm(A_shared, B_sha")  # being typed
    shared.change(uri, 3, half)
    (one,) = shared.diagnostics(uri, 3)
    assert one["source"] == "python" and one["range"]["start"]["line"] == 16 and "never closed" in one["message"]
    assert shared.hints(uri)[14] == known[12] and shared.hover(uri, half, "C_local = ").startswith(
        "**C_local**: float32[128, 128]"
    )
    shared.change(uri, 4, KERNELS)
    assert shared.diagnostics(uri, 4) == [] and shared.hints(uri) == known


def test_functions_whose_arguments_a_comment_gives(shared, tmp_path):
    text = """import tilewright as tw
import tilewright.language as T

@tw.jit
def rows(A, block: int):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        tile = T.alloc_fragment((block,), "float32")
        T.copy(A[bx * block], tile)
        T.copy(tile, A[bx * block])
"""
    uri = shared.open(tmp_path / "rows.py", text)
    assert shared.diagnostics(uri, 1) == [] and shared.hover(uri, text, "tile = ") is None
    text = text.replace("@tw.jit\n", "# tilewright: N=1000, block=64\n@tw.jit\n")
    shared.change(uri, 2, text)
    assert shared.diagnostics(uri, 2) == [] and shared.hover(uri, text, "tile = ").startswith(
        "**tile**: float32[64], fragment, 256 bytes"
    )
    text = text.replace("N=1000", "N")
    shared.change(uri, 3, text)
    first, *_ = shared.diagnostics(uri, 3)
    assert first["message"] == "'N' is no NAME=VALUE" and first["severity"] == 2
    assert first["range"]["start"]["line"] == text.split("\n").index("# tilewright: N, block=64")


def test_factories_whose_arguments_a_comment_gives(shared, tmp_path):
    text = (pathlib.Path(__file__).resolve().parents[2] / "examples/gemm.py").read_text()
    uri = shared.open(tmp_path / "gemm.py", text)
    assert shared.diagnostics(uri, 1) == [] and shared.hover(uri, text, "C_local = ").startswith(
        "**C_local**: float32[128, 128], fragment, 65536 bytes"
    )
    line = text.split("\n").index("                T.gemm(A_shared, B_shared, C_local)")
    assert shared.hints(uri)[line].startswith("wgmma m64n128k16")
    shared.change(uri, 2, text.replace("block_K=32, dtype", "block_K=32, type"))
    (one,) = shared.diagnostics(uri, 2)
    assert "unexpected keyword argument 'type'" in one["message"]


def test_mistakes_of_several_functions_and_their_fixes(shared, tmp_path):
    uri = shared.open(tmp_path / "wrong.py", WRONG)
    one, other = sorted(shared.diagnostics(uri, 1), key=lambda d: d["range"]["start"]["line"])
    assert (
        one["code"] == "TW1102" and one["source"] == "tilewright" and one["range"]["start"] == {"line": 5, "character": 12}
    ), one
    assert "help: the nearest it has: T.alloc_shared, T.alloc_var" in one["message"]
    page, _, area = one["codeDescription"]["href"].removeprefix("file://").partition("#")
    assert f"| {one['code']} |" in pathlib.Path(page).read_text().split(f"## {area}\n")[1].split("\n## ")[0]
    assert other["code"] == "TW1061" and other["severity"] == 1
    begin = span(WRONG, 10, "T.gemm")
    assert other["range"] == {"start": {"line": 10, "character": begin}, "end": {"line": 10, "character": begin + 15}}
    assert shared.actions(uri, other) == []
    action, another = shared.actions(uri, one)
    assert action["title"] == "Replace alloc_sharde by alloc_shared" and action["diagnostics"] == [one]
    assert (
        another["title"] == "Replace alloc_sharde by alloc_var" and not another["isPreferred"] and not action["isPreferred"]
    )
    shared.change(uri, 2, applied(WRONG, action["edit"]["changes"][uri]))
    assert [d["code"] for d in shared.diagnostics(uri, 2)] == ["TW1061"]


def test_mistakes_of_functions_of_any_shape(shared, tmp_path):
    text = KERNELS.replace("T.copy(tile, C[bx * 128])", "T.copy(tile, C[bx * 128, 0])")
    uri = shared.open(tmp_path / "eager.py", text)
    (one,) = shared.diagnostics(uri, 1)
    assert (
        one["code"] == "TW1038" and text.split("\n")[one["range"]["start"]["line"]].strip() == "T.copy(tile, C[bx * 128, 0])"
    )
    text = KERNELS.replace('T.alloc_fragment((128,), "float32")', 'T.alloc_fragment((N if N < 128 else 128,), "float32")')
    shared.change(uri, 2, text)  # only a call knows N: no mistake
    assert shared.diagnostics(uri, 2) == []


WORDS = """import numpy as np
import tilewright.language as T

@T.prim_func
def words(A: T.Tensor[[64], T.float32]):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = HERE
"""


@pytest.mark.parametrize("text, title, right", [
    (KERNELS.replace("        T.clear(C_local)\n", ""), "Clear C_local before", KERNELS),
    (KERNELS.replace("alloc_shared((64, 128)", "alloc_shared((128, 64)").replace("T.copy(B[k * 64, bx * 128], B_shared)", "T.clear(B_shared)"),
     "Pass transpose_B=True", None),
    (WORDS.replace("HERE", "T.where(A[i] > 0, A[i], 0.0)"), "Call T.if_then_else", WORDS.replace("HERE", "T.if_then_else(A[i] > 0, A[i], 0.0)")),
    (WORDS.replace("HERE", "'ä'and np.exp(A[i])"), "Call T.exp", WORDS.replace("HERE", "'ä'and T.exp(A[i])")),
    (WORDS.replace("HERE", "np.sum(A[i])"), None, None),  # the operation for it wants a result too
])  # fmt: skip
def test_fixes_of_help_lines(shared, tmp_path, text, title, right):
    uri = shared.open(tmp_path / "fixes.py", text)
    (one,) = shared.diagnostics(uri, 1)
    actions = shared.actions(uri, one)
    if title is None:
        assert actions == []
        return
    (action,) = actions
    assert action["title"] == title and action["isPreferred"]
    fixed = applied(text, action["edit"]["changes"][uri])
    assert right is None or fixed == right
    shared.change(uri, 2, fixed)
    assert shared.diagnostics(uri, 2) == []


# ---- files that are difficult


def test_files_that_python_does_not_take(shared, tmp_path):
    begin = "import tilewright\n"
    uri = shared.open(tmp_path / "odd.py", begin + "\ndef f(:\n")
    (one,) = shared.diagnostics(uri, 1)
    assert one["source"] == "python" and one["range"]["start"] == {"line": 2, "character": 6}
    shared.change(uri, 2, begin + "import sys\nsys.exit(3)\n")
    assert [d["message"] for d in shared.diagnostics(uri, 2)] == ["SystemExit: 3"]
    shared.change(uri, 3, begin + "import sys\nsys.exit(0)\n")
    assert shared.diagnostics(uri, 3) == []
    shared.change(uri, 4, begin + "def f():\n    return 1 / 0\n\nf()\n")
    (one,) = shared.diagnostics(uri, 4)
    assert one["message"] == "ZeroDivisionError: division by zero" and one["range"]["start"]["line"] == 2
    shared.change(uri, 5, begin + "import os\nos._exit(0)\n")
    assert "ended before it was done" in shared.diagnostics(uri, 5)[0]["message"]
    shared.change(uri, 6, begin + "\0\n")
    assert [d["source"] for d in shared.diagnostics(uri, 6)] == ["python"]
    shared.change(uri, 7, begin + "raise KeyboardInterrupt\n")
    assert [d["message"] for d in shared.diagnostics(uri, 7)] == ["KeyboardInterrupt"]
    shared.change(uri, 8, begin + "f(" * 5000 + "\n")
    assert shared.diagnostics(uri, 8)[0]["source"] == "python"
    shared.change(uri, 9, "")
    assert shared.diagnostics(uri, 9) == []


def test_what_a_file_does_while_it_is_imported_stays_there(shared, tmp_path):
    text = f"""import os, sys, threading, tilewright
print("Content-Length: 5\\r\\n\\r\\nhello")
os.write(1, b"more")
assert sys.stdin.read() == "" and sys.argv == [__file__]
threading.Thread(target=lambda: threading.Event().wait()).start()
os.chdir("/")
sys.modules["json"] = None
if __name__ == "__main__":
    open({str(tmp_path / "ran")!r}, "w")
"""
    uri = shared.open(tmp_path / "effects.py", text)
    assert shared.diagnostics(uri, 1) == [] and not (tmp_path / "ran").exists()


def test_files_without_programs_are_not_imported(shared, tmp_path):
    mark = tmp_path / "imported"
    uri = shared.open(tmp_path / "other.py", f"open({str(mark)!r}, 'w')\nimport nothing_like_this\n")
    assert shared.diagnostics(uri, 1) == [] and not mark.exists()
    text = tmp_path / "notes.txt"
    assert "error" in shared.answer(
        "textDocument/hover",
        textDocument={"uri": shared.open(text, KERNELS, "plaintext")},
        position={"line": 0, "character": 0},
    )


def test_texts_that_are_not_saved_reach_who_imports_them(shared, tmp_path):
    (tmp_path / "sizes.py").write_text("BLOCK = 32\n")
    text = ("import tilewright.language as T\nfrom sizes import BLOCK\n\n@T.prim_func\ndef p(A: T.Tensor((64,), 'float32')):\n"
            "    with T.Kernel(1, threads=32):\n        s = T.alloc_shared((BLOCK,), 'float32')\n        T.copy(A[0], s)\n        T.copy(s, A[0])\n")  # fmt: skip
    uri = shared.open(tmp_path / "program.py", text)
    assert shared.diagnostics(uri, 1) == [] and "float32[32]" in shared.hover(uri, text, "s = ")
    other = shared.open(tmp_path / "sizes.py", "BLOCK = 32\n")
    shared.diagnostics(other, 1)
    shared.change(uri, 2, text)
    shared.diagnostics(uri, 2)
    shared.change(other, 2, "BLOCK = 64\n")
    shared.diagnostics(uri, 2)
    assert "float32[64]" in shared.hover(uri, text, "s = ") and (tmp_path / "sizes.py").read_text() == "BLOCK = 32\n"
    shared.tell("textDocument/didClose", textDocument={"uri": other})
    shared.diagnostics(uri, 2)
    assert "float32[32]" in shared.hover(uri, text, "s = ")


def test_texts_that_no_file_has(shared):
    uri = shared.open("untitled:Untitled-1", KERNELS)
    assert shared.diagnostics(uri, 1) == [] and shared.hints(uri)[14] == "wgmma m64n128k16"


def test_what_hangs_is_stopped_and_named_and_kernels_before_it_are_known(client, tmp_path):
    c = client(timeout=1.5)
    uri = c.open(tmp_path / "slow.py", KERNELS + "x = 1\nwhile True:\n    x += 1\n")
    (one,) = c.diagnostics(uri, 1)
    assert one["message"] == "the analysis was stopped here after 1.5 s" and one["severity"] == 2
    assert one["range"]["start"]["line"] - KERNELS.count("\n") in (1, 2) and c.hints(uri)[14] == "wgmma m64n128k16"
    c.change(
        uri,
        2,
        "import time, tilewright\nwhile True:\n    try:\n        time.sleep(0.1)\n    except BaseException:\n        pass\n",
    )
    (one,) = c.diagnostics(uri, 2)
    assert one["message"] == "the analysis was stopped here after 3 s" and one["range"]["start"]["line"] in (1, 2, 3, 5)
    c.change(uri, 3, "import os, signal, tilewright\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    (one,) = c.diagnostics(uri, 3)
    assert one["message"] == "the analysis was stopped after 5 s"


def test_a_change_ends_the_analysis_before_it(client, tmp_path):
    mark = tmp_path / "started"
    c = client(timeout=60)
    uri = c.open(
        tmp_path / "slow.py",
        f"import os, time, tilewright\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(50)\n",
    )
    end = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    child = int(mark.read_text())
    c.change(uri, 2, "x = 1\n")
    assert c.diagnostics(uri, 2) == []
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_an_analysis_starts_no_python_and_compiles_nothing(client, tmp_path, monkeypatch):
    """Each is a fork of one process that has the compiler loaded. Should that end, another takes its place."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    mark, c = tmp_path / "mark", client(delay=0)
    text = KERNELS + f"""import os, sys
import numpy
assert (add(numpy.ones(256, "float32"), numpy.ones(256, "float32")) == 1).all()
open({str(mark)!r}, "a").write(f"{{os.getppid()}} {{os.getpid()}} {{os.getcwd()}}\\n")
"""
    uri = c.open(tmp_path / "forked.py", text)
    assert c.diagnostics(uri, 1) == []
    for version in (2, 3):
        c.change(uri, version, text)
        assert c.diagnostics(uri, version) == []
    parents, children, folders = zip(*(line.split() for line in mark.read_text().splitlines()))
    assert len(set(parents)) == 1 and len(set(children)) == 3 and int(parents[0]) != c.process.pid and set(folders) == {str(tmp_path)}
    os.kill(int(parents[0]), signal.SIGKILL)
    c.change(uri, 4, text)
    assert c.diagnostics(uri, 4) == [] and c.hints(uri)[14] == "wgmma m64n128k16"
    assert mark.read_text().splitlines()[-1].split()[0] != parents[0]
    assert list((tmp_path / "cache").iterdir()) == []


def test_mistakes_are_shown_before_kernels_are_explained(client, tmp_path):
    """A mistake of one kernel, while it is not known yet what the other becomes; nothing is shown early that is shown already."""
    text, c = KERNELS + WRONG.partition("\n\n")[2].partition("\n\n")[0] + "\n", client()
    uri = c.open(tmp_path / "early.py", text)
    c.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics")
    assert c.published == [] and [d["code"] for d in c.early[0]["diagnostics"]] == ["TW1102"]
    c.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh")  # behind what is shown last
    shown = [(p["version"], [d["code"] for d in p["diagnostics"]]) for p in c.published if p["uri"] == uri]
    assert shown == [(1, ["TW1102"])] * 2  # early, and when all is known
    assert c.hints(uri)[14] == "wgmma m64n128k16"
    fine = c.open(tmp_path / "fine.py", KERNELS)
    c.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics")
    c.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh")
    assert [p["diagnostics"] for p in c.published if p["uri"] == fine] == [[]]


def test_what_is_typed_over_is_not_analyzed(client, tmp_path):
    mark, c = tmp_path / "mark", client(delay=2)
    text = KERNELS + f"open({str(mark)!r}, 'a').write('x')\n"
    uri = c.open(tmp_path / "typed.py", text)
    assert c.diagnostics(uri, 1) == []
    for version in range(2, 30):
        c.change(uri, version, text + "#" * version)
    assert c.diagnostics(uri, 29) == [] and mark.read_text() == "xx"


def test_analyses_end_with_the_server(client, tmp_path):
    mark = tmp_path / "started"
    c = client(timeout=60)
    c.open(
        tmp_path / "slow.py",
        f"import os, time, tilewright\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(50)\n",
    )
    end = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    assert c.end() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_analyses_at_saves_alone(client, tmp_path):
    c = client(analyze="save")
    uri = c.open(tmp_path / "a.py", KERNELS)
    assert c.diagnostics(uri, 1) == []
    c.change(uri, 2, WRONG)
    assert c.hints(uri) is not None
    c.tell("textDocument/didSave", textDocument={"uri": uri})
    assert len(c.diagnostics(uri, 2)) == 2


def test_long_files(shared, tmp_path):
    """A thousand functions beside the kernel, half a megabyte, and a mistake at the end."""
    filler = "".join(
        f"def f{n}(a, b):\n" + "    a = a + b  # and some words that make the line as long as lines are\n" * 7
        for n in range(1000)
    )
    text = KERNELS + filler + "T.alloc_sharde\n"
    uri = shared.open(tmp_path / "long.py", text)
    (one,) = shared.diagnostics(uri, 1)
    assert one["code"] == "TW1102" and one["range"]["start"]["line"] == text.count("\n") - 1
    assert shared.hints(uri)[14] == "wgmma m64n128k16"


# ---- places


def test_units_are_those_that_the_editor_counts(client, tmp_path):
    for encoding, size in (("utf-8", 1), ("utf-32", 4)):
        c = client(general={"positionEncodings": [encoding, "utf-16"]})
        assert c.begun["result"]["capabilities"]["positionEncoding"] == encoding
        uri = c.open(tmp_path / "wrong.py", WRONG)
        other = next(d for d in c.diagnostics(uri, 1) if d["code"] == "TW1061")
        row = WRONG.split("\n")[10]
        assert (
            other["range"]["start"]["character"]
            == len(row[: row.index("T.gemm")].encode(encoding.replace("32", "32-le"))) // size
        )


def test_lines_words_and_bytes():
    assert lines_of("a\r\nb\rc\x0c\u2028\n") == ["a", "b", "c\x0c\u2028", ""]
    assert (
        word_at("a = '😀'; bee.x", 11) == ("bee", "a = '😀'; ")
        and word_at("a + b", 3) == ("", "a +")
        or word_at("a + b", 2) == ("", "a ")
    )
    assert characters_of_bytes("ä😀x", 6) == 2 and characters_of_bytes("ab", 99) == 2


def test_lines_that_move():
    where = moved(["a", "b", "c", "d"], ["a", "x", "y", "c", "d"])
    assert [where(n) for n in (1, 2, 3, 4)] == [1, None, 4, 5]
    where = moved(["a", "b", "c"], ["a", "B", "c"])
    assert [where(n) for n in (1, 2, 3)] == [1, 2, 3]
    where = moved(["a", "b", "c"], ["a"])
    assert [where(n) for n in (1, 2, 3)] == [1, None, None]


def test_kernels_that_did_not_change_are_not_explained_again(tmp_path, monkeypatch):
    path = str(tmp_path / "kernels.py")

    def analyzed(text, known=()):
        explained = []
        found = Analysis(path, {path: text}, "sm_90a", 60, {f["key"]: f for f in known})
        module = found.load(_Watch(60, None))
        monkeypatch.setattr(Analysis, "end_of", lambda self, line: explained.append(line) or line)
        found.look(module, _Watch(60, None))
        monkeypatch.undo()
        assert found.complete and not found.mistakes
        return found.facts, explained

    before = sys.path[:], sys.meta_path[:], dict(sys.modules), sys.argv, program.take_mistake
    try:
        facts, explained = analyzed(KERNELS)
        assert [f["name"] for f in facts] == ["product", "add"] and explained
        assert analyzed("\n\n" + KERNELS, facts)[1]  # what is known is of other lines
        down = [moved_facts(f, lambda line: line + 2) for f in facts]
        again, explained = analyzed("\n\n" + KERNELS, down)
        assert not explained and again == down and again == analyzed("\n\n" + KERNELS)[0]
        _, explained = analyzed(KERNELS.replace("num_stages=2", "num_stages=3"), facts)
        assert explained and max(explained) < 18  # the first kernel alone
    finally:
        sys.path[:], sys.meta_path[:] = before[0], before[1]
        for name in set(sys.modules) - set(before[2]):
            del sys.modules[name]
        sys.argv, program.take_mistake = before[3:]


def test_kernels_that_a_broken_file_does_not_come_to_stay_known():
    file = File("file:///a.py", 1, "one\ntwo\n")
    kernel = {"first": 1, "last": 1, "operations": [], "layouts": [], "key": ""}
    file.learn({"facts": [{"name": "p", **kernel}, {"name": "q", **kernel}], "mistakes": [], "files": [], "complete": True})
    file.learn({"facts": [{"name": "p", **kernel, "last": 2}], "mistakes": [], "files": [], "complete": False})
    assert {f["name"]: f["last"] for f in file.facts} == {"p": 2, "q": 1}
    file.learn({"facts": [], "mistakes": [], "files": [], "complete": True})
    assert file.facts == []


@pytest.mark.parametrize("becomes, label", [
    (["wgmma.mma_async m64n256k16.f32.f16.f16, 2 x 1 warpgroups, a from shared memory"], "wgmma m64n256k16"),
    (["TMA load into a ring of 3 slots, completes on an mbarrier"], "TMA load, ring of 3"),
    (["points (128, 64): [2:R(64)]", "TMA store from shared memory", "writes"], "TMA store from shared memory"),
    (["points (128, 64): [2:R(64)]"], ""),
    ([], ""),
])  # fmt: skip
def test_labels(becomes, label):
    assert short(becomes) == label
