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
    "rollout.total_steps=64",
    "environment.kwargs.worlds=32",
    "algorithm.kwargs.minibatch_size=64",
    "algorithm.kwargs.learning_rate=0.005",
]


RUNS = [f"language_{name}.yaml" for name in ("ppo", "her", "ewc", "lcm", "sft_ppo")]


@pytest.mark.parametrize("name", RUNS)
def test_examples_validate_without_torch(name):
    code = (
        "import sys\nfrom skyfall_core.config import load_config\n"
        f"load_config({str(EXAMPLES / name)!r})\nsys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", RUNS)
def test_every_life_leaves_a_third_of_itself_to_recover_from_its_first_shift(name):
    config = load_config(EXAMPLES / name)
    first = config.regime.params["schedule"]["regimes"][0]
    assert first["duration_steps"] < config.rollout.total_steps * 2 / 3


@pytest.mark.parametrize("name", ["language_ewc.yaml", "language_lcm.yaml"])
def test_learners_with_a_memory_meet_their_first_configuration_again(name):
    *_, last = load_config(EXAMPLES / name).regime.params["schedule"]["regimes"]
    assert last["alias_of"] == "baseline"


def test_the_second_document_reads_what_the_first_one_writes_wherever_it_is_run_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = load_sft(EXAMPLES / "language_sft.yaml").output_dir
    read = load_config(EXAMPLES / "language_sft_ppo.yaml").algorithm.policy.kwargs["model"]
    assert Path(read).resolve() == Path(written).resolve()
    assert Path(read).is_absolute()


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
