"""Two algorithms that never learn, so that a learner's scores have something to be measured against.

`Random` says what acting without looking earns; `Frozen` says what a policy earns that stays as it
is while the conditions change.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from gymnasium import Space

from skyfall_core.base import Policy, RolloutWindow
from skyfall_core.baselines.fourier import FourierBasis
from skyfall_core.baselines.linear import LinearSoftmaxPolicy
from skyfall_core.baselines.storage import generators_of, read_checkpoint, write_checkpoint
from skyfall_core.errors import CheckpointError, ConfigError

__all__ = ["Frozen", "Random", "RandomPolicy", "untrained_policy"]


class RandomPolicy:
    """Samples any action space, from a copy of it, so that nobody else's draws are disturbed."""

    def __init__(self, action_space: Space[Any], *, seed: int = 0) -> None:
        """Copy and seed the space."""
        self.space = copy.deepcopy(action_space)
        self.space.seed(seed)

    def act(self, observation: Any) -> Any:  # noqa: ARG002 - a policy's signature
        """An action drawn from the space; the observation is not looked at."""
        return self.space.sample()

    def act_batch(self, observations: Sequence[Any]) -> list[Any]:
        """One drawn action a world."""
        return [self.space.sample() for _ in observations]


class _Control:
    """What every algorithm that does not learn has in common."""

    def update(self, window: RolloutWindow) -> dict[str, float]:  # noqa: ARG002 - an algorithm's signature
        """Learn nothing, measure nothing."""
        return {}

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Do nothing."""


class Random(_Control):
    """Acts at random in any action space."""

    KIND = "random"

    def __init__(self, *, action_space: Space[Any], seed: int = 0) -> None:
        """Take the environment's space.

        Args:
            action_space: Anything that can be sampled.
            seed: Of the draws.
        """
        self._policy = RandomPolicy(action_space, seed=seed)

    @property
    def policy(self) -> RandomPolicy:
        """The policy that samples."""
        return self._policy

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write the state of the draws into the folder `path`."""
        states = [generator.bit_generator.state for generator in generators_of(self._policy.space)]
        write_checkpoint(path, self.KIND, {"space": str(self._policy.space), "rng": states})

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Go on drawing where `save_checkpoint` was called.

        Raises:
            CheckpointError: If it is missing, damaged or made for another action space.
        """
        meta, _ = read_checkpoint(path, self.KIND)
        generators = list(generators_of(self._policy.space))
        states = meta.get("rng")
        if (
            meta.get("space") != str(self._policy.space)
            or not isinstance(states, list)
            or len(states) != len(generators)
        ):
            raise CheckpointError(
                f"{path}: made for action space {meta.get('space')}, "
                f"this environment has {self._policy.space}; use the document the checkpoint was made with"
            )
        try:
            for generator, state in zip(generators, states, strict=True):
                type(
                    generator.bit_generator
                )().state = state  # a refusal must leave every generator as it was
            for generator, state in zip(generators, states, strict=True):
                generator.bit_generator.state = state
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{path}: the state of the draws is damaged ({error}); use another one"
            ) from error


class Frozen(_Control):
    """Acts with a policy and never changes it."""

    KIND = "frozen"

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Take a policy, or draw one.

        Args:
            policy: What acts. None draws an untrained one (`untrained_policy`), for which the spaces
                are needed.
            observation_space: Then a `Box`.
            action_space: Then a `Discrete`.
            seed: Of the untrained policy; a given one brings its own.

        Raises:
            ConfigError: If there is neither a policy nor both spaces.
            SpaceError: If an untrained policy cannot work with the spaces.
        """
        if policy is None:
            if observation_space is None or action_space is None:
                raise ConfigError("frozen: give a policy, or both spaces to draw an untrained one for")
            policy = untrained_policy(observation_space, action_space, seed=seed)
        self._policy = policy

    @property
    def policy(self) -> Policy:
        """The policy as it was given."""
        return self._policy

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write the policy into the folder `path` where it is one of this package's own.

        Any other policy is built by the document and does not change, so only a marker is written.
        """
        meta, arrays = self._policy.state() if isinstance(self._policy, LinearSoftmaxPolicy) else ({}, {})
        write_checkpoint(path, self.KIND, {**meta, "policy": type(self._policy).__qualname__}, arrays)

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Go on acting where `save_checkpoint` was called.

        Raises:
            CheckpointError: If it is missing, damaged or made with another kind of policy.
        """
        meta, arrays = read_checkpoint(path, self.KIND)
        if meta.get("policy") != type(self._policy).__qualname__:
            raise CheckpointError(
                f"{path}: made with policy {meta.get('policy')!r}, "
                f"this run's is {type(self._policy).__qualname__!r}; "
                "use the document the checkpoint was made with"
            )
        if isinstance(self._policy, LinearSoftmaxPolicy):
            try:
                self._policy.restore(meta, arrays)
            except (KeyError, TypeError, ValueError) as error:
                raise CheckpointError(
                    f"{path}: does not fit this policy ({error}); use another one"
                ) from error


def untrained_policy(
    observation_space: Space[Any], action_space: Space[Any], *, order: int = 1, seed: int = 0
) -> LinearSoftmaxPolicy:
    """A softmax policy with normal random weights: one fixed, arbitrary way to act.

    Args:
        observation_space: A `Box`.
        action_space: A `Discrete`.
        order: Of the Fourier basis; each feature looks at one entry of the observation.
        seed: Of the weights and of the action draws.

    Returns:
        The policy. Its value estimate is 0.
    """
    weights_seed, draws_seed = np.random.SeedSequence(seed).generate_state(2).tolist()
    basis = FourierBasis(observation_space, order=order, interactions=1)
    policy = LinearSoftmaxPolicy(basis, action_space, seed=draws_seed)
    policy.weights[:-1] = np.random.default_rng(weights_seed).normal(size=(policy.actions, basis.size))
    return policy
