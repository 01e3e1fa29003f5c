"""How observations become rows of numbers, and how network outputs become actions.

Each action head does the same thing twice: in NumPy on one row while acting, where a tensor library's
overhead would cost more than the arithmetic, and in torch on a batch when the action is scored again.
The two are tested equal.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from skyfall_core.errors import SpaceError
from skyfall_torch.errors import ObservationError

__all__ = [
    "ActionHead",
    "CategoricalHead",
    "GaussianHead",
    "ObservationCodec",
    "build_head",
    "describe_space",
]

Rows = NDArray[np.float32]
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def describe_space(space: gym.Space[Any]) -> dict[str, Any]:
    """A space as plain data, enough to refuse a checkpoint made for another one."""
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    return {"kind": type(space).__name__, "shape": list(space.shape or ())}


class ObservationCodec:
    """Turns observations of a space into float32 rows.

    Args:
        space: A Box of any shape (flattened) or a Discrete (one-hot).

    Raises:
        SpaceError: For any other space.
    """

    def __init__(self, space: gym.Space[Any]) -> None:
        if isinstance(space, spaces.Box):
            self.width = int(np.prod(space.shape))
        elif isinstance(space, spaces.Discrete):
            self.width = int(space.n)
            self._start = int(space.start)
        else:
            raise SpaceError(
                f"observation space {space} is none the actor-critic can read; it reads Box and Discrete. "
                "Flatten it with gymnasium.wrappers.FlattenObservation"
            )
        if not self.width:
            raise SpaceError(f"observation space {space} holds no number to act on")
        self._one_hot = isinstance(space, spaces.Discrete)
        self._shape = space.shape

    def row(self, observation: Any) -> Rows:
        """One observation as `(width,)`; a copy.

        Raises:
            SpaceError: If it has another shape than the space.
            ObservationError: If it holds a number that is not finite.
        """
        if self._one_hot:
            one_hot = np.zeros(self.width, np.float32)
            one_hot[int(observation) - self._start] = 1.0
            return one_hot
        array = np.array(observation, np.float32)
        if array.shape != self._shape:
            raise SpaceError(f"observation of shape {array.shape} where the space has {self._shape}")
        row: Rows = array.reshape(-1)
        if not np.isfinite(row).all():
            at = int(np.flatnonzero(~np.isfinite(row))[0])
            raise ObservationError(
                f"observation holds {row[at]} at (flat) index {at}, from which no action follows; mend the "
                "environment, or fill such gaps in an observation wrapper"
            )
        return row


class ActionHead(ABC):
    """Distribution over one action space.

    Attributes:
        outputs: How many numbers the network gives for it.
        has_scale: Whether a learned, state-independent log standard deviation belongs to it.
    """

    outputs: int
    has_scale: bool = False

    @abstractmethod
    def draw(
        self, outputs: Rows, log_std: Rows | None, noise: Callable[[int], Sequence[float]]
    ) -> tuple[Any, float]:
        """Draw for one row.

        Args:
            outputs: `(outputs,)` from the network.
            log_std: `(outputs,)` for heads with a scale.
            noise: Gives so many draws of the policy's own generator: uniform, or normal for heads
                with a scale.

        Returns:
            The action in the form it is recorded in, and its log-probability.
        """

    @abstractmethod
    def to_environment(self, recorded: Any) -> Any:
        """The recorded action as the environment takes it."""

    @abstractmethod
    def score(self, outputs: Tensor, log_std: Tensor | None, recorded: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies `(B,)` of recorded actions `(B, …)` for outputs `(B, outputs)`."""


class CategoricalHead(ActionHead):
    """One or several independent categorical choices.

    Args:
        sizes: How many values each choice has.
        starts: The smallest value of each.
        scalar: Whether the environment takes a bare integer rather than an array.
    """

    def __init__(self, sizes: Sequence[int], starts: Sequence[int], *, scalar: bool) -> None:
        self.sizes, self.scalar = list(sizes), scalar
        self.starts = np.asarray(starts, np.int64)
        self.outputs = sum(self.sizes)
        self._edges = np.cumsum([0, *self.sizes]).tolist()

    def draw(
        self,
        outputs: Rows,
        log_std: Rows | None,  # noqa: ARG002 - categories have no scale
        noise: Callable[[int], Sequence[float]],
    ) -> tuple[Any, float]:
        """By inverting the cumulative distribution, one uniform number a choice."""
        logits = outputs.tolist()
        choices, logprob = [], 0.0
        for i, uniform in enumerate(noise(len(self.sizes))):
            part = logits[self._edges[i] : self._edges[i + 1]]
            peak = max(part)
            weights = [math.exp(logit - peak) for logit in part]
            total = sum(weights)
            choice = _invert(weights, uniform * total)
            choices.append(choice)
            logprob += part[choice] - peak - math.log(total)
        return np.asarray(choices, np.int64), logprob

    def to_environment(self, recorded: Any) -> Any:
        """An integer, or an array of them for MultiDiscrete."""
        action = recorded + self.starts
        return int(action[0]) if self.scalar else action

    def score(
        self,
        outputs: Tensor,
        log_std: Tensor | None,  # noqa: ARG002 - categories have no scale
        recorded: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Summed over the choices."""
        logprobs: list[Tensor] = []
        entropies: list[Tensor] = []
        for i, logits in enumerate(torch.split(outputs, self.sizes, dim=1)):
            logs = torch.log_softmax(logits, dim=1)
            logprobs.append(logs.gather(1, recorded[:, i : i + 1]).squeeze(1))
            entropies.append(-(logs.exp() * logs).sum(1))
        if len(logprobs) == 1:
            return logprobs[0], entropies[0]
        return torch.stack(logprobs).sum(0), torch.stack(entropies).sum(0)


def _invert(weights: Sequence[float], mass: float) -> int:
    """The first index whose cumulated weight exceeds `mass`; the last one against rounding."""
    for index, weight in enumerate(weights[:-1]):
        mass -= weight
        if mass < 0:
            return index
    return len(weights) - 1


class GaussianHead(ActionHead):
    """Independent normal distributions with a state-independent scale.

    What is recorded and scored is the unbounded draw; the environment gets it clipped to its bounds.

    Args:
        space: A Box of floats.
    """

    has_scale = True

    def __init__(self, space: spaces.Box) -> None:
        self.outputs = int(np.prod(space.shape))
        self._space = space

    def draw(
        self, outputs: Rows, log_std: Rows | None, noise: Callable[[int], Sequence[float]]
    ) -> tuple[Any, float]:
        """Mean plus scaled normal noise."""
        scale = np.zeros_like(outputs) if log_std is None else log_std
        normal = np.asarray(noise(self.outputs), np.float32)
        action = outputs + np.exp(scale) * normal
        logprob = -0.5 * float(normal @ normal) - float(scale.sum()) - self.outputs * HALF_LOG_TWO_PI
        return action, logprob

    def to_environment(self, recorded: Any) -> Any:
        """Clipped to the bounds, in the space's shape and dtype."""
        action = recorded.reshape(self._space.shape)
        return np.clip(action, self._space.low, self._space.high).astype(self._space.dtype)

    def score(self, outputs: Tensor, log_std: Tensor | None, recorded: Tensor) -> tuple[Tensor, Tensor]:
        """Summed over the dimensions."""
        scale = torch.zeros_like(outputs) if log_std is None else log_std
        standardized = (recorded - outputs) * torch.exp(-scale)
        logprobs = (-0.5 * standardized.square() - scale - HALF_LOG_TWO_PI).sum(1)
        return logprobs, (scale + 0.5 + HALF_LOG_TWO_PI).sum(1)


def build_head(space: gym.Space[Any]) -> ActionHead:
    """The head for an action space.

    Args:
        space: Discrete, MultiDiscrete (one-dimensional) or a Box of at least one float.

    Raises:
        SpaceError: For any other space.
    """
    if isinstance(space, spaces.Discrete):
        return CategoricalHead([int(space.n)], [int(space.start)], scalar=True)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return CategoricalHead(space.nvec.tolist(), space.start.tolist(), scalar=False)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and np.prod(space.shape):
        return GaussianHead(space)
    raise SpaceError(
        f"action space {space} is none the actor-critic can act in; it acts in Discrete, one-dimensional "
        "MultiDiscrete, and Box of at least one float"
    )
