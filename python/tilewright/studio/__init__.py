"""The page about a kernel: one HTML file that needs no server and no network (docs/studio.md)."""
import ast
import base64
import hashlib
import html
import json
import linecache
import os
import string

from .. import call_values, outputs
from ..errors import TilewrightError

_HERE = os.path.dirname(__file__)
_SCRIPTS = ("elements.js", "colors.js", "texts.js", "layouts.js", "sections.js", "start.js")
_HIDDEN = ("thread program",)  # behind a button
_COUNTED = ("In the simulated call, whose tensors may be smaller than those above: wavefronts of shared memory and sectors of "
            "global memory, each beside the least that would do.")  # fmt: skip


def page(facts):
    """The HTML of facts as Program.studio() gives them, and whatever write() adds."""
    style, script = _part("page.css"), "\n".join(map(_part, _SCRIPTS))
    parts = {"style": style, "script": script, "style_hash": _hash(style), "script_hash": _hash(script),
             "title": html.escape(f"{facts['explanation']['program']}: Tilewright"), "facts": _in_script(facts)}  # fmt: skip
    return string.Template(_part("page.html")).substitute(parts)


def write(program, path, arch, symbols, simulated=None):
    """Writes the page about a program, and gives its path. simulated: what counted() gives."""
    facts = json.loads(program.studio(arch, call_values.integers(program, symbols)))
    for text in facts["texts"]:
        text["hidden"] = text["name"] in _HIDDEN
        text["inlays"] = text["name"] == "tile program"
    sources = _sources(facts)
    for text in sources:  # a program in text form may be all of its file
        text["hidden"] = text["text"].strip() == facts["texts"][0]["text"].strip()
    facts["texts"][:0] = sources
    if simulated is not None:
        facts["simulated"] = simulated
    return outputs.write(path, page(facts))


def counted(simulate):
    """What write() takes as `simulated`: counts, or what the simulator found wrong. A call that it refuses is the caller's mistake."""
    try:
        return {**simulate(), "about": _COUNTED}
    except TilewrightError as error:
        if error.area == "launch" and error.code != "TW4015":  # an assertion of the kernel's
            raise
        return {"error": str(error)}


def _part(name):
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _hash(text):
    """What the page's policy allows, and nothing else: whatever a name or a source says, it is not run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _in_script(facts):
    """JSON that no text in it can end the element of."""
    return json.dumps(facts, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


# ---- the user's source


def _sources(facts):
    """A text of each file that lines of the program come from, the one with most of them first; of Python the functions and
    classes that have such a line."""
    made = []
    for number, file in enumerate(facts["files"]):
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        wanted = {place[1] for text in facts["texts"] for place in text["places"] if place and place[0] == number}
        if not lines or not wanted:
            continue
        chosen = _chosen(lines, wanted)
        text, name = "\n".join("..." if n is None else lines[n - 1] for n in chosen), os.path.basename(file)
        places = [[number, n, 1] if n in wanted else 0 for n in chosen]
        made.append((len(wanted), {"name": name, "title": name, "text": text, "numbers": chosen, "places": places}))
    made.sort(key=lambda found: -found[0])
    for _, text in made[:1]:
        text["name"] = "source"
    return [text for _, text in made]


def _chosen(lines, wanted):
    """Numbers of lines; None: a gap."""
    try:
        body = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError):
        return list(range(1, len(lines) + 1))
    chosen, last = [], 0
    for node in body:
        begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if not any(begin <= n <= node.end_lineno for n in wanted):
            continue
        if chosen and begin > last + 1:
            chosen.append(None)
        chosen += range(begin, node.end_lineno + 1)
        last = node.end_lineno
    return chosen or list(range(1, len(lines) + 1))
