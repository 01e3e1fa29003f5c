"""The commands of this package, for `skyfall-metrics` and, through entry points, for `skyfall`.

Importing this costs no more than typer: a command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from skyfall_metrics import __version__
from skyfall_metrics.cli.compare_command import compare
from skyfall_metrics.cli.convert_command import convert_l2logger
from skyfall_metrics.cli.report_command import report
from skyfall_metrics.cli.score_command import score

__all__ = ["compare", "convert_l2logger", "main", "report", "score"]


def _print_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Score recorded continual-learning runs, with neither the world nor the model."""


def main() -> None:
    """Run the command line."""
    app = typer.Typer(
        name="skyfall-metrics",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    app.command("score")(score)
    app.command("report")(report)
    app.command("compare")(compare)
    app.command("convert-l2logger")(convert_l2logger)
    app()
