"""Runs notebooks, a JSON list of lists of cells on the standard input, and writes what is said of each cell."""
import contextlib
import io
import json
import re
import sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")
shell.xmode = "Plain"


def run(cell):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        result = shell.run_cell(cell, store_history=True)
    failed = result.error_before_exec or result.error_in_exec
    shown = shell.display_formatter.format(result.result)[0] if result.result is not None and not failed else {}
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    return {"error": text.strip() or repr(failed) if failed else None, "shown": shown, "written": text}


said = []
for cells in json.load(sys.stdin):
    shell.reset(new_session=False)
    said.append([run(cell) for cell in cells])
print("\n" + json.dumps(said, default=str))
