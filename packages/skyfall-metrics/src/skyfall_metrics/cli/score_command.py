"""`score`: the six metrics of one run or of each of several."""

from __future__ import annotations

from typing import Annotated

import typer

from skyfall_metrics.cli.command import command
from skyfall_metrics.cli.options import Paths, ReadingOptions, ScoringOptions

__all__ = ["score"]


@command
def score(
    paths: Paths,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    reading: ReadingOptions,
    scoring: ScoringOptions,
) -> None:
    """Score recorded runs: six metrics from a trace, with neither the world nor the model."""
    from skyfall_metrics import batch, discovery, tables  # noqa: PLC0415 - kept out of --help
    from skyfall_metrics.cli import output  # noqa: PLC0415

    job = batch.Job(parameters=scoring.parameters(), keys=reading.keys(), damaged_lines=reading.on_damage())
    cards = batch.score_files(discovery.find_all_traces(paths, reading.pattern), job)
    output.warn_of_notes(cards)
    if as_json:
        output.print_json({"schema_version": 1, "scorecards": [card.to_dict() for card in cards]})
    elif len(cards) == 1:
        output.print_renderables(tables.scorecard_table(cards[0]))
    else:
        output.print_renderables(tables.summary_table(cards))
