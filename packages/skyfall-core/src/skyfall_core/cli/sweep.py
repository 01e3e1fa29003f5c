"""`skyfall sweep`: every cell of a matrix, one after another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from skyfall_core.cli.options import AsJson, Document, Overwrite, Quiet, Settings
from skyfall_core.cli.reporting import say
from skyfall_core.cli.run import run_and_tell, shown
from skyfall_core.errors import RunError, SkyfallError

if TYPE_CHECKING:
    from skyfall_core.config import ExperimentConfig

__all__ = ["sweep"]


def sweep(
    config: Document,
    settings: Settings = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and run nothing.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run every cell of a sweep. A cell that fails does not stop the others."""
    from skyfall_core.sweep import load_sweep  # noqa: PLC0415 - kept out of --help

    cells = load_sweep(config, settings or ())
    if dry_run:
        _print_cells(cells, as_json=as_json)
        return
    failures = {}
    for number, cell in enumerate(cells, start=1):
        if not quiet:
            say(f"cell {number} of {len(cells)}: {cell.run.name}")
        try:
            run_and_tell(cell, overwrite=overwrite, quiet=quiet)
        except SkyfallError as error:
            say(f"cell {cell.run.name} failed: {error}")
            failures[str(cell.run.name)] = str(error)
    if as_json:
        typer.echo(json.dumps({"cells": len(cells), "failed": failures}))
    elif not quiet:
        say(f"{len(cells) - len(failures)} of {len(cells)} cells done")
    if failures:
        raise RunError(f"{len(failures)} of {len(cells)} cells failed: {', '.join(failures)}")


def _print_cells(cells: list[ExperimentConfig], *, as_json: bool) -> None:
    from skyfall_core.experiment import trace_path_for  # noqa: PLC0415

    for cell in cells:
        path = trace_path_for(cell)
        row = {
            "cell": cell.run.name,
            "algorithm_id": cell.run.algorithm_id,
            "algorithm": cell.algorithm.name,
            "task": cell.run.task,
            "seed": cell.run.seed,
            "total_steps": cell.rollout.total_steps,
            "trace": None if path is None else shown(path),
        }
        typer.echo(json.dumps(row) if as_json else "  ".join(f"{key}={value}" for key, value in row.items()))
