"""Statistics over seeds: point estimates, bootstrap intervals, probability of improvement.

A sample is a list of strata (one a task), each with one number a run. Resampling stays inside the strata,
is vectorised, and is seeded: the same numbers in any order give the same interval, because every stratum is
sorted first.

Source: Agarwal et al. 2021, arXiv 2108.13264 (interquartile mean, stratified percentile bootstrap,
probability of improvement).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.errors import ParameterError

__all__ = [
    "Bootstrap",
    "Interval",
    "bootstrap_interval",
    "improvement_interval",
    "interquartile_mean",
    "mean",
    "probability_of_improvement",
]

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]

_MOST_VALUES = 1 << 21
"""Resampled values that are held at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How intervals are computed.

    Attributes:
        resamples: How many resamples are drawn.
        confidence: Share of them that an interval holds.
        seed: Of the draws.

    Raises:
        ParameterError: No resamples, or a confidence that is no share.
    """

    resamples: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ParameterError(f"resamples is {self.resamples!r}: expected at least 1")
        if not 0 < self.confidence < 1:
            raise ParameterError(f"confidence is {self.confidence!r}: expected a share between 0 and 1")
        if self.seed < 0:
            raise ParameterError(f"seed is {self.seed!r}: expected 0 or more")


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile-bootstrap interval."""

    low: float
    high: float


def mean(values: Floats) -> Floats:
    """Mean along the last axis."""
    average: Floats = values.mean(axis=-1)
    return average


def interquartile_mean(values: Floats) -> Floats:
    """Mean of the middle half along the last axis.

    Args:
        values: `(…, n)`, n at least 1. A quarter of the values, rounded down, is cut from each end.
    """
    size = values.shape[-1]
    cut = size // 4
    middle: Floats = np.sort(values, axis=-1)[..., cut : size - cut].mean(axis=-1)
    return middle


def bootstrap_interval(
    strata: Sequence[Floats], statistic: Statistic, bootstrap: Bootstrap
) -> Interval | None:
    """Interval of a statistic of all values together, resampled within each stratum.

    Args:
        strata: The numbers of each task, a run each; none empty.
        statistic: From `(resamples, values)` to `(resamples,)`.
        bootstrap: Resamples, confidence and seed.

    Returns:
        The interval; None where a single number leaves nothing to resample.
    """
    if sum(map(len, strata)) < 2:
        return None
    ordered = [np.sort(stratum) for stratum in strata]
    rng = np.random.default_rng(bootstrap.seed)
    estimates = [
        statistic(np.concatenate([_drawn(rng, stratum, count) for stratum in ordered], axis=1))
        for count in _chunks(bootstrap.resamples, sum(map(len, ordered)))
    ]
    return _percentiles(np.concatenate(estimates), bootstrap)


def probability_of_improvement(pairs: Sequence[tuple[Floats, Floats]]) -> float:
    """P(a run of X exceeds a run of Y), ties counting half, averaged over tasks.

    Args:
        pairs: For each task, the numbers of X and of Y; none empty.
    """
    return float(np.mean([_wins(x, y).mean() for x, y in pairs]))


def improvement_interval(pairs: Sequence[tuple[Floats, Floats]], bootstrap: Bootstrap) -> Interval | None:
    """Interval of `probability_of_improvement`, both families resampled within each task.

    How often each run is drawn decides a resample, so one product with the table of wins replaces comparing
    anew.

    Returns:
        The interval; None where every task has a single run of each.
    """
    if all(len(x) < 2 and len(y) < 2 for x, y in pairs):
        return None
    rng = np.random.default_rng(bootstrap.seed)
    estimates = np.zeros(bootstrap.resamples)
    for x, y in pairs:
        wins = _wins(np.sort(x), np.sort(y))
        of_x, of_y = (_draw_counts(rng, len(values), bootstrap.resamples) for values in (x, y))
        estimates += ((of_x @ wins) * of_y).sum(axis=1) / (len(x) * len(y))
    return _percentiles(estimates / len(pairs), bootstrap)


def _chunks(resamples: int, values: int) -> Iterator[int]:
    """How many resamples at a time, so that memory stays bounded."""
    most = max(1, _MOST_VALUES // values)
    while resamples > 0:
        yield min(most, resamples)
        resamples -= most


def _drawn(rng: np.random.Generator, values: Floats, count: int) -> Floats:
    return values[rng.integers(len(values), size=(count, len(values)))]


def _draw_counts(rng: np.random.Generator, size: int, count: int) -> Floats:
    """`(count, size)` how often each of `size` runs is drawn in each resample."""
    return rng.multinomial(size, np.full(size, 1 / size), size=count).astype(np.float64)


def _wins(x: Floats, y: Floats) -> Floats:
    """`(len(x), len(y))` 1 where x is greater, a half for ties."""
    wins: Floats = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
    return wins


def _percentiles(estimates: Floats, bootstrap: Bootstrap) -> Interval:
    tail = 100 * (1 - bootstrap.confidence) / 2
    low, high = np.percentile(estimates, [tail, 100 - tail])
    return Interval(float(low), float(high))
