"""What logits and hidden states say about a padded batch of text samples, as pure functions.

Shapes: B samples, T response tokens; logits and states are those of the T + 1 kept positions.
"""

import torch
from torch import Tensor
from torch.nn import functional

from skyfall_torch.collation import IGNORED, TextBatch
from skyfall_torch.options import ValuePosition

__all__ = ["critic_states", "entropies_of", "response_logprobs", "tempered"]


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """The logits that are sampled from, in full precision; as they are for temperature 0."""
    if logits.dtype in {torch.float16, torch.bfloat16}:
        logits = logits.float()
    return logits if temperature in {0.0, 1.0} else logits / temperature


def response_logprobs(logits: Tensor, batch: TextBatch) -> Tensor:
    """(B, T) log-probabilities of the response's tokens; 0 where there is none.

    Args:
        logits: (B, T + 1, vocabulary).
        batch: The batch they are of.
    """
    # Flat, because slicing the last column off first would copy every logit.
    losses = functional.cross_entropy(
        logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return -losses.view(batch.targets.shape)[:, :-1]


def critic_states(hidden: Tensor, batch: TextBatch, position: ValuePosition) -> Tensor:
    """(B, hidden) the states the critic reads, out of (B, T + 1, hidden)."""
    if position is ValuePosition.PROMPT_END:
        return hidden[:, 0]
    return hidden[torch.arange(len(batch.lengths), device=hidden.device), batch.lengths]


def entropies_of(logits: Tensor) -> Tensor:
    """(…,) entropy in nats of the distributions that logits (…, vocabulary) describe."""
    logprobs = logits.log_softmax(dim=-1)
    return -(logprobs.exp() * logprobs).sum(dim=-1)
