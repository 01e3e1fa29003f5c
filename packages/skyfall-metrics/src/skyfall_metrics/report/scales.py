"""From numbers to positions: linear scales, round ticks, and how a tick is written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scale", "extent", "tick_text", "ticks"]


_SMALLEST = 1e-200
"""Below this a range is empty: dividing by it would leave double precision."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight map from data [`low`, `high`] to pixels [`start`, `end`]; either may run backwards."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of one value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def many(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The pixels of many values; NaN stays NaN."""
        return self.start + (values - self.low) / (self.high - self.low) * (self.end - self.start)


def extent(values: Iterable[float], margin: float = 0.06) -> tuple[float, float]:
    """A range that holds every finite value with some air, never empty.

    Args:
        values: What has to fit in; NaN is passed over.
        margin: Air on both sides, as a share of the range.
    """
    present = [value for value in values if math.isfinite(value)]
    if not present:
        return 0.0, 1.0
    low, high = min(present), max(present)
    air = (high - low) * margin
    if high - low <= max(_SMALLEST, 1e-9 * max(abs(low), abs(high))):
        air = abs(low) * 0.1 if abs(low) > _SMALLEST else 0.5
    return low - air, high + air


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers inside a range, as many as fit.

    Args:
        low: Where the range begins.
        high: Where it ends, above `low`.
        most: Distances between ticks, at most.

    Returns:
        Neighbors 1, 2 or 5 times a power of ten apart, at most `most` + 1 of them.
    """
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (power, 2 * power, 5 * power, 10 * power, 20 * power):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first <= most:
            break
    return [k * step for k in range(first, last + 1)]


def tick_text(value: float, spacing: float) -> str:
    """A tick, with as many decimals as its neighbors differ by.

    Args:
        value: The tick.
        spacing: Distance to the next one.
    """
    if not spacing or not 1e-5 <= spacing < 1e7:
        return f"{value:.3g}".replace("-", "−")
    decimals = max(0, -math.floor(math.log10(spacing) + 1e-9))
    text = f"{value:,.{decimals}f}"
    return "0" if not float(text.replace(",", "")) else text.replace("-", "−")
