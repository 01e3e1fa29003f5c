"""Torch policies in export bundles: what was exported acts the same from its files alone."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from skyfall_core.bundle import export_bundle, load_bundle
from skyfall_core.config import ExperimentConfig
from skyfall_core.construction import build_algorithm, spaces_of
from skyfall_core.errors import ConfigError

SMALL = {"hidden_size": 16, "layers": 1, "heads": 2, "context": 96}
LANGUAGE = {"model": "tiny", "tiny": SMALL, "max_new_tokens": 6, "device": "cpu", "seed": 3}


@pytest.fixture
def env():
    with gym.make("CartPole-v1") as env:
        yield env


def experiment(policy: dict[str, Any], name: str = "ppo", **kwargs: Any) -> ExperimentConfig:
    return ExperimentConfig.model_validate(
        {
            "environment": {"id": "CartPole-v1"},
            "algorithm": {"name": name, "kwargs": kwargs, "policy": policy},
            "rollout": {"total_steps": 10},
            "run": {"name": "exported"},
        }
    )


def changed(config: ExperimentConfig, env: Any) -> Any:
    """The document's algorithm, with a policy that no initial weights make."""
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in algorithm.policy.trainable_parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return algorithm


@pytest.mark.parametrize(
    "options", [{}, {"lora": {"r": 2, "target_modules": ["q_proj"]}}], ids=["whole", "lora"]
)
@pytest.mark.parametrize("external", [None, "outside"])
def test_a_language_policy_speaks_the_same_words(
    env: Any, tmp_path: Path, options: dict[str, Any], external: str | None
) -> None:
    config = experiment({"factory": "language", "kwargs": {**LANGUAGE, **options}})
    algorithm = changed(config, env)
    outside = None if external is None else tmp_path / external
    folder = export_bundle(tmp_path / "b", config=config, env=env, algorithm=algorithm, external=outside)
    opened = load_bundle(folder)
    words = [algorithm.policy.act("observe") for _ in range(4)]
    assert [opened.act("observe") for _ in range(4)] == words
    assert opened.policy.loaded_value_head
    pairs = zip(
        algorithm.policy.named_trainable_parameters(),
        opened.policy.named_trainable_parameters(),
        strict=True,
    )
    assert all(name == other and torch.equal(mine, theirs) for (name, mine), (other, theirs) in pairs)
    place = outside or folder / "weights"
    assert {path.suffix for path in place.rglob("*") if path.is_file()} <= {
        ".safetensors",
        ".json",
        ".jinja",
        ".md",
    }


def test_the_likeliest_words_can_be_asked_for(env: Any, tmp_path: Path) -> None:
    config = experiment({"factory": "language", "kwargs": LANGUAGE})
    folder = export_bundle(tmp_path / "b", config=config, env=env, algorithm=changed(config, env))
    opened = load_bundle(folder, policy_kwargs={"temperature": 0})
    assert len({str(opened.act("observe")) for _ in range(4)}) == 1


@pytest.mark.parametrize("options", [{}, {"normalize_observations": True, "shared_trunk": True}], ids=str)
def test_an_actor_critic_takes_the_same_actions(env: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    config = experiment({"factory": "actor-critic", "kwargs": {"seed": 5, **options}})
    algorithm = changed(config, env)
    folder = export_bundle(tmp_path / "bundle", config=config, env=env, algorithm=algorithm)
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    opened = load_bundle(folder)
    assert [opened.act(row) for row in observations] == [algorithm.policy.act(row) for row in observations]
    assert opened.policy.last_value == algorithm.policy.last_value


def test_a_policy_that_needs_the_encoder_to_act_is_refused(env: Any, tmp_path: Path) -> None:
    config = experiment({"factory": "language", "kwargs": LANGUAGE}, "lcm", inject_prefix=True)
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    with pytest.raises(ConfigError, match="inject_prefix: false"):
        export_bundle(tmp_path / "bundle", config=config, env=env, algorithm=algorithm)
    assert list(tmp_path.iterdir()) == []
