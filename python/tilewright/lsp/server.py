"""Answers an editor. One thread reads messages, one handles them; each analysis is a process, which ends when its text changes."""
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading

from .. import _native
from . import messages
from .documents import Document, units

_START = "import sys; sys.path[:] = [p for p in sys.path if p]; from tilewright.lsp.analysis import main; main(int(sys.argv[1]))"
_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_ARCHITECTURES = ("sm_90a", "sm_89", "sm_80", "cpu")
_DEFAULTS = {"arch": "sm_90a", "timeout": 20.0, "delay": 0.2}
_END = object()


class Refused(Exception):
    """A request that gets an error: its code, and why."""


def short(becomes):
    """What an operation became, in a few words; "" where only its layout is known."""
    for text in becomes:
        if text.startswith("points "):
            continue
        text = re.sub(r"\bwgmma\.mma_async\b", "wgmma", text)
        text = re.sub(r"\b(m\d+n\d+k\d+)(\.\w+)+", r"\1", text)
        text = re.sub(r" into a ring of (\d+) slots?", r"; ring of \1", text)
        return text.split(", ")[0].replace("; ", ", ")[:60]
    return ""


class Server:
    def __init__(self, stream, out):
        self.stream, self.writer = stream, messages.Writer(out)
        self.incoming, self.cancelled, self.waiting = queue.Queue(), set(), set()
        self.lock = threading.RLock()
        self.documents, self.results, self.timers, self.children = {}, {}, {}, {}
        self.options, self.initialized, self.stopped, self.refreshes = dict(_DEFAULTS), False, False, False
        self.requests = 0

    # ---- messages

    def read_all(self):
        while True:
            try:
                message = messages.read(self.stream)
            except messages.BadMessage as error:
                self.writer.send(id=None, error={"code": messages.PARSE_ERROR, "message": str(error)})
                continue
            if message is None:
                self.incoming.put(_END)
                return
            self.receive(message)

    def receive(self, message):
        if isinstance(message, dict) and message.get("method") == "$/cancelRequest":
            number = (message.get("params") or {}).get("id")
            with self.lock:
                if number in self.waiting:
                    self.cancelled.add(number)
            return
        if isinstance(message, dict) and isinstance(message.get("id"), (int, str)) and "method" in message:
            with self.lock:
                self.waiting.add(message["id"])
        self.incoming.put(message)

    def run(self):
        """Until the editor ends it; the exit status."""
        while True:
            message = self.incoming.get()
            if message is _END or (isinstance(message, dict) and message.get("method") == "exit"):
                for uri in list(self.documents):
                    self.stop(uri)
                return 0 if self.stopped else 1
            self.handle(message)

    def handle(self, message):
        if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
            self.writer.send(id=None, error={"code": messages.INVALID_REQUEST, "message": "a message is an object with a method"})
            return
        method, number = message.get("method"), message.get("id")
        if method is None:
            return  # an answer to one of ours
        try:
            result = self.result_of(method, message.get("params") or {}, number)
        except Refused as refused:
            error = {"code": refused.args[0], "message": refused.args[1]}
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as problem:
            error = {"code": messages.INVALID_PARAMS, "message": f"{method}: {type(problem).__name__}: {problem}"}
        else:
            error = None
        if number is None:
            return
        with self.lock:
            self.waiting.discard(number)
            self.cancelled.discard(number)
        self.writer.send(id=number, **({"result": result} if error is None else {"error": error}))

    def result_of(self, method, parameters, number):
        with self.lock:
            if number is not None and number in self.cancelled:
                raise Refused(messages.CANCELLED, "cancelled")
        if self.stopped:
            raise Refused(messages.INVALID_REQUEST, "the server was shut down")
        if not self.initialized and method != "initialize":
            raise Refused(messages.NOT_INITIALIZED, "initialize comes first")
        if method not in _HANDLERS:
            if number is None or method.startswith("$/"):
                return None
            raise Refused(messages.METHOD_NOT_FOUND, f"there is no method {method}")
        return _HANDLERS[method](self, parameters)

    def initialize(self, parameters):
        given = parameters.get("initializationOptions") or {}
        for name, value in given.items():
            known = name in _DEFAULTS and (value in _ARCHITECTURES if name == "arch" else isinstance(value, (int, float)) and value >= 0)
            if not known:
                raise Refused(messages.INVALID_PARAMS, f"no setting {name}={value!r}: there are arch ({', '.join(_ARCHITECTURES)}), "
                              "timeout and delay, in seconds")  # fmt: skip
        self.options.update(given)
        self.initialized = True
        workspace = (parameters.get("capabilities") or {}).get("workspace") or {}
        self.refreshes = bool((workspace.get("inlayHint") or {}).get("refreshSupport"))
        return {
            "capabilities": {
                "positionEncoding": "utf-16",
                "textDocumentSync": {"openClose": True, "change": 2, "save": True},
                "hoverProvider": True, "inlayHintProvider": True, "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            },
            "serverInfo": {"name": "tilewright", "version": _native.version()},
        }  # fmt: skip

    def shutdown(self, parameters):
        for uri in list(self.documents):
            self.stop(uri)
        self.stopped = True

    # ---- texts

    def opened(self, parameters):
        given = parameters["textDocument"]
        with self.lock:
            self.documents[given["uri"]] = Document(given["uri"], given["version"], given["text"])
        self.later(given["uri"], 0)

    def changed(self, parameters):
        given = parameters["textDocument"]
        with self.lock:
            document = self.documents[given["uri"]]
            document.change(given["version"], parameters["contentChanges"])
        self.later(given["uri"], self.options["delay"])
        self.others_of(document)

    def saved(self, parameters):
        self.later(parameters["textDocument"]["uri"], 0)

    def closed(self, parameters):
        uri = parameters["textDocument"]["uri"]
        self.stop(uri)
        with self.lock:
            document = self.documents.pop(uri)
            self.results.pop(uri, None)
        self.writer.send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": []})
        self.others_of(document)

    def others_of(self, document):
        """Open files that imported this one are looked at again."""
        with self.lock:
            users = [u for u, r in self.results.items() if u != document.uri and document.path in r["files"]]
        for uri in users:
            self.later(uri, self.options["delay"])

    # ---- analyses

    def later(self, uri, delay):
        self.stop(uri)
        with self.lock:
            if uri not in self.documents:
                return
            timer = self.timers[uri] = threading.Timer(delay, self.analyze, [uri])
            timer.daemon = True
            timer.start()

    def stop(self, uri):
        with self.lock:
            timer, child = self.timers.pop(uri, None), self.children.pop(uri, None)
        if timer is not None:
            timer.cancel()
        if child is not None:
            _end(child)

    def analyze(self, uri):
        """In a thread of its own."""
        reading, writing = os.pipe()
        with self.lock:
            document = self.documents.get(uri)
            if document is None or self.timers.get(uri) is not threading.current_thread():
                os.close(reading)
                os.close(writing)
                return
            version, limit = document.version, self.options["timeout"]
            texts = {d.path: d.text for d in self.documents.values()}
            folder = os.path.dirname(document.path)
            path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), str(pathlib.Path(sys.modules["tilewright"].__file__).parents[1])) if p)
            environment = {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_ENGINE": "interpreter", "TILEWRIGHT_NVRTC": "/dev/null"}
            child = subprocess.Popen([sys.executable, "-c", _START, str(writing)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, pass_fds=[writing], start_new_session=True, env=environment,
                                     cwd=folder if os.path.isdir(folder) else None)  # fmt: skip
            self.children[uri] = child
        os.close(writing)
        stopper = threading.Timer(limit + 1, _end, [child])  # where the child cannot stop itself
        stopper.daemon = True
        stopper.start()
        request = {"path": document.path, "texts": texts, "arch": self.options["arch"], "limit": limit}
        try:
            child.stdin.write(json.dumps(request).encode())
            child.stdin.close()
        except BrokenPipeError:
            pass
        with os.fdopen(reading, "rb") as stream:
            said = stream.read()
        _end(child)
        late = not stopper.is_alive()
        stopper.cancel()
        with self.lock:
            if self.children.get(uri) is not child or document.version != version:
                return  # another analysis is under way
            del self.children[uri]
            result = _parsed(said, late, limit)
            result["version"] = version
            self.results[uri] = result
            self.publish(document, result)
            if self.refreshes:
                self.requests += 1
                self.writer.send(id=f"refresh {self.requests}", method="workspace/inlayHint/refresh")

    def publish(self, document, result):
        self.writer.send(method="textDocument/publishDiagnostics", params={
            "uri": document.uri, "version": result["version"], "diagnostics": [_diagnostic(document, m) for m in result["mistakes"]]})  # fmt: skip

    # ---- questions

    def current(self, parameters):
        """(the document, what is known of its text as it is now)."""
        uri = parameters["textDocument"]["uri"]
        with self.lock:
            document, result = self.documents[uri], self.results.get(uri)
        return document, result if result and result["version"] == document.version else {"facts": [], "mistakes": []}

    def hover(self, parameters):
        document, result = self.current(parameters)
        line = parameters["position"]["line"] + 1
        word, before = document.word_at(parameters["position"])
        around = [f for f in result["facts"] if f["first"] <= line <= f["last"]]
        texts = [] if before.endswith(".") else [_of_buffer(f, b) for f in around for b in f["buffers"] if b["name"] == word]
        texts = texts or [_of_operation(f, o) for f in around for o in f["operations"] if o["line"] == line]
        texts = list(dict.fromkeys(texts))
        return {"contents": {"kind": "markdown", "value": "\n\n---\n\n".join(texts)}} if texts else None

    def inlay_hints(self, parameters):
        document, result = self.current(parameters)
        first, last = (parameters["range"][end]["line"] + 1 for end in ("start", "end"))
        labels, lines = {}, document.lines
        for facts in result["facts"]:
            for operation in facts["operations"]:
                label = short(operation["becomes"])
                if label and first <= operation["line"] <= last:
                    labels.setdefault(operation["line"], {}).setdefault(label, _of_operation(facts, operation))
        return [{"position": {"line": line - 1, "character": units(lines[line - 1], len(lines[line - 1].rstrip()))}, "label": " | ".join(found),
                 "paddingLeft": True, "tooltip": {"kind": "markdown", "value": "\n\n---\n\n".join(found.values())}}
                for line, found in sorted(labels.items())]  # fmt: skip

    def code_actions(self, parameters):
        document, result = self.current(parameters)
        first, last = (parameters["range"][end]["line"] for end in ("start", "end"))
        actions = []
        for mistake in result["mistakes"]:
            where = _diagnostic(document, mistake)
            if not first <= where["range"]["start"]["line"] <= last:
                continue
            text = document.lines[where["range"]["start"]["line"]]
            places = list(re.finditer(rf"\b{re.escape(mistake['wrong'])}\b", text)) if mistake.get("wrong") else []
            if len(places) != 1:
                continue  # which one is meant is for the reader to say
            start, end = ({"line": where["range"]["start"]["line"], "character": units(text, n)} for n in places[0].span())
            for number, fix in enumerate(mistake["fixes"]):
                edit = {"changes": {document.uri: [{"range": {"start": start, "end": end}, "newText": fix}]}}
                actions.append({"title": f"Replace {mistake['wrong']} by {fix}", "kind": "quickfix", "diagnostics": [where],
                                "isPreferred": number == 0 and len(mistake["fixes"]) == 1, "edit": edit})  # fmt: skip
        return actions


_HANDLERS = {
    "initialize": Server.initialize, "shutdown": Server.shutdown, "textDocument/didOpen": Server.opened,
    "textDocument/didChange": Server.changed, "textDocument/didSave": Server.saved, "textDocument/didClose": Server.closed,
    "textDocument/hover": Server.hover, "textDocument/inlayHint": Server.inlay_hints, "textDocument/codeAction": Server.code_actions,
}  # fmt: skip


def _end(child):
    """Ends a child and what it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    child.wait()


def _parsed(said, late, limit):
    try:
        return json.loads(said)
    except ValueError:
        why = f"the analysis was stopped after {limit:g} s" if late else "the process that imported this file ended before it was done"
        return {"mistakes": [{"message": why, "line": 1, "column": 0, "severity": 2}], "facts": [], "files": []}


def _page():
    """Where docs/errors.md is: in the wheel, or in a checkout."""
    return next((p for p in (_PACKAGE / "lsp/errors.md", _PACKAGE.parents[1] / "docs/errors.md") if p.is_file()), None)


def _diagnostic(document, mistake):
    help = f"\nhelp: {mistake['help']}" if mistake.get("help") else ""
    made = {"range": document.range_of(mistake["line"], mistake["column"]), "severity": mistake["severity"],
            "source": "tilewright" if mistake.get("code") else "python", "message": mistake["message"] + help}  # fmt: skip
    if mistake.get("code"):
        made["code"] = mistake["code"]
        page = _page()
        if page is not None:
            made["codeDescription"] = {"href": f"{page.as_uri()}#{mistake['area']}"}
    return made


def _of_buffer(facts, buffer):
    shape = f"[{', '.join(map(str, buffer['shape']))}]" if buffer["shape"] else ""
    size = f", {buffer['bytes']} bytes" if buffer["bytes"] is not None else ""
    lines = [f"**{buffer['name']}**: {buffer['dtype']}{shape}, {buffer['space']}{size}"]
    for layout in facts["layouts"]:
        if layout["name"] == buffer["name"]:
            lines.append(f"on {facts['arch']} in {layout['space']}, decided by {layout['decided_by']}: `{layout['layout']}`")
    return "\n\n".join(lines)


def _of_operation(facts, operation):
    times = f"{operation['executions']} times on a call" if operation["executions"] else ""
    lines = [f"`{operation['text']}`", *([times] if times else []), *(f"- {text}" for text in operation["becomes"])]
    lines += [f"- not: {text}" for text in operation["rejected"]]
    return f"{facts['name']} on {facts['arch']}\n\n" + "\n".join(lines)


def main():
    """On standard input and output, which nothing else may write to from here on."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = Server(sys.stdin.buffer, out)
    threading.Thread(target=server.read_all, daemon=True).start()
    return server.run()
