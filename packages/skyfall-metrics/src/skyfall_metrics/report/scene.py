"""What a figure consists of, in data coordinates and by the role of a color: nothing here draws.

One description is drawn twice for the page (wide, and narrow for a phone) and once by matplotlib, so
a figure says the same wherever it is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Area", "Axis", "Box", "Figure", "Key", "Layer", "Line", "Mark", "Panel", "Shape", "Words"]

Floats = NDArray[np.float64]


class Shape(str, Enum):
    """What a mark or a legend entry looks like."""

    DOT = "dot"
    DIAMOND = "diamond"
    CROSS = "cross"
    STROKE = "stroke"
    PATCH = "patch"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A line through points; it breaks where a value is NaN. With a `name`, hovering reads it out."""

    x: Floats
    y: Floats
    color: str
    width: float = 1.6
    dashed: bool = False
    opacity: float = 1.0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Area:
    """The space between two lines."""

    x: Floats
    low: Floats
    high: Floats
    color: str
    opacity: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle; `label` stands inside its upper edge where it fits, `tip` shows on hovering."""

    x0: float
    x1: float
    y0: float
    y1: float
    color: str
    opacity: float = 1.0
    label: str = ""
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A symbol at one point."""

    x: float
    y: float
    color: str
    shape: Shape = Shape.DOT
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text centered on one point."""

    x: float
    y: float
    text: str
    color: str = "ink"


Layer: TypeAlias = Line | Area | Box | Mark | Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A range of data; `high` below `low` turns it around.

    Attributes:
        low: Where it begins.
        high: Where it ends.
        title: What it measures, with its unit.
        names: Categories at 0, 1, 2, …; without any, round numbers are ticked.
    """

    low: float
    high: float
    title: str = ""
    names: tuple[str, ...] = ()

    @classmethod
    def of_names(cls, names: Sequence[str], title: str = "", *, downward: bool = False) -> Axis:
        """An axis of categories, each in a unit of its own; `downward` puts the first on top."""
        low, high = -0.5, len(names) - 0.5
        if downward:
            low, high = high, low
        return cls(low=low, high=high, title=title, names=tuple(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes and what is drawn in it, from back to front.

    Attributes:
        title: Above it.
        x: Horizontal axis.
        y: Vertical axis.
        layers: What is drawn.
        height: Of the plotting area, in pixels.
    """

    title: str
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    height: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of the legend."""

    text: str
    color: str
    shape: Shape
    opacity: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure.

    Attributes:
        name: A word for file names and anchors.
        title: Its heading.
        description: The same in words, for who cannot see it.
        caption: How to read it, below it.
        panels: In reading order.
        columns: Panels side by side where there is room.
        legend: What colors and symbols mean.
    """

    name: str
    title: str
    description: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 1
    legend: tuple[Key, ...] = field(default=())
