"""What some rows of a minibatch contribute to its loss, and what is counted on the way."""

from typing import NamedTuple

import torch
from torch import Tensor

from skyfall_torch.interface import Evaluation
from skyfall_torch.losses import (
    RatioMode,
    clipped_policy_loss,
    clipped_value_loss,
    importance_ratio,
    sequence_mean,
    value_loss,
)
from skyfall_torch.ppo_batch import Targets
from skyfall_torch.ppo_config import PPOConfig
from skyfall_torch.tally import Tally

__all__ = ["Minibatch", "minibatch_loss"]


class Minibatch(NamedTuple):
    """What holds for a whole minibatch, however many passes it takes.

    Attributes:
        rows: How many rows its means are over.
        ratios: How many ratios its means are over.
        advantages: (N,) of which its own rows are ready for the loss.
        drift: Sums of the passes so far whose mean estimates KL(old ‖ new).
    """

    rows: int
    ratios: int
    advantages: Tensor
    drift: list[Tensor]

    def has_drifted(self, target_kl: float | None) -> bool:
        """Whether the policy moved further than 1.5 times the target; never without one."""
        return target_kl is not None and float(sum(self.drift)) / self.ratios > 1.5 * target_kl


def minibatch_loss(
    config: PPOConfig,
    scored: Evaluation,
    mask: Tensor,
    targets: Targets,
    index: Tensor,
    minibatch: Minibatch,
    tally: Tally,
) -> Tensor:
    """The surrogate, the critic's error and the entropy bonus of the rows `index`, as one scalar.

    Args:
        config: Coefficients and switches.
        scored: The rows under the current weights; with entropies where a bonus is asked for.
        mask: (B, T) their reinforced tokens.
        targets: The old policy's view of the whole batch.
        index: (B,) which of its rows these are.
        minibatch: The minibatch they belong to; its drift is added to.
        tally: Collects what is reported.
    """
    old = targets.logprobs[index, : mask.shape[1]]
    ratio, weight = importance_ratio(scored.logprobs, old, mask, config.ratio)
    advantages = minibatch.advantages[index]
    surrogate = clipped_policy_loss(ratio, weight, advantages, config.clip_range, minibatch.ratios)
    minibatch.drift.append(surrogate.drift_sum)
    critic = _critic_loss(config, scored.values, targets, index, minibatch.rows)
    share, counted = len(index) / minibatch.rows, weight.sum()
    tally.add("policy_loss", surrogate.loss, share)
    tally.add("value_loss", critic, share)
    tally.add("ratio_mean", surrogate.ratio_sum, counted)
    tally.add("clip_fraction", surrogate.clipped_sum, counted)
    tally.add("approx_kl", surrogate.drift_sum, counted)
    loss = surrogate.loss + config.value_coeff * critic
    if not config.entropy_coeff or scored.entropies is None:
        return loss
    entropy = _entropy_sum(scored.entropies, mask, config.ratio) / minibatch.ratios
    tally.add("entropy", entropy, share)
    return loss - config.entropy_coeff * entropy


def _critic_loss(config: PPOConfig, values: Tensor, targets: Targets, index: Tensor, count: int) -> Tensor:
    returns = targets.returns[index]
    if config.value_clip_range is None:
        return value_loss(values, returns, count)
    return clipped_value_loss(values, targets.values[index], returns, config.value_clip_range, count)


def _entropy_sum(entropies: Tensor, mask: Tensor, mode: RatioMode) -> Tensor:
    """Summed over what the ratios are taken of, so that dividing by their number gives a mean."""
    if mode is RatioMode.PER_TOKEN:
        return torch.sum(entropies * mask)
    return sequence_mean(entropies, mask).sum()
