"""How far something long has come, in one line that is written over."""
import os
import sys
import time


class Progress:
    """with Progress("tuning f", 40) as bar: bar.step("best 0.1 ms"). Shown on a terminal; TILEWRIGHT_PROGRESS=0 or 1
    decides otherwise, and then each step has a line of its own."""

    _WIDTH = 24

    def __init__(self, what, total):
        self.what, self.total, self.done = what, total, 0
        wish = os.environ.get("TILEWRIGHT_PROGRESS", "")
        self.lines = wish == "1" and not sys.stderr.isatty()
        self.shown = total > 1 and wish != "0" and (sys.stderr.isatty() or wish == "1")
        self.begin, self.length = time.monotonic(), 0

    def __enter__(self):
        self._show("")
        return self

    def step(self, note=""):
        self.done += 1
        self._show(note)

    def __exit__(self, *error):
        if self.shown and not self.lines:
            sys.stderr.write("\n")

    def _show(self, note):
        if not self.shown:
            return
        full = self._WIDTH * self.done // self.total
        bar = "#" * full + "." * (self._WIDTH - full)
        text = f"{self.what} [{bar}] {self.done}/{self.total} {time.monotonic() - self.begin:.0f} s {note}".rstrip()
        sys.stderr.write(text + "\n" if self.lines else "\r" + text.ljust(self.length))
        self.length = len(text)
        sys.stderr.flush()
