"""Drawing responses from a language model, all of a batch in one call."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import GenerationConfig

from skyfall_torch.options import SamplingConfig
from skyfall_torch.randomness import OwnRandomness
from skyfall_torch.vocabulary import Vocabulary

__all__ = ["generate_responses", "generation_config", "without_dropout"]


def generation_config(sampling: SamplingConfig, vocabulary: Vocabulary) -> GenerationConfig:
    """What Transformers has to be told to draw as `sampling` says."""
    drawn = sampling.temperature > 0
    how = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    return GenerationConfig(  # type: ignore[no-untyped-call] # Transformers leaves it untyped
        max_new_tokens=sampling.max_new_tokens,
        do_sample=drawn,
        pad_token_id=vocabulary.pad_id,
        eos_token_id=sorted(vocabulary.end_ids) or None,
        **(how if drawn else {}),
    )


def generate_responses(
    model: Any,
    prompts: Sequence[list[int]],
    how: GenerationConfig,
    vocabulary: Vocabulary,
    randomness: OwnRandomness,
) -> list[list[int]]:
    """One response a prompt, in order.

    Args:
        model: A causal language model of Transformers.
        prompts: Token ids, at least one prompt and one token each; padded on the left here.
        how: How to draw.
        vocabulary: What fills and what ends.
        randomness: Where the draws come from.

    Returns:
        Token ids up to the first end token, which belongs to its response.
    """
    width = max(map(len, prompts))
    padded = torch.tensor([[vocabulary.pad_id] * (width - len(ids)) + ids for ids in prompts])
    attended = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    device = next(model.parameters()).device
    with randomness.active():
        sequences = model.generate(
            input_ids=padded.to(device), attention_mask=attended.to(device), generation_config=how
        )
    return [vocabulary.until_end(row) for row in sequences[:, width:].tolist()]


@contextmanager
def without_dropout(model: Any) -> Iterator[None]:
    """Dropout off and no gradients inside, and back to what it was behind."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
