"""Stability: how steady the reward is once settled, and how badly it dips on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.smoothing import part_deviations
from skyfall_metrics.stream import Stream
from skyfall_metrics.values import Value, number

__all__ = ["TAIL", "StabilityResult", "stability"]

TAIL = 0.05
"""Share of the one-step differences that the conditional value at risk averages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityResult:
    """Stability of one world.

    Attributes:
        deviation: Standard deviation of ρ in the settled parts, weighted by the rows of the segments;
            lower is steadier.
        drawdown: Largest fall of ρ below its own earlier peak within a segment.
        worst_drops: Conditional value at risk at 5 %: mean of the lowest 5 % of one-step differences of ρ
            inside segments (at least one of them); negative where it drops.
    """

    deviation: Value
    drawdown: Value
    worst_drops: Value


def stability(stream: Stream) -> StabilityResult:
    """Spread, drawdown and worst drops of the smoothed reward.

    Args:
        stream: One world's life.
    """
    segments = stream.segments
    spread = part_deviations(stream.smoothed, stream.settled_start, segments.stop)
    known = ~np.isnan(spread)
    reason = "all rewards are missing"
    return StabilityResult(
        deviation=number(
            np.average(spread[known], weights=segments.rows[known]) if known.any() else None, reason
        ),
        drawdown=number(_largest_drawdown(stream) if known.any() else None, reason),
        worst_drops=number(_worst_drops(stream), "no two neighboring rows with rewards in one segment"),
    )


def _largest_drawdown(stream: Stream) -> float:
    """Max over segments and rows of (peak so far − ρ)."""
    largest = 0.0
    for start, stop in zip(stream.segments.start.tolist(), stream.segments.stop.tolist(), strict=True):
        smoothed = stream.smoothed[start:stop]
        fall = np.fmax.accumulate(smoothed) - smoothed
        largest = max(largest, float(np.fmax.reduce(fall, initial=0.0)))
    return largest


def _worst_drops(stream: Stream) -> float:
    """Mean of the lowest `TAIL` of one-step differences of ρ, none taken across a shift; NaN without any."""
    drops = _differences(stream)
    if not len(drops):
        return math.nan
    worst = max(1, math.ceil(round(TAIL * len(drops), 9)))
    return float(np.mean(np.partition(drops, worst - 1)[:worst]))


def _differences(stream: Stream) -> NDArray[np.float64]:
    inside = np.ones(len(stream.smoothed), dtype=bool)
    inside[stream.segments.start] = False
    steps = np.diff(stream.smoothed)[inside[1:]]
    return steps[~np.isnan(steps)]
