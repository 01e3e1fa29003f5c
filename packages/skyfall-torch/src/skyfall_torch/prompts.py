"""How an observation becomes a prompt.

A prompt builder is any function `(observation, tokenizer) -> str | list[int]`. Text is tokenized with
the tokenizer's own special tokens; ids are taken as they are. The default uses the tokenizer's chat
template where there is one and a plain two-line form otherwise.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["PromptBuilder", "bare_prompt", "chat_or_plain_prompt", "observation_text", "prompt_ids"]

PromptBuilder = Callable[[Any, Any], "str | list[int]"]


def observation_text(observation: Any) -> str:
    """An observation as text: a string is itself, anything else its JSON form.

    Arrays become lists; what JSON cannot express becomes its `str`.
    """
    if isinstance(observation, str):
        return observation
    return json.dumps(observation, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def chat_or_plain_prompt(system_prompt: str | None = None) -> PromptBuilder:
    """The default builder.

    Args:
        system_prompt: Instructions put before every observation; none when None.

    Returns:
        A builder that applies the tokenizer's chat template, or without one writes the instructions,
        the observation and `Action:` on lines of their own.
    """

    def build(observation: Any, tokenizer: Any) -> str | list[int]:
        text = observation_text(observation)
        if getattr(tokenizer, "chat_template", None):
            system = [{"role": "system", "content": system_prompt}] if system_prompt else []
            messages = [*system, {"role": "user", "content": text}]
            ids: list[int] = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=True, return_dict=False
            )
            return ids
        return f"{system_prompt}\n{text}\nAction:" if system_prompt else f"{text}\nAction:"

    return build


def bare_prompt(observation: Any, tokenizer: Any) -> str:  # noqa: ARG001 - a builder's signature
    """A builder that gives the observation's text and nothing else, for models that learn from scratch."""
    return observation_text(observation)


def prompt_ids(built: str | list[int], tokenizer: Any) -> list[int]:
    """A builder's result as token ids."""
    return list(tokenizer(built)["input_ids"]) if isinstance(built, str) else list(built)
