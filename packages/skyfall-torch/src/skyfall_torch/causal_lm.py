"""One forward pass of a causal language model, with logits only where they are wanted.

Transformers' models differ in small ways: which positions the output layer can be restricted to,
whether positions are accepted, what scales the logits behind the output layer. The model is therefore
called whole, and the hidden states that the critic reads are taken at the input of its output layer,
which every model has.
"""

import inspect
from typing import Any

from torch import Tensor, nn

from skyfall_core.errors import ConfigError

__all__ = ["CausalLM", "hidden_size_of"]


class CausalLM:
    """Calls a model of Transformers, with or without a PEFT adapter, in one way for all kinds.

    Args:
        model: The model; shared, not copied.

    Raises:
        ConfigError: If it has no output layer over a vocabulary.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        accepted = inspect.signature(base.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_kept = "logits_to_keep" in accepted
        output_layer = model.get_output_embeddings()
        if not isinstance(output_layer, nn.Module):
            raise ConfigError(
                f"{type(base).__name__}: no output layer over a vocabulary; give a causal language model"
            )
        self._output_layer = output_layer

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, kept: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits and last hidden states at some columns of a batch.

        Args:
            input_ids: (B, S) token ids.
            attention_mask: (B, S) 1 on real tokens.
            position_ids: (B, S) positions of the real tokens in their row.
            kept: (K,) the columns wanted; all of them when None.

        Returns:
            (B, K, vocabulary) logits and (B, K, hidden) states.
        """
        options: dict[str, Any] = {"use_cache": False}
        if self._takes_positions:
            options["position_ids"] = position_ids
        if kept is not None and self._takes_kept:
            options["logits_to_keep"] = kept
        states: list[Tensor] = []
        handle = self._output_layer.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
        try:
            logits = self._model(input_ids=input_ids, attention_mask=attention_mask, **options).logits
        finally:
            handle.remove()
        hidden = states[0]
        if kept is not None and logits.shape[1] != len(kept):
            logits, hidden = logits[:, kept], hidden[:, kept]
        return logits, hidden

    def penultimate(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        """(B, S, hidden) activations that enter the last layer."""
        options: dict[str, Any] = {"position_ids": position_ids} if self._takes_positions else {}
        output = self._model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            output_hidden_states=True,
            use_cache=False,
            **options,
        )
        states: Tensor = output.hidden_states[-2]
        return states


def hidden_size_of(config: Any) -> int:
    """Width of what a model's output layer reads.

    Args:
        config: The model's configuration.

    Raises:
        ConfigError: If it names no width.
    """
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in ("word_embed_proj_dim", "hidden_size", "n_embd", "d_model"):
        size = getattr(text_config, name, None)
        if isinstance(size, int):
            return size
    raise ConfigError(
        f"model of type {getattr(config, 'model_type', '?')!r}: no hidden size in its configuration"
    )
