"""Runs the Python and the commands of pages. A comment above a block says more: `<!-- needs: torch -->`, a package without which
it is left out; `<!-- fails: TW1063 -->`, the code of the error that it ends with; `<!-- file: name.py -->`, the file that
commands find it in.
"""

import importlib.util
import linecache
import pathlib
import re
import subprocess
import sys

import pytest
import tilewright as tw

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:<!-- (needs|fails|file): ([\w.]+) -->\n)?```python\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def blocks(text):
    """(what the comment says, the word behind it, the Python, its first line) of each."""
    return [(m[1], m[2], m[3], text.count("\n", 0, m.start(3))) for m in BLOCK.finditer(text)]


def run(page, space):
    """The names that a page's Python leaves."""
    for mark, word, python, line in blocks((ROOT / page).read_text()):
        if mark == "needs" and importlib.util.find_spec(word) is None:
            continue
        source = "\n" * line + python
        name = f"<{page}:{line}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        code = compile(source, name, "exec")
        if mark == "fails":
            with pytest.raises(tw.TilewrightError) as error:
                exec(code, space)
            assert error.value.code == word, f"{page}:{line}: {error.value}"
        else:
            exec(code, space)
    return space


def run_commands(page, folder, environment):
    """Runs what a page's blocks of `sh` say, in a folder with the files that the page has."""
    text = (ROOT / page).read_text()
    for mark, word, python, _ in blocks(text):
        if mark == "file":
            (folder / word).write_text(python)
    (folder / "bin").mkdir(exist_ok=True)
    for name, start in (("tilewright", "-m tilewright"), ("python", "")):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {start} "$@"\n')
        command.chmod(0o755)
    environment = {**environment, "PATH": f"{folder / 'bin'}:{environment['PATH']}"}
    for script in COMMANDS.findall(text):
        ran = subprocess.run(["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{page}: {script}\n{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}"
