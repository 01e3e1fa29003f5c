"""Results as CSV, one number a line, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from skyfall_metrics.comparison import Comparison
from skyfall_metrics.measures import MEASURES
from skyfall_metrics.scorecard import Scorecard
from skyfall_metrics.statistics import Interval

__all__ = ["comparison_csv", "scorecards_csv"]


def scorecards_csv(cards: Iterable[Scorecard]) -> str:
    """A line for each measure of each run; a missing number is empty and has its reason."""
    rows = [
        (
            run.path,
            run.run_id,
            run.algorithm_id,
            run.task,
            run.seed,
            m.name,
            value.value,
            value.reason,
            m.unit,
        )
        for card in cards
        for m in MEASURES
        for run, value in ((card.run, card.measures[m.name]),)
    ]
    return _text(
        ("path", "run_id", "algorithm_id", "task", "seed", "measure", "value", "reason", "unit"), rows
    )


def comparison_csv(comparison: Comparison) -> str:
    """A line for each measure of each family on each task; over all tasks, the task is empty."""
    rows = [
        (
            summary.family,
            summary.task,
            measure.name,
            estimate.runs,
            estimate.missing,
            estimate.mean,
            estimate.deviation,
            estimate.interquartile_mean,
            *_ends(estimate.mean_interval),
            *_ends(estimate.interquartile_interval),
            "; ".join(estimate.reasons),
        )
        for summary in comparison.summaries
        for measure in MEASURES
        for estimate in (summary.estimates[measure.name],)
    ]
    intervals = ("mean_low", "mean_high", "iqm_low", "iqm_high")
    return _text(
        ("algorithm_id", "task", "measure", "runs", "missing", "mean", "sd", "iqm", *intervals, "reasons"),
        rows,
    )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _text(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return text.getvalue()
