"""The catalogue of numbers that a scorecard has: their names, units, and which way is better.

Tables, statistics and reports go through this list, so a number is named and explained in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["HEADLINES", "MEASURES", "Better", "Measure"]


class Better(str, Enum):
    """Which direction of a measure is an improvement; `NEITHER` where more is not better by itself."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a scorecard.

    Attributes:
        name: Its key in `Scorecard.measures` and in JSON.
        title: For tables.
        metric: The result it is part of (an attribute of `WorldScore`).
        attribute: The attribute of that result.
        better: Which way is an improvement.
        unit: What it counts.
    """

    name: str
    title: str
    metric: str
    attribute: str
    better: Better
    unit: str


MEASURES: tuple[Measure, ...] = (
    Measure("reward", "Reward per configuration", "reward", "overall", Better.HIGHER, "reward"),
    Measure("reward_per_step", "Reward per step", "reward", "per_step", Better.HIGHER, "reward"),
    Measure("adaptation_speed", "Adaptation speed", "adaptation", "speed", Better.HIGHER, "0 to 1"),
    Measure("adaptation_steps", "Steps to adapt, mean", "adaptation", "mean_steps", Better.LOWER, "rows"),
    Measure(
        "adaptation_steps_median",
        "Steps to adapt, median",
        "adaptation",
        "median_steps",
        Better.LOWER,
        "rows",
    ),
    Measure("forgetting", "Forgetting", "forgetting", "forgetting", Better.LOWER, "reward"),
    Measure("retention", "Loss after relearning", "forgetting", "retention", Better.LOWER, "reward"),
    Measure("savings", "Savings", "forgetting", "savings", Better.HIGHER, "share"),
    Measure("recovery_steps", "Recovery time", "recovery", "mean_steps", Better.LOWER, "rows"),
    Measure(
        "recovery_steps_median", "Recovery time, median", "recovery", "median_steps", Better.LOWER, "rows"
    ),
    Measure("recovery_censored", "Never recovered", "recovery", "censored_share", Better.LOWER, "share"),
    Measure("stability", "Stability (spread)", "stability", "deviation", Better.LOWER, "reward"),
    Measure("drawdown", "Largest drawdown", "stability", "drawdown", Better.LOWER, "reward"),
    Measure("worst_drops", "Worst 5 % of changes", "stability", "worst_drops", Better.HIGHER, "reward"),
    Measure("gap", "Performance gap", "gap", "gap", Better.LOWER, "reward"),
    Measure("gap_share", "Gap, share of bound", "gap", "share", Better.LOWER, "share"),
    Measure("forward_transfer", "Forward transfer", "transfer", "transfer", Better.HIGHER, "share"),
    Measure("rank_first", "Effective rank, first", "plasticity", "first", Better.NEITHER, "rank"),
    Measure("rank_last", "Effective rank, last", "plasticity", "last", Better.HIGHER, "rank"),
    Measure("rank_slope", "Effective rank, slope", "plasticity", "slope", Better.HIGHER, "per 1,000 steps"),
    Measure("rank_ratio", "Effective rank, last/first", "plasticity", "ratio", Better.HIGHER, "share"),
)
"""Every measure, in the order of tables."""

HEADLINES = ("reward", "adaptation_speed", "forgetting", "recovery_steps", "stability", "gap")
"""The six metrics' first numbers."""
