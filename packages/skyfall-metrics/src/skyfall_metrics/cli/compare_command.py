"""`compare`: families of runs side by side, with intervals over seeds."""

from __future__ import annotations

from typing import Annotated

import typer

from skyfall_metrics.cli.command import command
from skyfall_metrics.cli.options import (
    ComparisonOptions,
    GatheringOptions,
    OutputFormat,
    OutputOptions,
    Paths,
    ReadingOptions,
    ScoringOptions,
)

__all__ = ["compare"]


@command
def compare(
    paths: Paths,
    *,
    every_measure: Annotated[
        bool, typer.Option("--all", help="Show every measure, not only the six.")
    ] = False,
    output: OutputOptions,
    comparison: ComparisonOptions,
    gathering: GatheringOptions,
    scoring: ScoringOptions,
    reading: ReadingOptions,
) -> None:
    """Compare families of runs over their seeds: intervals and the probability of improvement."""
    from skyfall_metrics import tables, tidy  # noqa: PLC0415 - kept out of --help
    from skyfall_metrics.cli import drawing  # noqa: PLC0415
    from skyfall_metrics.cli import output as out  # noqa: PLC0415
    from skyfall_metrics.cli.gathering import gather  # noqa: PLC0415
    from skyfall_metrics.measures import HEADLINES, MEASURES  # noqa: PLC0415
    from skyfall_metrics.sheets import Footnotes  # noqa: PLC0415

    form = output.chosen()
    bootstrap = comparison.bootstrap()
    result = comparison.compared(gather(paths, reading, scoring, gathering), bootstrap)
    for note in result.warnings:
        out.warn(note.message)
    if form is OutputFormat.JSON:
        out.print_json(result.to_dict())
        return
    if form is OutputFormat.CSV:
        out.print_text(tidy.comparison_csv(result))
        return
    notes = Footnotes()
    names = [measure.name for measure in MEASURES] if every_measure else HEADLINES
    sheets = tables.comparison_sheets(result, notes, names)
    if result.improvements:
        sheets.append(tables.improvement_sheet(result, notes, names))
    if form is OutputFormat.LATEX:
        drawing.print_latex(sheets, notes)
        return
    how = f"percentile bootstrap of the IQM, {bootstrap.resamples:,} resamples, seed {bootstrap.seed}"
    drawing.print_sheets([], sheets, [how, *notes.lines()])
