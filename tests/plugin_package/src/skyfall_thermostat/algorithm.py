"""Q-learning on a table over one binned observation (Watkins and Dayan 1992)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from skyfall_core.base import RolloutWindow

__all__ = ["TableQ"]


class TableQ:
    """Learns action values and is its own policy.

    Args:
        observation_space: A one-dimensional Box, given by the run.
        action_space: Discrete, given by the run.
        bins: How finely 0–40 °C is cut.
        step_size: How far a value moves towards its target.
        discount: Weight of the next step's value.
        epsilon: How often a random action is taken.
        seed: Of the exploration.
    """

    def __init__(
        self,
        observation_space: gymnasium.spaces.Box,
        action_space: gymnasium.spaces.Discrete,
        bins: int = 24,
        step_size: float = 0.2,
        discount: float = 0.9,
        epsilon: float = 0.05,
        seed: int | None = None,
    ) -> None:
        if observation_space.shape != (1,):
            raise ValueError(f"table-q bins one number, not observations of shape {observation_space.shape}")
        self.edges = np.linspace(0.0, 40.0, bins - 1)
        self.values = np.zeros((bins, int(action_space.n)))
        self.step_size = step_size
        self.discount = discount
        self.epsilon = epsilon
        self.rng = np.random.default_rng(seed)

    @property
    def policy(self) -> TableQ:
        """Itself."""
        return self

    def act(self, observation: Any) -> int:
        """The best known action, now and then another."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(self.values.shape[1]))
        return int(self.values[self._bin(observation)].argmax())

    def update(self, window: RolloutWindow) -> Mapping[str, float]:
        """One sweep over the window, in order."""
        errors = []
        for now, later in pairwise(window.transitions):
            cell = self._bin(now.observation), int(now.action)
            target = now.reward + self.discount * self.values[self._bin(later.observation)].max()
            errors.append(target - self.values[cell])
            self.values[cell] += self.step_size * errors[-1]
        return {"td_error": float(np.abs(errors).mean())} if errors else {}

    def on_regime_shift(self, shift: Mapping[str, Any]) -> None:
        """Nothing: the values are relearned from what follows."""

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write the values as JSON."""
        Path(path).write_text(json.dumps(self.values.tolist()), encoding="utf-8")

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Read them back."""
        self.values = np.array(json.loads(Path(path).read_text(encoding="utf-8")))

    def _bin(self, observation: Any) -> int:
        return int(np.digitize(float(observation[0]), self.edges))
