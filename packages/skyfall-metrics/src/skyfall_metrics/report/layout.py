"""Where the panels of a figure lie on a canvas of a given width, and how much room their labels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skyfall_metrics.report.scales import Scale, tick_text, ticks
from skyfall_metrics.report.scene import Axis, Figure, Panel

__all__ = ["FONT", "LETTER", "Placed", "Tick", "axis_ticks", "fitted", "place", "squeezed"]

FONT = 11.0
"""Size of labels, in pixels."""

LETTER = 6.1
"""Average width of a letter at that size; there is no font to ask on the side that draws."""

_GAP = 18.0
_TITLE = 24.0
_TICKS = 18.0
_AXIS_TITLE = 17.0
_RIGHT = 12.0
_LABEL_SHARE = 0.36


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on an axis."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel with its place.

    Attributes:
        panel: The panel.
        x: From its horizontal axis to pixels.
        y: From its vertical axis to pixels; pixels grow downward.
        x_ticks: Labels below it.
        y_ticks: Labels left of it, shortened to fit.
    """

    panel: Panel
    x: Scale
    y: Scale
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def place(figure: Figure, width: float, columns: int) -> tuple[list[Placed], float]:
    """Every panel's place, row by row, and the height that the figure needs.

    Args:
        figure: The figure.
        width: Of the canvas, in pixels.
        columns: Panels side by side.
    """
    cell = (width - _GAP * (columns - 1)) / columns
    left = max(_left_margin(panel, cell) for panel in figure.panels)
    placed: list[Placed] = []
    top = 0.0
    for first in range(0, len(figure.panels), columns):
        row = figure.panels[first : first + columns]
        for column, panel in enumerate(row):
            placed.append(_placed(panel, column * (cell + _GAP), top, cell, left))
        top += max(_panel_height(panel) for panel in row)
    return placed, top


def axis_ticks(axis: Axis, length: float, room: float) -> tuple[Tick, ...]:
    """The labels of an axis.

    Args:
        axis: The axis.
        length: Its length in pixels.
        room: Pixels between labels, at least.
    """
    if axis.names:
        return tuple(Tick(float(k), name) for k, name in enumerate(axis.names))
    values = ticks(axis.low, axis.high, max(3, int(length / room)))
    spacing = values[1] - values[0] if len(values) > 1 else 0.0
    return tuple(Tick(value, tick_text(value, spacing)) for value in values)


def fitted(text: str, room: float) -> str:
    """`text`, cut with an ellipsis where it is wider than `room` pixels; empty where too little fits."""
    letters = int(room / LETTER + 1e-6)
    if len(text) <= letters:
        return text
    return text[: letters - 1] + "…" if letters >= 4 else ""


def squeezed(text: str, room: float) -> str:
    """`text` with its middle left out where it is wider than `room` pixels: names differ at their ends."""
    letters = max(5, int(room / LETTER + 1e-6))
    if len(text) <= letters:
        return text
    tail = (letters - 1) // 2
    return f"{text[: letters - 1 - tail]}…{text[-tail:]}"


def _placed(panel: Panel, at: float, top: float, cell: float, left: float) -> Placed:
    upper = top + (_TITLE if panel.title else 8.0)
    x = Scale(panel.x.low, panel.x.high, at + left, at + cell - _RIGHT)
    y = Scale(panel.y.low, panel.y.high, upper + panel.height, upper)
    across = abs(x.end - x.start)
    x_ticks = axis_ticks(panel.x, across, 70.0)
    if panel.x.names:
        x_ticks = tuple(Tick(t.value, fitted(t.text, across / len(x_ticks))) for t in x_ticks)
    y_ticks = axis_ticks(panel.y, panel.height, 32.0)
    room = left - 10.0 - (_AXIS_TITLE if panel.y.title else 0.0)
    return Placed(panel, x, y, x_ticks, tuple(Tick(t.value, squeezed(t.text, room)) for t in y_ticks))


def _left_margin(panel: Panel, cell: float) -> float:
    texts: Sequence[str] = [tick.text for tick in axis_ticks(panel.y, panel.height, 32.0)]
    widest = max(map(len, texts), default=0) * LETTER + 10.0
    title = _AXIS_TITLE if panel.y.title else 0.0
    return title + min(widest, _LABEL_SHARE * cell)


def _panel_height(panel: Panel) -> float:
    return (
        (_TITLE if panel.title else 8.0)
        + panel.height
        + _TICKS
        + (_AXIS_TITLE if panel.x.title else 0.0)
        + 12.0
    )
