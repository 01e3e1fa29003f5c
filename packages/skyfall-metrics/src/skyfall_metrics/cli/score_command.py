"""`score`: the six metrics of one run or of each of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyfall_metrics.cli.command import command
from skyfall_metrics.cli.options import (
    GatheringOptions,
    OutputFormat,
    OutputOptions,
    Paths,
    ReadingOptions,
    ScoringOptions,
)

if TYPE_CHECKING:
    from skyfall_metrics.scorecard import Scorecard

__all__ = ["score"]


@command
def score(
    paths: Paths,
    *,
    output: OutputOptions,
    gathering: GatheringOptions,
    scoring: ScoringOptions,
    reading: ReadingOptions,
) -> None:
    """Score recorded runs: six metrics from a trace, with neither the world nor the model."""
    from skyfall_metrics.cli import output as out  # noqa: PLC0415 - kept out of --help
    from skyfall_metrics.cli.gathering import gather  # noqa: PLC0415

    form = output.chosen()
    cards = gather(paths, reading, scoring, gathering)
    if form is OutputFormat.JSON:
        out.print_json({"schema_version": 1, "scorecards": [card.to_dict() for card in cards]})
    elif form is OutputFormat.CSV:
        from skyfall_metrics import tidy  # noqa: PLC0415

        out.print_text(tidy.scorecards_csv(cards))
    else:
        _print_tables(cards, form)


def _print_tables(cards: list[Scorecard], form: OutputFormat) -> None:
    from skyfall_metrics import tables  # noqa: PLC0415 - what draws tables is slow to import
    from skyfall_metrics.cli import drawing  # noqa: PLC0415
    from skyfall_metrics.sheets import Footnotes  # noqa: PLC0415

    notes = Footnotes()
    if len(cards) == 1:
        heading = tables.run_lines(cards[0])
        sheets = [
            tables.measure_sheet(cards[0], notes),
            tables.configuration_sheet(cards[0].configurations, notes),
        ]
        life = tables.segment_sheet(cards[0])
        sheets += [] if life is None else [life]
        closing = []
    else:
        windows = ", ".join(map(str, sorted({card.parameters.window for card in cards})))
        heading, sheets = [], [tables.summary_sheet(cards, notes)]
        closing = [f"window {windows}; {tables.DIRECTIONS}"]
    if form is OutputFormat.LATEX:
        drawing.print_latex(sheets, notes)
    else:
        drawing.print_sheets(heading, sheets, [*closing, *notes.lines()])
