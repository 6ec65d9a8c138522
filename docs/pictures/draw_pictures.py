#!/usr/bin/env python3
"""The pictures of README.md and of the tutorials: python docs/pictures/draw_pictures.py [FOLDER]. Layouts are drawn by
tw.plot; the rest is rectangles, texts and arrows. A test compares the files with what this writes."""
import html
import pathlib
import sys

import tilewright as tw
import tilewright.language as T

INK, PAPER, SOFT = "#1b1f3b", "#ffffff", "#e8eaf6"
BLUE, GREEN, AMBER, ROSE = "#9fb4ff", "#a5d6a7", "#ffd180", "#f8bbd0"


class Drawing:
    """An SVG of a size, with a white ground, so that it reads in the dark too."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def box(self, x, y, width, height, fill=SOFT, text="", dashed=False, size=14):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{INK}"{dash}/>')
        if text:
            self.text(x + width / 2, y + height / 2 + 5, text, size=size)

    def grid(self, x, y, rows, columns, cell, fill=PAPER, of=None):
        """Cells; of(row, column) gives the color of some."""
        for row in range(rows):
            for column in range(columns):
                self.box(x + column * cell, y + row * cell, cell, cell, (of and of(row, column)) or fill)

    def text(self, x, y, text, anchor="middle", size=14, weight="normal"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
                          f"{html.escape(text)}</text>")  # fmt: skip

    def arrow(self, x, y, to_x, to_y):
        line = f'd="M{x} {y} L{to_x} {to_y}" stroke="{INK}" stroke-width="2"'
        self.parts.append(f'<path {line} fill="none" marker-end="url(#head)"/>')

    def svg(self):
        head = (f'<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                f'<path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker>')  # fmt: skip
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="sans-serif" fill="{INK}" role="img">',
            f"<title>{html.escape(self.title)}</title>", f"<defs>{head}</defs>",
            f'<rect width="{self.width}" height="{self.height}" fill="{PAPER}"/>', *self.parts, "</svg>", ""])  # fmt: skip


def first_tile():
    d = Drawing(680, 155, "An array of ten numbers in blocks of four")
    for i in range(12):
        color = (BLUE, GREEN, AMBER)[i // 4] if i < 10 else PAPER
        d.box(40 + i * 50, 60, 50, 50, color, str(i) if i < 10 else "", dashed=i >= 10)
    for block, name in enumerate(("bx = 0", "bx = 1", "bx = 2")):
        d.text(140 + block * 200, 45, name, weight="bold")
    d.text(140, 140, "elements bx * 4 + i, for i = 0 ... 3")
    d.text(590, 140, "reads 0, writes nothing")
    d.text(40, 20, "A, B and C have ten elements", anchor="start")
    return d


def softmax():
    d = Drawing(760, 250, "A block brings rows on chip, and stores them as probabilities")
    d.text(110, 25, "global memory: X", weight="bold")
    d.grid(30, 40, 8, 8, 20, of=lambda row, column: BLUE if row in (2, 3) else None)
    d.arrow(195, 90, 265, 90)
    d.text(230, 80, "copy")
    d.text(380, 25, "on chip", weight="bold")
    d.grid(275, 70, 2, 8, 20, BLUE)
    d.arrow(440, 90, 475, 90)
    d.grid(480, 70, 2, 1, 20, AMBER)
    d.text(492, 60, "largest")
    d.text(355, 140, "exp(x - largest)")
    d.grid(275, 150, 2, 8, 20, GREEN)
    d.arrow(440, 170, 475, 170)
    d.grid(480, 150, 2, 1, 20, AMBER)
    d.text(492, 215, "sum")
    d.arrow(515, 170, 565, 130)
    d.text(530, 130, "copy")
    d.text(655, 25, "global memory: Y", weight="bold")
    d.grid(575, 40, 8, 8, 20, of=lambda row, column: GREEN if row in (2, 3) else None)
    d.text(30, 235, "One read and one write of each element; everything between happens on chip.", anchor="start")
    return d


def product():
    d = Drawing(860, 400, "A matrix product by tiles: a block, its tiles, a ring")
    d.text(60, 25, "global memory", anchor="start", weight="bold")
    d.grid(40, 175, 6, 6, 22, of=lambda r, c: (AMBER if c in (2, 3) else BLUE) if r in (2, 3) else None)
    d.text(106, 328, "A")
    d.grid(200, 38, 6, 6, 22, of=lambda r, c: (AMBER if r in (2, 3) else GREEN) if c in (2, 3) else None)
    d.text(345, 109, "B", anchor="start")
    d.grid(200, 175, 6, 6, 22, of=lambda r, c: ROSE if r in (2, 3) and c in (2, 3) else None)
    d.text(266, 328, "C")
    d.text(30, 358, "A block makes one tile of C. It walks along a", anchor="start")
    d.text(30, 378, "band of A and a band of B, a step at a time.", anchor="start")
    d.text(640, 25, "on chip, for one block", weight="bold")
    d.box(440, 40, 400, 130, PAPER)
    d.text(450, 60, "shared memory: a ring of 3 places", anchor="start")
    for slot, state in enumerate(("in use", "full", "on its way")):
        fill = (AMBER, AMBER, PAPER)[slot]
        d.box(455 + slot * 130, 75, 50, 40, fill, "A", dashed=slot == 2)
        d.box(510 + slot * 130, 75, 50, 40, fill, "B", dashed=slot == 2)
        d.text(507 + slot * 130, 140, state)
    d.arrow(507, 175, 507, 215)
    d.text(520, 202, "gemm", anchor="start")
    d.box(440, 220, 135, 80, ROSE, "tile of C")
    d.text(507, 320, "fragment: registers")
    d.arrow(575, 260, 640, 260)
    d.text(650, 265, "copy to C at the end", anchor="start")
    d.text(440, 352, "time", anchor="start")
    for turn in range(6):
        d.box(490 + turn * 55, 338, 55, 22, SOFT, f"copy {turn}", size=12)
        if turn > 1:
            d.box(490 + turn * 55, 364, 55, 22, AMBER, f"gemm {turn - 2}", size=12)
    return d


def attention():
    d = Drawing(800, 270, "A block of queries walks along keys and values")
    d.text(75, 25, "queries", weight="bold")
    d.grid(30, 40, 8, 4, 22, of=lambda r, c: BLUE if r in (2, 3) else None)
    d.text(245, 25, "keys", weight="bold")
    d.grid(200, 40, 8, 4, 22, of=lambda r, c: GREEN if r in (4, 5) else None)
    d.text(385, 25, "values", weight="bold")
    d.grid(340, 40, 8, 4, 22, of=lambda r, c: AMBER if r in (4, 5) else None)
    d.arrow(310, 60, 310, 200)
    d.text(310, 240, "one step after the other")
    d.box(500, 40, 270, 170, PAPER)
    d.text(635, 25, "on chip", weight="bold")
    d.box(520, 55, 70, 40, BLUE, "q")
    d.box(600, 55, 70, 40, GREEN, "k")
    d.box(680, 55, 70, 40, AMBER, "v")
    d.box(520, 105, 110, 40, ROSE, "scores")
    d.box(640, 105, 110, 40, SOFT, "largest, sum")
    d.box(520, 155, 230, 40, BLUE, "out, corrected each step")
    d.text(500, 240, "Scores of 64 x 64 live for one step.", anchor="start")
    return d


def any_length():
    d = Drawing(700, 150, "A tile of 256 columns walks along rows of any length")
    for k in range(4):
        d.box(30 + k * 150, 50, 150, 40, BLUE if k == 1 else SOFT, f"k = {k}")
    d.box(630, 50, 0.5, 40, INK)
    d.box(560, 50, 70, 40, PAPER, "zeros", dashed=True)
    d.arrow(180, 110, 330, 110)
    d.text(255, 135, "width = 256, a constant")
    d.text(30, 35, "a row of N elements, N known at the call: ceildiv(N, 256) rounds", anchor="start")
    return d


def engines():
    d = Drawing(760, 230, "One program, four engines")
    d.box(30, 85, 150, 60, SOFT, "your program")
    rows = (("interpreter", "what it means"), ("simulator", "what a GPU would do"), ("cpu", "compiled C++, all cores"),
            ("cuda", "compiled CUDA, on a GPU"))  # fmt: skip
    for n, (name, what) in enumerate(rows):
        y = 20 + n * 52
        d.arrow(185, 115, 275, y + 20)
        d.box(280, y, 130, 40, (AMBER, GREEN, BLUE, BLUE)[n], name)
        d.text(425, y + 25, what, anchor="start")
    d.arrow(610, 40, 680, 100)
    d.arrow(610, 190, 680, 130)
    d.text(690, 120, "equal?", weight="bold")
    return d


def layouts():
    yield "rows", tw.plot(T.Layout((8, 8), lambda i, j: i * 8 + j), "row after row", banks=8)
    yield "swizzled", tw.plot(T.Layout((8, 8), lambda i, j: i * 8 + (j ^ i)), "swizzled", banks=8)

    @T.prim_func
    def multiply(A: T.Tensor((64, 16), "float16"), B: T.Tensor((16, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 16), "float16")
            b = T.alloc_shared((16, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    yield "accumulator", tw.plot(tw.compile(multiply, engine="interpreter"), "c", arch="sm_90a", first=(8, 8))


def pictures():
    """(name, SVG) of each."""
    for drawn in (first_tile, softmax, product, attention, any_length, engines):
        yield drawn.__name__, drawn().svg()
    for name, picture in layouts():
        yield name, picture.svg


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, svg in pictures():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
