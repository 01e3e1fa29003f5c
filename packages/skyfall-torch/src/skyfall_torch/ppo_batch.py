"""What an update is computed from: samples, rewards, and where episodes end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from skyfall_core.advantage import GAEMode, episode_lengths_from
from skyfall_core.base import RolloutWindow
from skyfall_torch.errors import SampleCountError

__all__ = ["Targets", "TokenBatch", "batch_of"]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """One update's rows. Those of a world stand together and in order, one world after another.

    Attributes:
        samples: What the policy recorded, one a row; opaque to all but the policy.
        rewards: One a row.
        episode_lengths: Lengths of the episodes in row order; None where rows stand alone.
        steps: Environment step of each row that is fresh. Replayed rows follow the fresh ones and have none.
        successors: Row to the observation after it, for the last row of every episode that was cut; only
            where cut episodes are bootstrapped.
    """

    samples: Sequence[Any]
    rewards: Sequence[float]
    episode_lengths: Sequence[int] | None = None
    steps: Sequence[int] = ()
    successors: Mapping[int, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Targets:
    """What the policy thought before the update, and what the update aims at. N rows, T tokens.

    Attributes:
        logprobs: (N, T) log-probabilities under the old weights.
        mask: (N, T) True on reinforced tokens.
        values: (N,) the old critic's estimates.
        advantages: (N,) normalized over the batch, or raw where minibatches normalize.
        returns: (N,) targets of the critic.
        raw_advantage_mean: Mean before normalization.
        raw_advantage_std: Deviation before normalization; 0 for a single row.
    """

    logprobs: Tensor
    mask: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    raw_advantage_mean: float
    raw_advantage_std: float


def batch_of(samples: Sequence[Any], window: RolloutWindow, gae: GAEMode) -> TokenBatch:
    """Pair recorded samples with a window's transitions by position, world by world.

    Args:
        samples: In acting order, as `take_generated` returned them.
        window: The transitions they led to, in the same order.
        gae: Under `DEGENERATE` the episodes are left out, whatever the window knows of them.

    Raises:
        SampleCountError: If there are not as many samples as transitions, or none.
    """
    if len(samples) != len(window) or not samples:
        raise SampleCountError(len(samples), len(window))
    streams = [list(stream) for stream in window.streams or ()]
    rewards, terminals = window.rewards, window.terminals
    lengths: list[int] | None = None
    if gae is GAEMode.EPISODIC:
        lengths = [n for stream in streams for n in episode_lengths_from(terminals[p] for p in stream)]
    order = [position for stream in streams for position in stream]
    if sorted(order) != list(range(len(window))):
        raise ValueError(
            f"streams hold {len(order)} positions for {len(window)} transitions; each belongs to one"
        )
    return TokenBatch(
        samples=[samples[position] for position in order],
        rewards=[rewards[position] for position in order],
        episode_lengths=lengths,
        steps=[window.transitions[position].step for position in order],
    )
