"""The forgetting matrix: what of a configuration was gone at each return, family beside family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyfall_metrics.report.lives import Family, configurations_of
from skyfall_metrics.report.scene import Axis, Box, Figure, Key, Layer, Panel, Shape, Words
from skyfall_metrics.sheets import formatted

__all__ = ["MOST_RETURNS", "forgetting_figure", "forgetting_matrix"]

MOST_RETURNS = 5
"""Columns of a matrix; later returns are averaged into the last one."""

_FAINTEST = 0.06


def forgetting_matrix(family: Family, configurations: Sequence[str]) -> np.ndarray:
    """Mean forgetting by configuration and return.

    Returns:
        `(configurations, returns)`, the mean over runs and worlds; NaN where a configuration did not come
        back that often; no columns where nothing came back. Returns beyond `MOST_RETURNS` are averaged into
        the last column.
    """
    cells: dict[tuple[int, int], list[float]] = {}
    for world in (world for card in family.cards for world in card.worlds):
        seen: dict[str, int] = {}
        for revisit in world.forgetting.revisits:
            turn = seen.get(revisit.configuration, 0)
            seen[revisit.configuration] = turn + 1
            if revisit.forgetting is not None:
                place = configurations.index(revisit.configuration), min(turn, MOST_RETURNS - 1)
                cells.setdefault(place, []).append(revisit.forgetting)
    matrix = np.full((len(configurations), 1 + max((turn for _, turn in cells), default=-1)), np.nan)
    for place, values in cells.items():
        matrix[place] = np.mean(values)
    return matrix


def forgetting_figure(families: Sequence[Family]) -> Figure | None:
    """A matrix a family; None where nothing ever came back."""
    names = configurations_of(families)
    matrices = [forgetting_matrix(family, names) for family in families]
    largest = max(
        (float(np.nanmax(np.abs(m))) for m in matrices if m.size and not np.isnan(m).all()), default=None
    )
    if largest is None:
        return None
    returns = max(m.shape[1] for m in matrices)
    return Figure(
        name="forgetting",
        title="Forgetting at each return",
        description=" ".join(
            _told(family.name, names, matrix) for family, matrix in zip(families, matrices, strict=True)
        ),
        caption="Best earlier settled level minus the level on return, mean over runs: above 0 is forgotten, "
        "below 0 is better on return. An em dash: the configuration did not come back."
        + (
            f" The last column holds every return from the {MOST_RETURNS}th on."
            if returns == MOST_RETURNS
            else ""
        ),
        panels=tuple(
            Panel(
                title=family.name,
                x=Axis.of_names([_ordinal(k + 1) for k in range(returns)], "return"),
                y=Axis.of_names(names, downward=True),
                layers=tuple(_cells(names, matrix, returns, largest)),
                height=30.0 * len(names),
            )
            for family, matrix in zip(families, matrices, strict=True)
        ),
        columns=2 if returns <= 4 else 1,
        legend=(
            Key(text="forgotten", color="loss", shape=Shape.PATCH, opacity=0.6),
            Key(text="better on return", color="gain", shape=Shape.PATCH, opacity=0.6),
        ),
    )


def _cells(names: Sequence[str], matrix: np.ndarray, returns: int, largest: float) -> list[Layer]:
    layers: list[Layer] = []
    for row, name in enumerate(names):
        for column in range(returns):
            value = matrix[row, column] if column < matrix.shape[1] else np.nan
            layers += _cell(row, column, name, float(value), largest)
    return layers


def _cell(row: int, column: int, name: str, value: float, largest: float) -> list[Layer]:
    if np.isnan(value):
        return [Words(x=column, y=row, text="—", color="muted")]
    strength = _FAINTEST + (0.62 - _FAINTEST) * (abs(value) / largest if largest else 0.0)
    box = Box(
        x0=column - 0.48,
        x1=column + 0.48,
        y0=row - 0.46,
        y1=row + 0.46,
        color="loss" if value > 0 else "gain",
        opacity=strength,
        tip=f"{name}, {_ordinal(column + 1)} return: {formatted(value)}",
    )
    return [box, Words(x=column, y=row, text=f"{value:.2g}".replace("-", "−"))]


def _ordinal(number: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number, "th")
    return f"{number}{suffix}"


def _told(family: str, names: Sequence[str], matrix: np.ndarray) -> str:
    parts = [
        f"{name} {', '.join(formatted(float(value)) for value in row if not np.isnan(value))}"
        for name, row in zip(names, matrix, strict=True)
        if not np.isnan(row).all()
    ]
    return f"{family}: {'; '.join(parts) or 'nothing came back'}."
