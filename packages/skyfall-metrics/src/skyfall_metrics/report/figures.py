"""Every figure of a report, in reading order."""

from __future__ import annotations

from skyfall_metrics.report.contents import Report
from skyfall_metrics.report.curves import rank_figure, reward_figure
from skyfall_metrics.report.levels import configuration_figure, metrics_figure
from skyfall_metrics.report.matrix import forgetting_figure
from skyfall_metrics.report.scene import Figure

__all__ = ["ABSENCES", "all_figures"]

ABSENCES = {
    "forgetting": (
        "Forgetting at each return",
        "No configuration came back in any run: nothing that could have been forgotten.",
    ),
    "effective-rank": ("Effective rank over steps", "No trace carries effective_rank."),
}
"""Title and reason of the figures that not every set of runs can have."""


def all_figures(report: Report) -> dict[str, Figure | None]:
    """The figures by name; None for one that these runs cannot have."""
    families = report.families
    return {
        "reward": reward_figure(families),
        "configurations": configuration_figure(families),
        "metrics": metrics_figure(report),
        "forgetting": forgetting_figure(families),
        "effective-rank": rank_figure(families),
    }
