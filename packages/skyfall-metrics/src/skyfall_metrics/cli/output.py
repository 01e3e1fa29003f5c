"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skyfall_metrics.scorecard import Scorecard

__all__ = ["print_json", "print_renderables", "warn", "warn_of_notes"]

_PIPED_WIDTH = 160
"""Columns for output that no terminal limits: tables are as wide as they need to be, and nothing is cut."""


def print_json(document: Any) -> None:
    """One indented JSON document."""
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_renderables(renderables: Iterable[RenderableType]) -> None:
    """Tables and text; plain and wide enough when they go into a file or pipe."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPED_WIDTH
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    for renderable in renderables:
        console.print(renderable)


def warn(message: str) -> None:
    """A line on standard error about something that did not stop the command."""
    typer.echo(f"warning: {message}", err=True)


def warn_of_notes(cards: Sequence[Scorecard]) -> None:
    """Everything odd about the traces, a line each."""
    for card in cards:
        for note in card.notes:
            warn(f"{card.run.path}: {note.message}")
