"""Answers an editor. The protocol is pygls's; what is said of a file comes from a process for each text (processes.py)."""

import asyncio
import contextlib
import os
import pathlib
import re
import sys

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from .. import _native
from .places import lines_of, moved, moved_facts, word_at
from .processes import Processes

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_USES = re.compile(r"^\s*(?:import|from)\s[^#\n]*\b(?:tilewright|tilelang)\b", re.MULTILINE)  # others are never imported
_ARCHITECTURES = ("sm_90a", "sm_80", "sm_86", "sm_87", "sm_89", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "cpu")
_SETTINGS = {"arch": _ARCHITECTURES, "analyze": ("type", "save"), "timeout": 20.0, "delay": 0.03}


class File:
    """An open file: its text, what is known of it, and the analysis that is under way."""

    def __init__(self, uri, version, text):
        path = to_fs_path(uri) if uri.startswith("file:") else None
        self.uri, self.path, self.version, self.lines, self.text = uri, path or f"<{uri}>", version, lines_of(text), text
        self.facts, self.mistakes, self.imports, self.task = [], [], [], None

    def change(self, version, text):
        """A new text: what is known of lines that are still there goes with them."""
        lines = lines_of(text)
        where = moved(self.lines, lines)
        kept = [f for f in (moved_facts(facts, where) for facts in self.facts) if f]
        moved_mistakes = [
            {**m, "line": where(m["line"]), "fixes": []} for m in self.mistakes
        ]  # their fixes are of the old text
        self.mistakes = [m for m in moved_mistakes if m["line"]]
        self.facts, self.version, self.text, self.lines = kept, version, text, lines

    def learn(self, answer):
        """What an analysis of this text says. Of kernels that a broken file does not come to, what was known stays."""
        named = {f["name"] for f in answer["facts"]}
        old = [] if answer["complete"] else [f for f in self.facts if f["name"] not in named]
        self.facts, self.mistakes, self.imports = old + answer["facts"], answer["mistakes"], answer["files"]

    @property
    def is_program(self):
        return bool(_USES.search(self.text))


class Server(LanguageServer):
    def __init__(self):
        # Whole texts, not changes of them: pygls ends lines where Python's str.splitlines does, at form feeds too.
        super().__init__("tilewright", _native.version(), types.TextDocumentSyncKind.Full)
        self.settings = {name: value[0] if isinstance(value, tuple) else value for name, value in _SETTINGS.items()}
        self.open, self.was_shut_down = {}, False
        self.processes, self.turns = Processes(), asyncio.Semaphore(os.cpu_count() or 1)

    def report_server_error(self, error, source):
        print(f"tilewright lsp: {error}", file=sys.stderr)  # editors keep it; a message for each would be in the way

    def set(self, given):
        for name, value in (given or {}).items():
            allowed = _SETTINGS.get(name)
            if not (
                value in allowed
                if isinstance(allowed, tuple)
                else allowed is not None and isinstance(value, (int, float)) and value >= 0
            ):
                raise JsonRpcInvalidParams(f"no setting {name}={value!r}: there are " + ", ".join(
                    f"{n} ({', '.join(v)})" if isinstance(v, tuple) else f"{n} (seconds)" for n, v in _SETTINGS.items()))  # fmt: skip
            self.settings[name] = value

    # ---- places

    def units(self, line, column):
        """A character of a line in what the editor counts."""
        return self.workspace.position_codec.client_num_units(line[:column])

    def position(self, file, line, column):
        """Of a line that counts from 1, and a character of it."""
        line = min(max(line, 1), len(file.lines))
        return types.Position(line - 1, self.units(file.lines[line - 1], column))

    def range(self, file, at):
        return types.Range(self.position(file, at["line"], at["start"]), self.position(file, at["line"], at["end"]))

    def column(self, text, units):
        """The character of a line that so many units come before."""
        count = 0
        while count < len(text) and units > 0:
            units -= self.workspace.position_codec.client_num_units(text[count])
            count += 1
        return count

    # ---- analyses

    def later(self, file, delay=None):
        """Analyzes a file soon. What was under way for it ends."""
        if file.task is not None:
            file.task.cancel()
        file.task = asyncio.get_running_loop().create_task(
            self.analyze(file, self.settings["delay"] if delay is None else delay)
        )

    async def analyze(self, file, delay):
        await asyncio.sleep(delay)
        version = file.version
        answer = {"mistakes": [], "facts": [], "files": [], "complete": True}
        if file.is_program:
            texts = {f.path: f.text for f in self.open.values()}
            request = {"path": file.path, "texts": texts, "arch": self.settings["arch"], "limit": self.settings["timeout"],
                       "known": {f["key"]: f for f in file.facts if f["key"]}}  # fmt: skip
            async with self.turns:
                answer = await self.processes.ask(request, lambda early: self.show_early(file, version, early["mistakes"]))
        if self.open.get(file.uri) is not file or file.version != version:
            return
        file.learn(answer)
        self.publish(file)
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def show_early(self, file, version, mistakes):
        """Mistakes that are known before it is known what kernels become, where others are shown."""
        if self.open.get(file.uri) is file and file.version == version and mistakes != file.mistakes:
            file.mistakes = mistakes
            self.publish(file)

    def publish(self, file):
        diagnostics = [self.diagnostic(file, m) for m in file.mistakes]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(file.uri, diagnostics, file.version))

    def users_of(self, file):
        """Open files that imported this one are looked at again."""
        for other in self.open.values():
            if other is not file and file.path in other.imports:
                self.later(other)

    def diagnostic(self, file, mistake):
        help = f"\nhelp: {mistake['help']}" if mistake.get("help") else ""
        page = _page() if mistake["code"] else None
        return types.Diagnostic(
            range=self.range(file, mistake), message=mistake["message"] + help,
            severity=types.DiagnosticSeverity(mistake["severity"]),
            code=mistake["code"] or None, source="tilewright" if mistake["code"] else "python",
            code_description=types.CodeDescription(f"{page.as_uri()}#{mistake['area']}") if page else None)  # fmt: skip

    def file_of(self, params):
        file = self.open.get(params.text_document.uri)
        if file is None:
            raise JsonRpcInvalidParams(f"{params.text_document.uri} is not open")
        return file


# ---- what is asked


def initialize(ls: Server, params):
    ls.set(params.initialization_options)


def shut_down(ls: Server, params):
    ls.was_shut_down = True


def opened(ls: Server, params):
    given = params.text_document
    if given.language_id == "python":
        file = ls.open[given.uri] = File(given.uri, given.version, given.text)
        ls.later(file, 0)


def changed(ls: Server, params):
    given = params.text_document
    file = ls.open.get(given.uri)
    if file is not None:
        file.change(given.version, ls.workspace.get_text_document(given.uri).source)
        if ls.settings["analyze"] == "type":
            ls.later(file)
            ls.users_of(file)


def saved(ls: Server, params):
    file = ls.open.get(params.text_document.uri)
    if file is not None:
        ls.later(file, 0)
        ls.users_of(file)


def closed(ls: Server, params):
    file = ls.open.pop(params.text_document.uri, None)
    if file is not None:
        file.task.cancel()
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(file.uri, []))
        ls.users_of(file)


def hover(ls: Server, params):
    file = ls.file_of(params)
    line = params.position.line + 1
    text = file.lines[line - 1] if line <= len(file.lines) else ""
    word, before = word_at(text, ls.column(text, params.position.character))
    around = [f for f in file.facts if f["first"] <= line <= f["last"]]
    texts = [] if before.endswith(".") else [_of_buffer(f, b) for f in around for b in f["buffers"] if b["name"] == word]
    texts = texts or [_of_operation(f, o) for f in around for o in f["operations"] if o["line"] <= line <= o["end"]]
    joined = "\n\n---\n\n".join(dict.fromkeys(texts))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, joined)) if joined else None


def inlay_hints(ls: Server, params):
    file = ls.file_of(params)
    first, last = params.range.start.line + 1, params.range.end.line + 1
    labels = {}
    for facts in file.facts:
        for operation in facts["operations"]:
            label = short(operation["becomes"])
            if label and first <= operation["end"] <= last <= 1 << 31:
                labels.setdefault(operation["end"], {}).setdefault(label, _of_operation(facts, operation))
    return [types.InlayHint(position=ls.position(file, line, len(file.lines[line - 1].rstrip())), label=" | ".join(found),
                            padding_left=True, tooltip=types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(found.values())))
            for line, found in sorted(labels.items()) if line <= len(file.lines)]  # fmt: skip


def code_actions(ls: Server, params):
    file = ls.file_of(params)
    first, last = params.range.start.line + 1, params.range.end.line + 1
    actions = []
    for mistake in file.mistakes:
        if not first <= mistake["line"] <= last:
            continue
        for number, fix in enumerate(mistake["fixes"]):
            edit = types.WorkspaceEdit(changes={file.uri: [types.TextEdit(ls.range(file, fix), fix["text"])]})
            actions.append(types.CodeAction(title=fix["title"], kind=types.CodeActionKind.QuickFix, edit=edit,
                                            diagnostics=[ls.diagnostic(file, mistake)],
                                            is_preferred=len(mistake["fixes"]) == 1))  # fmt: skip
    return actions


def short(becomes):
    """What an operation became, in a few words; "" where only its layout is known."""
    for text in becomes:
        if text.startswith(("points ", "writes ")):
            continue
        text = re.sub(r"\bwgmma\.mma_async\b", "wgmma", text)
        text = re.sub(r"\b(m\d+n\d+k\d+)(\.\w+)+", r"\1", text)
        text = re.sub(r" into a ring of (\d+) slots?", r"; ring of \1", text)
        return re.split(r", |: ", text)[0].replace("; ", ", ")[:60]
    return ""


def _page():
    """Where docs/errors.md is: in the wheel, or in a checkout."""
    return next((p for p in (_PACKAGE / "lsp/errors.md", _PACKAGE.parents[1] / "docs/errors.md") if p.is_file()), None)


def _of_buffer(facts, buffer):
    shape = f"[{', '.join(map(str, buffer['shape']))}]" if buffer["shape"] else ""
    size = f", {buffer['bytes']} bytes" if buffer["bytes"] is not None else ""
    strides = f", strides [{buffer['strides']}]" if buffer.get("strides") else ""
    lines = [f"**{buffer['name']}**: {buffer['dtype']}{shape}, {buffer['space']}{size}{strides}"]
    for layout in facts["layouts"]:
        if layout["name"] == buffer["name"]:
            lines.append(f"on {facts['arch']} in {layout['space']}, decided by {layout['decided_by']}: `{layout['layout']}`")
    return "\n\n".join(lines)


def _of_operation(facts, operation):
    times = f"{operation['executions']} times on a call" if operation["executions"] else ""
    lines = [f"`{operation['text']}`", *([times] if times else []), *(f"- {text}" for text in operation["becomes"])]
    lines += [f"- not: {text}" for text in operation["rejected"]]
    return f"{facts['name']} on {facts['arch']}\n\n" + "\n".join(lines)


_FEATURES = {
    types.INITIALIZE: initialize, types.SHUTDOWN: shut_down,
    types.TEXT_DOCUMENT_DID_OPEN: opened, types.TEXT_DOCUMENT_DID_CHANGE: changed,
    types.TEXT_DOCUMENT_DID_SAVE: saved, types.TEXT_DOCUMENT_DID_CLOSE: closed, types.TEXT_DOCUMENT_HOVER: hover,
    types.TEXT_DOCUMENT_INLAY_HINT: inlay_hints,
}  # fmt: skip


def main():
    """On standard input and output, which nothing else may write to from here on; the exit status."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = Server()
    for name, function in _FEATURES.items():
        server.feature(name)(function)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))(code_actions)
    with contextlib.suppress(BrokenPipeError):
        server.start_io(sys.stdin.buffer, out)
    return 0 if server.was_shut_down else 1
