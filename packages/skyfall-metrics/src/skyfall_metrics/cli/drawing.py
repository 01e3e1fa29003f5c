"""Tables on standard output; apart from the rest of the output, because what draws them is slow to import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.text import Text

from skyfall_metrics.cli.output import print_text, tolerate_encoding
from skyfall_metrics.sheets import Footnotes, Sheet, draw_latex, draw_rich

__all__ = ["print_latex", "print_sheets"]

_PIPED_WIDTH = 160
"""Columns for output that no terminal limits: tables are as wide as they need to be, and nothing is cut."""


def print_latex(sheets: Iterable[Sheet], footnotes: Footnotes) -> None:
    """Tables for a paper."""
    print_text(draw_latex(sheets, footnotes))


def print_sheets(heading: Sequence[str], sheets: Iterable[Sheet], closing: Sequence[str]) -> None:
    """Tables between lines of text; plain, and as wide as they need, when they go into a file or pipe."""
    tolerate_encoding()
    tables = [draw_rich(sheet) for sheet in sheets]
    console = _console(tables)
    for place, line in enumerate(heading):
        console.print(Text(line, style="" if place else "bold"))
    for table in tables:
        console.print(table)
    for line in closing:
        console.print(Text(line, style="dim"))


def _console(tables: Iterable[RenderableType]) -> Console:
    """A console wide enough for every number: in a terminal too narrow, lines run over and nothing is cut."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPED_WIDTH
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    options = console.options.update(width=_PIPED_WIDTH)
    needed = [Measurement.get(console, options, table).minimum for table in tables]
    if max(needed, default=0) > console.width:
        console.width = max(needed)
    return console
