"""The two algorithms that never learn."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from skyfall_core.base import Algorithm, Policy, RolloutWindow, Transition
from skyfall_core.baselines.actor_critic import ActorCritic
from skyfall_core.baselines.controls import Frozen, Random, untrained_policy
from skyfall_core.baselines.storage import FILE_NAME
from skyfall_core.errors import CheckpointError, ConfigError, SpaceError

BOX = spaces.Box(-1.0, 1.0, (2,))
TWO = spaces.Discrete(2)
NESTED = spaces.Dict(
    {
        "tool": spaces.Discrete(7),
        "arguments": spaces.Tuple((spaces.Text(8), spaces.Box(0.0, 1.0, (3,)))),
        "targets": spaces.Sequence(spaces.MultiDiscrete([4, 4])),
    }
)
SPACES = [TWO, spaces.Box(-1.0, 1.0, (2, 2)), spaces.MultiBinary(5), spaces.OneOf((TWO, BOX)), NESTED]


def plain(action: Any) -> str:
    return json.dumps(
        action, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)
    )


class Steady:
    def act(self, observation: Any) -> int:
        return 1


def window(policy: Policy) -> RolloutWindow:
    steps = [
        Transition(i, np.zeros(2), policy.act(np.zeros(2)), 1.0, False, False, "a", False) for i in range(5)
    ]
    return RolloutWindow(steps)


@pytest.mark.parametrize("name", ["random", "frozen", "actor-critic"])
def test_entry_points_lead_to_the_classes(name: str) -> None:
    (found,) = entry_points(group="skyfall.algorithms", name=name)
    assert found.load() is {"random": Random, "frozen": Frozen, "actor-critic": ActorCritic}[name]


@pytest.mark.parametrize(
    "algorithm",
    [Random(action_space=NESTED), Frozen(observation_space=BOX, action_space=TWO), Frozen(Steady())],
    ids=["random", "frozen at its first action", "frozen policy"],
)
def test_controls_are_algorithms_that_measure_nothing(algorithm: Random | Frozen) -> None:
    assert isinstance(algorithm, Algorithm)
    assert isinstance(algorithm.policy, Policy)
    assert algorithm.update(window(algorithm.policy)) == {}
    algorithm.on_regime_shift({"previous": "a", "current": "b", "origin": None, "step": 5})


# ---- random


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_random_acts_inside_any_space(space: gym.Space[Any]) -> None:
    policy = Random(action_space=space, seed=4).policy
    assert all(space.contains(policy.act(None)) for _ in range(20))
    assert all(space.contains(action) for action in policy.act_batch([None] * 20))


def test_random_draws_the_same_for_the_same_seed_only() -> None:
    draws = [
        [plain(policy.act(None)) for _ in range(20)]
        for policy in (Random(action_space=NESTED, seed=seed).policy for seed in (0, 0, 1))
    ]
    assert draws[0] == draws[1] != draws[2]
    default = Random(action_space=NESTED).policy
    assert [plain(default.act(None)) for _ in range(20)] == draws[0]


def test_random_leaves_the_environments_space_alone() -> None:
    space, untouched = spaces.Discrete(1000, seed=9), spaces.Discrete(1000, seed=9)
    policy = Random(action_space=space, seed=1).policy
    for _ in range(5):
        policy.act(None)
    assert [space.sample() for _ in range(5)] == [untouched.sample() for _ in range(5)]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_random_goes_on_from_a_checkpoint(space: gym.Space[Any], tmp_path: Path) -> None:
    first, second = Random(action_space=space, seed=1), Random(action_space=space, seed=2)
    for _ in range(7):
        first.policy.act(None)
    first.save_checkpoint(tmp_path)
    second.load_checkpoint(tmp_path)
    assert [plain(second.policy.act(None)) for _ in range(9)] == [
        plain(first.policy.act(None)) for _ in range(9)
    ]


def test_random_refuses_another_spaces_checkpoint(tmp_path: Path) -> None:
    Random(action_space=TWO).save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"made for action space Discrete\(2\)"):
        Random(action_space=spaces.Discrete(3)).load_checkpoint(tmp_path)


def test_random_is_unchanged_by_a_refusal(tmp_path: Path) -> None:
    Random(action_space=NESTED, seed=1).save_checkpoint(tmp_path)
    with np.load(tmp_path / FILE_NAME) as archive:
        meta = json.loads(str(archive["meta"]))
    meta["rng"][-1] = {"bit_generator": "MT19937"}
    np.savez(tmp_path / FILE_NAME, meta=np.array(json.dumps(meta)))
    refusing, untouched = Random(action_space=NESTED), Random(action_space=NESTED)
    with pytest.raises(CheckpointError, match="state of the draws is damaged"):
        refusing.load_checkpoint(tmp_path)
    assert [plain(refusing.policy.act(None)) for _ in range(9)] == [
        plain(untouched.policy.act(None)) for _ in range(9)
    ]


@pytest.mark.parametrize("states", [[{"bit_generator": "PCG64"}], ["PCG64"], [], None], ids=str)
def test_random_refuses_a_damaged_state(states: Any, tmp_path: Path) -> None:
    Random(action_space=TWO).save_checkpoint(tmp_path)
    with np.load(tmp_path / FILE_NAME) as archive:
        meta = json.loads(str(archive["meta"]))
    np.savez(tmp_path / FILE_NAME, meta=np.array(json.dumps({**meta, "rng": states})))
    with pytest.raises(CheckpointError):
        Random(action_space=TWO).load_checkpoint(tmp_path)


# ---- frozen


def test_frozen_keeps_the_policy_it_was_given() -> None:
    policy = Steady()
    assert Frozen(policy).policy is policy
    assert Frozen(policy, observation_space=spaces.Discrete(3), action_space=BOX).policy is policy


def test_frozen_does_not_learn() -> None:
    algorithm = Frozen(observation_space=BOX, action_space=TWO)
    before = algorithm.policy.weights.tobytes()
    algorithm.update(window(algorithm.policy))
    assert algorithm.policy.weights.tobytes() == before


def test_frozen_draws_one_fixed_way_to_act_from_its_seed() -> None:
    first, same, other = (
        Frozen(observation_space=BOX, action_space=TWO, seed=seed).policy for seed in (0, 0, 1)
    )
    assert first.weights.tobytes() == same.weights.tobytes() != other.weights.tobytes()
    assert [first.act([0.1, 0.2]) for _ in range(30)] == [same.act([0.1, 0.2]) for _ in range(30)]
    assert not first.weights[-1].any()
    probabilities = []
    for observation in ([-1.0, -1.0], [1.0, 1.0]):
        action = first.act(observation)
        probability = np.exp(first.last_logprob)
        probabilities.append(probability if action == 0 else 1 - probability)
    assert abs(probabilities[0] - probabilities[1]) > 0.01  # it looks at the observation


def test_frozen_without_policy_or_spaces_says_what_it_needs() -> None:
    with pytest.raises(ConfigError, match="give a policy, or both spaces"):
        Frozen(observation_space=BOX)


def test_untrained_policy_names_a_space_it_cannot_work_with() -> None:
    with pytest.raises(SpaceError, match=r"action space Box"):
        untrained_policy(BOX, BOX)
    with pytest.raises(SpaceError, match=r"observation space Discrete\(2\)"):
        Frozen(observation_space=TWO, action_space=TWO)


def test_frozen_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    first, second = (Frozen(observation_space=BOX, action_space=TWO, seed=seed) for seed in (3, 4))
    for _ in range(11):
        first.policy.act([0.5, 0.5])
    first.save_checkpoint(tmp_path)
    second.load_checkpoint(tmp_path)
    assert [second.policy.act([0.0, 1.0]) for _ in range(20)] == [
        first.policy.act([0.0, 1.0]) for _ in range(20)
    ]
    assert second.policy.weights.tobytes() == first.policy.weights.tobytes()


def test_frozen_checkpoint_of_a_given_policy_is_a_marker(tmp_path: Path) -> None:
    Frozen(Steady()).save_checkpoint(tmp_path)
    Frozen(Steady()).load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="made with policy 'Steady'"):
        Frozen(observation_space=BOX, action_space=TWO).load_checkpoint(tmp_path)


def test_frozen_refuses_weights_of_another_size(tmp_path: Path) -> None:
    Frozen(observation_space=BOX, action_space=TWO).save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="does not fit"):
        Frozen(observation_space=BOX, action_space=spaces.Discrete(5)).load_checkpoint(tmp_path)


def test_a_checkpoint_belongs_to_its_algorithm(tmp_path: Path) -> None:
    Random(action_space=TWO).save_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="written by algorithm 'random', wanted 'frozen'"):
        Frozen(Steady()).load_checkpoint(tmp_path)
