"""The language examples: they validate without torch, and a shortened run of each learns."""

import subprocess
import sys
from pathlib import Path

import pytest

from skyfall_core.config import load_config
from skyfall_core.experiment import run_experiment

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALLER = [
    "rollout.total_steps=160",
    "algorithm.policy.kwargs.tiny={hidden_size: 32, layers: 1, heads: 2, context: 64}",
    "algorithm.kwargs.learning_rate=0.004",
]


@pytest.mark.parametrize("name", ["language_ppo.yaml", "language_her.yaml"])
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
