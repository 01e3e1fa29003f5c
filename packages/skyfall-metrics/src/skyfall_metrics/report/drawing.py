"""Figures as SVG for the page: colors by custom property, tips for the pointer, words for everyone else.

Source: the accessible name and description follow WAI-ARIA 1.2 (`role="img"`, `aria-labelledby`,
`aria-describedby`) over SVG 2's `title` and `desc`.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.report.layout import FONT, LETTER, Placed, fitted, place, squeezed
from skyfall_metrics.report.markup import Markup, coordinate, element, joined
from skyfall_metrics.report.scene import Area, Box, Figure, Key, Line, Mark, Shape, Words

__all__ = ["draw", "draw_key"]

_MARK = 4.0


def draw(figure: Figure, width: float, *, variant: str) -> Markup:
    """A figure as one `svg` element.

    Args:
        figure: What to draw.
        width: Pixels across; panels stand side by side only from 600 on.
        variant: Class of the element, and part of its identifiers, so that one page can hold several sizes.
    """
    placed, height = place(figure, width, figure.columns if width >= 600 else 1)
    prefix = f"{figure.name}-{variant}"
    return element(
        "svg",
        {
            "class": variant,
            "viewBox": f"0 0 {coordinate(width)} {coordinate(height)}",
            "role": "img",
            "aria-labelledby": f"{prefix}-title",
            "aria-describedby": f"{prefix}-desc",
            "font-size": FONT,
        },
        element("title", {"id": f"{prefix}-title"}, figure.title),
        element("desc", {"id": f"{prefix}-desc"}, figure.description),
        *(_panel(each) for each in placed),
    )


def draw_key(key: Key) -> Markup:
    """The symbol of a legend entry, for beside its text."""
    fill = {"fill": _paint(key.color), "fill-opacity": f"{key.opacity:g}"}
    if key.shape is Shape.PATCH:
        symbol = element("rect", {"x": 1, "y": 2, "width": 14, "height": 10, "rx": 2, **fill})
    elif key.shape is Shape.STROKE:
        symbol = element("path", {"d": "M1 7H15", "stroke": _paint(key.color), "stroke-width": 2.5})
    else:
        symbol = _symbol(8.0, 7.0, key.color, key.shape, None)
    return element("svg", {"class": "key", "viewBox": "0 0 16 14", "aria-hidden": "true"}, symbol)


def _panel(placed: Placed) -> Markup:
    panel, x, y = placed.panel, placed.x, placed.y
    ranges = {
        "class": "panel",
        "data-x": " ".join(f"{v:.6g}" for v in (x.low, x.high, x.start, x.end)),
        "data-y": " ".join(f"{v:.6g}" for v in (y.low, y.high, y.start, y.end)),
        "data-unit": panel.x.title,
    }
    shown = squeezed(panel.title, 0.88 * (x.end - x.start))  # bold letters are wider
    title = _text(x.start, y.end - 9, shown, anchor="start", weight="600") if shown else ""
    return element(
        "g", ranges, title, _grid(placed), *(_layer(layer, placed) for layer in panel.layers), _labels(placed)
    )


def _grid(placed: Placed) -> Markup:
    panel, x, y = placed.panel, placed.x, placed.y
    path = ""
    if not panel.y.names:
        path += "".join(
            f"M{coordinate(x.start)} {coordinate(y(t.value))}H{coordinate(x.end)}" for t in placed.y_ticks
        )
    if not panel.x.names:
        path += "".join(
            f"M{coordinate(x(t.value))} {coordinate(y.end)}V{coordinate(y.start)}" for t in placed.x_ticks
        )
    return element("path", {"d": path, "stroke": _paint("grid"), "stroke-width": 1}) if path else Markup()


def _labels(placed: Placed) -> Markup:
    panel, x, y = placed.panel, placed.x, placed.y
    below = y.start + FONT + 4
    parts = [_text(x(t.value), below, t.text, color="muted") for t in placed.x_ticks]
    parts += [_text(x.start - 6, y(t.value) + 4, t.text, anchor="end", color="muted") for t in placed.y_ticks]
    if panel.x.title:
        parts.append(_text((x.start + x.end) / 2, below + 15, panel.x.title, color="muted"))
    if panel.y.title:
        widest = max((len(t.text) for t in placed.y_ticks), default=0)
        at, middle = x.start - 14 - widest * LETTER, (y.start + y.end) / 2
        turned = f"rotate(-90 {coordinate(at)} {coordinate(middle)})"
        parts.append(_text(at, middle, panel.y.title, color="muted", transform=turned))
    return joined(*parts)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    color: str = "ink",
    weight: str | None = None,
    transform: str | None = None,
) -> Markup:
    attributes = {"x": float(x), "y": float(y), "text-anchor": anchor, "fill": _paint(color)}
    return element("text", attributes | {"font-weight": weight, "transform": transform}, text)


@singledispatch
def _layer(layer: object, _: Placed) -> Markup:
    raise TypeError(f"{type(layer).__name__} is no layer of a figure")


@_layer.register
def _(layer: Line, placed: Placed) -> Markup:
    return element(
        "path",
        {
            "d": _path(placed.x.many(layer.x), placed.y.many(layer.y)),
            "class": "curve" if layer.name else None,
            "data-name": layer.name or None,
            "fill": "none",
            "stroke": _paint(layer.color),
            "stroke-width": layer.width,
            "stroke-linejoin": "round",
            "stroke-dasharray": "3 3" if layer.dashed else None,
            "stroke-opacity": None if layer.opacity == 1 else f"{layer.opacity:g}",
        },
    )


@_layer.register
def _(layer: Area, placed: Placed) -> Markup:
    x, low, high = placed.x.many(layer.x), placed.y.many(layer.low), placed.y.many(layer.high)
    d = "".join(
        _path(np.concatenate((x[part], x[part][::-1])), np.concatenate((high[part], low[part][::-1]))) + "Z"
        for part in _present_parts(low)
    )
    return element("path", {"d": d, "fill": _paint(layer.color), "fill-opacity": f"{layer.opacity:g}"})


@_layer.register
def _(layer: Box, placed: Placed) -> Markup:
    left, right = sorted((placed.x(layer.x0), placed.x(layer.x1)))
    top, bottom = sorted((placed.y(layer.y0), placed.y(layer.y1)))
    box = element(
        "rect",
        {
            "x": left,
            "y": top,
            "width": right - left,
            "height": bottom - top,
            "fill": _paint(layer.color),
            "fill-opacity": f"{layer.opacity:g}",
            "data-tip": layer.tip or None,
        },
    )
    label = fitted(layer.label, right - left - 6)
    return joined(box, _text((left + right) / 2, top + 13, label, color="muted")) if label else box


@_layer.register
def _(layer: Mark, placed: Placed) -> Markup:
    return _symbol(placed.x(layer.x), placed.y(layer.y), layer.color, layer.shape, layer.tip or None)


@_layer.register
def _(layer: Words, placed: Placed) -> Markup:
    return _text(placed.x(layer.x), placed.y(layer.y) + 4, layer.text, color=layer.color)


def _symbol(x: float, y: float, color: str, shape: Shape, tip: str | None) -> Markup:
    edge = {"data-tip": tip, "stroke": _paint("paper"), "stroke-width": 1}
    if shape is Shape.DIAMOND:
        d = f"M{coordinate(x)} {coordinate(y - 5)}l5 5l-5 5l-5 -5Z"
        return element("path", {"d": d, "fill": _paint(color), **edge})
    if shape is Shape.CROSS:
        d = f"M{coordinate(x - _MARK)} {coordinate(y - _MARK)}l8 8m0 -8l-8 8"
        return element("path", {"d": d, "stroke": _paint(color), "stroke-width": 2, "data-tip": tip})
    return element("circle", {"cx": float(x), "cy": float(y), "r": 3, "fill": _paint(color), **edge})


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Line segments through the points, broken where a value is missing."""
    return "".join(
        "M" + "L".join(f"{coordinate(a)} {coordinate(b)}" for a, b in zip(x[part], y[part], strict=True))
        for part in _present_parts(y)
    )


def _present_parts(values: NDArray[np.float64]) -> list[slice]:
    """Stretches without a missing value."""
    present = np.concatenate(([False], ~np.isnan(values), [False]))
    edges = np.flatnonzero(present[1:] != present[:-1])
    return [slice(a, b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _paint(role: str) -> str:
    return f"var(--{role})"
