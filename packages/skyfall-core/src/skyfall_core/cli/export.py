"""`skyfall export`: a finished run's policy in a folder that acts without the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skyfall_core.cli.options import External, Quiet
from skyfall_core.cli.reporting import say
from skyfall_core.cli.run import shown

__all__ = ["export"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The bundle's folder.", show_default=False)
    ],
    external: External = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a bundle that is already there.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write the policy a run ended with into an export bundle."""
    from skyfall_core.bundle import export_run  # noqa: PLC0415 - kept out of --help

    folder = export_run(run, output, external=external, overwrite=overwrite)
    typer.echo(shown(folder))
    if not quiet:
        say("use it with: skyfall_core.bundle.load_bundle")
