"""What EWC holds on to and how strongly: protected parameters, snapshots and the quadratic penalty.

A snapshot is two flat vectors, the weights and their Fisher information, so the penalty of any
number of tensors is a handful of vector operations and a snapshot costs twice the protected
parameters, no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

__all__ = [
    "EWCMode",
    "ParameterScope",
    "Snapshot",
    "accumulate_online",
    "add_penalty_gradient",
    "build_parameter_filter",
    "flatten",
    "penalty_gradient",
]

LORA_MARK = "lora_"
VALUE_HEAD_MARK = "v_head"


class EWCMode(str, Enum):
    """How several configurations are remembered.

    `ONLINE` keeps one running Fisher and the newest weights. `MULTI_SNAPSHOT` keeps a first-in
    first-out row of snapshots whose penalties add up, each with the full strength.
    """

    ONLINE = "online"
    MULTI_SNAPSHOT = "multi_snapshot"


class ParameterScope(str, Enum):
    """Which parameters the penalty covers, by the names PEFT and TRL give them.

    `ALL` is for full fine-tunes and small networks, which use neither.
    """

    LORA_ONLY = "lora_only"
    VALUE_HEAD_ONLY = "value_head_only"
    LORA_AND_VALUE_HEAD = "lora_and_value_head"
    ALL = "all"


_MARKS: dict[ParameterScope, tuple[str, ...]] = {
    ParameterScope.LORA_ONLY: (LORA_MARK,),
    ParameterScope.VALUE_HEAD_ONLY: (VALUE_HEAD_MARK,),
    ParameterScope.LORA_AND_VALUE_HEAD: (LORA_MARK, VALUE_HEAD_MARK),
    ParameterScope.ALL: ("",),
}


def build_parameter_filter(scope: ParameterScope | str) -> Callable[[str], bool]:
    """A predicate on parameter names: whether EWC protects the parameter.

    Args:
        scope: The scope or its name.

    Returns:
        True for names that contain `lora_`, `v_head`, either, or for every name.

    Raises:
        ValueError: If there is no such scope.
    """
    marks = _MARKS[ParameterScope(scope)]

    def protects(name: str) -> bool:
        return any(mark in name for mark in marks)

    return protects


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Weights at the end of a configuration and how much each of them mattered there.

    Attributes:
        anchor: The weights θ*, flat, `(parameters,)`.
        fisher: Their Fisher information F, flat, same length.
    """

    anchor: Tensor
    fisher: Tensor

    def __post_init__(self) -> None:
        if self.anchor.shape != self.fisher.shape or self.anchor.dim() != 1:
            raise ValueError(
                f"anchor {tuple(self.anchor.shape)} and Fisher {tuple(self.fisher.shape)} must be flat "
                "vectors of one length"
            )


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """One vector out of many tensors, in order, in their widest dtype; a copy without gradient."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def accumulate_online(old: Snapshot | None, new: Snapshot, fisher_gamma: float) -> Snapshot:
    """The running estimate after one more configuration.

    F ← γ_F·F + F_new without renormalisation; the anchor is the new one.

    Args:
        old: What was held so far, or None.
        new: The configuration that just ended.
        fisher_gamma: Decay γ_F of the older information; not the discount of returns.

    Returns:
        The snapshot to hold from now on.

    Source: Schwarz et al. 2018, arXiv 1805.06370, section 3.2, as the reference applies it.
    """
    if old is None:
        return new
    return Snapshot(anchor=new.anchor, fisher=old.fisher * fisher_gamma + new.fisher)


def penalty_gradient(weights: Tensor, snapshots: Sequence[Snapshot], coeff: float) -> tuple[Tensor, Tensor]:
    """The penalty ½·λ·Σ F⊙(θ − θ*)² summed over snapshots, and its gradient λ·Σ F⊙(θ − θ*).

    Args:
        weights: θ, flat, `(parameters,)`.
        snapshots: At least one. Every one counts fully: three of the same make an effective 3λ.
        coeff: λ, not negative.

    Returns:
        The penalty (scalar) and its gradient `(parameters,)`.

    Source: Kirkpatrick et al. 2017, doi 10.1073/pnas.1611835114, eq. 3.
    """
    gradient = torch.zeros_like(weights)
    penalty = weights.new_zeros(())
    for snapshot in snapshots:
        offset = weights - snapshot.anchor
        pull = snapshot.fisher * offset
        penalty += torch.dot(pull, offset)
        gradient += pull
    return penalty.mul_(0.5 * coeff), gradient.mul_(coeff)


def add_penalty_gradient(
    parameters: Sequence[torch.nn.Parameter], snapshots: Sequence[Snapshot], coeff: float
) -> Tensor:
    """Adds the penalty's gradient to `.grad`, closed form, fused over all tensors.

    Args:
        parameters: The protected parameters, in the order the snapshots were flattened in.
        snapshots: At least one.
        coeff: λ, not negative.

    Returns:
        The penalty, detached scalar.
    """
    penalty, gradient = penalty_gradient(flatten(parameters), snapshots, coeff)
    pieces = [
        piece.view_as(parameter).to(parameter.dtype)
        for piece, parameter in zip(
            torch.split(gradient, [p.numel() for p in parameters]), parameters, strict=True
        )
    ]
    held = [(p.grad, piece) for p, piece in zip(parameters, pieces, strict=True) if p.grad is not None]
    if held:
        torch._foreach_add_([grad for grad, _ in held], [piece for _, piece in held])
    if len(held) < len(pieces):
        for parameter, piece in zip(parameters, pieces, strict=True):
            if parameter.grad is None:
                parameter.grad = piece.clone()
    return penalty
