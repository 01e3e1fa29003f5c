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
    "PenaltyGradient",
    "Snapshot",
    "accumulate_online",
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


class PenaltyGradient:
    """Adds the penalty's gradient to `.grad`, closed form, a handful of operations whatever the model.

    Two flat buffers are kept beside the snapshots, so that no step looks at a tensor one by one.

    Args:
        parameters: The protected parameters, in the order the snapshots were flattened in.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self._weights: list[Tensor] = list(parameters)
        self._offset = torch.zeros_like(flatten(self._parameters))
        self._pull = torch.zeros_like(self._offset)
        self._offsets, self._pulls = self._views(self._offset), self._views(self._pull)

    def _views(self, flat: Tensor) -> list[Tensor]:
        pieces = torch.split(flat, [p.numel() for p in self._parameters])
        return [piece.view(p.shape) for piece, p in zip(pieces, self._parameters, strict=True)]

    @torch.no_grad()
    def add(self, snapshots: Sequence[Snapshot], coeff: float) -> Tensor:
        """Adds λ·Σ F⊙(θ − θ*) to the gradients, creating those that are missing.

        Args:
            snapshots: At least one; every one counts fully.
            coeff: λ, not negative.

        Returns:
            The penalty, detached scalar.
        """
        penalty = self._offset.new_zeros(())
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        if len(gradients) < len(self._parameters):
            for parameter in self._parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            gradients = [p.grad for p in self._parameters if p.grad is not None]
        for snapshot in snapshots:
            torch._foreach_copy_(self._offsets, self._weights)
            self._offset.sub_(snapshot.anchor)
            torch.mul(snapshot.fisher, self._offset, out=self._pull)
            penalty += torch.dot(self._pull, self._offset)
            torch._foreach_add_(gradients, self._pulls, alpha=coeff)
        return penalty.mul_(0.5 * coeff)
