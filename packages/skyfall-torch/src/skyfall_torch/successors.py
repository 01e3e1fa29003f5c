"""What an environment looked like after a step, for algorithms that look beyond a cut.

A window holds the observation before each action, so what followed its last step, or a step that was
truncated and reset, is lost. A wrapper keeps it in the step's `info`; whoever needs it asks for it.
"""

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from skyfall_core.base import RolloutWindow
from skyfall_core.errors import ConfigError

__all__ = ["RecordSuccessors", "cut_successors"]

SUCCESSOR = "successor"


class RecordSuccessors(gym.Wrapper[Any, Any, Any, Any]):
    """Puts the observation a step led to into its `info`, under `successor`.

    Args:
        env: The environment; outermost but for wrappers that leave observations alone.
    """

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step, with the observation it led to in `info`; arrays are copied."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        kept = observation.copy() if isinstance(observation, np.ndarray) else observation
        return observation, reward, terminated, truncated, {**info, SUCCESSOR: kept}


def cut_successors(window: RolloutWindow) -> dict[int, Any]:
    """The observations behind episodes that were cut: truncated, or unfinished where a stream stops.

    Args:
        window: Transitions whose `info` holds `successor`.

    Returns:
        Row, with the streams one after another, to the observation after it.

    Raises:
        ConfigError: If a step, cut or not, was recorded without.
    """
    found: dict[int, Any] = {}
    row = 0
    for stream in window.streams or ():
        for index, position in enumerate(stream):
            transition = window.transitions[position]
            if SUCCESSOR not in transition.info:  # asked of every step: a missing wrapper shows at once
                raise ConfigError(
                    f"truncation 'bootstrap': step {transition.step} does not tell what it led to; add "
                    "{factory: 'skyfall_torch.successors:RecordSuccessors'} to environment.wrappers"
                )
            if (transition.truncated or index == len(stream) - 1) and not transition.terminated:
                found[row] = transition.info[SUCCESSOR]
            row += 1
    return found
