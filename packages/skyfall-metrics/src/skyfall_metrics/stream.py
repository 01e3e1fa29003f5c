"""What every metric looks at: one world's rewards, smoothed, in segments, with their levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.parameters import ResolvedParameters
from skyfall_metrics.segments import Segments
from skyfall_metrics.smoothing import first_held_crossing, part_means, settled_start, smooth

__all__ = ["ROUNDING", "Stream", "prepare_stream"]

ROUNDING = 1e-12
"""Relative difference that is rounding: a constant reward must neither climb nor fail to recover by its
last bit."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """One world's life, ready to be measured.

    Attributes:
        reward: `(rows,)`, NaN where missing.
        step: `(rows,)` the trace's own steps.
        smoothed: `(rows,)` ρ, the trailing moving average inside each segment.
        segments: Where configurations begin and end.
        settled_start: `(segments,)` first row of each settled part.
        settled: `(segments,)` S, mean reward of the settled part, NaN where all of it is missing.
        opening: `(segments,)` O, mean reward of the first `window` rows, likewise.
        tolerance: `(segments,)` what may be rounding: 10⁻¹² of the segment's largest reward.
        parameters: What it was prepared with.
    """

    reward: NDArray[np.float64]
    step: NDArray[np.int64]
    smoothed: NDArray[np.float64]
    segments: Segments
    settled_start: NDArray[np.intp]
    settled: NDArray[np.float64]
    opening: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    parameters: ResolvedParameters

    def rows_to(self, threshold: NDArray[np.float64]) -> NDArray[np.intp]:
        """`(segments,)` rows until ρ reaches and holds each segment's threshold, -1 where it never does."""
        segments = self.segments
        lowered = threshold - np.maximum(self.tolerance, ROUNDING * np.abs(threshold))
        return first_held_crossing(
            self.smoothed, segments.start, segments.stop, lowered, self.parameters.hold
        )


def prepare_stream(
    reward: NDArray[np.float64], step: NDArray[np.int64], segments: Segments, parameters: ResolvedParameters
) -> Stream:
    """Smooth a stream and find its levels.

    Args:
        reward: `(rows,)`, NaN where missing.
        step: `(rows,)`.
        segments: The stream's segments.
        parameters: Windows and shares.
    """
    start, stop = segments.start, segments.stop
    settled_from = settled_start(start, stop, parameters.settled_fraction, parameters.window)
    return Stream(
        reward=reward,
        step=step,
        smoothed=smooth(reward, start, parameters.window),
        segments=segments,
        settled_start=settled_from,
        settled=part_means(reward, settled_from, stop),
        opening=part_means(reward, start, np.minimum(start + parameters.window, stop)),
        tolerance=ROUNDING * np.maximum.reduceat(np.abs(np.nan_to_num(reward)), start),
        parameters=parameters,
    )
