"""Collecting experience: drive an environment for a number of steps, and record every one.

A window is a slice of one continuing run. It ends when its step budget is spent and at nothing else:
not at an episode's end, and not at a shift, which would hand the agent the boundary it is supposed to
infer. Truncation resets nothing, because in a persistent world a reset destroys what the agent has
built; `auto_reset` is for bounded environments such as CartPole.

Every step is written before the next is taken, whether or not the environment can describe itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from skyfall_core.base import RolloutWindow
from skyfall_core.drivers import Driver, SeveralWorldsDriver, SingleWorldDriver
from skyfall_core.steps import Recorder
from skyfall_core.trace import TraceWriter
from skyfall_core.world_state import restore_world, world_state

__all__ = ["RolloutCollector"]


class RolloutCollector:
    """Drives an environment and yields fixed-length windows of experience.

    Args:
        env: Any `gymnasium.Env`, or a `gymnasium.vector.VectorEnv` of persistent worlds. Whatever it
            offers beyond that is probed and used if present.
        policy: Anything with `act(observation)`; `act_batch` is used for several worlds.
        window_steps: Steps in one window, each world's own; at least 1.
        writer: Trace that every step is written to as it happens, if any.
        auto_reset: Whether to reset when an episode ends.
        seed: Seeds the environment on the first reset only. Seeding later ones too would start every
            episode from the same state.
        regime: Configuration provider for an environment that reports no configuration of its own.
        record_observations: Whether the trace's rows carry the observation.

    Raises:
        ValueError: If `window_steps` is less than 1.
        InputError: If a vector environment resets its worlds by itself.
    """

    def __init__(
        self,
        env: Any,
        policy: Any,
        *,
        window_steps: int,
        writer: TraceWriter | None = None,
        auto_reset: bool = False,
        seed: int | None = None,
        regime: Any = None,
        record_observations: bool = False,
    ) -> None:
        if window_steps < 1:
            raise ValueError(f"window_steps is {window_steps!r}; a window has at least one step")
        kind = SeveralWorldsDriver if isinstance(env, VectorEnv) else SingleWorldDriver
        self._env = env
        self._driver: Driver = kind(env, policy, regime, auto_reset=auto_reset)
        self._record_observations = record_observations
        if writer is not None:
            self.record_to(writer)
        self._window_steps = window_steps
        self._seed = seed
        self._begun = False

    @property
    def step_index(self) -> int:
        """Steps taken since the run began, across windows; each world's own."""
        return self._driver.step_index

    @property
    def run(self) -> Mapping[str, Any]:
        """What the environment reported about the run; empty if it reports nothing."""
        return self._driver.run

    def record_to(self, writer: TraceWriter) -> None:
        """Write every step from now on to `writer`, for a trace that is opened once the run has begun."""
        self._driver.recorder = Recorder(writer, record_observations=self._record_observations)

    def reset(self) -> None:
        """Begin the run, or begin again at step 0. For a persistent world, call this once.

        Raises:
            EnvironmentFailedError: If the environment raises.
        """
        seed, self._seed = self._seed, None
        self._driver.reset(seed)
        self._begun = True

    def position(self) -> dict[str, Any]:
        """Where collecting stands between two windows, the environment's own state included."""
        return {"driver": self._driver.position(), "world": world_state(self._env)}

    def go_on(self, position: Mapping[str, Any]) -> bool:
        """Continue from a position, on a newly built environment, instead of `reset`.

        Returns:
            Whether the environment stands exactly where it stood. Otherwise it was reset, under a seed
            that belongs to this step, so that the run's beginning is not lived again.

        Raises:
            ValueError: If the position does not fit the environment.
            EnvironmentFailedError: If the environment raises.
        """
        driver, seed = position["driver"], self._seed
        restored = restore_world(self._env, position["world"])
        if seed is not None:
            seed = int(np.random.SeedSequence([seed, int(driver["step"])]).generate_state(1)[0]) >> 1
        self._driver.go_on(driver, restored, seed)
        self._begun, self._seed = True, None
        return restored.exact

    def windows(self, total_steps: int) -> Iterator[RolloutWindow]:
        """Windows until the run has `total_steps` steps; the last one may be shorter.

        Begins the run if `reset` was not called.

        Raises:
            EnvironmentFailedError: If the environment raises; names the step.
            NonFiniteRewardError: If a reward is NaN, infinite or no number; names the step.
            TraceError: If a row cannot be written.
        """
        if not self._begun:
            self.reset()
        while self.step_index < total_steps:
            yield self._driver.collect(min(self._window_steps, total_steps - self.step_index))
