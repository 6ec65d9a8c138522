"""The language server, through its protocol: over pipes, as an editor talks to it."""
import io
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

import pytest
import tilewright
from tilewright.lsp import messages
from tilewright.lsp.documents import Document
from tilewright.lsp.server import Server, short

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

    def __init__(self, options=None, cwd=None):
        path = os.pathsep.join([os.path.dirname(os.path.dirname(tilewright.__file__)), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen([sys.executable, "-m", "tilewright", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                        env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        self.incoming, self.number, self.asked = queue.Queue(), 0, []
        threading.Thread(target=self.listen, daemon=True).start()
        capabilities = {"workspace": {"inlayHint": {"refreshSupport": True}}}
        self.capabilities = self.ask("initialize", capabilities=capabilities, initializationOptions=options or {})["capabilities"]
        self.tell("initialized")

    def listen(self):
        while (message := messages.read(self.process.stdout)) is not None:
            self.incoming.put(message)

    def write(self, body):
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, **params):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def answer(self, method, **params):
        """The whole answer to a request."""
        self.number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        return self.wait(lambda m: m.get("id") == self.number and "method" not in m)

    def ask(self, method, **params):
        return self.answer(method, **params)["result"]

    def wait(self, wanted, seconds=60):
        end = time.monotonic() + seconds
        while True:
            message = self.incoming.get(timeout=max(end - time.monotonic(), 0.01))
            if "method" in message and "id" in message:
                self.asked.append(message["method"])
            if wanted(message):
                return message

    def diagnostics(self, uri, version):
        found = self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri
                          and m["params"].get("version") == version)  # fmt: skip
        return found["params"]["diagnostics"]

    def open(self, path, text):
        uri = path.as_uri()
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "python", "version": 1, "text": text})
        return uri

    def change(self, uri, version, *changes):
        self.tell("textDocument/didChange", textDocument={"uri": uri, "version": version}, contentChanges=list(changes))

    def hover(self, uri, text, word, line=None, inside=0):
        line = next(n for n, row in enumerate(text.split("\n")) if (word in row if line is None else n == line))
        column = text.split("\n")[line].index(word) + inside
        found = self.ask("textDocument/hover", textDocument={"uri": uri}, position={"line": line, "character": column})
        return found and found["contents"]["value"]

    def hints(self, uri, first=0, last=1000):
        found = self.ask("textDocument/inlayHint", textDocument={"uri": uri},
                         range={"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}})  # fmt: skip
        return {hint["position"]["line"]: hint["label"] for hint in found}

    def end(self):
        assert self.ask("shutdown") is None
        self.tell("exit")
        return self.process.wait(20)


@pytest.fixture
def client():
    made = []

    def start(**options):
        made.append(Client(options))
        return made[-1]

    yield start
    for c in made:
        c.process.kill()
        c.process.wait()


def span(text, line, word):
    row = text.split("\n")[line]
    return len(row[: row.index(word)].encode("utf-16-le")) // 2


def test_initialize_and_shutdown(client):
    c = client()
    assert c.capabilities["hoverProvider"] and c.capabilities["inlayHintProvider"] and c.capabilities["textDocumentSync"]["change"] == 2
    assert c.answer("textDocument/nothing")["error"]["code"] == messages.METHOD_NOT_FOUND
    assert c.answer("textDocument/hover", textDocument={"uri": "file:///nowhere.py"}, position={})["error"]["code"] == messages.INVALID_PARAMS
    assert c.ask("shutdown") is None
    assert c.answer("textDocument/hover")["error"]["code"] == messages.INVALID_REQUEST
    c.tell("exit")
    assert c.process.wait(20) == 0


def test_an_editor_that_goes_ends_it(client):
    c = client()
    c.process.stdin.close()
    assert c.process.wait(20) == 1


def test_settings_that_there_are_not_are_refused():
    server = Server(io.BytesIO(), io.BytesIO())
    for options in ({"arch": "sm_70"}, {"timeout": "long"}, {"colour": 1}):
        out = server.writer._stream = io.BytesIO()
        server.handle({"id": 1, "method": "initialize", "params": {"initializationOptions": options}})
        out.seek(0)
        error = messages.read(out)["error"]
        assert error["code"] == messages.INVALID_PARAMS and next(iter(options)) in error["message"] and not server.initialized


def test_hover_and_hints(client, tmp_path):
    c = client()
    uri = c.open(tmp_path / "kernels.py", KERNELS)
    assert c.diagnostics(uri, 1) == []
    said = c.hover(uri, KERNELS, "A_shared")
    assert said.startswith("**A_shared**: float16[128, 64], shared, 16384 bytes") and "on sm_90a in shared, decided by TMA or wgmma" in said
    assert c.hover(uri, KERNELS, "A: T.Tensor").startswith("**A**: float16[256, 64], global, 32768 bytes")
    assert "C_local in registers" not in said and "wgmma" in c.hover(uri, KERNELS, "C_local = ")
    begin = time.perf_counter()
    operation = c.hover(uri, KERNELS, "T.gemm", inside=3)
    assert time.perf_counter() - begin < 0.1
    assert "gemm a=A_shared b=B_shared c=C_local" in operation and "4 times on a call" in operation and "wgmma.mma_async m64n128k16" in operation
    assert c.hover(uri, KERNELS, "import tilewright as") is None
    hints = c.hints(uri)
    assert hints[14] == "wgmma m64n128k16" and hints[12].startswith("TMA load") and set(hints) <= set(range(10, 16))
    assert set(c.hints(uri, 13, 13)) <= {13}
    c.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh") if not c.asked else None
    assert c.end() == 0


def test_jitted_functions_are_recorded_where_a_comment_gives_values(client, tmp_path):
    c = client()
    uri = c.open(tmp_path / "kernels.py", KERNELS)
    assert c.diagnostics(uri, 1) == [] and c.hover(uri, KERNELS, "tile = ") is None
    text = KERNELS.replace("@tw.jit\n", "# tilewright: N=1000\n@tw.jit\n")
    c.change(uri, 2, {"text": text})
    assert c.diagnostics(uri, 2) == []
    assert c.hover(uri, text, "tile = ").startswith("**tile**: float32[128], fragment, 512 bytes")
    text = text.replace("N=1000", "N")
    c.change(uri, 3, {"text": text})
    (first, *_) = c.diagnostics(uri, 3)
    assert first["message"] == "'N' is no NAME=VALUE" and first["range"]["start"]["line"] == text.split("\n").index("# tilewright: N")


def test_mistakes_of_several_functions_and_their_fixes(client, tmp_path):
    c = client()
    uri = c.open(tmp_path / "wrong.py", WRONG)
    one, other = sorted(c.diagnostics(uri, 1), key=lambda d: d["range"]["start"]["line"])
    assert one["code"] == "TW1101" or one["message"].startswith("Tilewright has no T.alloc_sharde"), one
    assert one["range"]["start"] == {"line": 5, "character": 12} and "help: the nearest it has: T.alloc_shared" in one["message"]
    assert one["codeDescription"]["href"].startswith("file://") and "errors.md#" in one["codeDescription"]["href"]
    page = pathlib.Path(one["codeDescription"]["href"].removeprefix("file://").partition("#")[0])
    assert f"| {one['code']} |" in page.read_text()
    assert other["code"] == "TW1061" and other["severity"] == 1
    assert other["range"] == {"start": {"line": 10, "character": span(WRONG, 10, "T.gemm")}, "end": {"line": 10, "character": span(WRONG, 10, "T.gemm") + 15}}
    actions = c.ask("textDocument/codeAction", textDocument={"uri": uri}, range=one["range"], context={"diagnostics": [one]})
    (edit,) = actions[0]["edit"]["changes"][uri]
    assert actions[0]["title"] == "Replace alloc_sharde by alloc_shared" and edit["newText"] == "alloc_shared"
    assert c.ask("textDocument/codeAction", textDocument={"uri": uri}, range=other["range"], context={"diagnostics": []}) == []
    c.change(uri, 2, {"range": edit["range"], "text": edit["newText"]})  # as an editor would
    assert [d["code"] for d in c.diagnostics(uri, 2)] == ["TW1061"]


def test_files_that_python_does_not_take(client, tmp_path):
    c = client()
    uri = c.open(tmp_path / "odd.py", "import os\n\ndef f(:\n")
    (one,) = c.diagnostics(uri, 1)
    assert one["source"] == "python" and one["range"]["start"]["line"] == 2
    c.change(uri, 2, {"text": "\nimport sys\nsys.exit(3)\n"})
    assert [d["message"] for d in c.diagnostics(uri, 2)] == ["SystemExit: 3"]
    c.change(uri, 3, {"text": "def f():\n    return 1 / 0\n\nf()\n"})
    (one,) = c.diagnostics(uri, 3)
    assert one["message"] == "ZeroDivisionError: division by zero" and one["range"]["start"]["line"] == 1
    c.change(uri, 4, {"text": "import os\nos._exit(0)\n"})
    assert "ended before it was done" in c.diagnostics(uri, 4)[0]["message"]
    c.change(uri, 5, {"text": ""})
    assert c.diagnostics(uri, 5) == []


def test_texts_that_are_not_saved_reach_who_imports_them(client, tmp_path):
    c = client()
    (tmp_path / "sizes.py").write_text("BLOCK = 32\n")
    text = ("import tilewright.language as T\nfrom sizes import BLOCK\n\n@T.prim_func\ndef p(A: T.Tensor((64,), 'float32')):\n"
            "    with T.Kernel(1, threads=32):\n        s = T.alloc_shared((BLOCK,), 'float32')\n        T.copy(A[0], s)\n        T.copy(s, A[0])\n")  # fmt: skip
    uri = c.open(tmp_path / "program.py", text)
    assert c.diagnostics(uri, 1) == [] and "float32[32]" in c.hover(uri, text, "s = ")
    other = c.open(tmp_path / "sizes.py", "BLOCK = 32\n")
    c.diagnostics(other, 1)
    c.change(uri, 2, {"text": text})
    c.diagnostics(uri, 2)
    c.change(other, 2, {"text": "BLOCK = 64\n"})
    c.diagnostics(uri, 2)
    assert "float32[64]" in c.hover(uri, text, "s = ") and (tmp_path / "sizes.py").read_text() == "BLOCK = 32\n"


def test_what_hangs_is_stopped_and_named(client, tmp_path):
    c = client(timeout=1.5)
    uri = c.open(tmp_path / "slow.py", "x = 1\nwhile True:\n    x += 1\n")
    (one,) = c.diagnostics(uri, 1)
    assert one["message"] == "the analysis was stopped here after 1.5 s" and one["severity"] == 2 and one["range"]["start"]["line"] in (1, 2)


def test_a_change_ends_the_analysis_before_it(client, tmp_path):
    mark = tmp_path / "started"
    c = client(timeout=60)
    uri = c.open(tmp_path / "slow.py", f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(50)\n")
    end = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    child = int(mark.read_text())
    begin = time.monotonic()
    c.change(uri, 2, {"text": "x = 1\n"})
    assert c.diagnostics(uri, 2) == [] and time.monotonic() - begin < 20
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_messages_that_are_none(client, tmp_path):
    c = client()
    c.write(b"{broken")
    assert c.wait(lambda m: "error" in m)["error"]["code"] == messages.PARSE_ERROR
    c.process.stdin.write(b"Content-Length: many\r\n\r\n")
    c.write(b"[]")
    assert c.wait(lambda m: "error" in m)["error"]["code"] == messages.PARSE_ERROR
    assert c.wait(lambda m: "error" in m)["error"]["code"] == messages.INVALID_REQUEST
    c.tell("textDocument/didChange", textDocument={"uri": "file:///never_opened.py", "version": 1}, contentChanges=[])
    uri = c.open(tmp_path / "good.py", "x = 1\n")
    assert c.diagnostics(uri, 1) == [] and c.end() == 0


def test_cancelled_requests_are_answered_so():
    out = io.BytesIO()
    server = Server(io.BytesIO(), out)
    for number, method in ((1, "initialize"), (2, "textDocument/hover"), (3, "shutdown")):
        server.receive({"id": number, "method": method, "params": {}})
    server.receive({"method": "$/cancelRequest", "params": {"id": 2}})
    server.receive({"method": "$/cancelRequest", "params": {"id": 9}})  # there is none
    server.receive({"method": "exit"})
    assert server.run() == 0
    out.seek(0)
    first, second, third = (messages.read(out) for _ in range(3))
    assert "result" in first and second["error"]["code"] == messages.CANCELLED and third["result"] is None
    assert not server.cancelled and not server.waiting


def test_questions_before_initialize_are_refused():
    out = io.BytesIO()
    Server(io.BytesIO(), out).handle({"id": 1, "method": "textDocument/hover", "params": {}})
    out.seek(0)
    assert messages.read(out)["error"]["code"] == messages.NOT_INITIALIZED


def test_places_count_utf16_units():
    document = Document("file:///a.py", 1, "a = '😀'; b = 1\nc\n")
    document.change(2, [{"range": {"start": {"line": 0, "character": 10}, "end": {"line": 0, "character": 11}}, "text": "bee"}])
    assert document.text == "a = '😀'; bee = 1\nc\n"
    assert document.word_at({"line": 0, "character": 11})[0] == "bee"
    assert document.range_of(1, len("a = '😀'; ".encode()) + 1)["start"] == {"line": 0, "character": 10}
    document.change(3, [{"range": {"start": {"line": 9, "character": 0}, "end": {"line": 9, "character": 0}}, "text": "d"}])
    assert document.text.endswith("c\nd")


@pytest.mark.parametrize("becomes, label", [
    (["wgmma.mma_async m64n256k16.f32.f16.f16, 2 x 1 warpgroups, a from shared memory"], "wgmma m64n256k16"),
    (["TMA load into a ring of 3 slots, completes on an mbarrier"], "TMA load, ring of 3"),
    (["points (128, 64): [2:R(64)]", "TMA store from shared memory", "writes"], "TMA store from shared memory"),
    (["points (128, 64): [2:R(64)]"], ""),
    ([], ""),
])  # fmt: skip
def test_labels(becomes, label):
    assert short(becomes) == label
