"""Shrink and perturb: at a shift, scale the weights down and add a little of a fresh initialization."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["shrink_and_perturb"]


@torch.no_grad()
def shrink_and_perturb(
    parameters: Sequence[nn.Parameter], fresh: Sequence[Tensor], *, shrink: float, perturb: float
) -> None:
    """θ ← shrink·θ + perturb·θ_fresh, in place.

    Args:
        parameters: θ.
        fresh: Newly drawn initial weights of the same shapes.
        shrink: What is kept, from 0 to 1.
        perturb: How much of the fresh weights is added, not negative.

    Raises:
        ValueError: If a factor is out of range.

    Source: Ash and Adams 2020, arXiv 1910.08475, section 4.
    """
    if not 0 <= shrink <= 1 or perturb < 0:
        raise ValueError(f"shrink {shrink!r}, perturb {perturb!r}: need 0 <= shrink <= 1 and perturb >= 0")
    for parameter, other in zip(parameters, fresh, strict=True):
        parameter.mul_(shrink).add_(other, alpha=perturb)
