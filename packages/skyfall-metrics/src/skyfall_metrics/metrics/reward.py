"""Per-configuration reward: what was earned under each configuration, each counting once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfall_metrics.stream import Stream
from skyfall_metrics.values import Value, mean_of, number, optional

__all__ = ["ConfigurationReward", "RewardResult", "configuration_reward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationReward:
    """Reward under one configuration, over all its segments.

    Attributes:
        configuration: Its name.
        visits: Segments.
        rows: Rows, of which `missing` carry no reward.
        missing: Rows left out of every mean.
        mean: Mean over its rows; None when every reward is missing.
        deviation: Population standard deviation over its rows.
        settled: Mean of its segments' settled levels.
    """

    configuration: str
    visits: int
    rows: int
    missing: int
    mean: float | None
    deviation: float | None
    settled: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardResult:
    """Per-configuration reward of one world.

    Attributes:
        overall: Unweighted mean over configurations: a long one does not outvote a short one.
        per_step: Plain mean over all rows.
        configurations: In order of first visit.
    """

    overall: Value
    per_step: Value
    configurations: tuple[ConfigurationReward, ...]


def configuration_reward(stream: Stream) -> RewardResult:
    """Mean reward by configuration.

    R = (Σ_c r̄_c) / |C|, with r̄_c the mean of the present rewards under configuration c.

    Args:
        stream: One world's life.
    """
    segments = stream.segments
    rewards = _grouped(stream.reward, np.repeat(segments.identity, segments.rows))
    settled = _grouped(stream.settled, segments.identity)
    configurations = tuple(
        _of_one(segments.names[code], rewards[code], settled[code]) for code in segments.identities()
    )
    reason = "all rewards are missing"
    present = stream.reward[~np.isnan(stream.reward)]
    return RewardResult(
        overall=mean_of((c.mean for c in configurations), reason),
        per_step=number(present.mean() if len(present) else None, reason),
        configurations=configurations,
    )


def _grouped(values: NDArray[np.float64], codes: NDArray[np.int32]) -> dict[int, NDArray[np.float64]]:
    """Values by code, in their order: one sort, however many codes there are."""
    order = np.argsort(codes, kind="stable")
    found, start = np.unique(codes[order], return_index=True)
    return dict(zip(found.tolist(), np.split(values[order], start[1:]), strict=True))


def _of_one(name: str, rewards: NDArray[np.float64], settled: NDArray[np.float64]) -> ConfigurationReward:
    present = rewards[~np.isnan(rewards)]
    return ConfigurationReward(
        configuration=name,
        visits=len(settled),
        rows=len(rewards),
        missing=len(rewards) - len(present),
        mean=float(present.mean()) if len(present) else None,
        deviation=float(present.std()) if len(present) else None,
        settled=mean_of(map(optional, settled), "").value,
    )
