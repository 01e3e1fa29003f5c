"""What a report is made from: the runs by family, and the comparison of the families."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skyfall_metrics.comparison import Comparison, Estimate, Schedules, compare
from skyfall_metrics.report.lives import Family, Life, families_of
from skyfall_metrics.statistics import Bootstrap

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a report.

    Attributes:
        title: Heading of the page.
        families: The runs, a family an algorithm and task.
        comparison: The statistics over their seeds.
    """

    title: str
    families: tuple[Family, ...]
    comparison: Comparison

    @property
    def bootstrap(self) -> Bootstrap:
        """How its intervals were computed."""
        return self.comparison.bootstrap

    def estimate(self, family: Family, measure: str) -> Estimate:
        """A measure over the runs of one family."""
        return next(
            summary.estimates[measure]
            for summary in self.comparison.summaries
            if (summary.family, summary.task) == (family.algorithm, family.task)
        )


def report_of(lives: Iterable[Life], *, title: str, bootstrap: Bootstrap | None = None) -> Report:
    """Group runs and compare their families; different schedules become a warning, not an error.

    Args:
        lives: The runs, at least one.
        title: Heading of the page.
        bootstrap: How intervals are computed.
    """
    families = families_of(lives)
    cards = [card for family in families for card in family.cards]
    return Report(
        title=title,
        families=tuple(families),
        comparison=compare(cards, bootstrap=bootstrap, schedules=Schedules.ANY),
    )
