"""EWC against PPO on a problem with a known answer, scored by the metrics library."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from skyfall_core.experiment import ShiftDetector
from skyfall_core.rollout import RolloutCollector
from skyfall_core.trace import TraceWriter
from skyfall_metrics.reader import read_trace
from skyfall_metrics.scoring import score
from skyfall_torch.actor_critic import actor_critic
from skyfall_torch.ewc import EWCBackend
from skyfall_torch.ppo import PPOBackend

STEPS = 1280
ANSWERS = {"A": (0, 0, 1), "B": (2, 2, 1)}
PPO = {
    "epochs": 4,
    "minibatch_size": 64,
    "learning_rate": 1e-2,
    "action_tokens": "all",
    "old_policy_pass": "eval",
    "advantage_scope": "minibatch",
    "entropy_coeff": 0.02,
    "max_grad_norm": 0.5,
}


class TwoQuestionnaires(gym.Env):
    """Three questions under A, three others under B, each with one right answer of three.

    A question is one-hot plus two inputs that are always on; B's answers are pulled through those shared
    inputs, which is how learning B spoils A. The columns of A's questions are silent under B.
    """

    observation_space = spaces.Box(0, 1, (8,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, seed):
        self._draws = np.random.default_rng(seed)
        self._step = 0

    def _ask(self):
        self._question = int(self._draws.integers(3))
        row = self._question + (0 if self._regime() == "A" else 3)
        observation = np.eye(6, 8, dtype=np.float32)[row]
        observation[6:] = 1.0
        return observation

    def _regime(self):
        return "B" if STEPS <= self._step < 2 * STEPS else "A"

    def reset(self, *, seed=None, options=None):
        return self._ask(), {}

    def step(self, action):
        regime = self._regime()
        reward = float(action == ANSWERS[regime][self._question])
        self._step += 1
        return self._ask(), reward, True, False, {"regime": {"id": regime}}


def live(folder, kind, seed, **options):
    """One life A, B, A; its scorecard's forgetting and what was reached under A and B."""
    env = TwoQuestionnaires(seed)
    policy = actor_critic(env.observation_space, env.action_space, hidden_sizes=(16,), seed=seed)
    learner = kind(policy, seed=seed, **PPO, **options)
    path, detector, rewards = folder / f"{kind.__name__}{seed}.jsonl", ShiftDetector(), []
    with TraceWriter(path) as writer:
        collector = RolloutCollector(env, policy, window_steps=128, writer=writer)
        for window in collector.windows(2 * STEPS + 256):
            for shift in detector(window):
                learner.on_regime_shift(shift)
            learner.update(window)
            rewards += window.rewards
    forgotten = score(read_trace(path)).measures["forgetting"].value
    return forgotten, np.mean(rewards[STEPS - 256 : STEPS]), np.mean(rewards[2 * STEPS - 256 : 2 * STEPS])


@pytest.fixture(scope="module")
def ppo_lives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ppo")
    return np.array([live(folder, PPOBackend, seed) for seed in range(5)])


@pytest.fixture(scope="module")
def ewc_lives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ewc")
    held = {"parameter_scope": "all", "ewc_lambda": 3.0, "fisher_seed": 0}
    return np.array([live(folder, EWCBackend, seed, **held) for seed in range(5)])


def test_ppo_learns_both_configurations_and_forgets_the_first(ppo_lives):
    forgotten, first, second = ppo_lives.mean(0)
    assert first > 0.9
    assert second > 0.9
    assert forgotten > 0.2


def test_ewc_forgets_clearly_less_and_still_learns_the_second(ppo_lives, ewc_lives):
    np.testing.assert_array_equal(ppo_lives[:, 1], ewc_lives[:, 1])  # one life up to the first shift
    assert ewc_lives[:, 0].mean() < 0.25 * ppo_lives[:, 0].mean()
    assert ewc_lives[:, 2].mean() > 0.8 * ppo_lives[:, 2].mean()
