"""A house with one heater. It is never reset: what was burned stays burned."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from skyfall_thermostat.regime import DayNight

__all__ = ["Thermostat"]

Observation = NDArray[np.float32]


class Thermostat(gymnasium.Env[Observation, np.int64]):
    """Keep the room at `target` while the weather outside changes.

    The reward is minus the distance from the target in tens of degrees, less a little for heating.
    The episode never ends. The environment applies the configurations itself (`bind_regime`), so
    its own label goes into the trace.

    Args:
        target: The wanted temperature in °C.
        leak: Share of the difference to the outside that is lost each step.
    """

    def __init__(self, target: float = 20.0, leak: float = 0.05) -> None:
        self.observation_space = gymnasium.spaces.Box(-50.0, 80.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.target = target
        self.leak = leak
        self.provider = DayNight(1, 1, day=10.0, night=10.0)
        self.clock = 0
        self.inside = target

    def bind_regime(self, provider: Any) -> None:
        """Take the provider whose axis `outside` is the weather."""
        self.provider = provider

    def describe_run(self) -> dict[str, Any]:
        """What a run of this house was configured with."""
        return {"house_target": self.target, "house_leak": self.leak}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Move in: the room starts near the target."""
        super().reset(seed=seed, options=options)
        self.inside = self.target + float(self.np_random.normal())
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Heat (1) or not (0) for one step."""
        regime = self.provider.regime_at(self.clock)
        boundary = self.provider.is_boundary(self.clock)
        self.clock += 1
        outside = float(regime.axes["outside"])
        self.inside += self.leak * (outside - self.inside) + 2.0 * int(action)
        reward = -abs(self.inside - self.target) / 10 - 0.05 * int(action)
        info = {"regime": {"id": regime.regime_id, "boundary": boundary}}
        return self._observation(), reward, False, False, info

    def _observation(self) -> Observation:
        return np.array([self.inside], dtype=np.float32)
