"""The empirical Fisher information: per-sample squared gradients of the log-likelihood, averaged.

A backward pass over a batch gives the sum of the samples' gradients, which cannot be squared sample
by sample afterwards. Here the input and output gradient of every leaf module are caught during one
batched pass, and the per-sample gradients of its own parameters follow from those two alone. What
they add up to is compared with the ordinary gradient; a model the trick does not fit is looped over,
one sample at a time, and the answer is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["FisherDropout", "clip_and_normalize", "fisher_mode", "loop_fisher", "mean_squared_gradients"]

CHUNK_BYTES = 256 * 2**20
MAX_CHUNK = 32

LogLikelihood = Callable[[Sequence[int]], Tensor]
"""Indices of samples to their log-likelihoods `(samples,)`, differentiable."""


class FisherDropout(str, Enum):
    """Whether the Fisher pass is free of dropout.

    `DISABLED` runs it in evaluation mode, so that two estimates over the same samples are equal.
    `REFERENCE` runs it in training mode with `nn.Dropout` modules switched off, which leaves the
    dropout inside scaled-dot-product attention on: the estimate is then a draw.
    """

    DISABLED = "disabled"
    REFERENCE = "reference"


@contextmanager
def fisher_mode(modules: Sequence[nn.Module], dropout: FisherDropout) -> Iterator[None]:
    """Puts modules into the mode of the Fisher pass and every one of them back afterwards.

    Args:
        modules: Root modules of the policy.
        dropout: Which mode.
    """
    before = [(module, module.training) for root in modules for module in root.modules()]
    try:
        for root in modules:
            root.train(dropout is FisherDropout.REFERENCE)
            for module in root.modules():
                if isinstance(module, nn.Dropout):
                    module.eval()
        yield
    finally:
        for module, training in before:
            module.training = training


def clip_and_normalize(fisher: Tensor, clip: float) -> Tensor:
    """One tensor's averaged squared gradients, bounded and scaled to at most 1.

    Args:
        fisher: Squared gradients, any shape, not negative.
        clip: Upper bound applied before scaling, positive.

    Returns:
        `min(fisher, clip)` divided by its own maximum; a tensor of zeros stays one.
    """
    clipped = fisher.clamp(max=clip)
    peak = clipped.max() if clipped.numel() else clipped.new_zeros(())
    return clipped / peak if peak > 0 else clipped


def loop_fisher(
    parameters: Sequence[nn.Parameter], log_likelihood: LogLikelihood, counts: Sequence[int]
) -> list[Tensor]:
    """Σ_i c_i·(∂ log p_i / ∂θ)² / Σ_i c_i, one backward pass a sample.

    Args:
        parameters: What to differentiate by.
        log_likelihood: Of the samples with given indices.
        counts: How often each sample counts; index i is sample i.

    Returns:
        One tensor a parameter, its shape, at least float32.
    """
    totals = [torch.zeros_like(p, dtype=_wide(p.dtype)) for p in parameters]
    for index, count in enumerate(counts):
        gradients = torch.autograd.grad(log_likelihood([index]).sum(), parameters, allow_unused=True)
        for total, gradient in zip(totals, gradients, strict=True):
            if gradient is not None:
                total.addcmul_(gradient.to(total.dtype), gradient.to(total.dtype), value=count)
    return [total / sum(counts) for total in totals]


def mean_squared_gradients(
    parameters: Sequence[nn.Parameter],
    modules: Sequence[nn.Module],
    log_likelihood: LogLikelihood,
    counts: Sequence[int],
) -> list[Tensor]:
    """The same as `loop_fisher`, batched.

    Args:
        parameters: What to differentiate by.
        modules: Root modules that own them.
        log_likelihood: Of the samples with given indices; samples must not depend on one another.
        counts: How often each sample counts.

    Returns:
        One tensor a parameter, its shape, at least float32.
    """
    totals = [torch.zeros_like(p, dtype=_wide(p.dtype)) for p in parameters]
    per_sample_bytes = sum(p.numel() * p.element_size() for p in parameters)
    chunk = max(1, min(MAX_CHUNK, CHUNK_BYTES // max(1, per_sample_bytes)))
    for start in range(0, len(counts), chunk):
        indices = range(start, min(start + chunk, len(counts)))
        per_sample = _per_sample_gradients(parameters, modules, log_likelihood, indices)
        # The check costs several passes over all gradients; what holds for the first chunk holds for all.
        if per_sample is None or not (start or _explained(per_sample)):
            return loop_fisher(parameters, log_likelihood, counts)
        for total, (gradient, _) in zip(totals, per_sample, strict=True):
            if gradient is not None:
                weights = torch.tensor(counts[start : indices.stop], dtype=total.dtype, device=total.device)
                total.add_(torch.einsum("b,b...->...", weights, gradient.to(total.dtype).square()))
    return [total / sum(counts) for total in totals]


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _per_sample_gradients(
    parameters: Sequence[nn.Parameter],
    modules: Sequence[nn.Module],
    log_likelihood: LogLikelihood,
    indices: range,
) -> list[tuple[Tensor | None, Tensor | None]] | None:
    """By parameter: caught gradients `(samples, *shape)` and the ordinary one; None if nothing was caught."""
    catcher = _GradientCatcher(parameters, len(indices))
    with catcher.attached(modules):
        total = log_likelihood(list(indices)).sum()
        summed = torch.autograd.grad(total, parameters, allow_unused=True)
    if catcher.failed:
        return None
    return [(catcher.gradients.get(id(p)), ordinary) for p, ordinary in zip(parameters, summed, strict=True)]


def _explained(gradients: Sequence[tuple[Tensor | None, Tensor | None]]) -> bool:
    return all(_agree(caught, ordinary) for caught, ordinary in gradients)


def _agree(per_sample: Tensor | None, summed: Tensor | None) -> bool:
    """Whether caught gradients explain the ordinary one, within what adding in another order changes."""
    if summed is None:
        return per_sample is None
    if per_sample is None:
        return not summed.any()
    scale = per_sample.abs().sum(0).max().item()
    tolerance = torch.finfo(summed.dtype).eps * 100 * max(scale, 1e-30)
    return bool((per_sample.sum(0) - summed).abs().max() <= tolerance)


class _GradientCatcher:
    """Collects per-sample gradients of leaf modules' own parameters during one backward pass."""

    def __init__(self, parameters: Sequence[nn.Parameter], batch: int) -> None:
        self.wanted = {id(p) for p in parameters}
        self.batch = batch
        self.gradients: dict[int, Tensor] = {}
        self.failed = False
        self.probing = False

    @contextmanager
    def attached(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        """Hooks every module that directly owns a wanted parameter, for the duration."""
        owners = {module for root in modules for module in root.modules() if self._own(module)}
        handles = [owner.register_forward_hook(self._on_forward, with_kwargs=True) for owner in owners]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _own(self, module: nn.Module) -> dict[str, nn.Parameter]:
        return {n: p for n, p in module.named_parameters(recurse=False) if id(p) in self.wanted}

    def _on_forward(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self.probing:
            return
        fits = isinstance(output, Tensor) and len(args) == 1 and isinstance(args[0], Tensor) and not kwargs
        if not (fits and args[0].dim() and len(args[0]) == len(output) == self.batch):
            self.failed = True
        elif output.requires_grad:
            source = args[0].detach()
            output.register_hook(lambda gradient: self._on_backward(module, source, gradient.detach()))

    def _on_backward(self, module: nn.Module, source: Tensor, gradient: Tensor) -> None:
        self.probing = True
        for name, parameter in self._own(module).items():
            found = _local_gradient(module, name, source, gradient)
            known = self.gradients.get(id(parameter))
            if found is None:
                self.failed = True
            else:
                # A parameter used twice (tied embeddings) must be added up before it is squared.
                self.gradients[id(parameter)] = found if known is None else known + found
        self.probing = False


def _local_gradient(module: nn.Module, name: str, source: Tensor, gradient: Tensor) -> Tensor | None:
    """Per-sample gradient of `module.name` from the module's input and output gradient, where known."""
    if type(module) is nn.Linear and name == "weight":
        return torch.einsum("b...o,b...i->boi", gradient, source.to(gradient.dtype))
    if type(module) is nn.Embedding:
        return _embedding_gradient(module, source, gradient)
    if getattr(module, name).shape == gradient.shape[-1:]:
        return _elementwise_gradient(module, name, source, gradient)
    return None


def _embedding_gradient(module: nn.Embedding, ids: Tensor, gradient: Tensor) -> Tensor:
    batch, width = len(ids), module.embedding_dim
    if module.padding_idx is not None:
        gradient = gradient * (ids != module.padding_idx).unsqueeze(-1)
    first_rows = module.num_embeddings * torch.arange(batch, device=ids.device)
    rows = (ids.reshape(batch, -1) + first_rows[:, None]).reshape(-1)
    table = gradient.new_zeros(batch * module.num_embeddings, width)
    return table.index_add_(0, rows, gradient.reshape(-1, width)).view(batch, -1, width)


def _elementwise_gradient(module: nn.Module, name: str, source: Tensor, gradient: Tensor) -> Tensor:
    """For a vector that scales or shifts the output feature by feature: biases, normalisation weights.

    The output is then affine in it, so the difference between ones and zeros is the derivative.
    """
    vector = getattr(module, name)
    with torch.no_grad():
        at = [
            torch.func.functional_call(module, {name: torch.full_like(vector, v)}, source) for v in (1.0, 0.0)
        ]
    slope: Tensor = (at[0] - at[1]).to(gradient.dtype)
    return (gradient * slope).reshape(len(gradient), -1, len(vector)).sum(1)
