"""The arithmetic of proximal policy optimization as pure functions of tensors.

Shapes: B samples, T tokens. `mask` is True on the reinforced tokens only. A mean over samples or
tokens is written as a sum over a given `count`, so that a minibatch split into several passes for
memory gives the gradient of the whole.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "PolicyLoss",
    "RatioMode",
    "clipped_policy_loss",
    "clipped_value_loss",
    "explained_variance",
    "importance_ratio",
    "kl_estimate",
    "normalized",
    "reinforced_mask",
    "sequence_mean",
    "value_loss",
]


class RatioMode(str, Enum):
    """What the importance ratio is taken of.

    `SEQUENCE_MEAN`, the reference: of the mean log-probability per token, so it is the geometric mean
    of the tokens' ratios and the clip bounds their average drift. `PER_TOKEN`, the textbook's form.
    """

    SEQUENCE_MEAN = "sequence_mean"
    PER_TOKEN = "per_token"  # noqa: S105 - a mode, no password


class PolicyLoss(NamedTuple):
    """The surrogate and what is reported about it; all scalars.

    Attributes:
        loss: Negative clipped surrogate, summed and divided by the count.
        ratio_sum: Sum of the ratios.
        clipped_sum: How many ratios lie outside the clip range.
        drift_sum: Sum of (ρ - 1) - log ρ, whose mean estimates KL(old ‖ new).
    """

    loss: Tensor
    ratio_sum: Tensor
    clipped_sum: Tensor
    drift_sum: Tensor


def normalized(advantages: Tensor) -> Tensor:
    """Advantages with mean 0 and deviation 1; a single one stays as it is.

    The guard matters: the deviation of one number is NaN, and NaN would reach the weights.

    Args:
        advantages: (N,).
    """
    if advantages.numel() <= 1:
        return advantages
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def reinforced_mask(mask: Tensor, starts: Sequence[int]) -> Tensor:
    """(B, T) `mask` without the tokens in front of each row's reinforced slice.

    Args:
        mask: (B, T) True where there is a token.
        starts: First reinforced token of each row.
    """
    columns = torch.arange(mask.shape[1], device=mask.device)
    return mask & (columns >= torch.tensor(list(starts), device=mask.device).unsqueeze(1))


def sequence_mean(values: Tensor, mask: Tensor) -> Tensor:
    """(B,) mean of `values` (B, T) over each row's True columns; 0 for a row without any."""
    return (values * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def importance_ratio(new: Tensor, old: Tensor, mask: Tensor, mode: RatioMode) -> tuple[Tensor, Tensor]:
    """The ratio of new to old probability, and where it counts.

    Args:
        new: (B, T) log-probabilities under the current weights.
        old: (B, T) the same under the weights that the update began with.
        mask: (B, T) the reinforced tokens.
        mode: Per token, or of the sequence mean.

    Returns:
        Ratio and boolean weight of equal shape: (B, T) per token, (B, 1) for the sequence mean.
    """
    if mode is RatioMode.PER_TOKEN:
        return torch.exp((new - old) * mask), mask
    ratio = torch.exp(sequence_mean(new, mask) - sequence_mean(old, mask)).unsqueeze(1)
    return ratio, torch.ones_like(ratio, dtype=torch.bool)


def clipped_policy_loss(
    ratio: Tensor, weight: Tensor, advantages: Tensor, clip_range: float, count: float
) -> PolicyLoss:
    """The clipped surrogate: -Σ min(ρ·A, clip(ρ, 1 - ε, 1 + ε)·A) / count.

    Args:
        ratio: (B, K) importance ratios.
        weight: (B, K) True where a ratio counts.
        advantages: (B,).
        clip_range: ε.
        count: What the sum is divided by: the ratios that count in the whole minibatch.

    Source: Schulman et al. 2017, arXiv 1707.06347, eq. 7. There is no entropy bonus, as in the reference.
    """
    advantage = advantages.unsqueeze(1)
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage) * weight
    with torch.no_grad():
        drift = ((ratio - 1) - ratio.log()) * weight
        outside = ((ratio - 1).abs() > clip_range) & weight
    return PolicyLoss(-surrogate.sum() / count, (ratio.detach() * weight).sum(), outside.sum(), drift.sum())


def value_loss(values: Tensor, returns: Tensor, count: float) -> Tensor:
    """Squared error of the critic, Σ (V - R)² / count.

    Args:
        values: (B,) estimates.
        returns: (B,) targets.
        count: Samples in the whole minibatch.
    """
    return (values - returns).square().sum() / count


def clipped_value_loss(
    values: Tensor, old: Tensor, returns: Tensor, clip_range: float, count: float
) -> Tensor:
    """The larger of two squared errors: of the values, and of values kept near the old ones.

    Args:
        values: (B,) estimates.
        old: (B,) estimates of the weights that the update began with.
        returns: (B,) targets.
        clip_range: How far from the old estimates.
        count: Samples in the whole minibatch.

    Source: the form of OpenAI's baselines; Engstrom et al. 2020, arXiv 2005.12729, section 3.
    """
    near = old + (values - old).clamp(-clip_range, clip_range)
    return torch.maximum((values - returns).square(), (near - returns).square()).sum() / count


def kl_estimate(current: Tensor, reference: Tensor, mask: Tensor) -> Tensor:
    """Mean over reinforced tokens of (ρ - 1) - log ρ with ρ = reference / current.

    On tokens drawn from the current policy this estimates KL(current ‖ reference) without bias and
    never falls below zero.

    Args:
        current: (B, T) log-probabilities under the current weights.
        reference: (B, T) under the reference weights.
        mask: (B, T) the reinforced tokens.
    """
    log_ratio = (reference - current) * mask
    return (log_ratio.exp() - 1 - log_ratio).sum() / mask.sum().clamp(min=1)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - Var(R - V) / Var(R): 1 for a perfect critic, 0 for a constant one; 0 where R does not vary.

    Args:
        values: (N,) estimates.
        returns: (N,) targets.
    """
    spread = returns.var(correction=0)
    if spread <= 0:
        return 0.0
    return float(1 - (returns - values).var(correction=0) / spread)
