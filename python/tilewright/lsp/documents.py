"""Texts of open files, and places in them: the protocol counts lines from 0 and UTF-16 units, the front end lines from 1 and bytes."""
import ast
import re
import urllib.parse
import urllib.request


class Document:
    def __init__(self, uri, version, text):
        self.uri, self.version, self.text = uri, version, text
        parts = urllib.parse.urlparse(uri)
        self.path = urllib.request.url2pathname(parts.path) if parts.scheme == "file" else f"<{uri}>"

    @property
    def lines(self):
        return self.text.split("\n")

    def change(self, version, changes):
        for change in changes:
            where = change.get("range")
            if where is None:
                self.text = change["text"]
            else:
                self.text = self.text[: self._offset(where["start"])] + change["text"] + self.text[self._offset(where["end"]) :]
        self.version = version

    def _offset(self, position):
        lines = self.lines
        if position["line"] >= len(lines):
            return len(self.text)
        before = sum(len(line) + 1 for line in lines[: position["line"]])
        return before + characters(lines[position["line"]], position["character"])

    def word_at(self, position):
        """(the name there, what stands right before it)."""
        line = self.lines[position["line"]] if position["line"] < len(self.lines) else ""
        column = characters(line, position["character"])
        for found in re.finditer(r"[^\W\d]\w*", line):
            if found.start() <= column <= found.end():
                return found[0], line[: found.start()]
        return "", line[:column]

    def range_of(self, line, column):
        """Of a place of the front end: to the end of the longest expression that begins there, on its line; without a column the
        whole line."""
        lines = self.lines
        number = min(max(line, 1), len(lines)) - 1
        text = lines[number].rstrip("\r")
        start, end = len(text) - len(text.lstrip()), len(text)
        if column > 0:
            data = text.encode()
            start = len(data[: column - 1].decode(errors="replace"))
            end = max((len(data[:e].decode(errors="replace")) for e in self._ends(number + 1, column - 1)), default=end)
        return {"start": {"line": number, "character": units(text, start)}, "end": {"line": number, "character": units(text, end)}}

    def _ends(self, line, offset):
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and (node.lineno, node.col_offset) == (line, offset):
                yield node.end_col_offset if node.end_lineno == line else 1 << 30


def units(line, characters):
    """UTF-16 units of so many characters."""
    return len(line[:characters].encode("utf-16-le", "surrogatepass")) // 2


def characters(line, units):
    return len(line.encode("utf-16-le", "surrogatepass")[: 2 * max(units, 0)].decode("utf-16-le", "ignore"))
