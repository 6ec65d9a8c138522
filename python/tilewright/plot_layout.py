"""tilelang.tools.plot_layout: a layout drawn as a grid of its elements, each with where it lies."""
import html
import itertools
import math
import os

from .language import Fragment, Layout

_CELL, _COLORS = 56, 12
_FORMATS = ("svg", "pdf", "png")


def plot_layout(layout, save_directory="./tmp", name="layout", colormap=None, verbose=False, formats="pdf", view="input", grid_shape=None):
    """Draws a T.Layout or T.Fragment into files `name`.svg, .pdf or .png of a folder: a cell for each element, with its thread
    and register, or its place. svg is written by itself, the others by matplotlib."""
    if not isinstance(layout, (Layout, Fragment)):
        raise TypeError(f"plot_layout takes a T.Layout or a T.Fragment, not {layout!r}")
    wanted = list(_FORMATS) if formats == "all" else [f.strip() for f in (formats.split(",") if isinstance(formats, str) else formats)]
    for kind in wanted:
        if kind not in _FORMATS:
            raise ValueError(f"plot_layout: format '{kind}'; it is one of {', '.join(_FORMATS)}, or all")
    rows, columns, cells = _cells(layout, view, grid_shape)
    if verbose:
        for (row, column), (text, _) in sorted(cells.items()):
            print(f"[{row}, {column}] -> {text}")
    os.makedirs(save_directory, exist_ok=True)
    for kind in wanted:
        path = os.path.join(save_directory, f"{name}.{kind}")
        if kind == "svg":
            with open(path, "w", encoding="utf-8") as file:
                file.write(_svg(rows, columns, cells))
        else:
            _by_matplotlib(path, rows, columns, cells, colormap)


def _cells(layout, view, grid_shape):
    """(rows, columns, {(row, column): (text, number of its color)})."""
    shape = [int(e) for e in layout.shape]
    width = shape[-1] if grid_shape is None else grid_shape[1]
    if grid_shape is not None and grid_shape[0] * grid_shape[1] != math.prod(shape):
        raise ValueError(f"plot_layout: a grid of {grid_shape} for {math.prod(shape)} elements")
    cells, output = {}, None if isinstance(layout, Fragment) else layout.get_output_shape()
    for number, point in enumerate(itertools.product(*map(range, shape))):
        image = layout.at(point)
        if isinstance(layout, Fragment):
            cells[number // width, number % width] = (f"T{image[0]}\nL{image[1] if len(image) > 1 else 0}", image[0])
            continue
        place = 0
        for index, extent in zip(image, output):
            place = place * extent + index
        if view == "output":
            wide = output[-1]
            cells[place // wide, place % wide] = (",".join(map(str, point)), number // width)
        else:
            cells[number // width, number % width] = (str(place), place // width)
    return 1 + max(r for r, _ in cells), 1 + max(c for _, c in cells), cells


def _svg(rows, columns, cells, title="", legend=""):
    heads = [line for line in (title, legend) if line]
    top = 20 * len(heads)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * _CELL}" height="{rows * _CELL + top}" font-family="sans-serif" '
             f'font-size="12" text-anchor="middle">']  # fmt: skip
    lines += [f'<text x="4" y="{15 + 20 * k}" text-anchor="start">{html.escape(line)}</text>' for k, line in enumerate(heads)]
    for (row, column), (text, color) in sorted(cells.items()):
        x, y = column * _CELL, row * _CELL + top
        hue = color % _COLORS * 360 // _COLORS
        lines.append(f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="hsl({hue}, 60%, 85%)" stroke="black"/>')
        for k, part in enumerate(text.split("\n")):
            lines.append(f'<text x="{x + _CELL // 2}" y="{y + _CELL // 2 + 14 * k}">{part}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _by_matplotlib(path, rows, columns, cells, colormap):
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise RuntimeError(f"plot_layout: {path} needs matplotlib, which is not installed; formats='svg' needs nothing") from None
    figure, axes = pyplot.subplots(figsize=(max(2, columns * 0.6), max(2, rows * 0.6)))
    colors = pyplot.get_cmap(colormap or "Spectral", _COLORS)
    for (row, column), (text, color) in cells.items():
        axes.add_patch(pyplot.Rectangle((column, rows - 1 - row), 1, 1, facecolor=colors(color % _COLORS), edgecolor="black"))
        axes.text(column + 0.5, rows - 0.5 - row, text, ha="center", va="center", fontsize=7)
    axes.set_xlim(0, columns)
    axes.set_ylim(0, rows)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight")
    pyplot.close(figure)
