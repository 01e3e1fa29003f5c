"""The Fourier basis: features of a bounded observation that a linear learner can work with.

Every feature is cos(π c·x) for an observation x scaled to [0, 1] and a vector c of small whole
numbers. How an entry of the observation is scaled is decided once, from the space and the document
alone, so the features of an observation never change while a run goes on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from skyfall_core.errors import ConfigError, SpaceError

__all__ = ["MAX_FEATURES", "UNBOUNDED_WIDTH", "FourierBasis"]

MAX_FEATURES = 20_000
"""More features than this are refused: the basis grows with the power of the observation's size."""

UNBOUNDED_WIDTH = 1e6
"""A range wider than this counts as no range: some spaces write 'unbounded' as the largest float."""

Floats = NDArray[np.float64]


class FourierBasis:
    """Maps observations of a `Box` to Fourier features in [-1, 1].

    An entry with a range is scaled linearly and clipped to it: its range is the one in `ranges`, else
    the space's own bounds. An entry with neither is squashed, x = 1/2 + arctan(o)/π, which suits
    values of order 1; give a range where that is wrong.

    Attributes:
        size: Number of features.
        coefficients: The vectors c, (features, entries); the first is all zeros, the constant feature.
        step_scale: What to multiply a step size with, per feature: 1/‖c‖, and 1 for the constant.

    Source: Konidaris, Osentoski and Thomas 2011, "Value Function Approximation in Reinforcement
        Learning Using the Fourier Basis", AAAI: the multivariate basis, and its scaling of step sizes.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        order: int = 3,
        interactions: int | None = 2,
        ranges: Sequence[Sequence[float] | None] | None = None,
    ) -> None:
        """Lay out the basis.

        Args:
            observation_space: A `Box` of any shape; it is read flattened.
            order: The largest number in any c; 1 or more.
            interactions: How many entries one feature may combine, 1 or more; None is all of them.
                `order=1, interactions=1` is close to a policy linear in the observation.
            ranges: Per entry of the flattened observation `[low, high]`, or None for the space's own.

        Raises:
            SpaceError: If the space is no `Box`, or the basis would be larger than `MAX_FEATURES`.
            ConfigError: If an argument is out of range or does not fit the space.
        """
        if not isinstance(observation_space, spaces.Box):
            raise SpaceError(
                f"observation space {observation_space}: the Fourier basis handles Box only; flatten it first"
            )
        entries = math.prod(observation_space.shape)
        interactions = entries if interactions is None else interactions
        _check_whole("order", order)
        _check_whole("interactions", interactions)
        self.size = sum(math.comb(entries, k) * order**k for k in range(min(interactions, entries) + 1))
        if self.size > MAX_FEATURES:
            raise SpaceError(
                f"observation space {observation_space}: order {order} over {entries} entries, "
                f"at most {interactions} of them combined, is {self.size} features "
                f"and {MAX_FEATURES} is the limit; "
                "lower `order` or `interactions`"
            )
        self.coefficients = np.array(list(_coefficients(entries, order, interactions)), dtype=np.float64)
        self.coefficients = self.coefficients.reshape(self.size, entries)
        norms = np.linalg.norm(self.coefficients, axis=1)
        self.step_scale: Floats = 1.0 / np.where(norms == 0.0, 1.0, norms)
        low, high = _bounds(observation_space, ranges)
        ranged = high - low <= UNBOUNDED_WIDTH
        self._low: Floats = np.where(ranged, low, -np.inf)
        self._high: Floats = np.where(ranged, high, np.inf)
        self._squashed = None if ranged.all() else ~ranged
        # Scaling to [0, 1] is folded into the angles, so that acting costs one product and one sum.
        start = np.where(ranged, low, -math.pi / 2)
        width = np.where(ranged, high - low, math.pi)
        self._slopes: Floats = math.pi * self.coefficients / np.where(width == 0.0, 1.0, width)
        self._phases: Floats = -self._slopes.dot(start)

    def __call__(self, observation: Any) -> Floats:
        """Features of one observation, (features,)."""
        flat = np.asarray(observation, dtype=np.float64).ravel()
        features: Floats = np.cos(self._slopes.dot(self._bounded(flat)) + self._phases)
        return features

    def batch(self, observations: Sequence[Any]) -> Floats:
        """Features of several observations, (observations, features)."""
        rows = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        features: Floats = np.cos(self._bounded(rows) @ self._slopes.T + self._phases)
        return features

    def _bounded(self, flat: Floats) -> Floats:
        """Entries with a range clipped to it, the others as angles in (-π/2, π/2); (..., entries)."""
        bounded: Floats = np.minimum(np.maximum(flat, self._low), self._high)
        if self._squashed is not None:
            np.arctan(bounded, out=bounded, where=self._squashed)
        return bounded


def _coefficients(entries: int, order: int, interactions: int) -> Iterator[list[int]]:
    """The vectors c with at most `interactions` entries that are not zero, fewest such entries first."""
    for count in range(min(interactions, entries) + 1):
        for chosen in itertools.combinations(range(entries), count):
            for numbers in itertools.product(range(1, order + 1), repeat=count):
                row = [0] * entries
                for entry, number in zip(chosen, numbers, strict=True):
                    row[entry] = number
                yield row


def _bounds(space: spaces.Box, ranges: Sequence[Sequence[float] | None] | None) -> tuple[Floats, Floats]:
    """Lower and upper end per flattened entry, infinite where neither document nor space gives one."""
    low = space.low.astype(np.float64).ravel()
    high = space.high.astype(np.float64).ravel()
    if ranges is None:
        return low, high
    if len(ranges) != len(low):
        raise ConfigError(
            f"ranges: {len(ranges)} given, but {space} has {len(low)} entries; give one each, or null"
        )
    for entry, pair in enumerate(ranges):
        if pair is None:
            continue
        if (
            len(pair) != 2
            or not all(map(math.isfinite, pair))
            or not 0.0 < pair[1] - pair[0] <= UNBOUNDED_WIDTH
        ):
            raise ConfigError(
                f"ranges[{entry}] is {pair!r}: "
                f"give [low, high] with low < high, at most {UNBOUNDED_WIDTH:g} apart"
            )
        low[entry], high[entry] = pair
    return low, high


def _check_whole(name: str, value: int) -> None:
    """Refuse what is no whole number of 1 or more."""
    if type(value) is not int or value < 1:
        raise ConfigError(f"{name} is {value!r}: give a whole number of 1 or more")
