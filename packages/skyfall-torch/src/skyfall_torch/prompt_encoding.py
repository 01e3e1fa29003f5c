"""Prompts as token ids that leave room for a response."""

import logging
from collections.abc import Sequence
from typing import Any

from skyfall_core.errors import ConfigError
from skyfall_torch.options import SamplingConfig
from skyfall_torch.prompts import prompt_ids

__all__ = ["PromptEncoder"]

_LOGGER = logging.getLogger(__name__)


class PromptEncoder:
    """Tokenizes what a prompt builder built, and cuts what the context has no room for.

    Args:
        model_config: The model's; says how long its context is, or nothing where it has no limit.
        tokenizer: The model's tokenizer.
        sampling: How long a response may get, and the text it is made to begin with.
        pad_id: Stands for a prompt without any token.

    Attributes:
        cut: Prompts so far that were too long and lost their beginning.

    Raises:
        ConfigError: If the context has no room for a prompt beside a full response.
    """

    def __init__(self, model_config: Any, tokenizer: Any, sampling: SamplingConfig, pad_id: int) -> None:
        self.cut = 0
        self._tokenizer = tokenizer
        self._room = _room(model_config, sampling.max_new_tokens)
        prefix = sampling.response_prefix
        self._prefix: Sequence[int] = tokenizer.encode(prefix, add_special_tokens=False) if prefix else []
        self._pad_id = pad_id

    def ids(self, built: str | list[int]) -> list[int]:
        """At least one token id of what a builder returned, with the response's prefix behind it."""
        ids = [*prompt_ids(built, self._tokenizer), *self._prefix] or [self._pad_id]
        if self._room is None or len(ids) <= self._room:
            return ids
        self.cut += 1
        if self.cut.bit_count() == 1:  # the first, second, fourth, eighth…
            _LOGGER.warning(
                "prompt of %d tokens cut to its last %d; %d prompts cut so far",
                len(ids),
                self._room,
                self.cut,
            )
        return ids[-self._room :]


def _room(model_config: Any, max_new_tokens: int) -> int | None:
    """Longest prompt the context takes beside a full response; None where the model has no limit."""
    context = getattr(model_config, "max_position_embeddings", None)
    if not isinstance(context, int):
        return None
    if context - max_new_tokens < 1:
        raise ConfigError(
            f"max_new_tokens {max_new_tokens!r}: the model's context of {context} tokens "
            "leaves no room for a prompt; ask for fewer"
        )
    return context - max_new_tokens
