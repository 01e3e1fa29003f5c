"""Numbers of a family by configuration, and the remarks without which its numbers mislead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skyfall_metrics.report.lives import Family
from skyfall_metrics.scorecard import ConfigurationSummary
from skyfall_metrics.trace import counted
from skyfall_metrics.values import Value, mean_of

__all__ = ["BOUND_SOURCES", "ConfigurationLevel", "configuration_level", "remarks_of"]

BOUND_SOURCES = {
    "given": "bound as given",
    "trace": "bound from the run's metadata",
    "rows": "bound from the rows",
    "observed": "bound observed: the best settled level among these runs, with no theory behind it",
}
"""Footnotes that say where a bound comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationLevel:
    """One configuration over the runs of a family.

    Attributes:
        runs: Runs that met it.
        means: Mean reward in each run that has one.
        mean: Mean of `means`.
        deviation: Their sample standard deviation.
        settled: Mean settled level.
        bounds: The upper bounds that the runs know, each once; `sources` says who told them.
        gap: Mean gap.
    """

    runs: int
    means: tuple[float, ...]
    mean: Value
    deviation: Value
    settled: Value
    bounds: tuple[float, ...]
    sources: tuple[str, ...]
    gap: Value


def configuration_level(family: Family, configuration: str) -> ConfigurationLevel | None:
    """A configuration's numbers in a family; None where no run of it met the configuration."""
    met: list[ConfigurationSummary] = [
        c for card in family.cards for c in card.configurations if c.configuration == configuration
    ]
    if not met:
        return None
    means = tuple(c.mean for c in met if c.mean is not None)
    return ConfigurationLevel(
        runs=len(met),
        means=means,
        mean=mean_of(means, "all rewards are missing"),
        deviation=_deviation(means),
        settled=mean_of((c.settled for c in met), "rewards of every settled part are missing"),
        bounds=tuple(sorted({c.bound for c in met if c.bound is not None})),
        sources=tuple(sorted({c.bound_source for c in met if c.bound_source is not None})),
        gap=mean_of((c.gap.value for c in met), "; ".join(dict.fromkeys(c.gap.reason or "" for c in met))),
    )


def _deviation(means: Sequence[float]) -> Value:
    if len(means) < 2:
        return Value.missing("a single run has no spread")
    return Value(float(np.std(means, ddof=1)))


def remarks_of(families: Sequence[Family]) -> list[str]:
    """What must be read beside the numbers: nothing to climb, never recovered, a bound that is wrong."""
    flat, censored, above = [], [], []
    for family in families:
        worlds = [world for card in family.cards for world in card.worlds]
        shifts = sum(len(world.adaptation.shifts) for world in worlds)
        flat.append(_share(family, sum(world.adaptation.no_rise for world in worlds), shifts))
        censored.append(_share(family, sum(world.recovery.censored for world in worlds), shifts))
        configurations = [c for card in family.cards for c in card.configurations]
        wrong = sorted({c.configuration for c in configurations if c.above_bound})
        above.append(f"{family.name}, {', '.join(wrong)}" if wrong else "")
    remarks = (
        (
            "Nothing to climb after a shift, because the reward settled no higher than it began",
            flat,
            "Such a shift counts as adapted at once (speed 1), by definition and not by skill.",
        ),
        (
            "Not recovered from a shift within its segment",
            censored,
            "Each counts with its whole segment, so the recovery time is a lower bound.",
        ),
        ("Settled above the upper bound", above, "The bound is wrong, not the run."),
    )
    return [f"{what}: {'; '.join(filter(None, who))}. {why}" for what, who, why in remarks if any(who)]


def _share(family: Family, count: int, shifts: int) -> str:
    """`random, 3 of 9 shifts`; empty where there are none."""
    which = f"all {counted(shifts, 'shift')}" if count == shifts else f"{count} of {counted(shifts, 'shift')}"
    return f"{family.name}, {which}" if count else ""
