"""Generalised advantage estimation, and how terminal flags become episode lengths.

Plain Python, so that the subtlest arithmetic of PPO is tested wherever the core is. Two behaviours
of the reference are kept and matter before any tuning: every episode ends in a value of zero, and
without usable episode lengths each sample is an episode of its own, which reduces the advantage to
`reward - value` and leaves `gamma` and `lam` without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

__all__ = ["GAEMode", "compute_gae", "episode_lengths_from"]


class GAEMode(str, Enum):
    """Whether advantage estimation sees episodes.

    `DEGENERATE` is the reference's default: every sample stands alone and the discounts are inert.
    `EPISODIC` uses the window's own terminal flags.
    """

    DEGENERATE = "degenerate"
    EPISODIC = "episodic"


def episode_lengths_from(terminals: Iterable[bool]) -> list[int]:
    """Run lengths of the episodes in a stream of terminal flags.

    An unfinished last episode counts as one: its final step bootstraps from zero like every other
    boundary, which slightly understates an episode that the window merely cut.

    Args:
        terminals: Per step, whether it ended an episode: `[F, F, T, F]` gives `[3, 1]`.

    Returns:
        Episode lengths in order; they add up to the number of flags.
    """
    lengths: list[int] = []
    current = 0
    for terminal in terminals:
        current += 1
        if terminal:
            lengths.append(current)
            current = 0
    if current:
        lengths.append(current)
    return lengths


def compute_gae(
    rewards: Sequence[float],
    values: Sequence[float],
    episode_lengths: Sequence[int] | None,
    gamma: float,
    lam: float,
) -> tuple[list[float], list[float]]:
    """Advantages and returns, episode by episode.

    Inside an episode δ_t = r_t + γ·V_{t+1} − V_t and A_t = δ_t + γ·λ·A_{t+1}, both with zero behind
    the last step; the return is A_t + V_t.

    Args:
        rewards: One a step.
        values: One a step.
        episode_lengths: Lengths in order. None, or lengths that do not add up to the number of
            steps, make every step its own episode; they are not rejected. Flat advantages in a run
            are usually this.
        gamma: Discount factor.
        lam: Trace decay.

    Returns:
        Advantages and returns, one a step.

    Raises:
        ValueError: If there are not as many values as rewards.

    Source: Schulman et al. 2016, arXiv 1506.02438, eq. 16; boundary handling as the reference has it.
    """
    if len(rewards) != len(values):
        raise ValueError(f"{len(rewards)} rewards but {len(values)} values: every step needs one of each")
    steps = len(rewards)
    if episode_lengths is None or sum(episode_lengths) != steps or any(n < 0 for n in episode_lengths):
        episode_lengths = [1] * steps
    advantages = [0.0] * steps
    end = 0
    for length in episode_lengths:
        start, end = end, end + length
        advantage = next_value = 0.0
        for t in range(end - 1, start - 1, -1):
            delta = rewards[t] + gamma * next_value - values[t]
            advantage = delta + gamma * lam * advantage
            advantages[t] = advantage
            next_value = values[t]
    return advantages, [advantage + value for advantage, value in zip(advantages, values, strict=True)]
