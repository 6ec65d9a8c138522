"""tw.plot: pictures of layouts, those that programs give and those that the compiler chose for a kernel's tiles."""
from __future__ import annotations

import re
from typing import Any

from .index_maps import Fragment, Layout, _Mapped
from .plot_layout import _cells, _svg
from .shown import Picture
from .trace import fail

_MODE = re.compile(r"(\d+):(?:([CGWLR])\((\d+)\)|(\d+))")
_TEXT = re.compile(r"\((?P<shape>[\d, ]+)\): (?P<modes>.*?)(?:; bits (?P<bits>\d+))?(?:; swizzle \((?P<swizzle>[\d, ]+)\))?$")


def plot(what: Any, name: str | None = None, arch: str = "", path: Any = None, banks: int | None = None,
         first: tuple[int, int] | None = None) -> Picture:  # fmt: skip
    """A picture of a T.Layout or T.Fragment, or of a kernel's tile: plot(kernel, "C_local"). A notebook shows it; `path` writes the SVG.
    With `banks`, 32 on today's GPUs, the colors of a layout in memory are the banks of its elements, of 4 bytes each. `first` is how
    many rows and columns of a large tile are drawn."""
    if isinstance(what, _Mapped):
        layout, title = what, name or ("fragment" if isinstance(what, Fragment) else "layout")
    elif hasattr(what, "explain"):
        layout, title = _of_kernel(what, name, arch)
    else:
        fail("OperandKind", f"plot() of {type(what).__name__}", 'a T.Layout, a T.Fragment, or a kernel and the name of a tile: plot(kernel, "C_local")')
    rows, columns, cells = _cells(layout, "input", None)
    if banks is not None:
        if isinstance(layout, Fragment) or banks < 1:
            fail("BadOption", f"plot() with banks={banks} of {title}", "banks are 1 or more, and those of a layout in shared memory")
        cells = {at: (place, int(place) % banks) for at, (place, _) in cells.items()}
    if first is not None:
        rows, columns = min(rows, first[0]), min(columns, first[1])
        cells = {at: cell for at, cell in cells.items() if at[0] < rows and at[1] < columns}
    made = Picture(_svg(rows, columns, cells, title, _legend(layout, banks)), title)
    if path is not None:
        made.save(path)
    return made


def _legend(layout, banks):
    if isinstance(layout, Fragment):
        return "T: thread, L: its register; a color for each thread"
    return f"place in memory, in elements; a color for each {'bank' if banks else 'row of it'}"


def _layouts_of(kernel, arch):
    facts = kernel.explain(arch or kernel.arch or "sm_90a", as_json=True)
    return [row for launch in facts["launches"] for row in launch.get("layouts", ())]


def tiles_of(kernel, arch=""):
    """Names of the tiles that have a layout."""
    return [row["name"] for row in _layouts_of(kernel, arch)]


def _of_kernel(kernel, name, arch):
    """(layout, title) of the tile of that name; without one, of the first in registers."""
    found = _layouts_of(kernel, arch)
    names = [row["name"] for row in found]
    if name is None:
        chosen = next((row for row in found if row["space"] == "registers"), found[0] if found else None)
    else:
        chosen = next((row for row in found if row["name"] == name), None)
    if chosen is None:
        what = f"kernel '{kernel.name}' has no tile '{name}' with a layout" if name else f"no tile of kernel '{kernel.name}' has a layout"
        fail("BadOption", what, f"those that have one: {', '.join(names)}" if names else "tiles have layouts on a GPU: arch=\"sm_90a\"")
    layout = layout_of_text(chosen["layout"])
    return layout, f"{chosen['name']} in {chosen['space']}, decided by {chosen['decided_by']}"


def layout_of_text(text):
    """The map that a layout's text says (docs/layouts.md): modes from the slowest digit to the fastest, with their strides."""
    parts = _TEXT.match(text)
    shape = [int(e) for e in parts["shape"].split(", ")]
    modes = [[(int(m[1]), m[2], int(m[3] or m[4])) for m in _MODE.finditer(axis)] for axis in re.findall(r"\[(.*?)\]", parts["modes"])]
    if len(shape) > 2:  # one slot of a ring
        shape, modes = shape[-2:], modes[len(shape) - 2 : len(shape)]
    of_threads = any(kind for axis in modes for _, kind, _ in axis)

    def places(index):
        found = dict.fromkeys(["C", "G", "W", "L", "R", None], 0)
        for position, axis in zip(index, modes):
            for extent, kind, stride in reversed(axis):
                found[kind] += position % extent * stride
                position //= extent
        return found

    if of_threads:

        def held(*index):
            at = places(index)
            return at["G"] * 128 + at["W"] * 32 + at["L"], at["R"]

        return Fragment(shape, held)
    bits = int(parts["bits"] or 8)
    swizzle = [int(n) for n in parts["swizzle"].split(", ")] if parts["swizzle"] else None

    def place(*index):
        element = places(index)[None]
        if swizzle is None:
            return element
        count, base, shift = swizzle
        byte = element * bits // 8
        byte ^= (byte >> shift) & (((1 << count) - 1) << base)
        return byte * 8 // bits

    return Layout(shape, place)
