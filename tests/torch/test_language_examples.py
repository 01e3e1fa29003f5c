"""The language examples: they validate without torch, and a shortened run of each learns."""

import subprocess
import sys
from pathlib import Path

import pytest

from skyfall_core.config import load_config
from skyfall_core.experiment import run_experiment
from skyfall_torch.sft import train_sft
from skyfall_torch.sft_config import load_sft

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALLER = [
    "rollout.total_steps=80",
    "environment.kwargs.worlds=32",
    "algorithm.kwargs.minibatch_size=64",
    "algorithm.kwargs.learning_rate=0.005",
]


@pytest.mark.parametrize("name", ["language_ppo.yaml", "language_her.yaml", "language_sft_ppo.yaml"])
def test_examples_validate_without_torch(name):
    code = (
        "import sys\nfrom skyfall_core.config import load_config\n"
        f"load_config({str(EXAMPLES / name)!r})\nsys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["language_ppo.yaml", "language_her.yaml"])
def test_a_random_model_earns_more_at_the_end_than_at_the_start(name, tmp_path):
    config = load_config(EXAMPLES / name, [*SMALLER, f"run.output_dir={tmp_path}"])
    result = run_experiment(config)
    rewards = [window["reward_mean"] for window in result.window_metrics]
    quarter = len(rewards) // 4
    first, last = sum(rewards[:quarter]) / quarter, sum(rewards[-quarter:]) / quarter
    assert last > first + 0.05


def test_reinforcement_goes_on_from_what_the_supervised_stage_wrote(tmp_path):
    learned = tmp_path / "dispatch-sft"
    document = load_sft(EXAMPLES / "language_sft.yaml", [f"output_dir={learned}"])
    train_sft(document)
    shorter = [
        "rollout.total_steps=8",
        "environment.kwargs.worlds=8",
        f"algorithm.policy.kwargs.model={learned}",
        f"run.output_dir={tmp_path}",
    ]
    result = run_experiment(load_config(EXAMPLES / "language_sft_ppo.yaml", shorter))
    # Random weights name a team less than once in a hundred answers.
    assert result.window_metrics[0]["reward_mean"] > 0.3
