"""A softmax policy that is linear in fixed features, and the value estimate beside it.

One matrix holds both: a row of preferences per action, and the value's row last, so that acting
costs one product. The policy learns nothing by itself; an algorithm changes `weights`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from skyfall_core.baselines.fourier import Floats, FourierBasis
from skyfall_core.errors import ConfigError, RunError, SpaceError
from skyfall_core.plasticity import effective_rank_entropy

__all__ = ["RANK_SAMPLE", "LinearSoftmaxPolicy"]

RANK_SAMPLE = 64
"""How many of the latest feature vectors an effective-rank reading is taken over."""


class LinearSoftmaxPolicy:
    """Acts by π(a|s) ∝ exp(θ_a·φ(s) / temperature) and reports what it thought.

    The features are fixed, so `last_effective_rank` follows how varied the visited states are. It
    cannot show a representation collapsing, because this one is not learned.

    Attributes:
        features: The basis φ.
        weights: θ and the value's weights, (actions + 1, features), value last. All zeros at first:
            uniform actions, value 0.
        temperature: Divides the preferences.
        last_logprob: Log-probability of the last action; after `act_batch`, one a world.
        last_value: Value estimate of the last observation; after `act_batch`, one a world.
        last_effective_rank: A reading over the last `RANK_SAMPLE` feature vectors after every
            `effective_rank_interval`-th act, None after all others; after `act_batch`, one a world.
    """

    def __init__(
        self,
        features: FourierBasis,
        action_space: Space[Any],
        *,
        temperature: float = 1.0,
        effective_rank_interval: int | None = 512,
        seed: int = 0,
    ) -> None:
        """Start uniform.

        Args:
            features: The basis.
            action_space: A `Discrete`.
            temperature: Above 0; higher is closer to uniform.
            effective_rank_interval: Acts between two readings; None for none.
            seed: Of the action draws.

        Raises:
            SpaceError: If the action space is no `Discrete`.
            ConfigError: If a number is out of range.
        """
        if not isinstance(action_space, spaces.Discrete):
            raise SpaceError(f"action space {action_space}: a softmax policy handles Discrete only")
        if not (math.isfinite(temperature) and temperature > 0.0):
            raise ConfigError(f"temperature is {temperature!r}: give a number above 0")
        if effective_rank_interval is not None and effective_rank_interval < 1:
            raise ConfigError(
                f"effective_rank_interval is {effective_rank_interval!r}: give 1 or more, or null for none"
            )
        self.features = features
        self.temperature = temperature
        self.actions = int(action_space.n)
        self.first_action = int(action_space.start)
        self.weights: Floats = np.zeros((self.actions + 1, features.size))
        self.last_logprob: float | list[float] | None = None
        self.last_value: float | list[float] | None = None
        self.last_effective_rank: float | list[float | None] | None = None
        self._rng = np.random.default_rng(seed)
        self._recent: deque[Floats] = deque(maxlen=RANK_SAMPLE)
        self._interval = effective_rank_interval
        self._acts = 0

    def act(self, observation: Any) -> int:
        """A sampled action for one observation."""
        row = self.features(observation)
        action, self.last_logprob, self.last_value = self._choose(
            self.weights.dot(row).tolist(), self._rng.random()
        )
        self._recent.append(row)
        self.last_effective_rank = self._reading()
        return action

    def act_batch(self, observations: Sequence[Any]) -> list[int]:
        """Sampled actions for one observation a world, in order."""
        rows = self.features.batch(observations)
        draws = self._rng.random(len(rows)).tolist()
        chosen = [self._choose(*pair) for pair in zip((rows @ self.weights.T).tolist(), draws, strict=True)]
        self.last_logprob = [logprob for _, logprob, _ in chosen]
        self.last_value = [value for _, _, value in chosen]
        self._recent.extend(rows)
        self.last_effective_rank = [self._reading()] * len(rows)
        return [action for action, _, _ in chosen]

    def state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that acting depends on: plain JSON values, and arrays by name."""
        meta = {"rng": self._rng.bit_generator.state, "acts": self._acts}
        recent = np.array(self._recent).reshape(len(self._recent), self.features.size)
        return meta, {"weights": self.weights, "recent": recent}

    def restore(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go back to what `state` returned.

        Raises:
            ValueError: If a shape or a value does not fit this policy.
            KeyError: If something is missing.
        """
        weights, recent = arrays["weights"], arrays["recent"]
        if weights.shape != self.weights.shape:
            raise ValueError(f"weights have shape {weights.shape}, this policy's have {self.weights.shape}")
        if recent.ndim != 2 or recent.shape[1] != self.features.size:
            raise ValueError(f"recent features have shape {recent.shape}, not (acts, {self.features.size})")
        acts = int(meta["acts"])
        self._rng.bit_generator.state = meta["rng"]
        self._acts = acts
        self.weights = weights.astype(np.float64)
        self._recent = deque(recent.astype(np.float64), maxlen=RANK_SAMPLE)

    def _choose(self, outputs: list[float], draw: float) -> tuple[int, float, float]:
        """Action, log-probability and value from the products of the weights and a draw in [0, 1)."""
        value = outputs.pop()
        highest = max(outputs)
        odds = [math.exp((preference - highest) / self.temperature) for preference in outputs]
        total = sum(odds)
        if not total >= 1.0:  # the highest contributes exactly 1 unless something is not a number
            raise RunError(
                "softmax policy: the observation or the weights are not finite; "
                "check what the environment returns"
            )
        rest = draw * total
        index = 0
        for index, weight in enumerate(odds):  # noqa: B007 - the last action takes what rounding leaves over
            rest -= weight
            if rest < 0.0:
                break
        logprob = (outputs[index] - highest) / self.temperature - math.log(total)
        return self.first_action + index, logprob, value

    def _reading(self) -> float | None:
        """The effective rank where one is due after this act."""
        self._acts += 1
        if self._interval is None or self._acts % self._interval:
            return None
        return effective_rank_entropy(np.array(self._recent))
