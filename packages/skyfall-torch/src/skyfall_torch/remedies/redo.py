"""ReDo: hidden units that hardly ever respond get fresh incoming weights and no say downstream."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["dormant_share", "recycle_dormant_units", "unit_scores"]


def dormant_share(activations: Sequence[Tensor], threshold: float = 0.025) -> float:
    """Share of hidden units that hardly ever respond.

    A unit's score is its mean absolute activation over that mean across its layer; a unit is dormant
    when the score is at most `threshold`.

    Args:
        activations: `(B, units)` a layer, from `hidden_activations`.
        threshold: τ, not negative.

    Returns:
        A number from 0 to 1.

    Source: Sokar et al. 2023, arXiv 2302.12902, definition 3.1.
    """
    scores = [unit_scores(layer) for layer in activations]
    return float(torch.cat(scores).le(threshold).double().mean())


def unit_scores(activation: Tensor) -> Tensor:
    """Each unit's mean absolute activation `(units,)`, relative to the layer's mean; zero in a dead layer."""
    strength = activation.abs().mean(0)
    return strength / strength.mean().clamp(min=torch.finfo(strength.dtype).tiny)


@torch.no_grad()
def recycle_dormant_units(
    layers: Sequence[nn.Linear],
    followers: Sequence[Sequence[nn.Linear]],
    activations: Sequence[Tensor],
    *,
    threshold: float,
    optimizer_state: Mapping[Any, dict[str, Any]] | None = None,
) -> int:
    """Re-initialize the dormant units of hidden layers, in place.

    A unit's incoming weights are drawn anew from torch's generator with the variance 2 / inputs, and its
    bias is zero; its outgoing weights become zero, so the network's output does not change. The optimizer's
    moments of these weights are zeroed with them.

    Args:
        layers: Hidden layers.
        followers: For each, the layers that read it.
        activations: For each, `(B, units)` responses on recent experience.
        threshold: τ, the largest score of a dormant unit.
        optimizer_state: `optimizer.state`, by parameter.

    Returns:
        How many units were recycled.

    Source: Sokar et al. 2023, arXiv 2302.12902, algorithm 1.
    """
    recycled = 0
    for layer, readers, activation in zip(layers, followers, activations, strict=True):
        dormant = unit_scores(activation) <= threshold
        if not bool(dormant.any()):
            continue
        recycled += int(dormant.sum())
        bound = (6.0 / layer.in_features) ** 0.5
        layer.weight[dormant] = torch.empty_like(layer.weight).uniform_(-bound, bound)[dormant]
        layer.bias[dormant] = 0.0
        for reader in readers:
            reader.weight[:, dormant] = 0.0
        if optimizer_state is not None:
            _forget_moments(optimizer_state, layer, readers, dormant)
    return recycled


def _forget_moments(
    state: Mapping[Any, dict[str, Any]], layer: nn.Linear, readers: Sequence[nn.Linear], dormant: Tensor
) -> None:
    for parameter in (layer.weight, layer.bias):
        for moment in _moments(state, parameter):
            moment[dormant] = 0.0
    for reader in readers:
        for moment in _moments(state, reader.weight):
            moment[:, dormant] = 0.0


def _moments(state: Mapping[Any, dict[str, Any]], parameter: Tensor) -> list[Tensor]:
    known = state.get(parameter, {})
    return [value for value in known.values() if isinstance(value, Tensor) and value.shape == parameter.shape]
