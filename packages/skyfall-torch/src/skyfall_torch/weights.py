"""Copies of a policy's weights, and putting them in place for a while."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["snapshot", "temporary_weights"]


def snapshot(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Detached copies, in order."""
    return [parameter.detach().clone() for parameter in parameters]


@contextmanager
def temporary_weights(parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> Iterator[None]:
    """`values` in place inside the block; the current ones come back bit for bit behind it."""
    current = snapshot(parameters)
    try:
        _assign(parameters, values)
        yield
    finally:
        _assign(parameters, current)


@torch.no_grad()
def _assign(parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)
