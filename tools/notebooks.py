#!/usr/bin/env python3
"""Writes examples/notebooks: tutorials as notebooks, a cell for each piece of text and each block of Python."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples/notebooks"
PAGES = ("1_first_tile", "3_matmul", "4_layouts", "7_debugging")
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)")


def _cell(number, kind, text):
    made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.strip("\n").splitlines(True)}
    return {**made, "execution_count": None, "outputs": []} if kind == "code" else made


def _from_here(match):
    """A link of a tutorial, from the folder of notebooks."""
    target = (ROOT / "docs/tutorials" / match[1]).resolve().relative_to(ROOT)
    return f"](../../{target}"


def notebook(page):
    """The text of the notebook of a page."""
    text = (ROOT / f"docs/tutorials/{page}.md").read_text(encoding="utf-8")
    cells, at = [], 0
    for block in BLOCK.finditer(text):
        cells += [("markdown", LINK.sub(_from_here, text[at : block.start()])), ("code", block[1])]
        at = block.end()
    cells.append(("markdown", LINK.sub(_from_here, text[at:])))
    made = [_cell(number, kind, source) for number, (kind, source) in enumerate(cells) if source.strip()]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def notebooks():
    """(file, text) of each."""
    return [(FOLDER / f"{page}.ipynb", notebook(page)) for page in PAGES]


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in notebooks():
        path.write_text(text, encoding="utf-8")
