"""Putting the regime prefix into the prompts a policy acts on.

The policy records the prompt it answered, so the update scores exactly the prompt that was acted on,
prefix included, without anything being built twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skyfall_core.errors import ConfigError
from skyfall_torch.prompts import observation_text

__all__ = ["PrefixingPolicy"]

Prefix = Callable[[Any, int], str]
"""Observation and world to the text in front of that observation."""


class PrefixingPolicy:
    """A prompt-building policy whose observations are preceded by a text of the moment.

    Everything but acting is the inner policy's own.

    Args:
        inner: A policy with a replaceable `prompt` builder, such as `LanguagePolicy`.
        prefix: Called once an action, in world order.

    Raises:
        ConfigError: If the policy builds no prompts.
    """

    def __init__(self, inner: Any, prefix: Prefix) -> None:
        build = getattr(inner, "prompt", None)
        if not callable(build):
            raise ConfigError(
                f"inject_prefix: {type(inner).__name__} builds no prompts to put a prefix into; "
                "it needs a language policy"
            )
        self._inner, self._build, self._prefix = inner, build, prefix
        self._worlds: Iterator[int] = iter(())
        inner.prompt = self._prefixed

    def act(self, observation: Any) -> Any:
        """The inner policy's action for the prefixed observation."""
        self._worlds = iter((0,))
        return self._inner.act(observation)

    def act_batch(self, observations: Sequence[Any]) -> Any:
        """One action an observation, each with the prefix of its own world."""
        self._worlds = iter(range(len(observations)))
        return self._inner.act_batch(observations)

    def kwargs_to_restore(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - a protocol's
        """Never returns, because no keywords would bring the prefix back.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            "algorithm.kwargs.inject_prefix: a policy that acts on the encoder's prefixes cannot be exported "
            "without the encoder; train with inject_prefix: false"
        )

    def _prefixed(self, observation: Any, tokenizer: Any) -> Any:
        prefix = self._prefix(observation, next(self._worlds))
        return self._build(f"{prefix}\n{observation_text(observation)}", tokenizer)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)
