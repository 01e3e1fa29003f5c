"""What an update reports about its batch, beside what the optimizer steps added to the tally."""

import torch

from skyfall_torch.losses import explained_variance
from skyfall_torch.ppo_batch import Targets, TokenBatch
from skyfall_torch.tally import Tally

__all__ = ["put_statistics"]


def put_statistics(tally: Tally, batch: TokenBatch, targets: Targets, learning_rate: float) -> None:
    """Put statistics of rewards, advantages, values and tokens into `tally`.

    Args:
        tally: Collects them.
        batch: The rows trained on, replayed ones among them.
        targets: What was aimed at.
        learning_rate: Of the last step.
    """
    rewards = torch.tensor(batch.rewards, dtype=torch.float64)
    tally.put("explained_variance", explained_variance(targets.values, targets.returns))
    tally.put("advantage_mean", targets.raw_advantage_mean)
    tally.put("advantage_std", targets.raw_advantage_std)
    tally.put("value_mean", targets.values.mean())
    tally.put("reward_mean", rewards.mean())
    tally.put("reward_std", rewards.std(correction=0))
    tally.put("reward_min", rewards.min())
    tally.put("reward_max", rewards.max())
    tally.put("samples", float(len(batch)))
    tally.put("samples_replayed", float(len(batch) - len(batch.steps)))
    tally.put("tokens", float(sum(sample.length for sample in batch.samples)))
    tally.put("tokens_reinforced", targets.mask.sum())
    tally.put("learning_rate", learning_rate)
