"""The same figures as files, drawn by matplotlib (extra `plots`) from the same descriptions as the page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as PlotAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from skyfall_metrics.errors import InputError
from skyfall_metrics.report.formats import FigureFormat
from skyfall_metrics.report.layout import LETTER, Tick, axis_ticks, fitted, squeezed
from skyfall_metrics.report.palette import LIGHT
from skyfall_metrics.report.scene import Area, Box, Figure, Key, Line, Mark, Panel, Shape, Words

__all__ = ["save_figures"]

_WIDTH = 800.0
"""Of a figure, in the pixels of its description."""

_INCH = 100.0
"""Pixels of a description that become one inch."""

_MARKERS = {Shape.DOT: "o", Shape.DIAMOND: "D", Shape.CROSS: "x"}
_PLAIN: dict[Any, Any] = {
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "skyfall-metrics",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
}
"""Text stays text, the same figure gives the same file, and a `$` in a label is a dollar sign."""


def save_figures(figures: Iterable[Figure], folder: Path, form: FigureFormat) -> list[Path]:
    """Write each figure to `<name>.<format>`.

    Args:
        figures: What to draw.
        folder: Made if it is missing.
        form: File format.

    Returns:
        The files.

    Raises:
        InputError: The folder or a file in it cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context(_PLAIN), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")  # a name in a script the font lacks: boxes
            for figure in figures:
                path = folder / f"{figure.name}.{form.value}"
                _save(figure, path)
                written.append(path)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot write: {error.strerror or error}") from None
    return written


def _save(figure: Figure, path: Path) -> None:
    rows = -(-len(figure.panels) // figure.columns)
    heights = [
        max(panel.height for panel in figure.panels[row * figure.columns :][: figure.columns])
        for row in range(rows)
    ]
    size = (_WIDTH / _INCH, sum(height + 70 for height in heights) / _INCH + 0.9)
    canvas = Canvas(figsize=size, layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.subplots(
        rows, figure.columns, squeeze=False, height_ratios=[height + 70 for height in heights]
    )
    for axes, panel in zip(grid.flat, figure.panels, strict=False):
        _panel(axes, panel, _WIDTH / figure.columns)
    for axes in list(grid.flat)[len(figure.panels) :]:
        axes.remove()
    canvas.suptitle(figure.title)
    if figure.legend:
        handles = [_handle(key) for key in figure.legend]
        widest = max(len(key.text) for key in figure.legend) * LETTER + 45
        columns = max(1, min(4, int(_WIDTH / widest)))
        canvas.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    metadata = {"Description": figure.description} | ({"Date": None} if path.suffix == ".svg" else {})
    with warnings.catch_warnings():
        if path.suffix == ".svg":  # text stays text there: the reader's fonts draw it, not matplotlib's
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        canvas.savefig(os.fspath(path), dpi=200, metadata=metadata)


def _panel(axes: Axes, panel: Panel, width: float) -> None:
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    for layer in panel.layers:
        _layer(layer, axes)
    axes.set_title(squeezed(panel.title, 0.6 * width), loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel(panel.x.title)
    axes.set_ylabel(panel.y.title)
    _tick(axes.xaxis, axis_ticks(panel.x, 0.7 * width, 70.0), width)
    _tick(axes.yaxis, axis_ticks(panel.y, panel.height, 32.0), 0.3 * width)
    for axis, described in ((axes.xaxis, panel.x), (axes.yaxis, panel.y)):
        if not described.names:
            axis.grid(visible=True, color=LIGHT["grid"], linewidth=0.5)
    axes.set_axisbelow(True)


def _tick(axis: PlotAxis, ticks: Sequence[Tick], room: float) -> None:
    axis.set_ticks([tick.value for tick in ticks], [squeezed(tick.text, room) for tick in ticks])


@singledispatch
def _layer(layer: object, _: Axes) -> None:
    raise TypeError(f"{type(layer).__name__} is no layer of a figure")


@_layer.register
def _(layer: Line, axes: Axes) -> None:
    style = "--" if layer.dashed else "-"
    axes.plot(
        layer.x, layer.y, style, color=LIGHT[layer.color], linewidth=layer.width * 0.8, alpha=layer.opacity
    )


@_layer.register
def _(layer: Area, axes: Axes) -> None:
    axes.fill_between(
        layer.x, layer.low, layer.high, color=LIGHT[layer.color], alpha=layer.opacity, linewidth=0
    )


@_layer.register
def _(layer: Box, axes: Axes) -> None:
    corner, width, height = (layer.x0, layer.y0), layer.x1 - layer.x0, layer.y1 - layer.y0
    axes.add_patch(
        Rectangle(corner, width, height, color=LIGHT[layer.color], alpha=layer.opacity, linewidth=0)
    )
    low, high = axes.get_xlim()
    label = fitted(layer.label, 0.9 * _WIDTH * width / (high - low))
    if label:
        middle = (layer.x0 + layer.x1) / 2
        top = max(layer.y0, layer.y1)
        axes.text(
            middle, top, layer.label, ha="center", va="top", fontsize=7, color=LIGHT["muted"], clip_on=True
        )


@_layer.register
def _(layer: Mark, axes: Axes) -> None:
    style: dict[str, Any] = {
        "s": 18,
        "marker": _MARKERS[layer.shape],
        "color": LIGHT[layer.color],
        "zorder": 3,
    }
    if layer.shape is not Shape.CROSS:
        style["edgecolors"] = LIGHT["paper"]
        style["linewidths"] = 0.5
    axes.scatter([layer.x], [layer.y], **style)


@_layer.register
def _(layer: Words, axes: Axes) -> None:
    axes.text(layer.x, layer.y, layer.text, ha="center", va="center", color=LIGHT[layer.color])


def _handle(key: Key) -> Artist:
    color = LIGHT[key.color]
    if key.shape is Shape.PATCH:
        return Patch(color=color, alpha=key.opacity, linewidth=0, label=key.text)
    marker = _MARKERS.get(key.shape, "")
    return Line2D([], [], color=color, marker=marker, linestyle="" if marker else "-", label=key.text)
