"""Long series with few points: means of buckets that never reach across a shift.

A report shows hundreds of points where a run has millions of rows. Each bucket lies in one segment, so a
drop at a boundary stays as sharp as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.smoothing import part_means

__all__ = ["MOST_POINTS", "Curve", "Spread", "bucket_starts", "spread", "thinned"]

MOST_POINTS = 500
"""Buckets that a curve of any length is reduced to, about one a pixel of a printed column."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A thinned series.

    Attributes:
        at: `(points,)` steps, the middle of each bucket.
        value: `(points,)` its mean, NaN where nothing was present.
    """

    at: Floats
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Several curves over the same steps: their mean, lowest and highest; each `(points,)`."""

    at: Floats
    mean: Floats
    low: Floats
    high: Floats


def bucket_starts(start: NDArray[np.intp], rows: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """First rows of buckets that respect segments.

    Args:
        start: `(segments,)` first row of each segment; the first is 0.
        rows: Rows of the series.
        most: Buckets wanted. A segment gets its share, at least one; with more segments than buckets the rows
            are cut evenly and segments are no longer respected.

    Returns:
        `(buckets,)`, strictly increasing, beginning with 0; at most `most` and half of the segments.
    """
    if rows <= most:
        return np.arange(rows, dtype=np.intp)
    if len(start) > most:
        return np.unique(np.linspace(0, rows, most, endpoint=False).astype(np.intp))
    stop = np.append(start[1:], rows)
    shares = np.maximum(1, np.rint((stop - start) * most / rows)).astype(np.intp)
    pieces = [
        a + (np.arange(share) * (b - a)) // share for a, b, share in zip(start, stop, shares, strict=True)
    ]
    return np.unique(np.concatenate(pieces))


def thinned(at: NDArray[np.int64], value: Floats, start: NDArray[np.intp], most: int = MOST_POINTS) -> Curve:
    """A series as bucket means.

    Args:
        at: `(rows,)` steps.
        value: `(rows,)`, NaN where missing.
        start: `(segments,)` first rows of the parts that must not be mixed.
        most: Points wanted.
    """
    first = bucket_starts(start, len(at), most)
    stop = np.append(first[1:], len(at))
    return Curve((at[first] + at[stop - 1]) / 2, part_means(value, first, stop))


def spread(curves: list[Curve]) -> Spread | None:
    """Mean and range over curves, by point; None when they do not stand at the same steps.

    A point is averaged over the curves that have a value there.
    """
    at = curves[0].at
    if any(not np.array_equal(curve.at, at) for curve in curves):
        return None
    values = np.stack([curve.value for curve in curves])
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    total = np.where(present, values, 0.0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(len(at), np.nan), where=count > 0)
    return Spread(at, mean, np.fmin.reduce(values), np.fmax.reduce(values))
