"""Arithmetic along a stream of segments: moving averages, means of parts, held crossings.

Everything is vectorised over the whole stream and linear in its rows. Sums never subtract one running total
from another, so a single large reward cannot wash out what follows it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "first_held_crossing",
    "part_deviations",
    "part_means",
    "part_sums",
    "settled_start",
    "smooth",
]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def smooth(reward: Floats, start: Rows, window: int) -> Floats:
    """Trailing moving average inside each segment: ρ_k = mean of the last min(k + 1, window) present rewards.

    A missing reward is passed over: the average stays what it was, and the window keeps reaching for
    present ones.

    Args:
        reward: `(rows,)`, NaN where missing.
        start: `(segments,)` first row of each segment; the first is 0.
        window: Rewards that are averaged, at least 1.

    Returns:
        `(rows,)`; NaN before a segment's first present reward.
    """
    present = ~np.isnan(reward)
    if window == 1 and present.all():
        return reward
    if present.all():
        return _trailing_mean(reward, start, window)
    smoothed = np.full(len(reward), np.nan)
    if not present.any():
        return smoothed
    seen = np.cumsum(present)
    seen_before = seen[start] - present[start]
    compressed = _trailing_mean(reward[present], np.unique(seen_before[seen_before < seen[-1]]), window)
    inside = np.repeat(seen_before, np.diff(np.append(start, len(reward))))
    known = seen > inside
    smoothed[known] = compressed[seen[known] - 1]
    return smoothed


def _trailing_mean(values: Floats, start: Rows, window: int) -> Floats:
    """Mean of the last min(k + 1, window) values at each row k of each segment; nothing missing.

    Sums of 1, 2, 4, … rows are doubled, and those that add up to the window are put together: as many
    passes as the window has binary digits, and additions only.
    """
    age = _age(start, len(values))
    doubled = values
    total = np.zeros(len(values))
    covered = 0
    for bit in range(window.bit_length()):
        size = 1 << bit
        if covered >= len(values):
            break
        if window & size:
            _add_from(total, doubled, covered, age)
            covered += size
        previous, doubled = doubled, doubled.copy()
        _add_from(doubled, previous, size, age)
    return total / np.minimum(age + 1, window)


def _add_from(total: Floats, values: Floats, back: int, age: Rows) -> None:
    """Add to each row what stands `back` rows before it in the same segment."""
    if back < len(total):
        ahead = total[back:]
        np.add(ahead, values[: len(total) - back], out=ahead, where=age[back:] >= back)


def _age(start: Rows, rows: int) -> Rows:
    """`(rows,)` how many rows of its segment came before each."""
    return np.arange(rows) - np.repeat(start, np.diff(np.append(start, rows)))


def settled_start(start: Rows, stop: Rows, fraction: float, window: int) -> Rows:
    """`(segments,)` where settled parts begin: the last `fraction`, at least `window` rows, at most all."""
    rows = stop - start
    share = np.ceil(np.round(rows * fraction, 9)).astype(np.intp)
    settled: Rows = stop - np.minimum(rows, np.maximum(share, window))
    return settled


def part_means(values: Floats, start: Rows, stop: Rows) -> Floats:
    """Mean of the present values in each part.

    Args:
        values: `(rows,)`, NaN where missing.
        start: `(parts,)` first row of each; parts are in order, not empty, and do not overlap.
        stop: `(parts,)` the row behind its last one.

    Returns:
        `(parts,)`; NaN where nothing is present.
    """
    present = ~np.isnan(values)
    sums = part_sums(np.where(present, values, 0.0), start, stop)
    counts = part_sums(present.astype(np.float64), start, stop)
    means: Floats = np.divide(sums, counts, out=np.full(len(start), np.nan), where=counts > 0)
    return means


def part_deviations(values: Floats, start: Rows, stop: Rows) -> Floats:
    """Population standard deviation of the present values in each part; NaN where nothing is present."""
    means = part_means(values, start, stop)
    spread = np.full(len(values), np.nan)
    inside = _members(start, stop)
    spread[inside] = (values[inside] - np.repeat(means, stop - start)) ** 2
    return np.sqrt(part_means(spread, start, stop))


def part_sums(values: Floats, start: Rows, stop: Rows) -> Floats:
    """Sum of each part; parts as for `part_means`, nothing missing."""
    edges = np.column_stack((start, stop)).ravel()
    return np.asarray(np.add.reduceat(np.append(values, 0.0), edges)[::2])


def _members(start: Rows, stop: Rows) -> Rows:
    """Rows of all parts, in order."""
    lengths = stop - start
    offset = np.repeat(start - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return np.arange(len(offset)) + offset


def first_held_crossing(smoothed: Floats, start: Rows, stop: Rows, threshold: Floats, hold: int) -> Rows:
    """Rows until the smoothed reward reaches a threshold and stays there.

    Args:
        smoothed: `(rows,)` ρ; NaN is below every threshold.
        start: `(segments,)` first rows; together the segments cover all rows.
        stop: `(segments,)` the rows behind the last ones.
        threshold: `(segments,)` θ; where NaN, nothing crosses.
        hold: Rows in a row that count as staying; up to the segment's end suffices.

    Returns:
        `(segments,)` rows from the segment's start, or -1 where it never stays.
    """
    rows = len(smoothed)
    lengths = stop - start
    below = ~(smoothed >= np.repeat(threshold, lengths))
    position = np.arange(rows)
    end = np.repeat(stop, lengths)
    fall = np.where(below, position, end)
    fall = np.minimum(np.minimum.accumulate(fall[::-1])[::-1], end)
    held = ~below & ((fall - position >= hold) | (fall == end))
    first = np.minimum.reduceat(np.where(held, position, rows), start)
    return np.where(first < stop, first - start, -1)
