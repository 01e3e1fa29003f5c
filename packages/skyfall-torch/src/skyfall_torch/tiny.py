"""A small language model and its tokenizer, built in code: nothing is downloaded.

For examples, tests and first steps. The model is a randomly initialized Llama; the tokenizer is
byte-level, with the three pairs that every large vocabulary also joins in JSON (`{"`, `":`, `"}`).
Equal options and seeds give equal weights.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from skyfall_core.errors import ConfigError, suggestion
from skyfall_torch.option_types import check_types
from skyfall_torch.randomness import OwnRandomness

__all__ = ["TinyConfig", "tiny_model", "tiny_tokenizer"]

_JOINED = (("{", '"'), ('"', ":"), ('"', "}"))


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Sizes of the tiny model.

    Attributes:
        hidden_size: Width; divisible by `heads`.
        layers: Decoder layers.
        heads: Attention heads.
        context: Longest prompt plus response, in tokens.
        attention_dropout: Dropout inside attention while training.
        seed: Seeds the initial weights.
    """

    hidden_size: int = 64
    layers: int = 2
    heads: int = 4
    context: int = 512
    attention_dropout: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        if min(self.hidden_size, self.layers, self.heads, self.context) < 1 or self.hidden_size % self.heads:
            raise ConfigError(f"tiny: {self}: sizes must be positive and hidden_size divisible by heads")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "TinyConfig":
        """A configuration from a mapping, as documents and checkpoints hold it.

        Raises:
            ConfigError: If an option is unknown or a size cannot be.
        """
        for name in options:
            if name not in cls.__dataclass_fields__:
                raise ConfigError(
                    f"tiny.{name}: no such option; {suggestion(name, cls.__dataclass_fields__)}"
                )
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer that encodes any text, with `<pad>`, `<eos>`, `<think>` and `</think>`."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in _JOINED)]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=list(_JOINED)))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<pad>", "<eos>", "<think>", "</think>"])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call] # Transformers leaves it untyped
        tokenizer_object=core,
        pad_token="<pad>",  # noqa: S106 - a vocabulary entry
        eos_token="<eos>",  # noqa: S106
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def tiny_model(config: TinyConfig | None = None, vocabulary_size: int | None = None) -> LlamaForCausalLM:
    """A randomly initialized Llama in float32; the process's generators are left as they were.

    Args:
        config: Its sizes and seed.
        vocabulary_size: Entries of the vocabulary; that of `tiny_tokenizer` when None.
    """
    config = config or TinyConfig()
    llama = LlamaConfig(
        vocab_size=vocabulary_size or len(tiny_tokenizer()),
        hidden_size=config.hidden_size,
        intermediate_size=4 * config.hidden_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        max_position_embeddings=config.context,
        attention_dropout=config.attention_dropout,
        # Unit gain: with Transformers' small default a random model hardly sees what stands before
        # its last token, and all of its first learning goes into answers that ignore the prompt.
        initializer_range=config.hidden_size**-0.5,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with OwnRandomness(config.seed).active(), torch.device("cpu"):
        return LlamaForCausalLM(llama)
