"""What a sweep would do, printed before it does anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import typer

from skyfall_core.checkpoints import differing_keys
from skyfall_core.cli.reporting import say
from skyfall_core.cli.run import shown
from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import CheckpointError, TraceError
from skyfall_core.executors.settings import ExecutorConfig
from skyfall_core.run_directory import RESULT_FILE, RunState, run_state, trace_path_for
from skyfall_core.sweep import CellGroup, Sweep, seed_places
from skyfall_core.trace import TRACE_FILE

__all__ = ["print_plan", "refuse_changed", "seed_warnings", "states_of"]


def states_of(matrix: Sweep) -> list[RunState]:
    """How far each cell's record is, in the order of the cells."""
    return [run_state(cell) for cell in matrix.cells]


def refuse_changed(matrix: Sweep, states: Sequence[RunState]) -> None:
    """Make sure that what counts as finished was recorded with the documents of now.

    Raises:
        CheckpointError: Naming the first cell that was not, and every key that differs.
    """
    for cell, state in zip(matrix.cells, states, strict=True):
        if state is RunState.FINISHED and (differing := _changes_of(cell)):
            problem = f"cell {cell.run.name} was recorded with another document"
            remedy = "put it back, choose another output_dir, or begin again with --overwrite"
            raise CheckpointError("\n".join([f"{problem}; {remedy}", *differing]))


def _changes_of(cell: ExperimentConfig) -> list[str]:
    """What differs between a finished cell's document and the one it was recorded with."""
    trace = trace_path_for(cell)
    if trace is None:
        return []
    try:
        recorded = msgspec.json.decode(trace.with_name(RESULT_FILE).read_bytes())["config"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        path = trace.with_name(RESULT_FILE)
        raise TraceError(f"{path}: cannot be read ({error}); run again with --overwrite") from error
    now = cell.model_dump(mode="json", exclude_none=True, fallback=repr)
    return [] if recorded == now else differing_keys(recorded, now)


def print_plan(matrix: Sweep, executor: ExecutorConfig, states: Sequence[RunState], *, as_json: bool) -> None:
    """Print every cell with its overrides, step budget and output path, then the sum and what is odd."""
    total = sum(cell.rollout.total_steps for cell in matrix.cells)
    warnings = list(seed_warnings(matrix))
    lines = list(_lines(matrix, states, as_json=as_json))
    if as_json:
        told = {"name": executor.name, "jobs": executor.jobs}
        summary = {"cells": len(lines), "total_steps": total, "executor": told, "warnings": warnings}
        typer.echo("\n".join([*lines, json.dumps(summary)]))
        return
    typer.echo("\n".join(lines))
    say(f"{len(lines):,} cells, {total:,} steps in all, by executor {executor.name!r}")
    for warning in warnings:
        say(f"warning: {warning}")


def seed_warnings(matrix: Sweep) -> Iterator[str]:
    """Families whose seeds reach nothing but the environment, so that their spread would say nothing."""
    for family, group in {group.family: group for group, _ in matrix.groups if _deaf(group)}.items():
        reached = ", ".join(seed_places(group))
        yield (
            f"family {family!r}: its seeds reach {reached} and nothing of the algorithm; "
            "write SEED where the algorithm or its policy takes a seed, unless neither draws anything"
        )


def _deaf(group: CellGroup) -> bool:
    return not any(place.startswith("algorithm.") for place in seed_places(group))


def _lines(matrix: Sweep, states: Sequence[RunState], *, as_json: bool) -> Iterator[str]:
    folder, states_left = shown(matrix.config.output_dir), iter(states)
    for group, cells in matrix.groups:
        overrides = json.dumps(group.overrides, default=str)
        for cell, state in zip(cells, states_left):  # noqa: B905 - the states go on with the next group
            row: dict[str, Any] = {
                "cell": cell.run.name,
                "algorithm_id": group.family,
                "algorithm": cell.algorithm.name,
                "task": cell.run.task,
                "seed": cell.run.seed,
                "total_steps": cell.rollout.total_steps,
                "state": state.value,
                "trace": f"{folder}/{cell.run.name}/{TRACE_FILE}",
            }
            if as_json:
                yield f'{json.dumps(row)[:-1]}, "overrides": {overrides}}}'
            else:
                told = "  ".join(f"{key}={value}" for key, value in row.items())
                yield f"{told}  overrides={overrides}"
