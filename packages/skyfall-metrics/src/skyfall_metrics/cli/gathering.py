"""What every command does first: find traces, score them, and take in bounds and references."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from skyfall_metrics.batch import Job, score_files, worthwhile_jobs
from skyfall_metrics.bounds_file import read_bounds, with_observed_bounds, with_table
from skyfall_metrics.cli.options import GatheringOptions, ReadingOptions, ScoringOptions
from skyfall_metrics.cli.output import warn, warn_of_notes
from skyfall_metrics.discovery import find_all_traces
from skyfall_metrics.references import reference_means, with_reference_runs
from skyfall_metrics.scorecard import Scorecard

__all__ = ["gather"]

_OBSERVED = "observed"


def gather(
    paths: Sequence[Path], reading: ReadingOptions, scoring: ScoringOptions, gathering: GatheringOptions
) -> list[Scorecard]:
    """The scorecards of every trace at or under `paths`; whatever is odd is told on standard error."""
    job = Job(parameters=scoring.parameters(), keys=reading.keys(), damaged_lines=reading.on_damage())
    cards = _scored(paths, reading.pattern, job, gathering.jobs)
    if gathering.reference:
        references = _scored(gathering.reference, reading.pattern, job, gathering.jobs)
        cards = with_reference_runs(cards, reference_means(references))
    if gathering.bounds == _OBSERVED:
        cards = with_observed_bounds(cards)
    elif gathering.bounds is not None:
        cards, warnings = with_table(cards, read_bounds(Path(gathering.bounds)))
        for warning in warnings:
            warn(f"{gathering.bounds}: {warning}")
    warn_of_notes(cards)
    return cards


def _scored(paths: Sequence[Path], pattern: str, job: Job, jobs: int) -> list[Scorecard]:
    traces = find_all_traces(paths, pattern)
    cards = score_files(traces, job, jobs=jobs or worthwhile_jobs(traces))
    if len(traces) == 1 or not sys.stderr.isatty():
        return list(cards)
    from rich.console import Console  # noqa: PLC0415 - only where progress is shown
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        return list(progress.track(cards, total=len(traces)))
