"""The studies in `examples/study`: what they hold, and that their seeds reach everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skyfall_core.cli.sweep_plan import seed_warnings
from skyfall_core.executors.base import Cell, CellEvent, CellOutcome, CellStatus
from skyfall_core.executors.local import LocalExecutor
from skyfall_core.experiment import run_experiment
from skyfall_core.sweep import Sweep, read_sweep

STUDIES = Path(__file__).parents[1] / "examples" / "study"


def study(name: str, tmp_path: Path, *settings: str) -> Sweep:
    return read_sweep(STUDIES / f"{name}.yaml", [f"output_dir={tmp_path}", *settings])


def first_weights(config: Any) -> list[np.ndarray]:
    """The policy's weights as the cell's document draws them."""
    from skyfall_core.plugins import Group, resolve  # noqa: PLC0415
    from skyfall_core.registry import resolve as algorithm  # noqa: PLC0415

    env = config.environment.build()
    try:
        spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
        policy = resolve(Group.POLICIES, config.algorithm.policy.factory)
        built = policy(**config.algorithm.policy.kwargs, **spaces)
        learner = algorithm(config.algorithm.name)(policy=built, **config.algorithm.kwargs)
        return [value.detach().numpy().copy() for _, value in learner.policy.named_trainable_parameters()]
    finally:
        env.close()


@pytest.mark.parametrize(
    ("name", "families", "cells"), [("quick", 3, 15), ("cartpole", 6, 30), ("morpheus", 6, 30)]
)
def test_study_has_its_families_by_five_seeds_that_reach_every_algorithm(
    tmp_path: Path, name: str, families: int, cells: int
) -> None:
    matrix = study(name, tmp_path)
    assert len(matrix.cells) == cells
    assert len(matrix.config.families) == families
    assert matrix.config.seeds == [0, 1, 2, 3, 4]
    assert list(seed_warnings(matrix)) == []


def test_seeds_differ_in_initial_weights_and_one_seed_does_not() -> None:
    cells = {
        cell.run.seed: cell
        for cell in study("cartpole", Path("/nowhere")).cells
        if cell.run.algorithm_id == "ppo"
    }
    weights = {seed: first_weights(cells[seed]) for seed in (0, 1)}
    again = first_weights(cells[0])
    assert all(np.array_equal(one, same) for one, same in zip(weights[0], again, strict=True))
    drawn = [(one, other) for one, other in zip(weights[0], weights[1], strict=True) if np.any(one != 0)]
    assert drawn
    assert not any(np.array_equal(one, other) for one, other in drawn)


@pytest.mark.parametrize("family", ["actor-critic", "random", "frozen"])
def test_seeds_differ_in_draws_and_world_and_one_seed_is_equal_across_processes(
    tmp_path: Path, family: str
) -> None:
    settings = ("base.rollout.total_steps=300", "base.rollout.record_observations=true", "seeds=[0,1]")
    cells = [cell for cell in study("quick", tmp_path, *settings).cells if cell.run.algorithm_id == family]
    events: list[CellEvent] = []
    LocalExecutor(jobs=2).run([Cell(cell) for cell in cells], events.append)
    outcomes = [event for event in events if isinstance(event, CellOutcome)]
    assert [outcome.status for outcome in outcomes] == [CellStatus.FINISHED] * 2, outcomes
    traces = [(tmp_path / str(cell.run.name) / "traces.jsonl").read_bytes() for cell in cells]
    rows = [[line.partition(b'"step"')[2] for line in trace.splitlines()] for trace in traces]
    assert rows[0][0] != rows[1][0]  # the first observation is the world's own draw
    assert rows[0] != rows[1]
    for cell, trace in zip(cells, traces, strict=True):
        alone = tmp_path / f"{cell.run.name}.jsonl"
        run_experiment(cell, trace_path=alone)
        assert alone.read_bytes() == trace
