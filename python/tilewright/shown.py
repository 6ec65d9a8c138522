"""Objects that show themselves: what explain() and simulate() give, and pictures, as text and in notebooks."""
from __future__ import annotations

import functools
import html
from typing import Any

_LINES = 12  # of a summary


def _preformatted(text):
    return f"<pre>{html.escape(text)}</pre>"


def table(heads: Any, rows: Any) -> list[str]:
    """Lines of a table, numbers to the right."""
    texts = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[c]) for row in texts) for c in range(len(heads))]
    left = [not all(isinstance(row[c], (int, float)) for row in rows) for c in range(len(heads))]
    return ["  ".join(cell.ljust(w) if to_left else cell.rjust(w) for cell, w, to_left in zip(row, widths, left)).rstrip() for row in texts]


class Explanation(str):
    """What becomes of a kernel: a text, of which `summary()` is the first screen and `json` the facts, as a dict."""

    def __new__(cls, text: str, facts: Any) -> Explanation:
        made = super().__new__(cls, text)
        made._facts = facts
        return made

    @functools.cached_property
    def json(self) -> dict[str, Any]:
        return self._facts()

    def summary(self) -> str:
        """What bounds it, what its launches take, what its operations become: at most 12 lines."""
        facts = self.json
        lines = [f"{facts['program']} on the {facts['engine']} engine: {facts['headline']}", *facts.get("warnings", [])]
        for launch in facts["launches"]:
            memory = f", {launch['shared_bytes']} bytes of shared memory" if "shared_bytes" in launch else ""
            threads = launch["threads"] if isinstance(launch["threads"], list) else [launch["threads"]]
            lines.append(f"launch {launch['name']}: {_known(launch['blocks'])} blocks of {' x '.join(map(str, threads))} threads{memory}")
            for operation in launch["operations"]:
                if operation.get("becomes"):
                    lines.append(f"  line {operation['line']}: {operation['operation']}: {operation['becomes'][0]}")
        if len(lines) > _LINES:
            lines[_LINES - 1 :] = [f"and {len(lines) - _LINES + 1} lines more: the whole text says them"]
        return "\n".join(map(str, lines))

    def _repr_html_(self) -> str:
        return f"{_preformatted(self.summary())}<details><summary>all of it</summary>{_preformatted(str(self))}</details>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def _known(count):
    return "as many as the call says" if count is None else count


class _Table(dict[str, Any]):
    """A dict that is shown as the table that str() gives."""

    def _repr_html_(self) -> str:
        return _preformatted(str(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Counts(_Table):
    """What the memories did in a simulated call: a dict, which is shown as a table by line."""

    _COLUMNS = ("shared_accesses", "shared_wavefronts", "global_accesses", "global_sectors", "bytes_moved", "atomics", "barriers")

    def __str__(self) -> str:
        lines = []
        for launch in self["launches"]:
            lines.append(f"launch {launch['launch']}: {launch['blocks']} blocks of {launch['threads']} threads, "
                         f"{launch['shared_bytes']} bytes of shared memory")  # fmt: skip
            rows = [[f"line {part['line']}", *(part[c] for c in self._COLUMNS)] for part in launch["lines"]]
            rows.append(["all", *(launch["total"][c] for c in self._COLUMNS)])
            lines += table(("", *(c.replace("_", " ") for c in self._COLUMNS)), rows)
        return "\n".join(lines)


class Picture:
    """An SVG drawing: a notebook shows it, save(path) writes it."""

    svg: str
    title: str

    def __init__(self, svg: str, title: str) -> None:
        self.svg, self.title = svg, title

    def save(self, path: Any) -> Any:
        from . import outputs

        return outputs.write(path, self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<picture of {self.title}: save(path) writes it>"


class Measured(_Table):
    """Milliseconds of calls, and what they come to: a dict, which is shown as a table."""

    def __str__(self) -> str:
        return "\n".join(table(tuple(self), [[f"{v:.4g}" if isinstance(v, float) else v for v in self.values()]]))
