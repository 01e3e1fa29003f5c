"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec
import typer

from skyfall_metrics.scorecard import Scorecard

__all__ = ["print_json", "print_text", "tolerate_encoding", "warn", "warn_of_notes"]


def print_json(document: Any) -> None:
    """One indented JSON document."""
    print_text(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_text(text: str) -> None:
    """Text as it is, with characters that the output's encoding lacks replaced."""
    tolerate_encoding()
    typer.echo(text.removesuffix("\n"))


def warn(message: str) -> None:
    """A line on standard error about something that did not stop the command."""
    typer.echo(f"warning: {message}", err=True)


def warn_of_notes(cards: Iterable[Scorecard]) -> None:
    """Everything odd about the traces, a line each."""
    for card in cards:
        for note in card.notes:
            warn(f"{card.run.path}: {note.message}")


def tolerate_encoding() -> None:
    """Let standard output replace what its encoding lacks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
