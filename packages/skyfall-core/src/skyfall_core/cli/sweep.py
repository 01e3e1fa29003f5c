"""`skyfall sweep`: every cell of a matrix, by the executor its document or the command line names."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skyfall_core.cli.options import AsJson, Document, Overwrite, Quiet, Settings
from skyfall_core.cli.reporting import interruptible, say
from skyfall_core.cli.sweep_progress import SweepProgress, progress_of_sweep
from skyfall_core.errors import InputError, RunError, TraceExistsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skyfall_core.executors.base import Cell, CellOutcome
    from skyfall_core.run_directory import RunState
    from skyfall_core.sweep import Sweep

__all__ = ["sweep"]

NAMED_AT_MOST = 5
"""How many cells a message names before it only counts them."""


def sweep(  # noqa: PLR0913 - the command line's options are its parameters
    config: Document,
    *,
    settings: Settings = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and run nothing.")] = False,
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor", metavar="NAME", help="What runs the cells: local, ray, slurm or a plugin."
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Cells at a time.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip finished cells, go on with begun ones, begin the others.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run every cell of a sweep. A cell that fails does not stop the others."""
    from skyfall_core.cli.sweep_plan import print_plan, refuse_changed, states_of  # noqa: PLC0415 - kept out of --help
    from skyfall_core.sweep import read_sweep  # noqa: PLC0415

    if resume and overwrite:
        raise InputError("--resume keeps what is recorded and --overwrite replaces it; give one of them")
    matrix = read_sweep(config, settings or ())
    chosen = matrix.config.executor.chosen(executor, jobs)
    states = states_of(matrix)
    if dry_run:
        print_plan(matrix, chosen, states, as_json=as_json)
        return
    if resume:
        refuse_changed(matrix, states)
    cells = _to_run(matrix, states, resume=resume, overwrite=overwrite)
    skipped, runner = len(matrix.cells) - len(cells), chosen.build(matrix.config.output_dir)
    if skipped and not quiet:
        say(f"{skipped} of {len(matrix.cells)} cells are finished already")
    outcomes: list[CellOutcome] = []
    try:
        with interruptible(), progress_of_sweep(cells, quiet=quiet) as progress:
            if cells:
                runner.run(cells, SweepProgress.telling(progress, outcomes))
    except KeyboardInterrupt:
        _say_how_to_continue(config, settings, executor, jobs, cells, outcomes)
        raise
    _sum_up(len(matrix.cells), skipped, outcomes, quiet=quiet, as_json=as_json)


def _to_run(matrix: Sweep, states: Sequence[RunState], *, resume: bool, overwrite: bool) -> list[Cell]:
    """The cells that are left to run; refuses those that are there when nothing says what to do."""
    from skyfall_core.executors.base import Cell  # noqa: PLC0415
    from skyfall_core.run_directory import RunState  # noqa: PLC0415

    recorded = [
        str(cell.run.name)
        for cell, state in zip(matrix.cells, states, strict=True)
        if state is not RunState.ABSENT
    ]
    if recorded and not (resume or overwrite):
        problem = f"{len(recorded)} of {len(matrix.cells)} cells are recorded already: {_some(recorded)}"
        remedy = "go on with --resume, or replace them with --overwrite"
        raise TraceExistsError(f"{matrix.config.output_dir}: {problem}; {remedy}")
    mode = {RunState.ABSENT: "create", RunState.UNFINISHED: "resume"}
    return [
        Cell(cell, "overwrite" if overwrite else mode[state])
        for cell, state in zip(matrix.cells, states, strict=True)
        if overwrite or state is not RunState.FINISHED
    ]


def _sum_up(total: int, skipped: int, outcomes: Sequence[CellOutcome], *, quiet: bool, as_json: bool) -> None:
    """Say how the cells ended; raises if any failed."""
    failed = {outcome.name: outcome for outcome in outcomes if outcome.status.value != "finished"}
    finished = len(outcomes) - len(failed)
    if as_json:
        told = {name: outcome.error or "it was stopped" for name, outcome in failed.items()}
        typer.echo(json.dumps({"cells": total, "finished": finished, "skipped": skipped, "failed": told}))
    elif not quiet:
        say(f"{finished + skipped} of {total} cells done")
    for outcome in failed.values():
        if outcome.detail:
            say(outcome.detail.rstrip())
        say(f"cell {outcome.name} failed: {outcome.error or 'it was stopped'}")
    if failed:
        raise RunError(f"{len(failed)} of {total} cells failed: {_some(list(failed))}")


def _say_how_to_continue(
    config: Path,
    settings: Sequence[str] | None,
    executor: str | None,
    jobs: int | None,
    cells: Sequence[Cell],
    outcomes: Sequence[CellOutcome],
) -> None:
    """After an interruption: what became of the cells, and the command that goes on."""
    counts = Counter(outcome.status.value for outcome in outcomes)
    told = [
        f"{counts[status]} {status}" for status in ("finished", "failed", "interrupted") if counts[status]
    ]
    if len(outcomes) < len(cells):
        told.append(f"{len(cells) - len(outcomes)} not begun")
    say(f"stopped: {', '.join(told)}; every step taken is recorded")
    for outcome in outcomes:
        if outcome.error is not None:
            say(f"cell {outcome.name}: {outcome.error}")
    command = ["skyfall", "sweep", str(config)]
    for setting in settings or ():
        command += ["--set", setting]
    command += [] if executor is None else ["--executor", executor]
    command += [] if jobs is None else ["--jobs", str(jobs)]
    say(f"go on with: {shlex.join([*command, '--resume'])}")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED_AT_MOST])
    return shown if len(names) <= NAMED_AT_MOST else f"{shown} and {len(names) - NAMED_AT_MOST} more"
