"""Torch runs on the CPU, interrupted and resumed, equal undisturbed ones byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfall_core.config import ExperimentConfig, load_config
from skyfall_core.experiment import WindowReport, run_experiment

EXAMPLES = Path(__file__).parents[2] / "examples"


def crash_after(steps: int, report: WindowReport) -> None:
    if report.steps >= steps:
        raise RuntimeError("power cut")


def example(name: str, tmp_path: Path, run: str, *settings: str) -> ExperimentConfig:
    ours = (f"run.output_dir={tmp_path}", f"run.name={run}")
    return load_config(EXAMPLES / name, (*settings, *ours))


@pytest.mark.parametrize(
    ("name", "settings", "steps"),
    [
        (
            "cartpole_ppo.yaml",
            ("rollout.window_steps=64", "rollout.total_steps=512", "run.checkpoint_every=128"),
            200,
        ),
        (
            "language_ppo.yaml",
            ("environment.kwargs.worlds=4", "rollout.total_steps=40", "run.checkpoint_every=10"),
            24,
        ),
    ],
)
def test_interrupted_and_resumed_equals_undisturbed(
    tmp_path: Path, name: str, settings: tuple[str, ...], steps: int
) -> None:
    whole = example(name, tmp_path, "whole", *settings)
    cut = example(name, tmp_path, "cut", *settings)
    run_experiment(whole)
    with pytest.raises(RuntimeError, match="power cut"):
        run_experiment(cut, on_window=lambda report: crash_after(steps, report))
    run_experiment(cut, trace_mode="resume")
    expected = (tmp_path / "whole" / "traces.jsonl").read_bytes()
    resumed = (tmp_path / "cut" / "traces.jsonl").read_bytes()
    assert resumed == expected.replace(b'"run_id":"whole"', b'"run_id":"cut"')
    assert b"resumed" not in resumed
