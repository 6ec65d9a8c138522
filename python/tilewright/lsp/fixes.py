"""What the help line of an error proposes, as edits of the text."""

import ast
import re

from .places import characters_of_bytes

_NEAR = re.compile(r"(?:did you mean|the nearest(?: it has)?:?) ([\w., ]+?)\??(?:$|[;)])")
_WRONG = re.compile(r"no T\.(\w+)|keyword argument '(\w+)'|'(\w+)'")
_ARGUMENT = re.compile(r"pass (\w+)=(\w+)\b")
_INSTEAD = re.compile(r"(?:write )?(T\.\w+)\((\w+(?:, \w+)*)\)")
_FOREIGN = re.compile(r"(?:no |^)T\.(\w+)|(?:numpy|torch)\.(\w+) takes arrays")
_UNSET = re.compile(r"\bto '(\w+)': clear it before|'(\w+)' is read before anything")


class Fixes:
    def __init__(self, tree, lines):
        self.tree, self.lines = tree, lines

    def of(self, error, line, start):
        """[{"title", "line", "start", "end", "text"}] for an error at a character of a line: what stands there becomes `text`."""
        return self.renamed(error, line) or self.called(error, line) or self.with_argument(error, line) or self.cleared(error, line)

    def renamed(self, error, line):
        """The nearest word that there is."""
        near, wrong = _NEAR.search(error.help or ""), _WRONG.search(error.message)
        if not near or not wrong:
            return []
        word = next(filter(None, wrong.groups()))
        places = list(re.finditer(rf"\b{re.escape(word)}\b", self.lines[line - 1]))
        if len(places) != 1:
            return []  # which one is meant is for the reader to say
        start, end = places[0].span()
        names = [n.strip().removeprefix("T.") for n in near[1].split(",")]
        return [
            {"title": f"Replace {word} by {name}", "line": line, "start": start, "end": end, "text": name}
            for name in names
            if name
        ]

    def called(self, error, line):
        """The function that does what one of another library does, with as many arguments."""
        said, foreign = _INSTEAD.match(error.help or ""), _FOREIGN.search(error.message)
        if not said or not foreign:
            return []
        word, count = next(filter(None, foreign.groups())), len(said[2].split(","))
        calls = [n.func for n in ast.walk(self.tree) if isinstance(n, ast.Call) and n.lineno == line and len(n.args) == count
                 and not n.keywords and isinstance(n.func, ast.Attribute) and n.func.attr == word]  # fmt: skip
        if len(calls) != 1 or calls[0].end_lineno != line:
            return []
        text = self.lines[line - 1]
        start, end = (characters_of_bytes(text, c) for c in (calls[0].col_offset, calls[0].end_col_offset))
        return [{"title": f"Call {said[1]}", "line": line, "start": start, "end": end, "text": said[1]}]

    def with_argument(self, error, line):
        """A keyword that the call on the line lacks."""
        said = _ARGUMENT.search(error.help or "")
        calls = [
            n
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Call) and n.lineno == n.end_lineno == line and isinstance(n.func, ast.Attribute)
        ]
        if not said or len(calls) != 1 or any(k.arg == said[1] for k in calls[0].keywords):
            return []
        text = self.lines[line - 1]
        end = characters_of_bytes(text, calls[0].end_col_offset - 1)
        comma = ", " if calls[0].args or calls[0].keywords else ""
        return [
            {
                "title": f"Pass {said[1]}={said[2]}",
                "line": line,
                "start": end,
                "end": end,
                "text": f"{comma}{said[1]}={said[2]}",
            }
        ]

    def cleared(self, error, line):
        """T.clear of a tile that is added to, before the outermost loop of the launch around it."""
        said = _UNSET.search(error.message) or _UNSET.search(error.help or "")
        if not said or "clear" not in f"{error.help} {error.message}":
            return []
        name = next(filter(None, said.groups()))
        around = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and n.lineno <= line <= n.end_lineno]
        launches = [n for n in around if isinstance(n, ast.With)]
        language = self.language_of(line)
        if not launches or not language:
            return []
        body = launches[-1].body
        before = next(n for n in body if n.lineno <= line <= n.end_lineno)
        indent = self.lines[before.lineno - 1][: before.col_offset]
        return [
            {
                "title": f"Clear {name} before",
                "line": before.lineno,
                "start": 0,
                "end": 0,
                "text": f"{indent}{language}.clear({name})\n",
            }
        ]

    def language_of(self, line):
        """The name by which the line's call says the language: T."""
        for n in ast.walk(self.tree):
            if (
                isinstance(n, ast.Call)
                and n.lineno <= line <= n.end_lineno
                and isinstance(n.func, ast.Attribute)
                and isinstance(n.func.value, ast.Name)
            ):
                return n.func.value.id
        return ""
