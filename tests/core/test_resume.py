"""An interrupted and resumed run equals an undisturbed one, or says where it does not."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from skyfall_core.config import ExperimentConfig
from skyfall_core.errors import CheckpointError
from skyfall_core.experiment import RunResult, RunState, WindowReport, run_experiment, run_state
from skyfall_core.trace import TraceMode

SCHEDULE = {
    "regimes": [
        {"regime_id": "baseline", "duration_steps": 70, "axes": {}},
        {"regime_id": "reversed", "duration_steps": 90, "axes": {"force_mag": -10.0}},
        {"regime_id": "again", "duration_steps": 70, "alias_of": "baseline"},
    ]
}


class Opaque(gymnasium.Env[Any, Any]):
    """A world that nobody can write down."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), float(self.np_random.random()), False, False, {}


def config(tmp_path: Path, name: str = "one", **sections: Any) -> ExperimentConfig:
    document: dict[str, Any] = {
        "environment": {
            "id": "CartPole-v1",
            "wrappers": [{"factory": "skyfall_core.envs:AttributeShift"}],
        },
        "algorithm": {"name": "actor-critic", "kwargs": {"seed": 3}},
        "rollout": {"window_steps": 16, "total_steps": 230, "auto_reset": True},
        "regime": {"provider": "scheduled", "params": {"schedule": SCHEDULE}},
        "run": {"name": name, "seed": 5, "output_dir": tmp_path, "checkpoint_every": 40},
    }
    for section, values in sections.items():
        document[section] = {**document[section], **values}
    return ExperimentConfig.model_validate(document)


def crash_after(steps: int) -> Any:
    def on_window(report: WindowReport) -> None:
        if report.steps >= steps:
            raise RuntimeError("power cut")

    return on_window


def interrupted(cell: ExperimentConfig, steps: int) -> RunResult:
    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(cell, on_window=crash_after(steps))
    assert run_state(cell) is RunState.UNFINISHED
    return run_experiment(cell, trace_mode=TraceMode.RESUME)


def files(tmp_path: Path, name: str) -> tuple[bytes, bytes]:
    trace = (tmp_path / name / "traces.jsonl").read_bytes().replace(f'"{name}"'.encode(), b'"run"')
    return trace, (tmp_path / name / "windows.jsonl").read_bytes()


@pytest.mark.parametrize("algorithm", ["random", "actor-critic", "frozen"])
@pytest.mark.parametrize("at", [48, 96, 176, 224])
def test_a_resumed_run_equals_an_undisturbed_one_byte_for_byte(
    tmp_path: Path, algorithm: str, at: int
) -> None:
    chosen = {"name": algorithm, "kwargs": {"seed": 3}}
    whole = run_experiment(config(tmp_path, "whole", algorithm=chosen))
    resumed = interrupted(config(tmp_path, "cut", algorithm=chosen), at)
    assert files(tmp_path, "cut") == files(tmp_path, "whole")
    assert (resumed.steps, resumed.window_metrics, resumed.regimes) == (
        whole.steps,
        whole.window_metrics,
        whole.regimes,
    )


@pytest.mark.parametrize(
    "task", ["Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "CartPole-v1"]
)
def test_every_classic_task_goes_on_where_it_was(tmp_path: Path, task: str) -> None:
    sections: dict[str, Any] = {
        "environment": {"id": task, "wrappers": []},
        "algorithm": {"name": "random", "kwargs": {}},
        "regime": {"provider": "constant", "params": {}},
        "rollout": {"record_observations": True, "total_steps": 460},
    }
    run_experiment(config(tmp_path, "whole", **sections))
    interrupted(config(tmp_path, "cut", **sections), 250)
    assert files(tmp_path, "cut") == files(tmp_path, "whole")


def test_several_worlds_go_on_where_they_were(tmp_path: Path) -> None:
    sections: dict[str, Any] = {
        "environment": {"id": "cells:carts", "wrappers": []},
        "regime": {"provider": "constant", "params": {}},
    }
    made = [lambda: gymnasium.make("CartPole-v1") for _ in range(3)]

    def carts() -> SyncVectorEnv:
        return SyncVectorEnv(made, autoreset_mode=AutoresetMode.DISABLED)

    whole, cut = config(tmp_path, "whole", **sections), config(tmp_path, "cut", **sections)
    run_experiment(whole, env=carts())
    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(cut, env=carts(), on_window=crash_after(112))
    run_experiment(cut, env=carts(), trace_mode=TraceMode.RESUME)
    assert files(tmp_path, "cut") == files(tmp_path, "whole")


def test_a_world_that_cannot_go_on_is_reset_and_the_trace_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sections: dict[str, Any] = {
        "environment": {"id": "cells:opaque", "wrappers": []},
        "algorithm": {"name": "random", "kwargs": {}},
        "regime": {"provider": "constant", "params": {}},
    }
    cell = config(tmp_path, "cut", **sections)
    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(cell, env=Opaque(), on_window=crash_after(96))
    before = (tmp_path / "cut" / "traces.jsonl").read_bytes()
    run_experiment(cell, env=Opaque(), trace_mode=TraceMode.RESUME)
    rows = [json.loads(line) for line in (tmp_path / "cut" / "traces.jsonl").read_bytes().splitlines()]
    assert [row["step"] for row in rows] == list(range(230))
    assert [row["step"] for row in rows if row.get("resumed")] == [96]
    assert (tmp_path / "cut" / "traces.jsonl").read_bytes().startswith(before)
    assert "reset at step 96" in caplog.text
    assert rows[96]["reward"] != rows[0]["reward"]


def test_a_finished_run_is_read_and_not_run_again(tmp_path: Path) -> None:
    cell = config(tmp_path)
    assert run_state(cell) is RunState.ABSENT
    first = run_experiment(cell)
    assert run_state(cell) is RunState.FINISHED
    before = (tmp_path / "one" / "traces.jsonl").stat()
    assert run_experiment(cell, trace_mode=TraceMode.RESUME) == first
    after = (tmp_path / "one" / "traces.jsonl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_raised_budget_prolongs_a_finished_run(tmp_path: Path) -> None:
    run_experiment(config(tmp_path, rollout={"total_steps": 160}))
    longer = config(tmp_path)
    assert run_state(longer) is RunState.UNFINISHED
    run_experiment(longer, trace_mode=TraceMode.RESUME)
    run_experiment(config(tmp_path, "whole"))
    assert files(tmp_path, "one")[0].replace(b'"one"', b'"run"') == files(tmp_path, "whole")[0]


def test_without_a_checkpoint_a_run_begins_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = config(tmp_path, "whole")
    run_experiment(whole)
    interrupted(config(tmp_path, "cut"), 16)
    assert files(tmp_path, "cut") == files(tmp_path, "whole")
    assert "no checkpoint yet: the run begins again at step 0" in caplog.text


def test_without_a_trace_resuming_begins(tmp_path: Path) -> None:
    result = run_experiment(config(tmp_path), trace_mode="resume")
    assert result.steps == 230


def test_another_documents_checkpoint_is_refused_with_the_differing_keys(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(config(tmp_path), on_window=crash_after(96))
    other = config(tmp_path, algorithm={"kwargs": {"seed": 3, "gamma": 0.5}}, rollout={"window_steps": 8})
    with pytest.raises(CheckpointError) as refusal:
        run_experiment(other, trace_mode="resume")
    said = str(refusal.value)
    assert "algorithm.kwargs.gamma: not set in the checkpoint, 0.5 now" in said
    assert "rollout.window_steps: 16 in the checkpoint, 8 now" in said


@pytest.mark.parametrize(
    "before", [5, 6]
)  # a request may come at any moment: nothing is asked twice a window
def test_a_request_to_stop_is_met_at_the_windows_end_with_a_checkpoint(tmp_path: Path, before: int) -> None:
    whole = config(tmp_path, "whole")
    run_experiment(whole)
    cut = config(tmp_path, "cut", run={"checkpoint_every": 1000})
    asked = iter([False] * before + [True])
    with pytest.raises(KeyboardInterrupt):
        run_experiment(cut, should_stop=lambda: next(asked))
    assert len(list((tmp_path / "cut" / "checkpoints").iterdir())) == 1
    run_experiment(cut, trace_mode="resume")
    assert files(tmp_path, "cut") == files(tmp_path, "whole")


def test_checkpoints_are_the_last_ones(tmp_path: Path) -> None:
    run_experiment(config(tmp_path))
    names = sorted(path.name for path in (tmp_path / "one" / "checkpoints").iterdir())
    assert names == ["step-000000000192", "step-000000000230"]


def test_an_algorithm_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Still:
        policy = property(lambda self: self)

        def act(self, observation: Any) -> int:
            return 0

        def update(self, window: Any) -> dict[str, float]:
            return {}

    caplog.set_level(logging.WARNING)
    run_experiment(config(tmp_path), algorithm=Still())
    assert caplog.text.count("has no save_checkpoint") == 1
