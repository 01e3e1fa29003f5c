"""L2-init: pull every weight towards where it started, so that the network stays able to learn.

This is what the reference's `kl_coeff` weights, so that option is L2-init under the reference's name.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["add_l2_init_gradient"]


@torch.no_grad()
def add_l2_init_gradient(
    parameters: Sequence[nn.Parameter], initial: Sequence[Tensor], coefficient: float
) -> Tensor:
    """Adds the gradient of coefficient · Σ (θ − θ₀)² to `.grad`, fused over tensors.

    Args:
        parameters: θ, whose `grad` is created where missing.
        initial: θ₀, in the same order.
        coefficient: The weight, not negative.

    Returns:
        The penalty, detached scalar.

    Source: Kumar, Marklund and Van Roy 2023, arXiv 2308.11958, eq. 1.
    """
    moved = torch._foreach_sub(list(parameters), list(initial))  # noqa: SLF001 - as torch's optimizers do
    gradients: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradients.append(parameter.grad)
    torch._foreach_add_(gradients, moved, alpha=2.0 * coefficient)
    norms = torch._foreach_norm(moved)  # noqa: SLF001 - see above
    return coefficient * torch.stack(norms).square().sum()
