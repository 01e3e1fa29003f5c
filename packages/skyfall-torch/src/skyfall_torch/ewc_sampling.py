"""Which experience the Fisher information is estimated on: a draw stratified by reward band.

The bands make the estimate reward-weighted. What the policy did when things went well is drawn more
often than its share of the experience, so the weights behind it are the ones that get protected.
Plain Python: no tensor is needed to choose.
"""

import math
import random
from collections.abc import Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any

__all__ = ["DEFAULT_SAMPLE_MIX", "reward_band", "select_fisher_samples"]

SOLVED_REWARD = 0.9

DEFAULT_SAMPLE_MIX: Mapping[str, float] = MappingProxyType(
    {"solved": 0.4, "positive_progress": 0.3, "valid_neutral": 0.2, "random": 0.1}
)
"""Share of the sample budget each reward band is entitled to."""


def reward_band(reward: float) -> str:
    """The band a reward falls into.

    Args:
        reward: A finite reward.

    Returns:
        `solved` from 0.9 on, `positive_progress` between 0 and 0.9, `valid_neutral` at 0 and `random`
        below (the reference's name for what earned less than doing nothing).

    Raises:
        ValueError: If the reward is not a finite number.
    """
    if not math.isfinite(reward):
        raise ValueError(f"reward {reward!r} belongs to no band; the Fisher draw needs finite rewards")
    if reward >= SOLVED_REWARD:
        return "solved"
    if reward > 0:
        return "positive_progress"
    return "valid_neutral" if reward == 0 else "random"


def select_fisher_samples(
    pairs: Sequence[tuple[Any, Any]],
    rewards: Sequence[float],
    *,
    max_samples: int,
    mix: Mapping[str, float] = DEFAULT_SAMPLE_MIX,
    rng: random.Random | None = None,
) -> list[tuple[Any, Any]]:
    """Draws a fixed budget of samples, banded by reward.

    Each band of `mix`, in the order of `DEFAULT_SAMPLE_MIX`, gives `round(max_samples · share)` samples,
    at least one, at most what it holds, without replacement. The rest of the budget comes from the
    whole pool with replacement, so in a pool smaller than the budget samples repeat, and a repeated
    sample counts as often as it was drawn. A band that `mix` leaves out is met only in that rest.

    Args:
        pairs: The pool, such as prompt and response.
        rewards: One a pair.
        max_samples: The budget, at least 1.
        mix: Share of the budget by band, each from 0 to 1.
        rng: Source of the draw; None draws differently every time.

    Returns:
        Exactly `max_samples` pairs, or none when the pool is empty.

    Raises:
        ValueError: For a budget below 1, a reward that is not finite, counts that differ, or a mix with
            an unknown band or a share outside [0, 1].

    Source: the reference's stratified draw, duplication included.
    """
    _check_draw(pairs, rewards, max_samples, mix)
    if not pairs:
        return []
    draw = rng if rng is not None else random.Random()  # noqa: S311 - a statistical draw, not a secret
    bands: dict[str, list[tuple[Any, Any]]] = {name: [] for name in DEFAULT_SAMPLE_MIX}
    for pair, reward in zip(pairs, rewards, strict=True):
        bands[reward_band(reward)].append(pair)
    chosen: list[tuple[Any, Any]] = []
    for name, band in bands.items():
        if name in mix:
            quota = max(1, round(max_samples * mix[name]))
            # Four bands of at least one each may ask for more than a budget below four.
            chosen += draw.sample(band, min(quota, len(band), max_samples - len(chosen)))
    return chosen + draw.choices(pairs, k=max_samples - len(chosen))


def _check_draw(
    pairs: Sequence[Any], rewards: Sequence[float], max_samples: int, mix: Mapping[str, float]
) -> None:
    if max_samples < 1:
        raise ValueError(f"max_samples is {max_samples!r}; a Fisher estimate needs at least 1 sample")
    if len(pairs) != len(rewards):
        raise ValueError(f"{len(pairs)} samples but {len(rewards)} rewards: every sample needs one")
    check_mix(mix)


def check_mix(mix: Mapping[str, float]) -> None:
    """Refuses a sample mix that names an unknown band or a share that is none.

    Args:
        mix: Share of the budget by band.

    Raises:
        ValueError: Naming the band or the share.
    """
    for band, share in mix.items():
        if band not in DEFAULT_SAMPLE_MIX:
            raise ValueError(f"sample mix names {band!r}; the bands are {list(DEFAULT_SAMPLE_MIX)}")
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share <= 1:
            raise ValueError(f"sample mix gives {band!r} the share {share!r}; a share is from 0 to 1")
