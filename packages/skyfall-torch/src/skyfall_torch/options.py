"""What a language policy can be told: how it samples, and what `language_policy` builds it from.

Plain data, checked when it is made, so that a document with a wrong option fails before a model loads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from os import PathLike
from typing import Any

from skyfall_core.errors import ConfigError, suggestion
from skyfall_torch.option_types import check_types

__all__ = ["LanguagePolicyConfig", "SamplingConfig", "ValuePosition", "checked_options", "split_options"]

DTYPES = ("float32", "bfloat16", "float16", "float64")


class ValuePosition(str, Enum):
    """Which token's hidden state the critic reads when a sample is evaluated.

    `SEQUENCE_END` is the reference: the last token of prompt and response together, so the critic has
    seen the action it is a baseline for. `PROMPT_END` reads the last token before the response, which
    is the textbook's V(s).
    """

    SEQUENCE_END = "sequence_end"
    PROMPT_END = "prompt_end"


def checked_options(cls: type, options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """`options` as keyword arguments for the dataclass `cls`.

    Args:
        cls: A dataclass whose fields are the known options.
        options: What was asked for.
        where: The place to name in an error.

    Raises:
        ConfigError: If one is unknown; the nearest known name is given.
    """
    known = [field.name for field in fields(cls)]
    for name in options:
        if name not in known:
            raise ConfigError(f"{where}: unknown option {name!r}; {suggestion(name, known)}")
    return dict(options)


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How responses are drawn.

    Attributes:
        max_new_tokens: Longest response.
        temperature: Divides the logits; 0 takes the likeliest token.
        top_p: Smallest probability mass kept; 1 keeps all.
        top_k: Likeliest tokens kept; 0 keeps all.
        seed: Seeds the policy's own generator; None takes entropy from the system.
        response_prefix: Text that every response is made to begin with. It belongs to the action but
            not to what is reinforced, since the model did not choose it.
        response_suffix: Text put behind every response before it is read as an action. Like the prefix
            it is no choice of the model's, and the model is not shown it.
    """

    max_new_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = 0
    response_prefix: str = ""
    response_suffix: str = ""

    def __post_init__(self) -> None:
        check_types(self)
        if self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens {self.max_new_tokens!r}: at least 1 token must be generated")
        if self.temperature < 0:
            raise ConfigError(
                f"temperature {self.temperature!r}: use 0 for the likeliest token, else a positive one"
            )
        if not 0 < self.top_p <= 1 or self.top_k < 0:
            raise ConfigError(
                f"top_p {self.top_p!r}, top_k {self.top_k!r}: need 0 < top_p <= 1 and top_k >= 0"
            )


@dataclass(frozen=True, slots=True)
class LanguagePolicyConfig:
    """What `language_policy` builds from.

    Attributes:
        model: A hub name, a local path, a checkpoint directory, or `tiny`.
        tokenizer: Name or path of another tokenizer than the model's own.
        device: `auto` (CUDA, then MPS, then CPU) or a torch device.
        dtype: Precision of the weights.
        lora: `peft.LoraConfig` options; None trains every weight.
        tiny: `TinyConfig` options for the model `tiny`.
        max_new_tokens: Longest response.
        temperature: Divides the logits; 0 takes the likeliest token.
        top_p: Smallest probability mass kept.
        top_k: Likeliest tokens kept; 0 keeps all.
        seed: Seeds sampling, a new critic and a new adapter.
        response_prefix: Text that every response is made to begin with, such as `{"`.
        response_suffix: Text put behind every response before it is read as an action, such as `"}`.
        system_prompt: Instructions before every observation.
        prompt: `package.module:function` of a prompt builder that replaces the default.
        value_position: Which hidden state the critic reads.
        capture_effective_rank: Measure the representation's effective rank on every action.
        report_entropies: Report the entropy of every token's distribution, for an entropy bonus.
        gradient_checkpointing: Recompute activations backwards instead of keeping them.
    """

    model: str | PathLike[str]
    tokenizer: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    lora: Mapping[str, Any] | None = None
    tiny: Mapping[str, Any] | None = None
    max_new_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = 0
    response_prefix: str = ""
    response_suffix: str = ""
    system_prompt: str | None = None
    prompt: str | None = None
    value_position: ValuePosition | str = ValuePosition.SEQUENCE_END
    capture_effective_rank: bool = False
    report_entropies: bool = False
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype {self.dtype!r}: {suggestion(self.dtype, DTYPES)}")
        positions = [position.value for position in ValuePosition]
        if self.value_position not in positions:
            position = str(self.value_position)
            raise ConfigError(f"value_position {position!r}: {suggestion(position, positions)}")
        if self.tiny is not None and str(self.model) != "tiny":
            raise ConfigError(f"tiny: given with model {str(self.model)!r}; its options need model 'tiny'")
        self.sampling()

    def sampling(self) -> SamplingConfig:
        """The part that says how responses are drawn."""
        return SamplingConfig(
            max_new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            response_prefix=self.response_prefix,
            response_suffix=self.response_suffix,
        )


def split_options(
    own: type, base: type, options: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Flat options sorted into those of a backend's own dataclass and those of PPO.

    Args:
        own: The backend's dataclass.
        base: PPO's.
        options: What was asked for.
        where: The place to name in an error.

    Returns:
        Keywords for the first, keywords for the second.

    Raises:
        ConfigError: If one is unknown to both; the nearest known name is given.
    """
    mine, theirs = ({field.name for field in fields(kind)} for kind in (own, base))
    for name in options:
        if name not in mine | theirs:
            raise ConfigError(f"{where}: unknown option {name!r}; {suggestion(name, mine | theirs)}")
    return (
        {name: value for name, value in options.items() if name in mine},
        {name: value for name, value in options.items() if name not in mine},
    )
