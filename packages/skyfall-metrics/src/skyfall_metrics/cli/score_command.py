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
    from skyfall_metrics.cli.output import print_json, print_renderables, warn_of_notes
    from skyfall_metrics.discovery import find_all_traces
    from skyfall_metrics.reader import read_trace
    from skyfall_metrics.scoring import score as score_trace
    from skyfall_metrics.tables import scorecard_table, summary_table

    parameters, keys = scoring.parameters(), reading.keys()
    cards = []
    for path in find_all_traces(paths, reading.pattern):
        trace = read_trace(path, keys=keys, damaged_lines=reading.on_damage())
        cards.append(score_trace(trace, parameters))
    warn_of_notes(cards)
    if as_json:
        print_json({"schema_version": 1, "scorecards": [card.to_dict() for card in cards]})
    elif len(cards) == 1:
        print_renderables(scorecard_table(cards[0]))
    else:
        print_renderables(summary_table(cards))
