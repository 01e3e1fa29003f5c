"""`report`: everything about a set of runs in one HTML file, and its figures as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skyfall_metrics.cli.command import command
from skyfall_metrics.cli.options import GatheringOptions, Paths, ReadingOptions, ScoringOptions
from skyfall_metrics.report.formats import FigureFormat

__all__ = ["ReportOptions", "report"]

_FIGURES = "Figures as files"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report is called and what it leaves on disk."""

    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    )
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "Continual-learning runs"
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of the intervals.")] = 2000
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Draw each figure into this directory as well; needs the extra 'plots'.",
            rich_help_panel=_FIGURES,
        ),
    ] = None
    figure_format: Annotated[
        FigureFormat, typer.Option("--format", help="What they are drawn as.", rich_help_panel=_FIGURES)
    ] = FigureFormat.SVG


@command
def report(
    paths: Paths,
    *,
    options: ReportOptions,
    gathering: GatheringOptions,
    scoring: ScoringOptions,
    reading: ReadingOptions,
) -> None:
    """Write a report of recorded runs: one HTML file that opens from disk and fetches nothing."""
    from skyfall_metrics.cli.gathering import gather  # noqa: PLC0415 - kept out of --help
    from skyfall_metrics.discovery import find_all_traces  # noqa: PLC0415
    from skyfall_metrics.report import files  # noqa: PLC0415
    from skyfall_metrics.statistics import Bootstrap  # noqa: PLC0415

    bootstrap = Bootstrap(resamples=options.resamples)
    if options.figures is not None:
        files.require_plots()
    traces = find_all_traces([*paths, *(gathering.reference or [])], reading.pattern)
    bounds = [] if gathering.bounds is None else [Path(gathering.bounds)]
    files.refuse_input(options.output, [*traces, *bounds])
    contents = files.report_of_cards(
        gather(paths, reading, scoring, gathering),
        keys=reading.keys(),
        damaged_lines=reading.on_damage(),
        title=options.title,
        bootstrap=bootstrap,
    )
    written = [files.write_page(contents, options.output)]
    if options.figures is not None:
        written += files.write_figures(contents, options.figures, options.figure_format)
    for path in written:
        typer.echo(path)
