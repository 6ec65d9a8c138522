"""The Python of docs/python.md and README.md runs."""
import importlib.util
import linecache
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


def run(document, space):
    text = (ROOT / document).read_text()
    for match in BLOCK.finditer(text):
        if match[1] and importlib.util.find_spec(match[1]) is None:
            continue
        lines = text.count("\n", 0, match.start(2))
        source = "\n" * lines + match[2]
        name = f"<{document}:{lines}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), space)
    return space


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "interpreter")


def test_python_page():
    assert "softmax" in run("docs/python.md", {})


def test_readme():
    a, b = (np.random.default_rng(n).standard_normal((1024, 1024)).astype("float16") for n in (0, 1))
    space = {"a": a, "b": b}
    text = (ROOT / "README.md").read_text()
    assert len(BLOCK.findall(text)) == 1
    import os

    os.environ["TILEWRIGHT_ENGINE"] = "cpu"
    c = run("README.md", space)["c"]
    wanted = np.maximum(a.astype("float32") @ b.astype("float32"), 0)
    assert np.abs(c - wanted).max() < 0.1
