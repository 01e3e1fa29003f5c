"""Reference runs for forward transfer: what a family earns when it lives one configuration alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skyfall_metrics.errors import ComparisonError
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.scoring import with_references

__all__ = ["ReferenceMeans", "reference_means", "with_reference_runs"]

ReferenceMeans = dict[tuple[str | None, str | None], dict[str, float]]
"""Mean reward by configuration, by family and task."""


def reference_means(cards: Iterable[Scorecard]) -> ReferenceMeans:
    """Mean reward per step of reference runs, averaged over the runs of a family, task and configuration.

    Raises:
        ComparisonError: A reference run that lived more than one configuration.
    """
    found: dict[tuple[str | None, str | None], dict[str, list[float]]] = {}
    for card in cards:
        names = [each.configuration for each in card.configurations]
        if len(names) != 1:
            raise ComparisonError(
                f"{card.run.path or card.run.title()}: lived {', '.join(map(repr, names))}: "
                "a reference run lives one configuration alone"
            )
        mean = card.measures["reward_per_step"].value
        if mean is not None:
            family = (card.run.algorithm_id, card.run.task)
            found.setdefault(family, {}).setdefault(names[0], []).append(mean)
    return {
        family: {name: float(np.mean(values)) for name, values in means.items()}
        for family, means in found.items()
    }


def with_reference_runs(cards: Iterable[Scorecard], means: ReferenceMeans) -> list[Scorecard]:
    """Scorecards with forward transfer, each compared with references of its own family and task."""
    return [with_references(card, means.get((card.run.algorithm_id, card.run.task), {})) for card in cards]
