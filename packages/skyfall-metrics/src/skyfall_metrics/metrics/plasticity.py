"""Plasticity: what becomes of the effective rank of the agent's features over its life."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.values import Value, number, quotient

__all__ = ["MOST_POINTS", "PlasticityResult", "plasticity", "theil_sen"]

MOST_POINTS = 1000
"""Points the slope is computed from; a longer series is thinned to this many, evenly spaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlasticityResult:
    """Effective rank of one world.

    Attributes:
        first: First measured rank.
        last: Last measured rank.
        slope: Change per 1,000 steps (Theil–Sen); negative when the features collapse.
        ratio: last / first.
        points: How often it was measured.
    """

    first: Value
    last: Value
    slope: Value
    ratio: Value
    points: int


def plasticity(effective_rank: NDArray[np.float64] | None, step: NDArray[np.int64]) -> PlasticityResult:
    """First, last, trend and ratio of a measured effective rank.

    Args:
        effective_rank: `(rows,)`, NaN where it was not measured; None when it never was.
        step: `(rows,)`.
    """
    present = np.zeros(len(step), dtype=bool) if effective_rank is None else ~np.isnan(effective_rank)
    if effective_rank is None or not present.any():
        missing = Value.missing("no effective_rank in the trace")
        return PlasticityResult(first=missing, last=missing, slope=missing, ratio=missing, points=0)
    rank, at = effective_rank[present], step[present]
    first, last = float(rank[0]), float(rank[-1])
    return PlasticityResult(
        first=Value(first),
        last=Value(last),
        slope=number(theil_sen(at / 1000, rank), "effective_rank was measured once"),
        ratio=number(quotient(last, first), "the first effective_rank is 0"),
        points=len(rank),
    )


def theil_sen(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Median slope over all pairs of points; None for fewer than two.

    Args:
        x: `(points,)`, strictly increasing.
        y: `(points,)`.

    Source: Sen 1968, JASA 63, 1379–1389. Beyond `MOST_POINTS` points the pairs are those of an evenly
    spaced selection, first and last included.
    """
    if len(x) < 2:
        return None
    if len(x) > MOST_POINTS:
        chosen = np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(np.intp)
        x, y = x[chosen], y[chosen]
    earlier, later = np.triu_indices(len(x), k=1)
    return float(np.median((y[later] - y[earlier]) / (x[later] - x[earlier])))
