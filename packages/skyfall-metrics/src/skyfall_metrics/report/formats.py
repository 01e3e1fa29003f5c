"""File formats of figures; apart from what draws them, so that a command line can name them at no cost."""

from __future__ import annotations

from enum import Enum

__all__ = ["FigureFormat"]


class FigureFormat(str, Enum):
    """Values of `--format`."""

    PNG = "png"
    SVG = "svg"
