"""GAE beside stable-baselines3's, on random episodes.

Its `RolloutBuffer` is one rectangle of steps and worlds and bootstraps behind the last step; ours takes
episodes and has zero there. Equal inputs for both: `last_values` 0 and the end of every episode marked.
"""

import numpy as np
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer

from skyfall_core.advantage import compute_gae, episode_lengths_from

UNIT = st.floats(0, 1, width=32)
FINITE = st.floats(-10, 10, width=32)
STEPS = st.lists(st.tuples(FINITE, FINITE, st.booleans()), min_size=1, max_size=40)


def theirs(rewards, values, terminals, gamma, lam):
    steps = len(rewards)
    space = spaces.Box(-1, 1, (1,))
    buffer = RolloutBuffer(steps, space, space, device="cpu", gae_lambda=lam, gamma=gamma, n_envs=1)
    starts = [True, *terminals[:-1]]
    for reward, value, start in zip(rewards, values, starts, strict=True):
        buffer.add(
            np.zeros((1, 1)),
            np.zeros((1, 1)),
            np.array([reward]),
            np.array([start]),
            torch.tensor([value]),
            torch.zeros(1),
        )
    buffer.compute_returns_and_advantage(torch.zeros(1), np.array([terminals[-1]]))
    return buffer.advantages[:, 0], buffer.returns[:, 0]


@given(steps=STEPS, gamma=UNIT, lam=UNIT)
def test_episodic_gae_is_that_of_stable_baselines3(steps, gamma, lam):
    rewards, values, terminals = (list(column) for column in zip(*steps, strict=True))
    advantages, returns = compute_gae(rewards, values, episode_lengths_from(terminals), gamma, lam)
    expected_advantages, expected_returns = theirs(rewards, values, terminals, gamma, lam)
    np.testing.assert_allclose(advantages, expected_advantages, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(returns, expected_returns, rtol=1e-4, atol=1e-3)


@given(steps=STEPS, gamma=UNIT, lam=UNIT)
def test_degenerate_gae_is_that_of_stable_baselines3_with_every_step_an_episode(steps, gamma, lam):
    rewards, values, _ = (list(column) for column in zip(*steps, strict=True))
    advantages, _ = compute_gae(rewards, values, None, gamma, lam)
    expected, _ = theirs(rewards, values, [True] * len(rewards), gamma, lam)
    np.testing.assert_allclose(advantages, expected, rtol=1e-4, atol=1e-3)
